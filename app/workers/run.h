// SPDX-License-Identifier: GPL-3.0-or-later
// What a window asks of a worker and what it gets back, whatever happens to the worker.
#pragma once

#include "core/experiment/record.h"

#include <QString>

#include <cstdint>

namespace memscape {

/// One measurement to make. `device` is the whole device as the page shows it (records keep it);
/// `workerDevice` is the id that the worker knows it by ("cuda:0", never "lab-gpu/cuda:0").
/// `experiment` is an experiment's id, "calibrate" or "selftest".
struct RunRequest
{
    std::string experiment;
    Device device;
    std::string workerDevice;
    Parameters parameters;
    bool isForced = false; ///< also when it is predicted not to fit
};

/// Interrupted: the worker crashed, was killed, hung or broke the protocol; points are kept.
enum class RunStatus { Done, Cancelled, Skipped, Failed, Interrupted };

struct FinishedRun
{
    qint64 id = 0;
    RunRequest request;
    RunStatus status = RunStatus::Done;
    double elapsed = 0; ///< s
    /// Of an experiment: whole when Done, else what the worker said or the points amount to.
    std::optional<Measurement> measurement;
    Json result;     ///< of "calibrate" (a device document) and "selftest", as it came
    Json provenance; ///< object; of a partial one with "status" and the number of "points"
    std::optional<Error> error;
    QString details; ///< last lines of the worker's stderr, for Copy details
};

/// The record to put into the study: predicted (when it can be) and measured on the same device.
/// Errors: the error of the run, or run.nothing, when no point was measured.
Result<Record> recordFromRun(const FinishedRun& run);

} // namespace memscape
