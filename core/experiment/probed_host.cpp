// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/probed_host.h"

#include "core/base/number.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// In the order of worksOfState.
constexpr const char* wordsOfState[] = {"arithmetic", "memory", "new pages", "calls"};

/// 0 where there is none.
double meanOfWork(const Json& samples, const char* name)
{
    double sum = 0;
    int count = 0;
    if (samples.is_object() && samples.contains(name) && samples[name].is_array())
        for (const Json& one : samples[name])
            if (one.is_number() && one.get<double>() > 0 && std::isfinite(one.get<double>())) {
                sum += one.get<double>();
                ++count;
            }
    return count == 0 ? 0 : sum / count;
}

std::optional<HostState> timesOver(const std::optional<HostState>& calibrated, const Json& samples)
{
    if (!calibrated)
        return std::nullopt;
    HostState times;
    for (const auto& [name, seconds] : worksOfState) {
        times.*seconds = meanOfWork(samples, name) / *calibrated.*seconds;
        if (!(times.*seconds > 0) || !std::isfinite(times.*seconds))
            return std::nullopt;
    }
    return times;
}

const Figure* stepTimeOf(const Figures& figures)
{
    const auto found =
        std::find_if(figures.begin(), figures.end(), [](const Figure& one) { return one.key == "step_time"; });
    return found == figures.end() ? nullptr : &*found;
}

} // namespace

void addProbedHost(Measurement& measured, const Experiment& experiment, const Device& device,
                   const Parameters& parameters, const Json& samples)
{
    if (!isPytorchOnHost(device) || !device.calibration || parameters.sweep())
        return;
    const PytorchOperations calibrated = pytorchOperations(device);
    const auto times = timesOver(calibrated.state, samples);
    if (!times)
        return;
    Device found = device;
    found.calibration->raw["pytorch"] = pytorchOperationsToJson(slowed(calibrated, *times));
    const auto figures = experiment.predictPoint(found, parameters);
    const Figure* const step = figures ? stepTimeOf(*figures) : nullptr;
    if (step == nullptr || !std::isfinite(step->number()))
        return;
    Json& probed = measured.detail["probed_host"];
    for (const auto& [name, seconds] : worksOfState)
        probed[name] = *times.*seconds;
    probed["step_time"] = step->number();
}

std::optional<ProbedHost> probedHost(const Measurement& measured)
{
    if (!measured.detail.is_object() || !measured.detail.contains("probed_host"))
        return std::nullopt;
    const JsonReader reader(measured.detail["probed_host"]);
    ProbedHost host;
    for (const auto& [name, seconds] : worksOfState) {
        host.times.*seconds = reader.number(name).value_or(0);
        if (!(host.times.*seconds > 0))
            return std::nullopt;
    }
    host.stepTime = reader.number("step_time").value_or(0);
    if (!(host.stepTime > 0))
        return std::nullopt;
    return host;
}

std::string probedHostText(const Measurement& measured)
{
    const auto host = probedHost(measured);
    if (!host)
        return {};
    std::string text = "The processor as probed in turn with the steps, over its calibration:";
    for (std::size_t i = 0; i < std::size(worksOfState); ++i)
        text += fmt::format("{} {} {} times", i == 0 ? "" : ",", wordsOfState[i],
                            shortNumber(host->times.*worksOfState[i].second, 3));
    text += fmt::format(". With these a step is predicted to take {}", secondsText(host->stepTime));
    if (const Figure* const step = stepTimeOf(measured.figures); step && step->number() > 0)
        text += fmt::format(", {} off what it took", percentText(std::fabs(host->stepTime / step->number() - 1)));
    return text + ".";
}

} // namespace memscape
