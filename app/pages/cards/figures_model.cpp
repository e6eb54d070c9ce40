// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/figures_model.h"

#include "app/settings/theme.h"

#include <QFont>

#include <array>
#include <cmath>
#include <utility>

namespace memscape {

namespace {

constexpr double close = 0.10, far = 0.25; ///< errors up to here are shown as good, as a warning

/// "120.3 G" of 120 259 084 288: where two such numbers stand side by side there is no room for all
/// their digits.
QString brief(double value)
{
    constexpr std::array prefixes{"", " k", " M", " G", " T", " P"};
    std::size_t thousands = 0;
    for (; std::fabs(value) >= 1000 && thousands + 1 < prefixes.size(); ++thousands)
        value /= 1000;
    return QString::number(value, 'g', 4) + QString::fromLatin1(prefixes[thousands]);
}

/// All digits of a count that is shown with a prefix; empty where all of them are shown.
QString exactText(const Figure& figure)
{
    if (!figure.isNumber() || !std::isfinite(figure.number()) || figure.unit != Unit::One)
        return {};
    const QString exact = QString::fromStdString(countText(figure.number()));
    return figure.countsOperations() ? FiguresModel::tr("%1 floating-point operations").arg(exact) : exact;
}

} // namespace

void compareInto(FigureRow& row)
{
    row.error = nan;
    row.isCounted = (row.predicted && row.predicted->isCounted) || (row.measured && row.measured->isCounted);
    if (!row.predicted || !row.measured || row.isCounted)
        return;
    if (!row.predicted->isNumber() || !row.measured->isNumber()) {
        row.agree = row.predicted->text() == row.measured->text();
        return;
    }
    const double predicted = row.predicted->number();
    const double measured = row.measured->number();
    row.error = measured != 0 ? (predicted - measured) / measured : (predicted == 0 ? 0 : nan);
    row.withinNoise =
        row.measured->low && row.measured->high && predicted >= *row.measured->low && predicted <= *row.measured->high;
}

QString figureText(const Figure& figure, ByteStyle bytes, bool isBrief)
{
    const bool isLong = figure.isNumber() && figure.unit == Unit::One && std::fabs(figure.number()) >= 1e6;
    if (isBrief && isLong && !figure.countsOperations() && std::isfinite(figure.number()))
        return brief(figure.number());
    return QString::fromStdString(figure.text(bytes));
}

/// Its size decides, whatever the noise: a large error does not turn good because the measurement was poor.
static QColor errorColour(const FigureRow& row)
{
    const Theme& theme = currentTheme();
    if (!row.predicted || !row.measured || row.isCounted)
        return theme.textFaint;
    if (!row.predicted->isNumber() || !row.measured->isNumber())
        return row.agree ? theme.good : theme.bad;
    if (!std::isfinite(row.error)) // of a measured 0 there is no share
        return theme.textFaint;
    const double size = std::abs(row.error);
    return size <= close ? theme.good : size <= far ? theme.warning : theme.bad;
}

std::optional<Figure> figureAt(const Outcome& outcome, const Figure& like, double x)
{
    const Series* series = outcome.findSeries(like.key);
    if (series == nullptr)
        return std::nullopt;
    for (std::size_t i = 0; i < series->x.values.size() && i < series->y.size(); ++i) {
        if (series->x.values[i] != x || !std::isfinite(series->y[i]))
            continue;
        Figure figure{like.key, like.label, series->yUnit, series->y[i]};
        if (i < series->low.size() && i < series->high.size()) {
            figure.low = series->low[i];
            figure.high = series->high[i];
        }
        return figure;
    }
    return std::nullopt;
}

std::vector<FigureRow> figureRows(const Outcome* predicted, const Outcome* measured, std::optional<double> atX,
                                  bool figuresAreAtX)
{
    const Figures none;
    const Figures& lead = predicted ? predicted->figures : measured ? measured->figures : none;
    std::vector<FigureRow> rows;
    for (const Figure& figure : lead) {
        FigureRow row{QString::fromStdString(figure.key), QString::fromStdString(figure.label)};
        if (predicted)
            row.predicted = figure;
        if (measured && figuresAreAtX) {
            if (const Figure* own = findFigure(measured->figures, figure.key))
                row.measured = *own;
        } else if (measured && atX) {
            row.measured = figureAt(*measured, figure, *atX);
        }
        // A figure without a value on either side is left out.
        if (figure.isNumber() && !std::isfinite(figure.number()) && !row.measured)
            continue;
        compareInto(row);
        rows.push_back(std::move(row));
    }
    return rows;
}

void addBaseline(std::vector<FigureRow>& rows, const Outcome* predicted, const Outcome* measured,
                 std::optional<double> atX, bool figuresAreAtX)
{
    const auto find = [&](const Outcome* outcome, const Figure& like) -> std::optional<Figure> {
        if (outcome == nullptr)
            return std::nullopt;
        if (!figuresAreAtX)
            return atX ? figureAt(*outcome, like, *atX) : std::nullopt;
        const Figure* own = findFigure(outcome->figures, like.key);
        return own ? std::optional<Figure>(*own) : std::nullopt;
    };
    for (FigureRow& row : rows) {
        row.hasBaseline = true;
        row.baseline = row.measured ? find(measured, *row.measured) : std::nullopt;
        row.isMeasuredAgainst = row.baseline.has_value();
        if (!row.baseline && row.predicted)
            row.baseline = find(predicted, *row.predicted);
        const std::optional<Figure>& shown = row.isMeasuredAgainst ? row.measured : row.predicted;
        row.difference = nan;
        if (!row.baseline || !row.baseline->isNumber() || !shown->isNumber())
            continue;
        const double from = row.baseline->number(), to = shown->number();
        row.difference = from != 0 ? (to - from) / std::abs(from) : to == 0 ? 0 : nan;
    }
}

void FiguresModel::setRows(std::vector<FigureRow> rows, ByteStyle bytes)
{
    m_bytes = bytes;
    const bool sameShape = rows.size() == m_rows.size();
    if (!sameShape)
        beginResetModel();
    m_rows = std::move(rows);
    if (!sameShape)
        endResetModel();
    else if (!m_rows.empty())
        emit dataChanged(index(0, 0), index(int(m_rows.size()) - 1, NUM_COLUMNS - 1));
}

void FiguresModel::setBrief(bool brief)
{
    if (std::exchange(m_isBrief, brief) != brief && !m_rows.empty())
        emit dataChanged(index(0, PredictedColumn), index(int(m_rows.size()) - 1, MeasuredColumn));
}

int FiguresModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : int(m_rows.size());
}

int FiguresModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : int(NUM_COLUMNS);
}

/// Yes and no are words here, though documents say 1 and 0.
static bool isWord(const Figure& figure)
{
    return !figure.isNumber() || figure.key == "fits" || figure.key == "feasible";
}

static QString differenceText(const FigureRow& row)
{
    if (row.baseline && isWord(*row.baseline)) {
        const auto& shown = row.isMeasuredAgainst ? row.measured : row.predicted;
        return shown->text() == row.baseline->text() ? QStringLiteral("=") : QStringLiteral("≠");
    }
    return std::isfinite(row.difference) ? QString::fromStdString(signedPercentText(row.difference))
                                         : QStringLiteral("–");
}

QString FiguresModel::differenceTip(const FigureRow& row) const
{
    if (!row.baseline)
        return tr("The baseline has no value at this point.");
    const QString value = figureText(*row.baseline, m_bytes, false);
    if (row.isCounted)
        return tr("Against %1 of the baseline: counted from the parameters, not measured").arg(value);
    return row.isMeasuredAgainst ? tr("Measured, against %1 measured in the baseline").arg(value)
                                 : tr("Predicted, against %1 predicted in the baseline").arg(value);
}

/// With its band, where there is room for it.
QString FiguresModel::labelText(const FigureRow& row) const
{
    const QString range = row.predicted ? QString::fromStdString(row.predicted->rangeText(m_bytes)) : QString();
    return m_isBrief || range.isEmpty() ? row.label : tr("%1\n%2").arg(row.label, range);
}

QString FiguresModel::display(const FigureRow& row, int column) const
{
    const QString none = QStringLiteral("–");
    switch (column) {
    case LabelColumn: return labelText(row);
    case PredictedColumn: return row.predicted ? figureText(*row.predicted, m_bytes, m_isBrief) : none;
    case MeasuredColumn: return row.measured ? figureText(*row.measured, m_bytes, m_isBrief) : none;
    case BaselineColumn: return differenceText(row);
    default:
        if (row.isCounted && row.measured)
            return tr("counted");
        if (std::isfinite(row.error))
            return (row.withinNoise ? QStringLiteral("≈ ") : QString())
                + QString::fromStdString(signedPercentText(row.error));
        if (row.predicted && row.measured && !row.predicted->isNumber())
            return row.agree ? QStringLiteral("=") : QStringLiteral("≠");
        return none;
    }
}

QString FiguresModel::toolTip(const FigureRow& row, int column) const
{
    const auto& figure = column == MeasuredColumn ? row.measured : row.predicted;
    const bool isShort = figure && (m_isBrief || figure->countsOperations());
    if (column != LabelColumn && column != ErrorColumn && isShort && !figure->low) {
        if (const QString exact = exactText(*figure); !exact.isEmpty())
            return exact;
    }
    if (column == PredictedColumn && row.predicted && row.predicted->low && row.predicted->high)
        return tr("Expected between %1. Select the row to see why this number.")
            .arg(QString::fromStdString(row.predicted->rangeText(m_bytes)));
    if (column == LabelColumn || column == PredictedColumn)
        return tr("Select the row to see why this number.");
    if (column == MeasuredColumn && !row.measured)
        return tr("Not measured at this point.");
    if (column == MeasuredColumn && row.measured->low && row.measured->high)
        return tr("between %1 and %2 (minimum to third quartile)")
            .arg(QString::fromStdString(quantityText(*row.measured->low, row.measured->unit, m_bytes)),
                 QString::fromStdString(quantityText(*row.measured->high, row.measured->unit, m_bytes)));
    if (column == BaselineColumn)
        return differenceTip(row);
    if (column == ErrorColumn && row.isCounted)
        return tr("Counted from the parameters on both sides: a measurement does not change it.");
    if (column == ErrorColumn && row.withinNoise)
        return tr("(predicted − measured) / measured; ≈: the prediction lies within the noise of the measurement");
    if (column == ErrorColumn)
        return tr("(predicted − measured) / measured");
    return {};
}

QVariant FiguresModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid))
        return {};
    const FigureRow& row = m_rows[std::size_t(index.row())];
    const int column = index.column();
    switch (role) {
    case Qt::DisplayRole: return display(row, column);
    case Qt::ToolTipRole: return toolTip(row, column);
    case KeyRole: return row.key;
    case WordsRole: {
        const auto& figure = column == MeasuredColumn ? row.measured : row.predicted;
        return (column == PredictedColumn || column == MeasuredColumn) && figure && !figure->isNumber();
    }
    case SortRole:
        return column == ErrorColumn   ? QVariant(row.error)
            : column == BaselineColumn ? QVariant(row.difference)
                                       : QVariant(display(row, column));
    case Qt::TextAlignmentRole: return int(Qt::AlignVCenter | (column == LabelColumn ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::ForegroundRole: {
        const Theme& theme = currentTheme();
        if (column == LabelColumn)
            return theme.textDim;
        if (column == MeasuredColumn && row.isCounted)
            return theme.textFaint;
        if (column == BaselineColumn && (!row.baseline || std::abs(row.difference) < 5e-5))
            return theme.textFaint;
        return column == ErrorColumn ? errorColour(row) : theme.text;
    }
    default: return {};
    }
}

QVariant FiguresModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= NUM_COLUMNS)
        return {};
    static const char* const names[] = {QT_TR_NOOP("Figures"), QT_TR_NOOP("predicted"), QT_TR_NOOP("measured"),
                                        QT_TR_NOOP("vs\nmeasured"), QT_TR_NOOP("vs\nbaseline")};
    const Theme& theme = currentTheme();
    if (role == Qt::DisplayRole)
        return tr(names[section]);
    if (role == Qt::ToolTipRole && section == ErrorColumn)
        return tr("(predicted − measured) / measured");
    if (role == Qt::ToolTipRole && section == BaselineColumn)
        return tr("(shown − baseline) / baseline: measured against measured, else predicted against predicted");
    if (role == Qt::TextAlignmentRole)
        return int(Qt::AlignVCenter | (section == LabelColumn ? Qt::AlignLeft : Qt::AlignRight));
    if (role == Qt::ForegroundRole)
        return section == PredictedColumn ? theme.predictedText
            : section == MeasuredColumn   ? theme.measuredText
            : section == LabelColumn      ? theme.text
                                          : theme.textFaint;
    return {};
}

QString FiguresModel::text() const
{
    const auto value = [](const std::optional<Figure>& figure) {
        if (!figure)
            return QString();
        return QString::fromStdString(figure->isNumber() ? numberText(figure->number()) : figure->text());
    };
    const auto share = [](double part) {
        return std::isfinite(part) ? QString::fromStdString(numberText(part)) : QString();
    };
    const bool hasBaseline = !m_rows.empty() && m_rows.front().hasBaseline;
    QString text = QStringLiteral("figure\tunit\tpredicted\tmeasured\terror");
    text += hasBaseline ? QStringLiteral("\tbaseline\tdifference\n") : QStringLiteral("\n");
    for (const FigureRow& row : m_rows) {
        const Figure* any = row.predicted ? &*row.predicted : row.measured ? &*row.measured : nullptr;
        text += row.key + u'\t' + (any ? QString::fromUtf8(unitText(any->unit)) : QString()) + u'\t'
            + value(row.predicted) + u'\t' + value(row.measured) + u'\t' + share(row.error);
        if (hasBaseline)
            text += u'\t' + value(row.baseline) + u'\t' + share(row.baseline ? row.difference : nan);
        text += u'\n';
    }
    return text;
}

} // namespace memscape
