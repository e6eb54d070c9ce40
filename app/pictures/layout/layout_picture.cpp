// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/layout/layout_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

namespace memscape {

namespace {

constexpr double dragDistance = 6; // pixels before a press becomes a drag

} // namespace

LayoutPicture::LayoutPicture(QWidget* parent)
    : WalkPicture({370, 270}, parent)
    , m_editor(new QLineEdit(this))
{
    setAccessibleName(tr("Operations on a tensor, its elements and the lines of its storage"));
    m_editor->setAccessibleName(tr("Operation"));
    m_editor->hide();
    connect(m_editor, &QLineEdit::returnPressed, this, &LayoutPicture::commitEdit);
    connect(m_editor, &QLineEdit::editingFinished, this, [this] { m_editor->hide(); });
}

void LayoutPicture::read(const PictureValues& values)
{
    m_state = readTensor(values.device, values.parameters, byteStyle());
    m_hover = {};
    m_editor->hide();
    setSteps(int(m_state.steps.size()), int(m_state.steps.size()) / 3);
}

QString LayoutPicture::summary() const
{
    if (!m_state.isValid)
        return problem();
    QString text = tr("%1 elements, stride %2.")
                       .arg(m_state.asked.view.elements())
                       .arg(QString::fromStdString(sizesText(m_state.asked.view.stride)));
    for (const OperationChip& chip : m_state.chips)
        text += u' ' + tr("%1: %2, stride %3.").arg(chip.text, chip.verdict, chip.strides);
    return text + u' ' + cursorText();
}

void LayoutPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    LayoutMoment moment;
    moment.cursor = cursor();
    if (isScreen)
        moment = {cursor(), playSign(), m_hover, m_isDragging ? m_pressed : -1, m_draggedTo - m_pressedAt};
    paintTensor(painter, m_state, layoutGeometry(m_state, rect), moment, theme);
    if (!m_state.isValid)
        paintProblem(painter, rect, theme);
}

void LayoutPicture::resizeEvent(QResizeEvent* event)
{
    m_editor->hide();
    WalkPicture::resizeEvent(event);
}

QString LayoutPicture::shortcuts()
{
    return Player::shortcuts() + u' '
        + tr("A click on an operation edits it, a drag moves it, its cross removes it; + adds one, Delete removes the "
             "last, Enter edits it. A click on the tensor offers examples.");
}

LayoutHover LayoutPicture::hoverAt(QPointF at) const
{
    LayoutHover hover;
    if (!m_state.isValid)
        return hover;
    const LayoutGeometry layout = layoutNow();
    hover.chip = layout.chipAt(at);
    hover.onRemove = hover.chip >= 0 && layout.removeOf(hover.chip).contains(at);
    hover.onBase = layout.base.contains(at);
    hover.onPlus = layout.plus.contains(at);
    for (std::size_t i = 0; i < m_state.cells.size(); ++i) {
        const TensorCell& cell = m_state.cells[i];
        if (layout.cellRect(cell.panel, cell.row, cell.column).contains(at))
            hover.cell = int(i);
    }
    if (const int line = layout.lineAt(at); line >= 0)
        hover.cell = m_state.cellOf(line, layout.slotAt(at, line));
    return hover;
}

bool LayoutPicture::isWalk(QPointF at) const
{
    return hoverAt(at).cell >= 0;
}

int LayoutPicture::stepNear(QPointF at) const
{
    const int cell = hoverAt(at).cell;
    for (std::size_t i = 0; i < m_state.steps.size(); ++i) {
        if (m_state.steps[i].cell == cell)
            return int(i);
    }
    return cursor();
}

bool LayoutPicture::isButton(QPointF at) const
{
    const LayoutHover hover = hoverAt(at);
    return playButton().contains(at) || hover.chip >= 0 || hover.onBase || hover.onPlus || hover.cell >= 0;
}

QString LayoutPicture::toolTipAt(QPointF at) const
{
    const LayoutHover hover = hoverAt(at);
    if (hover.cell >= 0)
        return m_state.cellWords(hover.cell);
    if (hover.onRemove)
        return tr("Remove %1").arg(m_state.chips[std::size_t(hover.chip)].text);
    if (hover.chip >= 0)
        return m_state.chips[std::size_t(hover.chip)].tip;
    if (hover.onBase)
        return m_state.base.tip;
    if (hover.onPlus)
        return tr("Add an operation (+)");
    return playButton().contains(at) ? tr("Play the walk (Space)") : QString();
}

void LayoutPicture::setViews(const QString& views, const QString& step)
{
    emit changesWanted({{"views", views.toStdString()}}, step);
}

void LayoutPicture::removeChip(int index)
{
    if (index >= 0 && index < int(m_state.chips.size()))
        setViews(viewsWithout(m_state.asked, index), tr("Remove %1").arg(m_state.chips[std::size_t(index)].text));
}

void LayoutPicture::editChip(int index)
{
    if (!m_state.isValid)
        return;
    m_edited = std::clamp(index, 0, int(m_state.chips.size()));
    const LayoutGeometry layout = layoutNow();
    const bool isNew = m_edited == int(m_state.chips.size());
    QRectF place = isNew ? layout.plus : layout.chips[std::size_t(m_edited)];
    place.setWidth(std::max(place.width(), 200 * plotUnit()));
    place.moveRight(std::min(place.right(), width() - 6.0));
    m_editor->setText(isNew ? QString() : m_state.chips[std::size_t(m_edited)].text);
    m_editor->setPlaceholderText(tr("transpose(0,1)"));
    m_editor->setGeometry(place.toRect());
    m_editor->show();
    m_editor->selectAll();
    m_editor->setFocus();
}

/// Only what can be read leaves the field; else it says at which character not.
void LayoutPicture::commitEdit()
{
    const QString text = m_editor->text().trimmed();
    if (const auto operations = parseViews(text.toStdString()); !operations) {
        const Error& error = operations.error();
        QToolTip::showText(m_editor->mapToGlobal(QPoint(0, m_editor->height())), QString::fromStdString(error.text()),
                           m_editor);
        QMetaObject::invokeMethod(
            m_editor, [this] { m_editor->show(), m_editor->setFocus(); }, Qt::QueuedConnection);
        return;
    }
    const bool isNew = m_edited >= int(m_state.chips.size());
    m_editor->hide();
    setFocus();
    if (text.isEmpty() && !isNew)
        return removeChip(m_edited);
    if (!text.isEmpty())
        setViews(viewsWith(m_state.asked, m_edited, text), isNew ? tr("Add %1").arg(text) : tr("Edit %1").arg(text));
}

void LayoutPicture::offerOperations(const QPoint& at)
{
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->setToolTipsVisible(true);
    const int last = int(m_state.chips.size());
    connect(menu->addAction(tr("Type one…")), &QAction::triggered, this, [this, last] { editChip(last); });
    menu->addSeparator();
    for (const OperationOffer& offer : offersFor(m_state.asked.view)) {
        QAction* action = menu->addAction(offer.text);
        action->setToolTip(offer.help);
        connect(action, &QAction::triggered, this, [this, offer, last] {
            setViews(viewsWith(m_state.asked, last, offer.text), tr("Add %1").arg(offer.text));
        });
    }
    menu->popup(at);
}

void LayoutPicture::offerExamples(const QPoint& at)
{
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->setToolTipsVisible(true);
    for (const LayoutPreset& preset : layoutPresets()) {
        const QString label = QString::fromStdString(preset.label);
        QAction* action = menu->addAction(label);
        action->setToolTip(QString::fromStdString(preset.lesson));
        connect(action, &QAction::triggered, this, [this, preset, label] {
            emit changesWanted(
                {{"shape", preset.shape}, {"views", preset.views}, {"walk", preset.walk}, {"order", "row-major"}},
                label);
        });
    }
    menu->popup(at);
}

void LayoutPicture::mousePressEvent(QMouseEvent* event)
{
    const LayoutHover hover = hoverAt(event->position());
    if (event->button() != Qt::LeftButton)
        return WalkPicture::mousePressEvent(event);
    if (hover.onRemove)
        return removeChip(hover.chip);
    if (hover.onPlus)
        return offerOperations(event->globalPosition().toPoint());
    if (hover.onBase)
        return offerExamples(event->globalPosition().toPoint());
    if (hover.chip >= 0) {
        m_pressed = hover.chip;
        m_pressedAt = m_draggedTo = event->position();
        return;
    }
    WalkPicture::mousePressEvent(event);
}

void LayoutPicture::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF at = event->position();
    if (m_pressed >= 0) {
        m_draggedTo = at;
        m_isDragging = m_isDragging || (at - m_pressedAt).manhattanLength() > dragDistance;
        return update();
    }
    WalkPicture::mouseMoveEvent(event);
    const LayoutHover hover = hoverAt(at);
    if (hover == m_hover)
        return;
    m_hover = hover;
    emit hoverText(hover.cell >= 0 ? m_state.cellWords(hover.cell) : QString());
    if (hover.cell >= 0 || hover.chip >= 0)
        QToolTip::showText(event->globalPosition().toPoint(), toolTipAt(at), this);
    update();
}

void LayoutPicture::mouseReleaseEvent(QMouseEvent* event)
{
    const int chip = std::exchange(m_pressed, -1);
    if (chip < 0)
        return WalkPicture::mouseReleaseEvent(event);
    if (!std::exchange(m_isDragging, false))
        return editChip(chip);
    const LayoutGeometry layout = layoutNow();
    int target = 0; // before the first chip whose middle is further right, in its row
    for (std::size_t i = 0; i < layout.chips.size(); ++i) {
        const QRectF& rect = layout.chips[i];
        const bool isBefore = event->position().y() > rect.bottom()
            || (event->position().y() >= rect.top() && event->position().x() > rect.center().x());
        target += isBefore && int(i) != chip;
    }
    update();
    if (target != chip)
        setViews(viewsMoved(m_state.asked, chip, target), tr("Move %1").arg(m_state.chips[std::size_t(chip)].text));
}

void LayoutPicture::leaveEvent(QEvent* event)
{
    m_hover = {};
    update();
    WalkPicture::leaveEvent(event);
}

void LayoutPicture::keyPressEvent(QKeyEvent* event)
{
    const int last = int(m_state.chips.size()) - 1;
    if (m_state.isValid && event->key() == Qt::Key_Plus)
        return offerOperations(mapToGlobal(layoutNow().plus.bottomLeft().toPoint()));
    if (m_state.isValid && last >= 0 && (event->key() == Qt::Key_Delete || event->key() == Qt::Key_Backspace))
        return removeChip(last);
    if (m_state.isValid && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter))
        return editChip(std::max(0, last));
    WalkPicture::keyPressEvent(event);
}

} // namespace memscape
