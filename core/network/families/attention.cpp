// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/attention.h"

namespace memscape {

namespace {

/// (−x2, x1) of the halves of the last dimension, which are sliced one by one.
Variable rotateHalf(NetworkBuilder& b, const Variable& x)
{
    const std::int64_t half = b.ok() ? x.size(-1) / 2 : 0;
    const Variable first = b.narrow(x, -1, half), second = b.narrow(x, -1, half);
    return b.cat({b.negate(second), first}, -1);
}

/// softmax over the scores and one learned logit a head, which is dropped again.
Variable withSinks(NetworkBuilder& b, Variable scores, const Variable& sinks)
{
    if (!b.ok())
        return {};
    const Shape one{scores.size(0), scores.size(1), scores.size(2), 1};
    const std::int64_t length = scores.size(3);
    const Variable column = b.expand(b.view(sinks, {1, scores.size(1), 1, 1}), one);
    Variable joined = b.cat({std::move(scores), column}, -1);
    joined = b.subtract(joined, b.maximum(joined, -1, true));
    return b.narrow(b.softmax(std::move(joined)), -1, length);
}

Variable eagerScores(NetworkBuilder& b, const Variable& q, const Variable& k, const AttentionStyle& style)
{
    Variable scores = style.scoresInFloat
        ? b.matmul(b.cast(q, DType::Float32), b.transpose(b.cast(k, DType::Float32), 2, 3))
        : b.matmul(q, b.transpose(k, 2, 3));
    if (style.scalesScores)
        scores = b.scale(std::move(scores));
    if (style.softcap > 0)
        scores = b.scale(b.tanh(b.scale(std::move(scores))));
    if (style.bias)
        scores = b.add(std::move(scores), style.bias);
    if (style.mask)
        scores = style.fillsMask ? b.maskedFill(std::move(scores), style.mask) : b.add(std::move(scores), style.mask);
    if (style.clampsScores && b.ok()) {
        const Layout layout(scores.shape());
        const DType dtype = scores.dtype();
        scores = b.other({std::move(scores)}, layout, dtype, {.inputs = true, .temporaries = 2}, false);
    }
    if (style.sinks)
        return withSinks(b, std::move(scores), style.sinks);
    scores = style.softmaxInFloat ? b.cast(b.softmax(scores, DType::Float32), q.dtype())
                                  : b.softmax(scores); // named until its result is
    return b.dropout(std::move(scores), b.options().dropout);
}

} // namespace

Variable rotated(NetworkBuilder& b, const Variable& x, const Variable& cosine, const Variable& sine)
{
    Variable direct = b.multiply(x, cosine);
    return b.add(std::move(direct), b.multiply(rotateHalf(b, x), sine));
}

Variable splitHeads(NetworkBuilder& b, Variable x, std::int64_t heads, std::int64_t width)
{
    const Shape shape{x.size(0), x.size(1), heads, width};
    return b.transpose(b.view(std::move(x), shape), 1, 2);
}

Variable paddingMask(NetworkBuilder& b, std::int64_t keys)
{
    const BuildOptions& options = b.options();
    if (!options.hasPadding || options.attention == AttentionKernel::Flash)
        return {};
    const bool isEager = options.attention == AttentionKernel::Eager;
    const Variable given = b.input("attention_mask", {options.batch, keys}, DType::Int64);
    return b.fill({options.batch, 1, options.sequence, keys}, isEager ? options.weights : DType::Bool);
}

Variable windowMask(NetworkBuilder& b, std::int64_t keys)
{
    const BuildOptions& options = b.options();
    const bool isConverted = options.transformers >= Transformers::Before524;
    return b.fill({options.batch, 1, options.sequence, keys}, isConverted ? DType::Bool : options.weights);
}

Variable attend(NetworkBuilder& b, const Variable& q, const Variable& k, const Variable& v, const AttentionStyle& style)
{
    if (!b.ok())
        return {};
    const std::int64_t batch = q.size(0), length = q.size(2), heads = q.size(1);
    const bool isEager = b.options().attention == AttentionKernel::Eager || style.softcap > 0;
    Variable context;
    if (isEager) {
        const Variable keys = b.repeatedHeads(k, heads);
        const Variable values = b.repeatedHeads(v, heads);
        context = b.attentionCore([&] {
            Variable scores = eagerScores(b, q, keys, style);
            if (style.rotatesInFloat && b.ok())
                scores = b.cast(std::move(scores), values.dtype());
            if (style.probabilities && b.options().rules.isOnCpu)
                *style.probabilities = scores;
            return b.matmul(scores, values);
        });
        context = b.contiguous(b.transpose(std::move(context), 1, 2));
    } else if (style.rotatesInFloat) {
        const Variable queries = b.cast(q, v.dtype()), keys = b.cast(k, v.dtype());
        context = b.contiguous(b.transpose(b.scaledDotProduct(queries, keys, v, style.isCausal), 1, 2));
    } else {
        const bool isGiven = style.mask && (style.isWindowed || style.mask.dtype() == DType::Bool);
        context = b.scaledDotProduct(q, k, v, style.isCausal, isGiven ? style.mask : Variable());
        context = b.contiguous(b.transpose(std::move(context), 1, 2));
    }
    return b.ok() ? b.reshape(std::move(context), {batch, length, heads * v.size(3)}) : Variable();
}

} // namespace memscape
