// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_device.h"

#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/pacing.h"
#include "kernels/cuda/common/sampler.h"
#include "kernels/cuda/kernels.h"
#include "kernels/measure/counting_pool.h"
#include "kernels/programs/common/half.h"

#include "core/base/number.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

bool isOfKeys(AttentionTensor tensor)
{
    return tensor == AttentionTensor::Key || tensor == AttentionTensor::Value || tensor == AttentionTensor::KeyGradient
        || tensor == AttentionTensor::ValueGradient;
}
bool isInput(AttentionTensor tensor)
{
    return tensor <= AttentionTensor::OutputGradient;
}

class CudaAttentionDevice final : public GpuAttention
{
public:
    CudaAttentionDevice(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled, const AttentionTask& task)
        : m_session(session)
        , m_blas(usesLibrary(task) ? blas : nullptr)
        , m_cancelled(std::move(cancelled))
        , m_task(task)
        , m_format(elementFormat(task.problem.dtype))
    { }
    ~CudaAttentionDevice() override { m_session.settle(); }

    Result<void> open();

    Result<void> fill(AttentionInputs inputs) override;
    Result<void> forward() override
    {
        MEMSCAPE_CHECK(queueForward());
        return m_session.synchronize("computing " + title());
    }
    Result<void> backward() override
    {
        MEMSCAPE_CHECK(queueBackward());
        return m_session.synchronize("computing the gradients of " + title());
    }
    void forget() override
    {
        for (const auto& [name, array] : m_arrays)
            give(name);
    }
    void resetPeak() override { m_pool->resetHighWater(); }
    AttentionBytes bytes() const override { return {m_pool->highWater(), m_pool->used()}; }
    Result<Sample> timed(AttentionPass pass) override;
    int runsPerSample(AttentionPass pass) const override
    {
        const auto batch = m_batches.find(pass);
        return batch == m_batches.end() ? 1 : batch->second;
    }
    Result<void> checkStopped() override
    {
        if (m_cancelled())
            return fail("run.cancelled", "the measurement was stopped");
        return {};
    }
    Result<std::vector<float>> read(AttentionTensor tensor) override;
    Json method() const override;

private:
    /// "flash attention v6 in bfloat16", for errors.
    std::string title() const
    {
        return fmt::format("{} attention v{} in {}", attentionKindText(m_task.problem.kind), m_task.version.number,
                           dtypeText(m_task.problem.dtype));
    }
    Result<void> checkMemory(const AttentionMemory& memory, std::int64_t arena) const;
    /// Of kernels in one run of the pass, at most: a product of the library may be two.
    std::size_t launchesOf(AttentionPass pass) const;
    std::int64_t rowsOf(AttentionTensor tensor) const
    {
        return isOfKeys(tensor) ? m_task.problem.shape.keyRows() : m_task.problem.shape.queryRows();
    }
    std::uint64_t elementsOf(AttentionTensor tensor) const
    {
        return std::uint64_t(rowsOf(tensor) * m_task.problem.shape.headDim);
    }
    char* tensor(AttentionTensor name) const
    {
        const auto found = m_tensors.find(name);
        return found == m_tensors.end() ? nullptr : found->second.get();
    }
    char* array(const std::string& name) const
    {
        const auto taken = m_taken.find(name);
        return taken == m_taken.end() ? nullptr : m_arena.get() + taken->second;
    }
    /// Every array for which `wanted` is true.
    template <typename Wanted> Result<void> takeAll(const Wanted& wanted);
    template <typename Unwanted> void giveAll(const Unwanted& unwanted);
    void give(const std::string& name);
    FlashLaunch flash() const;
    ScoreArrays scores() const;
    Products products() const;
    Result<void> queueForward();
    Result<void> queueBackward();
    Result<void> queue(AttentionPass pass);

    GpuSession& m_session;
    CublasLt* m_blas;
    std::function<bool()> m_cancelled;
    AttentionTask m_task;
    ElementFormat m_format;
    AttentionSizes m_sizes;
    std::map<AttentionTensor, Buffer> m_tensors;
    std::map<std::string, AttentionArray> m_arrays; ///< what this version takes, by name
    std::map<std::string, std::int64_t> m_taken;    ///< offsets in the arena
    Buffer m_arena;
    std::uint64_t m_arenaBytes = 0;
    std::unique_ptr<CountingPool> m_pool;
    std::map<AttentionPass, int> m_batches; ///< runs in one sample
};

// ---- opening ----------------------------------------------------------------------------------

Result<void> CudaAttentionDevice::checkMemory(const AttentionMemory& memory, std::int64_t arena) const
{
    const double free = double(m_session.freeBytes());
    if (m_session.isForced() || double(memory.tensors) + double(arena) <= shareOfMemory * free)
        return {};
    return fail("run.memory",
                fmt::format("{} attention takes {} beside {} of inputs and outputs, and {} of the "
                            "GPU's memory are available",
                            attentionKindText(m_task.problem.kind), quantityText(double(arena), Unit::Byte),
                            quantityText(double(memory.tensors), Unit::Byte), quantityText(free, Unit::Byte)),
                m_task.problem.kind == AttentionKind::Standard
                    ? "choose a shorter sequence, fewer heads or implementation=flash"
                    : "choose a shorter sequence or fewer heads, or end what else uses the GPU",
                "sequence");
}

Result<void> CudaAttentionDevice::open()
{
    const AttentionProblem& problem = m_task.problem;
    MEMSCAPE_CHECK(checkShape(problem.shape));
    MEMSCAPE_CHECK(checkMachine(m_task, m_blas != nullptr));
    MEMSCAPE_SET(m_sizes, attentionSizes(problem.shape));
    MEMSCAPE_TRY(memory, attentionMemory(m_task.version, problem.shape, problem.dtype, problem.pass, 1));
    MEMSCAPE_TRY(arrays, attentionArrays(m_task.version, problem.shape, problem.dtype, 1));
    for (const AttentionArray& array : arrays)
        m_arrays[array.name] = array;
    const bool isForward = problem.pass == AttentionPass::Forward;
    const std::int64_t arena = isForward ? memory.forward : std::max(memory.forward, memory.backward);
    MEMSCAPE_CHECK(checkMemory(memory, arena));
    for (int i = 0; i <= int(AttentionTensor::ValueGradient); ++i) {
        const auto name = AttentionTensor(i);
        const bool isBackwards = name == AttentionTensor::OutputGradient || name >= AttentionTensor::QueryGradient;
        if (name == AttentionTensor::LogSumExp || (isBackwards && isForward))
            continue;
        MEMSCAPE_SET(m_tensors[name],
                     m_session.allocateExtra(elementsOf(name) * std::uint64_t(elementBytes(problem.dtype))));
    }
    m_arenaBytes = std::uint64_t(arena);
    MEMSCAPE_SET(m_arena, m_session.allocate(m_arenaBytes));
    m_pool = std::make_unique<CountingPool>(arena);
    return {};
}

// ---- memory -----------------------------------------------------------------------------------

Result<void> CudaAttentionDevice::fill(AttentionInputs inputs)
{
    for (const auto& [name, buffer] : m_tensors) {
        const std::uint64_t count = elementsOf(name);
        const cudaError_t error = isInput(name)
            ? launchAttentionInput(buffer.get(), m_format, name, inputs, count, std::uint64_t(m_sizes.headDim),
                                   m_session.stream())
            : cudaMemsetAsync(buffer.get(), 0xff, count * std::uint64_t(elementBytes(m_task.problem.dtype)),
                              m_session.stream());
        MEMSCAPE_CHECK(cudaResult(error, "filling the tensors"));
    }
    MEMSCAPE_CHECK(
        cudaResult(cudaMemsetAsync(m_arena.get(), 0xff, m_arenaBytes, m_session.stream()), "poisoning the arrays"));
    return m_session.synchronize("filling the tensors");
}

template <typename Wanted> Result<void> CudaAttentionDevice::takeAll(const Wanted& wanted)
{
    for (const auto& [name, array] : m_arrays) {
        if (!wanted(array) || m_taken.contains(name))
            continue;
        MEMSCAPE_SET(m_taken[name], m_pool->take(array.elements * array.elementBytes));
    }
    return {};
}

void CudaAttentionDevice::give(const std::string& name)
{
    if (const auto taken = m_taken.find(name); taken != m_taken.end()) {
        m_pool->give(taken->second);
        m_taken.erase(taken);
    }
}

template <typename Unwanted> void CudaAttentionDevice::giveAll(const Unwanted& unwanted)
{
    for (const auto& [name, array] : m_arrays) {
        if (unwanted(array))
            give(name);
    }
}

// ---- launches ---------------------------------------------------------------------------------

FlashLaunch CudaAttentionDevice::flash() const
{
    FlashLaunch launch;
    launch.version = m_task.version.number;
    launch.format = m_format;
    launch.sizes = m_sizes;
    launch.arrays.query = tensor(AttentionTensor::Query);
    launch.arrays.key = tensor(AttentionTensor::Key);
    launch.arrays.value = tensor(AttentionTensor::Value);
    launch.arrays.output = tensor(AttentionTensor::Output);
    launch.arrays.logSumExp = reinterpret_cast<float*>(array("L"));
    launch.arrays.outputGradient = tensor(AttentionTensor::OutputGradient);
    launch.arrays.delta = reinterpret_cast<float*>(array("D"));
    launch.arrays.queryGradient = tensor(AttentionTensor::QueryGradient);
    launch.arrays.queryGradientSums = reinterpret_cast<float*>(array("dQ in floats"));
    launch.arrays.keyGradient = tensor(AttentionTensor::KeyGradient);
    launch.arrays.valueGradient = tensor(AttentionTensor::ValueGradient);
    return launch;
}

ScoreArrays CudaAttentionDevice::scores() const
{
    ScoreArrays scores;
    scores.weights = array("P");
    scores.scores = m_task.version.inPlace ? scores.weights : array("S");
    scores.weightsGradient = array("dP");
    scores.scoresGradient = m_task.version.inPlace ? scores.weightsGradient : array("dS");
    return scores;
}

Products CudaAttentionDevice::products() const
{
    if (m_blas == nullptr)
        return ownProducts(m_session.stream());
    return [this](const TensorProductLaunch& launch) { return m_blas->launch(launch, m_session.stream()); };
}

Result<void> CudaAttentionDevice::queueForward()
{
    forget();
    MEMSCAPE_CHECK(takeAll([](const AttentionArray& array) { return array.inForward; }));
    const FlashLaunch launch = flash();
    auto done = m_task.problem.kind == AttentionKind::Flash
        ? cudaResult(launchFlash(launch, m_session.stream()), "starting attention")
        : standardForward(m_sizes, m_format, launch.arrays, scores(), products(), m_session.stream());
    giveAll([](const AttentionArray& array) { return !array.isSaved; });
    return done;
}

Result<void> CudaAttentionDevice::queueBackward()
{
    MEMSCAPE_CHECK(takeAll([](const AttentionArray& array) { return array.inBackward; }));
    const FlashLaunch launch = flash();
    auto done = m_task.problem.kind == AttentionKind::Flash
        ? cudaResult(launchFlashBackward(launch, m_session.stream()), "starting the gradients of attention")
        : standardBackward(m_sizes, m_format, launch.arrays, scores(), products(), m_session.stream());
    giveAll([](const AttentionArray& array) { return !array.isSaved; });
    return done;
}

Result<void> CudaAttentionDevice::queue(AttentionPass pass)
{
    if (pass != AttentionPass::Backward)
        MEMSCAPE_CHECK(queueForward());
    if (pass != AttentionPass::Forward)
        MEMSCAPE_CHECK(queueBackward());
    return {};
}

std::size_t CudaAttentionDevice::launchesOf(AttentionPass pass) const
{
    constexpr std::size_t flashForward = 1, flashBackward = 3; // delta, dK with dV, dQ; version 9: dQ's rounding
    const bool isFlash = m_task.problem.kind == AttentionKind::Flash;
    // Our own product of floats takes one plane at a time.
    const bool isPlanewise = m_blas == nullptr && m_format == ElementFormat::Float32;
    const auto planes = std::size_t(m_sizes.batch) * std::size_t(m_sizes.kvHeads);
    const std::size_t product = isPlanewise ? planes : 2;
    const std::size_t forward = isFlash ? flashForward : 2 * product + 1;
    const std::size_t backward = isFlash ? flashBackward : 4 * product + 1;
    return (pass != AttentionPass::Backward ? forward : 0) + (pass != AttentionPass::Forward ? backward : 0);
}

Result<Sample> CudaAttentionDevice::timed(AttentionPass pass)
{
    if (pass == AttentionPass::Backward && m_pool->used() == 0)
        MEMSCAPE_CHECK(forward());
    std::optional<Error> failure;
    const Work work{[&](int) {
                        auto queued = queue(pass);
                        if (queued)
                            return cudaSuccess;
                        failure = std::move(queued).error();
                        return cudaErrorUnknown;
                    },
                    title(), launchesOf(pass)};
    if (!m_batches.contains(pass)) {
        auto once = warmUp(m_session, work);
        if (!once)
            return failure ? fail(*failure) : fail(once.error());
        m_batches[pass] = batchFor(*once, work.launches);
    }
    auto sample = takeSample(m_session, work, true, m_batches.at(pass));
    if (!sample)
        return failure ? fail(*failure) : fail(sample.error());
    return *sample;
}

// ---- results ----------------------------------------------------------------------------------

Result<std::vector<float>> CudaAttentionDevice::read(AttentionTensor name)
{
    const bool isFloat = name == AttentionTensor::LogSumExp || m_format == ElementFormat::Float32;
    const char* from = name == AttentionTensor::LogSumExp ? array("L") : tensor(name);
    const std::size_t count = name == AttentionTensor::LogSumExp ? std::size_t(m_task.problem.shape.queryRows())
                                                                 : std::size_t(elementsOf(name));
    std::vector<float> values(count);
    std::vector<std::uint16_t> halves(isFloat ? 0 : count);
    void* const to = isFloat ? static_cast<void*>(values.data()) : halves.data();
    if (from == nullptr)
        return std::vector<float>();
    MEMSCAPE_CHECK(m_session.download(to, from, count * (isFloat ? 4 : 2), "reading a tensor of " + title()));
    for (std::size_t i = 0; i < halves.size(); ++i)
        values[i] = m_format == ElementFormat::Float16 ? float16ToFloat(halves[i]) : bfloat16ToFloat(halves[i]);
    return values;
}

Json CudaAttentionDevice::method() const
{
    Json json = {{"version", m_task.version.number}, {"name", m_task.version.name}};
    if (m_task.problem.kind == AttentionKind::Standard)
        json["product"] = m_blas != nullptr ? m_blas->name()
            : m_format == ElementFormat::Float32
            ? fmt::format("product v{} of Memscape, one plane at a time", productVersions)
            : "tensor-core product of Memscape";
    if (m_task.version.queryGradient == QueryGradient::Atomic)
        json["sums"] = "dQ is added up in no fixed order: its last bits change from run to run";
    json["timing"] = "events of the GPU, caches flushed before each sample";
    for (const auto& [pass, batch] : m_batches)
        json["runs_per_sample"][std::string(attentionPassText(pass))] = batch;
    return json;
}

} // namespace

Result<std::unique_ptr<GpuAttention>> makeAttentionDevice(GpuSession& session, CublasLt* blas,
                                                          std::function<bool()> cancelled, const AttentionTask& task)
{
    auto device = std::make_unique<CudaAttentionDevice>(session, blas, std::move(cancelled), task);
    MEMSCAPE_CHECK(device->open());
    return std::unique_ptr<GpuAttention>(std::move(device));
}

} // namespace memscape::cuda
