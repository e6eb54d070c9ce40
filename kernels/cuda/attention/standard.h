// SPDX-License-Identifier: Apache-2.0
// The middle of standard attention: softmax over the rows of S, and its gradient, as kernels of their
// own. S = Q Kᵀ and O = P V before and after are products (tensor_product.h, cublas_lt.h, product.cu).
//
//   P = softmax(scale S), zero where a row sees nothing           reads S, writes P
//   dS = scale P ∘ (dP − Σ P ∘ dP)                                reads P and dP, writes dS
//
// A block has one row. The maximum and the sum of a row are taken in one pass (each thread keeps a
// running softmax, which are then merged), and the row is read again, from the caches, to be written:
// to memory it is one read and one write per element, and nothing here can make it less. That is what
// flash attention removes. 16 bytes a thread where rows are whole chunks: with the 2 bytes of a half
// an H200 copies at a third of its bandwidth. A result may lie where its input lay.
//
// Left out: rows kept in registers between the passes, several short rows in a block.
#pragma once

#include "kernels/cuda/attention/tiles.h"

namespace memscape::cuda {

constexpr int softmaxThreads = 256, softmaxWarps = softmaxThreads / 32;
constexpr int softmaxSharedBytes = 2 * softmaxWarps * int(sizeof(float));

/// So many elements as travel together: 16 bytes, or one.
template <typename Element, int count> struct alignas(sizeof(Element) * count) Pack
{
    Element at[count];
};

/// visit(element's index, pack) for this thread's packs of a row of `length`.
template <typename Element, int count, typename Machine, typename Visit>
MEMSCAPE_KERNEL void eachPack(Machine& m, const Element* row, int length, const Visit& visit)
{
    using Packed = Pack<Element, count>;
    MEMSCAPE_NO_UNROLL
    for (int i = m.thread() * count; i < length; i += softmaxThreads * count)
        visit(i, m.load(reinterpret_cast<const Packed*>(row + i)));
}

/// All threads' values by `merge`, in a fixed order; every thread gets the result.
template <typename Machine, typename Merge>
MEMSCAPE_KERNEL float mergeBlock(Machine& m, float value, std::uint32_t at, const Merge& merge)
{
    MEMSCAPE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2)
        value = merge(value, m.shuffleXor(value, distance));
    if (m.thread() % 32 == 0)
        m.storeShared(at + std::uint32_t(m.thread() / 32 * 4), value);
    m.syncThreads();
    value = m.template loadShared<float>(at);
    MEMSCAPE_UNROLL
    for (int warp = 1; warp < softmaxWarps; ++warp)
        value = merge(value, m.template loadShared<float>(at + std::uint32_t(warp * 4)));
    return value;
}

/// A row of a softmax as it lies in memory.
template <typename Element> struct SoftmaxRow
{
    const Element* scores;
    Element* weights;
    int visible; ///< the first so many are seen
    int length;
    float scale;
};

template <typename Element, int count, typename Machine>
MEMSCAPE_KERNEL void softmaxRow(Machine& m, const SoftmaxRow<Element>& row)
{
    using Packed = Pack<Element, count>;
    RunningSoftmax own;
    const float scale = row.scale * logTwoOfE;
    const auto scaled = [&](float difference) { return m.powerOfTwo(difference * scale); };
    eachPack<Element, count>(m, row.scores, row.visible, [&](int first, const Packed& pack) {
        MEMSCAPE_UNROLL
        for (int i = 0; i < count; ++i) {
            if (first + i >= row.visible)
                continue;
            const float score = m.template widen<Element>(pack.at[i]);
            raisedTo(own, score, scaled);
            own.sum += scaled(score - own.maximum);
        }
    });
    const float most = mergeBlock(m, own.maximum, 0, [](float a, float b) { return a > b ? a : b; });
    raisedTo(own, most, scaled);
    const float sum = mergeBlock(m, own.sum, softmaxWarps * 4, [](float a, float b) { return a + b; });
    const float share = 1.0F / sum;
    eachPack<Element, count>(m, row.scores, row.length, [&](int first, const Packed& pack) {
        Packed weights;
        MEMSCAPE_UNROLL
        for (int i = 0; i < count; ++i) {
            const float score = m.template widen<Element>(pack.at[i]);
            weights.at[i] = m.template narrow<Element>(first + i < row.visible ? scaled(score - most) * share : 0.0F);
        }
        m.store(reinterpret_cast<Packed*>(row.weights + first), weights);
    });
}

template <typename Element, int count, typename Machine>
MEMSCAPE_KERNEL void softmaxGradientRow(Machine& m, const Element* weights, const Element* gradient, Element* result,
                                        int length, float scale)
{
    using Packed = Pack<Element, count>;
    float own = 0;
    eachPack<Element, count>(m, weights, length, [&](int first, const Packed& p) {
        const Packed g = m.load(reinterpret_cast<const Packed*>(gradient + first));
        MEMSCAPE_UNROLL
        for (int i = 0; i < count; ++i)
            own += m.template widen<Element>(p.at[i]) * m.template widen<Element>(g.at[i]);
    });
    const float delta = mergeBlock(m, own, 0, [](float a, float b) { return a + b; });
    eachPack<Element, count>(m, weights, length, [&](int first, const Packed& p) {
        const Packed g = m.load(reinterpret_cast<const Packed*>(gradient + first));
        Packed ds;
        MEMSCAPE_UNROLL
        for (int i = 0; i < count; ++i)
            ds.at[i] = m.template narrow<Element>(scale * m.template widen<Element>(p.at[i])
                                                  * (m.template widen<Element>(g.at[i]) - delta));
        m.store(reinterpret_cast<Packed*>(result + first), ds);
    });
}

struct SoftmaxArguments
{
    const void* scores = nullptr;   ///< gradient: P
    const void* gradient = nullptr; ///< dP
    void* result = nullptr;
    float scale = 1;
};

/// Block x: row x of all planes. Forward, or the gradient.
template <typename Element, bool isGradient, typename Machine>
MEMSCAPE_KERNEL void standardSoftmax(Machine& m, const AttentionSizes& s, const SoftmaxArguments& w)
{
    constexpr int whole = chunkBytes / int(sizeof(Element));
    const std::int64_t start = std::int64_t(m.blockX()) * s.keys;
    const auto* scores = static_cast<const Element*>(w.scores) + start;
    auto* result = static_cast<Element*>(w.result) + start;
    const bool isAligned = s.keys % whole == 0;
    if constexpr (isGradient) {
        const auto* gradient = static_cast<const Element*>(w.gradient) + start;
        if (isAligned)
            softmaxGradientRow<Element, whole>(m, scores, gradient, result, s.keys, w.scale);
        else
            softmaxGradientRow<Element, 1>(m, scores, gradient, result, s.keys, w.scale);
    } else {
        const int row = m.blockX() % s.queries;
        const SoftmaxRow<Element> view{scores, result, int(attentionVisibleKeys(row, s.queries, s.keys, s.causal)),
                                       s.keys, w.scale};
        if (isAligned)
            softmaxRow<Element, whole>(m, view);
        else
            softmaxRow<Element, 1>(m, view);
    }
}

} // namespace memscape::cuda
