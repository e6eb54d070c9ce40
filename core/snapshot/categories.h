// SPDX-License-Identifier: Apache-2.0
// What each block is for. Where a run file labels it, the label says so. Else it is inferred, in this order, and
// `how` of each block says by which rule:
//   stack      a frame tells: an optimizer's step or its state, a module's constructor or .to()/.cuda(), a backward
//              (the autograd engine, or a script's own function of that name), cuBLAS or cuDNN
//   lifetime   alive before the trace and never freed: parameters, or state; made in a forward and freed in the
//              backward after it: activation; freed within the same operation or phase: temporary
//   none       nothing tells: unknown
// A block that a stack places in the optimizer's step is its state when it outlives the step, else temporary; one made
// in a backward is a gradient when it outlives the backward, else temporary.
#pragma once

#include "core/snapshot/stack_meaning.h"
#include "core/snapshot/steps.h"
#include "core/trace/peak.h"

namespace memscape {

enum class CategorySource : std::uint8_t { None, Label, Stack, Lifetime };
std::string_view categorySourceText(CategorySource source); ///< "the run's label", "its stack", …

/// Phase of an event of the device.
std::optional<Phase> phaseOfEvent(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                  const std::vector<StackMeaning>& meanings, std::size_t event);

class SnapshotCategories
{
public:
    SnapshotCategories(const Snapshot& snapshot, const Lifetimes& lifetimes, const SnapshotSteps& steps,
                       std::vector<StackMeaning> meanings);

    Category of(LifetimeId lifetime) const { return m_categories[lifetime]; }
    CategorySource sourceOf(LifetimeId lifetime) const { return m_sources[lifetime]; }
    const StackMeaning& meaningOf(StackId stack) const { return m_meanings[stack]; }
    /// From its label, else its stack; nothing where neither tells.
    std::optional<Phase> phaseOf(std::size_t event) const
    {
        return phaseOfEvent(*m_snapshot, *m_lifetimes, m_meanings, event);
    }
    /// How the bytes of all allocations were categorized: shares of 1 by source.
    std::array<double, 4> shares() const { return m_shares; }

private:
    void set(LifetimeId id, Category category, CategorySource source);
    void fromLabels();
    void fromStacks();
    void fromLifetimes();
    void gradientsAtTheEnd();
    void sumShares();
    Category byPhase(const Lifetime& lifetime, Phase phase, std::size_t nextPhase) const;

    const Snapshot* m_snapshot;
    const Lifetimes* m_lifetimes;
    const SnapshotSteps* m_steps;
    std::vector<Category> m_categories;
    std::vector<CategorySource> m_sources;
    std::vector<StackMeaning> m_meanings; ///< by stack
    std::array<double, 4> m_shares{};
};

} // namespace memscape
