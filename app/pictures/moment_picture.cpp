// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/moment_picture.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

namespace memscape {

namespace {

void paintList(QPainter& painter, const MomentState& state, const MomentLayout& layout,
               const Theme& theme)
{
    const QFont bold = plotFont(0.95, true);
    painter.setFont(bold);
    painter.setPen(theme.text);
    painter.drawText(layout.heading, Qt::AlignLeft | Qt::AlignVCenter, layout.headingText);
    painter.drawText(layout.total, Qt::AlignRight | Qt::AlignVCenter, layout.totalText);
    painter.setFont(plotFont(0.85));
    painter.setPen(theme.textFaint);
    painter.drawText(layout.place, Qt::AlignLeft | Qt::AlignVCenter, layout.placeText);
    for (const LiveRow& row : layout.rows) {
        const bool rest = std::size_t(row.live) >= state.moment.live.size();
        if (!rest)
            painter.fillRect(
                row.swatch,
                partColour(
                    theme,
                    partIndex(state.moment.live[std::size_t(row.live)].category.toStdString())));
        painter.setFont(plotFont(0.88));
        painter.setPen(rest ? theme.textFaint : theme.textDim);
        painter.drawText(row.name, Qt::AlignLeft | Qt::AlignVCenter, row.nameText);
        painter.setFont(plotFont(0.88, true));
        painter.setPen(theme.text);
        painter.drawText(row.size, Qt::AlignRight | Qt::AlignVCenter, row.sizeText);
    }
    if (layout.rowsInAll > int(layout.rows.size())
        && !layout.rows.empty()) { // a thin sign of how far down one is
        const double height = layout.list.height();
        const double share = double(layout.rows.size()) / layout.rowsInAll;
        const QRectF bar(layout.list.right() + 3 * plotUnit(),
                         layout.list.top() + height * layout.rows.front().live / layout.rowsInAll,
                         3 * plotUnit(), height * share);
        painter.fillRect(bar, theme.textFaint);
    }
}

void paintMap(QPainter& painter, const MomentLayout& layout, const Theme& theme, QPointF pointer)
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.88, true));
    for (std::size_t i = 0; i < layout.crumbs.size(); ++i) {
        const Crumb& crumb = layout.crumbs[i];
        const bool last = i + 1 == layout.crumbs.size();
        painter.setPen(last ? theme.text : theme.predictedText);
        const QFontMetricsF metrics(painter.font());
        painter.drawText(crumb.rect, Qt::AlignLeft | Qt::AlignVCenter,
                         metrics.elidedText(crumb.text, Qt::ElideRight, crumb.rect.width()));
        painter.setPen(theme.textFaint);
        if (!last)
            painter.drawText(
                QRectF(crumb.rect.right() - 4 * u, crumb.rect.top(), 12 * u, crumb.rect.height()),
                Qt::AlignCenter, QStringLiteral("›"));
    }
    for (const TreeCell& cell : layout.cells) {
        QColor colour = partColour(theme, partIndex(cell.category.toStdString()));
        if (!cell.leaf)
            colour = mix(theme.background, colour, 0.5 + 0.12 * cell.depth);
        painter.fillRect(cell.rect, colour);
        if (cell.rect.contains(pointer)) {
            painter.setPen(QPen(theme.text, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(cell.rect.adjusted(0.5, 0.5, -0.5, -0.5));
        }
        if (cell.text.isEmpty())
            continue;
        painter.setFont(plotFont(0.8, true));
        painter.setPen(textOn(colour));
        painter.drawText(cell.label, Qt::AlignLeft | Qt::AlignVCenter, cell.text);
    }
}

/// A module that is nearly all of its parent has nothing beside it to see: on to what is in it.
QStringList pastOnlyChildren(const MemoryNode& root, QStringList path)
{
    const MemoryNode* node = &nodeAt(root, path);
    while (!node->children.empty() && !node->children.front().children.empty()
           && node->children.front().bytes > 0.995 * node->bytes) {
        node = &node->children.front();
        path << node->name;
    }
    return path;
}

} // namespace

bool isCursorKey(int key)
{
    return key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Home || key == Qt::Key_End
        || key == Qt::Key_P;
}

MomentPicture::MomentPicture(QWidget* parent)
    : Picture(parent)
{
    setAccessibleName(tr("Alive at this moment"));
}

void MomentPicture::setState(const Experiment&, const Device&, const Parameters&,
                             const Prediction* predicted, const Measurement*)
{
    if (predicted == nullptr)
        setMoment({}, nullptr, false); // what is alive comes with setMoment()
}

void MomentPicture::setMoment(MemoryMoment moment, std::shared_ptr<const MemoryNode> tree,
                              bool isPeak)
{
    m_state.moment = std::move(moment);
    m_state.root = std::move(tree);
    m_state.isPeak = isPeak;
    m_state.pending = false;
    QStringList path; // as far as this moment still has it
    const MemoryNode* node = &m_state.tree();
    for (const QString& name : std::as_const(m_state.path)) {
        const auto child = std::find_if(node->children.begin(), node->children.end(),
                                        [&](const MemoryNode& one) { return one.name == name; });
        if (child == node->children.end())
            break;
        node = &*child;
        path << name;
    }
    m_state.path = path;
    m_state.firstRow =
        std::clamp(m_state.firstRow, 0, std::max(0, int(m_state.moment.live.size()) - 1));
    setAccessibleDescription(summary());
    changed();
}

void MomentPicture::changed()
{
    m_layout.reset();
    update();
}

void MomentPicture::changeEvent(QEvent* event)
{
    Picture::changeEvent(event);
    changed(); // fonts and palettes
}

void MomentPicture::resizeEvent(QResizeEvent* event)
{
    Picture::resizeEvent(event);
    changed();
}

void MomentPicture::setPending(bool pending)
{
    m_state.pending = pending;
}

void MomentPicture::lookInto(const QStringList& path)
{
    m_state.path = path;
    changed();
    emit hoverText(textAt(m_pointer)); // another cell lies under the pointer now
}

MomentLayout MomentPicture::layoutIn(const QRectF& rect) const
{
    m_state.bytes = byteStyle();
    return layoutMoment(m_state, rect);
}

const MomentLayout& MomentPicture::layoutNow() const
{
    if (!m_layout || m_state.bytes != byteStyle())
        m_layout = layoutIn(QRectF(rect()));
    return *m_layout;
}

QString MomentPicture::title() const
{
    const MomentLayout& layout = layoutNow();
    return layout.headingText + QStringLiteral(", ") + layout.placeText;
}

QString MomentPicture::summary() const
{
    QStringList parts;
    for (std::size_t i = 0; i < std::min<std::size_t>(m_state.moment.live.size(), 8); ++i) {
        const LiveTensor& tensor = m_state.moment.live[i];
        parts << placeText({}, tensor.module, tensor.name) + u' '
                + memoryText(tensor.bytes, byteStyle());
    }
    return tr("Event %1, %2: %3 allocated. %4")
        .arg(m_state.moment.event)
        .arg(placeText(m_state.moment.phase, m_state.moment.module, m_state.moment.name),
             memoryText(m_state.moment.allocated, byteStyle()), parts.join(QStringLiteral("; ")));
}

QSize MomentPicture::sizeHint() const
{
    return {int(840 * plotUnit()), int(270 * plotUnit())};
}

QSize MomentPicture::minimumSizeHint() const
{
    return {int(420 * plotUnit()), int(150 * plotUnit())};
}

void MomentPicture::scroll(int rows)
{
    const MomentLayout& layout = layoutNow();
    m_state.firstRow = std::clamp(m_state.firstRow + rows, 0,
                                  std::max(0, layout.rowsInAll - int(layout.rows.size())));
    changed();
}

QString MomentPicture::textAt(QPointF at) const
{
    const MomentState& state = m_state;
    const MomentLayout& layout = layoutNow();
    for (const LiveRow& row : layout.rows) {
        if (!row.rect.contains(at) || std::size_t(row.live) >= state.moment.live.size())
            continue;
        const LiveTensor& tensor = state.moment.live[std::size_t(row.live)];
        return tr("%1: %2, %n tensor(s), %3", nullptr, tensor.count)
            .arg(placeText({}, tensor.module, tensor.name), memoryText(tensor.bytes, state.bytes),
                 QString(tensor.category).replace(u'_', u' '));
    }
    for (auto cell = layout.cells.rbegin(); cell != layout.cells.rend(); ++cell) {
        if (cell->rect.contains(at))
            return tr("%1: %2, mostly %3")
                .arg(cell->path.join(u'.'), memoryText(cell->bytes, state.bytes),
                     QString(cell->category).replace(u'_', u' '));
    }
    return {};
}

bool MomentPicture::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        QToolTip::showText(help->globalPos(), textAt(help->pos()), this);
        return true;
    }
    return Picture::event(event);
}

void MomentPicture::paint(QPainter& painter, const MomentLayout& layout, const QRectF& rect,
                          const Theme& theme, QPointF pointer) const
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect, theme.background);
    if (m_state.moment.event < 0 && !problem().isEmpty()) {
        paintProblem(painter, rect, theme);
    } else {
        paintList(painter, m_state, layout, theme);
        paintMap(painter, layout, theme, pointer);
    }
    painter.restore();
}

void MomentPicture::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    paint(painter, layoutIn(rect), rect, theme, QPointF(-1, -1));
}

void MomentPicture::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.fillRect(rect(), currentTheme().background);
    painter.setOpacity(m_state.pending ? 0.7 : 1);
    paint(painter, layoutNow(), QRectF(rect()), currentTheme(), m_pointer);
    painter.setOpacity(1);
    paintFocusRing(painter, currentTheme());
}

void MomentPicture::mousePressEvent(QMouseEvent* event)
{
    m_pointer = event->position();
    const MomentState& state = m_state;
    const MomentLayout& layout = layoutNow();
    for (const Crumb& crumb : layout.crumbs) {
        if (crumb.rect.contains(event->position()))
            return lookInto(crumb.path);
    }
    // The outer cell first: one looks into a tree level by level.
    for (const TreeCell& cell : layout.cells) {
        if (cell.depth == 0 && cell.rect.contains(event->position()) && !cell.leaf)
            return lookInto(pastOnlyChildren(state.tree(), cell.path));
    }
    Picture::mousePressEvent(event);
}

void MomentPicture::mouseMoveEvent(QMouseEvent* event)
{
    m_pointer = event->position();
    emit hoverText(textAt(m_pointer));
    update();
}

void MomentPicture::leaveEvent(QEvent* event)
{
    m_pointer = {-1, -1};
    emit hoverText({});
    update();
    Picture::leaveEvent(event);
}

void MomentPicture::wheelEvent(QWheelEvent* event)
{
    scroll(event->angleDelta().y() > 0 ? -3 : 3);
    event->accept();
}

void MomentPicture::keyPressEvent(QKeyEvent* event)
{
    if (isCursorKey(event->key())) {
        emit cursorKey(event->key(), event->modifiers());
        return;
    }
    switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Down:
        scroll(event->key() == Qt::Key_Up ? -1 : 1);
        return;
    case Qt::Key_PageUp:
    case Qt::Key_PageDown: {
        const int page = std::max(1, int(layoutNow().rows.size()) - 1);
        scroll(event->key() == Qt::Key_PageUp ? -page : page);
        return;
    }
    case Qt::Key_Backspace:
    case Qt::Key_Escape:
        if (!m_state.path.isEmpty())
            return lookInto(m_state.path.mid(0, m_state.path.size() - 1));
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter: { // into the largest module
        const MemoryNode& node = nodeAt(m_state.tree(), m_state.path);
        if (!node.children.empty() && !node.children.front().children.empty())
            return lookInto(m_state.path + QStringList{node.children.front().name});
        break;
    }
    default:
        break;
    }
    Picture::keyPressEvent(event);
}

} // namespace memscape
