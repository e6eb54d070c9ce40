// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/cublas_lt.h"

#include "kernels/cuda/common/cublas_lt_places.h"
#include "kernels/cuda/common/watchdog.h"

#include <cstdlib>
#include <map>
#include <tuple>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

// As in NVIDIA's cublasLt.h, versions 11 to 13.
using Handle = void*;
using Description = void*;
using Layout = void*;
using Preference = void*;
constexpr int ok = 0, float32 = 0, float16 = 2, bfloat16 = 14;         // CUDA_R_32F, _16F, _16BF
constexpr int float64 = 1, int8 = 3, int32 = 10, e4m3 = 28, e5m2 = 29; // CUDA_R_64F, _8I, …
constexpr int computeFloat32 = 68, computeTf32 = 77;                   // CUBLAS_COMPUTE_32F, _32F_FAST_TF32
constexpr int computeFloat64 = 70, computeInt32 = 72;                  // CUBLAS_COMPUTE_64F, _32I
constexpr int transposeLeft = 3, transposeRight = 4;                   // CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB
constexpr int batchCount = 5, batchOffset = 6;                         // CUBLASLT_MATRIX_LAYOUT_…
constexpr int maximumWorkspace = 1, reductionSchemes = 3;              // CUBLASLT_MATMUL_PREF_…

struct Algorithm
{
    std::uint64_t data[8];
};
struct Heuristic
{
    Algorithm algorithm;
    std::size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

struct Library
{
    int (*create)(Handle*) = nullptr;
    int (*destroy)(Handle) = nullptr;
    int (*describe)(Description*, int compute, int scale) = nullptr;
    int (*forget)(Description) = nullptr;
    int (*setDescription)(Description, int which, const void* value, std::size_t bytes) = nullptr;
    int (*layOut)(Layout*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t stride) = nullptr;
    int (*forgetLayout)(Layout) = nullptr;
    int (*setLayout)(Layout, int which, const void* value, std::size_t bytes) = nullptr;
    int (*prefer)(Preference*) = nullptr;
    int (*forgetPreference)(Preference) = nullptr;
    int (*setPreference)(Preference, int which, const void* value, std::size_t bytes) = nullptr;
    int (*choose)(Handle, Description, Layout, Layout, Layout, Layout, Preference, int wanted, Heuristic*,
                  int* found) = nullptr;
    int (*multiply)(Handle, Description, const void* alpha, const void* a, Layout, const void* b, Layout,
                    const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,
                    std::size_t workspaceBytes, cudaStream_t) = nullptr;
    CublasLtLibrary opened;
    bool usable = false;
};

template <typename Function> bool find(void* library, Function& function, const char* name)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

Library openLibrary()
{
    Library blas;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    const char* const chosen = std::getenv(cublasLtVariable);
    blas.opened = openCublasLt(chosen != nullptr ? chosen : "", driver, cublasLtNames(driver));
    void* const library = blas.opened.handle;
    blas.usable = library != nullptr && find(library, blas.create, "cublasLtCreate")
        && find(library, blas.destroy, "cublasLtDestroy") && find(library, blas.describe, "cublasLtMatmulDescCreate")
        && find(library, blas.forget, "cublasLtMatmulDescDestroy")
        && find(library, blas.setDescription, "cublasLtMatmulDescSetAttribute")
        && find(library, blas.layOut, "cublasLtMatrixLayoutCreate")
        && find(library, blas.forgetLayout, "cublasLtMatrixLayoutDestroy")
        && find(library, blas.setLayout, "cublasLtMatrixLayoutSetAttribute")
        && find(library, blas.prefer, "cublasLtMatmulPreferenceCreate")
        && find(library, blas.forgetPreference, "cublasLtMatmulPreferenceDestroy")
        && find(library, blas.setPreference, "cublasLtMatmulPreferenceSetAttribute")
        && find(library, blas.choose, "cublasLtMatmulAlgoGetHeuristic")
        && find(library, blas.multiply, "cublasLtMatmul");
    return blas;
}

const Library& library()
{
    static const Library blas = openLibrary();
    return blas;
}

/// What a product of one shape needs, made once.
struct Plan
{
    Description description = nullptr;
    Layout left = nullptr, right = nullptr, result = nullptr;
    Algorithm algorithm = {};

    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan()
    {
        if (description != nullptr)
            library().forget(description);
        for (Layout layout : {left, right, result}) {
            if (layout != nullptr)
                library().forgetLayout(layout);
        }
    }
};

/// Of A, of B, of C, what is summed in, and what C's factor is.
struct Types
{
    int a, b, c, compute, factor;
    auto key() const { return std::tie(a, b, c, compute, factor); }
    bool operator<(const Types& other) const { return key() < other.key(); }
};

Types sameTypes(int type)
{
    return {type, type, type, computeFloat32, float32};
}

Types typesOf(Format format)
{
    switch (format) {
    case Format::Fp64: return {float64, float64, float64, computeFloat64, float64};
    case Format::Fp32: return sameTypes(float32);
    case Format::Tf32: return {float32, float32, float32, computeTf32, float32};
    case Format::Fp16: return sameTypes(float16);
    case Format::Bf16: return sameTypes(bfloat16);
    case Format::Fp8E4M3: return {e4m3, e4m3, bfloat16, computeFloat32, float32};
    case Format::Fp8E5M2: return {e5m2, e4m3, bfloat16, computeFloat32, float32};
    case Format::Int8: break;
    }
    return {int8, int8, int32, computeInt32, int32};
}

/// What a plan depends on; strides are between rows as they lie, steps between matrices of a batch.
struct Shape
{
    Types types;
    std::uint64_t rows, columns, inner;
    std::uint64_t aStride, bStride, cStride;
    bool aTransposed, bTransposed;
    std::int32_t batch;
    std::uint64_t workspace = 0; ///< with one, the inner dimension may be split

    auto key() const
    {
        return std::tie(types, rows, columns, inner, aStride, bStride, cStride, aTransposed, bTransposed, batch,
                        workspace);
    }
    bool operator<(const Shape& other) const { return key() < other.key(); }
};

/// The library's matrices lie column by column, so ours are their transposes: Cᵀ = Bᵀ Aᵀ, with B on
/// the left.
bool plan(Handle handle, const Shape& w, Plan& made)
{
    const Library& blas = library();
    const int left = w.bTransposed ? 1 : 0, right = w.aTransposed ? 1 : 0;
    const auto layOut = [&](Layout& layout, int type, std::uint64_t width, std::uint64_t height, std::uint64_t stride) {
        const auto step = static_cast<std::int64_t>(stride * height);
        return blas.layOut(&layout, type, width, height, static_cast<std::int64_t>(stride)) == ok
            && (w.batch == 1
                || (blas.setLayout(layout, batchCount, &w.batch, sizeof w.batch) == ok
                    && blas.setLayout(layout, batchOffset, &step, sizeof step) == ok));
    };
    if (blas.describe(&made.description, w.types.compute, w.types.factor) != ok
        || blas.setDescription(made.description, transposeLeft, &left, sizeof left) != ok
        || blas.setDescription(made.description, transposeRight, &right, sizeof right) != ok
        || !layOut(made.left, w.types.b, w.bTransposed ? w.inner : w.columns, w.bTransposed ? w.columns : w.inner,
                   w.bStride)
        || !layOut(made.right, w.types.a, w.aTransposed ? w.rows : w.inner, w.aTransposed ? w.inner : w.rows, w.aStride)
        || !layOut(made.result, w.types.c, w.columns, w.rows, w.cStride))
        return false;
    Preference preference = nullptr;
    const std::uint32_t reductions = w.workspace > 0 ? 7 : 0; // all three kinds, or none
    Heuristic best = {};
    int found = 0;
    const bool chosen = blas.prefer(&preference) == ok
        && blas.setPreference(preference, maximumWorkspace, &w.workspace, sizeof w.workspace) == ok
        && blas.setPreference(preference, reductionSchemes, &reductions, sizeof reductions) == ok
        && blas.choose(handle, made.description, made.left, made.right, made.result, made.result, preference, 1, &best,
                       &found)
            == ok
        && found > 0 && best.state == ok;
    if (preference != nullptr)
        blas.forgetPreference(preference);
    made.algorithm = best.algorithm;
    return chosen;
}

} // namespace

struct CublasLt::Plans
{
    Handle handle = nullptr;
    std::map<Shape, Plan> byShape;
};

struct CublasLt::Product
{
    Shape shape;
    const void *a, *b;
    void* c;
    float factor;
    void* workspace = nullptr;
};

CublasLt::CublasLt()
    : m_plans(std::make_unique<Plans>())
{ }

CublasLt::~CublasLt()
{
    m_plans->byShape.clear();
    if (m_plans->handle != nullptr && !isHung())
        library().destroy(m_plans->handle);
}

std::unique_ptr<CublasLt> CublasLt::open()
{
    if (!library().usable)
        return nullptr;
    std::unique_ptr<CublasLt> blas(new CublasLt);
    if (library().create(&blas->m_plans->handle) != ok)
        return nullptr;
    blas->m_name = "cuBLASLt " + library().opened.version;
    return blas;
}

Json CublasLt::record() const
{
    const CublasLtLibrary& opened = library().opened;
    Json record{{"file", opened.file}, {"version", opened.version}};
    if (!opened.trouble.empty())
        record["passed_over"] = opened.trouble;
    return record;
}

std::string CublasLt::passedOver()
{
    return library().opened.trouble;
}

std::string CublasLt::whyMissing()
{
    const CublasLtLibrary& opened = library().opened;
    if (opened.handle != nullptr)
        return fmt::format("{} does not start on this GPU and driver", opened.file);
    return "libcublasLt was not found";
}

Result<void> CublasLt::launch(const ProductLaunch& w, cudaStream_t stream, void* workspace,
                              std::uint64_t workspaceBytes)
{
    return multiply({{sameTypes(float32), w.rows, w.columns, w.inner, w.aStride, w.bStride, w.cStride, w.aTransposed,
                      w.bTransposed, 1, workspaceBytes},
                     w.a,
                     w.b,
                     w.c,
                     1,
                     workspace},
                    stream);
}

Result<void> CublasLt::launch(const TensorProductLaunch& w, cudaStream_t stream, void* workspace)
{
    const int type = w.format == ElementFormat::Float32 ? float32
        : w.format == ElementFormat::Float16            ? float16
                                                        : bfloat16;
    const auto rows = std::uint64_t(w.rows), columns = std::uint64_t(w.columns), inner = std::uint64_t(w.inner);
    Shape shape{sameTypes(type),
                rows,
                columns,
                inner,
                w.aTransposed ? rows : inner,
                w.bTransposed ? inner : columns,
                columns,
                w.aTransposed,
                w.bTransposed,
                w.batch};
    shape.workspace = workspace != nullptr ? formatWorkspace : 0;
    return multiply({shape, w.a, w.b, w.c, w.factor, workspace}, stream);
}

Result<void> CublasLt::launch(const FormatProduct& w, cudaStream_t stream)
{
    const bool bTransposed = bLiesTransposed(w.format);
    Shape shape{typesOf(w.format), w.rows, w.columns,   w.inner, w.inner, bTransposed ? w.inner : w.columns,
                w.columns,         false,  bTransposed, 1};
    shape.workspace = w.workspace != nullptr ? formatWorkspace : 0;
    return multiply({shape, w.a, w.b, w.c, 1, w.workspace}, stream);
}

Result<void> CublasLt::multiply(const Product& w, cudaStream_t stream)
{
    auto found = m_plans->byShape.find(w.shape);
    if (found == m_plans->byShape.end()) {
        found = m_plans->byShape.try_emplace(w.shape).first;
        if (!plan(m_plans->handle, w.shape, found->second)) {
            m_plans->byShape.erase(found);
            return fail(
                "run.failed",
                fmt::format("{} has no product for {} × {} × {}", m_name, w.shape.rows, w.shape.columns, w.shape.inner),
                "choose sizes that are multiples of 16");
        }
    }
    const Plan& p = found->second;
    // The factors are numbers of the type that the plan was made for; zero is zero in all of them.
    const double wide = double(w.factor), zero = 0;
    const auto whole = std::int32_t(w.factor);
    const int type = w.shape.types.factor;
    const void* factor = type == float64 ? static_cast<const void*>(&wide)
        : type == int32                  ? static_cast<const void*>(&whole)
                                         : &w.factor;
    const int status =
        library().multiply(m_plans->handle, p.description, factor, w.b, p.left, w.a, p.right, &zero, w.c, p.result, w.c,
                           p.result, &p.algorithm, w.workspace, w.shape.workspace, stream);
    if (status != ok)
        return fail("run.failed", fmt::format("{} refused a product (status {})", m_name, status),
                    "run memscape-cli selftest on this device");
    return {};
}

} // namespace memscape::cuda
