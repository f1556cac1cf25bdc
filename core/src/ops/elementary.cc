// Polynomials and argument reductions of the double functions: FreeBSD's msun (Sun Microsystems'
// fdlibm), whose error analysis gives less than one ulp for each.
#include "ops/elementary.h"

namespace kvlens::ops {
namespace {

// Not a sum of two doubles in one rounding, but the sum and what the rounding lost.
struct Double2 {
  double high;
  double low;
};

Double2 two_sum(double a, double b) noexcept {
  const double s = a + b;
  const double t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

// Dekker's product, without a fused multiply-add, which WebAssembly lacks.
Double2 two_product(double a, double b) noexcept {
  constexpr double splitter = 134217729.0;  // 2^27 + 1
  const double ca = splitter * a;
  const double a_high = ca - (ca - a);
  const double a_low = a - a_high;
  const double cb = splitter * b;
  const double b_high = cb - (cb - b);
  const double b_low = b - b_high;
  const double p = a * b;
  return {p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

Double2 multiply(Double2 a, Double2 b) noexcept {
  const Double2 p = two_product(a.high, b.high);
  return two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

double sine_kernel(double x, double tail) noexcept {
  const double z = x * x;
  const double r = 8.33333333332248946124e-03 +
                   z * (-1.98412698298579493134e-04 +
                        z * (2.75573137070700676789e-06 +
                             z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
  const double v = z * x;
  return x - ((z * (0.5 * tail - v * r) - tail) - v * -1.66666666666666324348e-01);
}

double cosine_kernel(double x, double tail) noexcept {
  const double z = x * x;
  const double r =
      z * (4.16666666666666019037e-02 +
           z * (-1.38888888888741095749e-03 +
                z * (2.48015872894767294178e-05 +
                     z * (-2.75573143513906633035e-07 +
                          z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  const double half_z = 0.5 * z;
  const double w = 1.0 - half_z;
  return w + (((1.0 - w) - half_z) + (z * r - x * tail));
}

}  // namespace

float exponential(float x) noexcept { return exponential(splat(x), exponential_constants)[0]; }

double exponential(double x) noexcept {
  return exponential(f64x2{x, x}, exponential_constants_double)[0];
}

double logarithm(double x) noexcept {
  std::int64_t k = 0;
  if (x < 2.2250738585072014e-308) {  // subnormal
    x *= 18014398509481984.0;         // 2^54
    k = -54;
  }
  // x = 2^k * (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)).
  constexpr std::uint64_t sqrt_half = 0x3fe6a09e00000000u;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::int64_t exponent = static_cast<std::int64_t>(bits - sqrt_half) >> 52;
  k += exponent;
  const double f = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52)) - 1.0;
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double even = w * (3.999999999940941908e-01 +
                           w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 +
                               w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const auto n = static_cast<double>(k);
  return s * (half_square + (even + odd)) + n * 1.90821492927058770002e-10 - half_square + f +
         n * 6.93147180369123816490e-01;
}

SineCosine sine_cosine(double x) noexcept {
  // pi/2 in parts of 22 bits, so that a multiple below 2^30 of each is exact.
  constexpr double part1 = 0x1.921fbp+0;
  constexpr double part2 = 0x1.5110bp-22;
  constexpr double part3 = 0x1.18469898cc517p-44;
  constexpr double part3_tail = 0x1.b839a252049c1p-104;
  constexpr double shift = 6755399441055744.0;
  const double n = (x * 6.36619772367581382433e-01 + shift) - shift;
  const Double2 a = two_sum(x - n * part1, -(n * part2));
  const Double2 p = two_product(n, part3);
  const Double2 b = two_sum(a.high, -p.high);
  const double low = b.low + (a.low - p.low - n * part3_tail);
  const Double2 r = two_sum(b.high, low);
  const double s = sine_kernel(r.high, r.low);
  const double c = cosine_kernel(r.high, r.low);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

void root_powers(double base, std::size_t n, double* out) noexcept {
  const double guess = exponential(-logarithm(base) / static_cast<double>(n));
  // The guess is within some ulp, so that one step of Newton leaves the error of double-double.
  Double2 power{1.0, 0.0};
  for (std::size_t i = 0; i < n; ++i) power = multiply(power, {guess, 0.0});
  const Double2 product = multiply(power, {base, 0.0});  // 1 where the guess is exact
  const double correction = ((1.0 - product.high) - product.low) / static_cast<double>(n);
  const Double2 root = two_sum(guess, guess * correction);
  power = {1.0, 0.0};
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = power.high + power.low;
    power = multiply(power, root);
  }
}

}  // namespace kvlens::ops
