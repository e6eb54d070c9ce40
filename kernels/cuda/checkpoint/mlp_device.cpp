// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/checkpoint/mlp_device.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"

#include "core/base/number.h"

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::size_t operationsAhead = 4; ///< of the GPU, at most

class CudaMlpDevice final : public MlpDevice
{
public:
    CudaMlpDevice(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled, const MlpShape& shape)
        : m_session(session)
        , m_blas(blas)
        , m_cancelled(std::move(cancelled))
        , m_shape(shape)
        , m_batch(std::uint64_t(shape.batch))
        , m_width(std::uint64_t(shape.width))
        , m_count(m_batch * m_width)
    { }
    ~CudaMlpDevice() override
    {
        m_session.settle();
        for (const cudaEvent_t event : m_events)
            cudaEventDestroy(event);
    }

    Result<void> open(std::int64_t arenaBytes);

    float* arena() override { return reinterpret_cast<float*>(m_arena.get()); }
    Result<void> input(float* x) override
    {
        return queued(launchUniform(x, m_count, mlpInputSeed, 1, m_session.stream()), "making the input");
    }
    Result<void> forward(int stage, const float* x, float* z, float* result) override;
    Result<void> preactivation(int stage, const float* x, float* z) override;
    Result<void> loss(const float* x, float* gradient) override
    {
        return queued(launchLoss(x, gradient, m_count, reinterpret_cast<double*>(m_partial.get()), m_session.stream()),
                      "computing the loss");
    }
    Result<void> backward(int stage, const float* x, const float* z, float* gradient, float* result) override;
    Result<void> poison(float* array) override
    {
        return queued(cudaMemsetAsync(array, 0xff, std::size_t(mlpArrayBytes(m_shape)), m_session.stream()),
                      "poisoning an array");
    }
    Result<void> mark() override;
    Result<std::vector<double>> takeMarks() override;
    Result<void> checkStopped() override;

    Result<std::uint64_t> digest(const float* array) override { return digestOf(array, m_count); }
    Result<std::uint64_t> gradientDigest(int stage) override { return digestOf(gradients(stage), blockElements()); }
    Result<double> loss() override;
    Result<std::vector<float>> read(const float* array) override { return download<float>(array, m_count); }
    Result<std::vector<float>> readParameters(int stage) override
    {
        return download<float>(parameters(stage), blockElements());
    }
    Result<std::vector<float>> readGradients(int stage) override
    {
        return download<float>(gradients(stage), blockElements());
    }
    Json method() const override;

private:
    /// W_i and behind it b_i, or their gradients.
    std::uint64_t blockElements() const { return m_width * m_width + m_width; }
    float* parameters(int stage) const
    {
        return reinterpret_cast<float*>(m_parameters.get()) + 2 * std::uint64_t(stage) * m_blockPitch;
    }
    float* gradients(int stage) const { return parameters(stage) + m_blockPitch; }
    Result<void> queued(cudaError_t error, const char* doing) { return cudaResult(error, doing); }
    Result<void> multiply(const ProductLaunch& launch);
    Result<std::uint64_t> digestOf(const float* values, std::uint64_t count);
    template <typename T> Result<std::vector<T>> download(const void* from, std::uint64_t count);

    GpuSession& m_session;
    CublasLt* m_blas;
    std::function<bool()> m_cancelled;
    MlpShape m_shape;
    std::uint64_t m_batch, m_width, m_count;
    std::uint64_t m_blockPitch = 0; ///< elements
    Buffer m_parameters, m_arena, m_partial;
    std::vector<cudaEvent_t> m_events; ///< made once, used again
    std::size_t m_marks = 0;
};

Result<void> CudaMlpDevice::open(std::int64_t arenaBytes)
{
    m_blockPitch = std::uint64_t(pooledBytes(std::int64_t(blockElements() * sizeof(float)))) / sizeof(float);
    const std::uint64_t parameterBytes = 2 * std::uint64_t(m_shape.length) * m_blockPitch * sizeof(float);
    const double free = double(m_session.freeBytes());
    if (!m_session.isForced() && double(parameterBytes) + double(arenaBytes) > shareOfMemory * free)
        return fail("run.memory",
                    fmt::format("weights and their gradients take {}, the activations {}, and {} "
                                "of the GPU's memory are available",
                                quantityText(double(parameterBytes), Unit::Byte),
                                quantityText(double(arenaBytes), Unit::Byte), quantityText(free, Unit::Byte)),
                    "choose a narrower or shorter chain or a smaller batch, or end what else uses "
                    "the GPU's memory");
    MEMSCAPE_SET(m_parameters, m_session.allocateExtra(parameterBytes));
    MEMSCAPE_SET(m_arena, m_session.allocate(std::uint64_t(arenaBytes)));
    MEMSCAPE_SET(m_partial, m_session.allocateExtra(lossPartials * sizeof(double)));
    for (int i = 0; i < int(m_shape.length); ++i) {
        float* const block = this->parameters(i);
        MEMSCAPE_CHECK(queued(
            launchUniform(block, m_width * m_width, mlpWeightSeed(i), mlpWeightScale(m_shape), m_session.stream()),
            "filling the weights"));
        MEMSCAPE_CHECK(
            queued(launchUniform(block + m_width * m_width, m_width, mlpBiasSeed(i), mlpBiasScale, m_session.stream()),
                   "filling the biases"));
    }
    return m_session.synchronize("filling the weights");
}

Result<void> CudaMlpDevice::multiply(const ProductLaunch& launch)
{
    if (m_blas != nullptr)
        return m_blas->launch(launch, m_session.stream());
    return queued(launchProduct(launch, m_session.stream()), "multiplying matrices");
}

Result<void> CudaMlpDevice::forward(int stage, const float* x, float* z, float* result)
{
    const float* weights = parameters(stage);
    float* const sums = z != nullptr ? z : result;
    MEMSCAPE_CHECK(multiply(
        {productVersions, m_batch, m_width, m_width, x, m_width, false, weights, m_width, false, sums, m_width}));
    return queued(launchGelu(sums, weights + m_width * m_width, z, result, m_batch, m_width, m_session.stream()),
                  "computing gelu");
}

Result<void> CudaMlpDevice::preactivation(int stage, const float* x, float* z)
{
    const float* weights = parameters(stage);
    MEMSCAPE_CHECK(
        multiply({productVersions, m_batch, m_width, m_width, x, m_width, false, weights, m_width, false, z, m_width}));
    return queued(launchGelu(z, weights + m_width * m_width, z, nullptr, m_batch, m_width, m_session.stream()),
                  "adding the bias");
}

Result<void> CudaMlpDevice::backward(int stage, const float* x, const float* z, float* gradient, float* result)
{
    const float* weights = parameters(stage);
    float* const weightGradient = gradients(stage);
    MEMSCAPE_CHECK(queued(launchGeluSlope(z, gradient, m_count, m_session.stream()), "computing the slope of gelu"));
    MEMSCAPE_CHECK(
        queued(launchColumnSums(gradient, weightGradient + m_width * m_width, m_batch, m_width, m_session.stream()),
               "summing the bias's gradient"));
    MEMSCAPE_CHECK(multiply({productVersions, m_width, m_width, m_batch, x, m_width, true, gradient, m_width, false,
                             weightGradient, m_width}));
    return multiply({productVersions, m_batch, m_width, m_width, gradient, m_width, false, weights, m_width, true,
                     result, m_width});
}

Result<void> CudaMlpDevice::mark()
{
    if (m_marks == m_events.size()) {
        cudaEvent_t event = nullptr;
        MEMSCAPE_CHECK(queued(cudaEventCreate(&event), "making an event"));
        m_events.push_back(event);
    }
    return queued(cudaEventRecord(m_events[m_marks++], m_session.stream()), "recording an event");
}

Result<std::vector<double>> CudaMlpDevice::takeMarks()
{
    MEMSCAPE_CHECK(m_session.synchronize("running the chain"));
    std::vector<double> marks;
    for (std::size_t i = 0; i < m_marks; ++i) {
        float milliseconds = 0; // of one operation: a sum over them loses nothing
        if (i > 0)
            MEMSCAPE_CHECK(
                queued(cudaEventElapsedTime(&milliseconds, m_events[i - 1], m_events[i]), "reading an event"));
        marks.push_back((i > 0 ? marks.back() : 0) + double(milliseconds) * 1e-3);
    }
    m_marks = 0;
    return marks;
}

Result<void> CudaMlpDevice::checkStopped()
{
    if (m_marks > operationsAhead)
        MEMSCAPE_CHECK(queued(waitFor(m_events[m_marks - 1 - operationsAhead]), "running the chain"));
    if (m_cancelled())
        return fail("run.cancelled", "the measurement was stopped");
    return {};
}

template <typename T> Result<std::vector<T>> CudaMlpDevice::download(const void* from, std::uint64_t count)
{
    std::vector<T> values(count);
    MEMSCAPE_CHECK(m_session.download(values.data(), from, count * sizeof(T), "running the chain"));
    return values;
}

Result<std::uint64_t> CudaMlpDevice::digestOf(const float* values, std::uint64_t count)
{
    MEMSCAPE_CHECK(m_session.synchronize("running the chain"));
    MEMSCAPE_TRY(sum, m_session.allocateExtra(sizeof(unsigned long long)));
    auto* const at = reinterpret_cast<unsigned long long*>(sum.get());
    MEMSCAPE_CHECK(queued(cudaMemsetAsync(at, 0, sizeof *at, m_session.stream()), "digesting an array"));
    MEMSCAPE_CHECK(queued(launchDigest(values, count, at, m_session.stream()), "digesting an array"));
    MEMSCAPE_TRY(digest, download<unsigned long long>(at, 1));
    return std::uint64_t(digest.front());
}

Result<double> CudaMlpDevice::loss()
{
    MEMSCAPE_TRY(partial, download<double>(m_partial.get(), lossPartials));
    return std::accumulate(partial.begin(), partial.end(), 0.0) / double(m_count);
}

Json CudaMlpDevice::method() const
{
    return {{"product", productsText(m_blas)}, {"timing", "events of the GPU between operations"}};
}

} // namespace

Result<std::unique_ptr<MlpDevice>> makeMlpDevice(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled,
                                                 const MlpShape& shape, std::int64_t arenaBytes)
{
    auto device = std::make_unique<CudaMlpDevice>(session, blas, std::move(cancelled), shape);
    MEMSCAPE_CHECK(device->open(arenaBytes));
    return std::unique_ptr<MlpDevice>(std::move(device));
}

} // namespace memscape::cuda
