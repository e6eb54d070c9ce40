// SPDX-License-Identifier: Apache-2.0
// Measuring backends. A backend is a machine that runs measurements; the worker owns them. "Cannot run here" is
// an answer with a reason (error code "run.skipped"), not a crash.
#pragma once

#include "core/experiment/experiment.h"
#include "kernels/measure/provenance.h"

#include <memory>
#include <string>
#include <vector>

namespace memscape {

/// How a measurement talks while it runs. Called from the measuring thread.
class RunSink
{
public:
    virtual ~RunSink() = default;
    virtual void progress(int done, int total, const std::string& label) = 0;
    /// A point so far; may be sent again when later passes refine it.
    virtual void point(const std::string& sweepKey, const Point& point) = 0;
    virtual void note(const std::string& level, const std::string& code, const std::string& text) = 0;
    virtual bool cancelled() const = 0;
    /// Also what is predicted not to fit is to be run. A forced run is measured in a process that may be
    /// lost: the system may end it when the memory runs out.
    virtual bool isForced() const { return false; }
};

/// Nothing more can be measured by this process on this device: points that are left are not tried.
inline bool endsRun(const Error& error)
{
    return error.code == "run.sticky" || error.code == "run.hung" || error.code == "device.missing";
}

struct BackendDevice
{
    std::string id;
    std::string name;
    std::string missing; ///< why it cannot be used; empty when it can
    Device device;
};

/// A finished (or cancelled: `complete` is false) measurement with where it came from.
struct MeasuredRun
{
    Measurement measurement;
    Provenance provenance;
    bool complete = true;
};

struct SelftestLine
{
    std::string kernel; ///< "stride read float32 v2"
    bool passed = false;
    bool skipped = false;
    std::string detail; ///< worst error and where, or why it was skipped
};

class Backend
{
public:
    virtual ~Backend() = default;
    virtual std::string id() const = 0; ///< "host", "cuda", "replay"
    virtual std::vector<BackendDevice> devices() = 0;
    /// Errors: run.skipped (reason and remedy), run.failed, run.memory, device.missing, check.failed;
    /// run.sticky and run.hung, after which this process cannot measure there any more.
    virtual Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device,
                                        const Parameters& parameters, RunSink& sink) = 0;
    /// About a minute; the calibrated device.
    virtual Result<Device> calibrate(const BackendDevice& device, RunSink& sink) = 0;
    virtual std::vector<SelftestLine> selftest(const BackendDevice& device, RunSink& sink) = 0;
    /// Its device is lost to this process: only a new one can measure there.
    virtual bool isSpent() const { return false; }
};

std::unique_ptr<Backend> makeHostBackend();
/// Loads libmemscape-cuda.so with dlopen; when it cannot, a backend whose devices() says in one line
/// why the GPU is missing and what to do.
std::unique_ptr<Backend> makeCudaBackend();
/// Plays a recorded run (a record or a study file) as if it were measured now, marked as replayed.
Result<std::unique_ptr<Backend>> makeReplayBackend(const std::string& path);

} // namespace memscape
