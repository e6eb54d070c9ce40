// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/bank-conflicts/bank_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int mostStride = 128; // of the schema

} // namespace

BankPicture::BankPicture(QWidget* parent)
    : WalkPicture({300, 220}, parent)
{
    setAccessibleName(tr("Lanes and banks, wavefront by wavefront"));
}

void BankPicture::read(const PictureValues& values)
{
    BankState state;
    if (values.predicted)
        state = readBanks(values.predicted->detail);
    state.byteStyle = byteStyle();
    setRequest(std::move(state));
}

void BankPicture::setRequest(BankState state)
{
    m_state = std::move(state);
    m_hover = {};
    setSteps(m_state.wavefronts, 0);
}

QString BankPicture::summary() const
{
    if (m_state.empty())
        return tr("No prediction.");
    return tr("%1: %2 lanes access %3 banks, at most %4 different words of one bank at a time. %5. %6")
        .arg(m_state.title())
        .arg(m_state.lanes.size())
        .arg(m_state.banks)
        .arg(m_state.degree)
        .arg(cursorText(), m_state.notHere)
        .trimmed();
}

void BankPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    paintBanks(painter, m_state, layoutBanks(m_state, rect), cursor(), playSign(isScreen),
               isScreen ? m_hover : BankHover(), theme);
    paintProblem(painter, rect, theme);
}

QString BankPicture::shortcuts()
{
    return Player::shortcuts() + u' ' + tr("Up and Down, or a drag over the banks, change the stride.");
}

int BankPicture::stepNear(QPointF at) const
{
    const QRectF strip = layoutNow().strip;
    if (m_state.empty())
        return -1;
    const double share = (at.x() - strip.left()) / strip.width();
    return std::clamp(int(share * m_state.wavefronts), 0, m_state.wavefronts - 1);
}

BankHover BankPicture::hoverAt(QPointF at) const
{
    BankHover hover;
    if (m_state.empty())
        return hover;
    const BankLayout layout = layoutNow();
    hover.lane = layout.laneAt(at);
    if (const int line = layout.lineAt(at); line >= 0 && line < int(m_state.lines.size()))
        hover.word = m_state.lines[std::size_t(line)] * m_state.banks + layout.bankAt(at);
    for (std::size_t i = 0; i < layout.cures.size(); ++i) {
        if (layout.cures[i].contains(at))
            hover.cure = int(i);
    }
    return hover;
}

bool BankPicture::isButton(QPointF at) const
{
    return playButton().contains(at) || isWalk(at) || hoverAt(at).cure >= 0;
}

QString BankPicture::toolTipAt(QPointF at) const
{
    const BankHover hover = hoverAt(at);
    if (hover.lane >= 0)
        return m_state.laneWords(hover.lane);
    if (hover.word >= 0)
        return m_state.wordWords(hover.word);
    if (hover.cure >= 0) {
        const BankCure& cure = m_state.cures[std::size_t(hover.cure)];
        return tr("%1: %2 wavefronts, a tile of %3. Click to choose it.")
            .arg(cure.label)
            .arg(cure.wavefronts)
            .arg(m_state.bytesText(cure.bytes));
    }
    if (cursor() >= 0 && isWalk(at))
        return wordsOf(stepNear(at));
    return playButton().contains(at) ? tr("Play the wavefronts (Space)") : QString();
}

void BankPicture::setStride(int stride)
{
    const int wanted = std::clamp(stride, 0, mostStride);
    if (wanted != m_state.stride)
        emit parameterEdited(QStringLiteral("stride"), QString::number(wanted));
}

void BankPicture::applyCure(int index)
{
    const BankCure& cure = m_state.cures[std::size_t(index)];
    if (index != m_state.chosenCure())
        emit changesWanted(ParameterChanges(cure.parameters.begin(), cure.parameters.end()), cure.label);
}

void BankPicture::mousePressEvent(QMouseEvent* event)
{
    const BankHover hover = hoverAt(event->position());
    if (event->button() != Qt::LeftButton)
        return WalkPicture::mousePressEvent(event);
    if (hover.cure >= 0)
        return applyCure(hover.cure);
    if (hover.word >= 0 && hasStride()) {
        m_drag = Drag{event->position().x(), m_state.stride};
        return hold();
    }
    WalkPicture::mousePressEvent(event);
}

/// An element to the right is a stride more: the word of lane 1 follows the pointer.
void BankPicture::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF at = event->position();
    if (isHeld()) {
        const double element = layoutNow().cellWidth * std::max(m_state.width, 4) / 4;
        return setStride(m_drag.stride + int(std::lround((at.x() - m_drag.from) / element)));
    }
    WalkPicture::mouseMoveEvent(event);
    const BankHover hover = hoverAt(at);
    if (hover.word >= 0 && hasStride())
        QWidget::setCursor(Qt::SizeHorCursor);
    if (hover == m_hover)
        return;
    m_hover = hover;
    if (hover.lane >= 0 || hover.word >= 0)
        tell(*event);
    else
        emit hoverText(toolTipAt(at));
    update();
}

void BankPicture::leaveEvent(QEvent* event)
{
    m_hover = {};
    update();
    WalkPicture::leaveEvent(event);
}

void BankPicture::keyPressEvent(QKeyEvent* event)
{
    const bool up = event->key() == Qt::Key_Up;
    if (m_state.empty() || !hasStride() || (!up && event->key() != Qt::Key_Down))
        return WalkPicture::keyPressEvent(event);
    const int step = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
    setStride(m_state.stride + (up ? step : -step));
}

} // namespace memscape
