// SPDX-License-Identifier: Apache-2.0
// `sharding` as its callers see it: what N ranks store of a training step, what they send each other in it, and when.
//
//   stored     what one rank keeps between steps (core/training/optimizer_state.h), the same on every rank
//   gathered   whole weights that it has only while it uses them (stage 3)
//   sent       what one rank sends, ring by ring: every payload is cut into N equal pieces, the last one padded
//              (where NCCL takes a tree or the switch reduces, what a ring would send)
//   time       units (layers) of the step in one lane, collectives in others (core/timing/lane_schedule.h)
#pragma once

#include "core/experiment/experiment.h"
#include "core/network/recorded_networks.h"
#include "core/timing/collectives.h"
#include "core/timing/lane_schedule.h"
#include "core/timing/nccl.h"
#include "core/timing/operator_time.h"
#include "core/training/simulation.h"

#include <memory>
#include <optional>

namespace memscape {

Schema shardingSchema();
/// The same as parameters of `training-memory`; what this experiment has no parameter for takes its default.
Parameters shardingTraining(const Parameters& parameters);

enum class ShardingWay {
    Peer,     ///< GPU to GPU
    Host,     ///< GPU to GPU through the host's memory
    Threads,  ///< threads of one process
    Processes ///< processes that share memory
};

/// What the ranks' bytes travel over.
struct ShardingLink
{
    ShardingWay way = ShardingWay::Threads;
    RankLink rate;                     ///< of one step of a ring
    double far = 0;                    ///< B/s within a host, of data that no cache holds; 0: the same
    double own = 0;                    ///< B/s of what a neighbour's own caches hold; 0: the same
    bool isSerial = false;             ///< the ranks' own cores move the bytes: nothing runs beside it
    std::optional<NcclLink> nccl = {}; ///< GPUs: NCCL chooses; else a ring
    Machines machines = {};            ///< that the GPUs are in
    double pair = 0, four = 0;         ///< B/s between two GPUs and within four
    std::string label, source;         ///< "NVLink 4"; where α and β stand
};

/// What the parameters say on a device.
struct ShardingCase
{
    TrainingSetup setup;
    ShardingLink link;
    double hostBandwidth = 0, hostLatency = 0; ///< of offloaded bytes; 0 where the device does not say
    std::int64_t bucket = 0;                   ///< B of gradients reduced together; 0: as usual for the stage
    int prefetch = 1;                          ///< units that are gathered ahead

    const Plan& plan() const { return setup.step.plan; }
    /// Whether sums come back to where they came from, as in data parallelism without ZeRO.
    bool isInPlace() const { return plan().zeroStage == 0 && !(plan().tensorParallel > 1 && plan().sequenceParallel); }
    std::int64_t ranks() const { return std::int64_t(plan().dataParallel) * plan().tensorParallel; }
};
/// Errors: plan.* as in `training-memory`; predict.device where the device has no such link or its rate is not known.
Result<ShardingCase> shardingCase(const Device& device, const Parameters& parameters);
const std::string& shardingWayKey(ShardingWay way);
/// A step of a host's ring over memory of which its ranks touch so many bytes in turn: what its caches hold is quicker.
RankLink hostRingRate(const Device& device, const ShardingLink& link, double touched);

/// How a step of a ring is probed on a host.
struct RingKind
{
    ShardingWay way = ShardingWay::Threads;
    bool isInPlace = false;  ///< all-reduces; else a reduce-scatter and an all-gather, each over memory of its own
    bool takesTurns = false; ///< `probedTurns` ranks on each core, not one
};
inline constexpr int probedTurns = 2;
/// Its calibrated link: "ring-threads", "all-reduce-processes-turns", …
std::string ringLink(const RingKind& kind);

/// What runs, and is gathered, as one: a layer, or outside of layers an operator with its weights.
struct ShardUnit
{
    std::string name;
    double forward = 0, backward = 0;                 ///< s of one micro-batch on one rank; recomputation in backward
    std::vector<std::int64_t> weights = {};           ///< elements of each parameter, at its first use
    std::vector<Collective> tensor = {};              ///< of one forward pass, between tensor-parallel ranks
    bool isLayer = false;                             ///< else it is part of FSDP's root
    std::int64_t pieceElements(std::int64_t n) const; ///< what one of n ranks keeps
    std::int64_t elements() const;
};

/// What does not depend on the number of data-parallel ranks.
struct ShardedNetwork
{
    std::string key; ///< of device and parameters
    ModelDescription model;
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const PreparedNetwork> network;
    std::vector<ShardUnit> units;
    std::int64_t activations = 0; ///< B of one rank, the most at one moment
    KeptBytes alone;              ///< what one rank would keep of the whole model, without sharding
    std::int64_t aloneActivations = 0;
    double aloneSeconds = 0; ///< of its step
};
/// Errors: those of readModel(), buildNetwork() and deviceRates(). `context` keeps it for the next question.
Result<std::shared_ptr<const ShardedNetwork>> shardedNetwork(const Device& device, const Parameters& parameters,
                                                             const ShardingCase& asked, PredictionContext& context);

enum class ShardPhase { Forward, Backward, Update };
std::string_view shardPhaseText(ShardPhase phase); ///< "forward", …

/// One collective of the step.
struct ShardCollective
{
    ShardPhase phase = ShardPhase::Backward;
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::string_view what;          ///< "gradients", "weights", "updated weights", "activations"
    std::size_t unit = 0;           ///< or bucket
    std::int64_t pieceElements = 0; ///< of one rank; of a host copy all that it copies
    std::int64_t elementBytes = 1;
    std::int64_t ranks = 1;
    double count = 1; ///< times, one after the other
    int stride = 1;   ///< ranks from one of them to the next

    double payload() const { return double(pieceElements) * double(elementBytes) * double(ranks); }
    double sentBytes() const; ///< by one rank
};

enum class ShardLane { Compute, Data, Tensor, Host };
constexpr std::size_t shardLanes = 4;

struct ShardTask
{
    ShardPhase phase = ShardPhase::Forward;
    std::size_t unit = 0;
    std::optional<ShardCollective> collective = {}; ///< none: the rank computes
};

/// A step of one rank.
struct ShardStep
{
    std::vector<std::vector<ShardTask>> tasks; ///< by lane
    std::vector<std::vector<TaskSpan>> spans;  ///< beside them
    double compute = 0, communication = 0;     ///< s, each lane alone, added up
    double end = 0;                            ///< s
    double sent = 0, copied = 0;               ///< B between ranks, and over the host's link
    std::int64_t gathered = 0;                 ///< B, the most at one moment
    /// Bytes that are gathered from each moment on; s and B, ascending.
    std::vector<std::pair<double, double>> gatheredOver = {};
    RankLink rate; ///< of a ring's step; of a host by the share that its caches hold

    double exposed() const { return end - compute; }
    double hidden() const { return communication - exposed(); }
    std::vector<ShardCollective> collectives() const; ///< in the order in which they begin
};
/// What NCCL does of a collective between GPUs, its payload and B/s of the link between them.
struct ShardNccl
{
    Collective asked;
    double peer = 0;
};
ShardNccl ncclOf(const ShardCollective& one, const ShardingLink& link);
/// Errors: predict.buckets where there would be more than are modelled.
Result<ShardStep> shardStep(const Device& device, const ShardedNetwork& network, const ShardingCase& asked);

/// All of an answer.
struct ShardingAnswer
{
    ShardingCase asked;
    std::shared_ptr<const ShardedNetwork> network;
    KeptBytes kept; ///< of one rank
    ShardStep step;
};
/// Errors: those of the functions above.
Result<ShardingAnswer> answerSharding(const Device& device, const Parameters& parameters, PredictionContext& context);

/// What is predicted or measured.
struct ShardingNumbers
{
    struct Time
    {
        double seconds = nan;
        std::optional<double> low = {}, high = {};
    };
    double stored = nan, gathered = nan, sent = nan; ///< B of one rank
    Time communication, exposed, latency;            ///< s
};
/// Figures that a measurement has, too, without reasons.
Figures measuredShardingFigures(const ShardingNumbers& numbers);
/// All of them, with their reasons.
Figures shardingFigures(const ShardingAnswer& answer);
/// {"ranks", "alone": {…}, "rank": {…}, "lanes": […], "spans": […], "gathered": […], "attention", …}
Json shardingDetail(const ShardingAnswer& answer);
std::vector<Claim> shardingClaims(const ShardingAnswer& answer);

} // namespace memscape
