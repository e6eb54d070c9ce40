// SPDX-License-Identifier: Apache-2.0
// The step of one rank as tasks in lanes: it computes unit by unit, forward, backward, update; beside that run
//     data     stage 0 all-reduces buckets of gradients, 1 and 2 reduce-scatter them (DeepSpeed's all-reduce them), as
//              soon as backward has made them; 1 and 2 gather the updated weights behind the update; 3 gathers each
//              unit's weights before it runs, some units ahead, and reduce-scatters its gradients behind it. FSDP
//              gathers what lies outside of layers first, keeps it whole and reduces it behind the last unit; its
//              stage 2 gathers in forward alone
//     tensor   the collectives between a unit's products: the next unit waits for them
//     host     offloaded gradients down, weights up
// Collectives of one lane follow each other, in the order in which PyTorch's FSDP and DDP issue them. Gradients of a
// unit come evenly over its backward. Where the ranks' own cores move the bytes (a CPU) nothing runs beside it, and a
// rank also copies its own piece among those that stage 3 gathers.
//
// Left out: data and tensor collectives that share a link, both directions of the host's link at once, the update on
// the host; copies in and out of FSDP 2's buffers, and how far DeepSpeed's stage 3 gathers ahead (both are in the
// memory of Memory budget).
#include "core/experiments/sharding/sharding.h"

#include "core/timing/working_set.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double mostBuckets = 65536;
constexpr std::int64_t ddpBucket = std::int64_t(25) << 20, ddpFirstBucket = std::int64_t(1) << 20; // B

using Wait = LaneTask::Wait;

class StepBuilder
{
public:
    StepBuilder(const Device& device, const ShardedNetwork& network, const ShardingCase& asked)
        : m_device(device)
        , m_network(network)
        , m_asked(asked)
        , m_plan(asked.plan())
        , m_units(network.units)
        , m_lanes(shardLanes)
        , m_tasks(shardLanes)
        , m_weightBytes(precisionRule(m_plan.precision).weight)
        , m_gradientBytes(m_plan.isByFsdp() ? m_plan.reducedBytes() : m_plan.gradientBytes())
    {
        m_rate = asked.link.rate;
    }

    Result<ShardStep> built()
    {
        MEMSCAPE_CHECK(planBuckets());
        if (m_asked.link.isSerial)
            setHostRate();
        const std::size_t units = m_units.size();
        if (m_plan.isByFsdp())
            gatherRoot();
        for (std::size_t turn = 0; turn < 2 * units; ++turn)
            addTurn(turn);
        if (m_rootPieces > 0)
            reduceUnit(0, m_rootPieces, m_computed.back());
        addUpdate();
        ShardStep step;
        MEMSCAPE_SET(step.spans, scheduleLanes(m_lanes));
        step.tasks = std::move(m_tasks);
        step.rate = m_rate;
        sum(step);
        sumGathered(step);
        return step;
    }

private:
    /// Bytes that all ranks touch in the collectives of a step: with stage 3 a unit's weights, gathered, and the pieces
    /// that stay; else every gradient of every rank (with stage 2 a bucket of them, and the pieces that stay), and with
    /// stages 1 and 2 the updated weights.
    double touched() const
    {
        double whole = 0, largest = 0;
        for (const ShardUnit& unit : m_units) {
            whole += double(unit.elements());
            largest = std::max(largest, double(unit.elements()));
        }
        const auto ranks = double(m_asked.ranks()), weight = double(m_weightBytes), gradient = double(m_gradientBytes);
        if (isSharded())
            return largest * ranks * weight + whole * (weight + gradient);
        const double gradients =
            m_plan.zeroStage == 2 ? std::min(whole, double(m_bucket)) * ranks + whole : whole * ranks;
        return gradients * gradient + (m_plan.zeroStage > 0 ? whole * ranks * weight : 0);
    }

    /// A step of the ring, and copies of a rank's own piece, by what the caches hold of that.
    void setHostRate()
    {
        const double touched = this->touched();
        m_rate = hostRingRate(m_device, m_asked.link, touched);
        const int cores = int(std::clamp<std::int64_t>(ranks(), 1, std::max(1, m_device.units)));
        m_copyRate = bandwidthOf(m_device, touched, Operation::Copy, cores).bytesPerSecond / 2 / double(ranks());
    }

    bool isSharded() const { return m_plan.shardsWeights(); }
    bool isRoot(std::size_t unit) const { return m_plan.isByFsdp() && !m_units[unit].isLayer; }
    /// From forward to backward.
    bool staysWhole() const { return m_plan.isByFsdp() && m_plan.zeroStage == 2; }
    std::int64_t ranks() const { return m_plan.dataParallel; }
    /// Turns are units forward, then backward.
    bool isForward(std::size_t turn) const { return turn < m_units.size(); }
    std::size_t unitOf(std::size_t turn) const { return isForward(turn) ? turn : 2 * m_units.size() - 1 - turn; }

    Wait add(ShardLane lane, double seconds, std::vector<Wait> waits, ShardTask task)
    {
        const auto at = std::size_t(lane);
        if (m_asked.link.isSerial) { // after everything that came before
            for (std::size_t other = 0; other < shardLanes; ++other) {
                if (!m_lanes[other].empty())
                    waits.push_back({other, m_lanes[other].size() - 1});
            }
        }
        m_lanes[at].push_back({seconds, std::move(waits)});
        m_tasks[at].push_back(std::move(task));
        return {at, m_lanes[at].size() - 1};
    }

    Wait addCollective(ShardLane lane, ShardCollective collective, std::vector<Wait> waits)
    {
        if (lane == ShardLane::Data)
            collective.stride = m_plan.tensorParallel;
        ShardTask task{collective.phase, collective.unit, collective};
        return add(lane, secondsOf(collective), std::move(waits), std::move(task));
    }

    double secondsOf(const ShardCollective& one)
    {
        if (one.kind == CollectiveKind::HostCopy)
            return m_asked.hostLatency + one.payload() / m_asked.hostBandwidth;
        if (m_asked.link.nccl) {
            const ShardNccl nccl = ncclOf(one, m_asked.link);
            return ncclSeconds(nccl.asked, nccl.peer, m_asked.link.machines, *m_asked.link.nccl);
        }
        // Where its own core does it, a rank's own piece is copied among the gathered ones.
        const double ownPiece =
            one.what == "weights" && m_copyRate > 0 ? one.payload() / double(one.ranks) / m_copyRate : 0;
        return one.count * (ownPiece + ringSeconds(one.kind, one.payload(), one.ranks, m_rate));
    }

    /// The gradients in the order of backward, cut into buckets.
    Result<void> planBuckets()
    {
        if (isSharded() || ranks() == 1)
            return {};
        double all = 0;
        for (const ShardUnit& unit : m_units)
            all += double(unit.elements());
        const bool isUsual = m_asked.bucket == 0;
        m_bucket = !isUsual ? std::max<std::int64_t>(1, m_asked.bucket / m_gradientBytes)
            : m_plan.zeroStage > 0
            ? std::max<std::int64_t>(
                1, reduceBufferBytes(m_network.network->parameters, m_plan) / precisionRule(m_plan.precision).gradient)
            : ddpBucket / m_gradientBytes;
        m_nextBucket = isUsual && m_plan.zeroStage == 0 ? ddpFirstBucket / m_gradientBytes : m_bucket;
        if (all / double(m_bucket) > mostBuckets)
            return fail("predict.buckets",
                        fmt::format("{} of gradients in buckets of {} are more than {}",
                                    bytesText(all * double(m_gradientBytes)), bytesText(double(m_asked.bucket)),
                                    countText(mostBuckets)),
                        fmt::format("choose bucket={} or more, or 0 for the usual size",
                                    std::int64_t(std::ceil(all / mostBuckets)) * m_gradientBytes),
                        "bucket");
        return {};
    }

    void addTurn(std::size_t turn)
    {
        const std::size_t last = std::min(turn + std::size_t(m_asked.prefetch), 2 * m_units.size() - 1);
        while (isSharded() && m_gathers.size() <= last)
            m_gathers.push_back(addGather(m_gathers.size()));
        const ShardUnit& unit = m_units[unitOf(turn)];
        const ShardPhase phase = isForward(turn) ? ShardPhase::Forward : ShardPhase::Backward;
        std::vector<Wait> waits = std::exchange(m_next, {});
        if (isSharded() && m_gathers[turn])
            waits.push_back(*m_gathers[turn]);
        const Wait computed = add(ShardLane::Compute, isForward(turn) ? unit.forward : unit.backward, std::move(waits),
                                  {phase, unitOf(turn), {}});
        m_computed.push_back(computed);
        for (Collective tensor : unit.tensor) {
            if (!isForward(turn) && tensor.kind != CollectiveKind::AllReduce) // each undoes the other
                tensor.kind = tensor.kind == CollectiveKind::AllGather ? CollectiveKind::ReduceScatter
                                                                       : CollectiveKind::AllGather;
            const std::int64_t bytes = isHalf(m_plan.precision) ? 2 : 4;
            m_next = {addCollective(ShardLane::Tensor,
                                    {phase, tensor.kind, tensor.what, unitOf(turn),
                                     piece(std::int64_t(tensor.payload) / bytes, tensor.degree), bytes, tensor.degree,
                                     tensor.count},
                                    {computed})};
        }
        if (!isForward(turn))
            reduce(unitOf(turn), computed);
    }

    /// The weights of a turn's unit, gathered while the turns before it run; nothing where it has none.
    std::optional<Wait> addGather(std::size_t turn)
    {
        const std::size_t unit = unitOf(turn), ahead = std::size_t(m_asked.prefetch) + 1;
        if (isRoot(unit))
            return m_root;
        if (staysWhole() && !isForward(turn))
            return m_gathers[unit];
        std::vector<Wait> waits;
        if (turn >= ahead)
            waits.push_back(m_computed[turn - ahead]); // its weights are free
        return gather(isForward(turn) ? ShardPhase::Forward : ShardPhase::Backward, unit,
                      m_units[unit].pieceElements(ranks()), std::move(waits));
    }

    std::optional<Wait> gather(ShardPhase phase, std::size_t unit, std::int64_t pieces, std::vector<Wait> waits)
    {
        std::optional<Wait> there;
        if (pieces == 0)
            return there;
        if (m_plan.offload == Offload::Parameters) {
            there = addCollective(
                ShardLane::Host,
                {phase, CollectiveKind::HostCopy, "weights from the host", unit, pieces, m_weightBytes}, waits);
            waits.push_back(*there);
        }
        if (ranks() > 1)
            there = addCollective(ShardLane::Data,
                                  {phase, CollectiveKind::AllGather, "weights", unit, pieces, m_weightBytes, ranks()},
                                  waits);
        return there;
    }

    void gatherRoot()
    {
        std::int64_t pieces = 0;
        for (std::size_t unit = 0; unit < m_units.size(); ++unit)
            pieces += isRoot(unit) ? m_units[unit].pieceElements(ranks()) : 0;
        m_root = gather(ShardPhase::Forward, 0, pieces, {});
        m_rootBytes = double(pieces * m_weightBytes) * double(ranks());
    }

    /// What backward has made of a unit's gradients leaves.
    void reduce(std::size_t unit, const Wait& computed)
    {
        const std::int64_t elements = m_units[unit].elements();
        if (elements == 0)
            return;
        if (isSharded() || ranks() == 1) {
            const std::int64_t pieces = m_units[unit].pieceElements(isSharded() ? ranks() : 1);
            if (isRoot(unit))
                m_rootPieces += pieces;
            else
                reduceUnit(unit, pieces, computed);
            return;
        }
        for (std::int64_t done = 0; done < elements;) {
            const std::int64_t part = std::min(elements - done, m_nextBucket - m_filled);
            m_filled += part;
            done += part;
            if (m_filled == m_nextBucket)
                closeBucket({computed.lane, computed.task, double(done) / double(elements)});
        }
        if (unit == 0 && m_filled > 0)
            closeBucket(computed);
    }

    void reduceUnit(std::size_t unit, std::int64_t pieces, const Wait& computed)
    {
        Wait made = computed;
        if (ranks() > 1)
            made = addCollective(ShardLane::Data,
                                 {ShardPhase::Backward, CollectiveKind::ReduceScatter, "gradients", unit, pieces,
                                  m_gradientBytes, ranks()},
                                 {computed});
        stream(unit, pieces, made);
    }

    void closeBucket(const Wait& made)
    {
        const bool isStageZero = m_plan.zeroStage == 0;
        const bool sumsEverywhere = isStageZero || (m_plan.isByDeepSpeed() && m_plan.zeroStage < 3);
        const std::int64_t pieces = piece(std::exchange(m_filled, 0), ranks());
        const Wait reduced = addCollective(ShardLane::Data,
                                           {ShardPhase::Backward,
                                            sumsEverywhere ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter,
                                            "gradients", m_buckets, pieces, m_gradientBytes, ranks()},
                                           {made});
        stream(m_buckets, isStageZero ? pieces * ranks() : pieces, reduced);
        ++m_buckets;
        m_nextBucket = m_bucket;
    }

    /// To the host, where it sums them.
    void stream(std::size_t unit, std::int64_t elements, const Wait& made)
    {
        if (m_plan.streamsGradients())
            addCollective(ShardLane::Host,
                          {ShardPhase::Backward, CollectiveKind::HostCopy, "gradients to the host", unit, elements,
                           m_gradientBytes},
                          {made});
        else if (m_plan.offload != Offload::None)
            m_late += elements;
    }

    /// What the optimizer needs, the update, and what others need of it.
    void addUpdate()
    {
        using enum ShardPhase;
        std::vector<Wait> before = lastOfAll();
        if (m_late > 0)
            before = {addCollective(
                ShardLane::Host,
                {Update, CollectiveKind::HostCopy, "gradients to the host", 0, m_late, m_gradientBytes}, before)};
        double seconds = 0;
        if (m_plan.offload == Offload::None && m_plan.hasOptimizer())
            seconds = updateTime();
        Wait updated = add(ShardLane::Compute, seconds, before, {Update, 0, {}});
        std::int64_t own = 0, all = 0;
        for (const ShardUnit& unit : m_units) {
            own += unit.pieceElements(m_plan.zeroStage == 3 ? ranks() : 1);
            all += unit.elements();
        }
        if (m_plan.zeroStage == 1 || m_plan.zeroStage == 2)
            own = piece(all, ranks());
        if (m_plan.offload == Offload::Optimizer || m_plan.offload == Offload::Gradients)
            updated = addCollective(
                ShardLane::Host,
                {Update, CollectiveKind::HostCopy, "updated weights from the host", 0, own, m_weightBytes}, {updated});
        if (ranks() == 1 || m_plan.zeroStage == 0 || isSharded())
            return;
        for (std::int64_t done = 0, index = 0; done < all; done += m_bucket, ++index)
            addCollective(ShardLane::Data,
                          {Update, CollectiveKind::AllGather, "updated weights", std::size_t(index),
                           piece(std::min(m_bucket, all - done), ranks()), m_weightBytes, ranks()},
                          {updated});
    }

    std::vector<Wait> lastOfAll() const
    {
        std::vector<Wait> last;
        for (std::size_t lane = 0; lane < shardLanes; ++lane) {
            if (!m_lanes[lane].empty())
                last.push_back({lane, m_lanes[lane].size() - 1});
        }
        return last;
    }

    double updateTime() const
    {
        StepTimeOptions options;
        const HostOperations host = m_device.isGpu() ? HostOperations() : hostOperations(m_device);
        if (!m_device.isGpu())
            options.host = &host;
        const auto seconds = updateSeconds(m_network.network->parameters, m_plan, m_device, options);
        const double turns = m_device.isGpu() ? 1 : double(std::max<std::int64_t>(m_asked.ranks(), m_device.units));
        return seconds.value_or(0) * turns;
    }

    static void sum(ShardStep& step)
    {
        for (std::size_t lane = 0; lane < shardLanes; ++lane) {
            for (std::size_t i = 0; i < step.spans[lane].size(); ++i) {
                const TaskSpan& span = step.spans[lane][i];
                const auto& collective = step.tasks[lane][i].collective;
                step.end = std::max(step.end, span.end);
                (collective ? step.communication : step.compute) += span.end - span.begin;
                if (collective)
                    (collective->kind == CollectiveKind::HostCopy ? step.copied : step.sent) += collective->sentBytes();
            }
        }
    }

    void sumGathered(ShardStep& step) const
    {
        std::vector<std::pair<double, double>> changes;
        if (m_root) {
            changes.emplace_back(step.spans[m_root->lane][m_root->task].begin, m_rootBytes);
            changes.emplace_back(step.spans[m_computed.back().lane][m_computed.back().task].end, -m_rootBytes);
        }
        for (std::size_t turn = 0; turn < m_gathers.size(); ++turn) {
            if (!m_gathers[turn] || isRoot(unitOf(turn)) || (staysWhole() && !isForward(turn)))
                continue;
            const Wait& there = *m_gathers[turn];
            const double bytes = double(m_units[unitOf(turn)].pieceElements(ranks()) * m_weightBytes) * double(ranks());
            changes.emplace_back(step.spans[there.lane][there.task].begin, bytes);
            const Wait& last = m_computed[staysWhole() ? 2 * m_units.size() - 1 - turn : turn];
            changes.emplace_back(step.spans[last.lane][last.task].end, -bytes);
        }
        std::ranges::sort(changes); // of one moment what is freed comes first
        double held = 0;
        for (const auto& [at, bytes] : changes) {
            held += bytes;
            step.gathered = std::max(step.gathered, std::int64_t(held));
            if (!step.gatheredOver.empty() && step.gatheredOver.back().first == at)
                step.gatheredOver.back().second = held;
            else
                step.gatheredOver.emplace_back(at, held);
        }
    }

    const Device& m_device;
    const ShardedNetwork& m_network;
    const ShardingCase& m_asked;
    const Plan& m_plan;
    const std::vector<ShardUnit>& m_units;
    std::vector<std::vector<LaneTask>> m_lanes;
    std::vector<std::vector<ShardTask>> m_tasks;
    RankLink m_rate;
    double m_copyRate = 0; ///< B/s that a rank copies within its memory, of a host
    std::int64_t m_weightBytes, m_gradientBytes;
    std::int64_t m_bucket = 1, m_nextBucket = 1, m_filled = 0; ///< elements
    std::size_t m_buckets = 0;
    std::int64_t m_late = 0;                    ///< elements of gradients that the host gets behind backward
    std::vector<std::optional<Wait>> m_gathers; ///< by turn
    std::vector<Wait> m_computed;               ///< by turn
    std::optional<Wait> m_root;                 ///< FSDP's, gathered
    double m_rootBytes = 0;
    std::int64_t m_rootPieces = 0; ///< elements of its gradients
    std::vector<Wait> m_next;      ///< what the next turn waits for
};

} // namespace

Result<ShardStep> shardStep(const Device& device, const ShardedNetwork& network, const ShardingCase& asked)
{
    return StepBuilder(device, network, asked).built();
}

} // namespace memscape
