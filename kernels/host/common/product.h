// SPDX-License-Identifier: Apache-2.0
// Products of float matrices on one core. See product.cpp for our own, blas.h for OpenBLAS's.
#pragma once

#include "kernels/host/common/simd.h"
#include "kernels/measure/check.h"

#include <functional>
#include <string>
#include <vector>

namespace memscape::host {

/// C (rows × columns) ← A · B, or C + A · B. All row-major; a stride is the distance of rows in elements.
/// A is rows × inner, or inner × rows when it is read transposed; B is inner × columns, or turned round.
struct ProductWork
{
    std::size_t rows = 0, columns = 0, inner = 0;
    const float* a = nullptr;
    std::size_t aStride = 0;
    bool aTransposed = false;
    const float* b = nullptr;
    std::size_t bStride = 0;
    bool bTransposed = false;
    float* c = nullptr;
    std::size_t cStride = 0;
    bool adds = false; ///< to what C holds

    double flops() const { return 2.0 * double(rows) * double(columns) * double(inner); }
};

/// Where a product keeps its rearranged blocks; one per thread.
using ProductScratch = std::vector<float>;
using ProductFunction = std::function<void(const ProductWork&, ProductScratch&)>;

struct ProductKernel
{
    std::string name; ///< "product v2 AVX-512", "product OpenBLAS 0.3.21"
    ProductFunction run;
    int tileRows = 4, tileColumns = 16; ///< sides of a result are rounded up to these; a guess for libraries
};

/// Every version that this processor runs, naive first, OpenBLAS last when it is here.
std::vector<ProductKernel> productKernels();
/// The last of them: what is measured.
ProductKernel bestProduct();

/// The same bits every time for the same sizes, and within rounding of the reference in double, on odd
/// sizes, all ways to read A and B, poisoned and guarded outputs.
Check checkProduct(const ProductKernel& kernel);

} // namespace memscape::host
