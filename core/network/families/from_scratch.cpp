// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/from_scratch.h"

#include "core/network/families/attention.h"
#include "core/network/families/language_head.h"

#include <fmt/format.h>

namespace memscape {

namespace {

class FromScratch
{
public:
    FromScratch(NetworkBuilder& b, const ModelDescription& model)
        : m_b(b)
        , m_model(model)
        , m_written(b.options().writtenOut)
    {
    }

    Result<Graph> record();

private:
    Variable linear(std::string_view name, const Variable& x, std::int64_t outputs);
    Variable norm(std::string_view name, const Variable& x);
    Variable silu(const Variable& x);
    Variable softmax(const Variable& x);
    Variable rotated(const Variable& x, const Variable& positions);
    Variable causalMask();
    Variable scaledDotProduct(const Variable& q, const Variable& k, const Variable& v);
    Variable attention(const Variable& x);
    Variable feedForward(const Variable& x);
    Variable layer(const Variable& x);
    Variable crossEntropy(const Variable& logits, const Variable& targets);
    Variable logSoftmax(const Variable& x);

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    WrittenOut m_written;
    Variable m_table; ///< cos and sin of every position, made once
};

/// einsum(x, weight, "… in, out in -> … out"): the same product as a linear layer.
Variable FromScratch::linear(std::string_view name, const Variable& x, std::int64_t outputs)
{
    return m_b.linear(name, x, outputs, false);
}

Variable FromScratch::norm(std::string_view name, const Variable& argument)
{
    const ModuleScope scope(m_b, name, "RMSNorm");
    const Variable weight = m_b.parameter("weight", {argument.size(-1)});
    if (!m_written.norm)
        return m_b.fusedRmsNorm(argument, weight);
    Variable x = m_b.cast(argument, DType::Float32);
    Variable reciprocal = m_b.unary(OperatorKind::ReciprocalRoot,
                                    m_b.shift(m_b.mean(m_b.unary(OperatorKind::Power, x), -1)));
    x = m_b.multiply(std::move(x), reciprocal);
    return m_b.cast(m_b.multiply(weight, x), argument.dtype());
}

Variable FromScratch::silu(const Variable& x)
{
    return m_written.activation ? m_b.multiply(x, m_b.sigmoid(x)) : m_b.silu(x);
}

Variable FromScratch::softmax(const Variable& x)
{
    if (!m_written.softmax)
        return m_b.softmax(x);
    const Variable shifted = m_b.subtract(x, m_b.maximum(x, -1, true));
    const Variable exponentials = m_b.unary(OperatorKind::Exponential, shifted);
    return m_b.divide(exponentials, m_b.sum(exponentials, -1, true));
}

/// x1·cos − x2·sin and x1·sin + x2·cos, joined; x (B, H, S, D). The table is looked up at every
/// call.
Variable FromScratch::rotated(const Variable& x, const Variable& positions)
{
    const std::vector<Variable> halves = m_b.chunk(x, 2, -1);
    Variable looked = m_b.index(m_table, positions); // (S, 2, D / 2)
    if (!m_b.ok())
        return {};
    const Variable cosine = m_b.select(looked, 1), sine = m_b.select(looked, 1);
    const Variable first =
        m_b.subtract(m_b.multiply(cosine, halves[0]), m_b.multiply(sine, halves[1]));
    const Variable second = m_b.add(m_b.multiply(sine, halves[0]), m_b.multiply(cosine, halves[1]));
    return m_b.reshape(m_b.stack({first, second}, -1), x.shape());
}

Variable FromScratch::causalMask()
{
    const std::int64_t length = m_b.options().sequence;
    const Variable queries = m_b.view(m_b.fill({length}, DType::Int64), {1, 1, length, 1});
    const Variable keys = m_b.view(m_b.fill({length}, DType::Int64), {1, 1, 1, length});
    return m_b.compare(queries, keys);
}

Variable FromScratch::scaledDotProduct(const Variable& q, const Variable& k, const Variable& v)
{
    const Variable mask = causalMask();
    return m_b.attentionCore([&] {
        Variable scores = m_b.scale(m_b.einsum("bhqd,bhkd->bhqk", q, k));
        scores = m_b.where(mask, std::move(scores));
        const Variable weights = softmax(scores);
        return m_b.einsum("bhqk,bhkd->bhqd", weights, v);
    });
}

Variable FromScratch::attention(const Variable& x)
{
    const ModuleScope scope(m_b, "attn", "CausalSelfAttention");
    const std::int64_t width = m_model.headDim, keys = m_model.kvHeads;
    Variable q = linear("q_proj", x, m_model.heads * width);
    Variable k = linear("k_proj", x, keys * width);
    Variable v = linear("v_proj", x, keys * width);
    if (!m_b.ok())
        return {};
    q = splitHeads(m_b, std::move(q), m_model.heads, width);
    k = splitHeads(m_b, std::move(k), keys, width);
    v = splitHeads(m_b, std::move(v), keys, width);
    const Variable positions = m_b.fill({m_b.options().sequence}, DType::Int64);
    q = rotated(q, positions);
    k = rotated(k, positions);
    if (!m_b.ok())
        return {};
    Variable context;
    if (m_b.options().attention == AttentionKernel::Eager)
        context = scaledDotProduct(q, repeatedHeads(m_b, k, m_model.heads),
                                   repeatedHeads(m_b, v, m_model.heads));
    else
        context = m_b.scaledDotProduct(q, k, v);
    context = m_b.contiguous(m_b.transpose(std::move(context), 1, 2));
    if (!m_b.ok())
        return {};
    context = m_b.view(std::move(context), {x.size(0), x.size(1), m_model.heads * width});
    return linear("output_proj", context, m_model.hidden);
}

Variable FromScratch::feedForward(const Variable& x)
{
    const ModuleScope scope(m_b, "ffn", "SwiGLU");
    Variable gate = NetworkBuilder::call(linear("w1", x, m_model.ffn),
                                         [&](const Variable& y) { return silu(y); });
    Variable product = m_b.multiply(std::move(gate), linear("w3", x, m_model.ffn));
    return NetworkBuilder::call(std::move(product),
                                [&](const Variable& y) { return linear("w2", y, m_model.hidden); });
}

Variable FromScratch::layer(const Variable& x)
{
    const Variable attended =
        NetworkBuilder::call(norm("ln1", x), [&](const Variable& y) { return attention(y); });
    const Variable between = m_b.add(x, attended);
    const Variable forwarded = NetworkBuilder::call(
        norm("ln2", between), [&](const Variable& y) { return feedForward(y); });
    return m_b.add(between, forwarded);
}

/// x − max, then minus the logarithm of the sum of its exponentials.
Variable FromScratch::logSoftmax(const Variable& argument)
{
    const Variable largest = m_b.maximum(argument, -1, true);
    const Variable x = m_b.subtract(argument, largest);
    return m_b.subtract(x,
                        m_b.unary(OperatorKind::Logarithm,
                                  m_b.sum(m_b.unary(OperatorKind::Exponential, x), -1, true)));
}

Variable FromScratch::crossEntropy(const Variable& logits, const Variable& targets)
{
    if (!m_b.ok())
        return {};
    if (!m_written.loss) {
        const Shape rows{logits.size(0) * logits.size(1), logits.size(-1)};
        return m_b.crossEntropy(m_b.view(logits, rows), targets);
    }
    const Variable negative = m_b.negate(logSoftmax(logits));
    const Variable picked = m_b.gather(negative, m_b.unsqueeze(targets, -1));
    return m_b.meanAll(picked);
}

Result<Graph> FromScratch::record()
{
    const BuildOptions& options = m_b.options();
    const Variable tokens = tokenInput(m_b);
    const std::int64_t context = std::max(m_model.maxPositions, options.sequence);
    {
        const ModuleScope scope(m_b, "positional_encoder", "RotaryEmbedding");
        m_table = m_b.buffer("cos_sin", {context, 2, m_model.headDim / 2}, DType::Float32);
    }
    Variable x;
    {
        const ModuleScope scope(m_b, "token_embeddings", "Embedding");
        x = m_b.index(m_b.parameter("weight", {m_model.vocab, m_model.hidden}), tokens);
    }
    for (std::int64_t i = 0; i < m_model.layers && m_b.ok(); ++i) {
        const ModuleScope scope(m_b, fmt::format("layers.{}", i), "TransformerBlock");
        x = m_b.layer([&] { return layer(x); });
    }
    if (m_b.ok())
        x = norm("ln_final", x);
    Variable logits = linear("lm_head", x, m_model.vocab);
    x.reset();
    if (!options.loss || !m_b.ok())
        return m_b.finish(std::move(logits));
    const Variable targets = m_b.target("targets", {options.batch, options.sequence}, DType::Int64);
    Variable loss = crossEntropy(logits, targets);
    return m_b.finish(std::move(logits), std::move(loss));
}

} // namespace

Result<Graph> fromScratchDecoder(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    if (model.headDim % 2 != 0)
        return fail("model.contradiction",
                    fmt::format("rotary positions need an even head, {} is odd", model.headDim),
                    "choose heads so that hidden / heads is even", "heads");
    NetworkBuilder b(options);
    return FromScratch(b, model).record();
}

} // namespace memscape
