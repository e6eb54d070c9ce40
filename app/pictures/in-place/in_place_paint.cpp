// SPDX-License-Identifier: GPL-3.0-or-later
// How tensors, and what becomes of them, are drawn.
#include "app/pictures/in-place/in_place_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

constexpr double lineGap = 1; ///< between two lines, in pixels: y has a tail

QColor inputColour(const Theme& theme)
{
    return theme.series(0);
}
QColor resultColour(const Theme& theme)
{
    return theme.series(1);
}

QColor colourOf(TensorRole role, const Theme& theme)
{
    switch (role) {
    case TensorRole::Input: return inputColour(theme);
    case TensorRole::Result: return resultColour(theme);
    case TensorRole::Copy: return mix(theme.background, inputColour(theme), 0.7);
    case TensorRole::Factor: return mix(theme.background, theme.series(4), 0.55);
    }
    return theme.empty;
}

QColor colourOf(Move move, const Theme& theme)
{
    return mix(theme.background, theme.textDim, move == Move::Read ? 0.55 : move == Move::Fetched ? 0.2 : 0.75);
}

/// The first of these texts that fits, or nothing.
void paintFitting(QPainter& painter, const QRectF& rect, int flags, const QStringList& texts)
{
    const QFontMetricsF metrics(painter.font());
    for (const QString& one : texts) {
        if (!one.isEmpty() && metrics.horizontalAdvance(one) <= rect.width() && metrics.height() <= rect.height() + 3)
            return painter.drawText(rect, flags, one);
    }
}

/// Two lines in the middle of a box, the first alone where there is no room for both. Of the first, what fits.
void paintLines(QPainter& painter, const QRectF& box, const QStringList& first, const QString& second, bool isBold)
{
    painter.setFont(plotFont(0.85, isBold));
    const double high = QFontMetricsF(painter.font()).height();
    const QFont small = plotFont(0.75);
    const QFontMetricsF metrics(small);
    const double both = high + metrics.height() + lineGap;
    const bool hasBoth =
        !second.isEmpty() && both <= box.height() && metrics.horizontalAdvance(second) <= box.width() - 4;
    if (!hasBoth)
        return paintFitting(painter, box, Qt::AlignCenter, first);
    const double top = box.center().y() - both / 2;
    paintFitting(painter, QRectF(box.left(), top, box.width(), high), Qt::AlignCenter, first);
    painter.setFont(small);
    painter.drawText(QRectF(box.left(), top + high + lineGap, box.width(), metrics.height()), Qt::AlignCenter, second);
}

/// Kept for backward: the corner at the right.
void paintCorner(QPainter& painter, const QRectF& box, double unit, const Theme& theme)
{
    const double side = std::min(9 * unit, box.width() * 0.4);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.text);
    painter.drawPolygon(
        QPolygonF{box.topRight() - QPointF(side, 0), box.topRight(), box.topRight() + QPointF(0, side)});
}

/// What becomes of a tensor in its memory: the first half of it is y already.
void paintOverwriting(QPainter& painter, const QRectF& box, const Theme& theme, double unit, bool isLost)
{
    QRectF done = box, rest = box;
    done.setRight(box.center().x());
    rest.setLeft(box.center().x());
    painter.fillRect(done, resultColour(theme));
    painter.fillRect(rest, inputColour(theme));
    painter.setPen(textOn(resultColour(theme)));
    paintLines(painter, done, {QStringLiteral("y")}, {}, true);
    painter.setPen(textOn(inputColour(theme)));
    paintLines(painter, rest, {QStringLiteral("x")}, {}, true);
    const QColor front = isLost ? theme.bad : theme.text;
    painter.setPen(QPen(front, 2 * unit));
    painter.drawLine(done.topRight(), done.bottomRight());
    if (box.width() < 40 * unit) // the letters need it
        return;
    painter.setPen(Qt::NoPen);
    painter.setBrush(front);
    const QPointF at(done.right(), done.center().y());
    const double side = 5 * unit;
    painter.drawPolygon(QPolygonF{at - QPointF(0, side), at + QPointF(side, 0), at + QPointF(0, side)});
}

void paintDashed(QPainter& painter, const QRectF& box, const QColor& colour, double unit)
{
    painter.setPen(QPen(colour, unit, Qt::DashLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
}

/// "copy of x", "copy", "c".
QStringList symbolsOf(const ShownTensor& tensor, InPlaceMoment moment)
{
    const QString symbol = tensor.symbol(moment);
    return {symbol, symbol.section(u' ', 0, 0), symbol.left(1)};
}

QString noteOf(const InPlaceState& state, const ShownTensor& tensor, InPlaceMoment moment)
{
    if (tensor.isKeptForBackward(moment) && (moment == InPlaceMoment::After || tensor.role == TensorRole::Copy))
        return tr("for backward");
    if (moment == InPlaceMoment::Before && tensor.wasSaved)
        return tr("saved already");
    if (moment != InPlaceMoment::During && tensor.isOwned && tensor.symbol(moment) == QStringLiteral("x"))
        return tr("owner keeps it");
    return state.bytes(tensor.bytes);
}

void paintTensor(QPainter& painter, const InPlaceState& state, const InPlaceLayout& layout, const InPlaceBlock& block,
                 const Theme& theme)
{
    const ShownTensor& tensor = state.ways[std::size_t(block.way)].tensors[block.index];
    const InPlaceMoment moment = block.moment();
    const double u = layout.unit;
    const QRectF box = block.rect.adjusted(0.5, 0, -1, 0);
    const bool isLater = moment != InPlaceMoment::Before;
    const bool isRefused = block.way == 1 && isLater && state.isRefusedAtCall();
    const QStringList symbol = symbolsOf(tensor, moment);
    if (!tensor.isThere(moment)) {
        paintDashed(painter, box, theme.textFaint, u);
        painter.setPen(theme.textFaint);
        return paintLines(painter, box, symbol, tr("freed"), false);
    }
    if (isRefused) {
        paintDashed(painter, box, tensor.overwrites ? theme.bad : theme.textFaint, u);
        painter.setPen(tensor.overwrites ? theme.bad : theme.textFaint);
        return paintLines(painter, box, symbol, moment == InPlaceMoment::During ? tr("refused") : tr("not made"),
                          false);
    }
    const QColor colour =
        colourOf(moment == InPlaceMoment::Before && tensor.overwrites ? TensorRole::Input : tensor.role, theme);
    const bool isLost = block.way == 1 && isLater && !state.isAllowed && tensor.overwrites;
    if (moment == InPlaceMoment::During && tensor.overwrites) {
        paintOverwriting(painter, box, theme, u, isLost);
    } else if (moment == InPlaceMoment::During && tensor.role == TensorRole::Result) {
        QRectF done = box;
        done.setWidth(box.width() / 2);
        painter.fillRect(box, mix(theme.background, colour, 0.25));
        painter.fillRect(done, colour);
        painter.setPen(textOn(colour));
        paintLines(painter, done, symbol, {}, true);
    } else {
        painter.fillRect(box, colour);
        if (tensor.role == TensorRole::Copy) {
            QColor lines = theme.background;
            lines.setAlphaF(0.25F);
            painter.fillRect(box, QBrush(lines, Qt::BDiagPattern));
        }
        painter.setPen(textOn(colour));
        paintLines(painter, box, symbol, isLost ? tr("x is lost") : noteOf(state, tensor, moment), true);
    }
    if (isLost) {
        painter.setPen(QPen(theme.bad, 2.5 * u));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box.adjusted(1, 1, -1, -1));
    } else if (tensor.isKeptForBackward(moment)) {
        paintCorner(painter, box, u, theme);
    }
}

void paintPart(QPainter& painter, const InPlaceState& state, const InPlaceBlock& block, const Theme& theme, double unit)
{
    const MovedPart& part = state.ways[std::size_t(block.way)].parts[block.index];
    const QRectF box = block.rect.adjusted(0.5, 0, -1, 0);
    if (block.way == 1 && state.isRefusedAtCall()) {
        paintDashed(painter, box, theme.textFaint, unit);
        painter.setPen(theme.textFaint);
    } else {
        const QColor colour = colourOf(part.move, theme);
        painter.fillRect(box, colour);
        painter.setPen(textOn(colour));
    }
    painter.setFont(plotFont(0.75));
    paintFitting(painter, box.adjusted(2, 0, -2, 0), Qt::AlignCenter,
                 {QStringLiteral("%1 %2").arg(moveName(part.move), state.bytes(part.bytes)), moveName(part.move)});
}

void paintTotal(QPainter& painter, const QRectF& box, const QString& first, const QColor& colour, const QString& second,
                const QColor& secondColour)
{
    const QFont bold = plotFont(0.85, true), small = plotFont(0.75);
    const QFontMetricsF metrics(bold), under(small);
    const bool hasBoth = !second.isEmpty() && metrics.height() + under.height() + lineGap <= box.height()
        && under.horizontalAdvance(second) <= box.width();
    const double height = metrics.height() + (hasBoth ? under.height() + lineGap : 0);
    const double top = box.center().y() - height / 2;
    painter.setFont(bold);
    painter.setPen(colour);
    painter.drawText(QRectF(box.left(), top, box.width(), metrics.height()), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(first, Qt::ElideRight, box.width()));
    if (!hasBoth)
        return;
    painter.setFont(small);
    painter.setPen(secondColour);
    painter.drawText(QRectF(box.left(), top + metrics.height() + lineGap, box.width(), under.height()),
                     Qt::AlignLeft | Qt::AlignVCenter, second);
}

void paintLane(QPainter& painter, const InPlaceState& state, const InPlaceLayout& layout, int which, const Theme& theme)
{
    const InPlaceLane& lane = layout.lanes[std::size_t(which)];
    const InPlaceWay& way = state.ways[std::size_t(which)];
    painter.setFont(plotFont(0.9, true));
    const QString name = wayName(which);
    const double used = QFontMetricsF(painter.font()).horizontalAdvance(name);
    painter.setPen(theme.text);
    painter.drawText(lane.head, Qt::AlignLeft | Qt::AlignVCenter, name);
    painter.setFont(plotFont(0.85));
    painter.setPen(theme.textDim);
    const QRectF rest = lane.head.adjusted(used + 10 * layout.unit, 0, 0, 0);
    const QString formula = which == 0 ? QStringLiteral("y = f(x)") : QStringLiteral("f_(x)");
    if (which == 1 && !state.isAllowed) {
        painter.setPen(theme.bad);
        paintFitting(painter, rest, Qt::AlignLeft | Qt::AlignVCenter,
                     {QStringLiteral("%1  ✕ %2").arg(formula, tr("refused %1").arg(state.at)),
                      QStringLiteral("✕ %1").arg(tr("refused"))});
    } else {
        paintFitting(painter, rest, Qt::AlignLeft | Qt::AlignVCenter, {formula});
    }
    const bool isRefused = which == 1 && state.isRefusedAtCall();
    for (int row = 0; row < inPlaceRows; ++row) {
        QString second;
        QColor secondColour = theme.textDim;
        double bytes = way.moved;
        if (row + 1 < inPlaceRows) {
            const InPlaceMoment moment = inPlaceMoments[std::size_t(row)];
            bytes = way.total(moment);
            if (moment == InPlaceMoment::During && way.measuredPeak) {
                second = QStringLiteral("● %1").arg(state.bytes(*way.measuredPeak));
                secondColour = theme.measuredText;
            }
        }
        const bool isReal = !isRefused || row == 0;
        paintTotal(painter, lane.totals[std::size_t(row)], state.bytes(bytes), isReal ? theme.text : theme.textFaint,
                   isReal ? second : tr("if it ran"), isReal ? secondColour : theme.textFaint);
    }
    if (lane.saving.isEmpty() || isRefused)
        return;
    paintDashed(painter, lane.saving.adjusted(1, 0, -1, 0), theme.textFaint, layout.unit);
    painter.setPen(theme.textDim);
    paintLines(painter, lane.saving.adjusted(4, 0, -4, 0), {tr("not needed"), tr("less")},
               state.bytes(lane.saving.width() / layout.pixelsPerByte), false);
}

void paintLabels(QPainter& painter, const InPlaceLayout& layout, bool hasBackward, const Theme& theme)
{
    const std::array<QString, inPlaceRows> second{QString(), tr("the peak"),
                                                  hasBackward ? tr("until backward") : QString(), tr("through memory")};
    for (int row = 0; row < inPlaceRows; ++row) {
        const bool isMoved = row + 1 == inPlaceRows;
        const InPlaceMoment moment = inPlaceMoments[std::size_t(std::min(row, inPlaceRows - 2))];
        const QString first = isMoved ? tr("moved") : layout.isWide ? momentName(moment) : shortMomentName(moment);
        const QRectF& box = layout.labels[std::size_t(row)];
        const QFont font = plotFont(0.82), small = plotFont(0.75);
        const double high = QFontMetricsF(font).height(), low = QFontMetricsF(small).height();
        const bool hasBoth =
            layout.isWide && !second[std::size_t(row)].isEmpty() && high + low + lineGap <= box.height();
        const double top = box.center().y() - (high + (hasBoth ? low + lineGap : 0)) / 2;
        painter.setFont(font);
        painter.setPen(theme.textDim);
        painter.drawText(QRectF(box.left(), top, box.width(), high), Qt::AlignLeft | Qt::AlignVCenter,
                         QFontMetricsF(font).elidedText(first, Qt::ElideRight, box.width()));
        painter.setFont(small);
        painter.setPen(theme.textFaint);
        if (hasBoth)
            painter.drawText(QRectF(box.left(), top + high + lineGap, box.width(), low),
                             Qt::AlignLeft | Qt::AlignVCenter, second[std::size_t(row)]);
    }
}

void paintHead(QPainter& painter, const InPlaceState& state, const InPlaceLayout& layout, const Theme& theme)
{
    const double u = layout.unit;
    painter.setFont(plotFont(1.05, true));
    painter.setPen(theme.text);
    const QFontMetricsF metrics(painter.font());
    const QString whole = state.title(); // what does not fit, the form says
    painter.drawText(layout.title, Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.horizontalAdvance(whole) <= layout.title.width()
                         ? whole
                         : metrics.elidedText(state.subject, Qt::ElideRight, layout.title.width()));
    if (layout.legend.isEmpty() || state.empty())
        return;
    painter.setFont(plotFont(0.82));
    const QString words = tr("kept for backward");
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(words);
    QRectF rest = layout.legend;
    if (state.hasGradients) {
        painter.setPen(theme.textDim);
        painter.drawText(rest, Qt::AlignRight | Qt::AlignVCenter, words);
        const QRectF swatch(rest.right() - width - 18 * u, rest.center().y() - 6 * u, 12 * u, 12 * u);
        painter.fillRect(swatch, mix(theme.background, theme.textFaint, 0.4));
        paintCorner(painter, swatch, u, theme);
        rest.setRight(swatch.left() - 14 * u);
    }
    painter.setPen(theme.measuredText);
    if (state.isMeasured())
        painter.drawText(rest, Qt::AlignRight | Qt::AlignVCenter, QStringLiteral("● %1").arg(tr("measured")));
}

} // namespace

void paintInPlace(QPainter& painter, const InPlaceState& state, const InPlaceLayout& layout, int marked,
                  const Theme& theme)
{
    painter.setRenderHint(QPainter::Antialiasing);
    paintHead(painter, state, layout, theme);
    if (state.empty())
        return;
    paintLabels(painter, layout, state.hasGradients, theme);
    for (int way = 0; way < int(layout.lanes.size()); ++way)
        paintLane(painter, state, layout, way, theme);
    for (const InPlaceBlock& block : layout.blocks) {
        if (!block.isMoved()) {
            paintTensor(painter, state, layout, block, theme);
            continue;
        }
        paintPart(painter, state, block, theme, layout.unit);
    }
    painter.setFont(plotFont(0.85));
    painter.setPen(state.isAllowed ? theme.text : theme.bad);
    painter.drawText(layout.verdict, Qt::TextWordWrap, state.verdict());
    painter.setPen(theme.textDim);
    painter.drawText(layout.backward, Qt::TextWordWrap, state.backward());
    if (marked >= 0 && marked < int(layout.blocks.size())) {
        painter.setPen(QPen(theme.highlight, 2 * layout.unit));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(layout.blocks[std::size_t(marked)].rect.adjusted(1, 1, -1, -1));
    }
}

} // namespace memscape
