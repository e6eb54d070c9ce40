// SPDX-License-Identifier: Apache-2.0
// Products of matrices in the number formats that this processor supports. Implementations:
//
//   oneDNN      FP32, BF16 and INT8, in the processor's own instructions for them
//   FP32 units  FP32 by OpenBLAS or our own kernel (product.h); BF16 and FP16 by converting blocks to
//               FP32 and the result back: the bytes of the short format, the speed of the long one.
//               What is left for a processor or library without the instructions, and what "emulated"
//               means in a record
//
// A product is prepared once (its shape decides about code and copies) and run many times, on the
// calling thread; the threads of a team run slabs of one product each. Sums are kept in FP32 (INT32
// for INT8) and rounded once, to nearest even, when the result is shorter.
#pragma once

#include "core/precision/number_format.h"
#include "core/timing/gemm_time.h"
#include "kernels/host/common/product.h"
#include "kernels/host/session.h"

#include <memory>
#include <string>
#include <vector>

namespace memscape::host {

/// C (m × n) ← A (m × k) · B (k × n), row-major, strides in elements; A and B may lie transposed.
struct GemmTask
{
    GemmShape shape;
    Format operands = Format::Fp32;
    Format result = Format::Fp32; ///< FP32 or the operands' own; INT8 gives INT32 whatever this says
    std::int64_t aStride = 0, bStride = 0, cStride = 0;
    bool aTransposed = false, bTransposed = false;

    /// Densely packed matrices.
    static GemmTask dense(const GemmShape& shape, Format format);
};

/// Bytes of an element of the result.
int resultBytes(const GemmTask& task);

class GemmPlan
{
public:
    virtual ~GemmPlan() = default;
    /// Not from two threads at once.
    virtual void run(const void* a, const void* b, void* c) = 0;
    /// "oneDNN 2.6.3 brg:avx512_core_bf16"
    virtual std::string name() const = 0;
};

struct GemmKernel
{
    std::string name;        ///< "oneDNN 2.6.3"
    bool isEmulated = false; ///< multiplies in FP32 what was another format
    std::function<Result<std::unique_ptr<GemmPlan>>(const GemmTask&)> plan;
};

/// The implementations of products in a format on this machine, best first; empty where there is none.
std::vector<GemmKernel> gemmKernels(Format format);
/// The formats that gemmKernels() has a kernel for.
std::vector<Format> gemmFormats();

/// A product on all threads of the team: each computes slabs of rows, or of columns when there are
/// more of them, one after the other, so that Stop is heard between them.
class TeamGemm
{
public:
    /// Errors: those of the kernel's plan.
    static Result<TeamGemm> make(HostSession& session, const GemmKernel& kernel, const GemmTask& task);
    double run(const void* a, const void* b, void* c); ///< seconds
    std::string name() const { return m_slabs.front().front().plan->name(); }

private:
    struct Slab
    {
        std::unique_ptr<GemmPlan> plan;
        std::size_t a = 0, b = 0, c = 0; ///< B from the beginning of each matrix
    };
    HostSession* m_session = nullptr;
    std::vector<std::vector<Slab>> m_slabs; ///< by thread
};

/// Every format's product by this kernel against sums in double of the rounded operands: odd sizes,
/// both ways to read A and B, poisoned and guarded results.
Check checkGemm(const GemmKernel& kernel, Format format);

/// What CPUID says about short formats, for people: "AVX512-BF16, AVX512-VNNI, F16C; no AMX".
std::string numberInstructions();

} // namespace memscape::host
