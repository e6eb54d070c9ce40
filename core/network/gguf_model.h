// SPDX-License-Identifier: Apache-2.0
// A GGUF file as a model: its metadata name the architecture and the sizes ("llama.block_count"), which are handed on
// under Hugging Face's names; the tensors say how many bytes the weights have as they lie there.
//
// Source: github.com/ggml-org/ggml, docs/gguf.md; gguf-py/gguf/constants.py of llama.cpp. Left out: sizes that differ
// from layer to layer (of arrays the file keeps more than is read here).
#pragma once

#include "core/network/model_config.h"

#include <filesystem>

namespace memscape {

/// Errors: those of readGguf(); gguf.model for a file that is no language model or is one part of several; those of
/// modelFromConfig(), which name the architecture.
Result<ModelDescription> modelFromGguf(const std::filesystem::path& path, UnknownArchitecture unknown);

} // namespace memscape
