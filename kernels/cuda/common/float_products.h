// SPDX-License-Identifier: Apache-2.0
// The library for float products of the chains: cuBLASLt where it is installed, else our own kernel, which is
// checked first. And what every run says of the library that it uses.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/measure/backend.h"

#include <memory>
#include <string>

namespace memscape::cuda {

/// Says that no library was found and who multiplies `instead`, or that it is not the one that was
/// asked for. `blas` may be null.
void noteLibrary(const CublasLt* blas, const std::string& instead, RunSink& sink);
/// `machine["cublaslt"]`: the file and version of the library; nothing when `blas` is null.
void addLibrary(Json& machine, const CublasLt* blas);

/// Null: our own products, right, with a note. Errors: check.failed, those of CUDA.
Result<std::unique_ptr<CublasLt>> openProducts(RunSink& sink);
/// For records and the self-test; `blas` may be null.
std::string productsText(const CublasLt* blas);

} // namespace memscape::cuda
