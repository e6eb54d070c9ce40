// SPDX-License-Identifier: GPL-3.0-or-later
// Curves as text: the table that copies and exports write, the words that screen readers say.
#include "app/plots/plot_data.h"
#include "app/plots/ticks.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <map>

namespace memscape {

namespace {

QString quoted(QString text, QChar separator)
{
    if (separator == QLatin1Char('\t'))
        return text.replace(QLatin1Char('\t'), QLatin1Char(' ')).replace(QLatin1Char('\n'), QLatin1Char(' '));
    if (!text.contains(separator) && !text.contains(QLatin1Char('"')) && !text.contains(QLatin1Char('\n')))
        return text;
    return QLatin1Char('"') + text.replace(QLatin1Char('"'), QStringLiteral("\"\"")) + QLatin1Char('"');
}

QString withUnit(const QString& name, Unit unit)
{
    const std::string_view text = unitText(unit);
    if (unit == Unit::One)
        return name;
    return name + QStringLiteral(" [") + QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()))
        + QLatin1Char(']');
}

QString cell(double value)
{
    return std::isfinite(value) ? QString::fromStdString(numberText(value)) : QString();
}

// Columns by their header, rows by x: curves need not share their points.
struct Table
{
    QStringList header;
    std::map<double, std::vector<double>> rows;

    void addColumn(const QString& name, const std::vector<double>& x, const std::vector<double>& values,
                   const AxisRange* only)
    {
        header << name;
        const auto column = static_cast<std::size_t>(header.size()) - 1;
        for (std::size_t i = 0; i < std::min(x.size(), values.size()); ++i) {
            if (!std::isfinite(x[i]) || (only && (x[i] < only->low || x[i] > only->high)))
                continue;
            std::vector<double>& row = rows[x[i]];
            row.resize(std::max(row.size(), column + 1), std::nan(""));
            row[column] = values[i];
        }
    }
};

/// "rises from 1 ns at 4 KiB to 80 ns at 1 GiB"; without a direction its least and its most. Empty
/// without a point.
QString courseText(const CleanCurve& curve, const AxisSpec& x, const AxisSpec& y)
{
    const auto tr = [](const char* text) { return QCoreApplication::translate("PlotView", text); };
    std::vector<std::size_t> points;
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
        if (std::isfinite(curve.y[i]))
            points.push_back(i);
    }
    if (points.empty())
        return {};
    const auto below = [&](std::size_t a, std::size_t b) { return curve.y[a] < curve.y[b]; };
    const auto above = [&](std::size_t a, std::size_t b) { return curve.y[a] > curve.y[b]; };
    const auto [least, most] = std::minmax_element(points.begin(), points.end(), below);
    const auto at = [&](std::size_t i) {
        return tr("%1 at %2").arg(axisValueText(y, curve.y[i]), axisValueText(x, curve.x[i]));
    };
    if (curve.y[*least] == curve.y[*most])
        return tr("at %1").arg(axisValueText(y, curve.y[*least]));
    if (std::ranges::is_sorted(points, below))
        return tr("rises from %1 to %2").arg(at(points.front()), at(points.back()));
    if (std::ranges::is_sorted(points, above))
        return tr("falls from %1 to %2").arg(at(points.front()), at(points.back()));
    return tr("between %1 and %2").arg(at(*least), at(*most));
}

} // namespace

QString tableText(const AxisSpec& x, const AxisSpec& y, const std::vector<Curve>& curves, QChar separator,
                  const AxisRange* only)
{
    Table table;
    for (const Curve& curve : curves) {
        if (!curve.visible)
            continue;
        table.addColumn(withUnit(curve.name, y.unit), curve.x, curve.y, only);
        if (!curve.low.empty() && !curve.high.empty()) {
            table.addColumn(withUnit(curve.name + QStringLiteral(" low"), y.unit), curve.x, curve.low, only);
            table.addColumn(withUnit(curve.name + QStringLiteral(" high"), y.unit), curve.x, curve.high, only);
        }
    }
    QString text = quoted(withUnit(x.label, x.unit), separator);
    for (const QString& name : table.header)
        text += separator + quoted(name, separator);
    text += QLatin1Char('\n');
    for (const auto& [at, row] : table.rows) {
        text += x.names.isEmpty() ? cell(at) : quoted(axisValueText(x, at), separator);
        for (qsizetype c = 0; c < table.header.size(); ++c) {
            text += separator;
            if (static_cast<std::size_t>(c) < row.size())
                text += cell(row[static_cast<std::size_t>(c)]);
        }
        text += QLatin1Char('\n');
    }
    return text;
}

QString summaryText(const QString& title, const AxisSpec& x, const AxisSpec& y, const std::vector<Curve>& curves)
{
    const auto tr = [](const char* text) { return QCoreApplication::translate("PlotView", text); };
    QString text = title.isEmpty() ? tr("Plot") : title;
    text += QStringLiteral(": ") + tr("%1 against %2.").arg(y.label.isEmpty() ? tr("values") : y.label, x.label);
    for (const Curve& curve : curves) {
        if (!curve.visible)
            continue;
        const CleanCurve c = clean(curve, false, false);
        if (const QString course = courseText(c, x, y); !course.isEmpty())
            text += QLatin1Char(' ') + tr("%1: %2 points, %3.").arg(curve.name, QString::number(c.x.size()), course);
    }
    return text;
}

} // namespace memscape
