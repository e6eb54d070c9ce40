// SPDX-License-Identifier: Apache-2.0
// Standard attention: three passes over memory forward, five backward, as a framework runs them,
// over all heads before the next pass begins:
//     S = Q Kᵀ      P = softmax(S / √d) row by row      O = P V
//     dV = Pᵀ dO    dP = dO Vᵀ    dS = P ∘ (dP − D) / √d    dQ = dS K    dK = dSᵀ Q
// S, P, dP and dS are arrays of queries × keys in the format of the inputs. Version 2 lets softmax
// overwrite S and dS overwrite dP. Products are the host's product (kernels/host/common/product.h) or the
// system's OpenBLAS, whichever is faster; a causal mask saves them nothing, the softmax applies it.
//
// Halves are converted block by block into floats, multiplied, and rounded when a block of the
// result is complete: sums run in float over the whole length.
#include "core/base/rounding.h"
#include "kernels/host/attention/attention_work.h"
#include "kernels/host/attention/softmax.h"
#include "kernels/host/precision/convert.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::int64_t rowSlab = 256, block = 512;
constexpr std::int64_t softmaxRows = 16;

/// A matrix inside a tensor. Transposed: rows and columns as they are read.
struct Operand
{
    const std::byte* data = nullptr;
    std::int64_t stride = 0; ///< elements from row to row, as it lies
    bool isTransposed = false;

    const std::byte* at(std::int64_t row, std::int64_t column, std::int64_t size) const
    {
        return data + std::size_t((isTransposed ? column * stride + row : row * stride + column) * size);
    }
};

/// C (rows × columns) = Σ over pairs of A · B, C in the format.
struct Multiplication
{
    std::int64_t rows = 0, columns = 0, inner = 0;
    std::int64_t pairs = 1;
    std::int64_t nextA = 0, nextB = 0; ///< bytes from one pair to the next
    Operand a, b;
    std::byte* c = nullptr;
    std::int64_t cStride = 0;
};

class StandardAttention final : public AttentionKernel
{
public:
    StandardAttention(HostSession& session, bool inPlace, ProductKernel product)
        : m_session(session)
        , m_isInPlace(inPlace)
        , m_product(std::move(product))
        , m_scratch(std::size_t(session.team().size()))
        , m_blocks(m_scratch.size())
    { }
    Result<void> forward(const AttentionWork& work) override;
    Result<void> backward(const AttentionWork& work) override;
    std::int64_t tileBytes() const override
    {
        std::size_t floats = 0;
        for (std::size_t i = 0; i < m_scratch.size(); ++i)
            floats += m_scratch[i].size() + m_blocks[i].size();
        return std::int64_t(floats * sizeof(float));
    }
    Json method() const override
    {
        return {{"product", m_product.name}, {"in_place", m_isInPlace}, {"elementwise", isaText(widestIsa())}};
    }

private:
    void multiply(int thread, const Multiplication& work, DType dtype);
    void multiplyFloats(int thread, const Multiplication& work);
    void multiplyBlock(int thread, const Multiplication& work, DType dtype, std::int64_t row, std::int64_t column);
    /// The multiplication of every plane, in slabs of rows; `make` gives that of a plane.
    template <typename Make>
    Result<void> overSlabs(DType dtype, std::int64_t planes, std::int64_t rows, const Make& make);
    Result<void> softmax(const AttentionWork& work, std::byte* from, std::byte* to);
    Result<void> softmaxBackward(const AttentionWork& work, std::byte* to);

    HostSession& m_session;
    bool m_isInPlace;
    ProductKernel m_product;
    std::vector<ProductScratch> m_scratch; ///< of the product, per thread
    AttentionScratch m_blocks;             ///< converted blocks, per thread
};

void StandardAttention::multiplyFloats(int thread, const Multiplication& w)
{
    for (std::int64_t pair = 0; pair < w.pairs; ++pair) {
        m_product.run({std::size_t(w.rows), std::size_t(w.columns), std::size_t(w.inner),
                       reinterpret_cast<const float*>(w.a.data + pair * w.nextA), std::size_t(w.a.stride),
                       w.a.isTransposed, reinterpret_cast<const float*>(w.b.data + pair * w.nextB),
                       std::size_t(w.b.stride), w.b.isTransposed, reinterpret_cast<float*>(w.c), std::size_t(w.cStride),
                       pair > 0},
                      m_scratch[std::size_t(thread)]);
    }
}

/// Rows of a block as it lies, converted: `rows` × `columns` of the operand as read.
void widenBlock(const Operand& operand, DType dtype, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t columns, float* to)
{
    const std::int64_t lines = operand.isTransposed ? columns : rows;
    const std::int64_t length = operand.isTransposed ? rows : columns;
    for (std::int64_t i = 0; i < lines; ++i) {
        const std::byte* from = operand.isTransposed ? operand.at(row, column + i, elementBytes(dtype))
                                                     : operand.at(row + i, column, elementBytes(dtype));
        widenRow(from, dtype, to + i * length, std::size_t(length));
    }
}

void StandardAttention::multiplyBlock(int thread, const Multiplication& w, DType dtype, std::int64_t row,
                                      std::int64_t column)
{
    auto& scratch = m_blocks[std::size_t(thread)];
    scratch.resize(std::size_t(rowSlab * block + block * block + rowSlab * block));
    float* const a = scratch.data();
    float* const b = a + rowSlab * block;
    float* const c = b + block * block;
    const std::int64_t rows = std::min(rowSlab, w.rows - row);
    const std::int64_t columns = std::min(block, w.columns - column);
    bool adds = false;
    for (std::int64_t pair = 0; pair < w.pairs; ++pair) {
        Operand left = w.a, right = w.b;
        left.data += pair * w.nextA;
        right.data += pair * w.nextB;
        for (std::int64_t term = 0; term < w.inner; term += block, adds = true) {
            const std::int64_t terms = std::min(block, w.inner - term);
            widenBlock(left, dtype, row, term, rows, terms, a);
            widenBlock(right, dtype, term, column, terms, columns, b);
            m_product.run({std::size_t(rows), std::size_t(columns), std::size_t(terms), a,
                           std::size_t(left.isTransposed ? rows : terms), left.isTransposed, b,
                           std::size_t(right.isTransposed ? terms : columns), right.isTransposed, c,
                           std::size_t(columns), adds},
                          m_scratch[std::size_t(thread)]);
        }
    }
    for (std::int64_t i = 0; i < rows; ++i)
        narrowRow(c + i * columns, dtype, w.c + std::size_t(((row + i) * w.cStride + column) * elementBytes(dtype)),
                  std::size_t(columns));
}

void StandardAttention::multiply(int thread, const Multiplication& work, DType dtype)
{
    if (dtype == DType::Float32)
        return multiplyFloats(thread, work);
    for (std::int64_t row = 0; row < work.rows; row += rowSlab) {
        for (std::int64_t column = 0; column < work.columns; column += block)
            multiplyBlock(thread, work, dtype, row, column);
    }
}

template <typename Make>
Result<void> StandardAttention::overSlabs(DType dtype, std::int64_t planes, std::int64_t rows, const Make& make)
{
    // Whole planes when there are many; slabs of a plane when a thread would wait.
    const std::int64_t threads = m_session.team().size();
    const std::int64_t wanted = planes >= 2 * threads ? block : quotientUp(rows, threads);
    const std::int64_t slab = std::clamp<std::int64_t>(wanted, 1, block);
    const std::int64_t slabs = quotientUp(rows, slab);
    return overPieces(m_session, planes * slabs, [&](int thread, std::int64_t index) {
        Multiplication work = make(index / slabs);
        const std::int64_t first = index % slabs * slab, size = elementBytes(dtype);
        work.a.data = work.a.at(first, 0, size);
        work.c += std::size_t(first * work.cStride * size);
        work.rows = std::min(slab, rows - first);
        multiply(thread, work, dtype);
    });
}

Result<void> StandardAttention::softmax(const AttentionWork& work, std::byte* from, std::byte* to)
{
    const AttentionShape& shape = work.shape;
    const float scale = 1 / std::sqrt(float(shape.headDim));
    const std::int64_t rows = shape.queryRows();
    return overPieces(m_session, quotientUp(rows, softmaxRows), [&](int thread, std::int64_t piece) {
        const auto keys = std::size_t(shape.keys);
        auto& line = m_blocks[std::size_t(thread)];
        line.resize(std::max(line.size(), keys));
        const std::int64_t end = std::min((piece + 1) * softmaxRows, rows);
        for (std::int64_t row = piece * softmaxRows; row < end; ++row) {
            const auto seen = std::size_t(work.visible(row % shape.queries));
            widenRow(from + work.scoreOffset(row), work.dtype, line.data(), seen);
            softmaxRow(line.data(), seen, scale);
            std::fill(line.data() + seen, line.data() + keys, 0.0F);
            narrowRow(line.data(), work.dtype, to + work.scoreOffset(row), keys);
        }
    });
}

Result<void> StandardAttention::softmaxBackward(const AttentionWork& work, std::byte* to)
{
    const AttentionShape& shape = work.shape;
    const float scale = 1 / std::sqrt(float(shape.headDim));
    const std::int64_t rows = shape.queryRows();
    return overPieces(m_session, quotientUp(rows, softmaxRows), [&](int thread, std::int64_t piece) {
        const auto keys = std::size_t(shape.keys);
        auto& lines = m_blocks[std::size_t(thread)];
        lines.resize(std::max(lines.size(), 2 * keys));
        float *const p = lines.data(), *const dp = p + keys;
        const std::int64_t end = std::min((piece + 1) * softmaxRows, rows);
        for (std::int64_t row = piece * softmaxRows; row < end; ++row) {
            widenRow(work.p + work.scoreOffset(row), work.dtype, p, keys);
            widenRow(work.dp + work.scoreOffset(row), work.dtype, dp, keys);
            softmaxSlopeRow(p, dp, keys, scale);
            narrowRow(dp, work.dtype, to + work.scoreOffset(row), keys);
        }
    });
}

Result<void> StandardAttention::forward(const AttentionWork& w)
{
    const AttentionShape& shape = w.shape;
    const std::int64_t d = shape.headDim;
    std::byte* const s = m_isInPlace ? w.p : w.s;
    const auto keyPlane = [&](std::int64_t plane) {
        return attentionKeyPlane(plane, shape.heads, shape.kvHeads) * shape.keys;
    };
    MEMSCAPE_CHECK(overSlabs(w.dtype, w.planes(), shape.queries, [&](std::int64_t plane) {
        const std::int64_t row = plane * shape.queries;
        return Multiplication{shape.queries,
                              shape.keys,
                              d,
                              1,
                              0,
                              0,
                              {w.q + w.rowOffset(row), d, false},
                              {w.k + w.rowOffset(keyPlane(plane)), d, true},
                              s + w.scoreOffset(row),
                              shape.keys};
    }));
    MEMSCAPE_CHECK(softmax(w, s, w.p));
    return overSlabs(w.dtype, w.planes(), shape.queries, [&](std::int64_t plane) {
        const std::int64_t row = plane * shape.queries;
        return Multiplication{shape.queries,
                              d,
                              shape.keys,
                              1,
                              0,
                              0,
                              {w.p + w.scoreOffset(row), shape.keys, false},
                              {w.v + w.rowOffset(keyPlane(plane)), d, false},
                              w.output + w.rowOffset(row),
                              d};
    });
}

Result<void> StandardAttention::backward(const AttentionWork& w)
{
    const AttentionShape& shape = w.shape;
    const std::int64_t d = shape.headDim, group = w.group();
    std::byte* const ds = m_isInPlace ? w.dp : w.ds;
    const auto nextRows = std::int64_t(w.rowOffset(shape.queries));
    const auto nextScores = std::int64_t(w.scoreOffset(shape.queries));
    /// dV = Pᵀ dO, dK = dSᵀ Q: over the heads of a group.
    const auto toKeys = [&](const std::byte* scores, const std::byte* rows, std::byte* result) {
        return overSlabs(w.dtype, w.keyPlanes(), shape.keys, [=, &w](std::int64_t plane) {
            const std::int64_t row = plane * group * w.shape.queries;
            return Multiplication{w.shape.keys,
                                  d,
                                  w.shape.queries,
                                  group,
                                  nextScores,
                                  nextRows,
                                  {scores + w.scoreOffset(row), w.shape.keys, true},
                                  {rows + w.rowOffset(row), d, false},
                                  result + w.rowOffset(plane * w.shape.keys),
                                  d};
        });
    };
    const auto keyRow = [&](std::int64_t plane) {
        return attentionKeyPlane(plane, shape.heads, shape.kvHeads) * shape.keys;
    };
    MEMSCAPE_CHECK(toKeys(w.p, w.outputGradient, w.dv));
    MEMSCAPE_CHECK(overSlabs(w.dtype, w.planes(), shape.queries, [&](std::int64_t plane) {
        const std::int64_t row = plane * shape.queries;
        return Multiplication{shape.queries,
                              shape.keys,
                              d,
                              1,
                              0,
                              0,
                              {w.outputGradient + w.rowOffset(row), d, false},
                              {w.v + w.rowOffset(keyRow(plane)), d, true},
                              w.dp + w.scoreOffset(row),
                              shape.keys};
    }));
    MEMSCAPE_CHECK(softmaxBackward(w, ds));
    MEMSCAPE_CHECK(overSlabs(w.dtype, w.planes(), shape.queries, [&](std::int64_t plane) {
        const std::int64_t row = plane * shape.queries;
        return Multiplication{shape.queries,
                              d,
                              shape.keys,
                              1,
                              0,
                              0,
                              {ds + w.scoreOffset(row), shape.keys, false},
                              {w.k + w.rowOffset(keyRow(plane)), d, false},
                              w.dq + w.rowOffset(row),
                              d};
    }));
    return toKeys(ds, w.q, w.dk);
}

} // namespace

std::unique_ptr<AttentionKernel> makeStandardAttention(HostSession& session, bool inPlace, const ProductKernel& product)
{
    return std::make_unique<StandardAttention>(session, inPlace, product);
}

} // namespace memscape::host
