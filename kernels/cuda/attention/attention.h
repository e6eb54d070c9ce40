// SPDX-License-Identifier: Apache-2.0
// The attention kernels as plain calls, between the .cu files (C++17) and the backend (C++20).
#pragma once

#include "kernels/cuda/attention/shape.h"

#include <cuda_runtime_api.h>

namespace memscape::cuda {

enum class ElementFormat { Float32, Float16, BFloat16 };

constexpr int flashVersions = 9;

/// Forward: query, key, value → output and logSumExp. Backward: those and outputGradient → delta (a
/// place of rows floats), queryGradient, keyGradient, valueGradient; version 9 takes a place of as many
/// floats as queryGradient has elements besides.
struct FlashLaunch
{
    int version = 1;
    ElementFormat format = ElementFormat::Float16;
    AttentionSizes sizes;
    AttentionArrays arrays;
};
/// cudaErrorInvalidValue for a version that has no such format or head dimension; formats and
/// versions that need sm_80 are the caller's to keep from an older GPU.
cudaError_t launchFlash(const FlashLaunch& launch, cudaStream_t stream);
/// Versions 6 and 7, which is also 9's forward; launchFlash() asks it.
cudaError_t launchFlashWide(const FlashLaunch& launch, cudaStream_t stream);
/// Version 8 alone, too. cudaErrorNoKernelImageForDevice on any GPU but one of compute capability 9.0,
/// and from a build without sm_90a.
cudaError_t launchFlashHopper(const FlashLaunch& launch, cudaStream_t stream);
/// The first `count` elements of an input (attention_numbers.h), rounded to the format.
cudaError_t launchAttentionInput(void* to, ElementFormat format, AttentionTensor tensor, AttentionInputs inputs,
                                 std::uint64_t count, std::uint64_t headDim, cudaStream_t stream);

/// P = softmax(scale S) over the rows of batch × heads × queries × keys scores; or, with a gradient
/// dP, dS = scale P ∘ (dP − Σ P ∘ dP) from P as `scores`. The result may lie over S or dP.
struct SoftmaxLaunch
{
    ElementFormat format = ElementFormat::Float16;
    AttentionSizes sizes;
    const void* scores = nullptr;
    const void* gradient = nullptr;
    void* result = nullptr;
};
cudaError_t launchSoftmax(const SoftmaxLaunch& launch, cudaStream_t stream);

/// `batch` products C = factor × A B of row-major matrices that lie one behind the other: A is rows ×
/// inner, or inner × rows when it is read transposed; B is inner × columns, or columns × inner.
struct TensorProductLaunch
{
    ElementFormat format = ElementFormat::Float16; ///< not Float32; BFloat16 from sm_80 on
    int rows = 1, columns = 1, inner = 1, batch = 1;
    const void* a = nullptr;
    bool aTransposed = false;
    const void* b = nullptr;
    bool bTransposed = false;
    void* c = nullptr;
    float factor = 1;
};
cudaError_t launchTensorProduct(const TensorProductLaunch& launch, cudaStream_t stream);

/// Delta, then dK and dV, then dQ, on the tiles of that version. Halves and bfloat16, from sm_80 on.
cudaError_t launchFlashBackward(const FlashLaunch& launch, cudaStream_t stream);
/// Version 9's alone, dK, dV and dQ in one pass; launchFlashBackward() asks it.
cudaError_t launchFlashOnePass(const FlashLaunch& launch, cudaStream_t stream);

} // namespace memscape::cuda
