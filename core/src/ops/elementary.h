// exp, log, sine and cosine with the same bits on every platform: no libm.
//
// Only additions, multiplications, divisions and bit patterns are used, each of which IEEE 754
// defines, so a result depends on nothing but its argument. Bounds are tested against quad or long
// double.
#pragma once

#include "ops/vector.h"

namespace kvlens::ops {

// Natural exponential. Error at most 2 ulp (float), 1 ulp (double); gradual underflow; NaN gives
// NaN.
[[nodiscard]] float exponential(float x) noexcept;
[[nodiscard]] double exponential(double x) noexcept;
// Natural logarithm, x > 0 and finite. Error at most 1 ulp.
[[nodiscard]] double logarithm(double x) noexcept;

struct SineCosine {
  double sine;
  double cosine;
};
// |x| up to 2^30. Error at most 2^-53 absolute beside the rounding of the result.
[[nodiscard]] SineCosine sine_cosine(double x) noexcept;

// base^(-i / n) for i in 0..n-1, correctly rounded but for ties too close for twice the precision:
// powers of the n-th root, which Newton's iteration makes in double-double. base > 0.
void root_powers(double base, std::size_t n, double* out) noexcept;

// The constants of the float exponential, which loops hold `in_register`.
struct ExponentialConstants {
  f32x4 lowest;  // beyond these the result is 0 or infinity
  f32x4 highest;
  f32x4 shift;  // 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits
  f32x4 inverse_ln2;
  f32x4 ln2_high;  // n times this is exact
  f32x4 ln2_low;
  f32x4 p5, p4, p3, p2, p1, p0;
  f32x4 one;
  i32x4 bias;
};
inline constexpr ExponentialConstants exponential_constants = {splat(-104.0f),
                                                               splat(89.0f),
                                                               splat(12582912.0f),
                                                               splat(1.44269504f),
                                                               splat(0.693359375f),
                                                               splat(-2.12194440e-4f),
                                                               splat(1.9875691500e-4f),
                                                               splat(1.3981999507e-3f),
                                                               splat(8.3334519073e-3f),
                                                               splat(4.1665795894e-2f),
                                                               splat(1.6666665459e-1f),
                                                               splat(5.0000001201e-1f),
                                                               splat(1.0f),
                                                               splat(std::int32_t{127})};

// Four exponentials; each lane has the bits of the scalar form.
[[nodiscard]] inline f32x4 exponential(f32x4 x, const ExponentialConstants& k) noexcept {
  // A NaN passes both comparisons.
  x = x < k.lowest ? k.lowest : x;
  x = k.highest < x ? k.highest : x;
  const f32x4 shifted = x * k.inverse_ln2 + k.shift;
  const f32x4 n = shifted - k.shift;
  const f32x4 r = (x - n * k.ln2_high) - n * k.ln2_low;
  f32x4 p = k.p5;
  p = p * r + k.p4;
  p = p * r + k.p3;
  p = p * r + k.p2;
  p = p * r + k.p1;
  p = p * r + k.p0;
  p = (p * (r * r) + r) + k.one;
  // 2^n in two factors, since n reaches from -150 to 128.
  const i32x4 exponent = std::bit_cast<i32x4>(shifted) - std::bit_cast<i32x4>(k.shift);
  const i32x4 first = exponent >> 1;
  const i32x4 second = exponent - first;
  return p * std::bit_cast<f32x4>((first + k.bias) << 23) *
         std::bit_cast<f32x4>((second + k.bias) << 23);
}

// The same of the double exponential.
struct ExponentialConstantsDouble {
  f64x2 lowest;
  f64x2 highest;
  f64x2 shift;  // 1.5 * 2^52
  f64x2 inverse_ln2;
  f64x2 ln2_high;
  f64x2 ln2_low;
  f64x2 p5, p4, p3, p2, p1;
  f64x2 one, two, half;
  i64x2 bias;
};
inline constexpr ExponentialConstantsDouble exponential_constants_double = {
    splat2(-746.0),
    splat2(710.0),
    splat2(6755399441055744.0),
    splat2(1.44269504088896338700e+00),
    splat2(6.93147180369123816490e-01),
    splat2(1.90821492927058770002e-10),
    splat2(4.13813679705723846039e-08),
    splat2(-1.65339022054652515390e-06),
    splat2(6.61375632143793436117e-05),
    splat2(-2.77777777770155933842e-03),
    splat2(1.66666666666666019037e-01),
    splat2(1.0),
    splat2(2.0),
    splat2(0.5),
    i64x2{1023, 1023}};

// Two exponentials; each lane has the bits of the scalar form.
[[nodiscard]] inline f64x2 exponential(f64x2 x, const ExponentialConstantsDouble& k) noexcept {
  x = x < k.lowest ? k.lowest : x;
  x = k.highest < x ? k.highest : x;
  const f64x2 shifted = x * k.inverse_ln2 + k.shift;
  const f64x2 n = shifted - k.shift;
  const f64x2 high = x - n * k.ln2_high;
  const f64x2 low = n * k.ln2_low;
  const f64x2 r = high - low;
  const f64x2 t = r * r;
  const f64x2 c = r - t * (k.p1 + t * (k.p2 + t * (k.p3 + t * (k.p4 + t * k.p5))));
  const f64x2 y = k.one - ((low - (r * c) / (k.two - c)) - high);
  // 2^n in two factors, since n reaches from -1076 to 1024.
  const i64x2 exponent = std::bit_cast<i64x2>(shifted) - std::bit_cast<i64x2>(k.shift);
  const i64x2 first = std::bit_cast<i64x2>(n * k.half + k.shift) - std::bit_cast<i64x2>(k.shift);
  const i64x2 second = exponent - first;
  return y * std::bit_cast<f64x2>((first + k.bias) << 52) *
         std::bit_cast<f64x2>((second + k.bias) << 52);
}
// A function of its own: double is for reference, and modules are downloaded.
[[nodiscard, gnu::noinline]] inline f64x4 exponential(
    f64x4 x, const ExponentialConstantsDouble& k) noexcept {
  return {exponential(x.low, k), exponential(x.high, k)};
}

// The constants for lanes of T.
template <class T>
[[nodiscard]] inline auto exponential_constants_for() noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return in_register(exponential_constants);
  } else {
    return in_register(exponential_constants_double);
  }
}

}  // namespace kvlens::ops
