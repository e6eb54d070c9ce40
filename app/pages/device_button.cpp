// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/device_button.h"

#include "app/pages/icons.h"
#include "app/pages/records/record_text.h"
#include "core/experiment/measured_by.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QTimer>
#include <QWidgetAction>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace memscape {

namespace {

constexpr auto headingProperty = "heading";

QString entryLabel(const DeviceEntry& entry)
{
    return entry.id == "cpu" ? DeviceButton::tr("This CPU") : entry.label;
}

QStringList measuredTitles(const Device& device)
{
    QStringList titles;
    for (const Experiment* experiment : experimentsMeasuredOn(device))
        titles << QString::fromStdString(experiment->title());
    return titles;
}

QString entryToolTip(const DeviceEntry& entry)
{
    QString tip = QString::fromStdString(entry.device.name);
    tip += u'\n' + basisText(entry.device);
    if (!entry.missing.isEmpty())
        tip += u'\n' + entry.missing;
    else if (!entry.measurable())
        tip += u'\n' + DeviceButton::tr("predictions only");
    else if (entry.device.framework)
        tip += u'\n' + DeviceButton::tr("measures %1").arg(measuredTitles(entry.device).join(QStringLiteral(", ")));
    return tip;
}

} // namespace

DeviceButton::DeviceButton(DeviceDirectory& devices, QWidget* parent)
    : QToolButton(parent)
    , m_devices(devices)
{
    setObjectName(QStringLiteral("device"));
    setAccessibleName(tr("Device"));
    setPopupMode(QToolButton::InstantPopup);
    setFocusPolicy(Qt::StrongFocus);
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    // The text has one.
    setStyleSheet(QStringLiteral("QToolButton::menu-indicator { image: none; }"));
    setMenu(&m_menu);
    m_menu.setToolTipsVisible(true);
    connect(&m_menu, &QMenu::aboutToShow, this, &DeviceButton::fillMenu);
    connect(&devices, &DeviceDirectory::changed, this, &DeviceButton::refresh);
}

void DeviceButton::setDevice(const std::string& id)
{
    if (std::exchange(m_id, id) != id)
        refresh();
}

void DeviceButton::refresh()
{
    const DeviceEntry* entry = m_devices.find(m_id);
    const QString label = entry ? entryLabel(*entry) : QString::fromStdString(m_id);
    setText(u' ' + label + QStringLiteral("  ▾"));
    setIcon(themedIcon(entry && entry->device.isGpu() ? QStringLiteral("gpu") : QStringLiteral("cpu")));
    setToolTip(entry ? entryToolTip(*entry) : tr("This device is not available"));
    setAccessibleDescription(label);
}

void DeviceButton::fillMenu()
{
    m_menu.clear();
    addSearch();
    addSection(tr("Live: predicted and measured"), DeviceSource::Live);
    addActions();
    addSection(tr("Device files"), DeviceSource::File);
    addSection(tr("Machines of records"), DeviceSource::Record);
    addSection(tr("Catalogue: predicted"), DeviceSource::Catalogue);
}

/// What can be done, above the long lists: the catalogue may reach beyond the screen.
void DeviceButton::addActions()
{
    QAction* calibrate = m_menu.addAction(themedIcon(QStringLiteral("calibrate")), tr("Calibrate this device…"), this,
                                          &DeviceButton::calibrateWanted);
    calibrate->setEnabled(m_calibrationPossible);
    QAction* forget = m_menu.addAction(tr("Forget calibration"), this, &DeviceButton::forgetWanted);
    forget->setObjectName(QStringLiteral("forgetCalibration"));
    forget->setToolTip(tr("Predictions use the device's description again"));
    std::error_code unknown; // no file to forget, then
    forget->setEnabled(std::filesystem::exists(calibrationPath(m_id), unknown));
    m_menu.addAction(tr("Add device from command…"), this, &DeviceButton::commandWanted);
    m_menu.addAction(tr("Open device file…"), this, &DeviceButton::fileWanted);
    m_menu.addSeparator();
}

/// Shows the devices that have all the typed words, and the headings that have one. Answers the devices.
QList<QAction*> DeviceButton::search(const QString& typed)
{
    QList<QAction*> found;
    const QStringList words = typed.split(u' ', Qt::SkipEmptyParts);
    QAction* heading = nullptr;
    for (QAction* one : m_menu.actions()) {
        if (one->property(headingProperty).toBool()) {
            heading = one;
            heading->setVisible(false);
        }
        if (!one->isCheckable())
            continue; // no device
        const bool matches = std::ranges::all_of(words, [one](const QString& word) {
            return one->text().contains(word, Qt::CaseInsensitive)
                || one->toolTip().contains(word, Qt::CaseInsensitive);
        });
        one->setVisible(matches);
        if (!matches)
            continue;
        found << one;
        if (heading)
            heading->setVisible(true);
    }
    return found;
}

/// A field for letters: there are some forty devices.
void DeviceButton::addSearch()
{
    auto* frame = new QWidget(&m_menu);
    auto* field = new QLineEdit(frame);
    field->setObjectName(QStringLiteral("searchDevices"));
    field->setPlaceholderText(tr("Type to find: A100, 4090…"));
    field->setAccessibleName(tr("Find a device"));
    auto* row = new QHBoxLayout(frame);
    row->setContentsMargins(8, 4, 8, 4);
    row->addWidget(field);
    auto* action = new QWidgetAction(&m_menu);
    action->setDefaultWidget(frame);
    m_menu.addAction(action);
    connect(field, &QLineEdit::textEdited, this, &DeviceButton::search);
    connect(field, &QLineEdit::returnPressed, this, [this, field] {
        QAction* wanted = m_menu.activeAction(); // by the arrow keys
        if (!wanted || !wanted->isCheckable())
            wanted = field->text().isEmpty() ? nullptr : search(field->text()).value(0);
        if (!wanted)
            return;
        m_menu.close();
        wanted->trigger();
    });
    QTimer::singleShot(0, field, [field] { field->setFocus(); });
}

void DeviceButton::addSection(const QString& title, DeviceSource source)
{
    std::vector<const DeviceEntry*> entries;
    for (const DeviceEntry& entry : m_devices.entries()) {
        if (entry.source == source)
            entries.push_back(&entry);
    }
    if (entries.empty())
        return;
    QAction* head = m_menu.addAction(title);
    head->setEnabled(false);
    head->setProperty(headingProperty, true);
    for (const DeviceEntry* entry : entries)
        addEntry(m_menu, *entry);
    m_menu.addSeparator();
}

void DeviceButton::addEntry(QMenu& menu, const DeviceEntry& entry)
{
    QString text = entryLabel(entry);
    if (entry.calibrated())
        text += tr(" · calibrated");
    if (entry.source == DeviceSource::Live && !entry.missing.isEmpty())
        text += tr(" · not available");
    else if (entry.measurable() && m_experiment && !m_experiment->notMeasuredOn(entry.device).empty())
        text += tr(" · predicted only");
    QAction* action = menu.addAction(text);
    action->setCheckable(true);
    action->setChecked(entry.id == m_id);
    action->setToolTip(entryToolTip(entry));
    const QString id = QString::fromStdString(entry.id);
    connect(action, &QAction::triggered, this, [this, id] { emit picked(id); });
}

} // namespace memscape
