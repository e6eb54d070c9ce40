// SPDX-License-Identifier: Apache-2.0
// The part of attention that families share, as Hugging Face's eager_attention_forward writes it:
// scores, scaling, softcap, mask, softmax, dropout, context; or one of the fused kernels.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct AttentionStyle
{
    Variable mask;               ///< added to the scores; a fused kernel gets one of Bool alone (paddingMask())
    Variable bias;               ///< added before the mask (T5's relative positions)
    Variable sinks;              ///< one more logit a head, dropped after the softmax (GPT-OSS)
    double softcap = 0;          ///< scores / c, tanh, · c; 0: none
    bool softmaxInFloat = true;  ///< softmax(…, dtype=float32).to(q.dtype)
    bool clampsScores = false;   ///< torch.max(scores, the least number), which keeps them (OPT before 4.50)
    bool scoresInFloat = false;  ///< q and k are cast to float before their product (GPT-J)
    bool rotatesInFloat = false; ///< turned q and k are float: so are scores, and fused kernels get casts (GPT-NeoX)
    bool fillsMask = false;      ///< scores.masked_fill(mask, …), the mask of Bool (MPT)
    bool scalesScores = true;
    bool isCausal = false;   ///< what a fused kernel may leave out, beside the mask
    bool isWindowed = false; ///< the mask is windowMask(): a fused kernel gets it, of whichever type
    /// The caller's name for the probabilities, which transformers returns beside the context; on a GPU they are
    /// recorded without one.
    Variable* probabilities = nullptr;
};

/// (B, S, heads · width) to (B, heads, S, width), a view.
Variable splitHeads(NetworkBuilder& b, Variable x, std::int64_t heads, std::int64_t width);

/// x · cos + (−x2, x1) · sin of the halves of the last dimension, one kernel after the other.
Variable rotated(NetworkBuilder& b, const Variable& x, const Variable& cosine, const Variable& sine);

/// What transformers makes of an attention_mask that holds zeros, an input (B, keys) of Int64: a mask (B, 1, S, keys),
/// of Bool for fused kernels, else of the weights' type. Nothing without padding, or where FlashAttention called by
/// itself takes the tokens alone. Left out: the parts that it is joined of, masks of Bool that die at once.
Variable paddingMask(NetworkBuilder& b, std::int64_t keys);

/// What transformers makes for F.scaled_dot_product_attention where a layer sees a window of tokens that the text
/// fills, padded or not: (B, 1, S, keys) of Bool, before masking_utils.py (4.53) of the weights' type, which no layer
/// converts. Left out: that B is 1 where no attention_mask is passed; passes without gradients, which stand for
/// engines, too. Source: transformers 5.24, masking_utils.py (_ignore_causal_mask_sdpa, sdpa_mask); 4.49,
/// modeling_attn_mask_utils.py.
Variable windowMask(NetworkBuilder& b, std::int64_t keys);

/// q (B, H, S, D), k and v with as many or fewer heads; result (B, S, H · Dv), dense.
Variable attend(NetworkBuilder& b, const Variable& q, const Variable& k, const Variable& v,
                const AttentionStyle& style);

} // namespace memscape
