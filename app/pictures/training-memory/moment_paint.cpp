// SPDX-License-Identifier: GPL-3.0-or-later
// How the step, its modules and the list of tensors alive are drawn.
#include "app/pictures/common/timeline_picture.h"
#include "app/pictures/training-memory/moment_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/plots/ticks.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

QColor colourOf(const StepShape& shape, const Theme& theme)
{
    const QColor colour = partColour(theme, partOf(shape.category));
    if (!shape.isMatch)
        return mix(theme.background, colour, 0.16);
    if (shape.kind == StepShape::Kind::Residents)
        return colour;
    if (shape.kind == StepShape::Kind::Rest) // paler than any of those that are drawn one by one
        return mix(theme.background, colour, 0.6);
    // Neighbours of one category have three shades.
    const int shade = shape.members.empty() ? 0 : shape.members.front() % 3;
    return mix(theme.background, colour, 1 - 0.13 * shade);
}

QColor colourOf(const StepSpan& span, bool isMatch, const Theme& theme)
{
    const double share = isMatch ? 0.55 : 0.14;
    if (span.row == 0)
        return mix(theme.background, theme.textFaint, isMatch ? 0.45 : 0.14);
    const int number = span.text.section(u'.', -1).toInt();
    return mix(theme.background, theme.series(span.kind), share - (number % 2 ? 0.12 * share : 0));
}

void paintFlame(QPainter& painter, const StepBlocks& step, const MomentLayout& layout,
                const std::vector<FlameBox>& boxes, const Theme& theme)
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.75));
    for (const FlameBox& box : boxes) {
        const QColor colour = colourOf(step.spans[std::size_t(box.span)], box.isMatch, theme);
        const double gap = box.rect.width() > 3 ? 0.5 : 0;
        painter.fillRect(box.rect.adjusted(gap, 0, -gap, 0), colour);
        if (box.text.isEmpty())
            continue;
        painter.setPen(box.isMatch ? textOn(colour) : theme.textFaint);
        painter.drawText(box.rect.adjusted(2 * u, 0, -2 * u, 0), Qt::AlignCenter, box.text);
    }
    painter.setFont(plotFont(0.72));
    painter.setPen(theme.textFaint);
    const QStringList names{QCoreApplication::translate("Memory", "phase"),
                            QCoreApplication::translate("Memory", "module")};
    for (int row = 0; row < 2 && (row + 1) * flameRowHeight() <= layout.flame.height() + 1; ++row)
        painter.drawText(QRectF(layout.axis.left(), layout.flame.top() + row * flameRowHeight(), layout.axis.width(),
                                flameRowHeight()),
                         Qt::AlignRight | Qt::AlignVCenter, names[row]);
}

void paintAxis(QPainter& painter, const MomentLayout& layout, const StepChart& chart, ByteStyle style,
               const Theme& theme)
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.75));
    for (const Tick& tick : byteTicks(style, chart.view.bottom, chart.view.top, int(chart.area.height() / (44 * u)))) {
        const double y = chart.y(tick.value);
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(chart.area.left(), y), QPointF(chart.area.right(), y));
        painter.setPen(theme.textFaint);
        const double top = std::clamp(y - 8 * u, layout.axis.top() - 4 * u, layout.axis.bottom() - 14 * u);
        painter.drawText(QRectF(layout.axis.left() - 8 * u, top, layout.axis.width() + 8 * u, 16 * u),
                         Qt::AlignRight | Qt::AlignVCenter, tick.text);
    }
}

} // namespace

void MomentPicture::paintHead(QPainter& painter, const MomentLayout& layout, const Theme& theme, bool onScreen) const
{
    painter.setFont(plotFont(0.95, true));
    painter.setPen(theme.text);
    painter.drawText(layout.title, Qt::AlignLeft | Qt::AlignVCenter, layout.titleText);
    painter.setFont(plotFont(0.82));
    painter.setPen(theme.textDim);
    painter.drawText(layout.found, Qt::AlignRight | Qt::AlignVCenter, layout.foundText);
    if (!onScreen && !m_state.words.isEmpty())
        painter.drawText(layout.search, Qt::AlignRight | Qt::AlignVCenter, tr("searched: %1").arg(m_state.words));
    painter.setFont(plotFont(0.8));
    for (const LegendItem& item : layout.legend) {
        painter.fillRect(item.swatch, partColour(theme, partIndex(item.category.toStdString())));
        painter.drawText(item.rect.adjusted(14 * plotUnit(), 0, 0, 0),
                         Qt::AlignLeft | Qt::AlignVCenter | Qt::TextDontClip, item.text);
    }
}

void MomentPicture::paintShapes(QPainter& painter, const StepChart& chart, const Theme& theme) const
{
    painter.save();
    painter.setClipRect(chart.area);
    for (const StepShape& shape : chart.shapes) {
        const QPolygonF outline = chart.outline(shape);
        if (!outline.boundingRect().intersects(chart.area))
            continue;
        painter.setRenderHint(QPainter::Antialiasing, false);
        painter.setPen(outline.boundingRect().height() > 3 && shape.kind == StepShape::Kind::Block
                           ? QPen(mix(theme.background, colourOf(shape, theme), 0.55), 1)
                           : QPen(Qt::NoPen));
        painter.setBrush(colourOf(shape, theme));
        painter.drawPolygon(outline);
        painter.setRenderHint(QPainter::Antialiasing);
    }
    painter.setFont(plotFont(0.75));
    for (const StepShape& shape : chart.shapes) {
        if (shape.label.isEmpty())
            continue;
        painter.setPen(shape.isMatch ? textOn(colourOf(shape, theme)) : theme.textFaint);
        painter.drawText(shape.label, Qt::AlignLeft | Qt::AlignVCenter, shape.text);
    }
    painter.restore();
}

/// What lies over the blocks: capacity, what does not fit, what was measured.
void MomentPicture::paintOver(QPainter& painter, const StepChart& chart, const MomentLayout&, const Theme& theme) const
{
    const double u = plotUnit();
    painter.save();
    painter.setClipRect(chart.area);
    painter.setFont(plotFont(0.78, true));
    const QFontMetricsF metrics(painter.font());
    const auto tag = [&](QString text, QPointF corner) {
        text = metrics.elidedText(text, Qt::ElideRight, chart.area.width() - 12 * u);
        QRectF box(corner, QSizeF(metrics.horizontalAdvance(text) + 8 * u, metrics.height() + 2 * u));
        box.moveLeft(
            std::clamp(box.left(), chart.area.left(), std::max(chart.area.left(), chart.area.right() - box.width())));
        box.moveTop(std::clamp(box.top(), chart.area.top(), chart.area.bottom() - box.height()));
        QColor back = theme.background;
        back.setAlphaF(0.85F);
        painter.fillRect(box, back);
        painter.drawText(box, Qt::AlignCenter, text);
    };
    QString limit;
    double limitY = chart.area.top();
    if (const auto capacity = m_state.shownCapacity();
        capacity && *capacity<chart.view.top&& * capacity> chart.view.bottom) {
        limitY = chart.y(*capacity);
        painter.setPen(QPen(theme.bad, 1.4 * u, Qt::DashLine));
        painter.drawLine(QPointF(chart.area.left(), limitY), QPointF(chart.area.right(), limitY));
        limit = tr("%1 for PyTorch on this device").arg(memoryText(*capacity, m_state.bytes));
    }
    if (m_state.timeline.outOfMemory) {
        const OutOfMemoryPoint& point = *m_state.timeline.outOfMemory;
        const bool isBefore = point.event < chart.view.left;
        const double x = chart.x(std::max(point.event, chart.view.left));
        if (x <= chart.area.right()) {
            painter.setPen(QPen(theme.bad, 1.2 * u));
            painter.drawLine(QPointF(x, chart.area.top()), QPointF(x, chart.area.bottom()));
            painter.setPen(theme.bad);
            tag((isBefore && point.event < m_state.whole().left ? tr("out of memory before the step begins: %1 %2")
                                                                : tr("out of memory: %1 %2"))
                    .arg(placeText({}, point.module, point.name), memoryText(point.bytes, m_state.bytes)),
                {x + 3 * u, chart.area.top() + 3 * u});
        }
    }
    painter.setPen(theme.bad);
    if (!limit.isEmpty())
        tag(limit,
            {chart.area.right(),
             limitY > chart.area.top() + 40 * u ? limitY - metrics.height() - 4 * u : limitY + 2 * u});
    painter.setPen(QPen(theme.background, 0.8));
    painter.setBrush(theme.measured);
    for (std::size_t i = 0; i < std::min(m_measured.x.size(), m_measured.y.size()); ++i) {
        if (m_measured.x[i] >= chart.view.left && m_measured.x[i] <= chart.view.right)
            painter.drawEllipse(QPointF(chart.x(m_measured.x[i]), chart.y(m_measured.y[i])), 2.6 * u, 2.6 * u);
    }
    painter.restore();
    if (m_state.moment.event < 0)
        return;
    const double x =
        chart.x(std::max(m_state.moment.event + 0.5, m_state.whole().left)); // before the step: at its start
    if (x < chart.area.left() || x > chart.area.right())
        return;
    paintNamedMoment(painter, x, chart.area, m_state.isPeak ? tr("peak") : tr("event %1").arg(m_state.moment.event),
                     theme);
}

void MomentPicture::paintList(QPainter& painter, const MomentLayout& layout, const Theme& theme) const
{
    if (layout.heading.isEmpty())
        return;
    const MomentState& state = m_state;
    painter.setFont(plotFont(0.95, true));
    painter.setPen(theme.text);
    painter.drawText(layout.heading, Qt::AlignLeft | Qt::AlignVCenter, layout.headingText);
    painter.drawText(layout.total, Qt::AlignRight | Qt::AlignVCenter, layout.totalText);
    painter.setFont(plotFont(0.85));
    painter.setPen(theme.textFaint);
    painter.drawText(layout.place, Qt::AlignLeft | Qt::AlignVCenter, layout.placeText);
    for (const LiveRow& row : layout.rows) {
        const bool rest = std::size_t(row.live) >= state.moment.live.size();
        const LiveTensor* tensor = rest ? nullptr : &state.moment.live[std::size_t(row.live)];
        const bool isMatch = state.words.isEmpty()
            || (tensor
                && (placeText({}, tensor->module, tensor->name).contains(state.words, Qt::CaseInsensitive)
                    || QString(tensor->category).replace(u'_', u' ').contains(state.words, Qt::CaseInsensitive)));
        painter.setOpacity(isMatch ? 1 : 0.35);
        if (tensor)
            painter.fillRect(row.swatch, partColour(theme, partIndex(tensor->category.toStdString())));
        painter.setFont(plotFont(0.88));
        painter.setPen(rest ? theme.textFaint : theme.textDim);
        painter.drawText(row.name, Qt::AlignLeft | Qt::AlignVCenter, row.nameText);
        painter.setFont(plotFont(0.88, true));
        painter.setPen(theme.text);
        painter.drawText(row.size, Qt::AlignRight | Qt::AlignVCenter, row.sizeText);
    }
    painter.setOpacity(1);
    if (layout.rowsInAll > int(layout.rows.size()) && !layout.rows.empty()) { // how far down one is
        const double height = layout.list.height(), share = double(layout.rows.size()) / layout.rowsInAll;
        painter.fillRect(QRectF(layout.list.right() + 4 * plotUnit(),
                                layout.list.top() + height * layout.rows.front().live / layout.rowsInAll,
                                3 * plotUnit(), height * share),
                         theme.textFaint);
    }
}

void MomentPicture::paintAll(QPainter& painter, const MomentLayout& layout, const StepChart& chart,
                             const std::vector<FlameBox>& flame, const Theme& theme) const
{
    paintAxis(painter, layout, chart, m_state.bytes, theme);
    paintShapes(painter, chart, theme);
    paintFlame(painter, *m_state.step, layout, flame, theme);
    paintOver(painter, chart, layout, theme);
}

/// In an export; on screen what stands still is on the canvas.
void MomentPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    if (m_state.moment.event < 0 && !problem().isEmpty())
        return paintProblem(painter, rect, theme);
    MomentLayout layout = layoutIn(rect, {});
    if (m_state.step && !m_state.step->empty()) {
        const StepChart chart = layoutChart(*m_state.step, m_view, layout.chart, m_state.words, m_state.bytes);
        layout = layoutIn(rect, foundText(chart));
        paintAll(painter, layout, chart, layoutFlame(*m_state.step, m_view, layout.flame, m_state.words), theme);
    }
    paintHead(painter, layout, theme, false);
    paintList(painter, layout, theme);
}

void MomentPicture::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme& theme = currentTheme();
    const MomentLayout& layout = layoutNow(); // it may find that the canvas is out of date
    if (m_canvas.isNull() || m_canvas.size() != size() * devicePixelRatioF()) {
        m_canvas = QPixmap(size() * devicePixelRatioF());
        m_canvas.setDevicePixelRatio(devicePixelRatioF());
        m_canvas.fill(theme.background);
        QPainter canvas(&m_canvas);
        canvas.setRenderHint(QPainter::Antialiasing);
        if (m_state.moment.event < 0 && !problem().isEmpty()) {
            paintProblem(canvas, QRectF(rect()), theme);
        } else {
            if (m_state.step && !m_state.step->empty()) {
                const StepChart& chart = chartNow();
                if (!m_flame)
                    m_flame = layoutFlame(*m_state.step, m_view, layout.flame, m_state.words);
                paintAll(canvas, layout, chart, *m_flame, theme);
            }
            paintHead(canvas, layout, theme, true);
            paintList(canvas, layout, theme);
        }
    }
    painter.fillRect(rect(), theme.background);
    painter.setOpacity(m_state.pending ? 0.7 : 1);
    painter.drawPixmap(0, 0, m_canvas);
    painter.setOpacity(1);
    painter.setPen(QPen(theme.text, 1.4));
    painter.setBrush(Qt::NoBrush);
    if (!m_isPanning) { // what is under the pointer has a rim
        if (const FlameBox* box = boxAt(m_pointer))
            painter.drawRect(box->rect);
        if (const StepShape* shape = m_state.step ? chartNow().at(m_pointer) : nullptr) {
            painter.setClipRect(chartNow().area);
            painter.drawPolygon(chartNow().outline(*shape));
            painter.setClipping(false);
        }
    }
    paintFocusRing(painter, theme);
}

} // namespace memscape
