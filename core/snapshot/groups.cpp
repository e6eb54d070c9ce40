// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/groups.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 7> groupingTexts{"module", "operator", "line", "category",
                                                        "stack",  "phase",    "step"};
constexpr std::string_view unknown = "(unknown)";

std::string labelText(const Snapshot& snapshot, TextId text)
{
    return std::string(text == 0 ? unknown : snapshot.texts[text]);
}

std::string frameOrUnknown(const Snapshot& snapshot, FrameId frame)
{
    return frame == noFrame ? std::string(unknown) : snapshot.frameText(frame);
}

std::string stackText(const Snapshot& snapshot, StackId stack)
{
    std::string text;
    int frames = 0;
    for (const FrameId frame : snapshot.stacks[stack]) {
        if (isInternalFrame(snapshot.frameName(frame), snapshot.frameFile(frame)))
            continue;
        if (++frames > 6)
            return text + " < …";
        text += (text.empty() ? "" : " < ")
            + (snapshot.frameName(frame).starts_with("at::_ops::") ? operatorName(snapshot.frameName(frame))
                                                                   : snapshot.frameText(frame));
    }
    return text.empty() ? std::string(unknown) : text;
}

/// Labels by what decides them, so that each text is made once.
class Labeller
{
public:
    Labeller(const Snapshot& snapshot, const Lifetimes& lifetimes, const SnapshotSteps& steps,
             const SnapshotCategories& categories, SnapshotGrouping grouping)
        : m_snapshot(snapshot)
        , m_lifetimes(lifetimes)
        , m_steps(steps)
        , m_categories(categories)
        , m_grouping(grouping)
    { }

    /// Equal keys have equal labels (not the other way round).
    std::uint64_t key(LifetimeId id) const
    {
        const Lifetime& lifetime = m_lifetimes[id];
        switch (m_grouping) {
        case SnapshotGrouping::Category: return std::uint64_t(m_categories.of(id));
        case SnapshotGrouping::Step: return stepKey(lifetime);
        case SnapshotGrouping::Phase: return phaseKey(lifetime);
        default: return std::uint64_t(lifetime.label) << 32 | lifetime.stack;
        }
    }
    std::string label(LifetimeId id) const
    {
        const Lifetime& lifetime = m_lifetimes[id];
        const SnapshotLabel* told = lifetime.label == noLabel ? nullptr : &m_snapshot.run->labels[lifetime.label];
        const StackMeaning& meaning = m_categories.meaningOf(lifetime.stack);
        switch (m_grouping) {
        case SnapshotGrouping::Category: return std::string(categoryText(m_categories.of(id)));
        case SnapshotGrouping::Stack: return stackText(m_snapshot, lifetime.stack);
        case SnapshotGrouping::Line: return frameOrUnknown(m_snapshot, meaning.line);
        case SnapshotGrouping::Operator:
            if (told && told->operation != 0)
                return labelText(m_snapshot, told->operation);
            return meaning.operation == noFrame ? std::string(unknown)
                                                : operatorName(m_snapshot.frameName(meaning.operation));
        case SnapshotGrouping::Module:
            if (told && told->module != 0)
                return moduleKind(m_snapshot.texts[told->module]);
            return frameOrUnknown(m_snapshot, meaning.module);
        case SnapshotGrouping::Step: {
            const std::uint64_t key = stepKey(lifetime);
            return key == 0 ? "before the trace"
                : key == 1  ? "outside of steps"
                            : fmt::format("step {}", m_steps.steps[key - 2].index);
        }
        case SnapshotGrouping::Phase: {
            const std::uint64_t key = phaseKey(lifetime);
            return key == 0 ? std::string(unknown) : std::string(phaseText(Phase(key - 1)));
        }
        }
        return {};
    }

private:
    std::uint64_t stepKey(const Lifetime& lifetime) const
    {
        if (lifetime.begin == 0)
            return 0;
        const auto step = m_steps.stepOf(lifetime.begin - 1);
        return step ? *step + 2 : 1;
    }
    std::uint64_t phaseKey(const Lifetime& lifetime) const
    {
        if (lifetime.begin == 0) {
            const StackMeaning& meaning = m_categories.meaningOf(lifetime.stack);
            return meaning.isKnown ? std::uint64_t(meaning.phase) + 1 : 0;
        }
        const auto phase = m_categories.phaseOf(lifetime.begin - 1);
        return phase ? std::uint64_t(*phase) + 1 : 0;
    }

    const Snapshot& m_snapshot;
    const Lifetimes& m_lifetimes;
    const SnapshotSteps& m_steps;
    const SnapshotCategories& m_categories;
    SnapshotGrouping m_grouping;
};

void add(SnapshotGroup& group, const Lifetime& lifetime, LifetimeId id)
{
    group.bytes += lifetime.size;
    ++group.blocks;
    if (group.example == noLifetime || lifetime.size > group.largest) {
        group.largest = lifetime.size;
        group.example = id;
    }
}

} // namespace

std::string_view groupingText(SnapshotGrouping grouping)
{
    return groupingTexts[std::size_t(grouping)];
}

std::vector<LifetimeId> allocatedIn(const Lifetimes& lifetimes, std::size_t first, std::size_t last)
{
    std::vector<LifetimeId> found;
    for (std::size_t event = first; event < std::min(last, lifetimes.events()); ++event) {
        const LifetimeId id = lifetimes.lifetimeOf(event);
        if (id != noLifetime && lifetimes[id].begin == event + 1)
            found.push_back(id);
    }
    return found;
}

std::vector<SnapshotGroup> groupLifetimes(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                          const SnapshotSteps& steps, const SnapshotCategories& categories,
                                          std::span<const LifetimeId> blocks, SnapshotGrouping grouping)
{
    const Labeller labeller(snapshot, lifetimes, steps, categories, grouping);
    std::unordered_map<std::uint64_t, std::size_t> groupOfKey;
    std::unordered_map<std::string, std::size_t> groupOfLabel;
    std::vector<SnapshotGroup> groups;
    for (const LifetimeId id : blocks) {
        const auto [known, isNewKey] = groupOfKey.try_emplace(labeller.key(id), 0);
        if (isNewKey) {
            std::string label = labeller.label(id);
            const auto [named, isNewLabel] = groupOfLabel.try_emplace(label, groups.size());
            if (isNewLabel)
                groups.push_back({std::move(label)});
            known->second = named->second;
        }
        add(groups[known->second], lifetimes[id], id);
    }
    std::ranges::sort(groups, [](const SnapshotGroup& a, const SnapshotGroup& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.label < b.label;
    });
    return groups;
}

std::vector<FlameNode> flameTree(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                 std::span<const LifetimeId> blocks, bool keepInternals)
{
    struct Sum
    {
        std::int64_t bytes = 0;
        std::size_t blocks = 0;
    };
    std::unordered_map<StackId, Sum> sums;
    for (const LifetimeId id : blocks) {
        Sum& sum = sums[lifetimes[id].stack];
        sum.bytes += lifetimes[id].size;
        ++sum.blocks;
    }
    std::vector<FlameNode> nodes(1);
    std::unordered_map<std::uint64_t, std::uint32_t> childOf; // parent and frame
    for (const auto& [stack, sum] : sums) {
        std::uint32_t at = 0;
        const auto frames = snapshot.stacks[stack];
        const auto count = [&, &sum = sum](std::uint32_t node) {
            nodes[node].bytes += sum.bytes;
            nodes[node].blocks += sum.blocks;
        };
        count(0);
        for (std::size_t i = frames.size(); i-- > 0;) {
            if (!keepInternals && isInternalFrame(snapshot.frameName(frames[i]), snapshot.frameFile(frames[i])))
                continue;
            const auto [it, isNew] =
                childOf.try_emplace(std::uint64_t(at) << 32 | frames[i], std::uint32_t(nodes.size()));
            if (isNew) {
                nodes[at].children.push_back(it->second);
                nodes.emplace_back();
                nodes.back().frame = frames[i];
                nodes.back().parent = at;
            }
            at = it->second;
            count(at);
        }
        nodes[at].own += sum.bytes;
    }
    for (FlameNode& node : nodes) {
        std::ranges::sort(node.children, [&](std::uint32_t a, std::uint32_t b) {
            return nodes[a].bytes != nodes[b].bytes ? nodes[a].bytes > nodes[b].bytes : nodes[a].frame < nodes[b].frame;
        });
    }
    return nodes;
}

} // namespace memscape
