// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/measured_trace.h"

#include "core/experiments/memory/memory_detail.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t mostMicroBatches = 65535;

Result<std::vector<std::string>> texts(const JsonReader& tables, const char* key)
{
    MEMSCAPE_TRY(node, tables.at(key));
    MEMSCAPE_TRY(items, node.items());
    std::vector<std::string> found;
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(text, item.string());
        found.push_back(std::move(text));
    }
    return found;
}

/// The index of each text among `count` known ones, whose texts `name` answers.
template <typename Name>
Result<std::vector<std::size_t>> known(const std::vector<std::string>& given, std::size_t count, Name name)
{
    std::vector<std::size_t> indices;
    for (const std::string& text : given) {
        std::size_t i = 0;
        while (i < count && name(i) != text)
            ++i;
        if (i == count)
            return fail("probe.trace", fmt::format("\"{}\" is not known", text), "use the probe of this version");
        indices.push_back(i);
    }
    return indices;
}

class Reader
{
public:
    explicit Reader(const Json& events)
        : m_events(events)
    { }

    Result<Trace> read(const JsonReader& tables)
    {
        MEMSCAPE_TRY(modules, texts(tables, "modules"));
        MEMSCAPE_TRY(names, texts(tables, "names"));
        MEMSCAPE_TRY(categoryTexts, texts(tables, "categories"));
        MEMSCAPE_TRY(phaseTexts, texts(tables, "phases"));
        MEMSCAPE_TRY(categories,
                     known(categoryTexts, categoryCount, [](std::size_t i) { return categoryKey(Category(i)); }));
        MEMSCAPE_TRY(phases, known(phaseTexts, phaseCount, [](std::size_t i) { return phaseText(Phase(i)); }));
        for (const std::string& module : modules)
            m_modules.push_back(m_trace.module(module));
        for (const std::string& name : names)
            m_names.push_back(m_trace.name(name));
        m_categories = std::move(categories);
        m_phases = std::move(phases);
        while (m_at < m_events.size())
            MEMSCAPE_CHECK(readRow());
        MEMSCAPE_CHECK(m_trace.check());
        return std::move(m_trace);
    }

private:
    /// The next number, from 0 to `most`.
    Result<std::int64_t> number(std::int64_t most)
    {
        if (m_at >= m_events.size() || !m_events[m_at].is_number_integer())
            return fail("probe.trace", "a number is missing", {}, fmt::format("events[{}]", m_at));
        const auto value = m_events[m_at].get<std::int64_t>();
        if (value < 0 || value > most)
            return fail("probe.trace", fmt::format("{} is out of range", value), {}, fmt::format("events[{}]", m_at));
        ++m_at;
        return value;
    }

    template <typename Table> Result<std::size_t> indexOf(const Table& table)
    {
        MEMSCAPE_TRY(index, number(std::int64_t(table.size()) - 1));
        return std::size_t(index);
    }

    Result<void> enter()
    {
        MEMSCAPE_TRY(phase, indexOf(m_phases));
        MEMSCAPE_TRY(microBatch, number(mostMicroBatches));
        m_trace.enter(Phase(m_phases[phase]), std::uint16_t(microBatch));
        return {};
    }

    Result<void> readRow()
    {
        constexpr std::int64_t mostBlocks = 1 << 30;
        MEMSCAPE_TRY(bytes, number(std::int64_t(1) << 60));
        MEMSCAPE_TRY(block, number(mostBlocks));
        if (bytes == 0)
            return readFree(std::size_t(block));
        if (std::size_t(block) != m_blocks.size())
            return fail("probe.trace", "blocks are not in their order", {}, fmt::format("events[{}]", m_at - 1));
        MEMSCAPE_TRY(module, indexOf(m_modules));
        MEMSCAPE_TRY(name, indexOf(m_names));
        MEMSCAPE_TRY(category, indexOf(m_categories));
        MEMSCAPE_CHECK(enter());
        m_blocks.push_back(m_trace.allocate(bytes, Category(m_categories[category]), m_names[name], m_modules[module]));
        return {};
    }

    Result<void> readFree(std::size_t block)
    {
        if (block >= m_blocks.size() || !m_trace.isLive(m_blocks[block]))
            return fail("probe.trace", "what is freed is not alive", {}, fmt::format("events[{}]", m_at - 1));
        MEMSCAPE_CHECK(enter());
        m_trace.free(m_blocks[block]);
        return {};
    }

    const Json& m_events;
    std::size_t m_at = 0;
    Trace m_trace;
    std::vector<ModuleId> m_modules;
    std::vector<NameId> m_names;
    std::vector<std::size_t> m_categories, m_phases;
    std::vector<BlockId> m_blocks{noBlock}; ///< by the probe's number, which counts from 1
};

} // namespace

Result<Trace> traceFromProbe(const Json& tables)
{
    const JsonReader reader(tables, "trace");
    MEMSCAPE_TRY(events, reader.at("events"));
    if (!events.node().is_array())
        return fail("probe.trace", "the events are missing", {}, "trace.events");
    return Reader(events.node()).read(reader);
}

} // namespace memscape
