// SPDX-License-Identifier: Apache-2.0
// Which implementation F.scaled_dot_product_attention takes. On a GPU it tries FlashAttention, then the
// memory-efficient kernel, on Hopper and Blackwell cuDNN's before both, then writes the operators out (its "math"
// path): the first whose conditions hold. A processor has a kernel of its own and the math path.
//
// Source: PyTorch, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp (select_sdp_backend,
// check_prefer_cudnn_attention) and sdp_utils_cpp.cpp for processors, where tests/data/pytorch/attention_paths.json has
// what a live PyTorch 2.15 picks. Left out: cuDNN's kernel of heads wider than 128, and before PyTorch 2.14 (2.13 tried
// it first, too, 2.9 FlashAttention); FlashAttention's backward of heads wider than 192 on compute capability 8.6, 8.9
// and 12; inputs that do not lie at multiples of 16 bytes; ROCm.
#pragma once

#include "core/network/build_options.h"

#include <cstdint>

namespace memscape {

enum class AttentionPath : std::uint8_t { Flash, Cudnn, Efficient, Math };

/// What is asked of it; widths in elements of one head.
struct AttentionCase
{
    DType dtype = DType::Float32;
    std::int64_t width = 0, valueWidth = 0;
    bool sharesHeads = false; ///< keys and values have fewer heads (enable_gqa)
    bool isMasked = false;    ///< by a tensor, not by is_causal
    double dropout = 0;
};

struct AttentionChoice
{
    AttentionPath path;
    const char* because; ///< "16 bits on Ampere or later"
};

AttentionChoice chosenAttention(const EagerRules& rules, const AttentionCase& asked);
/// "FlashAttention", "cuDNN's attention", "memory-efficient attention", "the math path, operator by operator".
const char* attentionPathText(AttentionPath path);

} // namespace memscape
