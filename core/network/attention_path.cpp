// SPDX-License-Identifier: Apache-2.0
#include "core/network/attention_path.h"

#include <cmath>

namespace memscape {

namespace {

constexpr std::int64_t widestFlash = 256; ///< check_head_dim_size_flash
constexpr std::int64_t widestCudnn = 128; ///< check_cudnn_tensor_shapes, of every version

/// minimum_gemm_alignment: elements that a head's width must be a multiple of for the memory-efficient kernel.
std::int64_t alignment(const EagerRules& rules, DType dtype)
{
    if (elementBytes(dtype) == 2)
        return 8;
    return rules.hasFlash ? 4 : 1;
}

bool isMultiple(const AttentionCase& asked, std::int64_t of)
{
    return asked.width % of == 0 && asked.valueWidth % of == 0;
}

AttentionChoice chosenOnCpu(const AttentionCase& asked)
{
    if (asked.dropout > 0)
        return {AttentionPath::Math, "a processor's kernel has no dropout"};
    if (asked.width != asked.valueWidth)
        return {AttentionPath::Math, "a processor's kernel takes keys and values of one width"};
    return {AttentionPath::Flash, "PyTorch's kernel for processors"};
}

/// check_cudnn_dropout: its probabilities are sixteenths.
bool isForCudnn(const EagerRules& rules, const AttentionCase& asked)
{
    return rules.prefersCudnn && elementBytes(asked.dtype) == 2 && isMultiple(asked, 8) && asked.width <= widestCudnn
        && asked.valueWidth <= widestCudnn && std::floor(asked.dropout * 16) == asked.dropout * 16;
}

/// Why it is not FlashAttention; null where it is.
const char* withoutFlash(const EagerRules& rules, const AttentionCase& asked)
{
    if (!rules.hasFlash)
        return "the GPU is older than Ampere";
    if (elementBytes(asked.dtype) != 2)
        return "FlashAttention takes 16 bits";
    if (asked.isMasked)
        return "FlashAttention takes no mask";
    if (asked.width != asked.valueWidth)
        return "FlashAttention takes keys and values of one width";
    return asked.width > widestFlash ? "FlashAttention takes heads of at most 256" : nullptr;
}

} // namespace

AttentionChoice chosenAttention(const EagerRules& rules, const AttentionCase& asked)
{
    if (rules.isOnCpu)
        return chosenOnCpu(asked);
    if (isForCudnn(rules, asked))
        return {AttentionPath::Cudnn, "16 bits on Hopper or Blackwell"};
    const char* const why = withoutFlash(rules, asked);
    if (!why)
        return {AttentionPath::Flash, "16 bits on Ampere or later"};
    if (!rules.hasFlash && asked.dtype == DType::BFloat16)
        return {AttentionPath::Math, "no kernel takes bf16 on a GPU older than Ampere"};
    if (!isMultiple(asked, alignment(rules, asked.dtype)))
        return {AttentionPath::Math, "the heads' width is no multiple of what the memory-efficient kernel loads"};
    if (asked.sharesHeads && !rules.efficientSharesHeads)
        return {AttentionPath::Math,
                "keys shared by query heads: of the kernels only FlashAttention took them before "
                "PyTorch 2.14"};
    return {AttentionPath::Efficient, why};
}

const char* attentionPathText(AttentionPath path)
{
    switch (path) {
    case AttentionPath::Flash: return "FlashAttention";
    case AttentionPath::Cudnn: return "cuDNN's attention";
    case AttentionPath::Efficient: return "memory-efficient attention";
    case AttentionPath::Math: break;
    }
    return "the math path, operator by operator";
}

} // namespace memscape
