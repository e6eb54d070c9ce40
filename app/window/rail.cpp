// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/rail.h"

#include "app/document/pages.h"
#include "app/pages/cards/card.h"
#include "app/pages/records/record_text.h"
#include "app/settings/scroll_column.h"
#include "app/settings/theme.h"
#include "app/settings/words.h"

#include <QButtonGroup>
#include <QEvent>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// "24 GB · 2 cores" or "141 GB · 132 SMs".
QString deviceDetails(const Device& device)
{
    QStringList parts;
    if (device.id == "cpu")
        parts << QString::fromStdString(device.name);
    if (const MemoryLevel* dram = device.dram(); dram && dram->capacity.known())
        parts << QString::fromStdString(quantityText(dram->capacity.value, Unit::Byte));
    parts << QStringLiteral("%1 %2").arg(device.units).arg(toQString(device.unitWord()));
    return parts.join(QStringLiteral(" · "));
}

} // namespace

Rail::Rail(const std::vector<const Experiment*>& experiments, DeviceDirectory& devices, QWidget* parent)
    : QFrame(parent)
    , m_devices(devices)
    , m_group(new QButtonGroup(this))
    , m_scroll(new QScrollArea(this))
{
    setObjectName(QStringLiteral("rail"));
    setAccessibleName(tr("Experiments"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(12, 14, 12, 12);
    column->setSpacing(2);
    auto* name = toneLabel(QStringLiteral("Memscape"), "subtitle", this);
    name->setContentsMargins(8, 0, 0, 0);
    auto* motto = toneLabel(tr("see where the bytes go"), "faint", this);
    motto->setContentsMargins(8, 0, 0, 6);
    column->addWidget(name);
    column->addWidget(motto);
    auto* list = new QWidget(m_scroll);
    m_list = new QVBoxLayout(list);
    m_list->setContentsMargins(0, 0, 0, 0);
    m_list->setSpacing(0); // all pages in sight at 1280 × 800
    const std::vector<PageInfo> pages = allPages(experiments);
    addGroup("hardware", tr("HARDWARE"), pages);
    addGroup("tensors", tr("TENSORS"), pages);
    addGroup("training", tr("TRAINING"), pages);
    addGroup("kernels", tr("KERNELS"), pages);
    addGroup("learn", tr("LEARN"), pages);
    m_list->addStretch(1);
    scrollColumn(m_scroll, list);
    m_scroll->viewport()->installEventFilter(this);
    column->addWidget(m_scroll, 1);
    column->addWidget(makeDeviceCard());
    fitWidth();
    connect(&devices, &DeviceDirectory::changed, this, &Rail::refreshDevice);
}

/// As wide as its words are, at any size of the text.
void Rail::fitWidth()
{
    const int room = 24 + m_scroll->verticalScrollBar()->sizeHint().width(); // a low window has that too
    const QFontMetrics bold(relativeFont(1, true));                          // the chosen one is
    int widest = bold.averageCharWidth() * 18 + 32;
    for (const QPushButton* button : std::as_const(m_buttons))
        widest = std::max(widest, bold.horizontalAdvance(button->text()) + 28);
    setFixedWidth(room + std::max(widest, m_scroll->widget()->minimumSizeHint().width()));
}

void Rail::changeEvent(QEvent* event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        fitWidth();
}

/// A lower window, or a card below that says more, would push the chosen page out of sight.
bool Rail::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_scroll->viewport() && event->type() == QEvent::Resize)
        QMetaObject::invokeMethod(this, &Rail::scrollToChosen, Qt::QueuedConnection); // once the list has its places
    return QFrame::eventFilter(watched, event);
}

void Rail::addGroup(const std::string& group, const QString& title, const std::vector<PageInfo>& pages)
{
    bool titled = false;
    for (const PageInfo& page : pages) {
        if (page.group != group)
            continue;
        if (!std::exchange(titled, true)) {
            auto* label = toneLabel(title, "section", this);
            label->setContentsMargins(8, 6, 0, 2);
            m_list->addWidget(label);
        }
        addPage(page);
    }
}

void Rail::addPage(const PageInfo& page)
{
    const QString id = QString::fromStdString(page.id);
    auto* button = new QPushButton(QString::fromStdString(page.title), this);
    button->setObjectName(QStringLiteral("rail.") + id);
    button->setCheckable(true);
    button->setAutoDefault(false);
    button->setToolTip(QString::fromStdString(page.question));
    m_group->addButton(button);
    m_buttons.insert(id, button);
    m_list->addWidget(button);
    connect(button, &QPushButton::clicked, this, [this, id] { emit pageWanted(id); });
}

QWidget* Rail::makeDeviceCard()
{
    auto* card = new Card(this);
    card->setObjectName(QStringLiteral("deviceCard"));
    m_name = toneLabel({}, "strong", card);
    m_details = toneLabel({}, "faint", card);
    m_state = toneLabel({}, "faint", card);
    m_state->setTextFormat(Qt::RichText);
    m_calibrate = new QPushButton(tr("Calibrate…"), card);
    m_calibrate->setObjectName(QStringLiteral("calibrate"));
    m_calibrate->setToolTip(tr(
        "Measure this device for one to three minutes, so that predictions use its own rates instead of data sheets"));
    for (QWidget* part : {static_cast<QWidget*>(m_name), static_cast<QWidget*>(m_details),
                          static_cast<QWidget*>(m_state), static_cast<QWidget*>(m_calibrate)})
        card->column()->addWidget(part);
    connect(m_calibrate, &QPushButton::clicked, this, &Rail::calibrateWanted);
    return card;
}

void Rail::setPage(const QString& experiment)
{
    if (QPushButton* button = m_buttons.value(experiment)) {
        button->setChecked(true);
        scrollToChosen();
    }
}

/// Out of sight the buttons have no places yet: a list that was scrolled by them would open without its beginning.
void Rail::scrollToChosen()
{
    if (QAbstractButton* chosen = m_group->checkedButton(); chosen && isVisible())
        m_scroll->ensureWidgetVisible(chosen, 0, 24);
}

void Rail::showEvent(QShowEvent* event)
{
    QFrame::showEvent(event);
    scrollToChosen();
}

void Rail::setDevice(const std::string& id)
{
    m_device = id;
    refreshDevice();
}

void Rail::setBusy(bool busy)
{
    if (std::exchange(m_busy, busy) != busy)
        refreshDevice();
}

void Rail::refreshDevice()
{
    const DeviceEntry* entry = m_devices.find(m_device);
    if (entry == nullptr || entry->isNameOnly()) {
        m_name->setText(entry ? entry->label : QString::fromStdString(m_device));
        m_details->setText(tr("not available"));
        m_state->clear();
        m_calibrate->setVisible(false);
        return;
    }
    const Theme& theme = currentTheme();
    m_name->setText(shortDeviceName(entry->device));
    m_details->setText(deviceDetails(entry->device));
    const auto& calibration = entry->device.calibration;
    const bool sound = calibration && (calibration->grade == "A" || calibration->grade == "B");
    const QColor dot = sound ? theme.good : theme.warning;
    m_state->setText(
        QStringLiteral("<span style='color:%1'>●</span> %2").arg(dot.name(), basisText(entry->device).toHtmlEscaped()));
    m_calibrate->setVisible(entry->measurable() && !entry->calibrated());
    m_calibrate->setEnabled(entry->measurable() && !m_busy);
}

} // namespace memscape
