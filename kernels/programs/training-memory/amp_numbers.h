// SPDX-License-Identifier: Apache-2.0
// What a training step of `precision` does to single numbers: the arithmetic that the host and a GPU
// share. Numbers of 16-bit arrays are widened, computed in float and rounded once; the caller does that.
// A GPU may fuse a product and a sum, so floats agree to rounding, and the task's examples and the
// places in the histogram to the bit. C++17, no library of ours: nvcc reads this file too.
#pragma once

#include "kernels/programs/common/mlp_numbers.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define MEMSCAPE_AMP __host__ __device__ inline
#else
#define MEMSCAPE_AMP inline
#endif

namespace memscape {

inline constexpr int ampClasses = 16;

// ---- forward and backward ---------------------------------------------------------------------

/// ReLU; a not-a-number stays one.
MEMSCAPE_AMP float ampActive(float z)
{
    return z < 0 ? 0.0F : z;
}

/// The gradient below ReLU.
MEMSCAPE_AMP float ampPassed(float activation, float gradient)
{
    return activation > 0 ? gradient : 0.0F;
}

/// Logits of one example become log probabilities.
MEMSCAPE_AMP void ampLogSoftmax(float (&row)[ampClasses])
{
    float most = row[0], sum = 0;
    for (const float logit : row)
        most = most < logit ? logit : most;
    for (const float logit : row)
        sum += std::exp(logit - most);
    const float log = std::log(sum) + most;
    for (float& logit : row)
        logit -= log;
}

/// Of a logit: factor × (probability − 1 at the label).
MEMSCAPE_AMP float ampLossGradient(float logProbability, bool isLabel, float factor)
{
    return factor * (std::exp(logProbability) - (isLabel ? 1.0F : 0.0F));
}

// ---- AdamW ------------------------------------------------------------------------------------

struct AmpAdamStep
{
    float rate, beta1, beta2, epsilon, decay;
    float correction1, correctionRoot2; ///< 1 − β1^t, √(1 − β2^t)
};

/// As torch.optim.AdamW: the decay first, then the step.
MEMSCAPE_AMP void ampAdam(const AmpAdamStep& step, float gradient, float& weight, float& moment, float& square)
{
    moment += (gradient - moment) * (1 - step.beta1);
    square = square * step.beta2 + gradient * gradient * (1 - step.beta2);
    const float root = std::sqrt(square) / step.correctionRoot2 + step.epsilon;
    weight -= step.rate * step.decay * weight;
    weight -= step.rate / step.correction1 * moment / root;
}

// ---- the histogram of gradients ---------------------------------------------------------------

inline constexpr int ampFirstBar = -50, ampBars = 70; ///< log2 |g|; those of core/experiments/precision/precision.h

/// Where |gradient| / scale is in the histogram, for a gradient that is finite and not 0. By its
/// exponent, so exact at powers of two.
MEMSCAPE_AMP int ampBarOf(double magnitude)
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, &magnitude, sizeof bits);
    const int bar = static_cast<int>(bits >> 52 & 0x7ff) - 1023 - ampFirstBar;
    return bar < 0 ? 0 : bar < ampBars ? bar : ampBars - 1;
}

// ---- the task ---------------------------------------------------------------------------------

inline constexpr std::uint64_t ampDirectionSeed = 900, ampFirstBatchSeed = 1000;

/// Of direction `which` at input `input`; tables of them lie input by input.
MEMSCAPE_EVERYWHERE float ampDirection(std::uint64_t inputs, std::uint64_t input, int which)
{
    return mlpUniform(ampDirectionSeed, static_cast<std::uint64_t>(which) * inputs + input);
}

/// a + b × c, both rounded, whatever the machine could fuse.
MEMSCAPE_AMP float ampAdded(float a, float b, float c)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, __fmul_rn(b, c));
#else
    return a + b * c;
#endif
}

/// Example `row` of a batch into x[0 … inputs); its label. directions: inputs × ampClasses.
MEMSCAPE_AMP int ampExample(std::uint64_t batch, std::uint64_t row, std::uint64_t inputs, const float* directions,
                            float* x)
{
    constexpr float unitVariance = 1.7320508F; // of uniform numbers in ±√3
    float along[ampClasses] = {};
    for (std::uint64_t j = 0; j < inputs; ++j) {
        const float input = unitVariance * mlpUniform(ampFirstBatchSeed + batch, row * inputs + j);
        x[j] = input;
        for (int c = 0; c < ampClasses; ++c)
            along[c] = ampAdded(along[c], input, directions[j * ampClasses + c]);
    }
    int label = 0;
    float best = along[0];
    for (int c = 1; c < ampClasses; ++c) {
        if (along[c] > best) {
            best = along[c];
            label = c;
        }
    }
    return label;
}

} // namespace memscape
