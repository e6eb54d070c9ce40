// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublas_lt.h"

#include <map>
#include <tuple>

#include <dlfcn.h>
#include <fmt/format.h>

namespace memscape::cuda {

namespace {

// As in NVIDIA's cublasLt.h, versions 11 to 13.
using Handle = void*;
using Description = void*;
using Layout = void*;
using Preference = void*;
constexpr int ok = 0, float32 = 0, float16 = 2, bfloat16 = 14; // CUDA_R_32F, _16F, _16BF
constexpr int computeFloat32 = 68; // CUBLAS_COMPUTE_32F
constexpr int transposeLeft = 3, transposeRight = 4; // CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB
constexpr int batchCount = 5, batchOffset = 6; // CUBLASLT_MATRIX_LAYOUT_…
constexpr int maximumWorkspace = 1, reductionSchemes = 3; // CUBLASLT_MATMUL_PREF_…

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
    std::size_t (*version)() = nullptr;
    int (*describe)(Description*, int compute, int scale) = nullptr;
    int (*forget)(Description) = nullptr;
    int (*setDescription)(Description, int which, const void* value, std::size_t bytes) = nullptr;
    int (*layOut)(Layout*, int type, std::uint64_t rows, std::uint64_t columns,
                  std::int64_t stride) = nullptr;
    int (*forgetLayout)(Layout) = nullptr;
    int (*setLayout)(Layout, int which, const void* value, std::size_t bytes) = nullptr;
    int (*prefer)(Preference*) = nullptr;
    int (*forgetPreference)(Preference) = nullptr;
    int (*setPreference)(Preference, int which, const void* value, std::size_t bytes) = nullptr;
    int (*choose)(Handle, Description, Layout, Layout, Layout, Layout, Preference, int wanted,
                  Heuristic*, int* found) = nullptr;
    int (*multiply)(Handle, Description, const void* alpha, const void* a, Layout, const void* b,
                    Layout, const void* beta, const void* c, Layout, void* d, Layout,
                    const Algorithm*, void* workspace, std::size_t workspaceBytes,
                    cudaStream_t) = nullptr;
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
    void* library = nullptr;
    for (const char* name :
         {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"}) {
        if (library == nullptr)
            library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    blas.usable = library != nullptr && find(library, blas.create, "cublasLtCreate")
        && find(library, blas.destroy, "cublasLtDestroy")
        && find(library, blas.version, "cublasLtGetVersion")
        && find(library, blas.describe, "cublasLtMatmulDescCreate")
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

/// What a plan depends on; strides are between rows as they lie, steps between matrices of a batch.
struct Shape
{
    int type;
    std::uint64_t rows, columns, inner;
    std::uint64_t aStride, bStride, cStride;
    bool aTransposed, bTransposed;
    std::int32_t batch;

    auto key() const
    {
        return std::tie(type, rows, columns, inner, aStride, bStride, cStride, aTransposed,
                        bTransposed, batch);
    }
    bool operator<(const Shape& other) const { return key() < other.key(); }
};

/// The library's matrices lie column by column, so ours are their transposes: Cᵀ = Bᵀ Aᵀ, with B on
/// the left.
bool plan(Handle handle, const Shape& w, Plan& made)
{
    const Library& blas = library();
    const int left = w.bTransposed ? 1 : 0, right = w.aTransposed ? 1 : 0;
    const auto layOut = [&](Layout& layout, std::uint64_t width, std::uint64_t height,
                            std::uint64_t stride) {
        const auto step = static_cast<std::int64_t>(stride * height);
        return blas.layOut(&layout, w.type, width, height, static_cast<std::int64_t>(stride)) == ok
            && (w.batch == 1
                || (blas.setLayout(layout, batchCount, &w.batch, sizeof w.batch) == ok
                    && blas.setLayout(layout, batchOffset, &step, sizeof step) == ok));
    };
    if (blas.describe(&made.description, computeFloat32, float32) != ok
        || blas.setDescription(made.description, transposeLeft, &left, sizeof left) != ok
        || blas.setDescription(made.description, transposeRight, &right, sizeof right) != ok
        || !layOut(made.left, w.bTransposed ? w.inner : w.columns,
                   w.bTransposed ? w.columns : w.inner, w.bStride)
        || !layOut(made.right, w.aTransposed ? w.rows : w.inner, w.aTransposed ? w.inner : w.rows,
                   w.aStride)
        || !layOut(made.result, w.columns, w.rows, w.cStride))
        return false;
    Preference preference = nullptr;
    const std::uint64_t workspace = 0;
    const std::uint32_t noReduction = 0;
    Heuristic best = {};
    int found = 0;
    const bool chosen = blas.prefer(&preference) == ok
        && blas.setPreference(preference, maximumWorkspace, &workspace, sizeof workspace) == ok
        && blas.setPreference(preference, reductionSchemes, &noReduction, sizeof noReduction) == ok
        && blas.choose(handle, made.description, made.left, made.right, made.result, made.result,
                       preference, 1, &best, &found)
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
};

CublasLt::CublasLt()
    : m_plans(std::make_unique<Plans>())
{
}

CublasLt::~CublasLt()
{
    m_plans->byShape.clear();
    if (m_plans->handle != nullptr)
        library().destroy(m_plans->handle);
}

std::unique_ptr<CublasLt> CublasLt::open()
{
    if (!library().usable)
        return nullptr;
    std::unique_ptr<CublasLt> blas(new CublasLt);
    if (library().create(&blas->m_plans->handle) != ok)
        return nullptr;
    const std::size_t version = library().version(); // 130002, before 12: 111103
    blas->m_name =
        fmt::format("cuBLASLt {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
    return blas;
}

Result<void> CublasLt::launch(const ProductLaunch& w, cudaStream_t stream)
{
    return multiply({{float32, w.rows, w.columns, w.inner, w.aStride, w.bStride, w.cStride,
                      w.aTransposed, w.bTransposed, 1},
                     w.a,
                     w.b,
                     w.c,
                     1},
                    stream);
}

Result<void> CublasLt::launch(const TensorProductLaunch& w, cudaStream_t stream)
{
    const int type = w.format == ElementFormat::Float32 ? float32
        : w.format == ElementFormat::Float16            ? float16
                                                        : bfloat16;
    const auto rows = std::uint64_t(w.rows), columns = std::uint64_t(w.columns),
               inner = std::uint64_t(w.inner);
    return multiply({{type, rows, columns, inner, w.aTransposed ? rows : inner,
                      w.bTransposed ? inner : columns, columns, w.aTransposed, w.bTransposed,
                      w.batch},
                     w.a,
                     w.b,
                     w.c,
                     w.factor},
                    stream);
}

Result<void> CublasLt::multiply(const Product& w, cudaStream_t stream)
{
    auto found = m_plans->byShape.find(w.shape);
    if (found == m_plans->byShape.end()) {
        found = m_plans->byShape.try_emplace(w.shape).first;
        if (!plan(m_plans->handle, w.shape, found->second)) {
            m_plans->byShape.erase(found);
            return fail("run.failed",
                        fmt::format("{} has no product for {} × {} × {}", m_name, w.shape.rows,
                                    w.shape.columns, w.shape.inner),
                        "choose sizes that are multiples of 8");
        }
    }
    const Plan& p = found->second;
    const float zero = 0;
    const int status =
        library().multiply(m_plans->handle, p.description, &w.factor, w.b, p.left, w.a, p.right,
                           &zero, w.c, p.result, w.c, p.result, &p.algorithm, nullptr, 0, stream);
    if (status != ok)
        return fail("run.failed", fmt::format("{} refused a product (status {})", m_name, status),
                    "run memscape-cli selftest on this device");
    return {};
}

} // namespace memscape::cuda
