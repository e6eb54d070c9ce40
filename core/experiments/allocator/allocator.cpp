// SPDX-License-Identifier: Apache-2.0
// allocator: why is reserved more than allocated?
//
// The requests of a training step (or of a script) are played one by one through an allocator: PyTorch's caching
// allocator to the byte (core/trace/allocator.h), heaps, a pool of powers of two, and plans that know the whole trace.
// Reserved is more than allocated for three reasons, and each is a number here: sizes are rounded up, free pieces do
// not fit the next request, and what was freed is kept for later. Left out: CUDA graphs' private pools, fragmentation
// inside the driver, the time between two requests.
#include "core/experiments/allocator/allocator.h"
#include "core/experiment/predicted_points.h"
#include "core/experiments/common/idle_parameters.h"

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/experiments/common/answers.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

Schema allocatorSchema();

namespace {

/// What the chosen one is compared with.
const std::vector<std::string>& comparedSettings()
{
    static const std::vector<std::string> all{
        "default", "expandable_segments", "max_split_size_mb:128", "first-fit", "best-fit", "powers-of-two",
        "malloc",  "largest-first",       "lifetime-colouring"};
    return all;
}

class Allocator final : public Experiment
{
public:
    std::string id() const override { return "allocator"; }
    std::string title() const override { return "Allocator"; }
    std::string question() const override { return "Why is reserved more than allocated?"; }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "The requests of a training step, or of a script, are played through an allocator one by one. PyTorch's "
               "caching allocator is replayed to the byte: pools, rounding to 512 B, segments of 2 and 20 MiB, "
               "splitting, "
               "merging, and every option of PYTORCH_CUDA_ALLOC_CONF; beside it heaps with first and best fit, a pool "
               "of "
               "powers of two, and plans made with the whole trace in sight. Reserved is more than allocated because "
               "sizes are rounded up, because free pieces do not fit the next request, and because what was freed is "
               "kept. Only the first two are lost. Left out: CUDA graphs' pools, fragmentation inside the driver, and "
               "what a call costs, which a measurement says.";
    }
    std::string notMeasuredOn(const Device&) const override { return {}; } // PyTorch's own allocator, too
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override
    {
        std::vector<std::string> idle = Experiment::idleParameters(device, parameters);
        if (!isModelText(parameters.text("trace")))
            idle.insert(idle.end(), {"batch", "sequence", "precision", "optimizer", "steps", "assume"});
        else if (const auto assumption = idleAssumption(parameters.text("trace")); !assumption.empty())
            idle.emplace_back("assume");
        const auto setting = readSetting(parameters.text("setting"));
        if (setting && setting->kind != PolicyKind::Caching)
            idle.emplace_back("fraction");
        return idle;
    }
    ParameterTexts standardOn(const Device& device) const override
    {
        if (device.isGpu())
            return {};
        return {{"batch", "2"}, {"sequence", "512"}}; // a step that is run in moments
    }
    std::vector<std::string> headlines() const override
    {
        return {"peak_reserved", "peak_allocated", "unusable", "segments"};
    }
    ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures& figures) const override
    {
        return allocatorAnswer(figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"peak_reserved", "peak reserved"}, {"peak_allocated", "peak allocated"}, {"time", "time"}};
    }
    Sweep axis(const Device&, const Parameters& parameters) const override
    {
        return {"empty_cache", {parameters.number("empty_cache")}}; // bytes over the requests are the curves
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        PredictionContext once;
        MEMSCAPE_TRY(answer, answerOf(device, parameters, once, {}));
        return predictedAllocator(device, answer);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        PredictionContext once;
        const auto answer = answerAllocator(device, parameters, once);
        return answer ? allocatorClaims(*answer, measured) : std::vector<Claim>();
    }

    static Result<AllocatorAnswer> answerOf(const Device& device, const Parameters& parameters,
                                            PredictionContext& context, const std::vector<std::string>& compared);

private:
    Schema m_schema = allocatorSchema();
};

/// The chosen setting first where it is none of the others.
std::vector<Elsewhere> othersOf(const AllocatorCase& asked, const std::vector<std::string>& compared)
{
    std::vector<Elsewhere> others;
    for (const std::string& text : compared) {
        PolicySetting setting = readSetting(text).value();
        setting.options.deviceLimit = asked.setting.options.deviceLimit;
        if (setting.kind == PolicyKind::Caching)
            setting.options.fractionLimit = asked.setting.options.fractionLimit;
        others.push_back({std::move(setting), {}, {}});
    }
    const bool isAmong =
        std::ranges::any_of(others, [&](const Elsewhere& one) { return one.setting.key == asked.setting.key; });
    if (!isAmong && !others.empty())
        others.insert(others.begin(), {asked.setting, {}, {}});
    return others;
}

/// What happened at the request that made reserved highest: played up to it once more.
Result<std::vector<std::string>> textAt(const AllocatorCase& asked, std::size_t request)
{
    const RequestTrace& trace = *asked.trace;
    MEMSCAPE_TRY(policy, makePolicy(asked.setting, trace));
    for (std::size_t i = 0; i < request; ++i)
        policy->play(trace.requests[i], trace.blocks[trace.requests[i].block]);
    const std::vector<PolicySegment> before = policy->segments();
    const PolicyAct act = policy->play(trace.requests[request], trace.blocks[trace.requests[request].block]);
    return actText(trace, request, act, asked.setting, before);
}

Result<AllocatorAnswer> Allocator::answerOf(const Device& device, const Parameters& parameters,
                                            PredictionContext& context, const std::vector<std::string>& compared)
{
    AllocatorAnswer answer;
    MEMSCAPE_SET(answer.asked, allocatorCase(device, parameters, context));
    const RequestTrace& trace = *answer.asked.trace;
    answer.elsewhere = othersOf(answer.asked, compared);
    std::vector<Result<PolicyReplay>> replays(answer.elsewhere.size() + 1, fail(Error{}));
    std::optional<Result<PageCounts>> pages;
    // The chosen one, the others, and the pages of a host: side by side.
    inParallel(replays.size() + 1, coreCount(), [&](std::size_t i) {
        if (i == 0)
            replays[0] = replayRequests(trace, answer.asked.setting, ReplayKeeps::EveryRequest);
        else if (i < replays.size() && answer.elsewhere[i - 1].setting.key != answer.asked.setting.key)
            replays[i] = replayRequests(trace, answer.elsewhere[i - 1].setting);
        else if (i == replays.size() && !device.isGpu())
            pages = pagesOf(trace, answer.asked.setting, answer.asked.touch);
    });
    MEMSCAPE_CHECK(checkWanted());
    if (!replays[0])
        return fail(replays[0].error());
    answer.replay = std::move(*replays[0]);
    for (std::size_t i = 0; i < answer.elsewhere.size(); ++i) {
        Elsewhere& other = answer.elsewhere[i];
        if (other.setting.key == answer.asked.setting.key)
            other.replay = answer.replay;
        else if (replays[i + 1])
            other.replay = std::move(*replays[i + 1]);
        else
            other.missing = replays[i + 1].error().message;
    }
    if (pages && *pages)
        answer.pages = **pages;
    MEMSCAPE_SET(answer.peakText, textAt(answer.asked, answer.replay.reservedPeak.request));
    return answer;
}

std::vector<double> doubles(const std::vector<std::int64_t>& numbers)
{
    return {numbers.begin(), numbers.end()};
}

Result<Prediction> Allocator::predict(const Device& device, const Parameters& parameters,
                                      PredictionContext& context) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerAllocator(device, own, context));
    const Figures figures = predictedAllocator(device, answer);
    const auto modelled = [&](const Parameters& point, std::size_t i) -> Result<Figures> {
        if (!parameters.sweep() || i == 0) // the first is the parameters' own
            return figures;
        MEMSCAPE_TRY(there, answerOf(device, point, context, {}));
        return predictedAllocator(device, there);
    };
    MEMSCAPE_TRY(points, predictedPoints(sweepOf(*this, device, parameters), parameters, modelled));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = figures;
    std::vector<Series> curves = requestSeries(doubles(answer.replay.allocated), doubles(answer.replay.reserved));
    prediction.series.insert(prediction.series.begin(), curves.begin(), curves.end());
    setDetail(prediction, allocatorDetail(answer));
    prediction.detail["basis"] = device.basis;
    prediction.detail["claims"] = claimsJson(allocatorClaims(answer, {}));
    return prediction;
}

} // namespace

Result<AllocatorAnswer> answerAllocator(const Device& device, const Parameters& parameters, PredictionContext& context)
{
    return Allocator::answerOf(device, parameters, context, comparedSettings());
}

const Experiment& allocatorExperiment()
{
    static const Allocator experiment;
    return experiment;
}

} // namespace memscape
