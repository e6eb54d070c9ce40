// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/probed_links.h"

#include "core/base/text.h"
#include "core/experiment/probed_host.h"
#include "core/timing/calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr double bandBegin = 0.1, bandEnd = 0.9;
constexpr int shares = 10;       ///< quantiles that each size contributes to the band
constexpr double widestBand = 4; ///< high over low: what is wider tells of others on the machine, not of the link

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

ProbedLink bandOf(const Device& fitted, const LinkSamples& samples)
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
    std::sort(ratios.begin(), ratios.end());
    if (!ratios.empty()) {
        probed.low = std::min(1.0, quantileOf(ratios, bandBegin));
        probed.high = std::max(1.0, quantileOf(ratios, bandEnd));
    }
    return probed;
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

/// The curves on which the links' band is seen, with that band.
void keepBanded(Outcome& line, const Outcome& quick, const Outcome& slow)
{
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

std::optional<Outcome> predictedWith(const Experiment& experiment, const Device& device, const Parameters& parameters,
                                     const std::vector<ProbedLink>& links)
{
    auto line = experiment.predict(device, parameters);
    const auto quick = experiment.predict(scaledLinks(device, links, &ProbedLink::low), parameters);
    const auto slow = experiment.predict(scaledLinks(device, links, &ProbedLink::high), parameters);
    if (!line || !quick || !slow)
        return std::nullopt;
    keepBanded(*line, *quick, *slow);
    return std::move(*line);
}

Json linkJson(const ProbedLink& link)
{
    return {{"id", link.id},
            {"label", link.label},
            {"latency", jsonNumber(link.latency)},
            {"bandwidth", jsonNumber(link.bandwidth)},
            {"low", jsonNumber(link.low)},
            {"high", jsonNumber(link.high)},
            {"sizes", link.sizes}};
}

Result<ProbedLink> linkFrom(const JsonReader& reader)
{
    ProbedLink link;
    MEMSCAPE_TRY(id, reader.string("id"));
    MEMSCAPE_TRY(label, reader.string("label"));
    MEMSCAPE_TRY(latency, reader.number("latency"));
    MEMSCAPE_TRY(bandwidth, reader.number("bandwidth"));
    MEMSCAPE_TRY(low, reader.number("low"));
    MEMSCAPE_TRY(high, reader.number("high"));
    MEMSCAPE_TRY(sizes, reader.integer("sizes", 0));
    return ProbedLink{id, label, latency, bandwidth, low, high, int(std::clamp<std::int64_t>(sizes, 0, 1000))};
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

} // namespace

void addProbed(Measurement& measured, const Experiment& experiment, const Device& device, const Parameters& parameters,
               const std::vector<LinkSamples>& samples)
{
    std::vector<LinkProbes> probes;
    for (const LinkSamples& one : samples) {
        if (fitLink(mediansOf(one)))
            probes.push_back(mediansOf(one));
    }
    if (probes.empty())
        return;
    const Device fitted = withFittedLinks(device, probes);
    std::vector<ProbedLink> links;
    Json all = Json::array();
    for (const LinkSamples& one : samples) {
        if (!fitted.link(one.link.id))
            continue;
        links.push_back(bandOf(fitted, one));
        if (links.back().high > widestBand * links.back().low)
            return;
        all.push_back(linkJson(links.back()));
    }
    const auto predicted = predictedWith(experiment, fitted, parameters, links);
    if (!predicted || predicted->series.empty())
        return;
    measured.detail["probed"] = {{"links", std::move(all)}, {"predicted", outcomeToJson(*predicted)}};
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

std::string probedText(const std::optional<Measurement>& measured)
{
    if (!measured)
        return {};
    const auto run = probedRun(*measured);
    if (!run)
        return probedHostText(*measured);
    std::string text = "Links as probed in turn with the points:";
    for (const ProbedLink& link : run->links)
        text += fmt::format("{} {}, α {}, β {}, 8 of 10 samples at {} to {} of the line",
                            &link == &run->links.front() ? "" : ";", link.label,
                            quantityText(link.latency, Unit::Second), quantityText(link.bandwidth, Unit::BytePerSecond),
                            percentText(link.low), percentText(link.high));
    const ProbedError error = probedError(*run, *measured);
    if (error.points > 0)
        text += fmt::format(". With these the model is {} off in {} (median of {} {}, {} within that band)",
                            percentText(error.median), run->predicted.series.front().label, error.points,
                            error.points == 1 ? "point" : "points", error.within);
    return text + ".";
}

} // namespace memscape
