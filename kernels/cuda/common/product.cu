// SPDX-License-Identifier: Apache-2.0
// The product of two float matrices. cuBLASLt multiplies where it is installed (cublas_lt.h); here is
// what works without it, and what a product teaches:
//
//   product 1  a thread per element of C, straight from memory: 2 loads for every multiply-add. The
//              caches save it from the worst; the load units do not keep up.
//   product 2  a block computes 128 × 128 of C from strips of A and B, 8 terms deep, in shared
//              memory; a thread keeps 8 × 8 sums in registers, so 16 loads from shared memory feed
//              64 multiply-adds. The next strips are on their way from memory while these are
//              multiplied.
//
// In float throughout, no TF32: a chain's gradients are compared bit for bit, and sums run over the
// inner dimension in order, so the same sizes give the same bits. Left out: tensor cores (mma),
// split inner dimensions, asynchronous copies (sm_80 and later).
#include "kernels/cuda/common/check.cuh"

#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference -----------------------------------------------------------------------------

static std::uint64_t placeOf(std::uint64_t stride, bool transposed, std::uint64_t row, std::uint64_t column)
{
    return transposed ? column * stride + row : row * stride + column;
}

static double referenceElement(const ProductLaunch& launch, const std::vector<float>& a, const std::vector<float>& b,
                               std::uint64_t row, std::uint64_t column)
{
    double sum = 0;
    for (std::uint64_t k = 0; k < launch.inner; ++k)
        sum += double(a[placeOf(launch.aStride, launch.aTransposed, row, k)])
            * double(b[placeOf(launch.bStride, launch.bTransposed, k, column)]);
    return sum;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// Version 1. Thread (x, y) computes C[y][x]: (rows × columns) threads in blocks of 32 × 8.
__global__ void product_v1(ProductLaunch w)
{
    const std::uint64_t column = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    for (std::uint64_t row = blockIdx.y * std::uint64_t(blockDim.y) + threadIdx.y; row < w.rows;
         row += std::uint64_t(gridDim.y) * blockDim.y) {
        if (column >= w.columns)
            return;
        const float* a = w.a + (w.aTransposed ? row : row * w.aStride);
        const float* b = w.b + (w.bTransposed ? column * w.bStride : column);
        const std::uint64_t aStep = w.aTransposed ? w.aStride : 1, bStep = w.bTransposed ? 1 : w.bStride;
        float sum = 0;
        for (std::uint64_t k = 0; k < w.inner; ++k, a += aStep, b += bStep)
            sum += *a * *b;
        w.c[row * w.cStride + column] = sum;
    }
}

constexpr int tile = 128, depth = 8, threadsOfTile = 256, perThread = 8;
constexpr int loadsOfTile = tile * depth / threadsOfTile; // per thread and strip

/// strip[deep][along]; a row is 4 floats longer so that the transposing store meets other banks.
using Strip = float[depth][tile + 4];

/// Where a thread's elements of a strip of 128 × 8 of a matrix lie: the first, and how far on the
/// next. Neighbouring threads read neighbouring addresses either way the matrix lies.
template <bool deepIsContiguous> struct StripPlace
{
    static constexpr int deepPerLoad = deepIsContiguous ? 0 : threadsOfTile / tile;
    static constexpr int alongPerLoad = deepIsContiguous ? threadsOfTile / depth : 0;
    __device__ __forceinline__ static int deep() { return int(threadIdx.x) / (deepIsContiguous ? 1 : tile) % depth; }
    __device__ __forceinline__ static int along() { return int(threadIdx.x) / (deepIsContiguous ? depth : 1) % tile; }
};

/// This thread's elements of the strip that begins at (along0, deep0); zero outside the matrix.
/// `stride` is the distance of neighbours in the direction that is not contiguous.
template <bool deepIsContiguous>
__device__ __forceinline__ void loadStrip(float (&values)[loadsOfTile], const float* matrix, std::uint64_t stride,
                                          std::uint64_t along0, std::uint64_t alongEnd, std::uint64_t deep0,
                                          std::uint64_t deepEnd)
{
    using Place = StripPlace<deepIsContiguous>;
    const std::uint64_t along = along0 + Place::along(), deep = deep0 + Place::deep();
    const float* at = matrix + (deepIsContiguous ? along * stride + deep : deep * stride + along);
    const std::uint64_t step = stride * (deepIsContiguous ? Place::alongPerLoad : Place::deepPerLoad);
    // How many of the loads lie inside, along the direction in which they step.
    const std::uint64_t fixed = deepIsContiguous ? deep : along, fixedEnd = deepIsContiguous ? deepEnd : alongEnd;
    const std::uint64_t moving = deepIsContiguous ? along : deep, movingEnd = deepIsContiguous ? alongEnd : deepEnd;
    const std::uint64_t room = fixed < fixedEnd && moving < movingEnd ? movingEnd - moving : 0;
#pragma unroll
    for (int n = 0; n < loadsOfTile; ++n, at += step) {
        const unsigned moved = unsigned(n) * (deepIsContiguous ? Place::alongPerLoad : Place::deepPerLoad);
        values[n] = moved < room ? *at : 0.0F;
    }
}

template <bool deepIsContiguous>
__device__ __forceinline__ void storeStrip(Strip& strip, const float (&values)[loadsOfTile])
{
    using Place = StripPlace<deepIsContiguous>;
#pragma unroll
    for (int n = 0; n < loadsOfTile; ++n)
        strip[Place::deep() + n * Place::deepPerLoad][Place::along() + n * Place::alongPerLoad] = values[n];
}

/// Version 2. Block (x, y) computes the tile of C at rows 128 y and columns 128 x; 256 threads,
/// each two times four rows by two times four columns, 64 apart. 128 registers: two blocks fit an
/// SM.
template <bool aTransposed, bool bTransposed>
__global__ void __launch_bounds__(threadsOfTile, 2) product_v2(ProductLaunch w)
{
    __shared__ __align__(16) Strip a;
    __shared__ __align__(16) Strip b;
    const std::uint64_t row0 = blockIdx.y * std::uint64_t(tile), column0 = blockIdx.x * std::uint64_t(tile);
    const int x = 4 * (int(threadIdx.x) % 16), y = 4 * (int(threadIdx.x) / 16);

    float sums[perThread][perThread] = {};
    float nextA[loadsOfTile], nextB[loadsOfTile];
    loadStrip<!aTransposed>(nextA, w.a, w.aStride, row0, w.rows, 0, w.inner);
    loadStrip<bTransposed>(nextB, w.b, w.bStride, column0, w.columns, 0, w.inner);
    for (std::uint64_t k = 0; k < w.inner; k += depth) {
        storeStrip<!aTransposed>(a, nextA);
        storeStrip<bTransposed>(b, nextB);
        __syncthreads();
        if (k + depth < w.inner) {
            loadStrip<!aTransposed>(nextA, w.a, w.aStride, row0, w.rows, k + depth, w.inner);
            loadStrip<bTransposed>(nextB, w.b, w.bStride, column0, w.columns, k + depth, w.inner);
        }
#pragma unroll 2
        for (int deep = 0; deep < depth; ++deep) {
            float left[perThread], right[perThread];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(left + 4 * half) = *reinterpret_cast<const float4*>(&a[deep][y + 64 * half]);
                *reinterpret_cast<float4*>(right + 4 * half) =
                    *reinterpret_cast<const float4*>(&b[deep][x + 64 * half]);
            }
#pragma unroll
            for (int i = 0; i < perThread; ++i) {
#pragma unroll
                for (int j = 0; j < perThread; ++j)
                    sums[i][j] += left[i] * right[j];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < perThread; ++i) {
        const std::uint64_t row = row0 + std::uint64_t(y + i % 4 + 64 * (i / 4));
#pragma unroll
        for (int j = 0; j < perThread; ++j) {
            const std::uint64_t column = column0 + std::uint64_t(x + j % 4 + 64 * (j / 4));
            if (row < w.rows && column < w.columns)
                w.c[row * w.cStride + column] = sums[i][j];
        }
    }
}

// ---- 4. Launchers -----------------------------------------------------------------------------

cudaError_t launchProduct(const ProductLaunch& w, cudaStream_t stream)
{
    if (w.rows == 0 || w.columns == 0 || w.inner == 0)
        return cudaErrorInvalidValue;
    const auto over = [](std::uint64_t count, std::uint64_t size) { return (count + size - 1) / size; };
    if (w.version == 1) {
        const dim3 grid(static_cast<unsigned>(over(w.columns, 32)),
                        static_cast<unsigned>(std::min<std::uint64_t>(over(w.rows, 8), 65535)));
        product_v1<<<grid, dim3(32, 8), 0, stream>>>(w);
        return cudaGetLastError();
    }
    if (w.version != 2 || over(w.rows, tile) > 65535)
        return cudaErrorInvalidValue;
    const dim3 grid(static_cast<unsigned>(over(w.columns, tile)), static_cast<unsigned>(over(w.rows, tile)));
    if (w.aTransposed && w.bTransposed)
        product_v2<true, true><<<grid, threadsOfTile, 0, stream>>>(w);
    else if (w.aTransposed)
        product_v2<true, false><<<grid, threadsOfTile, 0, stream>>>(w);
    else if (w.bTransposed)
        product_v2<false, true><<<grid, threadsOfTile, 0, stream>>>(w);
    else
        product_v2<false, false><<<grid, threadsOfTile, 0, stream>>>(w);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkProduct(int version, bool aTransposed, bool bTransposed)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "product v%d%s%s", version, aTransposed ? " A transposed" : "",
                  bTransposed ? " B transposed" : "");
    ProductLaunch launch;
    launch.version = version;
    launch.rows = 141; // a tile and a bit
    launch.columns = 259;
    launch.inner = 75;
    launch.aTransposed = aTransposed;
    launch.bTransposed = bTransposed;
    launch.aStride = (aTransposed ? launch.rows : launch.inner) + 3;
    launch.bStride = (bTransposed ? launch.inner : launch.columns) + 5;
    launch.cStride = launch.columns + 1;
    std::vector<float> a(launch.aStride * std::max(launch.rows, launch.inner));
    std::vector<float> b(launch.bStride * std::max(launch.inner, launch.columns));
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = mlpUniform(11, i);
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = mlpUniform(12, i);
    std::vector<float> c(launch.rows * launch.cStride, 1e30F);
    Scratch scratch;
    launch.a = scratch.upload(a);
    launch.b = scratch.upload(b);
    launch.c = scratch.upload(c);
    if (scratch.ok())
        scratch.note(launchProduct(launch, nullptr));
    scratch.download(c, launch.c);
    Mismatches seen;
    for (std::uint64_t row = 0; row < launch.rows && scratch.ok(); ++row) {
        for (std::uint64_t column = 0; column < launch.columns; ++column)
            seen.compare(double(c[row * launch.cStride + column]), referenceElement(launch, a, b, row, column), 1e-4);
        seen.compare(double(c[row * launch.cStride + launch.columns]), double(1e30F),
                     0); // untouched
    }
    verdict(check, scratch.error(), seen.wrong, seen.first, seen.compared);
    return check;
}

} // namespace memscape::cuda
