// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/training-memory/amp_device.h"

#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/training-memory/amp.h"

#include "core/base/number.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

ElementFormat elementFormat(Format format)
{
    return format == Format::Fp32 ? ElementFormat::Float32
        : format == Format::Fp16  ? ElementFormat::Float16
                                  : ElementFormat::BFloat16;
}

AmpValues valuesOf(const AmpArray& array)
{
    return {array.data, std::uint64_t(array.elements), elementFormat(array.format)};
}

class CudaAmpDevice final : public AmpDevice
{
public:
    CudaAmpDevice(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled, AmpFallbacks& fallbacks)
        : m_session(session)
        , m_blas(blas)
        , m_cancelled(std::move(cancelled))
        , m_fallbacks(fallbacks)
    { }
    ~CudaAmpDevice() override
    {
        m_session.settle();
        for (const cudaEvent_t event : m_events)
            cudaEventDestroy(event);
    }

    Result<void> open(std::int64_t arenaBytes);

    std::byte* arena() override { return reinterpret_cast<std::byte*>(m_arena.get()); }

    Result<void> poison(const AmpArray& array) override { return set(array, 0xff); }
    Result<void> clear(const AmpArray& array) override { return set(array, 0); }
    Result<void> uniform(const AmpArray& array, std::uint64_t seed, float scale) override
    {
        return queued(launchUniform(array.floats(), std::uint64_t(array.elements), seed, scale, stream()),
                      "filling the weights");
    }
    Result<void> batch(const TrainedNetwork& network, std::uint64_t index, const AmpArray& inputs,
                       const AmpArray& labels) override;

    Result<int> prepare(const AmpProduct& product) override;
    Result<void> multiply(int product, const AmpArray& a, const AmpArray& b, const AmpArray& c) override;

    Result<void> convert(const AmpArray& from, const AmpArray& to) override
    {
        return queued(launchAmpConvert(valuesOf(from), valuesOf(to), stream()), "converting an array");
    }
    Result<void> addBias(const AmpArray& bias, const AmpArray& sums) override
    {
        return queued(launchAmpBias(valuesOf(bias), valuesOf(sums), sums.data, false, stream()), "adding the bias");
    }
    Result<void> biasRelu(const AmpArray& bias, const AmpArray& sums, const AmpArray& to) override
    {
        return queued(launchAmpBias(valuesOf(bias), valuesOf(sums), to.data, true, stream()), "adding the bias");
    }
    Result<void> reluBackward(const AmpArray& activation, const AmpArray& gradient, const AmpArray& to) override
    {
        return queued(launchAmpReluBackward(valuesOf(activation), gradient.data, to.data, stream()),
                      "computing the slope of ReLU");
    }
    Result<void> sumRows(const AmpArray& gradient, const AmpArray& bias) override
    {
        return queued(
            launchAmpSumRows(valuesOf(gradient), valuesOf(bias), reinterpret_cast<float*>(m_partial.get()), stream()),
            "summing the bias's gradient");
    }
    Result<void> logSoftmax(const AmpArray& logits, const AmpArray& logProbabilities) override
    {
        return queued(launchAmpLogSoftmax(valuesOf(logits), logProbabilities.data, stream()), "computing log softmax");
    }
    Result<void> meanLoss(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& loss) override
    {
        return queued(launchAmpMeanLoss(logProbabilities.floats(), labels.labels(),
                                        std::uint64_t(logProbabilities.elements) / ampClasses, loss.floats(),
                                        &scalars()->mean, stream()),
                      "computing the loss");
    }
    Result<void> lossBackward(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& gradient,
                              double factor) override
    {
        return queued(
            launchAmpLossBackward(valuesOf(logProbabilities), labels.labels(), gradient.data, float(factor), stream()),
            "computing the loss's gradient");
    }

    Result<void> unscale(std::span<const AmpArray> gradients, float factor) override;
    Result<bool> foundInfinite() override
    {
        int infinite = 0;
        MEMSCAPE_CHECK(download(&infinite, &scalars()->infinite, sizeof infinite));
        return infinite != 0;
    }
    Result<void> adam(const AmpAdamStep& step, std::span<const AmpParameter> parameters) override;

    Result<void> begin() override
    {
        m_counting = 0;
        return queued(cudaEventRecord(m_events[0], stream()), "recording an event");
    }
    Result<double> end() override
    {
        MEMSCAPE_TRY(seconds, secondsBetween(0, 1));
        return seconds - m_counting;
    }
    Result<void> count(const AmpArray& gradients, double scale, GradientCounter& counter) override;
    Result<double> loss() override
    {
        double mean = 0;
        MEMSCAPE_CHECK(download(&mean, &scalars()->mean, sizeof mean));
        return mean;
    }
    Result<std::vector<float>> read(const AmpArray& array) override
    {
        std::vector<float> values(std::size_t(array.elements));
        MEMSCAPE_CHECK(download(values.data(), array.data, values.size() * sizeof(float)));
        return values;
    }
    Result<void> checkStopped() override
    {
        if (m_cancelled())
            return fail("run.cancelled", "the measurement was stopped");
        return {};
    }

private:
    struct Scalars
    {
        double mean;
        int infinite;
    };
    struct Product
    {
        AmpProduct asked;
        bool isOurs; ///< the library is missing, or has no algorithm for it
    };

    cudaStream_t stream() const { return m_session.stream(); }
    Scalars* scalars() const { return reinterpret_cast<Scalars*>(m_scalars.get()); }
    static Result<void> queued(cudaError_t error, const char* doing) { return cudaResult(error, doing); }
    Result<void> set(const AmpArray& array, int value)
    {
        return queued(cudaMemsetAsync(array.data, value, std::size_t(array.bytes()), stream()), "clearing an array");
    }
    Result<void> download(void* to, const void* from, std::size_t bytes)
    {
        return m_session.download(to, from, bytes, "training");
    }
    /// Records event `last`, waits for it.
    Result<double> secondsBetween(int first, int last)
    {
        const cudaEvent_t begin = m_events[std::size_t(first)], end = m_events[std::size_t(last)];
        MEMSCAPE_CHECK(queued(cudaEventRecord(end, stream()), "recording an event"));
        MEMSCAPE_CHECK(m_session.synchronize("training"));
        float milliseconds = 0;
        MEMSCAPE_CHECK(queued(cudaEventElapsedTime(&milliseconds, begin, end), "reading an event"));
        return double(milliseconds) * 1e-3;
    }

    GpuSession& m_session;
    CublasLt* m_blas;
    std::function<bool()> m_cancelled;
    AmpFallbacks& m_fallbacks;
    Buffer m_arena, m_workspace, m_scalars, m_partial, m_directions, m_counts;
    std::int64_t m_partialWidth = 0, m_directionInputs = 0;
    std::vector<Product> m_products;
    std::array<cudaEvent_t, 4> m_events = {}; ///< begin and end of a step, and of a count within it
    double m_counting = 0;                    // s
};

Result<void> CudaAmpDevice::open(std::int64_t arenaBytes)
{
    const double free = double(m_session.freeBytes());
    if (!m_session.isForced() && double(arenaBytes) > shareOfMemory * free)
        return fail("run.memory",
                    fmt::format("a training step takes {}, and {} of the GPU's memory are available",
                                quantityText(double(arenaBytes), Unit::Byte), quantityText(free, Unit::Byte)),
                    "choose smaller m, n or k, or end what else uses the GPU's memory");
    MEMSCAPE_SET(m_arena, m_session.allocate(std::uint64_t(arenaBytes)));
    if (m_blas != nullptr)
        MEMSCAPE_SET(m_workspace, m_session.allocateExtra(formatWorkspace));
    MEMSCAPE_SET(m_scalars, m_session.allocateExtra(sizeof(Scalars)));
    for (cudaEvent_t& event : m_events)
        MEMSCAPE_CHECK(queued(cudaEventCreate(&event), "making an event"));
    return {};
}

Result<void> CudaAmpDevice::batch(const TrainedNetwork& network, std::uint64_t index, const AmpArray& inputs,
                                  const AmpArray& labels)
{
    const auto width = std::uint64_t(network.inputs);
    if (m_directionInputs != network.inputs) {
        MEMSCAPE_SET(m_directions, m_session.allocateExtra(width * ampClasses * sizeof(float)));
        m_directionInputs = network.inputs;
        MEMSCAPE_CHECK(queued(launchAmpDirections(reinterpret_cast<float*>(m_directions.get()), width, stream()),
                              "making the task"));
    }
    return queued(launchAmpBatch(index, std::uint64_t(network.batch), width,
                                 reinterpret_cast<const float*>(m_directions.get()), inputs.floats(), labels.labels(),
                                 stream()),
                  "making a batch");
}

Result<int> CudaAmpDevice::prepare(const AmpProduct& product)
{
    // Every layer's outputs are the columns of one of its products: room for the bias's gradient.
    if (product.shape.n > m_partialWidth) {
        MEMSCAPE_SET(m_partial, m_session.allocateExtra(std::uint64_t(product.shape.n) * ampSlices * sizeof(float)));
        m_partialWidth = product.shape.n;
    }
    m_products.push_back({product, m_blas == nullptr});
    return int(m_products.size()) - 1;
}

Result<void> CudaAmpDevice::multiply(int index, const AmpArray& a, const AmpArray& b, const AmpArray& c)
{
    Product& product = m_products[std::size_t(index)];
    const AmpProduct& asked = product.asked;
    TensorProductLaunch w;
    w.format = elementFormat(asked.format);
    w.rows = int(asked.shape.m); // at most 2^20 each
    w.columns = int(asked.shape.n);
    w.inner = int(asked.shape.k);
    w.a = a.data;
    w.aTransposed = asked.aTransposed;
    w.b = b.data;
    w.bTransposed = asked.bTransposed;
    w.c = c.data;
    if (!product.isOurs && m_blas->launch(w, stream(), m_workspace.get()))
        return {};
    forgetCudaError(); // what the library left behind when it refused
    if (!product.isOurs)
        m_fallbacks.insert(fmt::format("{} × {} × {}", w.rows, w.columns, w.inner));
    product.isOurs = true;
    return ownProducts(stream())(w);
}

Result<void> CudaAmpDevice::unscale(std::span<const AmpArray> gradients, float factor)
{
    AmpTensors tensors;
    for (const AmpArray& gradient : gradients) {
        if (tensors.count == ampTensors)
            return fail("run.failed", "more arrays than a launch takes");
        tensors.values[tensors.count] = gradient.floats();
        tensors.elements[tensors.count++] = std::uint64_t(gradient.elements);
    }
    MEMSCAPE_CHECK(queued(cudaMemsetAsync(&scalars()->infinite, 0, sizeof(int), stream()), "unscaling the gradients"));
    return queued(launchAmpUnscale(tensors, factor, &scalars()->infinite, stream()), "unscaling the gradients");
}

Result<void> CudaAmpDevice::adam(const AmpAdamStep& step, std::span<const AmpParameter> parameters)
{
    AmpTensors tensors;
    for (const AmpParameter& parameter : parameters) {
        if (tensors.count == ampTensors)
            return fail("run.failed", "more arrays than a launch takes");
        const int i = tensors.count++;
        tensors.values[i] = parameter.weights.floats();
        tensors.gradients[i] = parameter.gradients.floats();
        tensors.moments[i] = parameter.moments.floats();
        tensors.squares[i] = parameter.squares.floats();
        tensors.elements[i] = std::uint64_t(parameter.weights.elements);
    }
    return queued(launchAmpAdam(tensors, step, stream()), "changing the weights");
}

Result<void> CudaAmpDevice::count(const AmpArray& gradients, double scale, GradientCounter& counter)
{
    MEMSCAPE_CHECK(queued(cudaEventRecord(m_events[2], stream()), "recording an event"));
    if (!m_counts)
        MEMSCAPE_SET(m_counts, m_session.allocateExtra(sizeof(AmpCounts)));
    auto* const device = reinterpret_cast<AmpCounts*>(m_counts.get());
    AmpCounts seen = {};
    MEMSCAPE_CHECK(queued(cudaMemsetAsync(device, 0, sizeof seen, stream()), "counting gradients"));
    MEMSCAPE_CHECK(queued(launchAmpCount(valuesOf(gradients), scale, device, stream()), "counting gradients"));
    MEMSCAPE_CHECK(download(&seen, device, sizeof seen));
    GradientCounts counts;
    counts.bars.assign(std::begin(seen.bars), std::end(seen.bars) - 1);
    counts.zeros = seen.bars[ampBars];
    for (const AmpCountPart& part : seen.parts) {
        counts.sum += part.sum;
        counts.squares += part.squares;
        counts.largest = std::max(counts.largest, part.largest);
    }
    counter.add(counts);
    MEMSCAPE_TRY(seconds, secondsBetween(2, 3));
    m_counting += seconds;
    return {};
}

} // namespace

AmpDeviceFactory gpuAmpDevices(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled,
                               AmpFallbacks& fallbacks)
{
    return [&session, blas, cancelled, &fallbacks](std::int64_t arenaBytes) -> Result<std::unique_ptr<AmpDevice>> {
        auto device = std::make_unique<CudaAmpDevice>(session, blas, cancelled, fallbacks);
        MEMSCAPE_CHECK(device->open(arenaBytes));
        return std::unique_ptr<AmpDevice>(std::move(device));
    };
}

} // namespace memscape::cuda
