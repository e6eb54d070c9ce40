// SPDX-License-Identifier: Apache-2.0
// What a live chain of Linear + gelu needs of a GPU beside its products (product.cu): the passes over
// single elements. A sum runs in one order, so the same sizes give the same bits.
#include "kernels/cuda/common/check.cuh"

#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference -----------------------------------------------------------------------------

constexpr double cubic = 0.044715, rootTwoOverPi = 0.7978845608028654;

static double geluOf(double z)
{
    return 0.5 * z * (1 + std::tanh(rootTwoOverPi * (z + cubic * z * z * z)));
}

static double slopeOf(double z)
{
    const double t = std::tanh(rootTwoOverPi * (z + cubic * z * z * z));
    return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * rootTwoOverPi * (1 + 3 * cubic * z * z);
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// s = ½ (1 + tanh u) = 1 / (1 + e^(-2u)), u = √(2/π) (z + 0.044715 z³).
__device__ __forceinline__ float shareOf(float z)
{
    const float u = float(rootTwoOverPi) * (z + float(cubic) * z * z * z);
    return 1.0F / (1.0F + expf(-2.0F * u));
}

__device__ __forceinline__ std::uint64_t firstOf()
{
    return blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
}
__device__ __forceinline__ std::uint64_t strideOf()
{
    return std::uint64_t(gridDim.x) * blockDim.x;
}

/// One kernel for every use of gelu: whatever is kept, the same instructions make the same bits.
__global__ void gelu_v1(const float* sums, const float* bias, float* z, float* x, std::uint64_t count,
                        std::uint64_t width)
{
    for (std::uint64_t i = firstOf(); i < count; i += strideOf()) {
        const float value = sums[i] + bias[i % width];
        const float active = value * shareOf(value);
        if (z != nullptr)
            z[i] = value;
        if (x != nullptr)
            x[i] = active;
    }
}

__global__ void geluSlope_v1(const float* z, float* y, std::uint64_t count)
{
    for (std::uint64_t i = firstOf(); i < count; i += strideOf()) {
        const float value = z[i], s = shareOf(value);
        const float twice = 2.0F * float(rootTwoOverPi) * (1.0F + 3.0F * float(cubic) * value * value);
        y[i] *= s + value * s * (1.0F - s) * twice;
    }
}

/// A block of 32 × 8 sums 32 columns: thread row r takes rows r, r + 8, …; then the eight are added
/// in order.
__global__ void columnSums_v1(const float* y, float* sums, std::uint64_t rows, std::uint64_t width)
{
    __shared__ float partial[8][32];
    const std::uint64_t column = blockIdx.x * std::uint64_t(32) + threadIdx.x;
    float sum = 0;
    for (std::uint64_t row = threadIdx.y; row < rows && column < width; row += 8)
        sum += y[row * width + column];
    partial[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (int r = 1; r < 8; ++r)
            sum += partial[r][threadIdx.x];
        sums[column] = sum;
    }
}

__global__ void loss_v1(const float* x, float* gradient, std::uint64_t count, double* partial)
{
    __shared__ double sums[256];
    const float factor = static_cast<float>(2.0 / double(count));
    double sum = 0;
    for (std::uint64_t i = firstOf(); i < count; i += strideOf()) {
        const float difference = x[i] - mlpUniform(mlpTargetSeed, i);
        sum += double(difference) * double(difference);
        gradient[i] = factor * difference;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 256; ++i)
            sum += sums[i];
        partial[blockIdx.x] = sum;
    }
}

__global__ void uniform_v1(float* values, std::uint64_t count, std::uint64_t seed, float scale)
{
    for (std::uint64_t i = firstOf(); i < count; i += strideOf())
        values[i] = mlpUniform(seed, i) * scale;
}

__global__ void digest_v1(const float* values, std::uint64_t count, unsigned long long* sum)
{
    unsigned long long own = 0;
    for (std::uint64_t i = firstOf(); i < count; i += strideOf())
        own += mlpDigestOf(i, __float_as_uint(values[i]));
    atomicAdd(sum, own); // integers: any order gives the same sum
}

// ---- 4. Launchers -----------------------------------------------------------------------------

/// Blocks of 256 threads for a grid-stride loop, enough for every GPU we know.
static unsigned blocksFor(std::uint64_t count)
{
    return static_cast<unsigned>(std::clamp<std::uint64_t>((count + 255) / 256, 1, 4096));
}

cudaError_t launchGelu(const float* sums, const float* bias, float* z, float* x, std::uint64_t rows,
                       std::uint64_t width, cudaStream_t stream)
{
    gelu_v1<<<blocksFor(rows * width), 256, 0, stream>>>(sums, bias, z, x, rows * width, width);
    return cudaGetLastError();
}

cudaError_t launchGeluSlope(const float* z, float* y, std::uint64_t count, cudaStream_t stream)
{
    geluSlope_v1<<<blocksFor(count), 256, 0, stream>>>(z, y, count);
    return cudaGetLastError();
}

cudaError_t launchColumnSums(const float* y, float* sums, std::uint64_t rows, std::uint64_t width, cudaStream_t stream)
{
    columnSums_v1<<<static_cast<unsigned>((width + 31) / 32), dim3(32, 8), 0, stream>>>(y, sums, rows, width);
    return cudaGetLastError();
}

cudaError_t launchLoss(const float* x, float* gradient, std::uint64_t count, double* partial, cudaStream_t stream)
{
    loss_v1<<<lossPartials, 256, 0, stream>>>(x, gradient, count, partial);
    return cudaGetLastError();
}

cudaError_t launchUniform(float* values, std::uint64_t count, std::uint64_t seed, float scale, cudaStream_t stream)
{
    uniform_v1<<<blocksFor(count), 256, 0, stream>>>(values, count, seed, scale);
    return cudaGetLastError();
}

cudaError_t launchDigest(const float* values, std::uint64_t count, unsigned long long* sum, cudaStream_t stream)
{
    digest_v1<<<blocksFor(count), 256, 0, stream>>>(values, count, sum);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkMlpElements()
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "gelu, its slope, column sums, loss, digest");
    constexpr std::uint64_t rows = 37, width = 67, count = rows * width;
    std::vector<float> sums(count), bias(width), y(count, 1.0F);
    for (std::uint64_t i = 0; i < count; ++i)
        sums[i] = 8 * mlpUniform(21, i);
    for (std::uint64_t i = 0; i < width; ++i)
        bias[i] = mlpUniform(22, i);
    Scratch scratch;
    const float *deviceSums = scratch.upload(sums), *deviceBias = scratch.upload(bias);
    float *z = scratch.upload(y), *x = scratch.upload(y), *slope = scratch.upload(y), *gradient = scratch.upload(y);
    float* columns = scratch.upload(bias);
    std::vector<double> partial(lossPartials);
    double* devicePartial = scratch.upload(partial);
    std::vector<unsigned long long> digest(1);
    unsigned long long* deviceDigest = scratch.upload(digest);
    if (scratch.ok()) {
        scratch.note(launchGelu(deviceSums, deviceBias, z, x, rows, width, nullptr));
        scratch.note(launchGeluSlope(z, slope, count, nullptr));
        scratch.note(launchColumnSums(slope, columns, rows, width, nullptr));
        scratch.note(launchLoss(x, gradient, count, devicePartial, nullptr));
        scratch.note(launchDigest(x, count, deviceDigest, nullptr));
    }
    std::vector<float> foundX(count), foundSlope(count), foundColumns(width), foundGradient(count);
    scratch.download(foundX, x);
    scratch.download(foundSlope, slope);
    scratch.download(foundColumns, columns);
    scratch.download(foundGradient, gradient);
    scratch.download(partial, devicePartial);
    scratch.download(digest, deviceDigest);
    Mismatches seen;
    std::vector<double> columnSum(width);
    double loss = 0, foundLoss = 0;
    unsigned long long expected = 0;
    for (std::uint64_t i = 0; i < count && scratch.ok(); ++i) {
        const double value = double(sums[i] + bias[i % width]);
        const double difference = geluOf(value) - double(mlpUniform(mlpTargetSeed, i));
        seen.compare(double(foundX[i]), geluOf(value), 2e-5);
        seen.compare(double(foundSlope[i]), slopeOf(value), 2e-5);
        seen.compare(double(foundGradient[i]), 2 * difference / count, 1e-7);
        columnSum[i % width] += slopeOf(value);
        loss += difference * difference;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &foundX[i], sizeof bits);
        expected += mlpDigestOf(i, bits);
    }
    for (std::uint64_t i = 0; i < width && scratch.ok(); ++i)
        seen.compare(double(foundColumns[i]), columnSum[i], 1e-3);
    for (const double part : partial)
        foundLoss += part;
    if (scratch.ok()) {
        seen.compare(foundLoss, loss, 1e-3 * loss);
        seen.compare(digest[0] == expected ? 1 : 0, 1, 0);
    }
    verdict(check, scratch.error(), seen.wrong, seen.first, seen.compared);
    return check;
}

} // namespace memscape::cuda
