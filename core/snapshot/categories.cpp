// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/categories.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 4> sourceTexts{"nothing tells", "the run's label", "its stack", "its lifetime"};

std::optional<Category> categoryNamed(std::string_view text)
{
    constexpr std::array<std::pair<std::string_view, Category>, 6> names{{{"parameter", Category::Weights},
                                                                          {"gradient", Category::Gradients},
                                                                          {"optimizer_state", Category::OptimizerState},
                                                                          {"activation", Category::Activations},
                                                                          {"temporary", Category::Temporary},
                                                                          {"input", Category::Input}}};
    for (const auto& [name, category] : names) {
        if (name == text)
            return category;
    }
    return std::nullopt;
}

std::optional<Phase> phaseNamed(std::string_view text)
{
    if (text == "forward")
        return Phase::Forward;
    if (text == "backward")
        return Phase::Backward;
    if (text == "optimizer")
        return Phase::Optimizer;
    return std::nullopt;
}

} // namespace

std::string_view categorySourceText(CategorySource source)
{
    return sourceTexts[std::size_t(source)];
}

std::optional<Phase> phaseOfEvent(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                  const std::vector<StackMeaning>& meanings, std::size_t event)
{
    const std::size_t index = lifetimes.eventIndex(event);
    if (const LabelId label = snapshot.events.label(index); label != noLabel) {
        if (const auto phase = phaseNamed(snapshot.texts[snapshot.run->labels[label].phase]))
            return phase;
    }
    const StackMeaning& meaning = meanings[snapshot.events.stack(index)];
    return meaning.isKnown ? std::optional(meaning.phase) : std::nullopt;
}

SnapshotCategories::SnapshotCategories(const Snapshot& snapshot, const Lifetimes& lifetimes, const SnapshotSteps& steps,
                                       std::vector<StackMeaning> meanings)
    : m_snapshot(&snapshot)
    , m_lifetimes(&lifetimes)
    , m_steps(&steps)
    , m_categories(lifetimes.all().size(), Category::Unknown)
    , m_sources(lifetimes.all().size(), CategorySource::None)
    , m_meanings(std::move(meanings))
{
    fromLabels();
    fromStacks();
    fromLifetimes();
    gradientsAtTheEnd();
    sumShares();
}

void SnapshotCategories::set(LifetimeId id, Category category, CategorySource source)
{
    m_categories[id] = category;
    m_sources[id] = source;
}

void SnapshotCategories::fromLabels()
{
    if (!m_snapshot->run)
        return;
    for (LifetimeId id = 0; id < m_categories.size(); ++id) {
        const LabelId label = (*m_lifetimes)[id].label;
        if (label == noLabel)
            continue;
        if (const auto category = categoryNamed(m_snapshot->texts[m_snapshot->run->labels[label].category]))
            set(id, *category, CategorySource::Label);
    }
}

/// Of a block made in a phase; `nextPhase` is the moment at which another phase begins after its allocation.
Category SnapshotCategories::byPhase(const Lifetime& lifetime, Phase phase, std::size_t nextPhase) const
{
    const bool outlives = lifetime.end > nextPhase;
    switch (phase) {
    case Phase::Optimizer: return outlives ? Category::OptimizerState : Category::Temporary;
    case Phase::ZeroGrad:
    case Phase::Backward: return outlives ? Category::Gradients : Category::Temporary;
    case Phase::Forward:
        return outlives || lifetime.end > m_lifetimes->events() ? Category::Activations : Category::Temporary;
    default: return outlives || lifetime.end > m_lifetimes->events() ? Category::Weights : Category::Temporary;
    }
}

void SnapshotCategories::fromStacks()
{
    const std::size_t events = m_lifetimes->events();
    const std::size_t never = events + 1;
    std::array<std::size_t, phaseCount> next; // the next event of each phase, as a moment
    next.fill(never);
    for (std::size_t event = events; event-- > 0;) {
        const auto phase = phaseOfEvent(*m_snapshot, *m_lifetimes, m_meanings, event);
        const LifetimeId id = m_lifetimes->lifetimeOf(event);
        if (id != noLifetime && (*m_lifetimes)[id].begin == event + 1 && m_sources[id] == CategorySource::None) {
            const Lifetime& lifetime = (*m_lifetimes)[id];
            if (m_meanings[lifetime.stack].isWorkspace) {
                set(id, Category::Workspace, CategorySource::Stack);
            } else if (phase) {
                std::size_t other = never;
                for (std::size_t i = 0; i < phaseCount; ++i)
                    other = i == std::size_t(*phase) ? other : std::min(other, next[i]);
                set(id, byPhase(lifetime, *phase, other), CategorySource::Stack);
            }
        }
        if (phase)
            next[std::size_t(*phase)] = event + 1;
    }
    for (LifetimeId id = 0; id < m_categories.size() && (*m_lifetimes)[id].begin == 0; ++id) {
        const StackMeaning& meaning =
            m_meanings[(*m_lifetimes)[id].stack]; // from before the trace: the segments know it
        if (m_sources[id] != CategorySource::None || !meaning.isKnown)
            continue;
        set(id, meaning.isWorkspace ? Category::Workspace : byPhase((*m_lifetimes)[id], meaning.phase, 0),
            CategorySource::Stack);
    }
}

/// Without a word from labels or stacks: alive all the time, or across the peak of its step, or not.
void SnapshotCategories::fromLifetimes()
{
    const std::size_t events = m_lifetimes->events();
    std::vector<std::size_t> peaks; // of each step
    for (const SnapshotStep& step : m_steps->steps) {
        SnapshotBytes bytes = m_lifetimes->bytesAt(step.first);
        std::int64_t highest = bytes.allocated;
        std::size_t peak = step.first;
        for (std::size_t event = step.first; event < step.last; ++event) {
            bytes += m_lifetimes->change(event);
            if (bytes.allocated > highest) {
                highest = bytes.allocated;
                peak = event + 1;
            }
        }
        peaks.push_back(peak);
    }
    for (LifetimeId id = 0; id < m_categories.size(); ++id) {
        const Lifetime& lifetime = (*m_lifetimes)[id];
        if (m_sources[id] != CategorySource::None)
            continue;
        if (lifetime.begin == 0 && lifetime.end > events && events > 0)
            set(id, Category::Weights, CategorySource::Lifetime);
        if (lifetime.begin == 0)
            continue;
        const auto step = m_steps->stepOf(lifetime.begin - 1);
        if (!step || lifetime.end > m_steps->steps[*step].last)
            continue;
        set(id, lifetime.isAliveAt(peaks[*step]) ? Category::Activations : Category::Temporary,
            CategorySource::Lifetime);
    }
}

/// A trace that ends within a backward: blocks made there that are alive and as large as a parameter are its gradients.
void SnapshotCategories::gradientsAtTheEnd()
{
    std::unordered_set<std::int64_t> sizes;
    for (LifetimeId id = 0; id < m_categories.size(); ++id) {
        if (m_categories[id] == Category::Weights)
            sizes.insert((*m_lifetimes)[id].requested);
    }
    for (LifetimeId id = 0; id < m_categories.size(); ++id) {
        const Lifetime& lifetime = (*m_lifetimes)[id];
        if (m_categories[id] != Category::Temporary || m_sources[id] != CategorySource::Stack || lifetime.begin == 0
            || lifetime.end <= m_lifetimes->events() || !sizes.contains(lifetime.requested))
            continue;
        if (phaseOf(lifetime.begin - 1) == Phase::Backward)
            m_categories[id] = Category::Gradients;
    }
}

void SnapshotCategories::sumShares()
{
    double all = 0;
    for (LifetimeId id = 0; id < m_categories.size(); ++id) {
        const auto bytes = double((*m_lifetimes)[id].size);
        m_shares[std::size_t(m_sources[id])] += bytes;
        all += bytes;
    }
    for (double& share : m_shares)
        share = all > 0 ? share / all : 0;
}

} // namespace memscape
