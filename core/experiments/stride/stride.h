// SPDX-License-Identifier: Apache-2.0
// The parameters of `stride` as an access pattern, for the backends and the picture.
#pragma once

#include "core/access/stride_case.h"
#include "core/experiment/experiment.h"

namespace memscape {

/// Errors: access.bytes when not one element fits behind the offset.
Result<StrideCase> strideCase(const Parameters& parameters);

/// Figures that counting alone gives, for a prediction and a measurement alike:
/// sectors_per_request, lines_per_request, efficiency.
Result<Figures> stridedCountFigures(const Device& device, const StrideCase& walk);

} // namespace memscape
