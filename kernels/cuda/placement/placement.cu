// SPDX-License-Identifier: Apache-2.0
// What a placed program needs of a GPU beside products (product.cu) and gelu (mlp.cu): sums, products and relu of
// elements, and relu's way back. One thread takes element after element of a grid; each result depends on its own
// element alone, so the same numbers give the same bits wherever they lie.
//
// Left out: vector loads. The time of a chain is in its products and copies.
#include "kernels/cuda/placement/placement.h"

#include "kernels/cuda/common/check.cuh"

#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference -----------------------------------------------------------------------------

/// The same arithmetic on both sides: one rounded operation, so the bits are equal.
static __host__ __device__ float placedElement(PlacedElements operation, float a, float b)
{
    switch (operation) {
    case PlacedElements::Add: return a + b;
    case PlacedElements::Multiply: return a * b;
    case PlacedElements::Relu: return a > 0 ? a : 0;
    case PlacedElements::ReluSlope: break;
    }
    return a > 0 ? b : 0;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

__global__ void placedElements_v1(PlacedElements operation, const float* a, const float* b, float* out,
                                  std::uint64_t count)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all)
        out[i] = placedElement(operation, a[i], b != nullptr ? b[i] : 0);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

cudaError_t launchPlacedElements(const PlacedElementsLaunch& launch, cudaStream_t stream)
{
    if (launch.count == 0)
        return cudaErrorInvalidValue;
    const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>((launch.count + 255) / 256, 4096));
    placedElements_v1<<<blocks, 256, 0, stream>>>(launch.operation, launch.a, launch.b, launch.out, launch.count);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkPlacedElements(PlacedElements operation)
{
    static const char* const names[] = {"sum", "product", "relu", "relu's slope"};
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "%s of elements", names[static_cast<int>(operation)]);
    const std::size_t count = 1'100'003; // a multiple of nothing, and more than the grid has threads
    std::vector<float> a(count), b(count), found(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
        a[i] = mlpUniform(31, i);
        b[i] = mlpUniform(32, i);
        expected[i] = placedElement(operation, a[i], operation == PlacedElements::Relu ? 0 : b[i]);
    }
    Scratch scratch;
    PlacedElementsLaunch launch;
    launch.operation = operation;
    launch.a = scratch.upload(a);
    launch.b = operation == PlacedElements::Relu ? nullptr : scratch.upload(b);
    launch.out = scratch.upload(found);
    launch.count = count;
    if (scratch.ok())
        scratch.note(launchPlacedElements(launch, nullptr));
    scratch.download(found, launch.out);
    compareWords(check, scratch.error(), found, expected);
    return check;
}

} // namespace memscape::cuda
