// SPDX-License-Identifier: Apache-2.0
// A model from files on disk: a config.json, a folder with one, safetensors weights with the
// config.json beside them, a network file (network_file.h).
#pragma once

#include "core/network/model.h"
#include "core/network/model_config.h"

#include <filesystem>

namespace memscape {

struct StoredModel;

/// What the weights say into a model that a configuration describes; an assumption where they differ.
void compareWithStored(ModelDescription& model, const StoredModel& stored, const std::filesystem::path& path);

/// Errors: see readModel().
Result<ModelDescription> modelFromFile(const std::filesystem::path& path, UnknownArchitecture unknown);

/// Whether the file begins as a network file does. False also when it cannot be read.
bool saysNetworkFile(const std::filesystem::path& path);

} // namespace memscape
