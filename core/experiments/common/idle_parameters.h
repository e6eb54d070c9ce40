// SPDX-License-Identifier: Apache-2.0
// Which parameters mean nothing at the present choice, for a form to leave out: attention of a network
// without any, the rank of adapters that are not there, how an optimizer is written that runs on the host.
// The rule is about figures and curves: a test changes every parameter that is named here, at many
// models and plans, and none of them moves one; and changes those that are not named.
#pragma once

#include "core/experiment/experiment.h"

namespace memscape {

/// Of `training-memory`. Without a readable model: what follows from the other parameters.
std::vector<std::string> idleTrainingParameters(const Device& device, const Parameters& parameters);
/// Of `batch-size`: the same, and of the schedule what it does not use.
std::vector<std::string> idleBatchParameters(const Device& device, const Parameters& parameters);
/// Of `inference-memory`.
std::vector<std::string> idleInferenceParameters(const Device& device, const Parameters& parameters);
/// Of `checkpoint`.
std::vector<std::string> idleCheckpointParameters(const Parameters& parameters);
/// `assume`, wherever a model is asked for by that name: idle unless its architecture is unknown. Else nothing.
std::vector<std::string> idleAssumption(const std::string& model);
/// Of `precision`.
std::vector<std::string> idlePrecisionParameters(const Parameters& parameters);

} // namespace memscape
