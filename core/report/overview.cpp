// SPDX-License-Identifier: Apache-2.0
#include "core/report/overview.h"

#include "core/base/number.h"
#include "core/experiment/by_key.h"
#include "core/report/memory_tables.h"
#include "core/report/summary.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

bool hasPoints(const Series* series)
{
    return series && std::ranges::any_of(series->y, [](double y) { return std::isfinite(y); });
}

/// The figure that the page is about; of a record without a prediction the first measured one.
const Figure* figureShown(const Record& record)
{
    if (const Figure* headline = headlineFigure(record))
        return headline;
    for (const auto* side : {&record.predicted, &record.measured})
        if (*side && !(*side)->figures.empty())
            return &(*side)->figures.front();
    return nullptr;
}

std::string headlineText(const Record& record)
{
    const Figure* shown = figureShown(record);
    if (!shown)
        return "no figures";
    const Figure* predicted = record.predicted ? findFigure(record.predicted->figures, shown->key) : nullptr;
    const Figure* measured = record.measured ? findFigure(record.measured->figures, shown->key) : nullptr;
    std::string text = shown->label + ":";
    if (predicted)
        text += " predicted " + predicted->text();
    if (measured)
        text += (predicted ? ", measured " : " measured ") + measured->text();
    return text;
}

/// Of the headline's curve, else of its figure.
std::string medianErrorText(const Record& record)
{
    if (!record.measured)
        return "not measured";
    if (!record.predicted)
        return "not predicted";
    const Comparison comparison = record.comparison();
    const Figure* shown = figureShown(record);
    const HeadlineCurve curve = headlineCurve(record);
    for (const SeriesComparison& line : comparison.series)
        if (curve.predicted && line.key == curve.predicted->key && line.points > 0)
            return fmt::format("{} over {} points", percentText(line.medianError), line.points);
    for (const FigureComparison& line : comparison.figures)
        if (shown && line.key == shown->key && std::isfinite(line.error))
            return percentText(std::fabs(line.error));
    return "–";
}

std::string claimsText(const Record& record)
{
    const std::vector<Claim> claims = claimsOf(record);
    const auto holding =
        std::ranges::count_if(claims, [](const Claim& claim) { return claim.verdict.starts_with("holds"); });
    return claims.empty() ? std::string() : fmt::format("{} of {} textbook claims hold here", holding, claims.size());
}

} // namespace

HeadlineCurve headlineCurve(const Record& record)
{
    const Figure* shown = figureShown(record);
    HeadlineCurve first;
    const auto predicted = curvesOf(record.predicted), measured = curvesOf(record.measured);
    for (const auto* side : {&record.predicted, &record.measured}) {
        if (!*side)
            continue;
        for (const Series& series : (*side)->series) {
            const HeadlineCurve both{predicted.find(series.key), measured.find(series.key)};
            if (!hasPoints(both.predicted) && !hasPoints(both.measured))
                continue;
            if (shown && series.key == shown->key)
                return both;
            if (!first.predicted && !first.measured)
                first = both;
        }
    }
    return first;
}

RecordOverview overviewOf(const Record& record)
{
    RecordOverview made;
    made.title = recordTitle(record);
    if (const Experiment* experiment = experimentOf(record))
        made.question = experiment->question();
    made.verdict = headlineText(record);
    if (const std::string verdict = verdictText(record); !verdict.empty())
        made.verdict = verdict + "; " + made.verdict;
    made.medianError = medianErrorText(record);
    const std::string grade = gradeText(record);
    made.grade = grade.empty() ? "–" : grade;
    made.claims = claimsText(record);
    return made;
}

} // namespace memscape
