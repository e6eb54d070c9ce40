// SPDX-License-Identifier: Apache-2.0
// Every parameter of a model: name, shape, how many. Names are those of the published checkpoints
// (Hugging Face transformers; torchvision for convolutional networks). The experts of a mixture are
// one entry with a star in its name and a number of copies.
//
// "Active" parameters are those that one token uses: all but the routed experts that it is not sent
// to. Tied tensors count once. Buffers (rotary tables, running statistics of batch norm,
// DeepSeek-V3's correction of the router) are no parameters and are not listed, as PyTorch's
// parameters() does not.
#pragma once

#include "core/network/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

enum class TensorRole : std::uint8_t { Matrix, Convolution, Embedding, Norm, Bias, Other };

struct ModelTensor
{
    std::string name;                ///< "model.layers.0.self_attn.q_proj.weight"
    std::vector<std::int64_t> shape; ///< as stored
    TensorRole role = TensorRole::Matrix;
    std::int64_t copies = 1;       ///< experts of the same shape
    std::int64_t activeCopies = 1; ///< of these, used for one token
    std::int64_t layer = -1;       ///< index in its stack; −1: outside the layers

    /// Of one copy; checked when the inventory was made.
    std::int64_t elements() const;
};

struct Inventory
{
    std::vector<ModelTensor> tensors; ///< in the order of the model
    std::int64_t total = 0;           ///< parameters
    std::int64_t active = 0;

    /// Number of tensors, each copy counted.
    std::int64_t tensorCount() const;
};

/// Whether the list is made of the recorded network, which names and sizes its parameters alone.
bool isListedAsRecorded(const ModelDescription& model);

/// Errors: those of checkModel(), and model.size when the parameters cannot be counted in 2^62.
Result<Inventory> inventory(const ModelDescription& model);

} // namespace memscape
