// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/gpt2.h"

#include "core/network/families/attention.h"
#include "core/network/families/language_head.h"
#include "core/network/families/virtual_tokens.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

std::int64_t widthOfHead(const Gpt2Shape& shape)
{
    return shape.headWidth > 0 ? shape.headWidth : shape.hidden / std::max<std::int64_t>(shape.heads, 1);
}

Variable eagerAttention(NetworkBuilder& b, const Variable& q, const Variable& k, const Variable& v,
                        const Variable& mask, Variable& scores)
{
    const std::int64_t length = q.size(2);
    scores = b.matmul(q, b.transpose(k, -2, -1));
    // Megatron scales and masks within its softmax, which it has for halves alone (legacy/model/fused_softmax.py).
    if (!b.options().isAllFused || scores.dtype() == DType::Float32) {
        scores = b.scale(std::move(scores));
        const Variable causal = b.narrow(b.narrow(mask, 2, length), 3, k.size(2));
        scores = b.maskedFill(std::move(scores), b.equalsNumber(causal));
    }
    scores = b.softmax(std::move(scores));
    scores = b.dropout(std::move(scores), b.options().dropout);
    return b.matmul(scores, v);
}

/// What attention has beside its argument.
struct Beside
{
    LayerPrefix prefix;
    Variable padding; ///< paddingMask()
};

Variable attention(NetworkBuilder& b, const Gpt2Shape& shape, const Variable& argument, const Beside& beside)
{
    const ModuleScope scope(b, "attn", "GPT2Attn");
    const Variable x = b.columnInput(argument);
    const std::int64_t batch = x.size(0), length = x.size(1);
    const std::int64_t width = widthOfHead(shape);
    const std::int64_t inner = shape.heads * width;
    const Variable mask = b.buffer("mask", {1, 1, shape.positions, shape.positions}, DType::Bool);
    std::vector<Variable> parts = b.chunk(b.linear("qkv", x, 3 * inner), 3, 2);
    for (Variable& part : parts)
        part = b.transpose(b.view(std::move(part), {batch, length, shape.heads, width}), 1, 2);
    if (b.ok())
        beside.prefix.join(b, parts[1], parts[2]);
    if (b.options().attention != AttentionKernel::Eager) {
        Variable y = b.scaledDotProduct(parts[0], parts[1], parts[2], true, beside.padding);
        y = b.view(b.contiguous(b.transpose(std::move(y), 1, 2)), {batch, length, inner});
        return b.dropout(b.rowOutput(b.linear("proj", y, shape.hidden)), b.options().dropout);
    }
    Variable scores; // a local of this function
    Variable y = b.attentionCore([&] { return eagerAttention(b, parts[0], parts[1], parts[2], mask, scores); });
    y = b.view(b.contiguous(b.transpose(std::move(y), 1, 2)), {batch, length, inner});
    return b.dropout(b.rowOutput(b.linear("proj", y, shape.hidden)), b.options().dropout);
}

/// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), one kernel after the other.
Variable compositeGelu(NetworkBuilder& b, const Variable& x)
{
    Variable half = b.scale(x);
    Variable inner = b.add(x, b.scale(b.unary(OperatorKind::Power, x)));
    inner = b.shift(b.tanh(b.scale(std::move(inner))));
    return b.multiply(std::move(half), std::move(inner));
}

// A plain method: it owns its argument, where a module's caller would hold it.
Variable feedForward(NetworkBuilder& b, const Gpt2Shape& shape, Variable x)
{
    const std::int64_t width = shape.feedForward > 0 ? shape.feedForward : 4 * shape.hidden;
    x = b.columnInput(std::move(x));
    Variable hidden = b.linear("fc", std::move(x), width);
    hidden = shape.isActivationComposite ? compositeGelu(b, hidden) : b.unary(shape.activation, std::move(hidden));
    hidden = b.rowOutput(b.linear("pj", std::move(hidden), shape.hidden));
    return b.dropout(std::move(hidden), b.options().dropout);
}

Variable prefixedBlock(NetworkBuilder& b, const Gpt2Shape& shape, const Variable& argument, const Beside& beside)
{
    Variable x = argument;
    Variable branch = b.call(b.layerNorm("ln1", x), [&](const Variable& y) { return attention(b, shape, y, beside); });
    x = b.add(std::move(x), std::move(branch));
    branch = feedForward(b, shape, b.layerNorm("ln2", x));
    return b.add(std::move(x), std::move(branch));
}

} // namespace

Variable gpt2Block(NetworkBuilder& b, const Gpt2Shape& shape, const Variable& x)
{
    return prefixedBlock(b, shape, x, {});
}

Result<Graph> gpt2(const Gpt2Shape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    if (shape.heads < 1 || (shape.headWidth == 0 && shape.hidden % shape.heads != 0))
        b.refuse("network.shape",
                 fmt::format("hidden size {} is not a multiple of {} heads", shape.hidden, shape.heads));
    b.refuseBeyond(shape.positions);
    const Variable indices = tokenInput(b);
    Variable tokenWeight, positionWeight;
    {
        const ModuleScope scope(b, "wte", "Embedding");
        tokenWeight = b.parameter("weight", {shape.vocabulary, shape.hidden});
    }
    const Variable positions = b.narrow(b.buffer("pos", {1, shape.positions}, DType::Int64), 1, options.sequence);
    Variable x = withPrompt(b, b.embedding(indices, tokenWeight));
    x = b.add(std::move(x), b.embedding("wpe", positions, shape.positions, shape.hidden));
    x = b.dropout(b.rowOutput(std::move(x)), options.dropout);
    std::vector<LayerPrefix> prefixes = learnedPrefix(b, shape.layers, shape.heads, widthOfHead(shape));
    Variable padding;
    if (options.isTransformers && options.attention != AttentionKernel::Eager)
        padding = paddingMask(b, options.sequence + options.virtualTokens(AdapterKind::Prefix));
    b.repeat(x, "blocks", 0, shape.layers, [&](std::int64_t i, Variable& y) {
        const ModuleScope scope(b, fmt::format("blocks.{}", i), "GPT2Block");
        const Beside beside{prefixes.empty() ? LayerPrefix() : std::move(prefixes[std::size_t(i)]), padding};
        y = b.layer([&] { return prefixedBlock(b, shape, y, beside); });
    });
    padding.reset();
    x = b.columnInput(b.layerNorm("lnf", std::move(x)));
    return finishLanguageModel(
        b, std::move(x), {shape.isTied ? b.tiedWeight("head", tokenWeight) : Variable(), "head", shape.vocabulary});
}

} // namespace memscape
