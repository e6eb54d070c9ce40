// SPDX-License-Identifier: Apache-2.0
// What a GPU can be asked: one function per experiment, the calibration and the self-test.
#pragma once

#include "kernels/cuda/pacing.h"
#include "kernels/cuda/session.h"
#include "kernels/cuda/sweep_run.h"

namespace memscape::cuda {

Result<MeasuredRun> measureStride(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureHierarchy(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureLayout(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureAttention(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureBankConflicts(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureBatchSize(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureCheckpoint(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measurePrecision(Session& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureRoofline(Session& session, const SweepPlan& plan, RunSink& sink);

using Measure = Result<MeasuredRun> (*)(Session&, const SweepPlan&, RunSink&);
/// Null when no GPU is asked.
Measure measureOf(const std::string& experiment);

Result<Device> calibrateGpu(Session& session, const BackendDevice& device, RunSink& sink);
std::vector<SelftestLine> selftestGpu(Session& session, RunSink& sink);

// Probes that the experiments and the calibration share.

struct Latency
{
    double seconds = 0;
    double cycles = 0;
};
/// Samples of a pointer chase over `workingSet` bytes: `chains` new random chains, each followed
/// `perChain` times. Shared memory when `kind` says so. Stops early when cancelled.
Result<std::vector<Latency>> chaseSamples(Session& session, ChaseKind kind, std::uint64_t workingSet, int chains,
                                          int perChain, std::uint64_t seed, RunSink& sink);

/// The block size and version that stream DRAM fastest here, tried once.
struct StreamChoice
{
    int version = streamVersions;
    int threads = 1024;
    double bytesPerSecond = 0;        ///< of the median; a copy counts both directions
    std::vector<double> seconds = {}; ///< samples
};
Result<StreamChoice> bestStream(Session& session, Operation operation, std::uint64_t arrayBytes);

/// Laps over a working set, ready to be launched.
struct Laps
{
    LapsShape shape;
    LapsLaunch launch;
    Buffer data; ///< filled
};
/// Of as many laps as move about `launchBytes`; `l1Bytes` decides whether every multiprocessor has a
/// slice of its own. Errors: run.memory, and those of CUDA.
Result<Laps> prepareLaps(Session& session, Operation operation, std::uint64_t workingSet, std::uint64_t l1Bytes,
                         double launchBytes);

} // namespace memscape::cuda
