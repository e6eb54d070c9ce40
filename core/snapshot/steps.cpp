// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/steps.h"

#include "core/base/text.h"
#include "core/snapshot/categories.h"
#include "core/snapshot/period.h"
#include "core/snapshot/predicted_snapshot.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double alike = 0.05; // of a step's allocations and bytes

struct StepSize
{
    std::size_t allocations = 0;
    double bytes = 0;
};

StepSize sizeOf(const Lifetimes& lifetimes, const SnapshotStep& step)
{
    StepSize size;
    for (std::size_t event = step.first; event < step.last; ++event) {
        const LifetimeId id = lifetimes.lifetimeOf(event);
        if (id == noLifetime || lifetimes[id].begin != event + 1)
            continue;
        ++size.allocations;
        size.bytes += double(lifetimes[id].requested);
    }
    return size;
}

bool areAlike(const StepSize& a, const StepSize& b)
{
    const auto near = [](double x, double y) { return std::abs(x - y) <= alike * std::max(x, y) + 1; };
    return near(double(a.allocations), double(b.allocations)) && near(a.bytes, b.bytes);
}

/// The longest run of steps that are like their neighbour; the last one of equal length.
void findSteady(const Lifetimes& lifetimes, SnapshotSteps& found)
{
    std::vector<StepSize> sizes;
    for (const SnapshotStep& step : found.steps)
        sizes.push_back(sizeOf(lifetimes, step));
    for (std::size_t first = 0; first < sizes.size();) {
        std::size_t last = first + 1;
        while (last < sizes.size() && areAlike(sizes[last - 1], sizes[last]))
            ++last;
        if (last - first >= found.steadyCount()) {
            found.steady = first;
            found.steadyEnd = last;
        }
        first = last;
    }
}

std::vector<SnapshotStep> fromLabels(const Snapshot& snapshot, const Lifetimes& lifetimes)
{
    std::vector<SnapshotStep> steps;
    if (!snapshot.run || !snapshot.events.hasLabels())
        return steps;
    for (std::size_t event = 0; event < lifetimes.events(); ++event) {
        const LabelId label = snapshot.events.label(lifetimes.eventIndex(event));
        const std::int64_t step = snapshot.run->labels[label].step;
        if (step < 0)
            continue;
        if (steps.empty() || steps.back().index != step)
            steps.push_back({step, steps.empty() ? event : steps.back().last, event});
        steps.back().last = event + 1;
    }
    return steps;
}

/// "ProfilerStep#3", "train_step 7": the number behind a name with "step" in it.
std::optional<std::int64_t> stepNumber(std::string_view name)
{
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        --digits;
    if (digits == name.size() || name.size() - digits > 15
        || lowered(name.substr(0, digits)).find("step") == std::string::npos)
        return std::nullopt;
    std::int64_t number = 0;
    for (const char c : name.substr(digits))
        number = number * 10 + (c - '0');
    return number;
}

std::vector<SnapshotStep> fromAnnotations(const Snapshot& snapshot, const Lifetimes& lifetimes, std::uint32_t device)
{
    std::vector<std::pair<std::int64_t, std::int64_t>> starts; // time, number
    for (const SnapshotAnnotation& annotation : snapshot.annotations) {
        const std::string_view stage = snapshot.texts[annotation.stage];
        if (annotation.device != device || (!stage.empty() && lowered(stage) != "start"))
            continue;
        if (const auto number = stepNumber(snapshot.texts[annotation.name]))
            starts.emplace_back(annotation.time, *number);
    }
    std::ranges::sort(starts);
    std::vector<SnapshotStep> steps;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::size_t first = lifetimes.momentAt(starts[i].first - 1);
        const std::size_t last =
            i + 1 < starts.size() ? lifetimes.momentAt(starts[i + 1].first - 1) : lifetimes.events();
        if (last > first)
            steps.push_back({starts[i].second, first, last});
    }
    return steps;
}

/// A step ends where the first forward or backward follows an optimizer's step.
std::vector<SnapshotStep> fromOptimizer(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                        const std::vector<StackMeaning>& meanings)
{
    std::vector<SnapshotStep> steps;
    std::size_t first = 0, lastOfOptimizer = 0;
    bool isInOptimizer = false;
    for (std::size_t event = 0; event < lifetimes.events(); ++event) {
        const auto phase = phaseOfEvent(snapshot, lifetimes, meanings, event);
        if (!phase)
            continue;
        if (*phase == Phase::Optimizer || (isInOptimizer && *phase == Phase::ZeroGrad)) {
            isInOptimizer = true;
            lastOfOptimizer = event + 1;
        } else if (isInOptimizer && (*phase == Phase::Forward || *phase == Phase::Backward)) {
            steps.push_back({std::int64_t(steps.size()), first, lastOfOptimizer});
            first = lastOfOptimizer;
            isInOptimizer = false;
        }
    }
    if (lifetimes.events() > first && !steps.empty())
        steps.push_back({std::int64_t(steps.size()), first, lifetimes.events()});
    return steps;
}

/// Whether each of the steps has a backward or an optimizer's step, as far as stacks tell.
bool trains(const Snapshot& snapshot, const Lifetimes& lifetimes, const std::vector<StackMeaning>& meanings,
            const SnapshotStep& step)
{
    for (std::size_t event = step.first; event < step.last; ++event) {
        const auto phase = phaseOfEvent(snapshot, lifetimes, meanings, event);
        if (phase == Phase::Backward || phase == Phase::Optimizer)
            return true;
    }
    return false;
}

} // namespace

std::optional<std::size_t> SnapshotSteps::stepOf(std::size_t event) const
{
    const auto after = std::ranges::upper_bound(steps, event, {}, &SnapshotStep::first);
    if (after == steps.begin() || std::prev(after)->last <= event)
        return std::nullopt;
    return std::size_t(after - steps.begin()) - 1;
}

SnapshotSteps findSteps(const Snapshot& snapshot, const Lifetimes& lifetimes, const std::vector<StackMeaning>& meanings)
{
    SnapshotSteps found;
    if (isPredicted(snapshot)) {
        found.how = "the whole trace is one predicted step";
        return found;
    }
    const auto use = [&](StepSource source, std::vector<SnapshotStep> steps, std::size_t least, std::string how) {
        if (found.source != StepSource::None || steps.size() < least)
            return;
        found.source = source;
        found.steps = std::move(steps);
        found.how = std::move(how);
    };
    if (snapshot.run && lifetimes.device() == 0)
        use(StepSource::Run, snapshot.run->steps, 1, "from the steps of the recorded run");
    use(StepSource::Labels, fromLabels(snapshot, lifetimes), 1, "from the labels of the recorded run");
    use(StepSource::Annotations, fromAnnotations(snapshot, lifetimes, lifetimes.device()), 2,
        "from annotations of the profiler (names with \"step\" and a number)");
    use(StepSource::Optimizer, fromOptimizer(snapshot, lifetimes, meanings), 2,
        "from stacks: a step ends where the optimizer's step does");
    if (found.source == StepSource::None) {
        const Period period = findPeriod(lifetimes);
        use(StepSource::Period, period.steps, 3,
            fmt::format("from the sequence of sizes: it repeats every {} allocations", period.allocations));
        if (found.source == StepSource::Period)
            found.isTraining = trains(snapshot, lifetimes, meanings, found.steps.back());
    }
    if (found.source == StepSource::None)
        found.how = "no steps found: no labels, no annotations, and the sizes do not repeat three times";
    findSteady(lifetimes, found);
    return found;
}

} // namespace memscape
