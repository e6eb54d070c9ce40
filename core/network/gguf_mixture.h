// SPDX-License-Identifier: Apache-2.0
// What llama.cpp's llama-quantize makes of a model: "Q4_K_M" names no type but a rule which type each tensor gets. Most
// matrices get the type of the name; those that lose most by it get more bits: values and the way down of the
// feed-forward in some layers, the output. Norms, biases, routers and tables of positions stay in fp32.
//
// Source: llama_tensor_get_type_impl() and tensor_type_fallback() in llama.cpp's src/llama-quant.cpp, without an
// importance matrix; sizes of Llama 3.1 8B in tools/quantize/README.md are the test. Left out: the IQ1, IQ2, IQ3
// and MXFP4 mixtures, types that a user gives to single tensors.
#pragma once

#include "core/network/inventory.h"

#include <optional>
#include <string_view>
#include <vector>

namespace memscape {

enum class GgufMixture : std::uint8_t {
    Q8_0,
    Q6_K,
    Q5_K_M,
    Q5_K_S,
    Q4_K_M,
    Q4_K_S,
    Q4_0,
    IQ4_XS,
    Q3_K_L,
    Q3_K_M,
    Q3_K_S,
    Q2_K
};

/// "q8_0", "q4_k_m", …: nothing for another name.
std::optional<GgufMixture> ggufMixtureFromText(std::string_view text);

/// Bytes of one copy of a tensor of that model, rows [0, ceil(rows / parts)) of it.
std::int64_t ggufTensorBytes(const ModelTensor& tensor, const ModelDescription& model, GgufMixture mixture,
                             std::int64_t parts = 1);

} // namespace memscape
