// SPDX-License-Identifier: Apache-2.0
// The number formats that our own products on tensor cores take beside halves (attention/tensor_product.h):
// the traits of a format for a kernel template. C++17: nvcc reads this file.
#pragma once

#include "kernels/cuda/attention/shape.h"

#include <cstdint>

/// The first toolkit whose assembler knows mma.sync in FP8 (PTX 8.4), as CUDART_VERSION.
#define MEMSCAPE_CUDA_FP8 12040

namespace memscape::cuda {

enum class TensorFormat { Fp64, Tf32, E4M3, E5M2, Int8 };

/// Floats of which tensor cores read the upper 19 bits.
struct Tf32Numbers
{
    static constexpr TensorFormat format = TensorFormat::Tf32;
    static constexpr int bytes = 4;
    using Sum = float;
    using Result = float;
};
struct E4M3Numbers
{
    static constexpr TensorFormat format = TensorFormat::E4M3;
    static constexpr int bytes = 1;
    using Sum = float;
    using Result = Bfloat;
};
/// On the left; on the right lies E4M3: gradients times weights.
struct E5M2Numbers
{
    static constexpr TensorFormat format = TensorFormat::E5M2;
    static constexpr int bytes = 1;
    using Sum = float;
    using Result = Bfloat;
};
struct Int8Numbers
{
    static constexpr TensorFormat format = TensorFormat::Int8;
    static constexpr int bytes = 1;
    using Sum = std::int32_t;
    using Result = std::int32_t;
};

/// C (rows × columns) = A (rows × inner) · B. B lies as rows of its columns, for formats of one byte as columns
/// along the inner dimension. C is FP64, floats (TF32), bfloat16 (FP8) or 32-bit integers.
struct FormatProductLaunch
{
    TensorFormat format = TensorFormat::Tf32;
    int rows = 1, columns = 1, inner = 1;
    const void *a = nullptr, *b = nullptr;
    void* c = nullptr;
};

} // namespace memscape::cuda
