// SPDX-License-Identifier: Apache-2.0
// What the tensor-core kernels are made of: a tile of rows brought into shared memory, products of a
// warp's rows with a tile, either way round, and the softmax of scores that lie in registers. A warp
// owns 16 rows times `strips`; of every 16 × 8 block of sums a lane holds four (fragments.h).
//
//   scores  S += A Tᵀ   tile rows are the columns of S: ldmatrix as it lies
//   values  O += P T    tile rows are the depth: ldmatrix.trans
//
// Machine is the GPU (gpu_machine.cuh) or the tests' emulator.
#pragma once

#include "kernels/cuda/attention/fragments.h"
#include "kernels/cuda/attention/softmax.h"

namespace memscape::cuda {

/// 16 bytes as they travel.
struct alignas(16) Chunk
{
    std::uint32_t a, b, c, d;
};

/// Rows that lie one after the other in memory, of which those from `count` on do not exist.
template <typename Element> struct Rows
{
    const Element* data;
    int count;
};

/// Sums of a warp: strips of 16 rows by `blocks` of 8 columns.
template <int strips, int blocks> struct Sums
{
    float at[strips][blocks][4];
    template <typename Machine> MEMSCAPE_KERNEL void clear(Machine&)
    {
        MEMSCAPE_UNROLL
        for (int s = 0; s < strips; ++s) {
            MEMSCAPE_UNROLL
            for (int b = 0; b < blocks; ++b) {
                MEMSCAPE_UNROLL
                for (int r = 0; r < 4; ++r)
                    at[s][b][r] = 0;
            }
        }
    }
};

// ---- memory to shared memory ------------------------------------------------------------------

/// Rows firstRow … firstRow + rows - 1 into the tile at `at`; zeros where there are none.
template <typename Layout, int rows, int threads, typename Machine, typename Element>
MEMSCAPE_KERNEL void copyTile(Machine& m, std::uint32_t at, const Rows<Element>& from, int firstRow)
{
    constexpr int chunks = Layout::chunksPerRow, step = rowsPerTurn<chunks, threads>();
    static_assert(rows % step == 0, "every thread copies equally many chunks");
    const TilePlace place = firstChunk<chunks>(m.thread());
    const int row = firstRow + place.row;
    const Element* source = from.data + (std::int64_t(row) * chunks + place.column) * chunkElements;
    const std::uint32_t to = at + Layout::at(place.row, place.column);
    MEMSCAPE_UNROLL
    for (int down = 0; down < rows; down += step) {
        Chunk chunk{0, 0, 0, 0};
        if (row + down < from.count)
            chunk = m.load(reinterpret_cast<const Chunk*>(source + down * chunks * chunkElements));
        m.storeShared(to + std::uint32_t(down * Layout::rowBytes), chunk);
    }
}

/// The same without passing registers, and without waiting.
template <typename Layout, int rows, int threads, typename Machine, typename Element>
MEMSCAPE_KERNEL void copyTileAsync(Machine& m, std::uint32_t at, const Rows<Element>& from, int firstRow)
{
    constexpr int chunks = Layout::chunksPerRow, step = rowsPerTurn<chunks, threads>();
    static_assert(rows % step == 0, "every thread copies equally many chunks");
    const TilePlace place = firstChunk<chunks>(m.thread());
    const int row = firstRow + place.row;
    const Element* source = from.data + (std::int64_t(row) * chunks + place.column) * chunkElements;
    const std::uint32_t to = at + Layout::at(place.row, place.column);
    MEMSCAPE_UNROLL
    for (int down = 0; down < rows; down += step)
        m.copyAsync(to + std::uint32_t(down * Layout::rowBytes), source + down * chunks * chunkElements,
                    row + down < from.count);
}

// ---- shared memory to fragments ---------------------------------------------------------------

/// Where a lane points at for A's rows from `row` on, a multiple of 8, at depth 0.
template <typename Layout, typename Machine>
MEMSCAPE_KERNEL std::uint32_t leftOfLane(Machine& m, std::uint32_t at, int row)
{
    const TilePlace place = matrixRowDownFirst(m.thread() % 32);
    return at + Layout::at(row + place.row, place.column);
}
/// A: 16 rows from `row` on, 16 elements of depth from chunk `chunk` on.
template <typename Layout, typename Machine>
MEMSCAPE_KERNEL void loadLeft(Machine& m, std::uint32_t (&a)[4], std::uint32_t at, int row, int chunk)
{
    m.loadMatrices(a, Layout::further(leftOfLane<Layout>(m, at, row), chunk));
}
/// The same of `strips` strips, `left` being where the lane points at: the strips are whole swizzles
/// apart, so that one address serves for all of them.
template <typename Layout, int strips, typename Machine>
MEMSCAPE_KERNEL void loadLeft(Machine& m, std::uint32_t (&a)[strips][4], std::uint32_t left, int chunk)
{
    MEMSCAPE_UNROLL
    for (int s = 0; s < strips; ++s)
        m.loadMatrices(a[s], Layout::further(left, chunk) + std::uint32_t(s * mmaRows * Layout::rowBytes));
}

/// S += A Tᵀ for one step of depth 16: A's fragments are given, T's rows from `row` on are the
/// 8 × blocks columns of S.
template <typename Element, typename Layout, int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void addScores(Machine& m, Sums<strips, blocks>& sums, const std::uint32_t (&a)[strips][4],
                               std::uint32_t at, int chunk)
{
    const TilePlace place = matrixRowAcrossFirst(m.thread() % 32);
    const std::uint32_t lane = Layout::further(at + Layout::at(place.row, place.column), chunk);
    MEMSCAPE_UNROLL
    for (int b = 0; b < blocks; b += 2) {
        std::uint32_t right[4];
        m.loadMatrices(right, lane + std::uint32_t(b * 8 * Layout::rowBytes));
        MEMSCAPE_UNROLL
        for (int s = 0; s < strips; ++s) {
            m.template multiply<Element>(sums.at[s][b], a[s], right[0], right[1]);
            m.template multiply<Element>(sums.at[s][b + 1], a[s], right[2], right[3]);
        }
    }
}

/// Where a lane points at for the columns of T from chunk `chunk` (even) on, at T's first row.
template <typename Layout, typename Machine>
MEMSCAPE_KERNEL std::uint32_t valuesOfLane(Machine& m, std::uint32_t at, int chunk)
{
    const TilePlace place = matrixRowDownFirst(m.thread() % 32);
    return Layout::further(at + Layout::at(place.row, place.column), chunk);
}
/// O += P T for 16 rows of the tile, from `row` on; the columns of T are those of O, from where `lane`
/// points at.
template <typename Element, typename Layout, int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void addValuesFrom(Machine& m, Sums<strips, blocks>& sums, const std::uint32_t (&p)[strips][4],
                                   std::uint32_t lane, int row)
{
    MEMSCAPE_UNROLL
    for (int b = 0; b < blocks; b += 2) {
        std::uint32_t right[4];
        m.loadMatricesTransposed(right, Layout::further(lane, b) + std::uint32_t(row * Layout::rowBytes));
        MEMSCAPE_UNROLL
        for (int s = 0; s < strips; ++s) {
            m.template multiply<Element>(sums.at[s][b], p[s], right[0], right[1]);
            m.template multiply<Element>(sums.at[s][b + 1], p[s], right[2], right[3]);
        }
    }
}
/// The same where O has all columns of T.
template <typename Element, typename Layout, int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void addValues(Machine& m, Sums<strips, blocks>& sums, const std::uint32_t (&p)[strips][4],
                               std::uint32_t at, int row)
{
    addValuesFrom<Element, Layout>(m, sums, p, valuesOfLane<Layout>(m, at, 0), row);
}

/// Two blocks of sums side by side as a left side of depth 16, rounded to the element format.
template <typename Element, typename Machine>
MEMSCAPE_KERNEL void asLeft(Machine& m, std::uint32_t (&a)[4], const float (&left)[4], const float (&right)[4])
{
    a[0] = m.template pack<Element>(left[0], left[1]);
    a[1] = m.template pack<Element>(left[2], left[3]);
    a[2] = m.template pack<Element>(right[0], right[1]);
    a[3] = m.template pack<Element>(right[2], right[3]);
}

// ---- softmax of a warp's rows -----------------------------------------------------------------

/// Sets to −∞ what row `row` + … may not see of the keys from `key` on.
template <int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void maskScores(Machine& m, Sums<strips, blocks>& scores, const AttentionSizes& s, int row, int key)
{
    MEMSCAPE_UNROLL
    for (int strip = 0; strip < strips; ++strip) {
        MEMSCAPE_UNROLL
        for (int b = 0; b < blocks; ++b) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r) {
                const TilePlace place = placeInD(m.thread() % 32, r);
                if (!sees(s, row + strip * 16 + place.row, key + b * 8 + place.column))
                    scores.at[strip][b][r] = -INFINITY;
            }
        }
    }
}

/// A row's value from those of the four lanes that share it.
template <typename Machine> MEMSCAPE_KERNEL float rowMaximum(Machine& m, float value)
{
    value = m.maximum(value, m.shuffleXor(value, 1));
    return m.maximum(value, m.shuffleXor(value, 2));
}
/// The largest of `least` and a lane's own scores of row group, or of group + 8.
template <int blocks, typename Machine>
MEMSCAPE_KERNEL float laneMaximum(Machine& m, const float (&scores)[blocks][4], int half, float least)
{
    MEMSCAPE_UNROLL
    for (int b = 0; b < blocks; ++b)
        least = m.maximum(least, m.maximum(scores[b][2 * half], scores[b][2 * half + 1]));
    return least;
}
template <typename Machine> MEMSCAPE_KERNEL float rowSum(Machine& m, float value)
{
    value += m.shuffleXor(value, 1);
    return value + m.shuffleXor(value, 2);
}

/// Multiplies what was summed of row group, or of group + 8, by its factor.
template <int blocks> MEMSCAPE_KERNEL void shrinkRow(float (&sums)[blocks][4], int half, float factor)
{
    MEMSCAPE_UNROLL
    for (int b = 0; b < blocks; ++b) {
        sums[b][2 * half] *= factor;
        sums[b][2 * half + 1] *= factor;
    }
}

/// Turns a row's scores into weights, and adds them up: a lane its own columns, finishRows() the
/// four lanes of a row.
template <int blocks, typename Exponential>
MEMSCAPE_KERNEL void weighRow(float (&scores)[blocks][4], int half, RunningSoftmax& row, float scale, float offset,
                              const Exponential& exponential)
{
    MEMSCAPE_UNROLL
    for (int b = 0; b < blocks; ++b) {
        MEMSCAPE_UNROLL
        for (int r = 2 * half; r < 2 * half + 2; ++r) {
            scores[b][r] = exponential(scores[b][r] * scale - offset);
            row.sum += scores[b][r];
        }
    }
}

/// Turns scores into e^(scale (score − maximum)) under the raised maximum, and shrinks what was
/// summed before.
template <int strips, int blocks, int outputBlocks, typename Machine, typename Exponential>
MEMSCAPE_KERNEL void softmaxStep(Machine& m, Sums<strips, blocks>& scores, Sums<strips, outputBlocks>& output,
                                 RunningSoftmax (&rows)[strips][2], float scale, const Exponential& exponential)
{
    const auto scaled = [&](float difference) { return exponential(difference * scale); };
    MEMSCAPE_UNROLL
    for (int s = 0; s < strips; ++s) {
        MEMSCAPE_UNROLL
        for (int half = 0; half < 2; ++half) { // rows group and group + 8
            const float most = rowMaximum(m, laneMaximum(m, scores.at[s], half, nothingSeen));
            RunningSoftmax& row = rows[s][half];
            const float factor = raisedTo(row, most, scaled);
            weighRow(scores.at[s], half, row, scale, scaledMaximum(row, scale), exponential);
            shrinkRow(output.at[s], half, factor);
        }
    }
}

/// Writes a warp's sums as rows of elements, two at a time; `factors` per strip and half.
template <typename Element, int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void writeRows(Machine& m, const Sums<strips, blocks>& sums, const float (&factors)[strips][2],
                               Element* to, int firstRow, int rowCount)
{
    MEMSCAPE_UNROLL
    for (int s = 0; s < strips; ++s) {
        MEMSCAPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const TilePlace place = placeInD(m.thread() % 32, 2 * half);
            const int row = firstRow + s * 16 + place.row;
            if (row >= rowCount)
                continue;
            Element* at = to + std::int64_t(row) * (blocks * 8) + place.column;
            MEMSCAPE_UNROLL
            for (int b = 0; b < blocks; ++b) {
                const float* block = sums.at[s][b] + 2 * half;
                m.store(reinterpret_cast<std::uint32_t*>(at + b * 8),
                        m.template pack<Element>(block[0] * factors[s][half], block[1] * factors[s][half]));
            }
        }
    }
}

/// 1 / sum of every row, and the rows' log-sum-exp where it is wanted. `toNatural` turns an exponent
/// into one of e.
template <int strips, typename Machine>
MEMSCAPE_KERNEL void finishRows(Machine& m, const RunningSoftmax (&rows)[strips][2], float (&factors)[strips][2],
                                float scale, float toNatural, float* logSumExp, int firstRow, int rowCount)
{
    MEMSCAPE_UNROLL
    for (int s = 0; s < strips; ++s) {
        MEMSCAPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const float sum = rowSum(m, rows[s][half].sum);
            factors[s][half] = 1.0F / sum;
            const int lane = m.thread() % 32;
            const int row = firstRow + s * 16 + placeInD(lane, 2 * half).row;
            if (logSumExp != nullptr && lane % 4 == 0 && row < rowCount)
                m.store(logSumExp + row, rows[s][half].maximum * scale * toNatural + m.logarithm(sum));
        }
    }
}

} // namespace memscape::cuda
