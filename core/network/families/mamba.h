// SPDX-License-Identifier: Apache-2.0
// Mamba (Gu and Dao 2023) as Hugging Face transformers runs it: in each layer a convolution along the sequence, then a
// state that is updated token by token. Without mamba_ssm's kernels the update is a loop of Python over the tokens
// which keeps every state; with them (BuildOptions::isAllFused) one kernel that keeps a state each 2048 tokens.
//
// Left out: the associative scan and mambapy; the fused kernel's backward runs as an elementwise operator.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// A language model on `options.batch` sequences.
Result<Graph> mamba(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape
