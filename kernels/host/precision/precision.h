// SPDX-License-Identifier: Apache-2.0
// `precision` on the host: products in the formats that this processor can be asked for, and real
// training steps of a small network (amp_device.h).
#pragma once

#include "kernels/host/precision/gemm.h"

#include <map>
#include <optional>
#include <string>

namespace memscape::host {

/// The kernel that is fastest here for a format, each tried for some milliseconds.
struct GemmChoice
{
    GemmKernel kernel;
    Json tried; ///< FLOP/s of one thread by name
};
/// Errors: run.skipped with the formats that there are when no library multiplies in this one,
/// check.failed.
Result<GemmChoice> fastestGemm(HostSession& session, Format format);

/// FLOP/s that all cores reach together in a product of 1536³, by format: for the calibration.
Result<std::map<std::string, double>> productRates(HostSession& session);

/// The value after the processor's own conversion to FP16 or BF16 and back; nothing for others.
std::optional<Figure> storedFigure(Format format, double value);

/// The experiment at its parameters, or over their sweep.
Result<MeasuredRun> measurePrecision(HostSession& session, const Experiment& experiment, const Parameters& parameters);

} // namespace memscape::host
