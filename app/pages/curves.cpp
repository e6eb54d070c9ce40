// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/curves.h"

#include "app/settings/words.h"

#include <QObject>

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

Curve curveOf(const Series& series, const QString& prefix, const QString& name, CurveRole role, int palette)
{
    Curve curve;
    curve.key = prefix + toQString(series.key);
    curve.name = name;
    curve.role = role;
    curve.palette = palette;
    curve.x = series.x.values;
    curve.y = series.y;
    curve.x.resize(std::min(curve.x.size(), curve.y.size()));
    curve.y.resize(curve.x.size());
    if (series.low.size() == curve.y.size() && series.high.size() == curve.y.size()) {
        curve.low = series.low;
        curve.high = series.high;
    }
    return curve;
}

/// The same but for rounding.
bool isSame(double one, double other)
{
    return one == other || std::fabs(one - other) <= 1e-9 * std::max(std::fabs(one), std::fabs(other));
}

/// A variant without information of its own: no point, nothing anywhere (a step that is not there takes 0 s), or the
/// same points as the first.
bool redundant(const Series& series, const Outcome& outcome, const SeriesGroup& group)
{
    const bool empty = std::ranges::none_of(series.y, [](double y) { return std::isfinite(y); });
    const Series* first = outcome.findSeries(group.series.front());
    if (empty || first == nullptr || first->key == series.key)
        return empty;
    return std::ranges::all_of(series.y, [](double y) { return y == 0; })
        || std::equal(first->y.begin(), first->y.end(), series.y.begin(), series.y.end(), isSame);
}

/// "latency, 4 KiB pages" beside "latency" is called "4 KiB pages".
QString variantName(const Series& series, const SeriesGroup& group, const Outcome& outcome)
{
    const Series* first = outcome.findSeries(group.series.front());
    const QString prefix = first ? toQString(first->label) + QStringLiteral(", ") : QString();
    const QString name = toQString(series.label);
    return !prefix.isEmpty() && name.startsWith(prefix) ? name.mid(prefix.size()) : name;
}

/// The first of several series of different things says which it is: "predicted: standard".
QString leadName(const QString& lead, const Series& first, const SeriesGroup& group)
{
    if (group.series.size() < 2 || toQString(first.yLabel) == group.label)
        return lead;
    return QStringLiteral("%1: %2").arg(lead, toQString(first.label));
}

void addPredicted(const SeriesGroup& group, const CurveInput& input, std::vector<Curve>& curves)
{
    int variant = 0;
    for (const std::string& key : group.series) {
        const Series* series = input.predicted->findSeries(key);
        if (series == nullptr || redundant(*series, *input.predicted, group))
            continue;
        const bool first = key == group.series.front();
        const QString lead =
            input.basis.isEmpty() ? QObject::tr("predicted") : QObject::tr("predicted (%1)").arg(input.basis);
        const QString name = first ? leadName(lead, *series, group) : variantName(*series, group, *input.predicted);
        curves.push_back(curveOf(*series, QStringLiteral("predicted."), name,
                                 first ? CurveRole::Predicted : CurveRole::Variant, first ? 0 : variant++));
        curves.back().labelled = !first;
    }
}

/// As the prediction calls it: a record may be older than its words.
QString measuredName(const Series& series, const SeriesGroup& group, const CurveInput& input)
{
    const Series* predicted = input.predicted ? input.predicted->findSeries(series.key) : nullptr;
    return (predicted ? variantName(*predicted, group, *input.predicted) : variantName(series, group, *input.measured))
        + QObject::tr(", measured");
}

void addMeasured(const SeriesGroup& group, const CurveInput& input, std::vector<Curve>& curves)
{
    int position = -1; // of a series in its group: its symbol stays while points arrive
    for (const std::string& key : group.series) {
        ++position;
        const Series* series = input.measured->findSeries(key);
        if (series == nullptr || redundant(*series, *input.measured, group))
            continue;
        const bool first = key == group.series.front();
        const QString name = first ? leadName(input.measuredOn, *series, group) : measuredName(*series, group, input);
        const bool solid = first && !input.measuredElsewhere;
        curves.push_back(curveOf(*series, QStringLiteral("measured."), name,
                                 solid ? CurveRole::Measured : CurveRole::MeasuredVariant, first ? 0 : position - 1));
        if (first)
            curves.back().shape = MarkerShape::Circle; // hollow or not
    }
}

const Outcome* outcomeOf(const PinnedOutcome& pinned)
{
    return pinned.measured ? pinned.measured : pinned.predicted;
}

QString pinnedPrefix(int number)
{
    return QStringLiteral("pinned%1.").arg(number);
}

void addPinned(const SeriesGroup& group, const PinnedOutcome& pinned, int number, std::vector<Curve>& curves)
{
    const Outcome* outcome = outcomeOf(pinned);
    const Series* series = outcome ? outcome->findSeries(group.series.front()) : nullptr;
    if (series == nullptr)
        return;
    curves.push_back(curveOf(*series, pinnedPrefix(number), pinned.name, CurveRole::Pinned, pinned.palette));
    curves.back().dashed = pinned.measured == nullptr;
}

void addOther(const SeriesGroup& group, const OtherBasis& other, std::vector<Curve>& curves)
{
    const Series* series = other.predicted->findSeries(group.series.front());
    if (series != nullptr && !redundant(*series, *other.predicted, group))
        curves.push_back(curveOf(*series, QStringLiteral("basis.%1.").arg(int(other.role)), other.name, other.role, 0));
}

/// Curves of the same kind are compared with the baseline's: measured ones, or predicted ones.
void compareWithBaseline(const SeriesGroup& group, const CurveInput& input, std::vector<Curve>& curves)
{
    const auto baseline =
        std::ranges::find_if(input.pinned, [](const PinnedOutcome& pinned) { return pinned.isBaseline; });
    if (baseline == input.pinned.end())
        return;
    const QString series = toQString(group.series.front());
    const QString against = pinnedPrefix(int(baseline - input.pinned.begin())) + series;
    const QString own = (baseline->measured ? QStringLiteral("measured.") : QStringLiteral("predicted.")) + series;
    for (Curve& curve : curves) {
        const bool isOfKind = curve.role == CurveRole::Pinned && curve.dashed == !baseline->measured;
        if (curve.key != against && (curve.key == own || isOfKind))
            curve.against = against;
    }
}

struct Span
{
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
};

Span spanOf(const SeriesGroup& group, const CurveInput& input)
{
    Span span;
    for (const Outcome* outcome : {input.predicted, input.measured}) {
        for (const std::string& key : group.series) {
            const Series* series = outcome ? outcome->findSeries(key) : nullptr;
            if (series == nullptr || redundant(*series, *outcome, group)) // is not drawn
                continue;
            for (const double y : series->y) {
                if (!std::isfinite(y))
                    continue;
                span.low = std::min(span.low, y);
                span.high = std::max(span.high, y);
            }
        }
    }
    return span;
}

/// What several labels have in common: "time" of "standard time" and "flash time"; else what their
/// unit measures, or the first where it leads and the others are variants ("latency", "4 KiB pages").
QString commonLabel(const QStringList& labels, Unit unit, bool firstLeads)
{
    const auto all = [&](const auto& holds) { return std::ranges::all_of(labels, holds); };
    const QString& first = labels.front();
    const QStringList words = first.split(u' ');
    for (qsizetype i = 0; i < words.size(); ++i) {
        const QString end = words.mid(i).join(u' ');
        if (all([&](const QString& label) { return label == end || label.endsWith(u' ' + end); }))
            return end;
    }
    if (unit == Unit::Byte)
        return QObject::tr("memory");
    if (firstLeads)
        return first;
    switch (unit) {
    case Unit::Second: return QObject::tr("time");
    case Unit::BytePerSecond: return QObject::tr("bandwidth");
    case Unit::FlopPerSecond: return QObject::tr("rate");
    default: return first;
    }
}

void nameGroups(std::vector<SeriesGroup>& groups, const Outcome& outcome)
{
    for (SeriesGroup& group : groups) {
        QStringList labels;
        for (const std::string& key : group.series)
            labels << toQString(outcome.findSeries(key)->yLabel);
        const Series& first = *outcome.findSeries(group.series.front());
        group.label = commonLabel(labels, group.unit, first.label == first.yLabel);
    }
}

} // namespace

std::vector<SeriesGroup> seriesGroups(const Outcome& outcome)
{
    std::vector<SeriesGroup> groups;
    for (const Series& series : outcome.series) {
        const auto same = std::ranges::find_if(groups, [&](const SeriesGroup& group) {
            const Series* first = outcome.findSeries(group.series.front());
            const bool isSame = series.yUnit != Unit::One // counts differ
                || first->yLabel == series.yLabel;        // losses, or wavefronts and cycles, do not
            return group.unit == series.yUnit && isSame && first->x.key == series.x.key;
        });
        if (same == groups.end())
            groups.push_back({toQString(series.key), toQString(series.yLabel), series.yUnit, {series.key}});
        else
            same->series.push_back(series.key);
    }
    nameGroups(groups, outcome);
    return groups;
}

std::vector<Curve> makeCurves(const SeriesGroup& group, const CurveInput& input)
{
    std::vector<Curve> curves;
    int number = 0;
    for (const PinnedOutcome& pinned : input.pinned)
        addPinned(group, pinned, number++, curves);
    for (const OtherBasis& other : input.others)
        addOther(group, other, curves);
    if (input.predicted)
        addPredicted(group, input, curves);
    if (input.measured)
        addMeasured(group, input, curves);
    compareWithBaseline(group, input, curves);
    return curves;
}

const Outcome* pinnedOutcomeOf(const Curve& curve, const CurveInput& input)
{
    for (std::size_t i = 0; i < input.pinned.size(); ++i) {
        if (curve.role == CurveRole::Pinned && curve.key.startsWith(pinnedPrefix(int(i))))
            return outcomeOf(input.pinned[i]);
    }
    return nullptr;
}

const SeriesAxis* axisOf(const Outcome& outcome, const SeriesGroup& group)
{
    const Series* series = group.series.empty() ? nullptr : outcome.findSeries(group.series.front());
    if (series != nullptr)
        return &series->x;
    return outcome.series.empty() ? nullptr : &outcome.series.front().x;
}

QString categoryName(const SeriesAxis& axis, std::size_t index, const Schema& schema)
{
    const std::string& name = axis.names[index];
    const ParameterSpec* spec = findParameter(schema, axis.key);
    return toQString(spec && spec->kind == ParameterKind::Choice ? valueLabel(*spec, name) : name);
}

AxisSpec xAxisOf(const Outcome& outcome, const SeriesGroup& group, ByteStyle bytes, const Schema& schema)
{
    AxisSpec spec;
    spec.bytes = bytes;
    const SeriesAxis* found = axisOf(outcome, group);
    if (found == nullptr)
        return spec;
    const SeriesAxis& axis = *found;
    spec.label = toQString(axis.label);
    spec.unit = axis.unit;
    spec.log = axis.scale == AxisScale::Log2 ? 2 : 0;
    if (axis.scale == AxisScale::Category) {
        for (std::size_t i = 0; i < axis.names.size(); ++i)
            spec.names << categoryName(axis, i, schema);
    }
    return spec;
}

AxisSpec yAxisOf(const SeriesGroup& group, const CurveInput& input, ByteStyle bytes)
{
    AxisSpec spec;
    spec.label = group.label;
    spec.unit = group.unit;
    spec.bytes = bytes;
    const Span span = spanOf(group, input);
    const double ratio = span.low > 0 && span.high > 0 ? span.high / span.low : 1;
    const bool isOfWork = group.unit == Unit::Second || group.unit == Unit::FlopPerSecond;
    if (ratio > (isOfWork ? 10 : 100))
        spec.log = group.unit == Unit::Byte && bytes == ByteStyle::Binary ? 2 : 10;
    else
        spec.fromZero = true;
    return spec;
}

std::vector<Band> capacityBands(const Device& device, const SeriesAxis& axis)
{
    std::vector<Band> bands;
    if (axis.unit != Unit::Byte || axis.values.size() < 2)
        return bands;
    const auto [low, high] = std::ranges::minmax_element(axis.values);
    for (const MemoryLevel& level : device.levels) {
        if (level.kind != LevelKind::Cache || !level.capacity.known())
            continue;
        const double bytes = level.capacity.value;
        if (bytes > *low && bytes < *high)
            bands.push_back({bytes, bytes, toQString(level.id)});
    }
    return bands;
}

std::vector<HorizontalLine> datasheetLines(const Device& device, Unit unit, ByteStyle bytes)
{
    const MemoryLevel* dram = device.dram();
    if (unit != Unit::BytePerSecond || dram == nullptr || !dram->bandwidth.known()
        || dram->bandwidth.evidence != Evidence::Specified)
        return {};
    const double rate = dram->bandwidth.value;
    return {{rate, QObject::tr("datasheet %1").arg(toQString(quantityText(rate, unit, bytes)))}};
}

} // namespace memscape
