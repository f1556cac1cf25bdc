// Four lanes of the compute type, as GCC and Clang vector extensions.
//
// Every reduction of the ops adds element i into lane i mod 4 and ends with `sum`, so its rounding
// is a function of its length alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Before a loop that is to stay one: it would not fit the registers otherwise, or is run too rarely
// for the bytes.
#if defined(__clang__)
#define KVLENS_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define KVLENS_NO_UNROLL
#endif

namespace kvlens::ops {

using f32x4 = float __attribute__((vector_size(16)));
using f64x2 = double __attribute__((vector_size(16)));
using i8x16 = std::int8_t __attribute__((vector_size(16)));
using u8x16 = std::uint8_t __attribute__((vector_size(16)));
using i16x8 = std::int16_t __attribute__((vector_size(16)));
using u16x8 = std::uint16_t __attribute__((vector_size(16)));
using i32x4 = std::int32_t __attribute__((vector_size(16)));
using i64x2 = std::int64_t __attribute__((vector_size(16)));
using u32x4 = std::uint32_t __attribute__((vector_size(16)));

// Two halves rather than one 32-byte vector: passing those by value has no stable ABI without AVX.
struct f64x4 {
  f64x2 low;
  f64x2 high;
};
inline f64x4 operator+(f64x4 a, f64x4 b) noexcept { return {a.low + b.low, a.high + b.high}; }
inline f64x4 operator-(f64x4 a, f64x4 b) noexcept { return {a.low - b.low, a.high - b.high}; }
inline f64x4 operator*(f64x4 a, f64x4 b) noexcept { return {a.low * b.low, a.high * b.high}; }
inline f64x4 operator/(f64x4 a, f64x4 b) noexcept { return {a.low / b.low, a.high / b.high}; }

template <class T>
using Lanes = std::conditional_t<std::is_same_v<T, float>, f32x4, f64x4>;

inline constexpr std::size_t n_lanes = 4;
// The part of a length that fills all lanes.
constexpr std::size_t whole_lanes(std::size_t size) noexcept { return size - size % n_lanes; }

template <class V>
inline V load_as(const void* from) noexcept {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
inline Lanes<T> load(const T* from) noexcept {
  return load_as<Lanes<T>>(from);
}
template <class T>
inline void store(T* to, const Lanes<T>& value) noexcept {
  std::memcpy(to, &value, sizeof value);
}
// The first `count` < 4 lanes; the others are zero. Rare, so a function of its own: modules are
// downloaded.
template <class T>
[[gnu::noinline]] inline Lanes<T> load_part(const T* from, std::size_t count) noexcept {
  T lanes[n_lanes] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i] = from[i];
  return load(lanes);
}
template <class T>
inline void store_part(T* to, const Lanes<T>& value, std::size_t count) noexcept {
  T lanes[n_lanes];
  store(lanes, value);
  for (std::size_t i = 0; i < count; ++i) to[i] = lanes[i];
}

constexpr f32x4 splat(float value) noexcept { return f32x4{value, value, value, value}; }
constexpr f64x2 splat2(double value) noexcept { return f64x2{value, value}; }
inline f64x4 splat(double value) noexcept { return {f64x2{value, value}, f64x2{value, value}}; }
constexpr i32x4 splat(std::int32_t value) noexcept { return i32x4{value, value, value, value}; }

constexpr u8x16 splat_byte(std::uint8_t value) noexcept {
  const std::uint8_t v = value;
  return u8x16{v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
}

constexpr u32x4 splat(std::uint32_t value) noexcept { return u32x4{value, value, value, value}; }

// A stored constant that loops should keep in a register: a compiler for WebAssembly
// builds a constant that it knows again at each use, with three instructions. So we hide the value
// from it.
template <class V>
inline V in_register(const V& stored) noexcept {
  const V* from = &stored;
#if defined(__wasm__)
  __asm__("" : "+r"(from));
#endif
  return *from;
}

// Keeps the value's computation where it stands among other pinned ones. Compilers for WebAssembly
// else gather a chain of additions at its end, and everything it reads must wait in memory.
template <class V>
inline void pin([[maybe_unused]] V& value) noexcept {
#if defined(__wasm__)
  __asm__ volatile("" : "+r"(value));
#endif
}

// Has what is read from there before and after read twice.
template <class V>
inline void pin_address([[maybe_unused]] const V*& from) noexcept {
#if defined(__wasm__)
  __asm__("" : "+r"(from));
#endif
}

// Has the value computed, and what it was loaded from read, though nothing uses it.
template <class V>
inline void keep(const V& value) noexcept {
#if defined(__wasm__)
  __asm__ volatile("" : : "r"(value));
#else
  __asm__ volatile("" : : "m"(value));
#endif
}

inline float sum(f32x4 v) noexcept { return (v[0] + v[1]) + (v[2] + v[3]); }
inline double sum(f64x4 v) noexcept { return (v.low[0] + v.low[1]) + (v.high[0] + v.high[1]); }

// `sum` of four vectors, one a lane.
inline f32x4 sums(f32x4 a, f32x4 b, f32x4 c, f32x4 d) noexcept {
  const f32x4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const f32x4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const f32x4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const f32x4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const f32x4 lane0 = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  const f32x4 lane1 = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  const f32x4 lane2 = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  const f32x4 lane3 = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  return (lane0 + lane1) + (lane2 + lane3);
}
inline f64x4 sums(f64x4 a, f64x4 b, f64x4 c, f64x4 d) noexcept {
  return {f64x2{sum(a), sum(b)}, f64x2{sum(c), sum(d)}};
}

inline f32x4 select(i32x4 mask, f32x4 yes, f32x4 no) noexcept {
  return std::bit_cast<f32x4>((mask & std::bit_cast<i32x4>(yes)) |
                              (~mask & std::bit_cast<i32x4>(no)));
}

}  // namespace kvlens::ops
