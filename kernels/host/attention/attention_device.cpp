// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/attention/attention_device.h"

#include "core/base/number.h"
#include "core/base/rounding.h"
#include "core/checkpoint/mlp_chain.h"
#include "kernels/host/precision/convert.h"
#include "kernels/measure/counting_pool.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::int64_t rowsPerFill = 256;
constexpr AttentionTensor inputs[] = {AttentionTensor::Query, AttentionTensor::Key, AttentionTensor::Value,
                                      AttentionTensor::OutputGradient};

bool isOfKeys(AttentionTensor tensor)
{
    return tensor == AttentionTensor::Key || tensor == AttentionTensor::Value || tensor == AttentionTensor::KeyGradient
        || tensor == AttentionTensor::ValueGradient;
}

class HostAttentionDevice final : public AttentionDevice
{
public:
    HostAttentionDevice(HostSession& session, const AttentionTask& task, std::unique_ptr<AttentionKernel> kernel)
        : m_session(session)
        , m_task(task)
        , m_kernel(std::move(kernel))
    { }

    Result<void> open();

    Result<void> fill(AttentionInputs kind) override;
    Result<void> forward() override;
    Result<void> backward() override;
    void forget() override
    {
        give("S");
        give("P");
        give("L");
    }
    void resetPeak() override { m_pool->resetHighWater(); }
    AttentionBytes bytes() const override { return {m_pool->highWater(), m_pool->used()}; }
    Result<double> sample(AttentionPass pass) override;
    Result<void> checkStopped() override { return m_session.checkStopped(); }
    Result<std::vector<float>> read(AttentionTensor tensor) override;
    Json method() const override;

private:
    std::int64_t rowsOf(AttentionTensor tensor) const
    {
        return isOfKeys(tensor) ? m_task.problem.shape.keyRows() : m_task.problem.shape.queryRows();
    }
    std::size_t tensorBytes(AttentionTensor tensor) const
    {
        return std::size_t(rowsOf(tensor) * m_task.problem.shape.headDim * elementBytes(m_task.problem.dtype));
    }
    std::byte* tensor(AttentionTensor tensor) const { return m_tensors.at(tensor).data(); }
    Result<std::byte*> take(const std::string& name);
    void give(const std::string& name);
    AttentionWork work() const;

    HostSession& m_session;
    AttentionTask m_task;
    std::unique_ptr<AttentionKernel> m_kernel;
    std::map<AttentionTensor, Buffer> m_tensors;
    std::map<std::string, AttentionArray> m_arrays; ///< what this version takes, by name
    std::map<std::string, std::int64_t> m_taken;    ///< offsets in the arena
    Buffer m_arena;
    std::unique_ptr<CountingPool> m_pool;
    std::int64_t m_splits = 1;
};

Result<void> HostAttentionDevice::open()
{
    const AttentionProblem& problem = m_task.problem;
    const int threads = m_session.team().size();
    MEMSCAPE_CHECK(checkShape(problem.shape));
    MEMSCAPE_CHECK(supports(m_task.version, problem, false));
    MEMSCAPE_TRY(memory, attentionMemory(m_task.version, problem.shape, problem.dtype, problem.pass, threads));
    MEMSCAPE_TRY(arrays, attentionArrays(m_task.version, problem.shape, problem.dtype, threads));
    for (const AttentionArray& array : arrays)
        m_arrays[array.name] = array;
    m_splits = m_task.version.queryGradient == QueryGradient::PerSplit
        ? attentionSplits(m_task.version, problem.shape, threads)
        : 1;
    const std::int64_t arena =
        problem.pass == AttentionPass::Forward ? memory.forward : std::max(memory.forward, memory.backward);
    if (auto fits = m_session.checkFits(double(memory.tensors) + double(arena)); !fits) {
        Error error = std::move(fits).error();
        error.message = fmt::format("{} attention takes {} beside {} of inputs and outputs: {}",
                                    attentionKindText(problem.kind), quantityText(double(arena), Unit::Byte),
                                    quantityText(double(memory.tensors), Unit::Byte), error.message);
        error.hint += problem.kind == AttentionKind::Standard
            ? ", choose a shorter sequence, fewer heads or implementation=flash"
            : ", choose a shorter sequence or fewer heads";
        return fail(std::move(error));
    }
    for (int i = 0; i <= int(AttentionTensor::ValueGradient); ++i) {
        const auto tensor = AttentionTensor(i);
        const bool isBackwards = tensor == AttentionTensor::OutputGradient || tensor >= AttentionTensor::QueryGradient;
        if (tensor == AttentionTensor::LogSumExp || (isBackwards && problem.pass == AttentionPass::Forward))
            continue;
        MEMSCAPE_SET(m_tensors[tensor], allocate(tensorBytes(tensor), Pages::Huge, m_session.memory()));
    }
    MEMSCAPE_SET(m_arena, allocate(std::size_t(arena), Pages::Huge, m_session.memory()));
    m_pool = std::make_unique<CountingPool>(arena);
    return {};
}

Result<void> HostAttentionDevice::fill(AttentionInputs kind)
{
    const auto d = std::uint64_t(m_task.problem.shape.headDim);
    for (const AttentionTensor input : inputs) {
        if (!m_tensors.contains(input))
            continue;
        const std::int64_t rows = rowsOf(input);
        MEMSCAPE_CHECK(overPieces(m_session, quotientUp(rows, rowsPerFill), [&](int, std::int64_t piece) {
            std::vector<float> row(d);
            const std::int64_t end = std::min((piece + 1) * rowsPerFill, rows);
            for (std::int64_t i = piece * rowsPerFill; i < end; ++i) {
                for (std::uint64_t j = 0; j < d; ++j)
                    row[j] = attentionInput(input, std::uint64_t(i) * d + j, d, kind);
                narrowRow(row.data(), m_task.problem.dtype,
                          tensor(input) + std::size_t(i) * d * std::size_t(elementBytes(m_task.problem.dtype)), d);
            }
        }));
    }
    for (auto& [name, buffer] : m_tensors) {
        if (std::find(std::begin(inputs), std::end(inputs), name) == std::end(inputs))
            std::memset(buffer.data(), 0xff, buffer.bytes());
    }
    std::memset(m_arena.data(), 0xff, m_arena.bytes());
    return {};
}

Result<std::byte*> HostAttentionDevice::take(const std::string& name)
{
    const auto array = m_arrays.find(name);
    if (array == m_arrays.end())
        return nullptr;
    if (!m_taken.contains(name))
        MEMSCAPE_SET(m_taken[name], m_pool->take(array->second.elements * array->second.elementBytes));
    return m_arena.data() + m_taken.at(name);
}

void HostAttentionDevice::give(const std::string& name)
{
    if (const auto taken = m_taken.find(name); taken != m_taken.end()) {
        m_pool->give(taken->second);
        m_taken.erase(taken);
    }
}

AttentionWork HostAttentionDevice::work() const
{
    AttentionWork work;
    work.shape = m_task.problem.shape;
    work.dtype = m_task.problem.dtype;
    work.splits = m_splits;
    const auto at = [&](AttentionTensor name) { return m_tensors.contains(name) ? tensor(name) : nullptr; };
    const auto array = [&](const char* name) {
        return m_taken.contains(name) ? m_arena.data() + m_taken.at(name) : nullptr;
    };
    work.q = at(AttentionTensor::Query);
    work.k = at(AttentionTensor::Key);
    work.v = at(AttentionTensor::Value);
    work.outputGradient = at(AttentionTensor::OutputGradient);
    work.output = at(AttentionTensor::Output);
    work.dq = at(AttentionTensor::QueryGradient);
    work.dk = at(AttentionTensor::KeyGradient);
    work.dv = at(AttentionTensor::ValueGradient);
    work.logSumExp = reinterpret_cast<float*>(array("L"));
    work.rowSums = reinterpret_cast<float*>(array("D"));
    work.dqSums = reinterpret_cast<float*>(array("dQ in floats"));
    work.s = array("S");
    work.p = array("P");
    work.dp = array("dP");
    work.ds = array("dS");
    return work;
}

Result<void> HostAttentionDevice::forward()
{
    forget();
    for (const auto& [name, array] : m_arrays) {
        if (array.inForward)
            MEMSCAPE_CHECK(take(name));
    }
    auto done = m_kernel->forward(work());
    for (const auto& [name, array] : m_arrays) {
        if (array.inForward && !array.isSaved)
            give(name);
    }
    return done;
}

Result<void> HostAttentionDevice::backward()
{
    for (const auto& [name, array] : m_arrays) {
        if (array.inBackward)
            MEMSCAPE_CHECK(take(name));
    }
    auto done = m_kernel->backward(work());
    for (const auto& [name, array] : m_arrays) {
        if (array.inBackward && !array.isSaved)
            give(name);
    }
    return done;
}

Result<double> HostAttentionDevice::sample(AttentionPass pass)
{
    if (pass == AttentionPass::Backward && m_pool->used() == 0)
        MEMSCAPE_CHECK(forward());
    MEMSCAPE_CHECK(m_session.flush());
    const double begin = m_session.clock().now();
    if (pass != AttentionPass::Backward)
        MEMSCAPE_CHECK(forward());
    if (pass != AttentionPass::Forward)
        MEMSCAPE_CHECK(backward());
    return m_session.clock().now() - begin;
}

Result<std::vector<float>> HostAttentionDevice::read(AttentionTensor name)
{
    std::vector<float> values;
    if (name == AttentionTensor::LogSumExp) {
        const float* log = work().logSumExp;
        if (log != nullptr)
            values.assign(log, log + m_task.problem.shape.queryRows());
        return values;
    }
    values.resize(std::size_t(rowsOf(name) * m_task.problem.shape.headDim));
    widenRow(tensor(name), m_task.problem.dtype, values.data(), values.size());
    return values;
}

Json HostAttentionDevice::method() const
{
    Json json = m_kernel->method();
    json["version"] = m_task.version.number;
    json["name"] = m_task.version.name;
    json["threads"] = m_session.team().size();
    json["tile_bytes"] = m_kernel->tileBytes();
    json["splits"] = m_splits;
    json["pages"] = m_arena.hugeShare() > 0.9 ? "huge (2 MiB)" : "small (4 KiB)";
    return json;
}

} // namespace

Result<std::unique_ptr<AttentionDevice>> makeAttentionDevice(HostSession& session, const AttentionTask& task,
                                                             const ProductKernel& product, Isa isa)
{
    std::unique_ptr<AttentionKernel> kernel;
    if (task.problem.kind == AttentionKind::Standard)
        kernel = makeStandardAttention(session, task.version.inPlace, product);
    else if (task.version.number == 1)
        kernel = makeRowAttention(session);
    else
        kernel = makeTiledAttention(session, task.version, isa);
    auto device = std::make_unique<HostAttentionDevice>(session, task, std::move(kernel));
    MEMSCAPE_CHECK(device->open());
    return std::unique_ptr<AttentionDevice>(std::move(device));
}

} // namespace memscape::host
