// SPDX-License-Identifier: Apache-2.0
// The chosen setting as lines of PyTorch or as a configuration of DeepSpeed: optimizer, precision,
// checkpointing, what is sharded and offloaded, micro-batches, attention. What the model and the data are
// stays open: build_model() and the batches are the reader's. What PyTorch has no words for is said in a
// comment, what DeepSpeed's JSON has none for in the snippet's notes; parameters that mean nothing at the
// choice (idle_parameters.h) are not written.
//
// Names are those of PyTorch 2.9 (torch.optim, torch.amp, torch.nn.attention, torch.utils.checkpoint,
// torch.distributed) and of https://www.deepspeed.ai/docs/config-json/.
#pragma once

#include "core/experiment/experiment.h"

namespace memscape {

/// Of `training-memory` parameters: PyTorch lines, and for a training step on a GPU configurations of DeepSpeed and
/// Accelerate and torchrun's line.
std::vector<Snippet> trainingSnippets(const Device& device, const Parameters& parameters);
/// The configuration alone; `parameters` are those of `training-memory`.
Snippet deepspeedConfig(const Parameters& parameters);
Snippet accelerateConfig(const Parameters& parameters);
Snippet torchrunLine(const Parameters& parameters);
/// Of `checkpoint` parameters: the chain and its segments.
std::vector<Snippet> checkpointSnippets(const Parameters& parameters);
/// Of `precision` parameters: the product or the step in that format.
std::vector<Snippet> precisionSnippets(const Device& device, const Parameters& parameters);

} // namespace memscape
