// SPDX-License-Identifier: Apache-2.0
// loading: disk, host memory, GPU: how long until the model is there?
//
// The bytes of a file (loading_case.cpp) go through lanes (loading_model.cpp): they are read, converted where the
// model needs another format, copied to the GPU. In chunks the lanes run side by side (core/timing/pipeline.h), and
// the slowest one sets the time. Left out: opening the file and its header, making the model's objects, several files
// of different sizes, a checkpoint's optimizer state.
#include "core/experiments/loading/loading.h"
#include "core/experiments/loading/loading_words.h"

#include "core/claims/claim_quotes.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/common/judged_number.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

std::vector<Claim> loadingClaims(const Device& device, const Parameters& parameters, const Measurement& measured)
{
    const auto asked = loadingCase(device, parameters);
    const auto model = asked ? loadingModel(device, *asked) : tl::unexpected<Error>(asked.error());
    if (!model)
        return {};
    const JudgedNumber read = judgedNumber(measured, "read_time", model->laneSeconds(LoadingStep::Read));
    const JudgedNumber convert = judgedNumber(measured, "convert_time", model->laneSeconds(LoadingStep::Convert));
    const JudgedNumber copy = judgedNumber(measured, "copy_time", model->laneSeconds(LoadingStep::Copy));
    const double others = std::max(convert.value, copy.value);
    std::string ours = fmt::format("reading takes {}", secondsText(read.value));
    if (convert.value > 0)
        ours += fmt::format(", converting {}", secondsText(convert.value));
    if (copy.value > 0)
        ours += fmt::format(", the link to the GPU {}", secondsText(copy.value));
    ours += fmt::format(" ({})", read.side());
    return {quotedClaim("disk-no-bottleneck",
                        asked->isWarm             ? "does not arise here: the file is in the page cache"
                            : !(others > 0)       ? "does not hold here: the disk is all that there is"
                            : read.value > others ? "does not hold here: the disk is the bottleneck"
                                                  : "holds here",
                        ours)};
}

class Loading final : public Experiment
{
public:
    std::string id() const override { return "loading"; }
    std::string title() const override { return "Loading"; }
    std::string question() const override { return "Disk, host memory, GPU: how long until the model is there?"; }
    std::string group() const override { return "hardware"; }
    std::string help() const override
    {
        return "A model's file is read, converted where the model needs another format, and copied to the GPU. In "
               "chunks the steps run side by side, and the slowest one sets the time: mostly the disk. Bytes are those "
               "of the model's tensors in their stored form, or of a real file's header; rates are this machine's, "
               "once calibrated, or those of data sheets. Left out: opening the file, making the model's objects, "
               "other traffic.";
    }
    bool isThroughMemory(const Device&) const override { return false; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override;
    ParameterTexts standardOn(const Device& device) const override
    {
        return device.isGpu() ? ParameterTexts{{"model", "llama-2-70b"}} : ParameterTexts{};
    }
    std::vector<std::string> headlines() const override { return {"time", "bottleneck", "bytes", "peak_host_memory"}; }
    ShortAnswer shortAnswer(const Device& device, const Parameters& parameters, const Figures& figures) const override;
    std::vector<SeriesSpec> series() const override
    {
        return {{"time", "time"},
                {"read_time", "reading alone"},
                {"convert_time", "converting alone"},
                {"copy_time", "copies alone"},
                {"bandwidth", "bandwidth"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override
    {
        Sweep sweep{"touched", {}};
        if (device.isGpu() && !device.sharesHostMemory && parameters.text("medium_file").empty()) {
            sweep.key = "medium";
            for (const ChoiceValue& medium : loadingMedia()) {
                const bool isPossible = medium.key != "page-cache" || parameters.choice("method") != "direct";
                if (isPossible)
                    sweep.values.emplace_back(medium.key);
            }
            return sweep;
        }
        for (double share = 1.0 / 256; share <= 1; share *= 4)
            sweep.values.emplace_back(share);
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        return predictedLoading(device, parameters);
    }
    Json predictDetail(const Device& device, const Parameters& parameters) const override
    {
        return loadingDetail(device, parameters);
    }
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        return loadingClaims(device, parameters, measured);
    }

private:
    Schema m_schema = loadingSchema();
};

std::vector<std::string> Loading::idleParameters(const Device& device, const Parameters& parameters) const
{
    std::vector<std::string> idle = Experiment::idleParameters(device, parameters);
    const std::vector<std::string> assumption = idleAssumption(parameters.text("model"));
    if (!parameters.text("file").empty())
        idle.insert(idle.end(), {"model", "dtype", "assume"});
    else
        idle.insert(idle.end(), assumption.begin(), assumption.end());
    if (parameters.choice("method") != "parallel")
        idle.emplace_back("threads");
    const bool isOwnMedium = !parameters.text("medium_file").empty();
    if (isOwnMedium)
        idle.emplace_back("medium");
    if (parameters.choice("method") == "direct" || (!isOwnMedium && parameters.choice("medium") == pageCacheMedium))
        idle.emplace_back("cache");
    const bool isReadAlone = (!device.isGpu() || device.sharesHostMemory)
        && loadingTargets().of(parameters.choice("convert")) == LoadingTarget::AsStored
        && loadingCopies().of(parameters.choice("low_cpu_mem")) != LoadingCopies::Twice;
    if (parameters.integer("chunk") == 0 || isReadAlone)
        idle.emplace_back("streams");
    if (parameters.integer("gpus") == 1 && device.isGpu())
        idle.emplace_back("host_link");
    if (device.sharesHostMemory)
        idle.insert(idle.end(), {"gpus", "staging", "host_link"});
    return idle;
}

ShortAnswer Loading::shortAnswer(const Device&, const Parameters&, const Figures& figures) const
{
    for (const char* key : {"time", "bytes", "read_time", "convert_time", "copy_time", "bottleneck"}) {
        const Figure* const one = findFigure(figures, key);
        if (!one || (one->isNumber() && !std::isfinite(one->number())))
            return {};
    }
    const auto text = [&](const char* key) { return findFigure(figures, key)->text(); };
    const auto seconds = [&](const char* key) { return findFigure(figures, key)->number(); };
    ShortAnswer answer{{}, "time", false, {"medium", "method", "dtype", "chunk", "streams", "gpus"}};
    answer.sentence =
        fmt::format("Loading {} takes {}; the bottleneck is the {}", text("bytes"), text("time"), text("bottleneck"));
    if (seconds("copy_time") > 0 && seconds("copy_time") < seconds("read_time"))
        answer.sentence += fmt::format(", where the link to the GPU alone would take {}", text("copy_time"));
    answer.sentence += ".";
    return answer;
}

} // namespace

const Experiment& loadingExperiment()
{
    static const Loading experiment;
    return experiment;
}

} // namespace memscape
