// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/llama.h"

#include "core/network/families/language_head.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Variable rotateHalf(NetworkBuilder& b, const Variable& x)
{
    std::vector<Variable> halves = b.chunk(x, 2, -1);
    Variable negative = b.negate(halves[1]);
    return b.cat({std::move(negative), halves[0]}, -1);
}

/// x · cos + rotateHalf(x) · sin, one kernel after the other; x (B, H, S, D).
Variable rotated(NetworkBuilder& b, Variable x, const Variable& cosine, const Variable& sine)
{
    Variable direct = b.multiply(x, cosine);
    Variable turned = b.multiply(rotateHalf(b, x), sine);
    Variable result = b.add(std::move(direct), std::move(turned));
    x.reset();
    return result;
}

Variable repeated(NetworkBuilder& b, Variable x, std::int64_t heads)
{
    const std::int64_t groups = heads / x.size(1);
    if (groups == 1)
        return x;
    const Shape shape{x.size(0), x.size(1), groups, x.size(2), x.size(3)};
    if (b.options().rules.slicesWholeDimensions)
        for (const int dimension : {0, 1})
            x = b.narrow(x, dimension, x.size(dimension));
    const Shape full{x.size(0), heads, x.size(2), x.size(3)};
    return b.reshape(b.expand(b.unsqueeze(std::move(x), 2), shape), full);
}

Variable heads(NetworkBuilder& b, Variable x, std::int64_t count, std::int64_t width)
{
    const Shape shape{x.size(0), x.size(1), count, width};
    return b.transpose(b.view(std::move(x), shape), 1, 2);
}

/// The local variables of an attention, which die when its function returns.
struct Locals
{
    Variable q, k, v, scores, output;
};

Variable eagerAttention(NetworkBuilder& b, Locals& local, const Variable& mask)
{
    local.scores = b.scale(b.matmul(local.q, b.transpose(local.k, 2, 3)));
    local.scores = b.add(std::move(local.scores), mask);
    local.scores = b.cast(b.softmax(std::move(local.scores), DType::Float32), local.q.dtype());
    return b.matmul(local.scores, local.v);
}

Variable attention(NetworkBuilder& b, const LlamaShape& shape, const LlamaTables& tables, const Variable& y,
                   Locals& local)
{
    const std::int64_t batch = y.size(0), length = y.size(1);
    const std::int64_t width = shape.headWidth > 0 ? shape.headWidth : shape.hidden / shape.heads;
    const std::int64_t kvWidth = shape.keyValueHeads * width;
    local.q = heads(b, b.linear("q", y, shape.heads * width, shape.hasQkvBias), shape.heads, width);
    local.k = heads(b, b.linear("k", y, kvWidth, shape.hasQkvBias), shape.keyValueHeads, width);
    local.v = heads(b, b.linear("v", y, kvWidth, shape.hasQkvBias), shape.keyValueHeads, width);
    local.q = rotated(b, std::move(local.q), tables.cosine, tables.sine);
    local.k = rotated(b, std::move(local.k), tables.cosine, tables.sine);
    const bool isEager = b.options().attention == AttentionKernel::Eager;
    if (isEager || shape.repeatsHeads) {
        local.k = repeated(b, std::move(local.k), shape.heads);
        local.v = repeated(b, std::move(local.v), shape.heads);
    }
    Variable o = isEager ? b.attentionCore([&] { return eagerAttention(b, local, tables.mask); })
                         : b.scaledDotProduct(local.q, local.k, local.v);
    local.output = b.reshape(b.contiguous(b.transpose(std::move(o), 1, 2)), {batch, length, shape.heads * width});
    return b.linear("o", local.output, shape.hidden, false);
}

Variable feedForward(NetworkBuilder& b, const LlamaShape& shape, const Variable& y)
{
    Variable gate = b.silu(b.linear("g", y, shape.feedForward, false));
    Variable up = b.linear("u", y, shape.feedForward, false);
    Variable product = b.multiply(std::move(gate), std::move(up));
    return b.linear("dn", std::move(product), shape.hidden, false);
}

} // namespace

Variable llamaBlock(NetworkBuilder& b, const LlamaShape& shape, const LlamaTables& tables, const Variable& argument)
{
    Variable x = argument;
    Variable y = b.rmsNorm("n1", x);
    Locals local;
    Variable branch = attention(b, shape, tables, y, local);
    if (!shape.isAttentionInline)
        local = {};
    x = b.add(std::move(x), std::move(branch));
    y = b.rmsNorm("n2", x);
    branch = feedForward(b, shape, y);
    return b.add(std::move(x), std::move(branch));
}

Result<Graph> llama(const LlamaShape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    if (shape.heads < 1 || shape.keyValueHeads < 1 || shape.heads % shape.keyValueHeads != 0
        || (shape.headWidth == 0 && shape.hidden % shape.heads != 0))
        b.refuse("network.shape",
                 fmt::format("{} heads with {} key-value heads do not divide a hidden size of {}", shape.heads,
                             shape.keyValueHeads, shape.hidden));
    const Variable indices = tokenInput(b);
    Variable tokenWeight;
    {
        const ModuleScope embedding(b, "emb", "Embedding");
        tokenWeight = b.parameter("weight", {shape.vocabulary, shape.hidden});
    }
    const std::int64_t width = !b.ok() ? 1 : shape.headWidth > 0 ? shape.headWidth : shape.hidden / shape.heads;
    const Shape table{1, 1, shape.positions, width};
    LlamaTables tables{b.buffer("cos", table, options.weights), b.buffer("sin", table, options.weights),
                       b.buffer("mask", {1, 1, shape.positions, shape.positions}, options.weights)};
    for (Variable* const part : {&tables.cosine, &tables.sine, &tables.mask})
        *part = b.narrow(std::move(*part), 2, options.sequence);
    tables.mask = b.narrow(std::move(tables.mask), 3, options.sequence);
    Variable x = b.embedding(indices, tokenWeight);
    for (std::int64_t i = 0; i < shape.layers && b.ok(); ++i) {
        const ModuleScope layer(b, fmt::format("blocks.{}", i), "LlamaBlock");
        x = b.layer([&] { return llamaBlock(b, shape, tables, x); });
    }
    x = b.rmsNorm("nf", std::move(x));
    Variable logits = shape.isTied ? b.linear(x, tokenWeight) : b.linear("head", x, shape.vocabulary, false);
    return finishLanguageModel(b, std::move(logits));
}

} // namespace memscape
