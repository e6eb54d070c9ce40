// SPDX-License-Identifier: Apache-2.0
// What a GPU can be asked: the experiments, the calibration and the self-test.
#pragma once

#include "kernels/cuda/common/pacing.h"
#include "kernels/cuda/session.h"
#include "kernels/cuda/sweep_run.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace memscape::cuda {

using Measure = Result<MeasuredRun> (*)(GpuSession&, const SweepPlan&, RunSink&);
using Checks = std::vector<std::function<KernelCheck()>>;

/// An experiment as a GPU sees it.
struct GpuExperiment
{
    Measure measure = nullptr;
    Checks (*checks)(int multiprocessors) = nullptr; ///< of its kernels, for the self-test; null: selftest.cpp has them
};
const std::map<std::string, GpuExperiment>& gpuExperiments();
/// Null when no GPU is asked.
Measure measureOf(const std::string& experiment);

Result<MeasuredRun> measureStride(GpuSession& session, const SweepPlan& plan, RunSink& sink); ///< of `stride`
/// Puts α and β of the links into `device`; what was timed: kind, bytes, seconds. Errors: run.cancelled, those of CUDA.
Result<Json> calibrateLinks(GpuSession& session, Device& device, RunSink& sink);
Result<Device> calibrateGpu(GpuSession& session, const BackendDevice& device, RunSink& sink);
std::vector<SelftestLine> selftestGpu(GpuSession& session, RunSink& sink);
std::unique_ptr<Backend> makeCudaBackend(std::shared_ptr<const Clock> clock); ///< `clock` is the host's

// Probes that the experiments and the calibration share.

struct Latency
{
    double seconds = 0;
    double cycles = 0;
};
/// Samples of a pointer chase over `workingSet` bytes: `chains` new random chains, each followed
/// `perChain` times. Shared memory when `kind` says so. Stops early when cancelled.
Result<std::vector<Latency>> chaseSamples(GpuSession& session, ChaseKind kind, std::uint64_t workingSet, int chains,
                                          int perChain, std::uint64_t seed, RunSink& sink);

/// The block size and version that stream DRAM fastest here, tried once.
struct StreamChoice
{
    int version = streamVersions;
    int threads = 1024;
    double bytesPerSecond = 0;        ///< of the median; a copy counts both directions
    std::vector<double> seconds = {}; ///< samples
};
Result<StreamChoice> bestStream(GpuSession& session, Operation operation, std::uint64_t arrayBytes);

/// Laps over a working set, ready to be launched.
struct Laps
{
    LapsShape shape;
    LapsLaunch launch;
    Buffer data; ///< filled
};
/// Of as many laps as move about `launchBytes`; `l1Bytes` decides whether every multiprocessor has a
/// slice of its own. Errors: run.memory, and those of CUDA.
Result<Laps> prepareLaps(GpuSession& session, Operation operation, std::uint64_t workingSet, std::uint64_t l1Bytes,
                         double launchBytes);

} // namespace memscape::cuda
