// SPDX-License-Identifier: Apache-2.0
// How noisy gradients decide how large a batch should be. McCandlish, Kaplan, Amodei et al. 2018, "An
// Empirical Model of Large-Batch Training" (arXiv:1812.06162).
//
//   g_i            gradient of one example, mean G, covariance Σ (of one example)
//   noise scale    B_simple = tr(Σ) / |G|²          section 2.2, the Hessian taken for the identity
//                  B_noise  = tr(HΣ) / (GᵀHG)       with it
//   best rate      ε(B) = ε_max / (1 + B_noise / B)
//   one step       makes 1 / (1 + B_noise / B) of the progress of a step without noise
//   to a loss      S = S_min (1 + B_crit / B) steps, E = B S = E_min (1 + B / B_crit) examples, so
//                  (S / S_min − 1) (E / E_min − 1) = 1   and   B_crit = E_min / S_min
//
// Two estimators of B_simple from a batch of n per-example gradients, or from gradients of two batch sizes:
//   simple     tr(Σ̂) / |Ḡ|²: |Ḡ|² still holds tr(Σ)/n of noise, so it is too small, at most n
//   corrected  |Ḡ|² − tr(Σ̂)/n in the denominator (appendix A.1): both parts unbiased, not their ratio; the
//              parts are averaged over several batches before they are divided
//
// Assumes that examples are independent, that the rate is tuned at each batch size, and that noise scale and
// curvature change slowly on the way. Left out: momentum, Adam's preconditioning, generalisation.
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace memscape {

/// The parts of one measurement of gradients.
struct GradientNoise
{
    double trace = 0;   ///< tr(Σ̂): what one example adds, unbiased
    double squared = 0; ///< |Ḡ|² of the larger batch as it is, noise included
    double signal = 0;  ///< |G|² without the noise, unbiased: can be negative
};

/// From a batch of `count` ≥ 2 examples: the mean of their gradients' squared norms, and the squared norm of
/// their mean.
GradientNoise noiseOfExamples(double count, double meanSquaredNorm, double squaredNormOfMean);
/// From two batch sizes, small < large: mean squared norms of gradients of each.
GradientNoise noiseOfTwoBatches(double small, double smallSquaredNorm, double large, double largeSquaredNorm);

struct NoiseScale
{
    double simple = std::numeric_limits<double>::quiet_NaN();
    double corrected = std::numeric_limits<double>::quiet_NaN(); ///< infinite when no signal is left
    /// Of `corrected`, from leaving out each measurement in turn (jackknife); NaN for fewer than 3.
    double standardError = std::numeric_limits<double>::quiet_NaN();
};
/// Parts averaged over measurements, then divided.
NoiseScale noiseScaleOf(std::span<const GradientNoise> measurements);

/// Share of a noiseless step's progress that a step with this batch makes.
double stepProgress(double batch, double noiseScale);

/// Steps and examples to one loss over the batch.
struct BatchHyperbola
{
    double fewestSteps = std::numeric_limits<double>::quiet_NaN();    ///< S_min, of batches without end
    double fewestExamples = std::numeric_limits<double>::quiet_NaN(); ///< E_min, of the smallest batches

    double critical() const { return fewestExamples / fewestSteps; }
    double steps(double batch) const { return fewestSteps + fewestExamples / batch; }
    double examples(double batch) const { return fewestExamples + fewestSteps * batch; }
};

struct StepsToTarget
{
    double batch = 0, steps = 0;
};
/// The hyperbola with the least relative errors: S = S_min + E_min / B is linear in both. Errors: noise.points for
/// fewer than two batch sizes, noise.fit when the points are of no hyperbola.
Result<BatchHyperbola> fitHyperbola(std::span<const StepsToTarget> points);

} // namespace memscape
