// SPDX-License-Identifier: Apache-2.0
// `attention` on the host. At every point of the sweep both implementations have their arrays at
// the same time and take their samples in turn, so that what the machine does meanwhile meets both.
// Caches are flushed before every sample. Memory traffic is not measured: this program reads no
// hardware counters.
#include "kernels/host/attention/attention_device.h"
#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/measurement.h"
#include "kernels/programs/attention/attention_measurement.h"
#include "kernels/programs/attention/attention_reference.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::size_t fewestPerVisit = 2; // six in all: the least that has a grade

class AttentionMeasurement final : public HostMeasurement
{
public:
    explicit AttentionMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return {}; } // in visit(): version and format are the point's

    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override;
    Json method() const override
    {
        Json checks = Json::array();
        for (const auto& [name, text] : m_checked)
            checks.push_back({{"kernel", name}, {"check", text}});
        return {{"implementations", m_methods},
                {"kernels", std::move(checks)},
                {"products_tried", m_product ? m_product->tried : Json()},
                {"caches", "flushed before every sample"},
                {"memory_traffic", "not measured: no hardware counters are read"}};
    }

private:
    /// A task with its device, while a point is visited.
    struct Running
    {
        AttentionTask task;
        std::unique_ptr<AttentionDevice> device;
        StoppingRule rule;
        std::size_t count = 0;
    };
    Result<void> checkOnce(const AttentionTask& task);
    Result<Running> begin(const AttentionTask& task, int pass);
    std::string nameOf(const AttentionTask& task, const Parameters* point = nullptr) const;
    const ProductKernel& product()
    {
        if (!m_product)
            m_product = fastestProduct(m_session);
        return m_product->kernel;
    }

    HostSession& m_session;
    std::optional<ProductChoice> m_product;
    std::map<std::string, std::string> m_checked;
    std::map<std::string, AttentionBytes> m_bytes; ///< by task and point
    std::map<std::int64_t, double> m_speedups;     ///< by sequence, the newest medians
    Json m_methods = Json::object();
};

/// "flash v2 bfloat16", with a point also its other parameters.
std::string AttentionMeasurement::nameOf(const AttentionTask& task, const Parameters* point) const
{
    std::string name = fmt::format("{} v{} {}", attentionKindText(task.problem.kind), task.version.number,
                                   dtypeText(task.problem.dtype));
    if (point == nullptr)
        return name;
    for (const auto& [key, value] : point->values())
        name += fmt::format(" {}={}", key, valueText(value));
    return name;
}

Result<void> AttentionMeasurement::checkOnce(const AttentionTask& task)
{
    const std::string name = nameOf(task);
    if (m_checked.contains(name))
        return {};
    m_session.sink().progress(0, 1, fmt::format("checking {} on small shapes", name));
    MEMSCAPE_TRY(check,
                 checkAttentionDevice(
                     [&](const AttentionTask& small) { return makeAttentionDevice(m_session, small, product()); },
                     task.version, task.problem.dtype, m_session.team().size()));
    MEMSCAPE_CHECK(check.result(name)); // wrong at every point, so it is asked at every point
    m_checked[name] = check.text();
    return {};
}

Result<AttentionMeasurement::Running> AttentionMeasurement::begin(const AttentionTask& task, int)
{
    MEMSCAPE_TRY(device, makeAttentionDevice(m_session, task, product()));
    MEMSCAPE_CHECK(device->fill(AttentionInputs::Normal));
    MEMSCAPE_CHECK(countAttention(*device, task)); // the first run meets new pages and tiles
    return Running{task, std::move(device), StoppingRule(m_session.passOptions(), m_session.clock())};
}

Result<SampleSets> AttentionMeasurement::visit(const Parameters& point, int pass)
{
    MEMSCAPE_TRY(tasks, attentionTasks(m_session.device(), point));
    std::vector<Running> running;
    for (const AttentionTask& task : tasks) {
        MEMSCAPE_CHECK(checkOnce(task));
        MEMSCAPE_TRY(begun, begin(task, pass));
        MEMSCAPE_SET(m_bytes[nameOf(task, &point)], countAttention(*begun.device, task));
        running.push_back(std::move(begun));
    }
    SampleSets sets;
    for (bool more = true; more;) {
        more = false;
        for (Running& one : running) {
            if (one.rule.finished() && one.count >= fewestPerVisit)
                continue;
            MEMSCAPE_TRY(seconds, one.device->sample(one.task.problem.pass));
            one.rule.add(seconds);
            ++one.count;
            more = true;
        }
    }
    for (Running& one : running) {
        sets[attentionTimeKey(one.task)] = m_session.samplesOf(one.rule, 1);
        m_methods[std::string(attentionKindText(one.task.problem.kind))] = one.device->method();
    }
    return sets;
}

Result<Figures> AttentionMeasurement::figures(const Parameters& point, const MergedSamples& samples)
{
    MEMSCAPE_TRY(tasks, attentionTasks(m_session.device(), point));
    std::map<std::string, AttentionBytes> bytes;
    for (const AttentionTask& task : tasks)
        bytes[attentionTimeKey(task)] = m_bytes.at(nameOf(task, &point));
    return attentionPointFigures(tasks, samples, bytes, m_speedups);
}

} // namespace

std::unique_ptr<HostMeasurement> makeAttentionMeasurement(HostSession& session)
{
    return std::make_unique<AttentionMeasurement>(session);
}

} // namespace memscape::host
