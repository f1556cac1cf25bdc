#include "kvlens/memory.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <string>

namespace kvlens {
namespace memory {
namespace {

std::atomic<std::uint64_t> buffer_count{0};
std::atomic<std::uint64_t> byte_count{0};

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
std::atomic<std::uint64_t> successes_left{never};

bool refused_for_test() noexcept {
  std::uint64_t left = successes_left.load();
  while (left != never) {
    if (left == 0) return true;
    if (successes_left.compare_exchange_weak(left, left - 1)) return false;
  }
  return false;
}

// aligned_alloc wants a multiple of the alignment.
constexpr std::size_t rounded(std::size_t bytes) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void* allocate(std::size_t bytes) noexcept {
  if (bytes > std::numeric_limits<std::size_t>::max() - alignment || refused_for_test()) {
    return nullptr;
  }
  void* data = std::aligned_alloc(alignment, rounded(bytes));
  if (data != nullptr) {
    ++buffer_count;
    byte_count += bytes;
  }
  return data;
}

void release(void* data, std::size_t bytes) noexcept {
  std::free(data);
  --buffer_count;
  byte_count -= bytes;
}

std::uint64_t live_buffers() noexcept { return buffer_count; }
std::uint64_t live_bytes() noexcept { return byte_count; }

void fail_after(std::uint64_t successes) noexcept { successes_left = successes; }
void clear_failure() noexcept { successes_left = never; }

}  // namespace memory

Result<std::size_t> element_count(std::initializer_list<std::size_t> shape,
                                  std::size_t element_bytes) {
  std::size_t limit = memory::largest_object / element_bytes;
  std::size_t count = 1;
  for (const std::size_t dimension : shape) {
    if (dimension == 0) return 0;
  }
  for (const std::size_t dimension : shape) {
    if (dimension > limit) {
      std::string text;
      for (const std::size_t each : shape)
        text += (text.empty() ? "" : " x ") + std::to_string(each);
      return fail(ErrorCode::size_overflow, NoContext{},
                  text + " elements do not fit the address space");
    }
    count *= dimension;
    limit /= dimension;
  }
  return count;
}

}  // namespace kvlens
