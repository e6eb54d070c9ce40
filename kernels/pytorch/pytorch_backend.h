// SPDX-License-Identifier: Apache-2.0
// PyTorch as a device: the chosen Python runs the training step or the forward pass itself (memscape_probe), in a child
// process that speaks the worker's protocol. The devices are this machine's CPU and GPUs, as that PyTorch uses them:
// pytorch:cpu, pytorch:cuda:0 …
//
// A child is started for each measurement and ends with it, so nothing of a model stays in memory.
#pragma once

#include "kernels/measure/backend.h"

namespace memscape {

/// Looks for PyTorch at once, beside what the caller does: devices() waits for the answer, `seconds` at most.
/// `python` is a path or a name in PATH; empty: chosenPython().
std::unique_ptr<Backend> makePytorchBackend(const std::string& python = {}, double seconds = 4);

/// "pytorch:cpu", "pytorch:cuda:1".
bool isPytorchId(const std::string& id);

} // namespace memscape
