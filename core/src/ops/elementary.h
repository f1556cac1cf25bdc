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
[[nodiscard]] f64x2 exponential(f64x2 x) noexcept;  // each lane has the bits of the scalar form
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
// Double, which is for reference, builds its constants anew.
[[nodiscard]] inline f64x4 exponential(f64x4 x, const ExponentialConstants&) noexcept {
  return {exponential(x.low), exponential(x.high)};
}

}  // namespace kvlens::ops
