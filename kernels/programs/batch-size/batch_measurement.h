// SPDX-License-Identifier: Apache-2.0
// `batch-size` from its parameters to a measured run, whatever machine trains: steps of a real chain of linear
// layers over the batch (time, allocations), the same chain trained to the target loss at each batch, the noise of
// its gradients, accumulation against the whole batch. The sweep belongs to the machine: it visits the points and
// keeps their samples.
#pragma once

#include "core/experiments/batch-size/batch_size.h"
#include "core/trace/allocator_replay.h"
#include "kernels/measure/backend.h"
#include "kernels/measure/statistics.h"
#include "kernels/measure/stopping.h"
#include "kernels/programs/batch-size/batch_course.h"

#include <map>
#include <string>
#include <utility>

namespace memscape {

/// What a measurement trains.
struct BatchTask
{
    std::vector<std::int64_t> sizes;
    BatchCase asked;
    AllocatorOptions allocator;
    std::int64_t context = 0;   ///< B outside of the allocator, as it is set
    std::int64_t workspace = 0; ///< B, see BatchShape
    double target = 0;          ///< loss

    BatchShape shape(std::int64_t batch, std::int64_t accumulation) const
    {
        return {sizes, batch, accumulation, workspace};
    }
};

/// Errors: run.skipped for models and plans that are not trained here, naming the parameter.
Result<BatchTask> batchTask(const Device& device, const Parameters& parameters);

/// What the run needs of the machine around the devices.
struct BatchRunner
{
    BatchDeviceFactory makeDevice;
    const Device& device; ///< the description
    const Clock& clock;
    RunSink& sink;
};

class BatchMeasurement
{
public:
    BatchMeasurement(BatchRunner runner, const Parameters& parameters);

    /// The training step against its reference on small chains. `products`: the implementation of products, for the
    /// error.
    Result<void> check(const std::string& products);
    const std::string& checked() const { return m_checked; } ///< what check() compared

    /// Samples of the step at a point; in the first pass, afterwards, training to the target. Errors: run.memory,
    /// run.cancelled, run.skipped, those of the device.
    Result<StoppingRule> visit(const Parameters& point, int pass, int passes);
    int repeats() const { return m_repeats; } ///< runs in each of the last visit's samples
    /// In the keys of the prediction.
    Figures figures(const Parameters& point, const Summary& seconds) const;

    /// Adds to a run what is known when all points are: the noise scale, the hyperbola, accumulation at the
    /// parameters' own point. A run that is stopped meanwhile is not complete.
    Result<MeasuredRun> finished(MeasuredRun run, const Parameters& parameters) const;

private:
    Result<StoppingRule> sample(BatchTrainer& trainer, int passes);
    Result<void> train(const BatchTask& task);
    Result<Json> compareAccumulation(const BatchTask& task) const;
    void addNoise(MeasuredRun& run) const;

    BatchRunner m_runner;
    std::int64_t m_own; ///< the batch whose noise is measured
    int m_repeats = 1;
    std::string m_checked;
    struct Memory
    {
        std::int64_t allocated = 0; ///< B, the peak
        std::int64_t device = 0;    ///< B: what the allocator reserves for it, and the context
    };
    std::map<std::pair<std::int64_t, std::int64_t>, Memory> m_memory; ///< by batch and accumulation
    std::map<double, BatchCourseResult> m_courses;                    ///< by examples of an update
};

/// What is said of the examples in every record.
inline constexpr const char* batchDataText =
    "made from its number: inputs of variance 1/(j + 1), targets of a fixed map and noise of variance 0.1";

} // namespace memscape
