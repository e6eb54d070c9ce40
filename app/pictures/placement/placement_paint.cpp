// SPDX-License-Identifier: GPL-3.0-or-later
// How places are drawn: bands with nodes, thin lines where a tensor stays, thick ones where it crosses, with its bytes
// and time where they have room; weights that come up stand below their operator; lanes of compute and copies.
#include "app/pictures/common/word_pen.h"
#include "app/pictures/placement/placement_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

namespace {

struct PlacementPen : WordPen
{
    const PlacementState& state;
    const PlacementLayout& layout;

    QColor computeColour(bool isOnHost) const
    {
        return isOnHost ? mix(theme.background, theme.series(1), 0.55) : theme.series(1);
    }
    QColor copyColour(bool isUp) const { return theme.series(isUp ? 0 : 4); }
    QColor colourOf(const PlacedPiece& piece) const
    {
        const QString& lane = state.lanes[qsizetype(piece.lane)];
        if (!piece.isCopy())
            return computeColour(lane == QLatin1String("host"));
        return lane == QLatin1String("disk") ? mix(theme.background, theme.series(0), 0.5)
                                             : copyColour(lane == QLatin1String("copies up"));
    }

    void titleLine() const
    {
        QRectF left = layout.title, right = layout.title;
        left.setWidth(layout.title.width() * 0.55);
        right.setLeft(left.right());
        line(left, state.title, 1.0, theme.text, true);
        QString text =
            tr("peak %1 of %2").arg(state.bytesText(double(state.peak)), state.bytesText(double(state.limit)));
        if (state.measured)
            text = tr("measured %1 · ").arg(state.secondsText(*state.measured)) + text;
        line(right, text, 0.9, state.peak > state.limit ? theme.bad : theme.textDim, true, Qt::AlignRight);
    }

    void band(std::size_t index, bool isTarget) const
    {
        painter.setPen(isTarget ? QPen(theme.highlightText, 1.5 * layout.unit) : QPen(theme.border, layout.unit));
        painter.setBrush(mix(theme.background, theme.grid, 0.4));
        painter.drawRoundedRect(layout.bands[index], 4, 4);
        line(layout.bandLabels[index], index == 0 ? tr("device") : tr("host"), 0.9, theme.textDim, true,
             Qt::AlignRight);
    }

    /// From what makes a tensor to what reads it.
    void edge(std::size_t from, std::size_t to) const
    {
        const bool crosses = state.nodes[from].isOnHost != state.nodes[to].isOnHost;
        const QRectF& a = layout.nodes[from];
        const QRectF& b = layout.nodes[to];
        const bool isUp = state.nodes[from].isOnHost;
        if (!crosses) {
            painter.setPen(QPen(theme.textFaint, layout.unit));
            if (to == from + 1) {
                painter.drawLine(QPointF(a.right(), a.center().y()), QPointF(b.left(), b.center().y()));
            } else { // over what lies between
                const double y = a.top() - 3 * layout.unit;
                painter.drawPolyline(QPolygonF{
                    {a.center().x(), a.top()}, {a.center().x(), y}, {b.center().x(), y}, {b.center().x(), b.top()}});
            }
            return;
        }
        painter.setPen(QPen(copyColour(isUp), 2.5 * layout.unit));
        const QPointF begin(a.center().x(), isUp ? a.top() : a.bottom());
        const QPointF end(b.center().x(), isUp ? b.bottom() : b.top());
        painter.drawLine(begin, end);
    }

    /// Bytes and time of each crossing where no other words are.
    void crossings() const
    {
        double free = layout.bands[0].left();
        const double y = layout.bands[0].bottom(), height = layout.bands[1].top() - y;
        for (std::size_t i = 0; i < state.nodes.size(); ++i) {
            const QString words = state.copyWords(i);
            if (words.isEmpty())
                continue;
            std::size_t reader = i;
            for (std::size_t k = i + 1; k < state.nodes.size(); ++k) {
                const auto& inputs = state.nodes[k].inputs;
                if (state.nodes[k].isOnHost != state.nodes[i].isOnHost
                    && std::ranges::find(inputs, i) != inputs.end()) {
                    reader = k;
                    break;
                }
            }
            if (reader == i)
                continue;
            painter.setFont(plotFont(0.8));
            const double wide = QFontMetricsF(painter.font()).horizontalAdvance(words) + 8 * layout.unit;
            const double middle = (layout.nodes[i].center().x() + layout.nodes[reader].center().x()) / 2;
            const double left = std::max(free, middle + 5 * layout.unit);
            if (left + wide > layout.bands[0].right() || left > middle + 60 * layout.unit)
                continue;
            const QRectF box(left, y + height / 2 - 8 * layout.unit, wide, 16 * layout.unit);
            painter.fillRect(box, theme.background);
            line(box.adjusted(3 * layout.unit, 0, 0, 0), words, 0.8, theme.text);
            free = left + wide;
        }
    }

    void node(std::size_t i, const PlacementHand& hand, const QRectF& box) const
    {
        const PlacedNode& one = state.nodes[i];
        const QColor colour =
            !one.computes() ? mix(theme.background, theme.textDim, 0.35) : computeColour(one.isOnHost);
        const bool isChosen = hand.chosen == int(i);
        const double u = layout.unit;
        const bool isWide = box.width() > 4 * u;
        painter.setPen(isChosen           ? QPen(theme.highlightText, 2 * u)
                           : one.isPinned ? QPen(theme.text, 1.5 * u)
                                          : QPen(Qt::NoPen));
        painter.setBrush(colour);
        isWide ? painter.drawRoundedRect(box, 3, 3) : painter.drawRect(box);
        const QFontMetricsF metrics(plotFont(0.75, true));
        if (box.width() > metrics.horizontalAdvance(one.name.left(4)) + 6) // "layer10", "layer11": the ends differ
            line(box.adjusted(2, 0, -2, 0), metrics.elidedText(one.name, Qt::ElideMiddle, box.width() - 4), 0.75,
                 textOn(colour), true, Qt::AlignHCenter);
    }

    void home(std::size_t i) const
    {
        const QRectF& box = layout.homes[i];
        const QRectF& above = layout.nodes[i];
        if (box.isEmpty())
            return;
        const QColor colour = copyColour(true);
        painter.setPen(QPen(colour, layout.unit * (box.width() > 4 * layout.unit ? 1.5 : 0.7)));
        painter.drawLine(QPointF(box.center().x(), box.top()), QPointF(above.center().x(), above.bottom()));
        painter.setBrush(mix(theme.background, colour, 0.35));
        painter.drawRect(box);
        const QString words =
            state.nodes[i].isStreamed ? state.bytesText(double(state.nodes[i].weights)) : tr("optimizer");
        painter.setFont(plotFont(0.75));
        if (QFontMetricsF(painter.font()).horizontalAdvance(words) + 4 < box.width())
            line(box, words, 0.75, theme.text, false, Qt::AlignHCenter);
    }

    void lanes() const
    {
        for (std::size_t i = 0; i < layout.lanes.size(); ++i)
            lane(layout.lanes[i], layout.laneLabels[i], state.lanes[qsizetype(i)]);
        for (std::size_t i = 0; i < state.pieces.size(); ++i)
            lanePiece(layout.pieces[i], colourOf(state.pieces[i]), state.nodes[state.pieces[i].node].name,
                      plotFont(0.7));
    }

    void foot() const
    {
        QStringList said;
        if (state.nodes.size() < state.allNodes)
            said << tr("the first %1 of %2 nodes").arg(state.nodes.size()).arg(state.allNodes);
        if (!state.serial.isEmpty())
            said << state.serial;
        if (said.isEmpty())
            said << (state.trains ? tr("forward, then backward; the host, which has the optimizer, updates when all "
                                       "gradients are there")
                                  : tr("boxes below others are weights that come up; thick lines are copies"));
        line(layout.foot, said.join(tr(" · ")), 0.85, theme.textDim);
    }
};

} // namespace

void paintPlacement(QPainter& painter, const PlacementState& state, const PlacementLayout& layout,
                    const PlacementHand& hand, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    const PlacementPen pen{{painter, theme}, state, layout};
    pen.titleLine();
    const int target = hand.dragged >= 0 ? layout.bandAt(hand.pointer) : -1;
    for (std::size_t i = 0; i < 2; ++i)
        pen.band(i, target == int(i));
    for (std::size_t i = 0; i < state.nodes.size(); ++i) {
        pen.home(i);
        for (const std::size_t input : state.nodes[i].inputs)
            pen.edge(input, i);
    }
    for (std::size_t i = 0; i < state.nodes.size(); ++i)
        pen.node(i, hand, layout.nodes[i]);
    pen.crossings();
    pen.lanes();
    pen.foot();
    if (hand.dragged >= 0) {
        QRectF box = layout.nodes[std::size_t(hand.dragged)];
        box.moveCenter(hand.pointer);
        painter.setOpacity(0.7);
        pen.node(std::size_t(hand.dragged), hand, box);
    }
    painter.restore();
}

} // namespace memscape
