// SPDX-License-Identifier: Apache-2.0
// Finding and opening libmemscape-cuda.so. makeCudaBackend() itself (kernels/measure/backend.h)
// opens nothing: a program that never uses GPU devices never loads the driver.
#pragma once

#include "core/base/result.h"
#include "kernels/measure/backend.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace memscape {

/// Where the module is looked for: $MEMSCAPE_CUDA_MODULE alone when it is set, else beside the
/// program, then ../lib/memscape.
std::vector<std::filesystem::path> cudaModulePaths();

/// The backend inside the first module that exists. Errors, all device.missing: no module found,
/// not loadable, no such symbol, built for another program. The module stays loaded for good:
/// unloading a CUDA runtime is not supported.
Result<std::unique_ptr<Backend>> loadCudaModule(const std::vector<std::filesystem::path>& paths);

} // namespace memscape
