// SPDX-License-Identifier: GPL-3.0-or-later
// How lanes, banks and wavefronts are drawn: yellow is served now, grey was served before, blue waits.
#include "app/pictures/bank-conflicts/bank_picture.h"
#include "app/pictures/common/word_pen.h"

#include "app/pictures/common/fitting_text.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <vector>

namespace memscape {

namespace {

struct BankPen : WordPen
{
    const BankState& state;
    const BankLayout& layout;
    const BankHover& hover;
    int cursor;
    PlayButton play;

    QColor now() const { return theme.highlightFill; }
    QColor before() const { return mix(theme.background, theme.textDim, 0.5); }
    QColor waits() const { return mix(theme.background, theme.predicted, 0.75); }
    QColor colourOf(const PicturedLane& lane) const
    {
        return lane.wavefront == cursor ? now() : lane.wavefront < cursor ? before() : waits();
    }
    QPointF centreOf(const PicturedLane& lane) const;
    void head() const;
    void names() const;
    void grid() const;
    void words() const;
    void connections() const;
    void lanes() const;
    void marks() const;
    void strip() const;
    void legend(double top) const;
    void side() const;
    void cures() const;
};

/// The middle of the words that a lane accesses.
QPointF BankPen::centreOf(const PicturedLane& lane) const
{
    const QRectF first = layout.cell(lane.word % state.banks, state.lineOf(lane.word));
    return {first.left() + first.width() * lane.words / 2, first.center().y()};
}

void BankPen::head() const
{
    line(layout.title, state.title(), 1.1, theme.text, true);
    if (layout.hint.width() > 1 && play != PlayButton::None)
        line(layout.hint,
             state.pattern == QLatin1String("strided") ? tr("space plays · drag the banks: stride")
                                                       : tr("space plays · ← → step a wavefront"),
             0.85, theme.textFaint, false, Qt::AlignRight | Qt::AlignVCenter);
}

void BankPen::names() const
{
    const double u = plotUnit();
    const double room = QFontMetricsF(plotFont(0.72)).horizontalAdvance(QStringLiteral("31")) + 3 * u;
    const int every = layout.cellWidth >= room ? 1 : layout.cellWidth * 2 >= room ? 2 : 4;
    for (int bank = 0; bank < 32; bank += every) {
        const QRectF cell = layout.cell(bank, 0);
        line({cell.center().x() - room, layout.bankNames.top(), 2 * room, layout.bankNames.height()},
             QString::number(bank), 0.72, theme.textFaint, false, Qt::AlignHCenter | Qt::AlignVCenter);
    }
    line({layout.lineNames.left(), layout.bankNames.top(), layout.lineNames.width(), layout.bankNames.height()},
         tr("bank"), 0.72, theme.textFaint, false, Qt::AlignRight | Qt::AlignVCenter);
    const double height = QFontMetricsF(plotFont(0.72)).height();
    double free = -1e9;
    for (std::size_t i = 0; i < state.lines.size(); ++i) {
        const QRectF cell = layout.cell(0, int(i));
        if (cell.center().y() - height / 2 < free)
            continue;
        free = cell.center().y() + height / 2;
        line({layout.lineNames.left(), cell.center().y() - height / 2, layout.lineNames.width(), height},
             QString::number(state.lines[i] * 128), 0.72, theme.textFaint, false, Qt::AlignRight | Qt::AlignVCenter);
    }
}

void BankPen::grid() const
{
    const double seam = layout.cellHeight > 6 ? 1 : 0.5;
    const QColor free = mix(theme.background, theme.textDim, theme.dark ? 0.17 : 0.11);
    for (std::size_t i = 0; i < state.lines.size(); ++i) {
        for (int bank = 0; bank < 32; ++bank) {
            const QRectF cell = layout.cell(bank, int(i)).adjusted(seam, seam / 2, -seam, -seam / 2);
            painter.fillRect(cell, free);
            if (state.isPadding(state.lines[i] * 32 + bank)) {
                painter.fillRect(cell, theme.background);
                painter.setPen(QPen(theme.border, 1, Qt::DotLine));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(cell);
            }
        }
        const bool isGap = i > 0 && state.lines[i] != state.lines[i - 1] + 1;
        if (isGap) {
            const double y = layout.cell(0, int(i)).top();
            painter.setPen(QPen(theme.textFaint, 1, Qt::DotLine));
            painter.drawLine(QPointF(layout.grid.left(), y), QPointF(layout.grid.right(), y));
        }
    }
}

/// The words that are asked for; a word of several phases is served now if one of them is.
void BankPen::words() const
{
    const double seam = layout.cellHeight > 6 ? 1 : 0.5;
    std::vector<PicturedLane> ordered = state.lanes;
    std::stable_partition(ordered.begin(), ordered.end(),
                          [&](const PicturedLane& lane) { return lane.wavefront != cursor; });
    for (const PicturedLane& lane : ordered) {
        for (int i = 0; i < lane.words; ++i) {
            const QRectF cell =
                layout.cell((lane.word + i) % 32, state.lineOf(lane.word)).adjusted(seam, seam / 2, -seam, -seam / 2);
            painter.fillRect(cell, colourOf(lane));
        }
    }
}

void BankPen::connections() const
{
    const auto connect = [&](std::size_t i, const QColor& colour, double width) {
        const QPointF from = layout.lanes[i] + QPointF(0, layout.radius);
        painter.setPen(QPen(colour, width));
        painter.drawLine(from, centreOf(state.lanes[i]));
    };
    for (std::size_t i = 0; i < state.lanes.size(); ++i) {
        if (state.lanes[i].wavefront == cursor)
            connect(i, theme.highlight, 1.3);
    }
    if (hover.lane >= 0)
        connect(std::size_t(hover.lane), theme.text, 1.8);
    for (std::size_t i = 0; hover.word >= 0 && i < state.lanes.size(); ++i) {
        if (state.touches(state.lanes[i], hover.word))
            connect(i, theme.text, 1.8);
    }
}

void BankPen::lanes() const
{
    QFont font = plotFont(0.72, true);
    font.setPixelSize(std::max(5, std::min(font.pixelSize(), int(layout.radius * 1.05))));
    for (std::size_t i = 0; i < state.lanes.size(); ++i) {
        const QPointF centre = layout.lanes[i];
        const QColor colour = colourOf(state.lanes[i]);
        const bool lit = int(i) == hover.lane;
        painter.setPen(lit ? QPen(theme.text, 1.6) : QPen(Qt::NoPen));
        painter.setBrush(colour);
        painter.drawEllipse(centre, layout.radius, layout.radius);
        if (layout.radius < 5)
            continue;
        painter.setFont(font);
        painter.setPen(contrast(theme.background, colour) > contrast(theme.text, colour) ? theme.background
                                                                                         : theme.text);
        painter.drawText(
            QRectF(centre - QPointF(layout.radius, layout.radius), QSizeF(2 * layout.radius, 2 * layout.radius)),
            Qt::AlignCenter, QString::number(i));
    }
}

/// The word under the pointer.
void BankPen::marks() const
{
    if (hover.word < 0)
        return;
    painter.setPen(QPen(theme.text, 1.4));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(layout.cell(hover.word % 32, state.lineOf(hover.word)));
}

/// Every wavefront as the share of the banks that it opens.
void BankPen::strip() const
{
    for (int i = 0; i < state.wavefronts; ++i) {
        const double seam = state.wavefronts > 48 ? 0.3 : 1;
        const QRectF cell = layout.wavefront(i, state.wavefronts).adjusted(seam, 0, -seam, 0);
        painter.fillRect(cell, mix(theme.background, theme.textDim, theme.dark ? 0.17 : 0.11));
        QRectF busy = cell;
        busy.setTop(cell.bottom() - std::max(2.0, cell.height() * state.banksBusyIn(i) / 32));
        painter.fillRect(busy, i == cursor ? now() : i < cursor ? before() : waits());
        if (i == cursor) {
            painter.setPen(QPen(theme.highlight, 1.2));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(cell);
        }
    }
}

void BankPen::legend(double top) const
{
    const double u = plotUnit();
    double left = layout.words.left();
    const QFontMetricsF metrics(plotFont(0.8));
    const std::pair<QColor, QString> entries[] = {{now(), tr("now")}, {before(), tr("served")}, {waits(), tr("waits")}};
    if (top + 14 * u > layout.words.bottom())
        return;
    for (const auto& [colour, words] : entries) {
        painter.fillRect(QRectF(left, top + 3 * u, 9 * u, 9 * u), colour);
        const double width = metrics.horizontalAdvance(words) + 2 * u;
        line({left + 13 * u, top, width, 15 * u}, words, 0.8, theme.textDim);
        left += 13 * u + width + 10 * u;
    }
}

void BankPen::side() const
{
    const double u = plotUnit();
    QRectF box = layout.words;
    const auto put = [&](const QString& text, double size, const QColor& colour, bool bold, double gap) {
        painter.setFont(plotFont(size, bold));
        const int flags = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;
        const QRectF used = painter.boundingRect(box, flags, text);
        if (used.bottom() > layout.words.bottom() + 1)
            return; // no room for half a sentence
        painter.setPen(colour);
        painter.drawText(box, flags, text);
        box.setTop(used.bottom() + gap * u);
    };
    const int served = state.servedIn(cursor);
    const int waiting = int(state.lanes.size()) - state.servedBefore(cursor) - served;
    put(tr("Wavefront %1 of %2").arg(cursor + 1).arg(state.wavefronts), 0.95, theme.text, true, 3);
    if (const QString phase = state.phaseWords(cursor); !phase.isEmpty())
        put(phase, 0.85, theme.text, false, 2);
    put(tr("%1 of 32 banks open · %2 served · %3 waiting").arg(state.banksBusyIn(cursor)).arg(served).arg(waiting),
        0.85, theme.textDim, false, 5);
    legend(box.top());
    box.setTop(box.top() + 22 * u);
    if (hover.lane >= 0)
        put(state.laneWords(hover.lane), 0.8, theme.text, false, 3);
    else if (hover.word >= 0)
        put(state.wordWords(hover.word), 0.8, theme.text, false, 3);
    painter.setFont(plotFont(0.8));
    painter.setPen(theme.warning);
    painter.drawText(layout.note, Qt::AlignLeft | Qt::AlignBottom | Qt::TextWordWrap,
                     fittingText(state.notHere, painter.font(), layout.note.width(), layout.note.height()));
}

void BankPen::cures() const
{
    const double u = plotUnit();
    line(layout.curesTitle, tr("The same lanes in a tile …"), 0.85, theme.textDim, true);
    int most = 1;
    double widest = 0;
    for (const BankCure& cure : state.cures) {
        most = std::max(most, cure.wavefronts);
        widest = std::max(widest, QFontMetricsF(plotFont(0.82, true)).horizontalAdvance(cure.label));
    }
    const int chosen = state.chosenCure();
    for (std::size_t i = 0; i < layout.cures.size(); ++i) {
        const BankCure& cure = state.cures[i];
        const QRectF row = layout.cures[i];
        const bool isChosen = int(i) == chosen;
        painter.setPen(QPen(isChosen || int(i) == hover.cure ? theme.predicted : theme.border, 1));
        painter.setBrush(theme.raised);
        painter.drawRoundedRect(row.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
        const double names = std::min(row.width() * 0.62, std::max(92 * u, widest + 14 * u)), value = 24 * u;
        line({row.left() + 6 * u, row.top(), names - 6 * u, row.height()}, cure.label, 0.82,
             isChosen ? theme.text : theme.textDim, isChosen);
        const double room = std::max(8.0, row.width() - names - value - 10 * u);
        const QRectF bar(row.left() + names, row.center().y() - 4 * u, std::max(2.0, room * cure.wavefronts / most),
                         8 * u);
        painter.fillRect(bar, isChosen ? theme.predicted : mix(theme.background, theme.predicted, 0.5));
        line({bar.right() + 5 * u, row.top(), value, row.height()}, QString::number(cure.wavefronts), 0.82, theme.text,
             true);
    }
}

} // namespace

void paintBanks(QPainter& painter, const BankState& state, const BankLayout& layout, int cursor, PlayButton button,
                const BankHover& hover, const Theme& theme)
{
    painter.setRenderHint(QPainter::Antialiasing);
    if (state.empty() || cursor < 0)
        return;
    const BankPen pen{{painter, theme}, state, layout, hover, cursor, button};
    pen.head();
    pen.names();
    pen.grid();
    pen.words();
    pen.connections();
    pen.lanes();
    pen.marks();
    pen.strip();
    pen.playButton(layout.playButton, button);
    pen.side();
    pen.cures();
}

} // namespace memscape
