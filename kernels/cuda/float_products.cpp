// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/float_products.h"

#include "kernels/cuda/errors.h"

#include <fmt/format.h>

namespace memscape::cuda {

Result<std::unique_ptr<CublasLt>> openProducts(RunSink& sink)
{
    std::unique_ptr<CublasLt> blas = CublasLt::open();
    if (blas)
        return blas;
    for (const bool aTransposed : {false, true})
        MEMSCAPE_CHECK(passedCheck(checkProduct(productVersions, aTransposed, !aTransposed)));
    MEMSCAPE_CHECK(passedCheck(checkProduct(productVersions, false, false)));
    sink.note("info", "cublaslt.missing",
              "libcublasLt was not found: products by our own kernel, slower than NVIDIA's; "
              "install the CUDA toolkit's cuBLAS");
    return blas;
}

std::string productsText(const CublasLt* blas)
{
    return blas != nullptr ? blas->name() + ", float without TF32, no workspace"
                           : fmt::format("product v{} of Memscape", productVersions);
}

Result<void> passedCheck(const KernelCheck& check)
{
    MEMSCAPE_CHECK(cudaResult(check.error, "checking the kernel"));
    if (!check.passed)
        return fail("check.failed", std::string(check.kernel) + ": " + check.detail,
                    "a kernel that is wrong is not timed; run memscape-cli selftest");
    return {};
}

} // namespace memscape::cuda
