// SPDX-License-Identifier: Apache-2.0
// F.scaled_dot_product_attention. FlashAttention keeps q, k, v as passed, the output, a float log-sum-exp a row, a
// 16-byte random state and a number; the memory-efficient kernel pads its rows to a multiple of 32 and keeps two
// numbers (PyTorch, ATen/native/transformers/cuda/attention.cu). The math path keeps scaled queries and keys, the
// probabilities and the values: it computes 16 bits in 32 and guards its softmax against rows that are masked wholly
// (PyTorch 2.5 and later, ATen/native/transformers/attention.cpp: _scaled_dot_product_attention_math; SoftMax.cpp:
// _safe_softmax). cuDNN's kernel keeps what FlashAttention does.
//
// A mask of another type is taken as it is. A mask of Bool becomes zeros and −∞ of the queries' type at every call,
// which each layer keeps for backward; nothing of what it hides is left out (attention.cpp: convert_boolean_attn_mask,
// pad_bias).
#include "core/base/rounding.h"
#include "core/network/attention_path.h"
#include "core/network/builder.h"

#include <fmt/format.h>

#include <vector>

namespace memscape {

namespace {

/// transformers asks a kernel to share keys and values of one width up to this, without a mask (use_gqa_in_sdpa), else
/// it copies them.
constexpr std::int64_t widestShared = 256;

} // namespace

Variable NetworkBuilder::repeatedHeads(Variable x, std::int64_t heads)
{
    const std::int64_t groups = ok() ? heads / x.size(1) : 1;
    if (groups == 1)
        return x;
    const Shape shape{x.size(0), x.size(1), groups, x.size(2), x.size(3)};
    const Shape full{x.size(0), heads, x.size(2), x.size(3)};
    return reshape(expand(unsqueeze(std::move(x), 2), shape), full);
}

/// x times a number in C++, which is kept as a number, not as a tensor.
Variable NetworkBuilder::scaleByNumber(Variable x)
{
    if (!ok())
        return {};
    const Layout* const like = &x.layout();
    return settled(record(OperatorKind::Scale, {x.id()}, {elementwiseLayout(x.shape(), {&like, 1}), x.dtype()}), x);
}

/// softmax(x), where rows of −∞ alone (isneginf(), all()) become 0 in place.
Variable NetworkBuilder::safeSoftmax(Variable x)
{
    Variable result = softmax(x);
    if (!ok())
        return {};
    Shape rows = x.shape();
    rows[rows.rank - 1] = 1;
    const Variable masked = compare(x), maskedRows = fill(rows, DType::Bool), zero = fill({}, result.dtype());
    return settled(std::move(result), x);
}

/// `mask` in the type of the queries, in rows that the memory-efficient kernel can load where `isAligned`.
Variable NetworkBuilder::addedMask(const Variable& mask, DType dtype, bool isAligned)
{
    if (!ok() || !mask)
        return {};
    const Variable zero = mask.dtype() == DType::Bool ? fill({}, dtype) : Variable();
    Variable added = zero ? where(mask, zero) : cast(mask, dtype);
    const std::int64_t columns = mask.size(-1), more = roundedUp(columns, 8) - columns;
    return isAligned && more > 0 ? narrow(pad(std::move(added), 0, more), -1, columns) : added;
}

Variable NetworkBuilder::mathAttention(Variable query, Variable key, Variable value, bool isCausal,
                                       const Variable& added)
{
    if (!ok())
        return {};
    const DType dtype = query.dtype();
    const std::int64_t heads = query.size(1), rows = query.size(2), columns = key.size(2);
    const auto autocast = recordAutocast({}); // wraps the function, not what is inside of it
    const Variable wideQuery = cast(std::move(query), DType::Float32);
    const Variable wideKey = cast(std::move(key), DType::Float32), wideValue = cast(std::move(value), DType::Float32);
    const Variable scaled = scaleByNumber(wideQuery);
    const Variable keys = repeatedHeads(wideKey, heads), values = repeatedHeads(wideValue, heads);
    Variable mask = added ? cast(added, DType::Float32) : Variable();
    if (isCausal) {
        const Variable seen = compare(fill({rows, columns}, DType::Bool)); // ones().tril()
        mask = addedMask(seen, DType::Float32, false);
    }
    Variable scores = matmul(scaled, scaleByNumber(transpose(keys, -2, -1)));
    if (mask)
        scores = addInPlace(std::move(scores), mask);
    scores = dropout(safeSoftmax(std::move(scores)), m_options.dropout);
    const Variable returned = cast(scores, dtype); // beside the result, made before it
    Variable result = cast(matmul(scores, values), dtype);
    recordAutocast(autocast);
    return result;
}

Variable NetworkBuilder::scaledDotProduct(Variable q, Variable k, Variable v, bool isCausal, const Variable& mask)
{
    if (!ok())
        return {};
    const EagerRules& rules = m_options.rules;
    const bool isLibrarys = m_options.attention == AttentionKernel::Library;
    AttentionPath path =
        m_options.attention == AttentionKernel::Efficient ? AttentionPath::Efficient : AttentionPath::Flash;
    bool repeats = m_options.repeatsHeads || mask || (path == AttentionPath::Efficient && !rules.efficientSharesHeads);
    if (isLibrarys)
        repeats = repeats || q.size(3) != v.size(3) || q.size(3) > widestShared;
    if (repeats) {
        k = repeatedHeads(std::move(k), q.size(1));
        v = repeatedHeads(std::move(v), q.size(1));
    }
    const Variable heldQ = q, heldK = k, heldV = v;
    castEach({&q, &k, &v});
    const Variable castK = k, castV = v; // arguments of the function that autocast wraps
    if (!ok())
        return {};
    if (isLibrarys) {
        const AttentionChoice choice = chosenAttention(rules,
                                                       {.dtype = q.dtype(),
                                                        .width = q.size(3),
                                                        .valueWidth = v.size(3),
                                                        .sharesHeads = k.size(1) != q.size(1),
                                                        .isMasked = bool(mask),
                                                        .dropout = m_options.dropout});
        path = choice.path;
        m_graph.attention = {fmt::format("{}: {}", attentionPathText(path), choice.because),
                             path == AttentionPath::Cudnn};
    }
    isCausal = isCausal && !mask;
    const Variable added = addedMask(mask, q.dtype(), path == AttentionPath::Efficient);
    if (path == AttentionPath::Math)
        return mathAttention(std::move(q), std::move(k), std::move(v), isCausal, added);
    return attentionKernel(path == AttentionPath::Efficient, q, k, v, isCausal, added);
}

Variable NetworkBuilder::attentionKernel(bool isEfficient, Variable& q, Variable& k, Variable& v, bool isCausal,
                                         const Variable& added)
{
    const std::int64_t rows = isEfficient ? roundedUp(q.size(2), 32) : q.size(2);
    Layout result = Layout(Shape{q.size(0), q.size(2), q.size(1), v.size(3)}).transposed(1, 2);
    if (m_options.rules.isOnCpu) { // as the queries lie
        const Layout* const like = &q.layout();
        result = elementwiseLayout(q.shape(), {&like, 1});
    }
    const Layout logSumExp(Shape{q.size(0), q.size(1), rows});
    const DType dtype = q.dtype();
    std::vector<TensorId> kept{q.id(), k.id(), v.id()};
    if (added)
        kept.push_back(added.id());
    begin(isEfficient ? OperatorKind::EfficientAttention : OperatorKind::FlashAttention, kept).attribute =
        attentionAttribute(isCausal, m_options.contextParallel);
    const TensorId output = addOutput({result, dtype}, true);
    kept.push_back(output);
    kept.push_back(addOutput({logSumExp, DType::Float32}, false));
    if (!m_options.rules.isOnCpu) { // state of the random numbers
        kept.push_back(addOutput({Layout(isEfficient ? Shape{} : Shape{2}), DType::Int64}, false));
        kept.push_back(addOutput({Layout(Shape{}), DType::Int64}, false));
    }
    for (const TensorId tensor : kept)
        save(tensor);
    return settled(Variable(*this, output), q, k, v);
}

} // namespace memscape
