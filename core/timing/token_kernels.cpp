// SPDX-License-Identifier: Apache-2.0
#include "core/timing/token_kernels.h"

#include "core/timing/gemm_time.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double graphPeriod = 0.53; ///< of a stream's

constexpr double attentionKernels = 5; ///< joined product, positions and cache, attention's parts, their sum, product
constexpr double latentKernels = 4;    ///< MLA's: two more products down, two that absorb
constexpr double crossKernels = 5;     ///< a decoder's look at the encoder: norm, product, attention, its sum, product
constexpr double feedForwardKernels = 3; ///< product, activation, product
constexpr double expertKernels = 8; ///< router, choice, order (2), grouped product, activation, grouped product, sum
constexpr double stateSpaceKernels = 7; ///< Mamba: norm, four products, convolution, scan
constexpr double modelKernels = 5;      ///< embedding, last norm, head, sampling (2)

bool isStacked(const Device& device)
{
    const MemoryLevel* const dram = device.dram();
    return dram && dram->label.find("HBM") != std::string::npos;
}

/// Of HBM's bandwidth, as the datasheet has it.
double shareOfHbm(WeightBits bits)
{
    switch (bits) {
    case WeightBits::Eight: return 0.7;
    case WeightBits::Four: return 0.57;
    case WeightBits::Sixteen: break;
    }
    return 0.79;
}

} // namespace

double engineKernels(const ModelDescription& model)
{
    if (model.family == Family::StateSpace)
        return double(model.layers) * stateSpaceKernels + modelKernels;
    const bool isSecondStack = model.family == Family::EncoderDecoder;
    const std::int64_t layers = isSecondStack ? model.decoderLayers : model.layers;
    const double norms = model.sharedNorm ? 1 : 2;
    const double attention = attentionKernels + (model.latent.keyValueRank > 0 ? latentKernels : 0)
        + (model.queryKeyNorm || model.queryKeyNormWhole ? 1 : 0) + (isSecondStack ? crossKernels : 0);
    double kernels = modelKernels;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool hasExperts = model.experts.count > 0 && model.isSparse(layer);
        kernels += norms + attention + (hasExperts ? expertKernels : feedForwardKernels)
            + (hasExperts && model.experts.sharedFfn > 0 ? feedForwardKernels : 0);
    }
    return kernels;
}

LoopedKernels awqLoop(const ModelDescription& model)
{
    const double attentionProducts = 2; // joined, and that of the output
    const double products = attentionProducts + (model.gated ? 3 : 2);
    const double attention = 1, residualSums = 2, activations = model.gated ? 2 : 1, norms = model.sharedNorm ? 1 : 2;
    const double layers = double(model.layers);
    return {layers * (products + attention + residualSums + activations + norms) + modelKernels, layers * products};
}

double llamaCppKernels(const ModelDescription& model, bool isQuantized)
{
    if (model.family == Family::StateSpace)
        return engineKernels(model);
    const bool isSandwich = model.normPlacement == NormPlacement::Both,
               isRotary = model.positions == PositionKind::Rotary;
    const double product = isQuantized ? 2 : 1;
    const double norm = model.norm == NormKind::RmsNorm ? 1 : model.biases.norm ? 3 : 2;
    const double norms = norm * (isSandwich ? 4 : model.sharedNorm ? 1 : 2);
    const double residuals = isSandwich ? 0 : 2;
    const double cached = 2, attention = 2; // parts of the keys, and their sum
    const double mixer =
        4 * product + (isRotary ? 1 : 0) + cached + attention + (model.latent.keyValueRank > 0 ? latentKernels : 0);
    const double feedForward = 2 * product + (model.gated ? 0 : 1);
    const double router = 2, scaledSum = 2;
    double kernels = modelKernels;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const bool hasExperts = model.experts.count > 0 && model.isSparse(layer);
        kernels += norms + residuals + mixer + feedForward + (hasExperts ? router + scaledSum : 0)
            + (hasExperts && model.experts.sharedFfn > 0 ? feedForward + 1 : 0);
    }
    return kernels;
}

double graphLaunchSeconds(const Device& device)
{
    return graphPeriod * device.launch.valueOr(0);
}

double engineKernelSeconds(const Device& device)
{
    return graphLaunchSeconds(device) + waveFillSeconds;
}

double llamaCppKernelSeconds(const Device& device)
{
    return isStacked(device) ? engineKernelSeconds(device) : graphLaunchSeconds(device);
}

double streamKernelSeconds(const Device& device)
{
    return device.launch.valueOr(0) + waveFillSeconds;
}

double decodingBandwidth(const Device& device, WeightBits bits)
{
    const MemoryLevel* const dram = device.dram();
    if (!dram)
        return 0;
    const double copied = levelBandwidth(device, *dram, Operation::Copy).valueOr(0);
    const bool isSheet = dram->bandwidth.evidence == Evidence::Specified;
    return isStacked(device) && isSheet ? std::min(copied, shareOfHbm(bits) * dram->bandwidth.value) : copied;
}

double marlinHandovers(int units, double k, double n)
{
    constexpr double tile = 128;
    const double rows = std::ceil(k / tile), columns = std::ceil(n / tile);
    const double ofBlock = std::ceil(rows * columns / std::max(1, units));
    double most = 0;
    for (double column = 0; column < columns; ++column) {
        const double first = std::floor(column * rows / ofBlock),
                     last = std::floor(((column + 1) * rows - 1) / ofBlock);
        most = std::max(most, last - first);
    }
    return most;
}

double marlinSeconds(const Device& device, const ModelDescription& model, int tensorParallel)
{
    constexpr double tripsOfHandover = 4;
    const MemoryLevel* const cache = device.level("L2");
    if (cache == nullptr || model.family == Family::StateSpace || model.latent.keyValueRank > 0)
        return 0;
    const double ranks = std::max(1, tensorParallel), hidden = double(model.hidden), ffn = double(model.ffn) / ranks;
    const double queries = double(model.heads * model.queryHeadDim()) / ranks;
    const double keys = double(model.kvHeads * model.queryHeadDim()) / ranks;
    const auto handovers = [&](double k, double n) { return marlinHandovers(device.units, k, n); };
    const double attention = handovers(hidden, queries + 2 * keys) + handovers(queries, hidden);
    const double feedForward = handovers(hidden, (model.gated ? 2 : 1) * ffn) + handovers(ffn, hidden);
    double all = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
        all += attention + (model.experts.count > 0 && model.isSparse(layer) ? 0 : feedForward);
    return all * tripsOfHandover * cache->latency.valueOr(0);
}

double ownReduceStart(const Device& device)
{
    return engineKernelSeconds(device) + 2 * linkPassSeconds;
}

} // namespace memscape
