// SPDX-License-Identifier: Apache-2.0
// The calibration that predictions of a live device use (calibrationPath): kept, refused or forgotten.
// A new calibration of grade D (the machine was busy) replaces the old one only when the user asks for it;
// one with impossible values, such as a far level quicker than a near one, is never kept.
#pragma once

#include "core/device/device.h"

#include <filesystem>

namespace memscape {

enum class Keep { WhenGood, Anyway };

/// Keeps `calibrated` for the live device `id` and says where. Errors: run.impossible, run.grade (with
/// what stays in use; not with Keep::Anyway), document.limit (it could not be read again), those of writing the file.
Result<std::filesystem::path> keepCalibration(const std::string& id, const Device& calibrated, Keep keep);

/// Predictions of `id` go back to the description. False when there was no calibration.
Result<bool> forgetCalibration(const std::string& id);

} // namespace memscape
