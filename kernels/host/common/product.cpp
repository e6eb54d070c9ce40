// SPDX-License-Identifier: Apache-2.0
// How many multiply-adds a second does a core do on matrices of floats? Two of our own, and a
// library's:
//
//   v1        three loops in the order row, inner, column: B is streamed through once per row of C,
//             so large matrices wait for memory; teaches that 2 n³ operations on 3 n² numbers are
//             lost when every number is fetched n times
//   v2        C is computed in tiles that stay in registers (12 × 32 with AVX-512, 6 × 16 with
//             AVX2), from blocks of A and B that were first rearranged into the order in which the
//             tile reads them: 256 terms of a block of A fit L2, of a strip of B L1. (The scheme of
//             Goto and van de Geijn, ACM TOMS 34, 2008.)
//   OpenBLAS  the same idea with a kernel per processor that it knows. Which is faster depends on
//             that: version 0.3.21 takes a newer Xeon with AVX-512 for a Haswell, and v2 is ahead
//             there. So both are tried when a run begins, and the record holds their rates
//
// Sums run over `inner` in order within a block of 256 and over the blocks in order: the same sizes
// give the same bits. Left out: threads (the caller cuts C into slabs), half precision, tile
// registers (AMX).
#include "kernels/host/common/product.h"

#include "kernels/host/common/blas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace memscape::host {

namespace {

// --- v1 ------------------------------------------------------------------------------------------

float elementOf(const float* matrix, std::size_t stride, bool transposed, std::size_t row, std::size_t column)
{
    return transposed ? matrix[column * stride + row] : matrix[row * stride + column];
}

void product_v1(const ProductWork& w, ProductScratch&)
{
    for (std::size_t i = 0; i < w.rows; ++i) {
        float* c = w.c + i * w.cStride;
        if (!w.adds)
            std::fill(c, c + w.columns, 0.0F);
        for (std::size_t k = 0; k < w.inner; ++k) {
            const float a = elementOf(w.a, w.aStride, w.aTransposed, i, k);
            for (std::size_t j = 0; j < w.columns; ++j)
                c[j] += a * elementOf(w.b, w.bStride, w.bTransposed, k, j);
        }
    }
}

// --- v2 ------------------------------------------------------------------------------------------

constexpr std::size_t innerBlock = 256, columnBlock = 2048, rowTiles = 12;
constexpr std::size_t packedRows = 2; ///< tiles of rows from which on a rearranged B pays off

/// Four lines of four numbers each, turned round: line i of `from` becomes column i of `to`.
MEMSCAPE_INLINE void turnFour(const float* from, std::size_t fromStride, float* to, std::size_t toStride)
{
    using Four = Simd16::Floats;
    using Indices = Simd16::Ints;
    const auto line = [&](std::size_t i) { return *reinterpret_cast<const Four*>(from + i * fromStride); };
    const Four low0 = __builtin_shuffle(line(0), line(1), Indices{0, 4, 1, 5});
    const Four high0 = __builtin_shuffle(line(0), line(1), Indices{2, 6, 3, 7});
    const Four low1 = __builtin_shuffle(line(2), line(3), Indices{0, 4, 1, 5});
    const Four high1 = __builtin_shuffle(line(2), line(3), Indices{2, 6, 3, 7});
    const auto out = [&](std::size_t i) -> Four& { return *reinterpret_cast<Four*>(to + i * toStride); };
    out(0) = __builtin_shuffle(low0, low1, Indices{0, 1, 4, 5});
    out(1) = __builtin_shuffle(low0, low1, Indices{2, 3, 6, 7});
    out(2) = __builtin_shuffle(high0, high1, Indices{0, 1, 4, 5});
    out(3) = __builtin_shuffle(high0, high1, Indices{2, 3, 6, 7});
}

/// Lines of a matrix that a tile reads together: `count` rows of A, or columns of B. A line's terms are neighbours
/// in memory, or a term's lines are.
struct Strip
{
    const float* from = nullptr;
    std::size_t stride = 0; ///< from line to line, or from term to term
    bool termsAreNeighbours = false;
    std::size_t count = 0;
};

Strip rowsOf(const ProductWork& w, std::size_t row, std::size_t term, std::size_t count)
{
    const float* const from = w.aTransposed ? w.a + term * w.aStride + row : w.a + row * w.aStride + term;
    return {from, w.aStride, !w.aTransposed, count};
}

Strip columnsOf(const ProductWork& w, std::size_t column, std::size_t term, std::size_t count)
{
    const float* const from = w.bTransposed ? w.b + column * w.bStride + term : w.b + term * w.bStride + column;
    return {from, w.bStride, w.bTransposed, count};
}

/// Term by term, `tile` numbers each; zeros behind the last line.
template <std::size_t tile> void pack(const Strip& strip, std::size_t terms, float* to)
{
    const std::size_t count = std::min(tile, strip.count);
    if (count < tile) {
        for (std::size_t k = 0; k < terms; ++k)
            std::fill(to + k * tile + count, to + (k + 1) * tile, 0.0F);
    }
    if (!strip.termsAreNeighbours) {
        for (std::size_t k = 0; k < terms; ++k) {
            const float* const from = strip.from + k * strip.stride;
            if (count == tile)
                std::memcpy(to + k * tile, from, tile * sizeof(float));
            else
                std::copy_n(from, count, to + k * tile);
        }
        return;
    }
    const std::size_t wholeLines = count / 4 * 4, wholeTerms = terms / 4 * 4;
    for (std::size_t k = 0; k < wholeTerms; k += 4) {
        for (std::size_t i = 0; i < wholeLines; i += 4)
            turnFour(strip.from + i * strip.stride + k, strip.stride, to + k * tile + i, tile);
    }
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = i < wholeLines ? wholeTerms : 0; k < terms; ++k)
            to[k * tile + i] = strip.from[i * strip.stride + k];
    }
}

/// One tile of C from strips; `rows` and `columns` say how much of it lies inside C.
struct TileWork
{
    const float* a = nullptr;
    const float* b = nullptr;
    std::size_t bStride = 0; ///< from one term to the next
    std::size_t terms = 0;
    float* c = nullptr;
    std::size_t cStride = 0;
    std::size_t rows = 0, columns = 0;
    bool adds = false;
};

template <typename Simd, int rows> MEMSCAPE_INLINE void tileOf(const TileWork& w)
{
    using Vector = typename Simd::Floats;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(float);
    Vector sums[rows][2] = {};
    const float* a = w.a;
    const float* b = w.b;
    for (std::size_t k = 0; k < w.terms; ++k, a += rows, b += w.bStride) {
        const Vector left = *reinterpret_cast<const Vector*>(b);
        const Vector right = *reinterpret_cast<const Vector*>(b + lanes);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            sums[i][0] += a[i] * left;
            sums[i][1] += a[i] * right;
        }
    }
    // Only constants index the sums, or they would be in memory.
    if (w.columns == 2 * lanes && w.rows == rows) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            Vector* c = reinterpret_cast<Vector*>(w.c + std::size_t(i) * w.cStride);
            c[0] = w.adds ? c[0] + sums[i][0] : sums[i][0];
            c[1] = w.adds ? c[1] + sums[i][1] : sums[i][1];
        }
        return;
    }
    alignas(64) float edge[rows][2 * lanes];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
        *reinterpret_cast<Vector*>(edge[i]) = sums[i][0];
        *reinterpret_cast<Vector*>(edge[i] + lanes) = sums[i][1];
    }
    for (std::size_t i = 0; i < w.rows; ++i) {
        float* c = w.c + i * w.cStride;
        std::size_t j = 0;
        for (; j + lanes <= w.columns; j += lanes) {
            Vector& to = *reinterpret_cast<Vector*>(c + j);
            const Vector from = *reinterpret_cast<const Vector*>(edge[i] + j);
            to = w.adds ? to + from : from;
        }
        for (; j < w.columns; ++j)
            c[j] = w.adds ? c[j] + edge[i][j] : edge[i][j];
    }
}

/// Where blocks are kept: no more than this product needs, and nothing is cleared.
struct Blocks
{
    float *a = nullptr, *b = nullptr;
    static Blocks of(const ProductWork& w, ProductScratch& scratch, std::size_t rows, std::size_t width)
    {
        const std::size_t terms = std::min(innerBlock, w.inner);
        const auto whole = [](std::size_t count, std::size_t tile) { return (count + tile - 1) / tile * tile; };
        const std::size_t a = terms * std::min(rows * rowTiles, whole(w.rows, rows));
        const std::size_t b = terms * std::min(columnBlock, whole(w.columns, width));
        if (scratch.size() < a + b)
            scratch.resize(a + b);
        return {scratch.data() + b, scratch.data()};
    }
};

/// The rows of a block in tiles of `rows`, the last in one of as few thirds as hold it.
template <int rows, typename Visit> void forTiles(std::size_t begin, std::size_t end, Visit visit)
{
    constexpr std::size_t third = rows / 3;
    for (std::size_t i = begin; i < end; i += rows) {
        const std::size_t left = end - i;
        if (left > 2 * third)
            visit(i, std::integral_constant<int, rows>());
        else if (left > third)
            visit(i, std::integral_constant<int, 2 * rows / 3>());
        else
            visit(i, std::integral_constant<int, rows / 3>());
    }
}

/// The blocks around a tile of `rows` × two vectors. A B that is read by one tile of rows only, or by two, is
/// read where it lies when its columns are neighbours.
template <typename Simd, int rows, typename Tile>
void blocked(const ProductWork& w, ProductScratch& scratch, const Tile& tile)
{
    constexpr std::size_t width = 2 * sizeof(typename Simd::Floats) / sizeof(float);
    constexpr std::size_t rowBlock = rows * rowTiles;
    const Blocks blocks = Blocks::of(w, scratch, rows, width);
    const bool isDirect = !w.bTransposed && w.rows <= packedRows * rows;
    for (std::size_t column = 0; column < w.columns; column += columnBlock) {
        const std::size_t columnEnd = std::min(column + columnBlock, w.columns);
        for (std::size_t term = 0; term < w.inner; term += innerBlock) {
            const std::size_t terms = std::min(innerBlock, w.inner - term);
            const auto stripOf = [&](std::size_t j) { return blocks.b + (j - column) * terms; };
            const auto readsInPlace = [&](std::size_t j) { return isDirect && j + width <= columnEnd; };
            for (std::size_t j = column; j < columnEnd; j += width) {
                if (!readsInPlace(j))
                    pack<width>(columnsOf(w, j, term, columnEnd - j), terms, stripOf(j));
            }
            for (std::size_t row = 0; row < w.rows; row += rowBlock) {
                const std::size_t rowEnd = std::min(row + rowBlock, w.rows);
                forTiles<rows>(row, rowEnd, [&](std::size_t i, auto size) {
                    pack<std::size_t(size)>(rowsOf(w, i, term, rowEnd - i), terms, blocks.a + (i - row) * terms);
                });
                const auto visit = [&](std::size_t i, std::size_t j, auto size) {
                    const bool inPlace = readsInPlace(j);
                    tile({blocks.a + (i - row) * terms, inPlace ? w.b + term * w.bStride + j : stripOf(j),
                          inPlace ? w.bStride : width, terms, w.c + i * w.cStride + j, w.cStride,
                          std::min<std::size_t>(size, rowEnd - i), std::min(width, columnEnd - j), w.adds || term > 0},
                         size);
                };
                for (std::size_t j = column; j < columnEnd; j += width)
                    forTiles<rows>(row, rowEnd, [&](std::size_t i, auto size) { visit(i, j, size); });
            }
        }
    }
}

void product_v2_16(const ProductWork& w, ProductScratch& scratch)
{
    blocked<Simd16, 6>(w, scratch, [](const TileWork& tile, auto rows) { tileOf<Simd16, rows>(tile); });
}

#if MEMSCAPE_X86
struct Tile32
{
    template <int rows>
    __attribute__((target("avx2,fma"))) void operator()(const TileWork& tile, std::integral_constant<int, rows>) const
    {
        tileOf<Simd32, rows>(tile);
    }
};
struct Tile64
{
    template <int rows>
    __attribute__((target("avx512f"))) void operator()(const TileWork& tile, std::integral_constant<int, rows>) const
    {
        tileOf<Simd64, rows>(tile);
    }
};
void product_v2_32(const ProductWork& w, ProductScratch& scratch)
{
    blocked<Simd32, 6>(w, scratch, Tile32());
}
void product_v2_64(const ProductWork& w, ProductScratch& scratch)
{
    blocked<Simd64, 12>(w, scratch, Tile64());
}
#endif

// --- Checks --------------------------------------------------------------------------------------

constexpr float overflowGuard = 1.25e30F;

/// Numbers of both signs whose sums have no pattern.
float sample(std::size_t i)
{
    return float(int((i * 2654435761U >> 7) % 2001) - 1000) / 1000;
}

void compareProduct(Check& check, const ProductKernel& kernel, ProductWork w)
{
    w.aStride = (w.aTransposed ? w.rows : w.inner) + 3;
    w.bStride = (w.bTransposed ? w.inner : w.columns) + 5;
    w.cStride = w.columns + 2;
    std::vector<float> a(w.aStride * std::max(w.rows, w.inner)), b(w.bStride * std::max(w.inner, w.columns));
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = sample(i);
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = sample(3 * i + 1);
    std::vector<float> before(w.rows * w.cStride, w.adds ? 0.5F : std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = w.columns; i < before.size(); i += w.cStride)
        before[i] = before[i + 1] = overflowGuard;
    std::vector<float> c = before, again = before;
    ProductScratch scratch;
    w.a = a.data();
    w.b = b.data();
    w.c = c.data();
    kernel.run(w, scratch);
    w.c = again.data();
    kernel.run(w, scratch);
    check.require(0, std::memcmp(c.data(), again.data(), c.size() * sizeof(float)) == 0,
                  "a second run gave other bits");
    for (std::size_t i = 0; i < w.rows; ++i) {
        for (std::size_t j = 0; j < w.columns; ++j) {
            double sum = w.adds ? 0.5 : 0;
            for (std::size_t k = 0; k < w.inner; ++k)
                sum += double(elementOf(w.a, w.aStride, w.aTransposed, i, k))
                    * double(elementOf(w.b, w.bStride, w.bTransposed, k, j));
            check.compare(i * w.cStride + j, double(c[i * w.cStride + j]), sum);
        }
        check.require(i * w.cStride + w.columns, c[i * w.cStride + w.columns] == overflowGuard,
                      "written right of the last column");
    }
}

} // namespace

std::vector<ProductKernel> productKernels()
{
    std::vector<ProductKernel> kernels{{"product v1 scalar", product_v1, 1, 1},
                                       {"product v2 " + isaText(Isa::Bytes16), product_v2_16, 2, 8}};
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        kernels.push_back({"product v2 " + isaText(Isa::Bytes32), product_v2_32, 2, 16});
    if (hasIsa(Isa::Bytes64))
        kernels.push_back({"product v2 " + isaText(Isa::Bytes64), product_v2_64, 4, 32});
#endif
    if (auto blas = openBlas())
        kernels.push_back(std::move(*blas));
    return kernels;
}

ProductKernel bestProduct()
{
    return productKernels().back();
}

Check checkProduct(const ProductKernel& kernel)
{
    Check check({1e-4, 1e-5}); // 300 terms of size 1
    for (const auto& [rows, columns, inner] : std::initializer_list<std::array<std::size_t, 3>>{
             {1, 1, 1}, {7, 5, 3}, {12, 32, 256}, {13, 33, 257}, {64, 64, 64}, {150, 70, 300}}) {
        for (const int way : {0, 1, 2, 3, 4, 5, 6, 7}) {
            ProductWork work;
            work.rows = rows;
            work.columns = columns;
            work.inner = inner;
            work.aTransposed = (way & 1) != 0;
            work.bTransposed = (way & 2) != 0;
            work.adds = (way & 4) != 0;
            compareProduct(check, kernel, work);
        }
    }
    return check;
}

} // namespace memscape::host
