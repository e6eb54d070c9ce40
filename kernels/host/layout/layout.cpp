// SPDX-License-Identifier: Apache-2.0
// layout, measured on the host by one core: reads through the view, the copy that contiguous() makes, and reads
// of the copy, in turn with each other so that a neighbour on the machine takes from all of them.
//
// Every sample is run as often as it says: `reads` passes through the view, then one copy and `reads` passes
// over it. Short ones are repeated within a sample. The copy is compared with the view before the first.
#include "core/experiments/layout/layout.h"

#include "kernels/host/layout/layout_kernels.h"
#include "kernels/host/measurement.h"
#include "kernels/programs/layout/layout_figures.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr double shortestCopySample = 500e-6;                        // s
constexpr std::int64_t elementsBetweenStops = std::int64_t(1) << 22; // elements

/// The tensor, and what contiguous() makes of it.
struct Tensors
{
    LayoutCase asked;
    TensorWalk walk, denseWalk, copyWalk;
    CopyKernel copy;
    Buffer storage, dense;
};

class LayoutMeasurement final : public HostMeasurement
{
public:
    explicit LayoutMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return {}; } // in visit(): the kernels depend on the point
    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override;
    Json method() const override;

private:
    Result<Tensors*> prepare(const LayoutCase& asked);
    Result<void> checkOnce(const CopyKernel& kernel);
    Result<void> checkCopied(Tensors& tensors);
    double passes(const TensorWalk& walk, const std::byte* storage, std::int64_t reads);
    double copied(Tensors& tensors, std::int64_t repeats = 1);
    /// Calls work(part, elements before it) for parts of the walk until all are done or the run is stopped.
    template <typename Work> void inParts(const TensorWalk& walk, Work&& work);

    HostSession& m_session;
    std::string m_key; ///< of the tensors that are there
    Tensors m_tensors;
    std::map<std::string, std::string> m_checked;
    std::optional<double> m_l1Misses; ///< of the view of those tensors
    double m_hugeShare = 0;
    std::uint64_t m_sum = 0; ///< so that no compiler leaves the reads away
};

template <typename Work> void LayoutMeasurement::inParts(const TensorWalk& walk, Work&& work)
{
    if (walk.loops.empty())
        return work(walk, std::int64_t(0));
    const std::int64_t slowest = walk.loops.back().count, each = walk.elements / slowest;
    const std::int64_t step = std::clamp<std::int64_t>(elementsBetweenStops / each / 16 * 16, 1, slowest);
    for (std::int64_t begin = 0; begin < slowest && !m_session.team().stopping(); begin += step)
        work(sliceOf(walk, begin, std::min(begin + step, slowest)), begin * each);
}

double LayoutMeasurement::passes(const TensorWalk& walk, const std::byte* storage, std::int64_t reads)
{
    return m_session.team().run(
        [&](int) {
            for (std::int64_t i = 0; i < reads; ++i) {
                inParts(walk, [&](const TensorWalk& part, std::int64_t) { m_sum += readWalk(part, storage); });
                memoryBarrier();
            }
        },
        1);
}

double LayoutMeasurement::copied(Tensors& tensors, std::int64_t repeats)
{
    return m_session.team().run(
        [&](int) {
            for (std::int64_t i = 0; i < repeats; ++i) {
                inParts(tensors.copyWalk, [&](const TensorWalk& part, std::int64_t before) {
                    tensors.copy.run(part, tensors.storage.data(),
                                     tensors.dense.data() + std::size_t(before) * tensors.copyWalk.itemBytes);
                });
                memoryBarrier();
            }
        },
        1);
}

Result<void> LayoutMeasurement::checkOnce(const CopyKernel& kernel)
{
    if (m_checked.contains(kernel.name()))
        return {};
    const Check reads = checkReadWalk(kernel.itemBytes), copies = checkCopy(kernel);
    m_checked[kernel.name()] = copies.text();
    MEMSCAPE_CHECK(reads.result(fmt::format("read of a view {} B", kernel.itemBytes)));
    return copies.result(kernel.name());
}

/// This very copy: visits spread over all of it, against where the view says that they lie.
Result<void> LayoutMeasurement::checkCopied(Tensors& tensors)
{
    Check check;
    const TensorWalk& walk = tensors.copyWalk;
    const std::int64_t step = std::max<std::int64_t>(1, walk.elements / 65536) | 1;
    const std::size_t item = walk.itemBytes;
    for (std::int64_t i = 0; i < walk.elements; i += step) {
        const bool isEqual =
            std::memcmp(tensors.dense.data() + std::size_t(i) * item, tensors.storage.data() + walk.address(i), item)
            == 0;
        check.require(std::size_t(i), isEqual, "another element than the view's");
    }
    return check.result(tensors.copy.name());
}

Result<Tensors*> LayoutMeasurement::prepare(const LayoutCase& asked)
{
    const std::string key =
        fmt::format("{} {} {} {} {} {} {}", sizesText(asked.view.size), sizesText(asked.view.stride), asked.view.offset,
                    asked.view.storage, asked.itemBytes(), int(asked.order), asked.version);
    if (key == m_key)
        return &m_tensors;
    m_key.clear();
    m_tensors = {};
    if (asked.view.isEmpty())
        return fail("run.skipped", "a tensor without elements takes no time to read", "use sizes above 0", "shape");
    const double storageBytes = double(asked.view.storage) * double(asked.itemBytes());
    const double denseBytes = asked.needsCopy() ? double(asked.view.elements()) * double(asked.itemBytes()) : 0;
    MEMSCAPE_CHECK(m_session.checkFits(storageBytes + denseBytes));
    m_tensors.asked = asked;
    m_tensors.walk = asked.walk();
    m_tensors.denseWalk = asked.denseWalk();
    m_tensors.copyWalk = asked.copyWalk();
    m_tensors.copy = copyKernel(int(asked.itemBytes()), asked.version);
    MEMSCAPE_CHECK(checkOnce(m_tensors.copy));
    MEMSCAPE_SET(m_tensors.storage, allocate(std::size_t(storageBytes), Pages::Huge, m_session.memory()));
    m_session.team().run(
        [&](int) {
            std::uint64_t state = 1;
            for (std::size_t i = 0; i < m_tensors.storage.bytes(); ++i) {
                if (i % 8 == 0)
                    state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX generator
                m_tensors.storage.data()[i] = std::byte(state >> (8 * (i % 8)));
                if (i % 65536 == 0 && m_session.team().stopping())
                    return;
            }
        },
        1);
    MEMSCAPE_CHECK(m_session.checkStopped());
    m_hugeShare = m_tensors.storage.hugeShare();
    if (asked.needsCopy()) {
        MEMSCAPE_SET(m_tensors.dense, allocate(std::size_t(denseBytes), Pages::Huge, m_session.memory()));
        copied(m_tensors);
        MEMSCAPE_CHECK(m_session.checkStopped());
        MEMSCAPE_CHECK(checkCopied(m_tensors));
    }
    m_key = key;
    passes(m_tensors.walk, m_tensors.storage.data(), 1); // passes follow each other
    m_l1Misses = m_session.lineCounter().during([this] { passes(m_tensors.walk, m_tensors.storage.data(), 1); });
    MEMSCAPE_CHECK(m_session.checkStopped());
    return &m_tensors;
}

Result<SampleSets> LayoutMeasurement::visit(const Parameters& point, int)
{
    MEMSCAPE_TRY(asked, layoutCase(point));
    MEMSCAPE_TRY(tensors, prepare(asked));
    const bool copies = asked.needsCopy();
    const std::byte* dense = copies ? tensors->dense.data() : tensors->storage.data();
    const auto bytes = double(tensors->walk.elements) * double(tensors->walk.itemBytes);
    const auto repeatsFor = [&](double once) {
        return std::max<std::int64_t>(1, std::int64_t(shortestCopySample / possibleSeconds(once, bytes)));
    };
    // Warms up, and says how often a short one is repeated. One that is read r times is as long.
    const std::int64_t viewRepeats = repeatsFor(passes(tensors->walk, tensors->storage.data(), asked.reads));
    const std::int64_t denseRepeats = repeatsFor(passes(tensors->denseWalk, dense, asked.reads));
    const std::int64_t copyRepeats = copies ? repeatsFor(copied(*tensors)) : 0;
    MEMSCAPE_CHECK(m_session.checkStopped());
    StoppingRule rule(m_session.passOptions(), m_session.clock());
    SampleSets sets;
    // A pass follows those of its own kind: what lies in the caches is their doing, not that of the others in between.
    // A shared cache takes in only a part of what passes by, so one is not enough where all might stay.
    const std::int64_t before = bytes <= 2 * m_session.largestCache() ? 4 : 1;
    const auto few = [before](std::int64_t passesInSample) { return passesInSample < 8 * before; };
    while (!rule.finished()) {
        if (few(asked.reads * viewRepeats))
            passes(tensors->walk, tensors->storage.data(), before);
        const double view =
            passes(tensors->walk, tensors->storage.data(), asked.reads * viewRepeats) / double(viewRepeats);
        if (copies && few(copyRepeats))
            copied(*tensors, before);
        const double copy = copies ? copied(*tensors, copyRepeats) / double(copyRepeats) : 0;
        if (few(asked.reads * denseRepeats))
            passes(tensors->denseWalk, dense, before);
        const double read = passes(tensors->denseWalk, dense, asked.reads * denseRepeats) / double(denseRepeats);
        MEMSCAPE_CHECK(m_session.checkStopped()); // a stopped sample is not whole
        rule.add(view);
        sets["view_total"].push_back(view);
        sets["contiguous_total"].push_back(copy + read);
        sets["contiguous_time"].push_back(read / double(asked.reads));
        if (copies)
            sets["copy_time"].push_back(copy);
    }
    if (m_session.samplesOf(rule, 1).empty()) // says so, once
        return SampleSets{};
    return sets;
}

Result<Figures> LayoutMeasurement::figures(const Parameters& point, const MergedSamples& samples)
{
    MEMSCAPE_TRY(answer, answerLayout(m_session.device(), point));
    Figures figures = countedLayoutFigures(m_session.device(), answer);
    // What is touched is counted over the addresses; of the caches only L1 has a counter.
    if (m_l1Misses)
        figures.push_back(figureOf("l1_misses", "L1 misses", Unit::One, *m_l1Misses,
                                   Why{"L1-dcache-load-misses of one pass through the view, in user mode",
                                       {},
                                       {},
                                       "counted by the processor",
                                       {"lines that prefetchers brought in vain count, too"}}));
    for (Figure& figure : sampledLayoutFigures(answer.asked, samples))
        figures.push_back(std::move(figure));
    return figures;
}

Json LayoutMeasurement::method() const
{
    Json kernels = Json::array();
    for (const auto& [name, text] : m_checked)
        kernels.push_back({{"kernel", name}, {"check", text}});
    return {{"threads", 1},
            {"pages", m_hugeShare > 0.9 ? "huge (2 MiB)" : "small (4 KiB)"},
            {"huge_share", jsonNumber(m_hugeShare)},
            {"caches", "steady state: passes follow each other"},
            {"kernels", std::move(kernels)},
            {"line_counter", m_session.lineCounter().missing()}};
}

} // namespace

std::unique_ptr<HostMeasurement> makeLayoutMeasurement(HostSession& session)
{
    return std::make_unique<LayoutMeasurement>(session);
}

} // namespace memscape::host
