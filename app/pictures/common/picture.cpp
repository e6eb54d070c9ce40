// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/picture.h"

#include "app/pictures/allocator/allocator_picture.h"
#include "app/pictures/attention/attention_picture.h"
#include "app/pictures/bank-conflicts/bank_picture.h"
#include "app/pictures/batch-size/batch_picture.h"
#include "app/pictures/checkpoint/checkpoint_picture.h"
#include "app/pictures/hierarchy/hierarchy_picture.h"
#include "app/pictures/in-place/in_place_picture.h"
#include "app/pictures/layout/layout_picture.h"
#include "app/pictures/loading/loading_picture.h"
#include "app/pictures/placement/placement_picture.h"
#include "app/pictures/precision/precision_picture.h"
#include "app/pictures/roofline/roofline_picture.h"
#include "app/pictures/sharding/sharding_picture.h"
#include "app/pictures/stride/stride_picture.h"
#include "app/pictures/training-memory/moment_picture.h"
#include "app/pictures/training-memory/training_memory_picture.h"
#include "app/pictures/transfer/transfer_picture.h"
#include "app/plots/plot_style.h"

#include <QFocusEvent>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <array>
#include <utility>

namespace memscape {

Picture::Picture(PictureSize size, QWidget* parent)
    : QWidget(parent)
    , m_size(size)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
}

Picture::~Picture() = default;

QSize Picture::sizeHint() const
{
    return {int(840 * plotUnit()), int(m_size.height * plotUnit())};
}

QSize Picture::minimumSizeHint() const
{
    return {int(m_size.leastWidth * plotUnit()), int(m_size.leastHeight * plotUnit())};
}

void Picture::setState(const PictureValues& values)
{
    read(values);
    setAccessibleDescription(summary());
    update();
}

void Picture::setByteStyle(ByteStyle style)
{
    if (m_byteStyle == style)
        return;
    m_byteStyle = style;
    update();
}

void Picture::setProblem(const QString& problem)
{
    if (std::exchange(m_problem, problem) != problem)
        update();
}

void Picture::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.fillRect(rect, theme.background);
    draw(painter, rect, theme, false);
    painter.restore();
}

void Picture::paintEvent(QPaintEvent*)
{
    const Theme& theme = currentTheme();
    QPainter painter(this);
    painter.fillRect(rect(), theme.background);
    painter.save();
    draw(painter, QRectF(rect()), theme, true);
    painter.restore();
    paintFocusRing(painter, theme);
}

bool Picture::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), toolTipAt(help->pos()), this);
    return true;
}

void Picture::tell(const QMouseEvent& event)
{
    const QString text = toolTipAt(event.position());
    emit hoverText(text);
    QToolTip::showText(event.globalPosition().toPoint(), text, this);
}

void Picture::hold()
{
    m_isHeld = true;
    emit editing(true);
}

void Picture::mouseReleaseEvent(QMouseEvent* event)
{
    if (std::exchange(m_isHeld, false))
        emit editing(false);
    QWidget::mouseReleaseEvent(event);
}

void Picture::leaveEvent(QEvent* event)
{
    emit hoverText({});
    QWidget::leaveEvent(event);
}

void Picture::paintProblem(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    if (m_problem.isEmpty())
        return;
    painter.setFont(plotFont(1.0));
    painter.setPen(theme.bad);
    painter.drawText(rect.adjusted(24, 12, -24, -12), Qt::AlignCenter | Qt::TextWordWrap, m_problem);
}

void Picture::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange
        || event->type() == QEvent::StyleChange)
        update();
}

void Picture::focusInEvent(QFocusEvent* event)
{
    QWidget::focusInEvent(event);
    m_keyboardFocus = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason
        || event->reason() == Qt::ShortcutFocusReason;
    update();
}

void Picture::focusOutEvent(QFocusEvent* event)
{
    QWidget::focusOutEvent(event);
    m_keyboardFocus = false;
    update();
}

void Picture::paintFocusRing(QPainter& painter, const Theme& theme) const
{
    if (!m_keyboardFocus)
        return;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.predicted, 1.2));
    painter.drawRoundedRect(QRectF(rect()).adjusted(1.5, 1.5, -1.5, -1.5), 5, 5);
}

namespace {

template <class Kind> Picture* make(QWidget* parent)
{
    return new Kind(parent);
}

struct PageRow
{
    std::string_view page;
    Picture* (*make)(QWidget*);
    QString (*shortcuts)() = nullptr;
};

constexpr std::array pageRows{
    PageRow{"hierarchy", make<HierarchyPicture>},
    PageRow{"stride", make<StridePicture>},
    PageRow{"bank-conflicts", make<BankPicture>, BankPicture::shortcuts},
    PageRow{"transfer", make<TransferPicture>, TransferPicture::shortcuts},
    PageRow{"loading", make<LoadingPicture>, LoadingPicture::shortcuts},
    PageRow{"layout", make<LayoutPicture>, LayoutPicture::shortcuts},
    PageRow{"in-place", make<InPlacePicture>, InPlacePicture::shortcuts},
    PageRow{"training-memory", [](QWidget* parent) -> Picture* { return new TrainingMemoryPicture(parent, true); }},
    PageRow{"step-timeline", make<MomentPicture>, MomentPicture::shortcuts},
    PageRow{"inference-memory", [](QWidget* parent) -> Picture* { return new TrainingMemoryPicture(parent, false); }},
    PageRow{"checkpoint", make<CheckpointPicture>, CheckpointPicture::shortcuts},
    PageRow{"batch-size", make<BatchPicture>},
    PageRow{"placement", make<PlacementPicture>, PlacementPicture::shortcuts},
    PageRow{"sharding", make<ShardingPicture>, ShardingPicture::shortcuts},
    PageRow{"allocator", make<AllocatorPicture>, AllocatorPicture::shortcuts},
    PageRow{"attention", make<AttentionPicture>, AttentionPicture::shortcuts},
    PageRow{"precision", make<PrecisionPicture>},
    PageRow{"roofline", make<RooflinePicture>},
};

const PageRow* pageRow(std::string_view page)
{
    const auto row = std::ranges::find(pageRows, page, &PageRow::page);
    return row == pageRows.end() ? nullptr : &*row;
}

} // namespace

Picture* makePicture(std::string_view page, QWidget* parent)
{
    const PageRow* row = pageRow(page);
    return row ? row->make(parent) : nullptr;
}

QString pictureShortcuts(std::string_view page)
{
    const PageRow* row = pageRow(page);
    return row && row->shortcuts ? row->shortcuts() : QString();
}

} // namespace memscape
