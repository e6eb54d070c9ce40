// SPDX-License-Identifier: Apache-2.0
// `batch-size` as its callers see it: memory, time and gradient noise over the batch, and what they make of it
// together.
//
//   memory        each batch is the training step simulated (training_memory.h), the largest that fits the one
//                 that the memory budget finds
//   throughput    examples / time of the step (core/timing): on GPUs products at the rate that large ones reach,
//                 on processors by what calls, rearranging and arithmetic cost there (host_operations.h); which
//                 of launches or calls, memory and arithmetic holds most of the time
//   to a target   S = S_min + E_min / B steps (core/training/noise_scale.h): from a closed form for one linear
//                 layer, from a published law for decoders, from given values for the rest
//   sweet spot    the batch that reaches the target soonest on this device: fewest seconds, not fewest steps
//
// "batch" is what goes through at once on one device; an update sees batch × accumulation × replicas examples.
#pragma once

#include "core/experiments/training-memory/training_memory.h"
#include "core/training/batch_schedule.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace memscape {

Schema batchSizeSchema();

/// What the parameters ask beside the training step.
struct BatchCase
{
    std::int64_t batch = 1, accumulation = 1, replicas = 1, sequence = 1;
    double targetLoss = 0;  ///< 0: chosen for the model
    double noiseScale = 0;  ///< examples; 0: from the model
    double fewestSteps = 0; ///< S_min; 0: from the model
    BatchSchedule schedule; ///< its `most` 0: as many as fit

    double perBatch() const { return double(accumulation) * double(replicas); }
    double update(double ofBatch) const { return ofBatch * perBatch(); } ///< examples of one update
};
BatchCase batchCase(const Parameters& parameters);
/// The same as parameters of `training-memory`.
Parameters trainingParameters(const Parameters& parameters);

enum class BatchBound { Launch, Memory, Arithmetic };
/// "launch-bound" ("call-bound" on a host, which launches nothing), "memory-bound", "compute-bound".
std::string_view boundText(BatchBound bound, bool isHost);

/// One batch (and accumulation) on the device.
struct BatchPoint
{
    std::int64_t batch = 1, accumulation = 1;
    std::int64_t allocated = 0, device = 0; ///< B: peak allocated, device total
    bool fits = true;
    StepTime time;                         ///< total is NaN when the device lacks a rate
    double examples = 0;                   ///< of one update, all replicas
    BatchBound bound = BatchBound::Memory; ///< what holds most of forward and backward
    bool isHost = false;                   ///< a processor: threads meet at calls

    double throughput() const { return examples / time.total; } ///< examples/s
    double secondsPerExample() const { return time.total / examples; }
};

/// Where the noise comes from, and what it says about steps to the target.
struct BatchNoise
{
    enum class Source { Given, Regression, Law, Unknown };
    Source source = Source::Unknown;
    double target = 0;                                            ///< the loss
    double noiseScale = std::numeric_limits<double>::quiet_NaN(); ///< examples, when the target is reached
    BatchHyperbola hyperbola;                                     ///< in examples
    std::string reason;                                           ///< why something is missing, or its basis
    std::string remedy;
    bool isReached = true;                   ///< the target, ever
    std::vector<std::int64_t> mlpSizes = {}; ///< of Regression
    std::optional<LanguageLaw> law = {};     ///< of Law

    bool knowsSteps() const { return isReached && hyperbola.fewestSteps > 0; }
    std::unique_ptr<TrainingCourse> course(const BatchCase& asked) const; ///< null when unknown
};
std::string_view noiseSourceText(BatchNoise::Source source);

/// What stays valid while only batch, accumulation and schedule change.
struct BatchMemory
{
    std::string key; ///< of device and parameters
    ModelDescription model;
    std::shared_ptr<RecordedNetworks> networks;
    std::map<std::pair<std::int64_t, std::int64_t>, BatchPoint> points; ///< by batch and accumulation
    std::optional<TrainingAnswer> smallest;                             ///< batch 1
    std::optional<std::optional<std::int64_t>> largest;
};

struct ParetoPoint
{
    std::int64_t batch = 1, accumulation = 1;
    double memory = 0, throughput = 0, examples = 0; ///< to the target; NaN when not known
};

struct BatchStudy
{
    BatchCase asked;
    std::shared_ptr<BatchMemory> memory;
    TrainingAnswer own;                  ///< the parameters' own batch
    BatchPoint point;                    ///< the same
    std::vector<BatchPoint> curve;       ///< powers of two, the own batch and the largest, ascending
    std::vector<BatchPoint> splits;      ///< the same update in other micro-batches, largest first
    std::optional<std::int64_t> largest; ///< none: not even 1 fits, or the memory is not known
    std::optional<std::int64_t> capacity;
    std::int64_t over = 0; ///< B that batch 1 has too many
    BatchNoise noise;
    std::optional<std::int64_t> sweetSpot;
    std::string sweetReason;
    std::vector<ParetoPoint> front;
    std::optional<ScheduleRun> schedule, constant; ///< the second at the schedule's first batch
    double scheduleLimit = 0;                      ///< steps after which they stop
    double mostScheduled = 0;                      ///< examples: the clip

    const BatchPoint* at(std::int64_t batch) const;
};

/// `batches` (of a sweep) are points of the curve too. Errors: those of answerTraining(), batch.target.
Result<BatchStudy> studyBatch(const Device& device, const Parameters& parameters,
                              const std::vector<std::int64_t>& batches, PredictionContext& context);

/// Memory and time at one batch, from `memory` where it was asked before. Errors: those of answerTraining().
Result<BatchPoint> batchPoint(const Device& device, const Parameters& parameters, std::int64_t batch,
                              std::int64_t accumulation, BatchMemory& memory);
BatchNoise batchNoise(const ModelDescription& model, const BatchCase& asked);
/// Points that no other beats in memory, throughput and examples at once.
std::vector<ParetoPoint> paretoFront(std::vector<ParetoPoint> points);

Figures batchFigures(const Device& device, const BatchStudy& study, const BatchPoint& point);
Json batchDetail(const BatchStudy& study);
std::vector<Claim> batchClaims(const BatchStudy& study, const Measurement& measured);
Series paretoSeries(const BatchStudy& study);

} // namespace memscape
