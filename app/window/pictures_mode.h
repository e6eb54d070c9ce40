// SPDX-License-Identifier: GPL-3.0-or-later
// --render and --screenshot: one picture, no display, then out. Both always use the offscreen
// platform, so what they draw does not depend on the desktop that happens to be there.
#pragma once

#include "app/window/launch_options.h"

namespace memscape {

/// The plot of a record (or of the first record of a study, with the others of its experiment
/// beside it). Errors: file.*, json.*, document.*, export.*.
Result<void> renderRecord(const LaunchOptions& options);

/// The window with the page of an experiment, for parameters and a device.
/// Errors: experiment.unknown, parameter.*, sweep.*, device.*, predict.*, export.write.
Result<void> screenshotPage(const LaunchOptions& options);

} // namespace memscape
