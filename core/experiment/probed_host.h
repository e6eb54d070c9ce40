// SPDX-License-Identifier: Apache-2.0
// A processor as a run of PyTorch found it. Neighbours of a virtual machine, its own load and its clock make it slower
// and faster from minute to minute, and a calibration knows the state of its own minute. So a run takes a few works in
// turn with the steps that it times (memscape_probe/host_state.py), which the calibration has taken as well: their
// means over the calibrated ones (a step is a sum of thousands of operators, interruptions included) scale the
// calibrated costs, and the model is asked again. The prediction stays what it was; no step is among the works.
//
//     core       products and passes in the caches
//     memory     what comes from memory
//     page       pages that are touched for the first time
//     call       dispatch
//
// Left out: devices whose calibration has no such works, sweeps, changes that last shorter than the timed steps.
#pragma once

#include "core/experiment/experiment.h"
#include "core/timing/pytorch_operations.h"

#include <optional>
#include <string>

namespace memscape {

struct ProbedHost
{
    HostState times;       ///< over the calibrated ones
    double stepTime = nan; ///< s, with these
};

/// Adds "probed_host" to the detail of `measured`: {"core", "memory", "page", "call", "step_time"}. `samples`: s of
/// each work by name. Nothing where a work was not taken, there or by the calibration, or the model answers nothing.
void addProbedHost(Measurement& measured, const Experiment& experiment, const Device& device,
                   const Parameters& parameters, const Json& samples);
/// Reads it again; none where there is none, or where it is not what addProbedHost() writes.
std::optional<ProbedHost> probedHost(const Measurement& measured);
/// The state, the time with it, and how far that is from what was measured: sentences. Empty where nothing was probed.
std::string probedHostText(const Measurement& measured);

} // namespace memscape
