// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/probed_links.h"

#include "core/base/text.h"
#include "core/experiment/probed_host.h"
#include "core/timing/calibration.h"
#include "core/timing/operation_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr double bandBegin = 0.1, bandEnd = 0.9;
constexpr int shares = 10;             ///< quantiles that each size contributes to the band
constexpr std::size_t fewestSizes = 4; ///< of a link: fewer do not tell α from β
constexpr double widestSpread = 4;     ///< of the samples of a size: what is wider tells of others on the machine

/// The q-quantile of sorted values, which are not none.
double quantileOf(const std::vector<double>& sorted, double q)
{
    const double at = q * double(sorted.size() - 1);
    const auto below = std::size_t(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - double(below)) * (sorted[above] - sorted[below]);
}

/// Finite and positive, ascending.
std::vector<double> usable(std::vector<double> seconds)
{
    std::erase_if(seconds, [](double one) { return !std::isfinite(one) || !(one > 0); });
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

LinkProbes mediansOf(const LinkSamples& samples)
{
    LinkProbes probes = samples.link;
    probes.points.clear();
    for (const auto& [bytes, seconds] : samples.seconds) {
        if (const std::vector<double> sorted = usable(seconds); !sorted.empty())
            probes.points.push_back({bytes, quantileOf(sorted, 0.5)});
    }
    return probes;
}

/// The band of samples over their line, every size's alike.
void setBand(ProbedLink& probed, std::vector<double> ratios)
{
    if (ratios.empty())
        return;
    std::sort(ratios.begin(), ratios.end());
    probed.low = std::min(1.0, quantileOf(ratios, bandBegin));
    probed.high = std::max(1.0, quantileOf(ratios, bandEnd));
}

ProbedLink fittedLink(const Device& fitted, const LinkSamples& samples)
{
    const Link* const link = fitted.link(samples.link.id);
    ProbedLink probed{samples.link.id, samples.link.label, link->latency.value, link->bandwidth.value};
    std::vector<double> ratios;
    for (const auto& [bytes, seconds] : samples.seconds) {
        const std::vector<double> sorted = usable(seconds);
        const double line = linkSeconds(fitted, samples.link, {bytes, 0});
        if (sorted.empty() || !(line > 0))
            continue;
        ++probed.sizes;
        for (int i = 0; i < shares; ++i)
            ratios.push_back(quantileOf(sorted, (i + 0.5) / shares) / line);
    }
    setBand(probed, std::move(ratios));
    return probed;
}

/// None where nothing is predicted of it, or no sample took time.
std::optional<ProbedLink> fittedWork(const WorkSamples& samples)
{
    std::vector<double> sorted = usable(samples.seconds);
    if (sorted.empty() || !(samples.predicted > 0))
        return std::nullopt;
    ProbedLink probed{samples.id, samples.label};
    const double median = quantileOf(sorted, 0.5);
    probed.pace = median / samples.predicted;
    probed.sizes = 1;
    for (double& one : sorted)
        one /= median;
    setBand(probed, std::move(sorted));
    return probed;
}

/// The median over all sizes and kinds of work of what 8 of 10 of its samples spread over.
double spreadOf(const RunProbes& probes)
{
    std::vector<double> spreads;
    const auto add = [&](const std::vector<double>& seconds) {
        if (const std::vector<double> sorted = usable(seconds); !sorted.empty())
            spreads.push_back(quantileOf(sorted, bandEnd) / quantileOf(sorted, bandBegin));
    };
    for (const LinkSamples& one : probes.links) {
        for (const auto& [bytes, seconds] : one.seconds)
            add(seconds);
    }
    for (const WorkSamples& one : probes.work)
        add(one.seconds);
    std::sort(spreads.begin(), spreads.end());
    return spreads.empty() ? 1 : quantileOf(spreads, 0.5);
}

void scale(std::optional<Sourced>& rate, double slower)
{
    if (rate)
        rate->value /= slower;
}

/// With each of these links so many times slower.
Device scaledLinks(Device device, const std::vector<ProbedLink>& links, double ProbedLink::*slower)
{
    for (const ProbedLink& probed : links) {
        if (probed.isWork()) {
            device = withSlowerOperations(std::move(device), probed.*slower);
            continue;
        }
        for (Link& link : device.links) {
            if (link.id != probed.id)
                continue;
            link.latency.value *= probed.*slower;
            link.bandwidth.value /= probed.*slower;
            scale(link.farBandwidth, probed.*slower);
            scale(link.ownBandwidth, probed.*slower);
        }
        Json& pieces = device.calibration->raw["piece_seconds"];
        if (const auto found = pieces.find(probed.id); found != pieces.end())
            *found = found->get<double>() * (probed.*slower);
    }
    return device;
}

/// The measured curves on which the links' band is seen, with that band.
void keepBanded(Outcome& line, const Outcome& quick, const Outcome& slow, const Measurement& measured)
{
    std::erase_if(line.series, [&](const Series& series) { return !measured.findSeries(series.key); });
    for (Series& series : line.series) {
        const Series* const one = quick.findSeries(series.key);
        const Series* const other = slow.findSeries(series.key);
        if (!one || !other || one->y.size() != series.y.size() || other->y.size() != series.y.size())
            continue;
        for (std::size_t i = 0; i < series.y.size(); ++i) {
            series.low.push_back(std::min({one->y[i], other->y[i], series.y[i]}));
            series.high.push_back(std::max({one->y[i], other->y[i], series.y[i]}));
        }
    }
    std::erase_if(line.series, [](const Series& series) {
        return !std::lexicographical_compare(series.low.begin(), series.low.end(), series.high.begin(),
                                             series.high.end());
    });
    line.figures.clear();
    line.detail = Json::object();
}

/// Errors: those of the model.
Result<Outcome> predictedWith(const Experiment& experiment, const Device& device, const Parameters& parameters,
                              const std::vector<ProbedLink>& links, const Measurement& measured)
{
    MEMSCAPE_TRY(line, experiment.predict(device, parameters));
    MEMSCAPE_TRY(quick, experiment.predict(scaledLinks(device, links, &ProbedLink::low), parameters));
    MEMSCAPE_TRY(slow, experiment.predict(scaledLinks(device, links, &ProbedLink::high), parameters));
    keepBanded(line, quick, slow, measured);
    return line;
}

/// Errors: run.probes where they say nothing, those of the model.
Result<ProbedRun> fittedRun(const Measurement& measured, const Experiment& experiment, const Device& device,
                            const Parameters& parameters, const RunProbes& probes)
{
    if (const double spread = spreadOf(probes); spread > widestSpread)
        return fail(
            "run.probes",
            fmt::format("samples of one size differ {}-fold, so others used the machine", shortNumber(spread, 2)));
    std::vector<LinkProbes> medians;
    std::vector<std::string> refusals;
    for (const LinkSamples& one : probes.links) {
        LinkProbes link = mediansOf(one);
        if (link.points.size() < fewestSizes && one.disturbed > 0)
            refusals.push_back(
                fmt::format("others used the machine while {} sizes of \"{}\" were probed", one.disturbed, link.label));
        else if (link.points.size() < fewestSizes)
            refusals.push_back(fmt::format("too few sizes of \"{}\" were probed in the time of the run", link.label));
        else if (!fitLink(onDevice(device, link)))
            refusals.push_back(fmt::format("the sizes of \"{}\" are on no line", link.label));
        else
            medians.push_back(std::move(link));
    }
    Device fitted = medians.empty() ? device : withFittedLinks(device, medians);
    ProbedRun run;
    for (const LinkProbes& one : medians) {
        const auto samples = std::find_if(probes.links.begin(), probes.links.end(),
                                          [&](const LinkSamples& link) { return link.link.id == one.id; });
        run.links.push_back(fittedLink(fitted, *samples));
    }
    for (const WorkSamples& one : probes.work) {
        if (auto work = fittedWork(one)) {
            fitted = withSlowerOperations(std::move(fitted), work->pace);
            run.links.push_back(std::move(*work));
        }
    }
    if (run.links.empty())
        return fail("run.probes", fmt::format("{}", fmt::join(refusals, ", ")));
    MEMSCAPE_TRY(predicted, predictedWith(experiment, fitted, parameters, run.links, measured));
    if (predicted.series.empty())
        return fail("run.probes", "no measured curve depends on them");
    run.predicted = std::move(predicted);
    return run;
}

Json linkJson(const ProbedLink& link)
{
    return {{"id", link.id},
            {"label", link.label},
            {"pace", jsonNumber(link.pace)},
            {"latency", jsonNumber(link.latency)},
            {"bandwidth", jsonNumber(link.bandwidth)},
            {"low", jsonNumber(link.low)},
            {"high", jsonNumber(link.high)},
            {"sizes", link.sizes}};
}

Result<ProbedLink> linkFrom(const JsonReader& reader)
{
    const auto numberOrNan = [&](const char* key) -> Result<double> {
        if (!reader.has(key))
            return nan;
        return reader.at(key).and_then([](const JsonReader& node) { return node.numberOrNan(); });
    };
    MEMSCAPE_TRY(id, reader.string("id"));
    MEMSCAPE_TRY(label, reader.string("label"));
    MEMSCAPE_TRY(pace, numberOrNan("pace"));
    MEMSCAPE_TRY(latency, numberOrNan("latency"));
    MEMSCAPE_TRY(bandwidth, numberOrNan("bandwidth"));
    MEMSCAPE_TRY(low, reader.number("low"));
    MEMSCAPE_TRY(high, reader.number("high"));
    MEMSCAPE_TRY(sizes, reader.integer("sizes", 0));
    return ProbedLink{id, label, latency, bandwidth, low, high, int(std::clamp<std::int64_t>(sizes, 0, 1000)), pace};
}

Result<ProbedRun> runFrom(const JsonReader& reader)
{
    ProbedRun run;
    MEMSCAPE_TRY(links, reader.at("links"));
    MEMSCAPE_TRY(items, links.items());
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(link, linkFrom(item));
        run.links.push_back(std::move(link));
    }
    MEMSCAPE_TRY(predicted, reader.at("predicted"));
    MEMSCAPE_TRY(outcome, outcomeFromJson(predicted));
    run.predicted = std::move(outcome);
    return run;
}

/// Why probes say nothing, as a sentence; empty where that is not why there are none.
std::string refusalText(const Measurement& measured)
{
    if (!measured.detail.is_object() || !measured.detail.contains("probed"))
        return {};
    const auto reason = JsonReader(measured.detail["probed"]).string("none", std::string());
    return !reason || reason->empty() ? std::string()
                                      : fmt::format("Probes in turn with the points say nothing: {}.", *reason);
}

} // namespace

void addProbed(Measurement& measured, const Experiment& experiment, const Device& device, const Parameters& parameters,
               const RunProbes& probes)
{
    if (probes.links.empty() && probes.work.empty())
        return;
    auto run = fittedRun(measured, experiment, device, parameters, probes);
    if (!run) {
        measured.detail["probed"] = {{"none", run.error().text()}};
        return;
    }
    Json links = Json::array();
    for (const ProbedLink& link : run->links)
        links.push_back(linkJson(link));
    measured.detail["probed"] = {{"links", std::move(links)}, {"predicted", outcomeToJson(run->predicted)}};
}

std::optional<ProbedRun> probedRun(const Measurement& measured)
{
    if (!measured.detail.is_object() || !measured.detail.contains("probed"))
        return std::nullopt;
    auto run = runFrom(JsonReader(measured.detail["probed"]));
    if (!run || run->links.empty() || run->predicted.series.empty())
        return std::nullopt;
    return std::move(*run);
}

ProbedError probedError(const ProbedRun& run, const Measurement& measured)
{
    ProbedError error;
    const Series& line = run.predicted.series.front();
    const Series* const seen = measured.findSeries(line.key);
    if (!seen || line.low.size() != line.y.size() || line.high.size() != line.y.size())
        return error;
    std::vector<double> off;
    for (std::size_t i = 0; i < std::min(line.y.size(), line.x.values.size()); ++i) {
        for (std::size_t k = 0; k < std::min(seen->y.size(), seen->x.values.size()); ++k) {
            const double y = seen->y[k];
            if (seen->x.values[k] != line.x.values[i] || !(y > 0) || !std::isfinite(y) || !std::isfinite(line.y[i]))
                continue;
            off.push_back(std::fabs(line.y[i] / y - 1));
            error.within += line.low[i] <= y && y <= line.high[i];
        }
    }
    std::sort(off.begin(), off.end());
    error.points = int(off.size());
    if (!off.empty())
        error.median = quantileOf(off, 0.5);
    return error;
}

std::string ProbedLink::text() const
{
    if (isWork())
        return fmt::format("{} at {} of their calibrated time", label, percentText(pace));
    return fmt::format("{}, α {}, β {}", label, secondsText(latency), quantityText(bandwidth, Unit::BytePerSecond));
}

std::string probedText(const std::optional<Measurement>& measured)
{
    if (!measured)
        return {};
    const auto run = probedRun(*measured);
    if (!run) {
        const std::string host = probedHostText(*measured);
        return host.empty() ? refusalText(*measured) : host;
    }
    std::string text = "As probed in turn with the points: ";
    for (const ProbedLink& link : run->links)
        text += fmt::format("{}{}, 8 of 10 samples at {} to {} of the line", &link == &run->links.front() ? "" : "; ",
                            link.text(), percentText(link.low), percentText(link.high));
    const ProbedError error = probedError(*run, *measured);
    if (error.points > 0)
        text += fmt::format(". With these the model is {} off in {} (median of {} {}, {} within that band)",
                            percentText(error.median), run->predicted.series.front().label, error.points,
                            error.points == 1 ? "point" : "points", error.within);
    return text + ".";
}

} // namespace memscape
