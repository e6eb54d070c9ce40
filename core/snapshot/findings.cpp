// SPDX-License-Identifier: Apache-2.0
// Findings about the allocator, and all of them together.
#include "core/snapshot/findings.h"

#include "core/snapshot/findings_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 3> levelTexts{"problem", "hint", "note"};
constexpr std::string_view packingRemedy = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True first";
constexpr std::size_t mostFixes = 5; ///< that are named

bool emptiesCache(const Snapshot& snapshot, StackId stack)
{
    for (const FrameId frame : snapshot.stacks[stack]) {
        const std::string_view name = snapshot.frameName(frame);
        if (name == "empty_cache" || name.find("emptyCache") != name.npos)
            return true;
    }
    return false;
}

std::string phaseAt(const SnapshotDevice& device, std::size_t event)
{
    const auto phase = device.categories().phaseOf(event);
    return phase ? fmt::format(" in the {}", phaseText(*phase)) : "";
}

std::vector<SnapshotGroup> holders(const SnapshotDevice& device, std::size_t moment)
{
    auto groups = device.groups(device.allocatedAt(moment), SnapshotGrouping::Category);
    groups.resize(std::min<std::size_t>(groups.size(), 6));
    return groups;
}

/// What helps most against the largest holder.
std::string remedyFor(const std::vector<SnapshotGroup>& groups)
{
    const std::string largest = groups.empty() ? "" : groups.front().label;
    if (largest == categoryText(Category::Activations))
        return "a smaller micro-batch with gradient accumulation, activation checkpointing, fused attention, or bf16";
    if (largest == categoryText(Category::OptimizerState))
        return "an optimizer with less state (8-bit Adam, Adafactor), or its state sharded (ZeRO, FSDP)";
    if (largest == categoryText(Category::Weights))
        return "bf16 or quantized weights, LoRA, or weights sharded or offloaded (FSDP)";
    if (largest == categoryText(Category::Gradients))
        return "zero_grad(set_to_none=True) before the forward, bf16 gradients, or gradients sharded (ZeRO-2)";
    if (largest == categoryText(Category::Temporary))
        return "a smaller micro-batch, or foreach=False or fused=True in the optimizer where it is its temporaries";
    return "a smaller micro-batch; record with memscape_probe or with stacks to see what the bytes are for";
}

bool isAsked(const SnapshotAction action)
{
    return action == SnapshotAction::SegmentAlloc || action == SnapshotAction::SegmentMap
        || action == SnapshotAction::OutOfMemory;
}

std::vector<SnapshotStep> steadyIn(const SnapshotSteps& steps, const EventRange& range)
{
    std::vector<SnapshotStep> found;
    for (std::size_t i = steps.steady; i < steps.steadyEnd; ++i) {
        if (steps.steps[i].first >= range.first && steps.steps[i].last <= range.last
            && steps.steps[i].last > steps.steps[i].first)
            found.push_back(steps.steps[i]);
    }
    return found;
}

void findError(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const auto& run = input.device.snapshot().run;
    if (!run || !run->error)
        return;
    SnapshotFinding finding;
    finding.id = "run-error";
    finding.title = "The recorded program ended with an error";
    finding.evidence = *run->error;
    finding.remedy = "what was recorded until then is here: the last events show the state at the error";
    finding.firstEvent = finding.lastEvent = input.range.last;
    findings.push_back(std::move(finding));
}

void findContradictions(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const Reconciliation& found = input.device.lifetimes().reconciliation();
    if (found.isClean())
        return;
    SnapshotFinding finding;
    finding.id = "reconciliation";
    finding.title = "Trace and segments contradict each other";
    finding.evidence =
        fmt::format("{} blocks are never freed but gone, {} are freed twice, {} are freed but there, and {} "
                    "segments do not match. The segments were believed.",
                    found.unfreed, found.freedTwice, found.resurrected, found.segments);
    finding.remedy = "take the snapshot in the thread that trains, and after recording was on without a pause";
    finding.figures = {{"unfreed", "never freed, gone", Unit::One, double(found.unfreed)},
                       {"freed_twice", "freed twice", Unit::One, double(found.freedTwice)},
                       {"resurrected", "freed, there", Unit::One, double(found.resurrected)},
                       {"segments", "segments", Unit::One, double(found.segments)}};
    finding.firstEvent = input.range.first;
    finding.lastEvent = input.range.last;
    findings.push_back(std::move(finding));
}

} // namespace

std::string_view findingLevelText(FindingLevel level)
{
    return levelTexts[std::size_t(level)];
}

void findFragmentation(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const SnapshotDevice& device = input.device;
    const std::size_t moment = device.timeline().peakAllocated(input.range.first, input.range.last);
    const SnapshotBytes bytes = device.lifetimes().bytesAt(moment);
    const SnapshotLayout layout = device.lifetimes().layoutAt(moment);
    const std::int64_t inside = layout.free - layout.freeWhole;
    if (!device.lifetimes().hasCache() || double(inside) < 0.1 * double(bytes.reserved) || inside < 32 << 20)
        return;
    SnapshotFinding finding;
    finding.id = "fragmentation";
    finding.level = FindingLevel::Hint;
    finding.title =
        fmt::format("{} of reserved memory are holes", percentText(double(inside) / double(bytes.reserved)));
    finding.evidence = fmt::format("At the peak {} are reserved and {} allocated. {} lie as holes between blocks in "
                                   "use, the largest is {}: a larger request needs new memory.",
                                   bytesText(double(bytes.reserved)), bytesText(double(bytes.allocated)),
                                   bytesText(double(inside)), bytesText(double(layout.largestFree)));
    const AllocatorOptions options = allocatorOptionsOf(device.snapshot().settings);
    finding.remedy = options.expandableSegments
        ? "allocate what lives long before what lives short; use the same sizes in every step"
        : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; else max_split_size_mb, or the same sizes in "
          "every step";
    finding.figures = {{"holes", "holes in segments in use", Unit::Byte, double(inside)},
                       {"largest_free", "largest hole", Unit::Byte, double(layout.largestFree)},
                       {"reserved", "reserved", Unit::Byte, double(bytes.reserved)},
                       {"allocated", "allocated", Unit::Byte, double(bytes.allocated)}};
    finding.firstEvent = moment == 0 ? 0 : moment - 1;
    finding.lastEvent = moment;
    findings.push_back(std::move(finding));
}

void findOutOfMemory(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const SnapshotDevice& device = input.device;
    const Lifetimes& lifetimes = device.lifetimes();
    std::vector<std::size_t> events;
    for (std::size_t event = input.range.first; event < input.range.last; ++event) {
        if (lifetimes.event(event).action == SnapshotAction::OutOfMemory)
            events.push_back(event);
    }
    if (events.empty())
        return;
    const std::size_t event = events.back(); // the last one is what ended the program, if one did
    const SnapshotEvent failed = lifetimes.event(event);
    const SnapshotBytes bytes = lifetimes.bytesAt(event);
    const SnapshotLayout layout = lifetimes.layoutAt(event);
    const bool packingHelps = layout.free >= failed.size;
    SnapshotFinding finding;
    finding.id = "out-of-memory";
    finding.level = FindingLevel::Problem;
    finding.title =
        fmt::format("Out of memory: {} were asked for{}", bytesText(double(failed.size), 3), phaseAt(device, event));
    finding.groups = holders(device, event);
    finding.evidence = fmt::format(
        "{} were reserved, {} of them allocated, and the driver had {} left. The holes add up to {}, the largest is "
        "{}: {}.{}",
        bytesText(double(bytes.reserved)), bytesText(double(bytes.allocated)), bytesText(double(failed.address)),
        bytesText(double(layout.free)), bytesText(double(layout.largestFree)),
        packingHelps ? "packed, they would have served it" : "even packed, they would not have served it",
        events.size() > 1 ? fmt::format(" This is the last of {} refusals.", events.size()) : "");
    finding.remedy =
        packingHelps ? fmt::format("{}; then {}", packingRemedy, remedyFor(finding.groups)) : remedyFor(finding.groups);
    finding.figures = {{"wanted", "asked for", Unit::Byte, double(failed.size)},
                       {"device_free", "left on the device", Unit::Byte, double(failed.address)},
                       {"largest_free", "largest hole", Unit::Byte, double(layout.largestFree)},
                       {"free", "all holes", Unit::Byte, double(layout.free)},
                       {"allocated", "allocated", Unit::Byte, double(bytes.allocated)},
                       {"reserved", "reserved", Unit::Byte, double(bytes.reserved)},
                       {"refusals", "refusals", Unit::One, double(events.size())}};
    finding.firstEvent = event;
    finding.lastEvent = event + 1;
    findings.push_back(std::move(finding));
}

std::vector<AllocationRetry> allocationRetries(const SnapshotDevice& device, const EventRange& range)
{
    std::vector<AllocationRetry> retries;
    const Lifetimes& lifetimes = device.lifetimes();
    std::optional<AllocationRetry> open; // a group of releases
    FrameId line = noFrame;
    for (std::size_t event = range.first; event < range.last; ++event) {
        const SnapshotEvent entry = lifetimes.event(event);
        const FrameId at = device.categories().meaningOf(entry.stack).line;
        if (entry.action == SnapshotAction::SegmentFree || entry.action == SnapshotAction::SegmentUnmap) {
            if (emptiesCache(device.snapshot(), entry.stack))
                continue;
            if (!open)
                open = AllocationRetry{event, 0, entry.time};
            open->released += entry.size;
            line = at;
        } else if (open) {
            if (isAsked(entry.action) && at == line) {
                open->event = event;
                open->time = entry.time - open->time;
                retries.push_back(*open);
            }
            // Frees that other streams completed are noted between the two.
            if (entry.action != SnapshotAction::FreeCompleted)
                open.reset();
        }
    }
    return retries;
}

void findRetries(const FindingInput& input, std::vector<SnapshotFinding>& findings)
{
    const auto retries = allocationRetries(input.device, input.range);
    if (retries.empty())
        return;
    double released = 0, time = 0;
    for (const AllocationRetry& retry : retries) {
        released += double(retry.released);
        time += double(std::max<std::int64_t>(0, retry.time)) * 1e-6;
    }
    SnapshotFinding finding;
    finding.id = "retries";
    finding.level = FindingLevel::Hint;
    finding.title = retries.size() == 1
        ? "The cache was emptied once because the device was full"
        : fmt::format("The cache was emptied {} times because the device was full", retries.size());
    finding.evidence =
        fmt::format("The driver refused, {} were given back and memory was taken anew{}. Each time waits for "
                    "the device.",
                    bytesText(released), time > 0 ? fmt::format(", which took {}", secondsText(time)) : "");
    finding.remedy =
        "expandable_segments:True, garbage_collection_threshold:0.8, or a smaller micro-batch: some memory must "
        "stay free";
    finding.figures = {{"retries", "retries", Unit::One, double(retries.size())},
                       {"released", "given back", Unit::Byte, released},
                       {"time", "time", Unit::Second, time}};
    finding.firstEvent = retries.front().event;
    finding.lastEvent = retries.back().event + 1;
    findings.push_back(std::move(finding));
}

std::vector<SnapshotFinding> findingsOf(const SnapshotDevice& device, std::size_t first, std::size_t last)
{
    FindingInput input{device, {first, last}, steadyIn(device.steps(), {first, last})};
    input.peakAllocated = device.lifetimes().bytesAt(device.timeline().peakAllocated(first, last)).allocated;
    for (const SnapshotStep& step : input.steady) {
        for (std::size_t event = step.first; event < step.last && !input.hasBackward; ++event)
            input.hasBackward = device.categories().phaseOf(event) == Phase::Backward;
    }
    std::vector<SnapshotFinding> findings;
    for (const auto rule : {findOutOfMemory, findGrowth, findRetainedGraph, findFragmentation, findRetries,
                            findGradientsKept, findCacheHeld, findError, findContradictions})
        rule(input, findings);
    std::ranges::stable_sort(findings, {}, &SnapshotFinding::level);
    return findings;
}

void offerFixes(std::vector<SnapshotFinding>& findings, const std::vector<SnapshotFix>& fixes, const std::string& plan,
                std::optional<Phase> phase)
{
    if (fixes.empty())
        return;
    const std::string where = phase ? fmt::format("in the {}", phaseText(*phase)) : std::string("at the peak");
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < std::min(fixes.size(), mostFixes); ++i)
        lines.push_back(fmt::format("{}: {} less", fixes[i].label, bytesText(double(fixes[i].saving), 3)));
    for (SnapshotFinding& finding : findings) {
        if (finding.id != "out-of-memory")
            continue;
        finding.fixes = fixes;
        const bool wasPacking = finding.remedy.starts_with(packingRemedy);
        finding.remedy = fmt::format("{}{}simulated for {}, {}: {}", wasPacking ? packingRemedy : "",
                                     wasPacking ? "; " : "", plan, where, fmt::join(lines, "; "));
    }
}

std::optional<Phase> refusedPhase(const SnapshotDevice& device, const std::vector<SnapshotFinding>& findings)
{
    const auto found = std::ranges::find(findings, "out-of-memory", &SnapshotFinding::id);
    return found == findings.end() ? std::nullopt : device.categories().phaseOf(found->firstEvent);
}

Json findingToJson(const SnapshotFinding& finding)
{
    Json figures = Json::object();
    for (const Figure& figure : finding.figures)
        figures[figure.key] = {
            {"value", jsonNumber(figure.number())}, {"unit", unitText(figure.unit)}, {"label", figure.label}};
    Json groups = Json::array();
    for (const SnapshotGroup& group : finding.groups)
        groups.push_back({{"label", group.label}, {"bytes", group.bytes}, {"blocks", group.blocks}});
    Json fixes = Json::array();
    for (const SnapshotFix& fix : finding.fixes)
        fixes.push_back({{"label", fix.label}, {"saving", fix.saving}});
    return {{"id", finding.id},
            {"level", findingLevelText(finding.level)},
            {"title", finding.title},
            {"evidence", finding.evidence},
            {"remedy", finding.remedy},
            {"figures", std::move(figures)},
            {"groups", std::move(groups)},
            {"fixes", std::move(fixes)},
            {"events", {finding.firstEvent, finding.lastEvent}}};
}

} // namespace memscape
