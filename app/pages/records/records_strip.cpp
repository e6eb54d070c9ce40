// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/records_strip.h"

#include "app/pages/icons.h"
#include "app/settings/theme.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QListView>
#include <QPainter>
#include <QScrollBar>
#include <QToolButton>

#include <algorithm>

namespace memscape {

namespace {

constexpr int widest = 280; ///< of a chip's words, at the usual size of text
constexpr int chipGap = 6;  ///< between chips
constexpr int narrow = 480; ///< a strip that has no room for words beside its chips
constexpr int dotRoom = 22, pinRoom = 22;

QFont chipFont()
{
    return relativeFont(0.88);
}

/// What stands between the words and the pin: "baseline", "A".
QStringList tails(const QModelIndex& index)
{
    QStringList texts;
    if (index.data(RecordsModel::BaselineRole).toBool())
        texts << RecordsStrip::tr("baseline");
    if (const QString grade = index.data(RecordsModel::GradeRole).toString(); !grade.isEmpty())
        texts << grade;
    return texts;
}

void paintDot(QPainter* painter, const QPointF& centre, const QModelIndex& index)
{
    const QColor colour = index.data(RecordsModel::ColourRole).value<QColor>();
    const bool isRing = index.data(RecordsModel::PredictedRole).toBool();
    painter->setPen(QPen(colour, 1.6));
    painter->setBrush(isRing ? QBrush(Qt::NoBrush) : QBrush(colour));
    painter->drawEllipse(centre, 3.4, 3.4);
}

} // namespace

QRect RecordChip::pinOf(const QRect& chip)
{
    return {chip.right() - chipGap - pinRoom + 1, chip.top(), pinRoom, chip.height()};
}

QSize RecordChip::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const
{
    const QFontMetrics metrics(chipFont());
    const int most = widest * metrics.height() / 16;
    int width = dotRoom + std::min(most, metrics.horizontalAdvance(index.data(RecordsModel::LabelRole).toString()));
    for (const QString& tail : tails(index))
        width += 8 + metrics.horizontalAdvance(tail);
    return {width + 6 + pinRoom + chipGap, metrics.height() + 10};
}

void RecordChip::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const Theme& theme = currentTheme();
    const bool isShown = index.data(RecordsModel::ShownRole).toBool();
    const bool isHere = option.state & QStyle::State_HasFocus;
    const bool isPinned = index.data(RecordsModel::PinnedRole).toBool();
    const QRect chip = option.rect.adjusted(0, 1, -chipGap, -1);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(isHere        ? theme.predicted
                             : isShown ? theme.measured
                                       : theme.border,
                         isHere || isShown ? 1.6 : 1));
    painter->setBrush(option.state & QStyle::State_MouseOver ? mix(theme.raised, theme.text, 0.06) : theme.raised);
    const QRectF frame = QRectF(chip).adjusted(0.8, 0.8, -0.8, -0.8);
    painter->drawRoundedRect(frame, frame.height() / 2, frame.height() / 2);
    paintDot(painter, {chip.left() + 12.5, frame.center().y()}, index);

    const QRect pin = pinOf(option.rect);
    themedIcon(QStringLiteral("pin"), isPinned ? theme.text : mix(theme.raised, theme.textFaint, 0.7))
        .paint(painter, QRect(pin.center() - QPoint(8, 6), QSize(14, 14)));
    painter->setFont(chipFont());
    QRect words(chip.left() + dotRoom, chip.top(), pin.left() - 4 - chip.left() - dotRoom, chip.height());
    QStringList ends = tails(index);
    while (!ends.isEmpty()) {
        const QString tail = ends.takeLast();
        painter->setPen(tail.size() > 1                                                ? theme.textDim
                            : tail == QLatin1String("A") || tail == QLatin1String("B") ? theme.good
                                                                                       : theme.warning);
        painter->drawText(words, Qt::AlignRight | Qt::AlignVCenter, tail);
        words.setRight(words.right() - painter->fontMetrics().horizontalAdvance(tail) - 8);
    }
    painter->setPen(theme.text);
    painter->drawText(words, Qt::AlignLeft | Qt::AlignVCenter,
                      painter->fontMetrics().elidedText(index.data(RecordsModel::LabelRole).toString(), Qt::ElideRight,
                                                        words.width() + 2));
    painter->restore();
}

RecordsStrip::RecordsStrip(StudyDocument& document, RecordsModel* model, QWidget* parent)
    : QWidget(parent)
    , m_document(document)
    , m_view(new QListView(this))
{
    setObjectName(QStringLiteral("records.strip"));
    m_byAge.setSourceModel(model);
    m_byAge.setSortRole(RecordsModel::IndexRole);
    m_byAge.sort(0);
    m_view->setModel(&m_byAge);
    m_view->setItemDelegate(new RecordChip(m_view));
    m_view->setFlow(QListView::LeftToRight);
    m_view->setWrapping(false);
    m_view->setFrameShape(QFrame::NoFrame);
    m_view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_view->setSelectionMode(QAbstractItemView::SingleSelection);
    m_view->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_view->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_view->setMouseTracking(true);
    m_view->setAccessibleName(tr("Records of this page, the newest last"));
    m_view->viewport()->setAutoFillBackground(false);
    m_view->installEventFilter(this);
    m_view->viewport()->installEventFilter(this);
    m_back = arrow(QStringLiteral("‹"), tr("Older records"), -1);
    m_on = arrow(QStringLiteral("›"), tr("Newer records"), 1);
    m_add = new QToolButton(this);
    m_add->setToolTip(tr("Pin this prediction: keep it as a record, drawn beside what comes next"));
    m_add->setAccessibleName(tr("Pin this prediction"));
    m_add->setProperty("role", "chip");
    m_add->setObjectName(QStringLiteral("records.add"));
    m_add->setFocusPolicy(Qt::StrongFocus);
    connect(m_add, &QToolButton::clicked, this, &RecordsStrip::predictionWanted);

    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    row->addWidget(m_back);
    row->addWidget(m_view, 1);
    row->addWidget(m_on);
    row->addWidget(m_add);
    connect(m_view, &QListView::clicked, this, [this](const QModelIndex& index) { emit chosen(recordOf(index)); });
    connect(m_view->horizontalScrollBar(), &QScrollBar::rangeChanged, this, &RecordsStrip::fit);
    connect(m_view->horizontalScrollBar(), &QScrollBar::valueChanged, this, &RecordsStrip::fit);
    connect(&m_byAge, &QAbstractItemModel::rowsInserted, this, &RecordsStrip::showNewest);
    connect(&m_byAge, &QAbstractItemModel::rowsRemoved, this, &RecordsStrip::fit);
    connect(&m_byAge, &QAbstractItemModel::modelReset, this, &RecordsStrip::showNewest);
    connect(&m_byAge, &QAbstractItemModel::dataChanged, m_view, [this] { m_view->doItemsLayout(); });
    showNewest();
}

QToolButton* RecordsStrip::arrow(const QString& sign, const QString& name, int direction)
{
    auto* button = new QToolButton(this);
    button->setText(sign);
    button->setToolTip(name);
    button->setAccessibleName(name);
    button->setProperty("role", "flat");
    button->setFocusPolicy(Qt::NoFocus); // the keyboard goes along the chips themselves
    button->hide();
    connect(button, &QToolButton::clicked, this, [this, direction] {
        QScrollBar* bar = m_view->horizontalScrollBar();
        bar->setValue(bar->value() + direction * m_view->viewport()->width() * 2 / 3);
    });
    return button;
}

int RecordsStrip::recordOf(const QModelIndex& index) const
{
    return index.isValid() ? index.data(RecordsModel::IndexRole).toInt() : -1;
}

void RecordsStrip::togglePin(const QModelIndex& index)
{
    if (const int record = recordOf(index); record >= 0)
        m_document.setRecordPinned(std::size_t(record), !m_document.records()[std::size_t(record)].pinned);
}

void RecordsStrip::menuAt(const QModelIndex& index)
{
    if (index.isValid())
        emit menuWanted(recordOf(index), m_view->viewport()->mapToGlobal(m_view->visualRect(index).bottomLeft()));
}

void RecordsStrip::showNewest()
{
    fit();
    QMetaObject::invokeMethod(
        this, [this] { m_view->scrollTo(m_byAge.index(m_byAge.rowCount() - 1, 0)); }, Qt::QueuedConnection);
}

/// As high as a chip; arrows only where there is something that way.
void RecordsStrip::fit()
{
    setVisible(m_byAge.rowCount() > 0);
    m_add->setText(width() < narrow ? tr("+") : tr("+ prediction"));
    m_view->setFixedHeight(QFontMetrics(chipFont()).height() + 12);
    const QScrollBar* bar = m_view->horizontalScrollBar();
    const bool overflows = bar->maximum() > 0;
    for (QToolButton* button : {m_back, m_on})
        button->setVisible(overflows);
    m_back->setEnabled(bar->value() > 0);
    m_on->setEnabled(bar->value() < bar->maximum());
}

void RecordsStrip::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fit();
}

void RecordsStrip::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        fit();
}

bool RecordsStrip::keyPressed(int key)
{
    const QModelIndex current = m_view->currentIndex();
    switch (key) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (current.isValid())
            emit chosen(recordOf(current));
        return true;
    case Qt::Key_P: togglePin(current); return true;
    case Qt::Key_B:
        if (const int record = recordOf(current); record >= 0)
            m_document.setBaseline(std::size_t(record), !current.data(RecordsModel::BaselineRole).toBool());
        return true;
    case Qt::Key_Menu: menuAt(current); return true;
    default: return false;
    }
}

/// The wheel goes along, and the pin is a place of its own on the chip.
bool RecordsStrip::viewportEvent(QEvent* event)
{
    if (event->type() == QEvent::Wheel) {
        const QPoint turned = static_cast<QWheelEvent*>(event)->angleDelta();
        QScrollBar* bar = m_view->horizontalScrollBar();
        bar->setValue(bar->value() - (turned.y() != 0 ? turned.y() : turned.x()));
        return bar->maximum() > 0;
    }
    if (event->type() != QEvent::MouseButtonPress && event->type() != QEvent::MouseButtonRelease
        && event->type() != QEvent::MouseButtonDblClick)
        return false;
    const auto* mouse = static_cast<QMouseEvent*>(event);
    const QPoint at = mouse->position().toPoint();
    const QModelIndex index = m_view->indexAt(at);
    if (mouse->button() == Qt::RightButton) {
        if (event->type() == QEvent::MouseButtonRelease)
            menuAt(index);
        return true;
    }
    if (!index.isValid() || !RecordChip::pinOf(m_view->visualRect(index)).contains(at))
        return false;
    if (event->type() == QEvent::MouseButtonRelease)
        togglePin(index);
    return true;
}

bool RecordsStrip::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_view->viewport() && viewportEvent(event))
        return true;
    if (watched == m_view && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_F10 && key->modifiers() == Qt::ShiftModifier)
            return keyPressed(Qt::Key_Menu);
        if (!(key->modifiers() & (Qt::ControlModifier | Qt::AltModifier)) && keyPressed(key->key()))
            return true;
    }
    if (watched == m_view && event->type() == QEvent::FocusIn && !m_view->currentIndex().isValid())
        m_view->setCurrentIndex(m_byAge.index(m_byAge.rowCount() - 1, 0));
    return QWidget::eventFilter(watched, event);
}

} // namespace memscape
