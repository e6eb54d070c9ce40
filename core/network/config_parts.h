// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration, part by part, onto a description that already has the structure and
// the defaults of its architecture (architectures.h).
#pragma once

#include "core/network/config_fields.h"
#include "core/network/model.h"

namespace memscape {

/// Everything of model.family.
void readConfig(ConfigFields& fields, ModelDescription& model);

void readExperts(ConfigFields& fields, ModelDescription& model);
void readLatentAttention(ConfigFields& fields, ModelDescription& model);
void readSlidingWindow(ConfigFields& fields, ModelDescription& model);
void readCnn(ConfigFields& fields, ModelDescription& model);

} // namespace memscape
