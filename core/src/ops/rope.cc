#include "ops/rope.h"

#include "base/try.h"
#include "ops/elementary.h"

namespace kvlens::ops {

template <class T>
Result<RopeTable<T>> RopeTable<T>::create(const RopeSpec& spec, std::size_t head_dim,
                                          std::size_t n_positions) {
  RopeTable table;
  table.pairing_ = spec.pairing;
  table.half_ = head_dim / 2;
  KVLENS_TRY(auto frequencies, Buffer<double>::uninitialised(table.half_));
  KVLENS_TRY(table.cosines_, Buffer<T>::uninitialised({n_positions, table.half_}));
  KVLENS_TRY(table.sines_, Buffer<T>::uninitialised({n_positions, table.half_}));

  root_powers(spec.theta, table.half_, frequencies.data());
  for (std::size_t i = 0; i < spec.freq_factors.size() && i < table.half_; ++i) {
    frequencies[i] /= spec.freq_factors[i];
  }
  for (std::size_t position = 0; position < n_positions; ++position) {
    for (std::size_t i = 0; i < table.half_; ++i) {
      const SineCosine turn = sine_cosine(static_cast<double>(position) * frequencies[i]);
      table.cosines_[position * table.half_ + i] = static_cast<T>(turn.cosine);
      table.sines_[position * table.half_ + i] = static_cast<T>(turn.sine);
    }
  }
  return table;
}

template <class T>
void RopeTable<T>::apply(std::size_t position, std::span<T> heads) const noexcept {
  if (half_ == 0) return;
  const T* cosines = cosines_.data() + position * half_;
  const T* sines = sines_.data() + position * half_;
  const bool interleaved = pairing_ == RopePairing::interleaved;
  const std::size_t step = interleaved ? 2 : 1;
  const std::size_t partner = interleaved ? 1 : half_;
  for (std::size_t head = 0; head + 2 * half_ <= heads.size(); head += 2 * half_) {
    T* a = heads.data() + head;
    T* b = a + partner;
    for (std::size_t i = 0; i < half_; ++i, a += step, b += step) {
      const T x = *a;
      const T y = *b;
      *a = x * cosines[i] - y * sines[i];
      *b = x * sines[i] + y * cosines[i];
    }
  }
}

template class RopeTable<float>;
template class RopeTable<double>;

}  // namespace kvlens::ops
