// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/float_products.h"

#include "kernels/cuda/common/errors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr const char* remedy = "install the CUDA toolkit's cuBLAS, or name the library, PyTorch's for instance, in "
                               "MEMSCAPE_CUBLASLT";

} // namespace

void noteLibrary(const CublasLt* blas, const std::string& instead, RunSink& sink)
{
    const std::string wrong = CublasLt::passedOver();
    if (blas == nullptr)
        sink.note(wrong.empty() ? "info" : "warning", "cublaslt.missing",
                  fmt::format("{}{}{}: {}, slower than NVIDIA's; {}", wrong, wrong.empty() ? "" : "; elsewhere ",
                              CublasLt::whyMissing(), instead, remedy));
    else if (!wrong.empty())
        sink.note(
            "warning", "cublaslt.passed_over",
            fmt::format("{}; {} multiplies instead, the provenance names its file; correct the variable or unset it",
                        wrong, blas->name()));
}

void addLibrary(Json& machine, const CublasLt* blas)
{
    if (blas != nullptr)
        machine["cublaslt"] = blas->record();
}

Result<std::unique_ptr<CublasLt>> openProducts(RunSink& sink)
{
    std::unique_ptr<CublasLt> blas = CublasLt::open();
    noteLibrary(blas.get(), "our own kernel multiplies", sink);
    if (blas)
        return blas;
    for (const bool aTransposed : {false, true})
        MEMSCAPE_CHECK(passedCheck(checkProduct(productVersions, aTransposed, !aTransposed)));
    MEMSCAPE_CHECK(passedCheck(checkProduct(productVersions, false, false)));
    return blas;
}

std::string productsText(const CublasLt* blas)
{
    return blas != nullptr ? blas->name() + ", float without TF32, no workspace"
                           : fmt::format("product v{} of Memscape", productVersions);
}

} // namespace memscape::cuda
