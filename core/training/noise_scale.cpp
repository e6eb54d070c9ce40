// SPDX-License-Identifier: Apache-2.0
#include "core/training/noise_scale.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

struct NoiseParts
{
    double trace = 0, squared = 0, signal = 0;
};

double correctedOf(const NoiseParts& parts)
{
    return parts.signal > 0 ? parts.trace / parts.signal : std::numeric_limits<double>::infinity();
}

/// (n − 1)/n Σ (leave-one-out − their mean)², the jackknife's variance.
double jackknife(std::span<const GradientNoise> measurements, const NoiseParts& sum)
{
    const double count = double(measurements.size());
    std::vector<double> without;
    double mean = 0;
    for (const GradientNoise& one : measurements) {
        without.push_back(correctedOf({sum.trace - one.trace, sum.squared - one.squared, sum.signal - one.signal}));
        mean += without.back() / count;
    }
    double squares = 0;
    for (const double value : without)
        squares += (value - mean) * (value - mean);
    return std::sqrt(squares * (count - 1) / count);
}

} // namespace

GradientNoise noiseOfExamples(double count, double meanSquaredNorm, double squaredNormOfMean)
{
    return noiseOfTwoBatches(1, meanSquaredNorm, count, squaredNormOfMean);
}

GradientNoise noiseOfTwoBatches(double small, double smallSquaredNorm, double large, double largeSquaredNorm)
{
    // E |Ḡ_B|² = |G|² + tr(Σ) / B at both sizes.
    GradientNoise noise;
    noise.trace = (smallSquaredNorm - largeSquaredNorm) / (1 / small - 1 / large);
    noise.signal = (large * largeSquaredNorm - small * smallSquaredNorm) / (large - small);
    noise.squared = largeSquaredNorm;
    return noise;
}

NoiseScale noiseScaleOf(std::span<const GradientNoise> measurements)
{
    NoiseParts sum;
    for (const GradientNoise& one : measurements) {
        sum.trace += one.trace;
        sum.squared += one.squared;
        sum.signal += one.signal;
    }
    NoiseScale scale;
    if (measurements.empty() || !(sum.squared > 0))
        return scale;
    scale.simple = sum.trace / sum.squared;
    scale.corrected = correctedOf(sum);
    if (measurements.size() >= 3)
        scale.standardError = jackknife(measurements, sum);
    return scale;
}

double stepProgress(double batch, double noiseScale)
{
    return 1 / (1 + noiseScale / batch);
}

Result<BatchHyperbola> fitHyperbola(std::span<const StepsToTarget> points)
{
    // Minimises Σ ((S_min + E_min / B) / S − 1)²: two normal equations.
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0, least = 0, most = 0;
    for (const StepsToTarget& point : points) {
        if (!(point.batch > 0) || !(point.steps > 0))
            continue;
        const double constant = 1 / point.steps, slope = constant / point.batch;
        aa += constant * constant;
        ab += constant * slope;
        bb += slope * slope;
        a += constant;
        b += slope;
        least = least > 0 ? std::min(least, point.batch) : point.batch;
        most = std::max(most, point.batch);
    }
    const double determinant = aa * bb - ab * ab;
    if (!(most > least) || !(determinant > 0))
        return fail("noise.points", "steps to the target at two batch sizes or more are needed",
                    "measure more batch sizes, e.g. batch=1:1024:x2");
    BatchHyperbola found{(a * bb - b * ab) / determinant, (aa * b - ab * a) / determinant};
    if (!(found.fewestSteps > 0) || !(found.fewestExamples > 0))
        return fail("noise.fit", "the steps to the target lie on no hyperbola of positive S_min and E_min",
                    "measure batch sizes further apart");
    return found;
}

} // namespace memscape
