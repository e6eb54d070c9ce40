// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/batch-size/batch_device.h"

#include "kernels/cuda/batch-size/batch_kernels.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/pacing.h"
#include "kernels/cuda/common/sampler.h"

#include "core/base/number.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

using Kind = BatchOperation::Kind;

/// What decides which kernels an operation is: not where its arrays lie, but whether on 16 bytes.
using OperationShape = std::array<std::int64_t, 9>;

OperationShape shapeOf(const BatchOperation& op)
{
    const auto offset = [](const void* at) {
        return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) % 16);
    };
    return {static_cast<std::int64_t>(op.kind),
            op.rows,
            op.inputs,
            op.outputs,
            offset(op.a),
            offset(op.b),
            offset(op.c),
            offset(op.result),
            op.workspace != nullptr};
}

/// At most.
std::size_t kernelsOf(const BatchOperations& step)
{
    constexpr std::size_t product = 2; // of the library, split over the inner dimension
    std::size_t kernels = 0;
    for (const BatchOperation& operation : step) {
        const bool hasSum = operation.kind == Kind::Linear || operation.kind == Kind::WeightGradient;
        kernels += hasSum ? product + 1 : operation.kind == Kind::InputGradient ? product : 1;
    }
    return kernels;
}

BatchPass passOf(Kind kind)
{
    switch (kind) {
    case Kind::Relu: return BatchPass::Relu;
    case Kind::ReluGradient: return BatchPass::ReluGradient;
    case Kind::LossGradient: return BatchPass::LossGradient;
    case Kind::Add: return BatchPass::Add;
    default: return BatchPass::Update;
    }
}

class CudaBatchDevice final : public BatchDevice
{
public:
    CudaBatchDevice(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled, std::vector<double>* clocks,
                    const BatchShape& shape)
        : m_session(session)
        , m_blas(blas)
        , m_cancelled(std::move(cancelled))
        , m_clocks(clocks)
        , m_shape(shape)
        , m_inputs(std::uint64_t(shape.inputs()))
        , m_outputs(std::uint64_t(shape.outputs()))
        , m_magnitude(batchTruthMagnitude(shape.inputs()))
    { }
    ~CudaBatchDevice() override { m_session.settle(); }

    Result<void> open(std::int64_t arenaBytes);

    float* arena() override { return floats(m_arena); }
    float* store() override { return floats(m_store); }
    Result<void> fill(std::uint64_t first, std::int64_t count, float* x, float* t) override;
    Result<BatchSums> run(const BatchOperations& step, float rate, bool countsNorms) override;
    Result<void> learn(const BatchOperations& step, float rate) override;
    Result<double> sample(const BatchOperations& step, int repeats) override;
    int repeatsFor(double seconds) const override { return batchFor(seconds); }
    Result<double> risk(const float* weights, const float* bias) override;
    Result<void> read(const float* from, std::span<float> values) override
    {
        return download(values.data(), from, values.size_bytes());
    }
    Result<void> write(float* to, std::span<const float> values) override;
    Result<void> checkStopped() override
    {
        if (m_cancelled())
            return fail("run.cancelled", "the measurement was stopped");
        return {};
    }

private:
    static float* floats(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.get()); }
    double* lossParts() const { return reinterpret_cast<double*>(m_partial.get()); }
    double* normParts() const { return lossParts() + mostBatchPartials; }
    Result<void> checkMemory(double bytes) const;
    Result<void> queued(cudaError_t error, const char* doing) { return cudaResult(error, doing); }
    Result<void> multiply(const ProductLaunch& launch, float* workspace);
    Result<void> queue(const BatchOperations& step, float rate, bool countsNorms);
    Result<void> queueOne(const BatchOperation& op, float rate, bool isFirstLoss);
    Result<void> queueWeightGradient(const BatchOperation& op);
    Result<void> download(void* to, const void* from, std::size_t bytes);
    Result<double> sumOf(const double* partial, unsigned count);
    Result<void> meetNew(const BatchOperations& step, const Work& work);

    GpuSession& m_session;
    CublasLt* m_blas;
    std::function<bool()> m_cancelled;
    std::vector<double>* m_clocks;
    BatchShape m_shape;
    std::uint64_t m_inputs, m_outputs;
    float m_magnitude;
    std::size_t m_ahead = 0; ///< kernels of learning that were not waited for
    Buffer m_arena, m_store, m_truth, m_scales, m_partial;
    std::set<OperationShape> m_met; ///< operations that ran already: their kernels are loaded
};

// ---- memory -----------------------------------------------------------------------------------

Result<void> CudaBatchDevice::checkMemory(double bytes) const
{
    const double free = double(m_session.freeBytes());
    if (m_session.isForced() || bytes <= shareOfMemory * free)
        return {};
    return fail("run.memory",
                fmt::format("a training step of {} examples takes {}, and {} of the GPU's memory "
                            "are available",
                            m_shape.batch, quantityText(bytes, Unit::Byte), quantityText(free, Unit::Byte)),
                "choose a smaller batch or narrower layers, or end what else uses the GPU's memory", "batch");
}

Result<void> CudaBatchDevice::open(std::int64_t arenaBytes)
{
    MEMSCAPE_CHECK(m_session.synchronize("training")); // another device of this session may be at it
    const std::uint64_t truths = m_inputs * m_outputs;
    MEMSCAPE_CHECK(checkMemory(double(arenaBytes) + double(m_shape.storeBytes()) + double(truths * sizeof(float))));
    MEMSCAPE_SET(m_arena, m_session.allocate(std::uint64_t(arenaBytes)));
    if (m_shape.storeBytes() > 0)
        MEMSCAPE_SET(m_store, m_session.allocateExtra(std::uint64_t(m_shape.storeBytes())));
    MEMSCAPE_SET(m_truth, m_session.allocateExtra(truths * sizeof(float)));
    const std::vector<float> scales = batchScales(m_shape.inputs());
    MEMSCAPE_SET(m_scales, m_session.allocateExtra(scales.size() * sizeof(float)));
    MEMSCAPE_SET(m_partial, m_session.allocateExtra(2 * mostBatchPartials * sizeof(double)));
    MEMSCAPE_CHECK(write(floats(m_scales), scales));
    return queued(launchBatchTruth(floats(m_truth), truths, m_magnitude, m_session.stream()),
                  "making the weights to be learnt");
}

Result<void> CudaBatchDevice::write(float* to, std::span<const float> values)
{
    return m_session.upload(to, values.data(), values.size_bytes(), "writing an array");
}

Result<void> CudaBatchDevice::download(void* to, const void* from, std::size_t bytes)
{
    return m_session.download(to, from, bytes, "training");
}

Result<double> CudaBatchDevice::sumOf(const double* partial, unsigned count)
{
    std::vector<double> parts(count);
    MEMSCAPE_CHECK(download(parts.data(), partial, count * sizeof(double)));
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// ---- a step -----------------------------------------------------------------------------------

Result<void> CudaBatchDevice::multiply(const ProductLaunch& launch, float* workspace)
{
    if (m_blas != nullptr)
        return m_blas->launch(launch, m_session.stream(), workspace,
                              workspace != nullptr ? std::uint64_t(m_shape.workspace) : 0);
    return queued(launchProduct(launch, m_session.stream()), "multiplying matrices");
}

Result<void> CudaBatchDevice::fill(std::uint64_t first, std::int64_t count, float* x, float* t)
{
    const auto rows = std::uint64_t(count);
    MEMSCAPE_CHECK(
        queued(launchBatchInputs(x, floats(m_scales), first, rows, m_inputs, m_session.stream()), "making examples"));
    MEMSCAPE_CHECK(multiply(
        {productVersions, rows, m_outputs, m_inputs, x, m_inputs, false, floats(m_truth), m_inputs, true, t, m_outputs},
        nullptr));
    return queued(launchBatchTargets(t, first * m_outputs, rows * m_outputs, m_shape.isLinear(), batchNoise(),
                                     m_session.stream()),
                  "making targets");
}

/// δᵀ x, and the sums of δ's columns.
Result<void> CudaBatchDevice::queueWeightGradient(const BatchOperation& op)
{
    const auto rows = std::uint64_t(op.rows), in = std::uint64_t(op.inputs), out = std::uint64_t(op.outputs);
    MEMSCAPE_CHECK(
        multiply({productVersions, out, in, rows, op.a, out, true, op.b, in, false, op.result, in}, op.workspace));
    return queued(launchColumnSums(op.a, op.second, rows, out, m_session.stream()), "summing the bias's gradient");
}

Result<void> CudaBatchDevice::queueOne(const BatchOperation& op, float rate, bool isFirstLoss)
{
    const cudaStream_t stream = m_session.stream();
    const auto rows = std::uint64_t(op.rows), in = std::uint64_t(op.inputs), out = std::uint64_t(op.outputs);
    const std::uint64_t count = rows * out;
    switch (op.kind) {
    case Kind::Load:
        return queued(cudaMemcpyAsync(op.result, op.a, count * sizeof(float), cudaMemcpyDeviceToDevice, stream),
                      "loading a micro-batch");
    case Kind::Linear:
        MEMSCAPE_CHECK(
            multiply({productVersions, rows, out, in, op.a, in, false, op.b, in, true, op.result, out}, op.workspace));
        return queued(launchBias(op.result, op.c, rows, out, stream), "adding the bias");
    case Kind::InputGradient:
        return multiply({productVersions, rows, in, out, op.a, out, false, op.b, in, false, op.result, in},
                        op.workspace);
    case Kind::WeightGradient: return queueWeightGradient(op);
    case Kind::Loss:
        return queued(launchBatchLoss(op.a, op.b, count, isFirstLoss, lossParts(), stream), "computing the loss");
    default: break;
    }
    const float factor = op.kind == Kind::LossGradient ? 2 / float(count) : rate;
    return queued(launchBatchElements({passOf(op.kind), op.a, op.b, op.result, count, factor}, stream),
                  "passing over elements");
}

Result<void> CudaBatchDevice::queue(const BatchOperations& step, float rate, bool countsNorms)
{
    bool isFirstLoss = true, isFirstNorm = true;
    for (const BatchOperation& op : step) {
        if (countsNorms && op.kind == Kind::WeightGradient) {
            MEMSCAPE_CHECK(
                queued(launchExampleNorms(op.b, std::uint64_t(op.inputs), op.a, std::uint64_t(op.outputs),
                                          std::uint64_t(op.rows), isFirstNorm, normParts(), m_session.stream()),
                       "computing norms of gradients"));
            isFirstNorm = false;
        }
        MEMSCAPE_CHECK(queueOne(op, rate, isFirstLoss));
        isFirstLoss = isFirstLoss && op.kind != Kind::Loss;
    }
    return {};
}

Result<BatchSums> CudaBatchDevice::run(const BatchOperations& step, float rate, bool countsNorms)
{
    MEMSCAPE_CHECK(queue(step, rate, countsNorms));
    BatchSums sums;
    const auto batch = std::uint64_t(m_shape.batch);
    MEMSCAPE_SET(sums.loss, sumOf(lossParts(), batchLossPartials(batch * m_outputs)));
    if (countsNorms)
        MEMSCAPE_SET(sums.squaredNorms, sumOf(normParts(), batchNormPartials(batch)));
    return sums;
}

/// Never more ahead than the queue holds: a launch would wait for its place, and a waiting thread does not notice a
/// hanging kernel.
Result<void> CudaBatchDevice::learn(const BatchOperations& step, float rate)
{
    m_ahead += kernelsOf(step);
    if (m_ahead > heldLaunches) {
        MEMSCAPE_CHECK(m_session.synchronize("training"));
        m_ahead = kernelsOf(step);
    }
    return queue(step, rate, false);
}

/// A step with an operation of a new shape runs once without the blocking kernel.
Result<void> CudaBatchDevice::meetNew(const BatchOperations& step, const Work& work)
{
    bool isNew = false;
    for (const BatchOperation& operation : step)
        isNew = m_met.insert(shapeOf(operation)).second || isNew;
    return isNew ? meet(m_session, work) : Result<void>();
}

Result<double> CudaBatchDevice::sample(const BatchOperations& step, int repeats)
{
    std::optional<Error> failure;
    const Work work{[&](int) {
                        auto done = queue(step, 0, false);
                        if (done)
                            return cudaSuccess;
                        failure = std::move(done).error();
                        return cudaErrorUnknown;
                    },
                    "a training step", kernelsOf(step)};
    const auto met = meetNew(step, work);
    if (!met)
        return fail(failure ? *failure : met.error());
    const auto sample = takeSample(m_session, work, false, repeats);
    if (!sample)
        return fail(failure ? *failure : sample.error());
    if (m_clocks != nullptr)
        m_clocks->push_back(sample->clockHz);
    return sample->seconds;
}

Result<double> CudaBatchDevice::risk(const float* weights, const float* bias)
{
    MEMSCAPE_CHECK(queued(launchBatchRisk(weights, bias, floats(m_scales), m_magnitude, m_inputs, m_outputs,
                                          lossParts(), m_session.stream()),
                          "computing the expected loss"));
    MEMSCAPE_TRY(sum, sumOf(lossParts(), batchRiskPartials(m_outputs)));
    return sum / double(m_outputs) + NoisyRegression::labelVariance;
}

} // namespace

BatchDeviceFactory batchDevices(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled,
                                std::vector<double>* clocks)
{
    return [&session, blas, cancelled = std::move(cancelled),
            clocks](const BatchShape& shape, std::int64_t arenaBytes) -> Result<std::unique_ptr<BatchDevice>> {
        auto device = std::make_unique<CudaBatchDevice>(session, blas, cancelled, clocks, shape);
        MEMSCAPE_CHECK(device->open(arenaBytes));
        return std::unique_ptr<BatchDevice>(std::move(device));
    };
}

} // namespace memscape::cuda
