// SPDX-License-Identifier: Apache-2.0
// The passes of a training step in FP32 or mixed precision as plain calls, between amp.cu (C++17) and the
// backend (C++20). What each means is said at AmpDevice (kernels/programs/training-memory/amp_device.h).
#pragma once

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/kernels.h"
#include "kernels/programs/training-memory/amp_numbers.h"

namespace memscape::cuda {

/// `count` numbers of a format, aligned to 16 bytes.
struct AmpValues
{
    void* data = nullptr;
    std::uint64_t count = 0;
    ElementFormat format = ElementFormat::Float32;
};

constexpr int ampTensors = 8; ///< that one launch takes at most
constexpr int ampSlices = 64; ///< of rows that are summed apart, at most
constexpr int ampCountBlocks = 256;

/// Several FP32 arrays at once.
struct AmpTensors
{
    int count = 0;
    float* values[ampTensors] = {}; ///< gradients that are unscaled; weights that AdamW changes
    const float* gradients[ampTensors] = {};
    float *moments[ampTensors] = {}, *squares[ampTensors] = {};
    std::uint64_t elements[ampTensors] = {};
};

/// What a block saw of gradients; the bars are summed over all blocks.
struct AmpCountPart
{
    double sum, squares, largest;
};
struct AmpCounts
{
    unsigned long long bars[ampBars + 1]; ///< the last one: zeros
    AmpCountPart parts[ampCountBlocks];
};

/// ampDirection() as inputs × ampClasses.
cudaError_t launchAmpDirections(float* directions, std::uint64_t inputs, cudaStream_t stream);
cudaError_t launchAmpBatch(std::uint64_t batch, std::uint64_t rows, std::uint64_t inputs, const float* directions,
                           float* x, std::int64_t* labels, cudaStream_t stream);

/// Between FP32 and a short format, either way.
cudaError_t launchAmpConvert(const AmpValues& from, const AmpValues& to, cudaStream_t stream);
/// to ← sums + bias, with `active` at least 0; `to` may be the sums.
cudaError_t launchAmpBias(const AmpValues& bias, const AmpValues& sums, void* to, bool active, cudaStream_t stream);
cudaError_t launchAmpReluBackward(const AmpValues& activation, const void* gradient, void* to, cudaStream_t stream);
/// partial: ampSlices × bias.count floats.
cudaError_t launchAmpSumRows(const AmpValues& gradient, const AmpValues& bias, float* partial, cudaStream_t stream);
cudaError_t launchAmpLogSoftmax(const AmpValues& logits, void* logProbabilities, cudaStream_t stream);
/// loss ← the mean, mean ← the same before it was rounded.
cudaError_t launchAmpMeanLoss(const float* logProbabilities, const std::int64_t* labels, std::uint64_t rows,
                              float* loss, double* mean, cudaStream_t stream);
cudaError_t launchAmpLossBackward(const AmpValues& logProbabilities, const std::int64_t* labels, void* gradient,
                                  float factor, cudaStream_t stream);
/// *infinite is set when a product is infinite or not a number, and else left alone.
cudaError_t launchAmpUnscale(const AmpTensors& tensors, float factor, int* infinite, cudaStream_t stream);
cudaError_t launchAmpAdam(const AmpTensors& tensors, const AmpAdamStep& step, cudaStream_t stream);
/// *counts: zero before; every part is written.
cudaError_t launchAmpCount(const AmpValues& gradients, double scale, AmpCounts* counts, cudaStream_t stream);

/// All of the above in FP32 and `format` against plain loops in double.
KernelCheck checkAmpElements(ElementFormat format);

} // namespace memscape::cuda
