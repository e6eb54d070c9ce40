// SPDX-License-Identifier: Apache-2.0
#include "core/timing/device_kernels.h"

#include "core/base/number.h"
#include "core/timing/attention_time.h"
#include "core/timing/eager_kernels.h"
#include "core/timing/gemm_time.h"
#include "core/timing/product_rates.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Terms of a part of a split sum: cuBLAS leaves 1024³ whole on an H100 (gemm_time.h).
constexpr double leastSplit = 2048;

/// The width that a kernel of attention computes for a head of this one.
std::int64_t paddedHead(std::int64_t width, bool isFirstGeneration)
{
    const std::int64_t step = !isFirstGeneration || width <= 32 ? 32 : width <= 64 ? 64 : 128;
    return (width + step - 1) / step * step;
}

/// Clocks of multiprocessors, all of them together, that the generation before FlashAttention-2 takes longer than it:
/// as many as make it half as quick on an A100; on GPUs of before that 2.7 times as slow on a V100.
double earlierClocks(const Device& device, const AttentionProblem& problem, bool isTensorRts)
{
    constexpr double flopsPerClockOfA100 = 2048, flopsPerClockOfV100 = 1024; // of a multiprocessor, in half precision
    constexpr double longerOnA100 = 1, longerOnV100 = 1.7;
    const bool isOlder = device.computeCapability.starts_with("7.") && !isTensorRts; // which has a kernel for each
    return isOlder ? longerOnV100 * flashClocks(problem, flopsPerClockOfV100)
                   : longerOnA100 * flashClocks(problem, flopsPerClockOfA100);
}

/// What attention takes longer that has one block for each head of a sequence, as before FlashAttention-2, which has
/// one for 128 queries (Dao 2023, arXiv:2307.08691, section 3.2: few of them leave multiprocessors idle).
double blocksLonger(const Device& device, const OperatorCost& cost, const AttentionShape& shape)
{
    constexpr double queriesOfBlock = 128;
    const double units = std::max(device.units, 1), heads = double(shape.batch * shape.heads);
    const double parts = std::ceil(double(shape.queries) / queriesOfBlock);
    return cost.isByHead ? std::max(1.0, std::ceil(heads / units) * parts / std::ceil(heads * parts / units)) : 1;
}

constexpr double cudnnOnHopper = 0.5; ///< of FlashAttention-2's time

/// FlashAttention-2's, whose shares do not depend on which of our versions runs, and what the generation before it
/// takes longer, at the clocks that power leaves to it.
double attentionSeconds(const Device& device, const OperatorCost& cost)
{
    AttentionProblem problem = *cost.attention;
    problem.shape.headDim = paddedHead(problem.shape.headDim, cost.isFirstGeneration);
    const auto& versions = attentionVersions(AttentionKind::Flash, true);
    const auto flash = attentionCost(device, versions.back(), problem);
    if (!flash)
        return 0;
    const double unitClocks = std::max(device.units, 1) * device.tensorClock.valueOr(device.clock.valueOr(0));
    const bool isCudnns = cost.isCudnns && device.architecture == "Hopper";
    const double earlier =
        cost.isFirstGeneration && unitClocks > 0 ? earlierClocks(device, problem, cost.isByHead) / unitClocks : 0;
    const double seconds =
        (flash->seconds * (isCudnns ? cudnnOnHopper : 1) + earlier) * blocksLonger(device, cost, problem.shape);
    return seconds / sustainedClocks(device, problem.dtype == DType::BFloat16 ? Format::Bf16 : Format::Fp16);
}

/// What a product takes longer where rows start anywhere, so that no load is one of 16 bytes: "tripling" a head of
/// 128,003 tokens (Netflix, Scaling LLM Post-Training, 2026); GPT-2's 50,257, padded, made a compiled step a quarter
/// shorter (karpathy/nanoGPT, model.py), which is a head of 3.4 times less.
constexpr double unalignedFactor = 3;

/// s of adding up what so many parts of a sum have left in fp32: written and read once more, by a kernel of its own.
double partsSeconds(const Device& device, const ProductPart& part, double parts)
{
    const double bytes = 2 * 4 * parts * part.shape.m * part.shape.n * part.count;
    const MemoryLevel* const cache = device.lastCache();
    const MemoryLevel* const dram = device.dram();
    const bool isNear = cache && bytes < cache->capacity.valueOr(0) && cache->bandwidth.valueOr(0) > 0;
    const double bandwidth = isNear ? cache->bandwidth.value
        : dram                      ? levelBandwidth(device, *dram, Operation::Copy).valueOr(0)
                                    : 0;
    return (bandwidth > 0 ? bytes / bandwidth : 0) + device.launch.valueOr(0);
}

/// With its sum cut into as many parts as make it quickest, each of them tiles of its own (split-k).
TiledTime splitTime(const Device& device, const TileUnits& units, const ProductPart& part, double count)
{
    constexpr double mostParts = 16, fewWaves = 4;
    const auto& [m, n, k] = part.shape;
    const TiledTime whole = tiledTime(units, m, n, k, count);
    TiledTime best = whole;
    for (double parts = 2; parts <= std::min(mostParts, k / leastSplit) && whole.waves < fewWaves; ++parts) {
        TiledTime time = tiledTime(units, m, n, k / parts, count * parts);
        time.seconds += partsSeconds(device, part, parts) * count / part.count;
        if (time.seconds < best.seconds)
            best = time;
    }
    return best;
}

/// Of an operator's products, one after the other.
struct ProductSeconds
{
    double multiplying = 0;
    double filling = 0; ///< of waves that multiply nothing meanwhile: memory holds them
    double once = 0;    ///< of it, what a single wave takes
};

bool runsOnLanes(const Device& device, const OperatorCost& cost)
{
    return cost.dtype == DType::Float32 && !(cost.mayUseTf32 && device.flopRate("tf32") > 0);
}

/// Threads that a multiprocessor keeps (CUDA Programming Guide, technical specifications per compute capability).
double threadsOfUnit(const Device& device)
{
    const double capability = parseNumber(device.computeCapability).value_or(0);
    return capability == 7.5 ? 1024 : capability > 8 && capability < 9 ? 1536 : capability >= 12 ? 1536 : 2048;
}

/// s of blocks that wait for memory again and again, as many of them at once as fit.
double waitingSeconds(const Device& device, const OperatorCost& cost)
{
    const MemoryLevel* const dram = device.dram();
    if (cost.roundTrips <= 0 || dram == nullptr)
        return 0;
    const double atOnce = std::max(device.units, 1) * std::floor(threadsOfUnit(device) / channelThreads);
    return std::ceil(cost.blocks / atOnce) * cost.roundTrips * dram->latency.valueOr(0);
}

/// A batched product in 16 bits whose rows start at odd elements: attention's scores of an odd number of tokens. Up to
/// compute capability 8.0 what cuBLAS runs then takes twice what lanes would: 1,024 heads of 64 for 197 tokens take
/// PyTorch 1.73 ms on an A100, 768 for 256 tokens 0.47 (facebookresearch/xformers, pull request 434), of which scaling
/// and softmax are 0.17. GeForce boards of 8.6 and 8.9 run timm's networks of odd rows as fast as the factor above
/// tells.
constexpr double oddBatchFactor = 2;

bool isOddBatch(const Device& device, const ProductPart& part, DType dtype)
{
    const auto isOdd = [](double size) { return std::fmod(size, 2) != 0; };
    const auto& [m, n, k] = part.shape;
    return !part.isAligned && elementBytes(dtype) == 2 && part.count > 1 && m > 1 && (isOdd(m) || isOdd(n) || isOdd(k))
        && parseNumber(device.computeCapability).value_or(9) <= 8 && device.flopRate("fp32") > 0;
}

TileUnits laneUnits(const Device& device, DType dtype)
{
    const double rate = device.flopRate("fp32") * sustainedShare(device, Format::Fp32);
    return tileUnits(device, Multipliers::Lanes, rate, double(elementBytes(dtype)));
}

ProductSeconds productSeconds(const Device& device, double rate, double spare, const OperatorCost& cost)
{
    const bool isLanes = runsOnLanes(device, cost);
    TileUnits units = tileUnits(device, isLanes ? Multipliers::Lanes : Multipliers::TensorCores, rate,
                                double(elementBytes(cost.dtype)));
    units.spare = spare;
    ProductSeconds all;
    double counted = 0;
    for (const ProductPart& part : cost.products) {
        if (part.count <= 0)
            continue;
        const bool isSlow = !isLanes && isOddBatch(device, part, cost.dtype);
        const TileUnits used = isSlow ? laneUnits(device, cost.dtype) : units;
        const TiledTime time = splitTime(device, used, part, part.count * cost.atOnce);
        const double factor = isSlow ? oddBatchFactor
            : isLanes                ? 1 / part.saved
            : !part.isAligned        ? unalignedFactor
                                     : 1;
        all.multiplying += factor * (time.seconds - time.filling) / cost.atOnce;
        all.filling += time.filling / cost.atOnce;
        all.once += waveFillSeconds / cost.atOnce;
        counted += 2 * part.shape.m * part.shape.n * part.shape.k * part.count;
    }
    all.multiplying += std::max(0.0, cost.flops - counted) / rate;
    return all;
}

} // namespace

DeviceKernels::DeviceKernels(const Device& device, double efficiency, double slowest)
    : m_device(device)
    , m_efficiency(efficiency)
    , m_perInstruction(issueSeconds(device, 1))
    , m_tensorFloat32(device.flopRate("tf32") > 0 ? sustainedShare(device, Format::Tf32) / slowest : efficiency)
    , m_spareFp16(spareClocks(device, Format::Fp16))
    , m_spareBf16(spareClocks(device, Format::Bf16))
    , m_spareFp8(spareClocks(device, Format::Fp8E4M3))
    , m_spareTf32(spareClocks(device, Format::Tf32))
{
    const MemoryLevel* cache = device.level("L2");
    m_cache = cache && cache->bandwidth.valueOr(0) > 0 ? cache->capacity.valueOr(0) : 0;
    m_cacheBandwidth = m_cache > 0 ? cache->bandwidth.value : 1;
}

TimeParts DeviceKernels::parts(const DeviceRates& rates, const OperatorCost& cost) const
{
    const TimeParts usual = partsOf(rates, cost);
    if (!cost.mayUseTf32 || cost.dtype != DType::Float32 || runsOnLanes(m_device, cost))
        return usual;
    OperatorCost onLanes = cost; // whichever is faster: boards' lanes multiply as fast as their TF32
    onLanes.mayUseTf32 = false;
    onLanes.turned = 0;
    for (ProductPart& part : onLanes.products)
        part.saved = 1; // where TF32 is allowed cuDNN takes none of Winograd's kernels
    const TimeParts other = partsOf(rates, onLanes);
    return other.total() < usual.total() ? other : usual;
}

TimeParts DeviceKernels::partsOf(const DeviceRates& rates, const OperatorCost& cost) const
{
    const double perByte = std::max((1 - cost.near) / rates.bandwidth, cost.near / m_cacheBandwidth);
    const double passes = (cost.bytes - cost.summed * double(elementBytes(cost.dtype))) * perByte;
    const double waited = std::max(waitingSeconds(m_device, cost), cost.instructions * m_perInstruction);
    const double memory = cost.isProduct ? passes : std::hypot(passes, waited);
    const double launch = cost.kernels * rates.launch;
    ProductSeconds product;
    const bool isFloat = cost.dtype == DType::Float32;
    if (cost.isProduct && cost.instructions > 0)
        product.multiplying = cost.instructions * m_perInstruction + (cost.isRowByRow ? passes : 0);
    else if (cost.isProduct)
        product =
            productSeconds(m_device, rates.rate(cost) * (isFloat && cost.mayUseTf32 ? m_tensorFloat32 : m_efficiency),
                           spare(cost), cost);
    else
        product.multiplying = cost.flops / rates.rate(cost);
    if (cost.attention)
        if (const double seconds = attentionSeconds(m_device, cost); seconds > 0)
            product.multiplying = seconds;
    TimeParts parts;
    const bool isShort = launch + product.once > std::max(product.multiplying, memory);
    (isShort                            ? parts.calls
         : memory > product.multiplying ? parts.memory
                                        : parts.arithmetic) =
        std::max(product.multiplying + product.filling, memory) + launch;
    if (cost.turned > 0 && !(cost.isProduct && runsOnLanes(m_device, cost)))
        parts.turned = cost.turned * perByte + (cost.isProduct ? launch : rates.launch);
    parts.memory += parts.turned + sumSeconds(cost, perByte);
    return parts;
}

double DeviceKernels::spare(const OperatorCost& product) const
{
    switch (product.dtype) {
    case DType::Float16: return m_spareFp16;
    case DType::BFloat16: return m_spareBf16;
    case DType::Float8E4M3:
    case DType::Float8E5M2: return m_spareFp8;
    default: return runsOnLanes(m_device, product) ? 1 : m_spareTf32;
    }
}

double DeviceKernels::sumSeconds(const OperatorCost& cost, double perByte) const
{
    return std::hypot(cost.summed * double(elementBytes(cost.dtype)) * perByte,
                      rowSumInstructions * cost.summed * m_perInstruction);
}

double laneClocks(const Device& device)
{
    constexpr double ofFullClocks = 0.73; // of the dense rate, which an H100 SXM's lanes reach in a short run
    return device.flopRate("fp32") > 0 ? std::min(1.0, sustainedShare(device, Format::Fp32) / ofFullClocks) : 1;
}

double issueSeconds(const Device& device, double instructions)
{
    const double rate = device.units * 4 * 32 * device.clock.valueOr(0) * laneClocks(device);
    return rate > 0 ? instructions / rate : 0;
}

double decodeDispatchOfGpu(const Device& device)
{
    return device.eagerKernel.valueOr(26e-6);
}

namespace {

constexpr double loopedUpdate = 27e-6, kernelsOfAdam = 8;

} // namespace

Dispatch eagerDispatch(UpdateStyle style)
{
    Dispatch dispatch{.forward = 11.5e-6, .backward = 8.5e-6};
    switch (style) {
    case UpdateStyle::Fused: dispatch.update = 3.2e-6; break;
    case UpdateStyle::Foreach: dispatch.update = 16e-6; break;
    default: dispatch.update = loopedUpdate;
    }
    return dispatch;
}

double eagerHostSeconds(double calls, double kernels, double dispatch)
{
    return (callsOfDispatch * calls + (1 - callsOfDispatch) * kernels) * dispatch;
}

Dispatch dispatchOfGpu(const Device& device, const Plan& plan)
{
    Dispatch dispatch = eagerDispatch(plan.update);
    const double whole = decodeDispatchOfGpu(device), launch = device.launch.valueOr(0);
    const double token = std::max(0.0, whole - launch);
    const bool isInference = plan.phase == StepPhase::Inference;
    if (isInference)
        dispatch.forward = token;
    dispatch.call = eagerHostSeconds(isInference ? 1 : autogradOfCall, 0, whole);
    dispatch.kernel = std::max(0.0, eagerHostSeconds(0, 1, whole) - launch);
    dispatch.waitsBeforeUpdate = plan.precision == Precision::Fp16Autocast || plan.precision == Precision::Fp16Mixed;
    if (plan.phase != StepPhase::Training)
        return dispatch;
    if (plan.update == UpdateStyle::Loop || plan.update == UpdateStyle::WrittenOut) {
        dispatch.update = 0;
        dispatch.updateKernel = loopedUpdate / kernelsOfAdam * token / decodeDispatch;
    }
    return dispatch;
}

} // namespace memscape
