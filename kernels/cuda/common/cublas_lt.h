// SPDX-License-Identifier: Apache-2.0
// NVIDIA's matrix products, cuBLASLt, opened at run time: half a gigabyte that need not be installed (where
// it is looked for: cublas_lt_places.h). Its
// few functions are declared here; without the library our own kernel of product.cu multiplies. Float without
// TF32, no workspace and no split of the inner dimension: the same sizes give the same bits, and no
// memory is used beside the pool. The exceptions: products of `precision` are what the library does best, with a
// workspace, in any format it has; its training steps and those of `batch-size` have the workspace that PyTorch
// gives the library.
#pragma once

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/precision/number_format.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/kernels.h"

#include <memory>
#include <string>

namespace memscape::cuda {

/// One product C (rows × columns) = A (rows × inner) · B of row-major matrices in a format. B is inner ×
/// columns; of FP8 and INT8, which the library multiplies in that form alone, columns × inner. C: FP8 gives
/// bfloat16, INT8 int32, the others themselves. FP8 E5M2, the format of gradients, is multiplied with a B of
/// E4M3: no hardware multiplies two of it.
struct FormatProduct
{
    Format format = Format::Fp32;
    std::uint64_t rows = 1, columns = 1, inner = 1;
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
    void* workspace = nullptr; ///< of formatWorkspace bytes
};
inline constexpr std::uint64_t formatWorkspace = 32ULL << 20; ///< what PyTorch gives it on Hopper
/// Whether B lies transposed for a format.
inline bool bLiesTransposed(Format format)
{
    return numberFormat(format).bytes == 1;
}

class CublasLt
{
public:
    /// The library, ready on the current device; null when there is none or it does not start.
    static std::unique_ptr<CublasLt> open();
    ~CublasLt();
    CublasLt(const CublasLt&) = delete;
    CublasLt& operator=(const CublasLt&) = delete;

    /// "cuBLASLt 13.0.2"
    const std::string& name() const { return m_name; }
    /// File and version of the library that was opened, for the provenance of what it multiplied.
    Json record() const;
    /// What is wrong with the library that MEMSCAPE_CUBLASLT names, so that another multiplies; empty
    /// when nothing is.
    static std::string passedOver();
    /// "libcublasLt was not found"; asked when open() gave none.
    static std::string whyMissing();
    /// Queues the product; `version` is not looked at. The algorithm of a shape is chosen once. Errors:
    /// run.failed when the library has none for it or refuses.
    /// With a workspace the inner dimension may be split.
    Result<void> launch(const ProductLaunch& launch, cudaStream_t stream, void* workspace = nullptr,
                        std::uint64_t workspaceBytes = 0);
    /// The same for a batch, in any of its formats, with sums in float; a workspace is of formatWorkspace bytes.
    Result<void> launch(const TensorProductLaunch& launch, cudaStream_t stream, void* workspace = nullptr);
    Result<void> launch(const FormatProduct& launch, cudaStream_t stream);

private:
    CublasLt();
    struct Plans;
    struct Product;
    Result<void> multiply(const Product& product, cudaStream_t stream);
    std::string m_name;
    std::unique_ptr<Plans> m_plans;
};

} // namespace memscape::cuda
