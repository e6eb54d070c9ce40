// SPDX-License-Identifier: Apache-2.0
// Which chain the parameters of `checkpoint` name, and where its numbers are from:
//
//   FILE         a memscape-chain document, also one that a live run measured
//   uniform:L    L equal stages in abstract units;
//                uniform:64,saved=4,forward=1,backward=2,value=1
//   mlp:48x4096  Linear + GELU, float, `batch` rows: the chain that is also run for real
//   NAME         a network cut into embedding, layers and head, bytes from the step simulator; model:PATH of a file
#pragma once

#include "core/checkpoint/chain.h"
#include "core/device/device.h"
#include "core/experiment/parameter.h"

#include <optional>

namespace memscape {

/// What `batch` is where the parameter is 0: rows of an MLP, sequences (pictures) of a model.
inline constexpr std::int64_t standardRows = 512, standardSequences = 8;

struct ChainSource
{
    Chain chain;
    std::string sizes; ///< where the sizes are from
    std::string times; ///< where the times are from
    std::vector<std::string> omits;
    std::string attention = {}; ///< which kernel a model's attention runs in, and why; empty without one
    bool isUniform = false;     ///< uniform:L: a budget may count states
};

/// Errors: parameter.*, chain.*, model.*, json.*, file.* with `chain` or the place in the file.
Result<ChainSource> chainSource(const Device& device, const Parameters& parameters);

/// "gpt2" of "gpt2" and of "model:gpt2" (a file needs that before its path); nothing for what is a chain itself.
std::optional<std::string> modelOfChain(std::string_view text);

/// "uniform:64,saved=4". Errors: chain.syntax, chain.range.
Result<Chain> parseUniformChain(std::string_view text);

/// A network cut into blocks. Errors: those of readModel and buildNetwork, chain.length when it has
/// no layers.
Result<ChainSource> modelSource(const Device& device, std::string_view name, const Parameters& parameters);

} // namespace memscape
