// SPDX-License-Identifier: Apache-2.0
// Parameters that the schemas of training-memory and inference-memory share.
#pragma once

#include "core/experiment/schema.h"

namespace memscape {

/// A whole number from 1 on, on a logarithmic slider.
ParameterSpec countSpec(std::string key, std::string label, std::string help, double most, std::string standard,
                        std::string suffix = {});
ParameterSpec modelSpec();
ParameterSpec batchSpec();
ParameterSpec attentionSpec();
/// The driver's context and the allocator's setting.
std::vector<ParameterSpec> deviceSpecs();
void appendSpecs(Schema& schema, std::vector<ParameterSpec> more);

} // namespace memscape
