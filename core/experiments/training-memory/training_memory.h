// SPDX-License-Identifier: Apache-2.0
// What `training-memory` answers beyond its prediction: one step as a trace, for a page that asks who is
// alive under the cursor, and for the advice that tries out changes.
#pragma once

#include "core/device/device.h"
#include "core/experiment/experiment.h"
#include "core/timing/nccl.h"
#include "core/timing/step_band.h"
#include "core/training/simulation.h"

namespace memscape {

/// What one rank of a pipeline holds.
struct PipelineRank
{
    std::int64_t layers = 0, parameters = 0;
    std::int64_t inFlight = 0;                ///< passes of a chunk whose backward has not run (pipeline_schedule.h)
    std::int64_t allocated = 0, reserved = 0; ///< B at its peak
    double work = 0;                          ///< s of its passes in one step
};

/// After one of the micro-batches that differ in length (varying_lengths.cpp).
struct BatchOfLength
{
    std::int64_t length = 0;    ///< tokens of its longest text
    std::int64_t allocated = 0; ///< B at its peak
    std::int64_t reserved = 0;  ///< B, most of this and the batches before
};
/// Batches of drawn lengths, one after the other in one allocator.
using LengthsDraw = std::vector<BatchOfLength>;
/// Independent draws, an odd number of them; one where all lengths are the same, none without `shortestSequence`.
/// Errors: those of stepTotals().
Result<std::vector<LengthsDraw>> drawsOfLengths(RecordedNetworks& networks, const TrainingSetup& setup);

/// What of a step lies outside of the device: in the host's memory and on an NVMe (host_memory.cpp).
struct HostShare
{
    std::int64_t memory = 0;  ///< B in the host's memory, `buffers` among them
    std::int64_t buffers = 0; ///< B of pinned memory through which the NVMe is read and written
    std::int64_t nvme = 0;    ///< B on it
    double swapping = 0;      ///< s that the update reads and writes it
};

/// One simulated step and what the device makes of it.
struct TrainingAnswer
{
    ModelDescription model;
    std::shared_ptr<RecordedNetworks> networks; ///< of the model, for further answers
    TrainingSetup setup;
    Simulation simulation;
    std::int64_t firstPeak = 0;      ///< B allocated at the peak of the first step (step.h); simulation is a later one
    std::vector<PipelineRank> ranks; ///< of a pipeline; else empty
    HostShare host = {};
    std::vector<LengthsDraw> lengths; ///< of batches that differ; empty where they do not
    StepTime time;
    StepBand timeBand;
    std::optional<Error> timeMissing;               ///< why there is no time: the device lacks a rate or a link
    std::vector<Collective> collectives;            ///< between devices and with the host, of one step
    std::vector<std::optional<NcclChoice>> choices; ///< NCCL's, of each of them; empty where it joins none
    std::optional<std::int64_t> capacity;           ///< B of the device's memory
    std::string implied;                            ///< libraryNote() of its parameters
    bool fits = true; ///< also when the allocator must empty its cache for it, or nothing is known

    /// The rank that simulation, figures and collectives are of: the one that needs most.
    int rank() const { return setup.step.pipelineRank; }
    std::int64_t deviceBytes() const { return simulation.deviceBytes(setup); }
};

HostShare hostShare(const std::vector<ParameterTensor>& parameters, const TrainingSetup& setup);

/// The time of one step under a setup that holds so many bytes, recomputation of its checkpointed segments included.
/// Errors: those of stepTime().
Result<StepTime> setupTime(const Device& device, const TrainingSetup& setup, const Graph& graph,
                           const std::vector<ParameterTensor>& parameters, double held);

/// Parameters are those of `training-memory`. Errors: those of readModel and simulate.
Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters);
/// The same for a model that was read before: for advice, which asks hundreds of times. Micro-batches that are alike
/// are one repetition of its trace.
Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters,
                                      const std::shared_ptr<RecordedNetworks>& networks);
/// The same without its trace and its peak by categories: what is allocated, reserved and kept, time, whether it fits.
Result<TrainingAnswer> totalsOfTraining(const Device& device, const Parameters& parameters,
                                        const std::shared_ptr<RecordedNetworks>& networks);
/// The allocation at which this device would raise an out-of-memory error.
std::optional<OutOfMemory> outOfMemoryOf(const TrainingAnswer& answer);
/// Its figures, each with its why. Errors: those of inventory().
Result<Figures> trainingFigures(const TrainingAnswer& answer);
/// What that answer would say of `fits`, and nothing else; false where there is no answer.
bool trainingFits(const Device& device, const Parameters& parameters, RecordedNetworks& networks);

} // namespace memscape
