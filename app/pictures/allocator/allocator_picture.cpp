// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/allocator/allocator_picture.h"

#include "app/plots/plot_style.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double zoomOfANotch = 0.8;

} // namespace

AllocatorPicture::AllocatorPicture(QWidget* parent)
    : WalkPicture({430, 276, 460}, parent)
{
    setFocusPolicy(Qt::WheelFocus); // keys act on what the wheel has zoomed
    setAccessibleName(tr("Segments and blocks"));
}

QString AllocatorPicture::shortcuts()
{
    return Player::shortcuts() + u' '
        + tr("P goes to the peak of reserved, + and − zoom, 0 or Esc shows everything, E puts empty_cache() before the "
             "request "
             "or takes it away.");
}

void AllocatorPicture::read(const PictureValues& values)
{
    m_state = readAllocator(values.predicted, byteStyle());
    if (values.predicted == nullptr)
        m_state.missing = problem();
    m_piece = -1;
    setSteps(m_state.empty() ? 0 : m_state.last + 1, m_state.peak);
}

const AllocatorMoment* AllocatorPicture::moment() const
{
    const int step = cursor();
    return m_state.empty() || step < 0 ? nullptr : &m_state.walk->at(std::min(step, m_state.last));
}

AllocatorLayout AllocatorPicture::layoutNow() const
{
    return layoutAllocator(m_state, moment(), m_window, QRectF(rect()), plotUnit());
}

QString AllocatorPicture::wordsOf(int step) const
{
    if (m_state.empty() || step < 0)
        return {};
    const AllocatorMoment& at = m_state.walk->at(std::min(step, m_state.last));
    return QStringLiteral("%1: %2").arg(m_state.header(step), at.words.join(QStringLiteral("; ")));
}

QString AllocatorPicture::summary() const
{
    if (m_state.empty())
        return m_state.missing.isEmpty() ? tr("Nothing to draw.") : m_state.missing;
    QStringList others;
    for (const ElsewhereCard& card : m_state.cards)
        if (card.isKnown && !card.isRefused)
            others << QStringLiteral("%1 %2").arg(card.label, m_state.bytes(card.reserved));
    return tr("%1. %2. Reserved at most: %3.").arg(m_state.title, wordsOf(cursor()), others.join(QStringLiteral(", ")));
}

QString AllocatorPicture::hint() const
{
    return tr("space plays · ← → one request · the wheel zooms, Esc shows all · a card chooses an allocator · E: "
              "empty_cache() here");
}

void AllocatorPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    const AllocatorLayout layout = layoutAllocator(m_state, moment(), m_window, rect, plotUnit());
    if (m_state.empty()) {
        paintProblem(painter, QRectF(layout.tape), theme);
        painter.setFont(plotFont(1.0));
        painter.setPen(theme.textDim);
        if (problem().isEmpty())
            painter.drawText(layout.tape, Qt::AlignCenter | Qt::TextWordWrap, m_state.missing);
    }
    AllocatorPen{painter, m_state, layout, moment(), theme, cursor(), isScreen ? m_piece : -1, playSign(isScreen)}
        .all();
}

void AllocatorPicture::setWindow(TapeWindow window)
{
    if (m_window == window)
        return;
    m_window = window;
    m_piece = -1;
    update();
}

bool AllocatorPicture::isButton(QPointF at) const
{
    const AllocatorLayout layout = layoutNow();
    const int card = layout.cardAt(at);
    return layout.button.contains(at) || (card >= 0 && !m_state.cards[std::size_t(card)].key.isEmpty());
}

QString AllocatorPicture::toolTipAt(QPointF at) const
{
    const AllocatorLayout layout = layoutNow();
    if (layout.button.contains(at))
        return tr("Play the requests (Space)");
    if (const int card = layout.cardAt(at); card >= 0) {
        const ElsewhereCard& one = m_state.cards[std::size_t(card)];
        if (one.key.isEmpty())
            return tr("The most bytes alive at once: no allocator can do with less");
        for (const PolicyWord& word : policyWords())
            if (one.key == QLatin1String(word.key))
                return QString::fromUtf8(word.rule);
        return tr("PyTorch's caching allocator with PYTORCH_CUDA_ALLOC_CONF=%1").arg(one.key);
    }
    const AllocatorMoment* now = moment();
    const int piece = layout.pieceAt(at);
    if (now == nullptr || piece < 0)
        return {};
    const AllocatorPiece& one = layout.pieces[std::size_t(piece)];
    return m_state.blockWords(*now, one.segment, one.block);
}

void AllocatorPicture::mousePressEvent(QMouseEvent* event)
{
    const AllocatorLayout layout = layoutNow();
    if (event->button() == Qt::LeftButton) {
        if (const int card = layout.cardAt(event->position()); card >= 0) {
            const ElsewhereCard& one = m_state.cards[std::size_t(card)];
            if (!one.key.isEmpty() && !one.isChosen)
                emit parameterEdited(QStringLiteral("setting"), one.key);
            return;
        }
        if (layout.tape.contains(event->position()) && m_window.length < 1)
            m_dragged = event->position();
    }
    WalkPicture::mousePressEvent(event);
}

void AllocatorPicture::mouseMoveEvent(QMouseEvent* event)
{
    const AllocatorLayout layout = layoutNow();
    if (m_dragged) {
        const double moved = layout.tapeAt(*m_dragged, m_window) - layout.tapeAt(event->position(), m_window);
        m_dragged = event->position();
        return setWindow({std::clamp(m_window.begin + moved, 0.0, 1 - m_window.length), m_window.length});
    }
    WalkPicture::mouseMoveEvent(event);
    const int piece = layout.pieceAt(event->position());
    if (piece != m_piece) {
        m_piece = piece;
        update();
    }
    if (piece >= 0)
        emit hoverText(toolTipAt(event->position()));
}

void AllocatorPicture::mouseReleaseEvent(QMouseEvent* event)
{
    m_dragged.reset();
    WalkPicture::mouseReleaseEvent(event);
}

void AllocatorPicture::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (!layoutNow().tape.contains(event->position()))
        return mousePressEvent(event); // as Qt does: two quick presses
    m_dragged.reset();
    setWindow({});
}

void AllocatorPicture::wheelEvent(QWheelEvent* event)
{
    const AllocatorLayout layout = layoutNow();
    if (!layout.tape.contains(event->position()) || event->angleDelta().y() == 0)
        return WalkPicture::wheelEvent(event);
    const double factor = std::pow(zoomOfANotch, event->angleDelta().y() / 120.0);
    setWindow(zoomed(m_window, factor, layout.tapeAt(event->position(), m_window)));
    event->accept();
}

void AllocatorPicture::keyPressEvent(QKeyEvent* event)
{
    const double middle = m_window.begin + m_window.length / 2;
    switch (event->key()) {
    case Qt::Key_P: return stopAt(m_state.peak);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return setWindow(zoomed(m_window, zoomOfANotch, middle));
    case Qt::Key_Minus: return setWindow(zoomed(m_window, 1 / zoomOfANotch, middle));
    case Qt::Key_0:
    case Qt::Key_Escape: return setWindow({});
    case Qt::Key_E: {
        if (m_state.empty() || cursor() < 0)
            return;
        const bool isHere = m_state.trace->requests[std::size_t(cursor())].kind == RequestKind::EmptyCache;
        emit parameterEdited(QStringLiteral("empty_cache"), QString::number(isHere ? 0 : cursor() + 1));
        return;
    }
    default: return WalkPicture::keyPressEvent(event);
    }
}

} // namespace memscape
