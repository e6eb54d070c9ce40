// SPDX-License-Identifier: Apache-2.0
// Bytes are counted pass by pass, every array that a pass reads or writes once (e bytes an element,
// s = batch · heads · queries · keys scores):
//     standard forward    Q, K → S;  S → P;  P, V → O                                e (4 s + rows)
//     standard backward   P, dO → dV;  dO, V → dP;  P, dP → dS;  dS, K → dQ;  dS, Q → dK   e (7 s +
//     rows) flash forward       Q, K, V → O, L; K and V again where a head's do not stay in the
//     last cache flash backward      O, dO → D;  Q, K, V, dO, L, D → dQ, dK, dV; a dQ in floats
//     written and read, and where it is added to atomically cleared, read and written again
// (Dao et al. 2022, arXiv:2205.14135, Theorem 2: Θ(N d + N²) against Θ(N² d² / M).)
//
// Time of standard attention adds what products and memory take, t = Σ F / (a P) + B / BW, for the
// passes are short of neither at once; of flash attention it is per score, since everything else is
// hidden: t = s (4 d / (a P) + x / E), E = powers per second, with shares a and x fitted to the
// bars of FlashAttention-2 on H100 and A100 (FlashAttention-3, arXiv:2407.08608, figures 5 and 6,
// and FlashAttention-2, arXiv:2307.08691; the tests state how far off each is). Short sequences
// fill a GPU badly: × (1 + n₀ / keys). A host's shares were measured with this program's own
// kernels.
//
// Left out: what other programs do meanwhile, clocks that sag, launch gaps of a framework; kernels
// of Hopper's own (FlashAttention-3, cuDNN), which are up to twice as fast as what is modelled.
#include "core/timing/attention_time.h"

#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Shares of what a GPU's sheet promises, fitted per architecture.
struct FlashShares
{
    double forwardProducts, forwardPowers, backwardProducts, backwardPowers;
    const char* source;
};
constexpr FlashShares hopperShares{0.436, 0.758, 0.3645, 1.64,
                                   "FlashAttention-2 on H100: 324 and 370 TFLOP/s forward, 291 and 322 "
                                   "backward (arXiv:2407.08608, figures 5 and 6)"};
constexpr FlashShares older{0.876, 1.04, 0.733, 2.25,
                            "FlashAttention-2 on A100: 176 and 203 TFLOP/s forward and backward "
                            "(arXiv:2307.08691, figure 4)"};
constexpr double powersPerUnitClock = 16; ///< ex2 of a multiprocessor
/// Of the dense rate, in batched products with an inner dimension of 64 or 128.
constexpr double batchedProducts = 0.42;
constexpr double standardShort = 250, forwardShort = 100, backwardShort = 240;
/// What a causal mask leaves undone of its half: 1 / (0.93 / (1 + 270 / keys)).
constexpr double causalShare = 0.93, causalShort = 270;

/// Of the host's fp32 rate, and clocks of a core per score: measured with our kernels.
constexpr double hostProducts = 0.87, hostProductsBackward = 0.73, hostTiles = 0.815;
constexpr double hostSoftmaxClocks = 3.0, hostTileClocks = 0.85, hostConversionClocks = 0.12;
/// A row at a time: operations per clock of a core, and clocks per score and its power.
constexpr double hostRowFlops = 1.3, hostRowClocks = 50;
constexpr double hostPanel = 32; ///< queries are padded to whole panels of vectors
/// Wide heads leave less of a tile in L1.
double hostTilesBackward(double headDim)
{
    return std::clamp(0.87 - 0.08 * std::log2(headDim / 64), 0.6, 0.9);
}

/// What a mask and short sequences cost beside the scores that are seen.
double lateness(const AttentionShape& shape, double shortKeys)
{
    const double keys = double(shape.keys);
    const double causal = shape.causal ? (1 + causalShort / keys) / causalShare : 1;
    return causal * (1 + shortKeys / keys);
}

const char* rateName(const Device& device, DType dtype)
{
    if (!device.isGpu() || dtype == DType::Float32)
        return "fp32"; // a host converts and computes in float
    return dtype == DType::Float16 ? "fp16" : "bf16";
}

class Cost
{
public:
    Cost(const Device& device, const AttentionVersion& version, const AttentionProblem& problem)
        : m_device(device)
        , m_version(version)
        , m_problem(problem)
        , m_shape(problem.shape)
        , m_e(double(elementBytes(problem.dtype)))
        , m_scores(double(problem.shape.queryRows()) * double(problem.shape.keys))
        , m_queryRows(double(problem.shape.queryRows()) * double(problem.shape.headDim))
        , m_keyRows(double(problem.shape.keyRows()) * double(problem.shape.headDim))
    { }
    Result<AttentionCost> compute();

private:
    Result<void> open();
    bool has(AttentionPass pass) const { return m_problem.pass == pass || m_problem.pass == AttentionPass::Both; }
    void standardForward();
    void standardBackward();
    void flashForward();
    void flashBackward();
    double missShare() const;
    /// Scores that tiles compute: what is visible and half a tile at the diagonal.
    double tiledScores(const AttentionTile& tile) const;
    /// `share` of the host's rate that the products reach.
    void add(AttentionStep step, double products = 0, double share = hostProducts);
    double standardSeconds(const AttentionStep& step, double products, double share) const;
    /// What the backward's tiles ask of shared memory, and what they add to dQ's floats.
    void sayTraffic(const AttentionTile& tile, double executed, bool isAtomic);
    void sayTime();

    const Device& m_device;
    const AttentionVersion& m_version;
    const AttentionProblem& m_problem;
    const AttentionShape& m_shape;
    double m_e, m_scores, m_queryRows, m_keyRows;
    double m_rate = 0, m_bandwidth = 0, m_clock = 0;
    FlashShares m_shares = older;
    std::vector<Term> m_traffic; ///< on the chip, beside the time
    AttentionCost m_cost;
};

Result<void> Cost::open()
{
    const char* name = rateName(m_device, m_problem.dtype);
    m_rate = m_device.flopRate(name);
    m_clock = m_device.tensorClock.valueOr(m_device.clock.valueOr(0));
    if (m_device.architecture == "Hopper")
        m_shares = hopperShares;
    const MemoryLevel* dram = m_device.dram();
    if (m_device.isGpu()) {
        m_bandwidth = dram ? levelBandwidth(m_device, *dram, Operation::Copy).valueOr(0) : 0;
    } else {
        const double workingSet = 2 * m_e * m_scores;
        m_bandwidth = bandwidthOf(m_device, workingSet, Operation::Copy, std::max(m_device.units, 1)).bytesPerSecond;
    }
    if (m_rate <= 0)
        return fail("predict.device", fmt::format("the {} rate of {} is not known", name, m_device.name),
                    m_problem.dtype == DType::BFloat16
                        ? "choose dtype=float16, or another device: older GPUs have no bfloat16"
                        : "choose a device of the catalogue, or calibrate this one",
                    "dtype");
    if (!(m_bandwidth > 0) || m_clock <= 0)
        return fail("predict.device", fmt::format("the DRAM bandwidth or the clock of {} is not known", m_device.name),
                    "choose a device of the catalogue, or calibrate this one");
    return {};
}

double Cost::standardSeconds(const AttentionStep& step, double products, double share) const
{
    const double memory = step.bytes / m_bandwidth;
    if (m_device.isGpu())
        return (step.flops / (batchedProducts * m_rate) + memory) * (1 + standardShort / double(m_shape.keys))
            + m_device.launch.valueOr(0);
    const double cores = std::max(m_device.units, 1);
    const double conversion = m_problem.dtype == DType::Float32 ? 0 : step.bytes / m_e * hostConversionClocks;
    return products / (share * m_rate) + memory
        + (step.exponentials * hostSoftmaxClocks + conversion) / (cores * m_clock);
}

void Cost::add(AttentionStep step, double products, double share)
{
    step.flops = products;
    if (m_problem.kind == AttentionKind::Standard)
        step.seconds = standardSeconds(step, products, share);
    m_cost.bytes += step.bytes;
    m_cost.seconds += step.seconds;
    m_cost.steps.push_back(std::move(step));
}

void Cost::standardForward()
{
    const double product = 2 * m_scores * double(m_shape.headDim);
    add({"S = Q Kᵀ", 0, m_e * (m_queryRows + m_keyRows + m_scores), 0, 0}, product);
    add({"P = softmax(S)", 0, m_e * 2 * m_scores, m_shape.visibleScores(), 0});
    add({"O = P V", 0, m_e * (m_scores + m_keyRows + m_queryRows), 0, 0}, product);
}

void Cost::standardBackward()
{
    const double product = 2 * m_scores * double(m_shape.headDim);
    const double one = m_e * (m_scores + m_keyRows + m_queryRows);
    add({"dV = Pᵀ dO", 0, one, 0, 0}, product, hostProductsBackward);
    add({"dP = dO Vᵀ", 0, one, 0, 0}, product, hostProductsBackward);
    add({"dS from P and dP", 0, m_e * 3 * m_scores, m_shape.visibleScores() / 2, 0});
    add({"dQ = dS K", 0, one, 0, 0}, product, hostProductsBackward);
    add({"dK = dSᵀ Q", 0, one, 0, 0}, product, hostProductsBackward);
}

/// The share of K and V that a tile of queries finds no more in the last cache.
double Cost::missShare() const
{
    const AttentionTile tile = m_version.tile(m_shape.headDim, AttentionPass::Forward);
    const MemoryLevel* cache = m_device.lastCache();
    if (cache == nullptr || !cache->capacity.known() || tile.queries == 0)
        return 0;
    const double perHead = std::ceil(double(m_shape.queries) / double(tile.queries));
    const double heads =
        std::min(double(m_shape.batch * m_shape.heads), std::ceil(std::max(m_device.units, 1) / perHead));
    const double kvHeads = std::max(1.0, heads * double(m_shape.kvHeads) / double(m_shape.heads));
    const double workingSet = kvHeads * 2 * double(m_shape.keys * m_shape.headDim) * m_e;
    return 1 - hitShare(workingSet, cache->capacity.value, cache->knee);
}

double Cost::tiledScores(const AttentionTile& tile) const
{
    if (!m_shape.causal)
        return m_scores;
    const double diagonal = double(m_shape.queryRows()) * double(tile.keys) / 2;
    return std::min(m_scores, m_shape.visibleScores() + diagonal);
}

void Cost::flashForward()
{
    const AttentionTile tile = m_version.tile(m_shape.headDim, AttentionPass::Forward);
    const double rows = double(m_shape.queryRows()), d = double(m_shape.headDim);
    const double executed = tile.queries > 0 ? tiledScores(tile) : m_shape.visibleScores();
    const double share = executed / m_scores;
    const double tiles =
        tile.queries > 0 ? std::ceil(double(m_shape.queries) / double(tile.queries)) : double(m_shape.queries);
    const double heads = double(m_shape.batch * m_shape.heads);
    const double again = 2 * heads * double(m_shape.keys) * d * m_e * tiles * share;
    const double missed = std::max(0.0, again - 2 * m_keyRows * m_e) * missShare();
    AttentionStep step{"tiles", 4 * executed * d, m_e * (2 * m_queryRows + 2 * m_keyRows) + 4 * rows + missed, executed,
                       0};
    m_cost.tileBytes += again + m_e * m_queryRows;
    if (m_device.isGpu()) {
        const double powers = powersPerUnitClock * std::max(m_device.units, 1) * m_clock;
        step.seconds = m_shape.visibleScores()
                * (4 * d / (m_shares.forwardProducts * m_rate) + m_shares.forwardPowers / powers)
                * lateness(m_shape, forwardShort)
            + m_device.launch.valueOr(0);
    } else {
        const double clocks = std::max(m_device.units, 1) * m_clock;
        const double padded = std::ceil(double(m_shape.queries) / hostPanel) * hostPanel / double(m_shape.queries);
        step.seconds = tile.queries == 0
            ? (step.flops / hostRowFlops + executed * hostRowClocks) / clocks
            : padded * (step.flops / (hostTiles * m_rate) + executed * hostTileClocks / clocks);
    }
    add(step, step.flops);
}

void Cost::flashBackward()
{
    const AttentionTile tile = m_version.tile(m_shape.headDim, AttentionPass::Backward);
    const double rows = double(m_shape.queryRows()), d = double(m_shape.headDim);
    const double executed = tile.queries > 0 ? tiledScores(tile) : m_shape.visibleScores();
    const bool isDirect = m_version.queryGradient == QueryGradient::Direct;
    const bool addsApart = m_problem.dtype != DType::Float32 && !isDirect;
    const bool isAtomic = addsApart && m_version.queryGradient == QueryGradient::Atomic;
    const double products = isDirect ? 7 : 5; // with one writer for each, S and dP are made twice
    // FlashAttention-2 clears and rounds a dQ in floats, too: that time is in its shares.
    const double cleared = isAtomic ? 4 * m_queryRows : 0;
    AttentionStep sums{"D = Σ dO ∘ O", 0, m_e * 2 * m_queryRows + 4 * rows + cleared, 0, 0};
    AttentionStep step{"tiles, backward", 2 * products * executed * d,
                       m_e * ((isAtomic ? 2 : 3) * m_queryRows + 4 * m_keyRows) + 8 * rows
                           + (addsApart ? 8 * m_queryRows : 0),
                       executed, 0};
    AttentionStep rounding{"dQ from floats", 0, (4 + m_e) * m_queryRows, 0, 0};
    if (m_device.isGpu()) {
        const double powers = powersPerUnitClock * std::max(m_device.units, 1) * m_clock;
        sums.seconds = (sums.bytes - cleared) / m_bandwidth + m_device.launch.valueOr(0);
        step.seconds = m_shape.visibleScores()
                * (10 * d / (m_shares.backwardProducts * m_rate) + m_shares.backwardPowers / powers)
                * lateness(m_shape, backwardShort)
            + m_device.launch.valueOr(0);
    } else {
        sums.seconds = sums.bytes / m_bandwidth;
        step.seconds = tile.queries == 0 ? step.flops / (hostRowFlops * std::max(m_device.units, 1) * m_clock)
                                         : step.flops / (hostTilesBackward(d) * m_rate);
    }
    add(sums);
    add(step, step.flops);
    if (isAtomic)
        add(rounding);
    if (m_device.isGpu())
        sayTraffic(tile, executed, isAtomic);
}

void Cost::sayTraffic(const AttentionTile& tile, double executed, bool isAtomic)
{
    if (const double clocks = m_version.backwardClocks(m_shape.headDim); clocks > 0)
        m_traffic.push_back(
            {"S", clocks * executed / (64 * 64) / (std::max(m_device.units, 1) * m_clock), Unit::Second,
             fmt::format("the least that shared memory takes for the backward's tiles: {:.0f} clocks for "
                         "64 × 64 scores",
                         clocks),
             fmt::format("version {} of our flash attention, counted", m_version.number)});
    if (isAtomic)
        m_traffic.push_back({"A", 4 * executed * double(m_shape.headDim) / double(tile.keys), Unit::Byte,
                             "added to dQ in the last cache, by every tile of keys and in no fixed order: its "
                             "last bits change from run to run",
                             "rows × d × 4 B × tiles of keys"});
}

void Cost::sayTime()
{
    const bool isStandard = m_problem.kind == AttentionKind::Standard;
    const bool isGpu = m_device.isGpu();
    const std::string from = m_device.name;
    m_cost.terms = {
        {"P", m_rate, Unit::FlopPerSecond, fmt::format("{} rate", rateName(m_device, m_problem.dtype)), from}};
    if (isStandard) {
        m_cost.terms.push_back({"BW", m_bandwidth, Unit::BytePerSecond, "what a copy of S reaches", from});
        m_cost.terms.push_back({"a", isGpu ? batchedProducts : hostProducts, Unit::One,
                                "share of P that the products reach",
                                isGpu ? "fitted to PyTorch's bars on H100 (arXiv:2407.08608, figure 5)"
                                      : "measured with our product on a Zen 4"});
        m_cost.timeFormula = isGpu ? "time = Σ passes (F / (a P) + B / BW) · (1 + 250 / keys) + launch"
                                   : "time = Σ passes F / (a P) + B / BW + scores · clocks / (cores · clock)";
        m_cost.timeSource = "products and memory one after the other; FlashAttention's own benchmark as anchor";
        return;
    }
    m_cost.terms.push_back({"a", isGpu ? m_shares.forwardProducts : hostTiles, Unit::One,
                            "share of P that the tiles' products reach, forward",
                            isGpu ? m_shares.source : "measured with our tiles on a Zen 4"});
    m_cost.terms.push_back(
        {"x", isGpu ? m_shares.forwardPowers : hostTileClocks, Unit::One,
         isGpu ? "share of the time of the powers that is not hidden, forward" : "clocks of a core per score, forward",
         isGpu ? m_shares.source : "measured with our tiles on a Zen 4"});
    m_cost.timeFormula = isGpu ? "time = scores · (4 d / (a P) + x / (16 · SMs · clock)) · (1 + n₀ / keys) (· mask)"
                               : "time = F / (a P) + scores · x / (cores · clock)";
    m_cost.timeSource = isGpu ? m_shares.source : "our own kernels, measured on a Zen 4";
    m_cost.terms.insert(m_cost.terms.end(), m_traffic.begin(), m_traffic.end());
    if (isGpu)
        m_cost.omits.push_back(m_version.needsRecord
                                   ? "what this version gains: its shares are FlashAttention-2's until it is measured"
                                   : "kernels of Hopper's own (FlashAttention-3, cuDNN): up to twice as fast");
}

Result<AttentionCost> Cost::compute()
{
    MEMSCAPE_CHECK(open());
    const bool isStandard = m_problem.kind == AttentionKind::Standard;
    if (has(AttentionPass::Forward))
        isStandard ? standardForward() : flashForward();
    if (has(AttentionPass::Backward))
        isStandard ? standardBackward() : flashBackward();
    m_cost.bytesFormula = isStandard
        ? "bytes = e · (4 s + 2 (Q + K)) forward, e · (7 s + 4 (Q + K)) backward"
        : "bytes = e · 2 (Q + K) + 4 L forward, e · (5 Q + 4 K) + 12 L (+ 8 Q for a dQ in floats, "
          "16 Q where it is added to atomically) backward, + what the last cache loses of K and V";
    m_cost.omits = {"the load of other programs, and falling clocks"};
    sayTime();
    return std::move(m_cost);
}

} // namespace

Result<AttentionCost> attentionCost(const Device& device, const AttentionVersion& version,
                                    const AttentionProblem& problem)
{
    return Cost(device, version, problem).compute();
}

double flashClocks(const AttentionProblem& problem, double flopsPerClock)
{
    const bool isForward = problem.pass == AttentionPass::Forward;
    const double flops = (isForward ? 4 : 10) * double(problem.shape.headDim);
    const double products = isForward ? older.forwardProducts : older.backwardProducts;
    const double powers = isForward ? older.forwardPowers : older.backwardPowers;
    return problem.shape.visibleScores() * lateness(problem.shape, isForward ? forwardShort : backwardShort)
        * (flops / (products * flopsPerClock) + powers / powersPerUnitClock);
}

double onChipBytes(const Device& device)
{
    if (const MemoryLevel* shared = device.level("shared"))
        return shared->capacity.valueOr(0);
    const MemoryLevel* cache = device.level("L2");
    return cache ? cache->capacity.valueOr(0) : 0;
}

double tileFootprint(const Device& device, const AttentionTile& tile, std::int64_t headDim, DType dtype)
{
    const double d = double(headDim), queries = double(tile.queries), keys = double(tile.keys);
    if (device.isGpu()) // O and S stay in registers
        return double(elementBytes(dtype)) * (queries * d + 2 * keys * d);
    return 4 * (2 * queries * d + 2 * keys * d + 32 * keys + 2 * queries);
}

AttentionTile firstFlashTile(double onChip, std::int64_t headDim, DType dtype)
{
    const double elements = onChip / double(elementBytes(dtype));
    const auto keys = std::int64_t(std::ceil(elements / (4 * double(headDim))));
    return {std::min(keys, headDim), keys};
}

} // namespace memscape
