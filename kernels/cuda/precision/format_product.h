// SPDX-License-Identifier: Apache-2.0
// One matrix product in any of the number formats, on this GPU: NVIDIA's where cuBLASLt is installed, else
// our own kernels (floats: product.cu; on tensor cores: attention/tensor_product.h for halves and bfloat16,
// format_tiles.h for the others).
// Operands are drawn from a table of numbers that the format holds exactly, so the reference knows them.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/session.h"
#include "kernels/measure/backend.h"
#include "kernels/measure/check.h"

#include "core/experiments/precision/precision.h"

#include <optional>
#include <vector>

namespace memscape::cuda {

/// The implementation of products in a format on this GPU. Errors: run.skipped, naming the formats that there are and
/// what is missing: a newer GPU, or the library.
Result<std::string> whoMultiplies(Format format, const CublasLt* blas, double capability);
/// In the order of numberFormats().
std::vector<Format> multipliedFormats(const CublasLt* blas, double capability);

/// C (m × n) = A (m × k) · B, ready to be launched again and again.
class GpuProduct
{
public:
    /// Allocates and fills. Errors: those of whoMultiplies(), run.memory, and those of CUDA.
    static Result<GpuProduct> make(GpuSession& session, CublasLt* blas, Format format, const GemmShape& shape);

    const std::string& who() const { return m_who; }
    const GemmShape& shape() const { return m_shape; }
    /// Queues it on the session's stream. Errors: run.failed, those of CUDA.
    Result<void> launch(GpuSession& session);
    /// C, as its bytes.
    Result<std::vector<std::byte>> result(GpuSession& session) const;

private:
    GpuProduct() = default;

    CublasLt* m_blas = nullptr;
    Format m_format = Format::Fp32;
    GemmShape m_shape;
    std::string m_who;
    Buffer m_a, m_b, m_c, m_workspace;
};

/// Products of a few small shapes against sums in double. Errors: those of making them.
Result<Check> checkGpuProduct(GpuSession& session, CublasLt* blas, Format format);

/// FP16, BF16 and FP8: what the GPU makes of a million floats of all magnitudes and of every bit pattern of
/// the format, bit by bit against core/precision. Errors: format.unknown for others.
Result<Check> checkConversions(GpuSession& session, Format format);

/// `value` after the GPU's own conversion and back; nothing for formats that it has no such instruction for.
std::optional<double> gpuStored(GpuSession& session, Format format, double value);

/// FLOP/s that large products reach, by format: for the calibration.
Result<Json> gpuProductRates(GpuSession& session, RunSink& sink);

} // namespace memscape::cuda
