// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 1: one row at a time. A query takes the keys one by one; its running
// maximum and sum (kernels/programs/attention/attention_numbers.h) are all that it remembers of them, and its
// part of O is multiplied by e^(m − m') whenever the maximum rises. Backward without a matrix and
// without sharing: a sweep over keys makes dK and dV, one over queries dQ, and each computes S and
// dP again: seven products where five would do.
#include "core/base/rounding.h"
#include "kernels/host/attention/attention_work.h"
#include "kernels/host/precision/convert.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::int64_t rowsPerPiece = 16;

float dot(const float* a, const float* b, std::size_t count)
{
    float sum = 0;
    for (std::size_t j = 0; j < count; ++j)
        sum += a[j] * b[j];
    return sum;
}

/// A row as floats: the memory itself, or converted into `scratch`.
const float* rowOf(const std::byte* tensor, const AttentionWork& work, std::int64_t row, std::vector<float>& scratch)
{
    const std::byte* from = tensor + work.rowOffset(row);
    if (work.dtype == DType::Float32)
        return reinterpret_cast<const float*>(from);
    scratch.resize(std::size_t(work.shape.headDim));
    widenRow(from, work.dtype, scratch.data(), scratch.size());
    return scratch.data();
}

class RowAttention final : public AttentionKernel
{
public:
    explicit RowAttention(HostSession& session)
        : m_session(session)
    { }
    Result<void> forward(const AttentionWork& work) override;
    Result<void> backward(const AttentionWork& work) override;
    std::int64_t tileBytes() const override { return 0; }
    Json method() const override { return {{"rows_at_a_time", 1}}; }

private:
    void forwardRow(const AttentionWork& work, std::int64_t row) const;
    void queryGradient(const AttentionWork& work, std::int64_t row) const;
    void keyGradients(const AttentionWork& work, std::int64_t keyRow) const;

    HostSession& m_session;
};

void RowAttention::forwardRow(const AttentionWork& work, std::int64_t row) const
{
    const AttentionShape& shape = work.shape;
    const auto d = std::size_t(shape.headDim);
    const float scale = 1 / std::sqrt(float(d));
    const std::int64_t firstKey = attentionKeyPlane(row / shape.queries, shape.heads, shape.kvHeads) * shape.keys;
    std::vector<float> qHalf, kHalf, vHalf, sums(d, 0.0F);
    const float* q = rowOf(work.q, work, row, qHalf);
    RunningSoftmax softmax;
    const std::int64_t visible = work.visible(row % shape.queries);
    for (std::int64_t key = 0; key < visible; ++key) {
        const float s = scale * dot(q, rowOf(work.k, work, firstKey + key, kHalf), d);
        if (s > softmax.maximum) {
            const float factor = raisedTo(softmax, s, [](float x) { return std::exp(x); });
            for (float& sum : sums)
                sum *= factor;
        }
        const float p = std::exp(s - softmax.maximum);
        softmax.sum += p;
        const float* v = rowOf(work.v, work, firstKey + key, vHalf);
        for (std::size_t j = 0; j < d; ++j)
            sums[j] += p * v[j];
    }
    for (float& sum : sums)
        sum /= softmax.sum;
    narrowRow(sums.data(), work.dtype, work.output + work.rowOffset(row), d);
    work.logSumExp[row] = softmax.maximum + std::log(softmax.sum);
}

void RowAttention::queryGradient(const AttentionWork& work, std::int64_t row) const
{
    const AttentionShape& shape = work.shape;
    const auto d = std::size_t(shape.headDim);
    const float scale = 1 / std::sqrt(float(d));
    const std::int64_t firstKey = attentionKeyPlane(row / shape.queries, shape.heads, shape.kvHeads) * shape.keys;
    std::vector<float> qHalf, gHalf, kHalf, vHalf, sums(d, 0.0F);
    const float* q = rowOf(work.q, work, row, qHalf);
    const float* g = rowOf(work.outputGradient, work, row, gHalf);
    const std::int64_t visible = work.visible(row % shape.queries);
    for (std::int64_t key = 0; key < visible; ++key) {
        const float* k = rowOf(work.k, work, firstKey + key, kHalf);
        const float p = std::exp(scale * dot(q, k, d) - work.logSumExp[row]);
        const float dp = dot(g, rowOf(work.v, work, firstKey + key, vHalf), d);
        const float ds = scale * p * (dp - work.rowSums[row]);
        for (std::size_t j = 0; j < d; ++j)
            sums[j] += ds * k[j];
    }
    narrowRow(sums.data(), work.dtype, work.dq + work.rowOffset(row), d);
}

void RowAttention::keyGradients(const AttentionWork& work, std::int64_t keyRow) const
{
    const AttentionShape& shape = work.shape;
    const auto d = std::size_t(shape.headDim);
    const float scale = 1 / std::sqrt(float(d));
    std::vector<float> qHalf, gHalf, kHalf, vHalf, keySums(d, 0.0F), valueSums(d, 0.0F);
    const float* k = rowOf(work.k, work, keyRow, kHalf);
    const float* v = rowOf(work.v, work, keyRow, vHalf);
    const std::int64_t firstPlane = keyRow / shape.keys * work.group();
    for (std::int64_t plane = firstPlane; plane < firstPlane + work.group(); ++plane) {
        for (std::int64_t query = work.firstQuery(keyRow % shape.keys); query < shape.queries; ++query) {
            const std::int64_t row = plane * shape.queries + query;
            const float* q = rowOf(work.q, work, row, qHalf);
            const float* g = rowOf(work.outputGradient, work, row, gHalf);
            const float p = std::exp(scale * dot(q, k, d) - work.logSumExp[row]);
            const float ds = scale * p * (dot(g, v, d) - work.rowSums[row]);
            for (std::size_t j = 0; j < d; ++j) {
                valueSums[j] += p * g[j];
                keySums[j] += ds * q[j];
            }
        }
    }
    narrowRow(keySums.data(), work.dtype, work.dk + work.rowOffset(keyRow), d);
    narrowRow(valueSums.data(), work.dtype, work.dv + work.rowOffset(keyRow), d);
}

/// body(row) for every row below `rows`, in pieces.
template <typename Body> Result<void> overRows(HostSession& session, std::int64_t rows, const Body& body)
{
    return overPieces(session, quotientUp(rows, rowsPerPiece), [&](int, std::int64_t piece) {
        const std::int64_t end = std::min((piece + 1) * rowsPerPiece, rows);
        for (std::int64_t row = piece * rowsPerPiece; row < end; ++row)
            body(row);
    });
}

Result<void> RowAttention::forward(const AttentionWork& work)
{
    return overRows(m_session, work.shape.queryRows(), [&](std::int64_t row) { forwardRow(work, row); });
}

Result<void> RowAttention::backward(const AttentionWork& work)
{
    MEMSCAPE_CHECK(attentionRowSums(m_session, work));
    MEMSCAPE_CHECK(overRows(m_session, work.shape.keyRows(), [&](std::int64_t row) { keyGradients(work, row); }));
    return overRows(m_session, work.shape.queryRows(), [&](std::int64_t row) { queryGradient(work, row); });
}

} // namespace

Result<void> attentionRowSums(HostSession& session, const AttentionWork& work)
{
    return overRows(session, work.shape.queryRows(), [&](std::int64_t row) {
        std::vector<float> outputHalf, gradientHalf;
        work.rowSums[row] = dot(rowOf(work.output, work, row, outputHalf),
                                rowOf(work.outputGradient, work, row, gradientHalf), std::size_t(work.shape.headDim));
    });
}

std::unique_ptr<AttentionKernel> makeRowAttention(HostSession& session)
{
    return std::make_unique<RowAttention>(session);
}

} // namespace memscape::host
