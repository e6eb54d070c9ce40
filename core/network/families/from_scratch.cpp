// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/from_scratch.h"

#include "core/network/families/attention.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// einsum(x, weight, "… in, out in -> … out") as a module of that name.
Variable projected(NetworkBuilder& b, std::string_view name, const Variable& x, std::int64_t width)
{
    const BuildOptions& options = b.options();
    const bool isReplaced = options.isProductInFp8 // by a library's linear module
        || (options.adapters && options.adapters->isQuantized());
    if (isReplaced)
        return b.linear(name, options.autocast ? x : b.cast(x, options.weights), width, false);
    const ModuleScope scope(b, name, "Linear");
    const Variable weight = b.parameter("weight", {width, x.size(-1)});
    Variable y = b.einsum("bsi,oi->bso", x, weight);
    return b.adapted(x, std::move(y), weight);
}

Variable normalized(NetworkBuilder& b, std::string_view name, const Variable& argument)
{
    const ModuleScope scope(b, name, "RMSNorm");
    const Variable weight = b.parameter("weight", {argument.size(-1)});
    if (!b.options().writtenOut.norm)
        return b.fusedRmsNorm(argument, weight);
    const DType dtype = argument.dtype();
    Variable x = b.cast(argument, DType::Float32);
    const Variable root = b.unary(OperatorKind::ReciprocalRoot, b.shift(b.mean(b.unary(OperatorKind::Power, x), -1)));
    x = b.multiply(x, root);
    return b.cast(b.multiply(weight, x), dtype);
}

Variable softmax(NetworkBuilder& b, const Variable& x)
{
    if (!b.options().writtenOut.softmax)
        return b.softmax(x);
    Variable shifted = b.subtract(x, b.maximum(x, -1, true));
    const Variable exponentials = b.unary(OperatorKind::Exponential, shifted);
    return b.divide(exponentials, b.sum(exponentials, -1, true));
}

/// cos · x1 − sin · x2 and sin · x1 + cos · x2 of the pairs of x (B, H, S, D), joined as halves.
Variable rotatedPairs(NetworkBuilder& b, const Variable& x, const Variable& table)
{
    const ModuleScope scope(b, "positional_encoder", "RotaryEmbedding");
    const std::int64_t length = x.size(2), half = x.size(3) / 2;
    const auto pairs = b.unbind(b.permute(b.view(x, {x.size(0), x.size(1), length, half, 2}), {4, 0, 1, 2, 3}), 0);
    const auto turns = b.unbind(b.narrow(table, 1, length), 0); // of (2, S, half): cosine and sine
    const Variable &x1 = pairs[0], &x2 = pairs[1], &cosine = turns[0], &sine = turns[1];
    Variable left = b.multiply(cosine, x1);
    const Variable first = b.subtract(std::move(left), b.multiply(sine, x2));
    left = b.multiply(sine, x1);
    const Variable second = b.add(std::move(left), b.multiply(cosine, x2));
    return b.cat({first, second}, -1);
}

Variable attended(NetworkBuilder& b, const Variable& q, const Variable& k, const Variable& v, const Variable& mask)
{
    Variable scores = b.scale(b.einsum("bhqd,bhkd->bhqk", q, k));
    scores = b.where(mask, std::move(scores));
    const Variable weights = softmax(b, scores);
    return b.einsum("bhqk,bhkd->bhqd", weights, v);
}

Variable attention(NetworkBuilder& b, const ModelDescription& model, const Variable& table, const Variable& argument)
{
    const ModuleScope scope(b, "attn", "CausalMultiHeadSelfAttention");
    const Variable x = b.columnInput(argument);
    const std::int64_t batch = x.size(0), length = x.size(1);
    std::vector<Variable> heads;
    const std::int64_t width = model.headDim;
    heads.push_back(projected(b, "q_proj", x, model.heads * width));
    heads.push_back(projected(b, "k_proj", x, model.kvHeads * width));
    heads.push_back(projected(b, "v_proj", x, model.kvHeads * width));
    for (Variable& head : heads)
        head = b.transpose(b.view(head, {batch, length, head.size(-1) / width, width}), 1, 2);
    for (const std::size_t i : {0u, 1u})
        heads[i] = rotatedPairs(b, heads[i], table);
    const Variable sequence = b.fill({length}, DType::Int64);
    const Variable rows = b.view(sequence, {length, 1});
    const Variable columns = b.view(sequence, {1, length});
    const Variable mask = b.unsqueeze(b.compare(rows, columns), 0);
    if (b.options().attention == AttentionKernel::Eager)
        for (const std::size_t i : {1u, 2u})
            heads[i] = b.repeatedHeads(heads[i], model.heads);
    Variable output = b.options().attention == AttentionKernel::Eager
        ? b.attentionCore([&] { return attended(b, heads[0], heads[1], heads[2], mask); })
        : b.scaledDotProduct(heads[0], heads[1], heads[2], true);
    output = b.view(b.contiguous(b.transpose(std::move(output), 1, 2)), {batch, length, model.heads * width});
    return b.rowOutput(projected(b, "output_proj", output, model.hidden));
}

Variable activated(NetworkBuilder& b, const Variable& x)
{
    if (!b.options().writtenOut.activation)
        return b.silu(x);
    return b.multiply(x, b.sigmoid(x));
}

Variable gatedFeedForward(NetworkBuilder& b, const ModelDescription& model, const Variable& argument)
{
    const ModuleScope scope(b, "ffn", "SwiGLU");
    const Variable x = b.columnInput(argument);
    Variable gate = b.call(projected(b, "w1", x, model.ffn), [&](const Variable& y) { return activated(b, y); });
    Variable product = b.multiply(std::move(gate), projected(b, "w3", x, model.ffn));
    return b.rowOutput(projected(b, "w2", product, model.hidden));
}

Variable block(NetworkBuilder& b, const ModelDescription& model, const Variable& table, const Variable& x)
{
    const Variable attending =
        b.call(normalized(b, "ln1", x), [&](const Variable& y) { return attention(b, model, table, y); });
    const Variable middle = b.add(x, attending);
    const Variable feeding =
        b.call(normalized(b, "ln2", middle), [&](const Variable& y) { return gatedFeedForward(b, model, y); });
    return b.add(middle, feeding);
}

Variable lossOf(NetworkBuilder& b, const Variable& logits, const Variable& target)
{
    if (!b.options().writtenOut.loss)
        return b.crossEntropy(b.view(logits, {logits.size(0) * logits.size(1), logits.size(2)}), target);
    Variable x = b.call(logits, [&](const Variable& inputs) {
        const Variable top = b.maximum(inputs, -1, true);
        const Variable shifted = b.subtract(inputs, top);
        Variable sums = b.sum(b.unary(OperatorKind::Exponential, shifted), -1, true);
        return b.subtract(shifted, b.unary(OperatorKind::Logarithm, std::move(sums)));
    });
    const Variable negative = b.negate(std::move(x));
    return b.meanAll(b.gather(negative, b.unsqueeze(target, -1)));
}

} // namespace

Result<Graph> fromScratchDecoder(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    if (model.headDim % 2 != 0)
        return fail("model.contradiction", fmt::format("rotary positions need an even head, {} is odd", model.headDim),
                    "choose heads so that hidden / heads is even", "heads");
    NetworkBuilder b(options);
    const Shape tokens{options.batch, options.sequence};
    const Variable indices = b.input("tokens", tokens, DType::Int64);
    const std::int64_t positions = std::max(model.maxPositions, options.sequence);
    const Variable table = b.buffer("cos_sin", {2, positions, model.headDim / 2}, options.weights);
    Variable x;
    {
        const ModuleScope scope(b, "token_embeddings", "Embedding");
        x = b.index(b.parameter("weight", {model.vocab, model.hidden}), indices);
    }
    x = b.rowOutput(std::move(x));
    b.repeat(x, "layers", 0, model.layers, [&](std::int64_t i, Variable& y) {
        const ModuleScope scope(b, fmt::format("layers.{}", i), "TransformerBlock");
        y = b.layer([&] { return block(b, model, table, y); });
    });
    x = b.columnInput(normalized(b, "ln_final", x));
    Variable logits = projected(b, "lm_head", x, model.vocab);
    x.reset();
    if (!options.loss)
        return b.finish(std::move(logits));
    const Variable target = b.target("targets", tokens, DType::Int64);
    Variable loss = lossOf(b, logits, target);
    return b.finish(std::move(logits), std::move(loss));
}

} // namespace memscape
