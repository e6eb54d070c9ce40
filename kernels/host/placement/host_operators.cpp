// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/placement/host_operators.h"

#include "kernels/host/checkpoint/gelu.h"

#include <algorithm>
#include <cstring>

namespace memscape::host {

namespace {

constexpr double pieceOfProduct = 4e9; // FLOP between two looks at Stop
constexpr std::size_t rowsTogether = 16;

} // namespace

/// In pieces of rows, so that a run stops soon; a row's sums do not depend on them.
void HostOperators::multiply(ProductWork work)
{
    const double perRow = 2.0 * double(work.columns) * double(work.inner);
    const std::size_t piece = std::max<std::size_t>(64, std::size_t(pieceOfProduct / perRow) / 64 * 64);
    const std::size_t rows = work.rows;
    const float* const a = work.a;
    float* const c = work.c;
    for (std::size_t first = 0; first < rows && !m_stopping(); first += piece) {
        work.rows = std::min(piece, rows - first);
        work.a = a + first * (work.aTransposed ? 1 : work.aStride);
        work.c = c + first * work.cStride;
        m_product.run(work, m_scratch);
    }
}

void HostOperators::forward(const GraphNode& node, const float* a, const float* b, float* output, int thread,
                            int threads)
{
    if (node.kind == NodeKind::Matmul) {
        const auto n = std::size_t(node.columns), k = std::size_t(node.inner);
        const Part rows = partOf(std::size_t(node.rows), thread, threads, rowsTogether);
        if (rows.size() > 0)
            multiply({rows.size(), n, k, a + rows.begin * k, k, false, b, n, false, output + rows.begin * n, n});
        return;
    }
    const Part part = partOf(std::size_t(node.outputBytes) / sizeof(float), thread, threads, rowsTogether);
    switch (node.kind) {
    case NodeKind::Add:
        for (std::size_t i = part.begin; i < part.end; ++i)
            output[i] = a[i] + b[i];
        return;
    case NodeKind::Multiply:
        for (std::size_t i = part.begin; i < part.end; ++i)
            output[i] = a[i] * b[i];
        return;
    case NodeKind::Relu:
        for (std::size_t i = part.begin; i < part.end; ++i)
            output[i] = a[i] > 0 ? a[i] : 0;
        return;
    case NodeKind::Gelu: geluRow(a + part.begin, output + part.begin, part.size()); return;
    default: return;
    }
}

void HostOperators::backward(const GraphNode& node, const PlacedBackward& work)
{
    const std::size_t count = std::size_t(node.outputBytes) / sizeof(float);
    const auto m = std::size_t(node.rows), n = std::size_t(node.columns), k = std::size_t(node.inner);
    if (node.kind == NodeKind::Matmul) {
        multiply({k, n, m, work.x, k, true, work.dy, n, false, work.dw, n});
        if (work.dx)
            multiply({m, k, n, work.dy, n, false, work.weights, n, true, work.dx, k});
    } else if (work.dx && node.kind == NodeKind::Gelu) {
        std::memcpy(work.dx, work.dy, count * sizeof(float));
        m_row.assign(n, 0);
        for (std::size_t i = 0; i < m; ++i)
            geluSlopeRow(work.x + i * n, work.dx + i * n, m_row.data(), n);
    } else if (work.dx) {
        for (std::size_t i = 0; i < count; ++i)
            work.dx[i] = work.x[i] > 0 ? work.dy[i] : 0;
    }
}

void HostOperators::lossGradient(float* y, std::size_t count)
{
    static_cast<void>(lossRow(y, y, 0, count, double(count)));
}

} // namespace memscape::host
