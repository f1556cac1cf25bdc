// exp, log, sine and cosine with the same bits on every platform: no libm.
#pragma once

namespace kvlens::ops {

// Natural exponential. Error bounds are stated and tested: at most 2 ulp (float), 1 ulp (double).
[[nodiscard]] float exponential(float x) noexcept;
[[nodiscard]] double exponential(double x) noexcept;
[[nodiscard]] double logarithm(double x) noexcept;  // x > 0 and finite

struct SineCosine {
  double sine;
  double cosine;
};
// |x| up to 2^30.
[[nodiscard]] SineCosine sine_cosine(double x) noexcept;

}  // namespace kvlens::ops
