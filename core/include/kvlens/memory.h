// Memory for tensors: 64-byte aligned, never throwing, counted.
//
// All memory whose size depends on a model, a cache or a prompt is a Buffer: a failed allocation is
// an error value, and a test can make any one of them fail.
// Threading: counters are atomic; a Buffer has one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include "kvlens/error.h"

namespace kvlens {

namespace memory {
inline constexpr std::size_t alignment = 64;

// Returns `bytes` of uninitialised memory, or null if allocation fails.
[[nodiscard]] void* allocate(std::size_t bytes) noexcept;
// Frees memory from `allocate`; `bytes` is the size that was asked for there.
void release(void* data, std::size_t bytes) noexcept;

// The number of buffers that are alive in the process, and the bytes that they hold.
[[nodiscard]] std::uint64_t live_buffers() noexcept;
[[nodiscard]] std::uint64_t live_bytes() noexcept;

// For tests: `successes` more allocations succeed, then all fail until `clear_failure` is called.
void fail_after(std::uint64_t successes) noexcept;
void clear_failure() noexcept;

// The largest object that C++ can address: the distance between two of its bytes must be a
// ptrdiff_t.
inline constexpr std::size_t largest_object = PTRDIFF_MAX;
}  // namespace memory

// The number of elements of `element_bytes` bytes that a tensor of `shape` has.
// Errors: size_overflow, when they do not fit one object.
[[nodiscard]] Result<std::size_t> element_count(std::initializer_list<std::size_t> shape,
                                                std::size_t element_bytes);

// Move-only owner of `size()` elements of a trivial type.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= memory::alignment);

 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      clear();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { clear(); }

  // A buffer whose elements are all zero. Errors: size_overflow, out_of_memory; nothing is
  // allocated after either.
  [[nodiscard]] static Result<Buffer> zeroed(std::size_t size) { return zeroed({size}); }
  // The same for a tensor of `shape`, dense and row-major.
  [[nodiscard]] static Result<Buffer> zeroed(std::initializer_list<std::size_t> shape) {
    auto buffer = uninitialised(shape);
    if (buffer) {
      for (T& element : buffer->span()) element = T{};
    }
    return buffer;
  }
  // As `zeroed`, but every element must be written before it is read.
  [[nodiscard]] static Result<Buffer> uninitialised(std::size_t size) {
    return uninitialised({size});
  }
  [[nodiscard]] static Result<Buffer> uninitialised(std::initializer_list<std::size_t> shape) {
    const auto size = element_count(shape, sizeof(T));
    if (!size) return std::unexpected(size.error());
    Buffer buffer;
    if (*size != 0) {
      const std::size_t bytes = *size * sizeof(T);
      buffer.data_ = static_cast<T*>(memory::allocate(bytes));
      if (buffer.data_ == nullptr) {
        return fail(ErrorCode::out_of_memory, BytesContext{bytes},
                    "cannot allocate " + std::to_string(bytes) + " bytes");
      }
    }
    buffer.size_ = *size;
    return buffer;
  }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<T> span() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data_, size_}; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return data_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  void clear() noexcept {
    if (data_ != nullptr) memory::release(data_, size_ * sizeof(T));
    data_ = nullptr;
    size_ = 0;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kvlens
