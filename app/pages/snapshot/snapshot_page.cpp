// SPDX-License-Identifier: GPL-3.0-or-later
// What the page shows: a file that was read, in all views; what is said where there is none.
#include "app/pages/snapshot/snapshot_page.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/snapshot/predicted_snapshot.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QFileInfo>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>

#include <algorithm>

namespace memscape {

namespace {

constexpr double lowPage = 620; ///< in plotUnit(): below, the strip of blocks goes; it has a view of its own

/// Freed beside the window's thread: gigabytes take their time.
void release(OpenedSnapshot& opened)
{
    QThreadPool::globalInstance()->start([last = std::exchange(opened, {})]() mutable { last = {}; });
}

} // namespace

void SnapshotPage::moveTo(std::size_t moment)
{
    if (!m_opened.device)
        return;
    m_shown.moment = std::min(moment, m_opened.device->lifetimes().events());
    showMoment();
}

void SnapshotPage::take(const OpenedSnapshot& opened)
{
    m_patience.stop();
    OpenedSnapshot before = std::exchange(m_opened, opened);
    release(before);
    const SnapshotDevice& device = *m_opened.device;
    const std::size_t events = device.lifetimes().events();
    m_problem.reset();
    m_shown = {};
    m_shown.device = m_opened.device;
    m_shown.byTime = m_byTime->isChecked();
    m_shown.peak = m_shown.moment = device.timeline().peakAllocated(0, events);
    m_shown.range = {0, events};
    m_inspector->beside()->setSnapshot(m_opened.device);
    m_figures.clear();
    readRange();
    askFigures();
    askFindings();
    showHeader();
    showStart();
    showKind();
    showAll();
}

/// No file is open.
void SnapshotPage::drop()
{
    m_patience.stop();
    release(m_opened);
    m_shown = {};
    m_figures.clear();
    m_figuresWork.cancel();
    m_findingsWork.cancel();
    m_fixesWork.cancel();
    m_found.clear();
    m_fixes.clear();
    m_inspector->beside()->setSnapshot(nullptr);
    m_findings->setFindings({}, m_services.settings.byteStyle());
    showHeader();
    showStart();
    showAll();
}

void SnapshotPage::showStart()
{
    if (m_opener.isBusy())
        m_start->showProgress(m_opener.path(), 0, tr("reading"));
    else if (m_problem)
        m_start->showError(m_asked, *m_problem);
    else if (m_isStopped)
        m_start->showStopped(m_asked);
    else
        m_start->showEmpty();
    if (const Record* shown = record(); shown != nullptr && m_stack->currentWidget() != m_splitter) {
        m_recordPane->setRecord(*shown, m_services.settings.byteStyle());
        m_stack->setCurrentWidget(m_recordPane);
        return;
    }
    m_stack->setCurrentIndex(m_opened.device && !m_opener.isBusy() ? 1 : 0);
}

bool SnapshotPage::isOpen() const
{
    return m_opened.device && m_opened.path == file();
}

QString SnapshotPage::title() const
{
    if (const Record* shown = record())
        return tr("Record of %1").arg(toQString(shown->name));
    const QString name = QFileInfo(file()).fileName();
    return name.isEmpty() ? tr("Snapshot") : name;
}

QString SnapshotPage::facts() const
{
    if (record() != nullptr)
        return tr("Its figures, findings and curves; blocks, stacks and moments are in the snapshot itself");
    if (!isOpen())
        return toQString(info().question);
    const Snapshot& snapshot = *m_opened.snapshot;
    return QStringList{
        fileSizeText(snapshot.fileBytes), tr("%1 events").arg(eventsText(m_opened.device->lifetimes().events())),
        torchText(snapshot),
        tr("opened in %1").arg(toQString(quantityText(m_opened.seconds, Unit::Second, ByteStyle::Binary, 2)))}
        .join(QStringLiteral(" · "));
}

void SnapshotPage::showHeader()
{
    m_title->setText(title());
    m_title->setToolTip(file());
    m_facts->setText(facts());
    for (QPushButton* button : {m_playButton, m_compareButton, m_export})
        button->setEnabled(isOpen());
    QStringList notes;
    m_devices->clear();
    if (isOpen()) {
        for (const std::string& note : m_opened.snapshot->notes)
            notes << toQString(note);
        if (m_opened.snapshot->run && m_opened.snapshot->run->error)
            notes << tr("The run ended with: %1").arg(toQString(*m_opened.snapshot->run->error));
        for (const std::uint32_t device : m_opened.snapshot->devices())
            m_devices->addItem(tr("device %1").arg(device), device);
        m_devices->setCurrentIndex(m_devices->findData(m_opened.device->device()));
    }
    m_devices->setVisible(m_devices->count() > 1);
    m_notes->setText(notes.mid(0, 2).join(u' '));
    m_notes->setToolTip(notes.join(u'\n'));
    m_notes->setVisible(!notes.isEmpty());
    emit updated();
}

void SnapshotPage::showKind()
{
    const int index = int(m_kindKeys.indexOf(kind()));
    const QString headings[] = {m_byTime->isChecked() ? tr("Bytes over time") : tr("Bytes over events"),
                                tr("Segments and blocks"), tr("Who holds the bytes"), tr("Who holds the bytes"),
                                tr("Difference")};
    m_kinds->button(index)->setChecked(true);
    m_kinds->button(int(m_kindKeys.indexOf(QStringLiteral("compare"))))->setVisible(!m_compare->other().isEmpty());
    m_heading->setText(headings[index]);
    m_views->setCurrentIndex(index);
    m_byTime->setVisible(index == 0 && !(m_shown.device && isPredicted(m_shown.device->snapshot())));
    const bool hasRoom = height() >= lowPage * plotUnit();
    m_strip->setVisible(index == 0 && hasRoom);
    m_stripTitle->setVisible(index == 0 && hasRoom);
    m_below->setVisible(index == 0 || hasRoom);
    fitBelow();
    showStatus({});
}

/// The findings have as much room as they need, up to two fifths of the page.
void SnapshotPage::fitBelow()
{
    if (m_isParted || m_below->isHidden())
        return;
    const int all = m_centre->height();
    const int around = m_below->sizeHint().height() - m_findings->sizeHint().height();
    const int cards = std::min(m_findings->wantedHeight(m_centre->width() - 30), all * 2 / 5);
    const int below = std::max(m_below->minimumSizeHint().height(), around + cards);
    if (all > below)
        m_centre->setSizes({all - below, below});
}

/// Everything that follows moment, range and byte style.
void SnapshotPage::showAll()
{
    m_shown.bytes = m_services.settings.byteStyle();
    m_compare->setThis(m_shown.device, title(), m_shown.bytes);
    if (m_shown.device)
        m_inspector->setRange(tr("of %1").arg(rangeText(*m_shown.device, m_shown.range)), m_shown.isSelected);
    else
        m_inspector->setRange({}, false);
    showBeside();
    showMoment();
}

/// What follows the moment alone: a cursor that moves must not lay out tables.
void SnapshotPage::showMoment()
{
    for (SnapshotView* view : {static_cast<SnapshotView*>(m_timeline), static_cast<SnapshotView*>(m_blocks),
                               static_cast<SnapshotView*>(m_strip)})
        view->setShown(m_shown);
    m_flame->setShown(m_shown);
    m_table->setShown(m_shown);
    m_stripTitle->setText(m_strip->isVisible() ? m_strip->title() : QString());
    showStatus({});
    emit updated();
}

void SnapshotPage::showBeside()
{
    const Record* record = m_inspector->beside()->prediction();
    m_inspector->setFigures(m_figures, m_shown.device && isPredicted(m_shown.device->snapshot()),
                            record && record->predicted ? &*record->predicted : nullptr,
                            m_services.settings.byteStyle());
    m_timeline->setPrediction(m_inspector->beside()->step());
}

void SnapshotPage::showStatus(const QString& hover)
{
    QString text = hover;
    if (text.isEmpty() && m_shown.device) {
        const SnapshotView* view = picture();
        text = momentText(*m_shown.device, m_shown.moment);
        if (view != nullptr)
            text += QStringLiteral(" · ") + view->hint();
    }
    m_status->setText(m_status->fontMetrics().elidedText(text, Qt::ElideRight, std::max(40, m_status->width())));
    m_status->setAccessibleDescription(text);
}

QString SnapshotPage::statusText() const
{
    return m_status->accessibleDescription();
}

void SnapshotPage::resetView()
{
    if (m_shown.device)
        m_timeline->setSight(m_timeline->whole());
}

QWidget* SnapshotPage::stage() const
{
    if (m_stack->currentIndex() != 1)
        return m_stack->currentWidget();
    if (m_views->currentWidget() == m_flame)
        return m_flame->flame();
    return m_views->currentWidget() == m_table ? static_cast<QWidget*>(m_table->table()) : m_views->currentWidget();
}

const SnapshotView* SnapshotPage::picture() const
{
    return qobject_cast<const SnapshotView*>(stage());
}

QString SnapshotPage::data() const
{
    if (m_views->currentWidget() == m_table)
        return m_table->table()->text();
    if (m_views->currentWidget() == m_compare)
        return m_compare->table()->text();
    QStringList lines{QStringLiteral("moment\tallocated\treserved")};
    for (const TimelineColumn& column : m_timeline->chartNow().columns)
        lines << QStringLiteral("%1\t%2\t%3").arg(column.peak).arg(column.highAllocated).arg(column.highReserved);
    return lines.join(u'\n') + u'\n';
}

void SnapshotPage::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    showKind();
    if (m_strip->isVisible() && m_shown.device)
        m_stripTitle->setText(m_strip->title());
}

void SnapshotPage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() != QEvent::FontChange && event->type() != QEvent::StyleChange)
        return;
    fitInspector();
    fitStrip();
    if (m_opened.device)
        askFigures(); // the colours of the list
}

} // namespace memscape
