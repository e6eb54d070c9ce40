// SPDX-License-Identifier: Apache-2.0
// The steps of lab.json with their questions, checks and hints, and what they and predictions ask of an experiment.
#pragma once

#include "core/lab/lab.h"

namespace memscape {

/// Errors: experiment.unknown, lab.key, lab.value.
Result<LabRequest> readLabRequest(const JsonReader& reader);

/// With the text of its file. A student's pack has no points on its checks. Errors: also lab.path, lab.points, file.*.
Result<LabStep> readLabStep(const JsonReader& reader, const std::filesystem::path& folder, bool isPack);

} // namespace memscape
