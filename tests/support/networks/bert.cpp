// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/bert.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Variable heads(NetworkBuilder& b, const BertShape& shape, Variable x)
{
    const Shape split{x.size(0), x.size(1), shape.heads, shape.hidden / shape.heads};
    return b.permute(b.view(std::move(x), split), {0, 2, 1, 3});
}

Variable context(NetworkBuilder& b, const Variable& q, const Variable& k, const Variable& v, const Variable& padding,
                 Variable& scores)
{
    scores = b.scale(b.matmul(q, b.transpose(k, -1, -2)));
    scores = b.add(std::move(scores), padding);
    Variable probabilities = b.softmax(scores);
    scores = b.dropout(std::move(probabilities), b.options().dropout);
    return b.matmul(scores, v);
}

Variable embedded(NetworkBuilder& b, const BertShape& shape, const Variable& indices)
{
    const Variable types = b.fill(indices.shape(), DType::Int64);
    const Variable positions = b.narrow(b.buffer("pos", {1, shape.positions}, DType::Int64), 1, indices.size(1));
    Variable x = b.embedding("we", indices, shape.vocabulary, shape.hidden);
    x = b.add(std::move(x), b.embedding("pe", positions, shape.positions, shape.hidden));
    x = b.add(std::move(x), b.embedding("te", types, shape.types, shape.hidden));
    return b.dropout(b.layerNorm("ln", std::move(x)), b.options().dropout);
}

} // namespace

Variable bertLayer(NetworkBuilder& b, const BertShape& shape, const Variable& argument, const Variable& padding)
{
    const double dropout = b.options().dropout;
    const std::int64_t width = shape.feedForward > 0 ? shape.feedForward : 4 * shape.hidden;
    Variable x = argument;
    const Variable q = heads(b, shape, b.linear("q", x, shape.hidden));
    const Variable k = heads(b, shape, b.linear("k", x, shape.hidden));
    const Variable v = heads(b, shape, b.linear("v", x, shape.hidden));
    Variable scores; // a local of this function
    Variable c = b.options().attention == AttentionKernel::Eager
        ? b.attentionCore([&] { return context(b, q, k, v, padding, scores); })
        : b.scaledDotProduct(q, k, v);
    c = b.view(b.contiguous(b.permute(std::move(c), {0, 2, 1, 3})), x.shape());
    Variable branch = b.dropout(b.linear("o", c, shape.hidden), dropout);
    x = b.layerNorm("ln1", b.add(std::move(branch), x));
    const Variable y = b.gelu(b.linear("i", x, width));
    branch = b.dropout(b.linear("out", y, shape.hidden), dropout);
    return b.layerNorm("ln2", b.add(std::move(branch), x));
}

Result<Graph> bert(const BertShape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    if (shape.heads < 1 || shape.hidden % shape.heads != 0)
        b.refuse("network.shape",
                 fmt::format("hidden size {} is not a multiple of {} heads", shape.hidden, shape.heads));
    const Variable indices = b.input("tokens", {options.batch, options.sequence}, DType::Int64);
    Variable x = embedded(b, shape, indices);
    const Variable padding = b.fill({options.batch, 1, 1, options.sequence}, x.dtype());
    for (std::int64_t i = 0; i < shape.layers && b.ok(); ++i) {
        const ModuleScope scope(b, fmt::format("layers.{}", i), "BertLayer");
        x = b.layer([&] { return bertLayer(b, shape, x, padding); });
    }
    if (!shape.hasPooler || !options.loss)
        return b.finish(std::move(x));
    Variable pooled = b.sumAll(b.tanh(b.linear("pool", b.select(x, 1), shape.hidden)));
    Variable loss = b.add(std::move(pooled), b.scale(b.sumAll(x)));
    return b.finish(std::move(x), std::move(loss));
}

} // namespace memscape
