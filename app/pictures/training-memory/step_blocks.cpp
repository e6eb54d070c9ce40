// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/training-memory/step_blocks.h"

#include "app/pictures/training-memory/memory_state.h"
#include "core/trace/peak.h"

#include <QHash>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace memscape {

namespace {

QString text(std::string_view words)
{
    return QString::fromUtf8(words.data(), qsizetype(words.size()));
}

/// "model.layers.3.mlp" as "model", "layers.3", "mlp": a number stays with what it counts.
QStringList partsOf(const QString& path)
{
    QStringList parts;
    for (const QString& part : path.split(u'.', Qt::SkipEmptyParts)) {
        const bool isNumber = part.front().isDigit();
        if (isNumber && !parts.isEmpty())
            parts.back() += u'.' + part;
        else
            parts << part;
    }
    return parts;
}

struct Run
{
    int begin = 0, end = 0, module = 0, microBatch = 0;
    Phase phase = Phase::Setup;
};

/// A module whose allocations follow each other. Frees say what was made elsewhere: they belong to the run.
std::vector<Run> runsOf(const Trace& trace)
{
    std::vector<Run> runs;
    const auto& events = trace.events();
    for (std::size_t i = trace.setupEvents(); i < events.size(); ++i) {
        const Event& event = events[i];
        const bool isNewPhase =
            runs.empty() || runs.back().phase != event.phase || runs.back().microBatch != event.microBatch;
        if (isNewPhase || (event.isAllocation() && runs.back().module != int(event.module)))
            runs.push_back({int(i), int(i), int(event.module), event.microBatch, event.phase});
        runs.back().end = int(i) + 1;
    }
    return runs;
}

/// A part that nearly all have in common ("model") would be a row without information.
QString commonFirst(const QStringList& modules, const std::vector<Run>& runs)
{
    QHash<QString, int> counts;
    for (const Run& run : runs) {
        const QString& path = modules[run.module];
        if (path.contains(u'.'))
            ++counts[path.section(u'.', 0, 0)];
    }
    for (auto at = counts.cbegin(); at != counts.cend(); ++at) {
        if (at.value() > int(runs.size()) * 4 / 5)
            return at.key();
    }
    return {};
}

void addSpans(const Trace& trace, StepBlocks& step)
{
    const std::vector<Run> runs = runsOf(trace);
    const QString common = commonFirst(step.modules, runs);
    std::vector<QStringList> parts;
    for (const QString& module : step.modules) {
        parts.push_back(partsOf(module));
        if (!common.isEmpty() && parts.back().size() > 1 && parts.back().front() == common)
            parts.back().removeFirst();
    }
    QHash<QString, int> kinds;
    std::vector<int> open; // span of each row
    const Run* before = nullptr;
    for (const Run& run : runs) {
        const bool isSamePhase = before && before->phase == run.phase && before->microBatch == run.microBatch;
        QString phase = text(phaseText(run.phase));
        if (run.microBatch > 0)
            phase += QStringLiteral(" %1").arg(run.microBatch + 1);
        const QStringList path = QStringList{phase} + parts[std::size_t(run.module)];
        std::size_t same = 0; // rows that go on
        while (isSamePhase && same < open.size() && same < std::size_t(path.size())
               && step.spans[std::size_t(open[same])].text == path[qsizetype(same)])
            ++same;
        for (std::size_t row = 0; row < same; ++row)
            step.spans[std::size_t(open[row])].end = run.end;
        open.resize(same);
        for (std::size_t row = same; row < std::size_t(path.size()); ++row) {
            const QString& name = path[qsizetype(row)];
            const QString kind = text(moduleKind(name.toStdString()));
            const int index = kinds.value(kind, int(kinds.size()));
            kinds.insert(kind, index);
            open.push_back(int(step.spans.size()));
            const QString whole =
                row == 0 ? phase : phase + QStringLiteral(" · ") + path.mid(1, qsizetype(row)).join(u'.');
            step.spans.push_back({run.begin, run.end, int(row), name, whole, index});
        }
        step.rows = std::max(step.rows, int(path.size()));
        before = &run;
    }
    std::ranges::stable_sort(step.spans, [](const StepSpan& a, const StepSpan& b) { return a.row < b.row; });
}

/// The largest stay in their order; of the others the sums of each category.
void keepLargest(StepBlocks& step, std::size_t most)
{
    if (step.blocks.size() <= most)
        return;
    std::vector<double> sizes;
    for (const StepBlock& block : step.blocks)
        sizes.push_back(block.bytes);
    std::nth_element(sizes.begin(), sizes.begin() + std::ptrdiff_t(most), sizes.end(), std::greater<>());
    const double least = sizes[most];
    std::map<Category, StepRest> rests;
    std::erase_if(step.blocks, [&](const StepBlock& block) {
        if (block.bytes > least)
            return false;
        StepRest& rest = rests[block.category];
        rest.bytes.resize(step.totals.size() + 1, 0);
        rest.bytes[std::size_t(block.begin - step.first)] += block.bytes;
        rest.bytes[std::size_t(block.end - step.first)] -= block.bytes;
        ++rest.count;
        return true;
    });
    for (auto& [category, rest] : rests) {
        std::partial_sum(rest.bytes.begin(), rest.bytes.end(), rest.bytes.begin());
        rest.bytes.pop_back();
        rest.category = category;
        step.rest.push_back(std::move(rest));
    }
}

} // namespace

QString StepBlocks::textOf(const StepBlock& block) const
{
    const QString& name = names[block.name];
    const QString words = placeText({}, modules[block.module], name);
    return words.isEmpty() ? text(categoryText(block.category)) : words;
}

bool StepBlocks::matches(const StepBlock& block, const QString& words) const
{
    return words.isEmpty() || modules[block.module].contains(words, Qt::CaseInsensitive)
        || names[block.name].contains(words, Qt::CaseInsensitive) || textOf(block).contains(words, Qt::CaseInsensitive)
        || text(categoryText(block.category)).contains(words, Qt::CaseInsensitive);
}

StepBlocks stepBlocks(const Trace& trace, std::size_t most)
{
    StepBlocks step;
    const auto& events = trace.events();
    if (trace.setupEvents() >= events.size())
        return step; // nothing happens
    step.first = int(trace.setupEvents());
    step.last = int(events.size()) - 1;
    for (const std::string& module : trace.modules())
        step.modules << QString::fromStdString(module);
    for (const std::string& name : trace.names())
        step.names << QString::fromStdString(name);
    std::vector<StepBlock> all;
    std::vector<int> placeOf(trace.blockCount() + 1, -1);
    double total = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        total += double(event.change());
        if (int(i) >= step.first)
            step.totals.push_back(total);
        if (event.isAllocation()) {
            placeOf[event.block] = int(all.size());
            all.push_back({std::max(int(i), step.first), step.last + 1, double(event.bytes), event.category,
                           int(event.module), int(event.name), event.phase, Phase::Setup, false});
        } else {
            StepBlock& block = all[std::size_t(placeOf[event.block])];
            block.end = std::max(int(i), step.first);
            block.freedIn = event.phase;
            block.isFreed = true;
        }
    }
    for (const StepBlock& block : all) {
        if (block.madeIn == Phase::Setup && !block.isFreed)
            step.residents.push_back(block);
        else if (block.end > block.begin)
            step.blocks.push_back(block);
    }
    keepLargest(step, most);
    addSpans(trace, step);
    return step;
}

} // namespace memscape
