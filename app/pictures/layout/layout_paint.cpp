// SPDX-License-Identifier: GPL-3.0-or-later
// How chips, elements and lines are drawn: yellow is visited now, amber was visited, what is outlined in a line is
// in the small cache, pale slots of it came along for nothing that is shown.
#include "app/pictures/common/word_pen.h"
#include "app/pictures/layout/layout_picture.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

struct LayoutPen : WordPen
{
    const LayoutState& state;
    const LayoutGeometry& layout;
    const LayoutMoment& moment;
    std::vector<int> stepOf;          ///< of each cell
    std::vector<std::int64_t> cached; ///< granules, ascending

    bool isVisited(int cell) const { return stepOf[std::size_t(cell)] <= moment.cursor; }
    bool isCached(std::int64_t granule) const { return std::ranges::binary_search(cached, granule); }
    bool isNow(int cell) const { return stepOf[std::size_t(cell)] == moment.cursor; }
    QColor free() const { return mix(theme.background, theme.textDim, theme.dark ? 0.17 : 0.11); }
    QColor colourOf(int cell) const
    {
        if (isNow(cell))
            return theme.highlightFill;
        return isVisited(cell) ? mix(theme.background, theme.fill, 0.75) : mix(theme.background, theme.textDim, 0.32);
    }
    void head() const;
    void chip(const QRectF& rect, const OperationChip& chip, int index) const;
    void arrow(const QRectF& from, const QRectF& to) const;
    void chips() const;
    void grid() const;
    void names() const;
    void strip() const;
    void marks() const;
    void foot() const;
};

void LayoutPen::head() const
{
    line(layout.title, state.title(), 1.1, theme.text, true);
    QRectF rest = layout.hint;
    rest.setLeft(layout.title.left() + QFontMetricsF(plotFont(1.1, true)).horizontalAdvance(state.title())
                 + 20 * plotUnit());
    if (const QString refusal = state.refusal(); !refusal.isEmpty())
        line(rest, refusal, 0.85, theme.bad, false, Qt::AlignRight | Qt::AlignVCenter);
    else if (moment.play != PlayButton::None)
        line(layout.hint, tr("click an operation to edit, drag to move · space plays"), 0.85, theme.textFaint, false,
             Qt::AlignRight | Qt::AlignVCenter);
}

void LayoutPen::chip(const QRectF& rect, const OperationChip& chip, int index) const
{
    const double u = plotUnit();
    const bool isHovered = index >= 0 ? moment.hover.chip == index : moment.hover.onBase;
    const QColor edge = chip.isRefused ? theme.bad
        : chip.isCopy                  ? theme.highlight
        : isHovered                    ? theme.predicted
                                       : theme.border;
    painter.setPen(QPen(edge, chip.isRefused || chip.isCopy ? 1.4 : 1, chip.isRefused ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(index < 0 ? mix(theme.background, theme.raised, 0.6) : theme.raised);
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
    const QRectF upper(rect.left() + 9 * u, rect.top() + 3 * u, rect.width() - 18 * u - (index >= 0 ? 12 * u : 0),
                       16 * u);
    line(upper, chip.text, 0.88, chip.isRefused ? theme.bad : theme.text, true);
    const QRectF lower(rect.left() + 9 * u, rect.top() + 18 * u, rect.width() - 14 * u, 15 * u);
    const QFontMetricsF metrics(plotFont(0.76));
    const QString strides = chip.strides + QStringLiteral(" · ");
    line(lower, strides, 0.76, theme.textDim);
    const double used = std::min(lower.width(), metrics.horizontalAdvance(strides));
    line(lower.adjusted(used, 0, 0, 0), chip.verdict, 0.76,
         chip.isRefused    ? theme.bad
             : chip.isCopy ? theme.highlightText
                           : theme.textDim,
         chip.isRefused || chip.isCopy);
    if (index >= 0)
        line(layout.removeOf(index).translated(rect.topLeft() - layout.chips[std::size_t(index)].topLeft()),
             QStringLiteral("×"), 0.9, isHovered && moment.hover.onRemove ? theme.bad : theme.textFaint, false,
             Qt::AlignCenter);
}

void LayoutPen::arrow(const QRectF& from, const QRectF& to) const
{
    if (to.top() > from.bottom()) // the next row begins without one
        return;
    const double y = from.center().y();
    painter.setPen(QPen(theme.textFaint, 1.2));
    painter.drawLine(QPointF(from.right() + 3, y), QPointF(to.left() - 3, y));
    painter.drawLine(QPointF(to.left() - 7, y - 3), QPointF(to.left() - 3, y));
    painter.drawLine(QPointF(to.left() - 7, y + 3), QPointF(to.left() - 3, y));
}

void LayoutPen::chips() const
{
    chip(layout.base, state.base, -1);
    QRectF before = layout.base;
    for (std::size_t i = 0; i < layout.chips.size(); ++i) {
        arrow(before, layout.chips[i]);
        before = layout.chips[i];
        if (int(i) != moment.dragged)
            chip(layout.chips[i], state.chips[i], int(i));
    }
    if (moment.play == PlayButton::None)
        return;
    arrow(before, layout.plus);
    painter.setPen(QPen(moment.hover.onPlus ? theme.predicted : theme.border, 1, Qt::DashLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(layout.plus.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
    line(layout.plus, QStringLiteral("+"), 1.2, theme.textDim, true, Qt::AlignCenter);
    if (moment.dragged >= 0)
        chip(layout.chips[std::size_t(moment.dragged)].translated(moment.draggedBy),
             state.chips[std::size_t(moment.dragged)], moment.dragged);
}

void LayoutPen::names() const
{
    const double u = plotUnit();
    const double room = 13 * u;
    for (int panel = 0; panel < state.panels && layout.cell >= 9 * u; ++panel) {
        for (int column = 0; column < state.columns; ++column) {
            const QRectF cell = layout.cellRect(panel, 0, column);
            line({cell.left(), cell.top() - room, cell.width(), room}, QString::number(column), 0.72, theme.textFaint,
                 false, Qt::AlignCenter);
        }
    }
    for (int row = 0; state.asked.view.rank() > 1 && row < state.rows && layout.cell >= 9 * u; ++row) {
        const QRectF cell = layout.cellRect(0, row, 0);
        line({cell.left() - 26 * u, cell.top(), 22 * u, cell.height()}, QString::number(row), 0.72, theme.textFaint,
             false, Qt::AlignRight | Qt::AlignVCenter);
    }
    const TensorView& view = state.asked.view;
    const std::size_t rank = view.size.size();
    if (rank > 0 && view.size[rank - 1] > state.columns)
        line({layout.grid.right() + 2 * u, layout.grid.top(), 16 * u, layout.cell}, QStringLiteral("⋯"), 0.9,
             theme.textFaint);
    if (rank > 1 && view.size[rank - 2] > state.rows)
        line({layout.grid.left(), layout.grid.bottom(), layout.cell, 13 * u}, QStringLiteral("⋮"), 0.9, theme.textFaint,
             false, Qt::AlignCenter);
    QString words = tr("elements by index");
    if (state.panels > 1)
        words = tr("elements by index: %1 matrices").arg(state.panels);
    line(layout.gridTitle, words, 0.82, theme.textDim, true);
}

void LayoutPen::grid() const
{
    const double u = plotUnit();
    const QFont font = plotFont(0.7);
    const QFontMetricsF metrics(font);
    for (std::size_t i = 0; i < state.cells.size(); ++i) {
        const TensorCell& cell = state.cells[i];
        const QRectF rect = layout.cellRect(cell.panel, cell.row, cell.column).adjusted(0.75, 0.75, -0.75, -0.75);
        const QColor colour = colourOf(int(i));
        painter.fillRect(rect, colour);
        const QString number = QString::number(cell.element);
        if (metrics.horizontalAdvance(number) + 2 * u > rect.width() || metrics.height() > rect.height() + 2)
            continue;
        painter.setFont(font);
        painter.setPen(contrast(theme.background, colour) > contrast(theme.text, colour) ? theme.background
                                                                                         : theme.text);
        painter.drawText(rect, Qt::AlignCenter, number);
    }
}

void LayoutPen::strip() const
{
    const double u = plotUnit();
    const QString unit = QString::fromStdString(quantityText(double(state.lineBytes), Unit::Byte));
    const QString cache = state.isGpu ? tr("cache of %1 sectors").arg(LayoutState::cacheRoom)
                                      : tr("cache of %1 lines").arg(LayoutState::cacheRoom);
    const QString sector = state.isGpu ? tr(" of %1 B").arg(state.granuleBytes) : QString();
    line(layout.stripTitle,
         {tr("storage in lines of %1; a %2%3").arg(unit, cache, sector),
          tr("lines of %1; %2%3").arg(unit, cache, sector), tr("lines of %1; %2").arg(unit, cache),
          tr("lines of %1").arg(unit)},
         0.82, theme.textDim, true);
    const std::int64_t item = state.asked.itemBytes();
    for (std::size_t i = 0; i < layout.lines.size(); ++i) {
        const QRectF& bar = layout.lines[i];
        const QFontMetricsF metrics(plotFont(0.72));
        if (bar.height() + 2 >= metrics.height() * 0.75)
            line({bar.left() - layout.lineNames, bar.top() - 3, layout.lineNames - 5 * u, bar.height() + 6},
                 QString::number(state.lines[i] * state.lineBytes), 0.72, theme.textFaint, false,
                 Qt::AlignRight | Qt::AlignVCenter);
        for (int slot = 0; slot < layout.slotCount; ++slot) {
            const std::int64_t granule = (state.lines[i] * state.lineBytes + slot * item) / state.granuleBytes;
            const int cell = state.cellOf(int(i), slot);
            const double seam = layout.slotCount > 48 ? 0.2 : 0.6;
            const QRectF rect = layout.slotRect(int(i), slot).adjusted(seam, 0, -seam, 0);
            const bool isBehind = state.lines[i] * state.lineBytes / item + slot >= state.asked.view.storage;
            if (cell >= 0)
                painter.fillRect(rect, colourOf(cell));
            else if (!isBehind)
                painter.fillRect(rect, isCached(granule) ? theme.empty : free());
        }
        const double share = double(state.granuleBytes) / double(state.lineBytes);
        for (int part = 0; part < int(1 / share + 0.5); ++part) {
            if (!isCached(state.lines[i] * state.lineBytes / state.granuleBytes + part))
                continue;
            painter.setPen(QPen(theme.text, 1.1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(QRectF(bar.left() + part * share * bar.width(), bar.top() - 0.5, share * bar.width(),
                                    bar.height() + 1));
        }
        const bool isGap =
            i > 0 && state.lines[i] != state.lines[i - 1] + 1 && layout.lines[i].left() == layout.lines[i - 1].left();
        if (isGap) {
            painter.setPen(QPen(theme.textFaint, 1, Qt::DotLine));
            painter.drawLine(QPointF(bar.left() - layout.lineNames + 4 * u, bar.top() - 1),
                             QPointF(bar.right(), bar.top() - 1));
        }
    }
}

/// The element under the pointer, in both pictures, and those that share its granule.
void LayoutPen::marks() const
{
    painter.setBrush(Qt::NoBrush);
    const auto mark = [this](int cell, const QPen& pen) {
        const TensorCell& one = state.cells[std::size_t(cell)];
        painter.setPen(pen);
        painter.drawRect(layout.cellRect(one.panel, one.row, one.column).adjusted(1, 1, -1, -1));
        if (layout.slotCount <= 128)
            painter.drawRect(layout.slotRect(one.line, one.slot).adjusted(0.5, 0, -0.5, 0));
    };
    const auto markShared = [&](int cell, const QPen& others, const QPen& own) {
        const std::int64_t granule = state.granuleOf(state.cells[std::size_t(cell)]);
        for (std::size_t i = 0; i < state.cells.size(); ++i) {
            if (int(i) != cell && state.granuleOf(state.cells[i]) == granule)
                mark(int(i), others);
        }
        mark(cell, own);
    };
    if (moment.hover.cell >= 0 && moment.hover.cell < int(state.cells.size()))
        markShared(moment.hover.cell, QPen(theme.predicted, 1.2, Qt::DotLine), QPen(theme.text, 1.8));
}

void LayoutPen::foot() const
{
    playButton(layout.playButton, moment.play);
    line(layout.words,
         state.empty() ? tr("a tensor without elements: nothing to visit") : state.stepWords(moment.cursor), 0.85,
         theme.text);
    const double u = plotUnit();
    const double names = 62 * u;
    const auto code = [&](const QRectF& box, const QString& name, const QString& text) {
        line({box.left(), box.top(), names, box.height()}, name, 0.8, theme.textFaint, true);
        line(box.adjusted(names, 0, 0, 0), text, 0.84, theme.text, false, Qt::AlignLeft | Qt::AlignVCenter, true);
    };
    code(layout.pytorch, QStringLiteral("PyTorch"), state.pytorch);
    code(layout.numpy, QStringLiteral("NumPy"), state.numpy);
}

} // namespace

void paintTensor(QPainter& painter, const LayoutState& state, const LayoutGeometry& layout, const LayoutMoment& moment,
                 const Theme& theme)
{
    painter.setRenderHint(QPainter::Antialiasing);
    if (!state.isValid)
        return;
    std::vector<int> stepOf(state.cells.size());
    for (std::size_t i = 0; i < state.steps.size(); ++i)
        stepOf[std::size_t(state.steps[i].cell)] = int(i);
    const LayoutPen pen{{painter, theme}, state, layout, moment, std::move(stepOf), state.cachedAfter(moment.cursor)};
    pen.head();
    pen.chips();
    if (!state.empty()) {
        pen.names();
        pen.grid();
        pen.strip();
        pen.marks();
    }
    pen.foot();
}

} // namespace memscape
