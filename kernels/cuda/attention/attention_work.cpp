// SPDX-License-Identifier: Apache-2.0
// Standard attention as a row of launches. Query heads that share keys lie one behind the other, so
// their rows are one tall matrix, and grouped queries cost no copies: with g heads to a group,
//
//   S (g n × m) = Q (g n × d) Kᵀ      P = softmax(S)      O (g n × d) = P V
//   dP = dO Vᵀ      dS = P ∘ (dP − Σ P dP)      dV (m × d) = Pᵀ dO      dQ = dS K      dK = dSᵀ Q
//
// one product per plane of K. The scale goes into the products of halves, whose scores would
// overflow without it, and into the softmax of floats, whose product has no factor.
#include "kernels/cuda/attention/attention_work.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/kernels.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

/// The shape of products of one pass: planes of K, rows of Q that belong to each.
struct Planes
{
    int count, rows, keys, headDim;
    ElementFormat format;
    float factor; ///< of products with a scale

    Planes(const AttentionSizes& s, ElementFormat elements)
        : count(s.batch * s.kvHeads)
        , rows(s.heads / s.kvHeads * s.queries)
        , keys(s.keys)
        , headDim(s.headDim)
        , format(elements)
        , factor(elements == ElementFormat::Float32 ? 1.0F : s.scale)
    { }
    TensorProductLaunch product(int height, int width, int inner, float scale = 1) const
    {
        TensorProductLaunch launch;
        launch.format = format;
        launch.rows = height;
        launch.columns = width;
        launch.inner = inner;
        launch.batch = count;
        launch.factor = scale;
        return launch;
    }
};

/// rows × keys = left (rows × d) · right (keys × d)ᵀ
TensorProductLaunch scoresOf(const Planes& p, const void* left, const void* right, void* to, float scale)
{
    TensorProductLaunch launch = p.product(p.rows, p.keys, p.headDim, scale);
    launch.a = left;
    launch.b = right;
    launch.bTransposed = true;
    launch.c = to;
    return launch;
}
/// rows × d = left (rows × keys) · right (keys × d)
TensorProductLaunch rowsOf(const Planes& p, const void* left, const void* right, void* to, float scale)
{
    TensorProductLaunch launch = p.product(p.rows, p.headDim, p.keys, scale);
    launch.a = left;
    launch.b = right;
    launch.c = to;
    return launch;
}
/// keys × d = left (rows × keys)ᵀ · right (rows × d)
TensorProductLaunch keysOf(const Planes& p, const void* left, const void* right, void* to, float scale)
{
    TensorProductLaunch launch = p.product(p.keys, p.headDim, p.rows, scale);
    launch.a = left;
    launch.aTransposed = true;
    launch.b = right;
    launch.c = to;
    return launch;
}

/// Products of floats one after the other: product.cu knows no batches.
Result<void> floatProducts(const TensorProductLaunch& w, cudaStream_t stream)
{
    const auto rows = std::uint64_t(w.rows), columns = std::uint64_t(w.columns), inner = std::uint64_t(w.inner);
    for (std::uint64_t i = 0; i < std::uint64_t(w.batch); ++i) {
        ProductLaunch launch;
        launch.rows = rows;
        launch.columns = columns;
        launch.inner = inner;
        launch.a = static_cast<const float*>(w.a) + i * rows * inner;
        launch.aStride = w.aTransposed ? rows : inner;
        launch.aTransposed = w.aTransposed;
        launch.b = static_cast<const float*>(w.b) + i * inner * columns;
        launch.bStride = w.bTransposed ? inner : columns;
        launch.bTransposed = w.bTransposed;
        launch.c = static_cast<float*>(w.c) + i * rows * columns;
        launch.cStride = columns;
        MEMSCAPE_CHECK(cudaResult(launchProduct(launch, stream), "multiplying matrices"));
    }
    return {};
}

SoftmaxLaunch softmaxOf(const AttentionSizes& sizes, ElementFormat format)
{
    SoftmaxLaunch launch;
    launch.format = format;
    launch.sizes = sizes;
    if (format != ElementFormat::Float32)
        launch.sizes.scale = 1; // it is in the products
    return launch;
}

constexpr int standardWithLibrary = 3; ///< of core/timing/attention_versions.cpp
constexpr double firstWithHalves = 7.5, firstWithBfloat = 8.0;

} // namespace

double computeCapability()
{
    int ordinal = 0, major = 0, minor = 0;
    if (cudaGetDevice(&ordinal) != cudaSuccess
        || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal) != cudaSuccess
        || cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal) != cudaSuccess)
        return 0;
    return major + minor / 10.0;
}

AttentionVersion compiledVersion(AttentionVersion version)
{
    if (version.kind == AttentionKind::Flash)
        version.headDims = {64, 128};
    return version;
}

bool usesLibrary(const AttentionTask& task)
{
    return task.problem.kind == AttentionKind::Standard && task.version.number == standardWithLibrary;
}

Result<void> checkMachine(const AttentionTask& task, bool hasLibrary)
{
    const double capability = computeCapability();
    MEMSCAPE_CHECK(supports(compiledVersion(task.version), task.problem, true, capability));
    const ElementFormat format = elementFormat(task.problem.dtype);
    const bool onTensorCores =
        format != ElementFormat::Float32 && (task.version.number > 1 || task.problem.kind == AttentionKind::Standard);
    const double needed = format == ElementFormat::BFloat16 ? firstWithBfloat : firstWithHalves;
    if (onTensorCores && capability > 0 && capability < needed)
        return fail("attention.unsupported",
                    fmt::format("products of {} need compute capability {:.1f}, this GPU has {}",
                                dtypeText(task.problem.dtype), needed, capability),
                    "choose dtype=float16 or dtype=float32, or another device", "dtype");
    if (usesLibrary(task) && !hasLibrary)
        return fail("attention.unsupported", "libcublasLt was not found, and this version's products are NVIDIA's",
                    "install the CUDA toolkit's cuBLAS, or choose version=1", "version");
    return {};
}

ElementFormat elementFormat(DType dtype)
{
    if (dtype == DType::Float16)
        return ElementFormat::Float16;
    return dtype == DType::BFloat16 ? ElementFormat::BFloat16 : ElementFormat::Float32;
}

Result<AttentionSizes> attentionSizes(const AttentionShape& shape)
{
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    const std::int64_t groupRows = shape.heads / shape.kvHeads * shape.queries;
    if (groupRows > most || shape.queryRows() > most || shape.keyRows() > most || shape.batch * shape.heads > 65535)
        return fail("attention.range",
                    fmt::format("{} × {} heads of {} queries are more than a kernel's grid holds", shape.batch,
                                shape.heads, shape.queries),
                    "choose a smaller batch, fewer heads or a shorter sequence", "batch");
    AttentionSizes sizes;
    sizes.batch = int(shape.batch);
    sizes.heads = int(shape.heads);
    sizes.kvHeads = int(shape.kvHeads);
    sizes.queries = int(shape.queries);
    sizes.keys = int(shape.keys);
    sizes.headDim = int(shape.headDim);
    sizes.causal = shape.causal;
    sizes.scale = float(1 / std::sqrt(double(shape.headDim)));
    return sizes;
}

Products ownProducts(cudaStream_t stream)
{
    return [stream](const TensorProductLaunch& launch) -> Result<void> {
        if (launch.format == ElementFormat::Float32)
            return floatProducts(launch, stream);
        return cudaResult(launchTensorProduct(launch, stream), "multiplying matrices");
    };
}

Result<void> standardForward(const AttentionSizes& sizes, ElementFormat format, const AttentionArrays& arrays,
                             const ScoreArrays& scores, const Products& multiply, cudaStream_t stream)
{
    const Planes p(sizes, format);
    MEMSCAPE_CHECK(multiply(scoresOf(p, arrays.query, arrays.key, scores.scores, p.factor)));
    SoftmaxLaunch softmax = softmaxOf(sizes, format);
    softmax.scores = scores.scores;
    softmax.result = scores.weights;
    MEMSCAPE_CHECK(cudaResult(launchSoftmax(softmax, stream), "computing softmax"));
    return multiply(rowsOf(p, scores.weights, arrays.value, arrays.output, 1));
}

Result<void> standardBackward(const AttentionSizes& sizes, ElementFormat format, const AttentionArrays& arrays,
                              const ScoreArrays& scores, const Products& multiply, cudaStream_t stream)
{
    const Planes p(sizes, format);
    MEMSCAPE_CHECK(multiply(keysOf(p, scores.weights, arrays.outputGradient, arrays.valueGradient, 1)));
    MEMSCAPE_CHECK(multiply(scoresOf(p, arrays.outputGradient, arrays.value, scores.weightsGradient, 1)));
    SoftmaxLaunch softmax = softmaxOf(sizes, format);
    softmax.scores = scores.weights;
    softmax.gradient = scores.weightsGradient;
    softmax.result = scores.scoresGradient;
    MEMSCAPE_CHECK(cudaResult(launchSoftmax(softmax, stream), "computing softmax's gradient"));
    MEMSCAPE_CHECK(multiply(rowsOf(p, scores.scoresGradient, arrays.key, arrays.queryGradient, p.factor)));
    return multiply(keysOf(p, scores.scoresGradient, arrays.query, arrays.keyGradient, p.factor));
}

} // namespace memscape::cuda
