// Memory for tensors: 64-byte aligned, never throwing, counted.
//
// All memory whose size depends on a model, a cache or a prompt is a Buffer, so that an allocation
// that cannot be had is an error value and a test can fail any one of them.
// Threading: counters are atomic; a Buffer has one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "kvlens/error.h"

namespace kvlens {

namespace memory {
inline constexpr std::size_t alignment = 64;

// Null when the memory cannot be had. Contents are not initialised.
[[nodiscard]] void* allocate(std::size_t bytes) noexcept;
void release(void* data, std::size_t bytes) noexcept;

// Buffers alive and their bytes, over the whole process.
[[nodiscard]] std::uint64_t live_buffers() noexcept;
[[nodiscard]] std::uint64_t live_bytes() noexcept;

// For tests: after `successes` further allocations every one fails, until cleared.
void fail_after(std::uint64_t successes) noexcept;
void clear_failure() noexcept;
}  // namespace memory

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

  // Zero-filled. Errors: size_overflow, out_of_memory; nothing is allocated after either.
  [[nodiscard]] static Result<Buffer> zeroed(std::size_t size) {
    auto buffer = uninitialised(size);
    if (buffer) {
      for (T& element : buffer->span()) element = T{};
    }
    return buffer;
  }
  [[nodiscard]] static Result<Buffer> uninitialised(std::size_t size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T) / 2) {
      return fail(ErrorCode::size_overflow, NoContext{},
                  "element count does not fit the address space");
    }
    Buffer buffer;
    if (size != 0) {
      buffer.data_ = static_cast<T*>(memory::allocate(size * sizeof(T)));
      if (buffer.data_ == nullptr) {
        return fail(ErrorCode::out_of_memory, BytesContext{size * sizeof(T)},
                    "cannot allocate " + std::to_string(size * sizeof(T)) + " bytes");
      }
    }
    buffer.size_ = size;
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
