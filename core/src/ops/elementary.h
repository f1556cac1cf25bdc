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

// Four exponentials; each lane has the bits of the scalar form.
[[nodiscard]] inline f32x4 exponential(f32x4 x) noexcept {
  // Beyond these the result is 0 or infinity; a NaN passes both comparisons.
  const f32x4 lowest = splat(-104.0f);
  const f32x4 highest = splat(89.0f);
  x = select(x < lowest, lowest, x);
  x = select(x > highest, highest, x);
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low mantissa bits.
  const f32x4 shift = splat(12582912.0f);
  const f32x4 shifted = x * splat(1.44269504f) + shift;
  const f32x4 n = shifted - shift;
  // ln 2 in two parts; n times the first is exact.
  const f32x4 r = (x - n * splat(0.693359375f)) - n * splat(-2.12194440e-4f);
  f32x4 p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = (p * (r * r) + r) + splat(1.0f);
  // 2^n in two factors, since n reaches from -150 to 128.
  const i32x4 exponent = std::bit_cast<i32x4>(shifted) - std::bit_cast<i32x4>(shift);
  const i32x4 first = exponent >> 1;
  const i32x4 second = exponent - first;
  const i32x4 bias = splat(std::int32_t{127});
  return p * std::bit_cast<f32x4>((first + bias) << 23) *
         std::bit_cast<f32x4>((second + bias) << 23);
}
[[nodiscard]] inline f64x4 exponential(f64x4 x) noexcept {
  return {f64x2{exponential(x.low[0]), exponential(x.low[1])},
          f64x2{exponential(x.high[0]), exponential(x.high[1])}};
}

}  // namespace kvlens::ops
