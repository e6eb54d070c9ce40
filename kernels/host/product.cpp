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
#include "kernels/host/product.h"

#include "kernels/host/blas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace memscape::host {

namespace {

// --- v1 ------------------------------------------------------------------------------------------

float elementOf(const float* matrix, std::size_t stride, bool transposed, std::size_t row,
                std::size_t column)
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

/// Rows [row, row + tile) and terms [term, term + terms) of A, term by term; zeros below the last
/// row.
template <std::size_t tile>
void packRows(const ProductWork& w, std::size_t row, std::size_t term, std::size_t terms, float* to)
{
    const std::size_t rows = std::min(tile, w.rows - row);
    for (std::size_t k = 0; k < terms; ++k, to += tile) {
        for (std::size_t i = 0; i < tile; ++i)
            to[i] = i < rows ? elementOf(w.a, w.aStride, w.aTransposed, row + i, term + k) : 0.0F;
    }
}

/// Columns [column, column + tile) of B, term by term; zeros right of the last column.
template <std::size_t tile>
void packColumns(const ProductWork& w, std::size_t column, std::size_t term, std::size_t terms,
                 float* to)
{
    const std::size_t columns = std::min(tile, w.columns - column);
    for (std::size_t k = 0; k < terms; ++k, to += tile) {
        if (!w.bTransposed && columns == tile) {
            std::memcpy(to, w.b + (term + k) * w.bStride + column, tile * sizeof(float));
            continue;
        }
        for (std::size_t j = 0; j < tile; ++j)
            to[j] =
                j < columns ? elementOf(w.b, w.bStride, w.bTransposed, term + k, column + j) : 0.0F;
    }
}

/// One tile of C from packed strips; `keep` says how much of it lies inside C.
struct TileWork
{
    const float* a = nullptr;
    const float* b = nullptr;
    std::size_t terms = 0;
    float* c = nullptr;
    std::size_t cStride = 0;
    std::size_t rows = 0, columns = 0;
    bool adds = false;
};

template <typename Wide, int rows> MEMSCAPE_INLINE void tileOf(const TileWork& w)
{
    using Vector = typename Wide::Floats;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(float);
    Vector sums[rows][2] = {};
    const float* a = w.a;
    const float* b = w.b;
    for (std::size_t k = 0; k < w.terms; ++k, a += rows, b += 2 * lanes) {
        const Vector left = *reinterpret_cast<const Vector*>(b);
        const Vector right = *reinterpret_cast<const Vector*>(b + lanes);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            sums[i][0] += a[i] * left;
            sums[i][1] += a[i] * right;
        }
    }
    if (w.rows == rows && w.columns == 2 * lanes) {
        for (int i = 0; i < rows; ++i) {
            Vector* c = reinterpret_cast<Vector*>(w.c + std::size_t(i) * w.cStride);
            c[0] = w.adds ? c[0] + sums[i][0] : sums[i][0];
            c[1] = w.adds ? c[1] + sums[i][1] : sums[i][1];
        }
        return;
    }
    for (std::size_t i = 0; i < w.rows; ++i) {
        float line[2 * lanes];
        std::memcpy(line, sums[i], sizeof line);
        float* c = w.c + i * w.cStride;
        for (std::size_t j = 0; j < w.columns; ++j)
            c[j] = w.adds ? c[j] + line[j] : line[j];
    }
}

/// The blocks around a tile of `rows` × two vectors.
template <typename Wide, int rows, typename Tile>
void blocked(const ProductWork& w, ProductScratch& scratch, const Tile& tile)
{
    constexpr std::size_t width = 2 * sizeof(typename Wide::Floats) / sizeof(float);
    constexpr std::size_t rowBlock = rows * rowTiles;
    scratch.resize(innerBlock * (columnBlock + rowBlock));
    float* const packedB = scratch.data();
    float* const packedA = packedB + innerBlock * columnBlock;
    for (std::size_t column = 0; column < w.columns; column += columnBlock) {
        const std::size_t columnEnd = std::min(column + columnBlock, w.columns);
        for (std::size_t term = 0; term < w.inner; term += innerBlock) {
            const std::size_t terms = std::min(innerBlock, w.inner - term);
            for (std::size_t j = column; j < columnEnd; j += width)
                packColumns<width>(w, j, term, terms, packedB + (j - column) * terms);
            for (std::size_t row = 0; row < w.rows; row += rowBlock) {
                const std::size_t rowEnd = std::min(row + rowBlock, w.rows);
                for (std::size_t i = row; i < rowEnd; i += rows)
                    packRows<rows>(w, i, term, terms, packedA + (i - row) * terms);
                for (std::size_t j = column; j < columnEnd; j += width) {
                    for (std::size_t i = row; i < rowEnd; i += rows)
                        tile({packedA + (i - row) * terms, packedB + (j - column) * terms, terms,
                              w.c + i * w.cStride + j, w.cStride,
                              std::min<std::size_t>(rows, rowEnd - i),
                              std::min(width, columnEnd - j), w.adds || term > 0});
                }
            }
        }
    }
}

void product_v2_16(const ProductWork& w, ProductScratch& scratch)
{
    blocked<Wide16, 6>(w, scratch, [](const TileWork& tile) { tileOf<Wide16, 6>(tile); });
}

#if MEMSCAPE_X86
__attribute__((target("avx2,fma"))) void tile32(const TileWork& tile)
{
    tileOf<Wide32, 6>(tile);
}
__attribute__((target("avx512f"))) void tile64(const TileWork& tile)
{
    tileOf<Wide64, 12>(tile);
}
void product_v2_32(const ProductWork& w, ProductScratch& scratch)
{
    blocked<Wide32, 6>(w, scratch, tile32);
}
void product_v2_64(const ProductWork& w, ProductScratch& scratch)
{
    blocked<Wide64, 12>(w, scratch, tile64);
}
#endif

// --- Checks --------------------------------------------------------------------------------------

constexpr float guard = 1.25e30F;

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
    std::vector<float> a(w.aStride * std::max(w.rows, w.inner)),
        b(w.bStride * std::max(w.inner, w.columns));
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = sample(i);
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = sample(3 * i + 1);
    std::vector<float> before(w.rows * w.cStride,
                              w.adds ? 0.5F : std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = w.columns; i < before.size(); i += w.cStride)
        before[i] = before[i + 1] = guard;
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
        check.require(i * w.cStride + w.columns, c[i * w.cStride + w.columns] == guard,
                      "written right of the last column");
    }
}

} // namespace

std::vector<ProductKernel> productKernels()
{
    std::vector<ProductKernel> kernels{{"product v1 scalar", product_v1},
                                       {"product v2 " + isaText(Isa::Bytes16), product_v2_16}};
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        kernels.push_back({"product v2 " + isaText(Isa::Bytes32), product_v2_32});
    if (hasIsa(Isa::Bytes64))
        kernels.push_back({"product v2 " + isaText(Isa::Bytes64), product_v2_64});
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
