// SPDX-License-Identifier: Apache-2.0
// What does an in-place operation save? y = f(x) into another array and into the same one, by the same instructions.
// A GPU writes whole sectors without reading them first, so both move 2 n bytes; what differs is the working set.
//
//   version 1  one element per thread: a thread waits for its one load
//   version 2  grid-stride loop over a grid that just fills the GPU, four loads of 16 bytes on their way before the
//              first is used: the memory is the limit. In place they are of other addresses than the stores before.
//
// Left out: types shorter than float, stores that pass L2 by.
#include "kernels/cuda/in-place/in_place.h"

#include "kernels/cuda/common/check.cuh"
#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference: in_place_functions.h, and factors of 1 and −1 --------------------------------

/// An operation as a type.
template <InPlaceOperation operation> struct OperationTag
{
    static constexpr InPlaceOperation value = operation;
};

template <InPlaceOperation operation>
constexpr bool hasFactor = operation == InPlaceOperation::MulMask || operation == InPlaceOperation::MulGate;

MEMSCAPE_HD float signAt(std::uint64_t i)
{
    return (mixed(i) & 1U) != 0 ? 1.0F : -1.0F;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

__device__ __forceinline__ float sigmoidOf(float x)
{
    return 1.0F / (1.0F + expf(-x));
}

template <InPlaceOperation operation> __device__ __forceinline__ float valueOf(float x, float other, InPlaceStep step)
{
    switch (operation) {
    case InPlaceOperation::AddScalar: return x + step.shift;
    case InPlaceOperation::MulScalar: return x * step.scale;
    case InPlaceOperation::MulMask:
    case InPlaceOperation::MulGate: return x * other;
    case InPlaceOperation::Relu: return x > 0 ? x : 0;
    case InPlaceOperation::LeakyRelu: return x > 0 ? x : x * step.scale;
    case InPlaceOperation::Sigmoid: return sigmoidOf(x);
    case InPlaceOperation::Tanh: return tanhf(x);
    case InPlaceOperation::Exp: return expf(step.scale * x);
    case InPlaceOperation::Silu: return x * sigmoidOf(x) + step.shift;
    case InPlaceOperation::Gelu: return x * sigmoidOf(1.59576912F * (x + 0.044715F * x * x * x)) + step.shift;
    }
    return x;
}

/// Version 1. Thread i handles element i.
template <InPlaceOperation operation>
__global__ void inPlace_v1(const float* x, const float* other, float* y, std::uint64_t count, InPlaceStep step)
{
    const std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    if (i < count)
        y[i] = valueOf<operation>(x[i], hasFactor<operation> ? other[i] : 0, step);
}

template <InPlaceOperation operation>
__device__ __forceinline__ float4 valuesOf(float4 x, float4 other, InPlaceStep step)
{
    return make_float4(valueOf<operation>(x.x, other.x, step), valueOf<operation>(x.y, other.y, step),
                       valueOf<operation>(x.z, other.z, step), valueOf<operation>(x.w, other.w, step));
}

/// Version 2. Thread t of T handles quadruples t, t + T, …, four at a time.
template <InPlaceOperation operation>
__global__ void inPlace_v2(const float4* x, const float4* other, float4* y, std::uint64_t count, InPlaceStep step)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    for (; i + (inFlight - 1) * all < count; i += inFlight * all) {
        float4 a[inFlight], b[inFlight];
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            a[k] = x[i + k * all];
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            b[k] = hasFactor<operation> ? other[i + k * all] : a[k];
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            y[i + k * all] = valuesOf<operation>(a[k], b[k], step);
    }
#pragma unroll 1
    for (; i < count; i += all)
        y[i] = valuesOf<operation>(x[i], hasFactor<operation> ? other[i] : x[i], step);
}

__global__ void signs_v1(float* values, std::uint64_t count)
{
    const std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    if (i < count)
        values[i] = signAt(i);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

constexpr unsigned threads = 256;

template <InPlaceOperation operation>
static cudaError_t launchOperation(const InPlaceLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    std::uint64_t blocks = (launch.count + threads - 1) / threads;
    if (launch.version == 1) {
        if (blocks > 0x7fffffffULL)
            return cudaErrorInvalidValue;
        inPlace_v1<operation><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(launch.x, launch.other, launch.y,
                                                                                     launch.count, launch.step);
        return cudaGetLastError();
    }
    int perSm = 0;
    const cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, inPlace_v2<operation>, int(threads), 0);
    if (error != cudaSuccess)
        return error;
    blocks = std::min((blocks + 3) / 4, std::uint64_t(std::max(1, perSm)) * std::max(1, multiprocessors));
    inPlace_v2<operation><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
        reinterpret_cast<const float4*>(launch.x), reinterpret_cast<const float4*>(launch.other),
        reinterpret_cast<float4*>(launch.y), launch.count / 4, launch.step);
    return cudaGetLastError();
}

cudaError_t launchInPlace(const InPlaceLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    if (launch.version < 1 || launch.version > inPlaceVersions || launch.count == 0 || launch.count % 16 != 0)
        return cudaErrorInvalidValue;
    const auto with = [&](auto operation) {
        return launchOperation<decltype(operation)::value>(launch, multiprocessors, stream);
    };
    switch (launch.operation) {
    case InPlaceOperation::AddScalar: return with(OperationTag<InPlaceOperation::AddScalar>{});
    case InPlaceOperation::MulScalar: return with(OperationTag<InPlaceOperation::MulScalar>{});
    case InPlaceOperation::MulMask:
    case InPlaceOperation::MulGate: return with(OperationTag<InPlaceOperation::MulMask>{});
    case InPlaceOperation::Relu: return with(OperationTag<InPlaceOperation::Relu>{});
    case InPlaceOperation::LeakyRelu: return with(OperationTag<InPlaceOperation::LeakyRelu>{});
    case InPlaceOperation::Sigmoid: return with(OperationTag<InPlaceOperation::Sigmoid>{});
    case InPlaceOperation::Tanh: return with(OperationTag<InPlaceOperation::Tanh>{});
    case InPlaceOperation::Exp: return with(OperationTag<InPlaceOperation::Exp>{});
    case InPlaceOperation::Silu: return with(OperationTag<InPlaceOperation::Silu>{});
    case InPlaceOperation::Gelu: return with(OperationTag<InPlaceOperation::Gelu>{});
    }
    return cudaErrorInvalidValue;
}

cudaError_t launchSigns(float* values, std::uint64_t count, cudaStream_t stream)
{
    const std::uint64_t blocks = (count + threads - 1) / threads;
    if (blocks == 0 || blocks > 0x7fffffffULL)
        return cudaErrorInvalidValue;
    signs_v1<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(values, count);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkInPlace(int version, InPlaceOperation operation, bool isInPlace, int multiprocessors)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "in-place operation %d%s v%d", int(operation),
                  isInPlace ? " over its input" : "", version);
    const std::size_t count = 300'016; // a multiple of 16 and of nothing else
    std::vector<float> x(count), other(count), found(count);
    for (std::size_t i = 0; i < count; ++i) {
        x[i] = 8 * mlpUniform(1, i);
        other[i] = signAt(i);
    }
    Scratch scratch;
    auto* const onDevice = scratch.upload(x);
    auto* const factor = scratch.upload(found);
    auto* const result = isInPlace ? onDevice : scratch.upload(found);
    const InPlaceStep step = inPlaceStep(operation, 1);
    if (scratch.ok())
        scratch.note(launchSigns(factor, count, nullptr));
    if (scratch.ok())
        scratch.note(
            launchInPlace({version, operation, step, onDevice, factor, result, count}, multiprocessors, nullptr));
    scratch.download(found, result);
    Mismatches mismatches;
    for (std::size_t i = 0; i < count; ++i) {
        const double expected = inPlaceReference(operation, step, double(x[i]), double(other[i]));
        mismatches.compare(double(found[i]), expected, 3e-7 + 3e-6 * std::fabs(expected));
    }
    verdict(check, scratch.error(), mismatches.wrong, mismatches.first, mismatches.compared);
    return check;
}

} // namespace memscape::cuda
