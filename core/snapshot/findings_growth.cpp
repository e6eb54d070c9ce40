// SPDX-License-Identifier: Apache-2.0
// Findings about steps: growth, retained graphs, gradients kept, caches held.
#include "core/snapshot/findings_rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Line
{
    double slope = 0, intercept = 0, r2 = 0;
};

Line lineThrough(const std::vector<double>& y)
{
    const auto n = double(y.size());
    double sumX = 0, sumY = 0, sumXX = 0, sumXY = 0, sumYY = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const auto x = double(i);
        const double value = y[i] - y[0]; // differences: levels are large
        sumX += x;
        sumY += value;
        sumXX += x * x;
        sumXY += x * value;
        sumYY += value * value;
    }
    const double xx = sumXX - sumX * sumX / n, xy = sumXY - sumX * sumY / n, yy = sumYY - sumY * sumY / n;
    Line line;
    line.slope = xx > 0 ? xy / xx : 0;
    line.intercept = y[0] + sumY / n - line.slope * sumX / n;
    line.r2 = xx > 0 && yy > 0 ? xy * xy / (xx * yy) : 0;
    return line;
}

/// Blocks made in step i that live through the whole step after it.
std::vector<LifetimeId> keptOf(const SnapshotDevice& device, const std::vector<SnapshotStep>& steps, std::size_t i)
{
    auto blocks = allocatedIn(device.lifetimes(), steps[i].first, steps[i].last);
    const std::size_t later = steps[i + 1].last;
    std::erase_if(blocks, [&](LifetimeId id) { return device.lifetimes()[id].freed <= later; });
    return blocks;
}

std::int64_t bytesOf(const SnapshotDevice& device, const std::vector<LifetimeId>& blocks)
{
    std::int64_t bytes = 0;
    for (const LifetimeId id : blocks)
        bytes += device.lifetimes()[id].size;
    return bytes;
}

double allocatedBytes(const SnapshotDevice& device, const SnapshotStep& step)
{
    return double(bytesOf(device, allocatedIn(device.lifetimes(), step.first, step.last)));
}

struct Kept
{
    std::vector<LifetimeId> blocks;
    bool everyStep = true;
};

Kept keptBlocks(const SnapshotDevice& device, const std::vector<SnapshotStep>& steps, double slope)
{
    Kept kept;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
        const auto blocks = keptOf(device, steps, i);
        kept.everyStep &= double(bytesOf(device, blocks)) >= slope / 2;
        kept.blocks.insert(kept.blocks.end(), blocks.begin(), blocks.end());
    }
    return kept;
}

std::string leakRemedy(const SnapshotDevice& device, const std::vector<LifetimeId>& kept)
{
    const auto categories = device.groups(kept, SnapshotGrouping::Category);
    const bool isGraph = !categories.empty() && categories.front().label == categoryText(Category::Activations);
    return isGraph ? "something keeps a result together with its graph, often a list of losses: keep loss.item() or "
                     "loss.detach() instead of loss"
                   : "something keeps these tensors from step to step (a list, a cache, a hook): release them, or keep "
                     "a number or a copy on the CPU instead";
}

std::vector<SnapshotGroup> byLineOrOperator(const SnapshotDevice& device, const std::vector<LifetimeId>& blocks)
{
    for (const auto grouping : {SnapshotGrouping::Stack, SnapshotGrouping::Line, SnapshotGrouping::Module}) {
        auto groups = device.groups(blocks, grouping);
        if (groups.empty() || groups.front().label != "(unknown)") {
            groups.resize(std::min<std::size_t>(groups.size(), 8));
            return groups;
        }
    }
    auto groups = device.groups(blocks, SnapshotGrouping::Operator);
    groups.resize(std::min<std::size_t>(groups.size(), 8));
    return groups;
}

} // namespace

void findGrowth(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const SnapshotDevice& device = input.device;
    const auto& steps = input.steady;
    if (steps.size() < 3)
        return;
    std::vector<double> lowest;
    for (const SnapshotStep& step : steps)
        lowest.push_back(double(device.timeline().lowestAllocated(step.first, step.last - 1)));
    const Line line = lineThrough(lowest);
    const double rise = line.slope * double(steps.size() - 1);
    if (line.slope <= 0 || line.r2 < 0.9 || rise < 65536 || rise < 0.005 * lowest.front())
        return;
    if (!device.steps().isTraining && line.slope > 0.25 * allocatedBytes(device, steps.front()))
        return; // layers of one forward
    const Kept kept = keptBlocks(device, steps, line.slope);
    if (!kept.everyStep || kept.blocks.empty())
        return;
    SnapshotFinding finding;
    finding.id = "growth";
    finding.level = device.steps().isTraining ? FindingLevel::Problem : FindingLevel::Hint;
    finding.title = fmt::format("Grows by {} a step, every step", bytesText(line.slope, 3));
    finding.groups = byLineOrOperator(device, kept.blocks);
    finding.evidence =
        fmt::format("The lowest allocated bytes of {} steady steps rise from {} to {}: {} a step (r² = {:.4f}). {} "
                    "blocks that these "
                    "steps made are still there one step later, {} of them; most: {}. Steps: {}.",
                    steps.size(), bytesText(lowest.front()), bytesText(lowest.back()), bytesText(line.slope), line.r2,
                    kept.blocks.size(), bytesText(double(bytesOf(device, kept.blocks))), finding.groups.front().label,
                    device.steps().how);
    finding.remedy = leakRemedy(device, kept.blocks);
    finding.figures = {{"growth_per_step", "growth a step", Unit::Byte, line.slope},
                       {"r2", "r² of the line", Unit::One, line.r2},
                       {"steps", "steady steps", Unit::One, double(steps.size())},
                       {"kept_blocks", "blocks kept", Unit::One, double(kept.blocks.size())}};
    finding.firstEvent = steps.front().first;
    finding.lastEvent = steps.back().last;
    findings.push_back(std::move(finding));
}

void findRetainedGraph(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const SnapshotDevice& device = input.device;
    if (!device.steps().isTraining || !input.hasBackward)
        return;
    std::vector<LifetimeId> kept;
    for (std::size_t i = 0; i + 1 < input.steady.size(); ++i) {
        for (const LifetimeId id : keptOf(device, input.steady, i)) {
            if (device.categories().of(id) == Category::Activations)
                kept.push_back(id);
        }
    }
    const std::int64_t bytes = bytesOf(device, kept);
    if (kept.empty() || double(bytes) < 0.01 * double(input.peakAllocated))
        return;
    SnapshotFinding finding;
    finding.id = "retained-graph";
    finding.level = FindingLevel::Problem;
    finding.title = fmt::format("{} of activations outlive their step", bytesText(double(bytes), 3));
    finding.groups = byLineOrOperator(device, kept);
    finding.evidence =
        fmt::format("{} activations made in {} steady steps live through the whole next step: {}, {} of the peak. A "
                    "backward frees them unless something still refers to its graph; most: {}.",
                    kept.size(), input.steady.size(), bytesText(double(bytes)),
                    percentText(double(bytes) / double(input.peakAllocated)), finding.groups.front().label);
    finding.remedy =
        "keep loss.item() or loss.detach() instead of loss; no retain_graph=True; detach hidden states that "
        "go from step to step";
    finding.figures = {{"retained", "activations that outlive their step", Unit::Byte, double(bytes)},
                       {"blocks", "blocks", Unit::One, double(kept.size())}};
    finding.firstEvent = input.steady.front().first;
    finding.lastEvent = input.steady.back().last;
    findings.push_back(std::move(finding));
}

void findGradientsKept(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const SnapshotDevice& device = input.device;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t counted = 0;
    for (const SnapshotStep& step : input.steady) {
        std::size_t event = step.first;
        while (event < step.last && device.categories().phaseOf(event) != Phase::Backward)
            ++event;
        if (event == step.last || step.first == 0)
            continue;
        const std::size_t backward = event;
        while (event > step.first && device.categories().phaseOf(event) != Phase::Forward)
            --event; // what is freed between the two was alive beside all activations
        event = device.categories().phaseOf(event) == Phase::Forward ? event + 1 : backward;
        std::int64_t bytes = 0;
        for (const LifetimeId id : device.lifetimes().aliveAt(event)) {
            const Lifetime& lifetime = device.lifetimes()[id];
            if (device.categories().of(id) == Category::Gradients && lifetime.begin <= step.first)
                bytes += lifetime.size;
        }
        least = std::min(least, bytes);
        ++counted;
    }
    if (counted < 2 || double(least) < 0.05 * double(input.peakAllocated))
        return;
    SnapshotFinding finding;
    finding.id = "gradients-kept";
    finding.level = FindingLevel::Hint;
    finding.title = fmt::format("{} of gradients are kept through the next forward", bytesText(double(least), 3));
    finding.evidence =
        fmt::format("When the forward of {} steady steps ends, gradients of the step before are alive: "
                    "at least {}, {} of the peak.",
                    counted, bytesText(double(least)), percentText(double(least) / double(input.peakAllocated)));
    finding.remedy = "optimizer.zero_grad(set_to_none=True) directly after optimizer.step(), before the next forward";
    finding.figures = {{"gradients", "gradients kept", Unit::Byte, double(least)},
                       {"steps", "steps", Unit::One, double(counted)}};
    finding.firstEvent = input.steady.front().first;
    finding.lastEvent = input.steady.back().last;
    findings.push_back(std::move(finding));
}

void findCacheHeld(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const SnapshotDevice& device = input.device;
    if (!device.lifetimes().hasCache() || input.steady.size() < 2)
        return;
    const std::size_t first = input.steady[input.steady.size() - 2].first, last = input.steady.back().last;
    const std::size_t moment = device.timeline().peakAllocated(first, last);
    const SnapshotBytes bytes = device.lifetimes().bytesAt(moment);
    const SnapshotLayout layout = device.lifetimes().layoutAt(moment);
    if (bytes.allocated * 2 > bytes.reserved || layout.freeWhole < 64 << 20)
        return;
    SnapshotFinding finding;
    finding.id = "cache-held";
    finding.level = FindingLevel::Hint;
    finding.title = fmt::format("{} of cache are held and not used", bytesText(double(layout.freeWhole), 3));
    finding.evidence = fmt::format(
        "In the last two steady steps at most {} of {} reserved bytes are allocated, and even "
        "then whole segments of {} are empty.",
        bytesText(double(bytes.allocated)), bytesText(double(bytes.reserved)), bytesText(double(layout.freeWhole)));
    finding.remedy =
        "torch.cuda.empty_cache() once after the part that needed more (loading, an evaluation) gives them "
        "back; not in every step: taking them anew costs time";
    finding.figures = {{"free_whole", "whole free segments", Unit::Byte, double(layout.freeWhole)},
                       {"allocated", "most allocated", Unit::Byte, double(bytes.allocated)},
                       {"reserved", "reserved", Unit::Byte, double(bytes.reserved)}};
    finding.firstEvent = first;
    finding.lastEvent = last;
    findings.push_back(std::move(finding));
}

} // namespace memscape
