// SPDX-License-Identifier: Apache-2.0
// A measurement in a process of its own, which may be lost: the system ends a program when the memory
// runs out, and then it is this one and not the program that was asked.
#pragma once

#include "kernels/measure/backend.h"

namespace memscape::cli {

/// Like Backend::measure(), by `memscape-cli worker`, forcing sizes that are predicted not to fit.
/// `device` is an id that a worker knows. Errors: run.memory when the system ended the worker,
/// run.failed when it ended in another way, run.cancelled, and the run's own.
Result<MeasuredRun> measureInWorker(const Experiment& experiment, const std::string& device,
                                    const Parameters& parameters, RunSink& sink);

} // namespace memscape::cli
