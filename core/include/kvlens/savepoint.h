// A moment of a session that the session can return to: see Session::savepoint and rollback.
//
// A savepoint copies the logits and the token ids at once. Rows of the cache stay where they are;
// only when a call is about to write over a row that the savepoint needs, which happens after
// truncate, clear or reset, are that row and its neighbours copied first (blocks of 64 rows). So
// appending rows costs nothing, and the copies never exceed the rows that the cache held at the
// savepoint.
//
// Savepoints nest, whichever session of the cache made them: a rollback ends those made after the
// one that it returns to. Only rows written by sessions are covered, not rows that somebody
// appends to a layer directly. A savepoint must be destroyed before its session. Threading: as the
// session.
#pragma once

#include <memory>

namespace kvlens {

template <class T>
class Session;

template <class T>
class Savepoint {
 public:
  Savepoint(Savepoint&&) noexcept;
  Savepoint& operator=(Savepoint&&) noexcept;
  ~Savepoint();

 private:
  friend class Session<T>;
  struct State;
  explicit Savepoint(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;  // never null, except after a move
};

extern template class Savepoint<float>;
extern template class Savepoint<double>;

}  // namespace kvlens
