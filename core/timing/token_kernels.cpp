// SPDX-License-Identifier: Apache-2.0
#include "core/timing/token_kernels.h"

#include "core/timing/gemm_time.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double graphPeriod = 0.53; ///< of a stream's

constexpr double attentionKernels = 5;   ///< joined product, positions and cache, attention's parts, their sum, product
constexpr double positionOperators = 16; ///< DeepSeek's positions, by PyTorch's operators
constexpr double groupedChoice = 9;      ///< of experts, by operators: more than a fused gate
constexpr double crossKernels = 5; ///< a decoder's look at the encoder: norm, product, attention, its sum, product
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

double normsOf(const ModelDescription& model)
{
    return model.normPlacement == NormPlacement::Both ? 4 : model.sharedNorm ? 1 : 2;
}

/// Of attention whose keys and values come out of a latent, beside those of others.
double latentKernels(const ModelDescription& model, EngineStyle style)
{
    if (model.latent.keyValueRank == 0)
        return 0;
    const double keysNorm = 1, absorbing = 2;
    const double queries = model.latent.queryRank > 0 ? 2 : 1; // norm and product up, or a product of their own
    const double common = keysNorm + absorbing + queries;
    if (!style.isVllm)
        return common;
    const double cache = 1, joinedQueries = 1, copies = 2;
    const double before09 = 2 + positionOperators - 1; // a product down and a copy; positions were counted once
    return common + cache + joinedQueries + copies + (style.isBefore09 ? before09 : 0);
}

} // namespace

double engineKernels(const ModelDescription& model, EngineStyle style)
{
    if (model.family == Family::StateSpace)
        return double(model.layers) * stateSpaceKernels + modelKernels;
    const bool isSecondStack = model.family == Family::EncoderDecoder, isOldVllm = style.isVllm && style.isBefore09;
    const std::int64_t layers = isSecondStack ? model.decoderLayers : model.layers;
    const double norms = normsOf(model);
    const double attention = attentionKernels + latentKernels(model, style)
        + (model.queryKeyNorm || model.queryKeyNormWhole ? 1 : 0) + (isSecondStack ? crossKernels : 0);
    const bool isLatent = model.latent.keyValueRank > 0;
    const double inputs = style.quantizesInputs ? 2 : 0; // of attention, and of a feed-forward
    const double latentInputs = style.quantizesInputs && model.latent.queryRank > 0 ? 1 : 0;
    const double shared = feedForwardKernels + inputs + 1 // its sum with the others
        + (model.experts.sharedGate ? 2 : 0) + (style.isVllm && isLatent ? 1 : 0);
    const double experts = expertKernels + (isOldVllm && isLatent ? groupedChoice : 0);
    double kernels = modelKernels;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool hasExperts = model.experts.count > 0 && model.isSparse(layer);
        kernels += norms + attention + 2 * inputs + latentInputs + (hasExperts ? experts : feedForwardKernels)
            + (hasExperts && model.experts.sharedFfn > 0 ? shared : 0);
    }
    return kernels;
}

LoopedKernels fusedLoop(const ModelDescription& model, bool isQuantized)
{
    const double attentionProducts = isQuantized ? 2 : 4; // joined, and that of the output
    const double products = attentionProducts + (model.gated ? 3 : 2);
    const double attention = 1, residualSums = 2, activations = model.gated ? 2 : 1;
    const double layers = double(model.layers);
    return {layers * (products + attention + residualSums + activations + normsOf(model)) + modelKernels,
            isQuantized ? layers * products : 0};
}

double llamaCppKernels(const ModelDescription& model, bool isQuantized, bool writesScores)
{
    if (model.family == Family::StateSpace)
        return engineKernels(model);
    const bool isSandwich = model.normPlacement == NormPlacement::Both,
               isRotary = model.positions == PositionKind::Rotary;
    const double product = isQuantized ? 2 : 1;
    const double norm = model.norm == NormKind::RmsNorm ? 1 : model.biases.norm ? 3 : 2;
    const double norms = norm * normsOf(model);
    const double residuals = isSandwich ? 0 : 2;
    const double cached = 2, attention = 2 + (writesScores ? llamaCppScoreKernels : 0); // parts of the keys, their sum
    const double mixer = 4 * product + (isRotary ? 1 : 0) + cached + attention + latentKernels(model, {});
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
