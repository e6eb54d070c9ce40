// SPDX-License-Identifier: GPL-3.0-or-later
// What the page shows: from the study to a file, from the file to all views.
#include "app/pages/snapshot/snapshot_page.h"

#include "app/document/pages.h"
#include "app/pages/cards/card.h"
#include "app/pages/snapshot/snapshot_words.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/experiments/memory/memory_advice.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QFileInfo>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QUndoStack>

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

PageVisit playSnapshot(const QString& path)
{
    return {QStringLiteral("allocator"),
            {{"trace", QFileInfo(path).absoluteFilePath().toStdString()}, {"setting", "recorded"}},
            {},
            QObject::tr("Play %1").arg(QFileInfo(path).fileName())};
}

Json SnapshotPage::setting(const std::string& key) const
{
    return m_services.document.viewSetting(snapshotPageId, key);
}

void SnapshotPage::set(const std::string& key, const Json& value)
{
    m_services.document.setViewSetting(snapshotPageId, key, value);
}

QString SnapshotPage::pathSetting(const std::string& key) const
{
    const Json value = setting(key);
    return value.is_string() ? toQString(value.get<std::string>()) : QString();
}

QString SnapshotPage::file() const
{
    return pathSetting("file");
}

QString SnapshotPage::kind() const
{
    const QString chosen = pathSetting("view");
    return m_kindKeys.contains(chosen) ? chosen : m_kindKeys.front();
}

void SnapshotPage::setKind(const QString& kind)
{
    set("view", kind == m_kindKeys.front() ? Json() : Json(kind.toStdString()));
    showKind(); // also when it is the same: the chip stays pressed
}

void SnapshotPage::open(const QString& path)
{
    const QString absolute = QFileInfo(path).absoluteFilePath();
    if (absolute == file()) {
        m_asked.clear(); // read it again
        return readFile();
    }
    QUndoStack* history = m_services.document.undoStack();
    history->beginMacro(tr("Open %1").arg(QFileInfo(absolute).fileName()));
    for (const char* key : {"range", "device", "compare"})
        set(key, Json());
    if (kind() == QStringLiteral("compare"))
        set("view", Json());
    set("file", Json(absolute.toStdString()));
    history->endMacro();
}

void SnapshotPage::compareWith(const QString& path)
{
    QUndoStack* history = m_services.document.undoStack();
    history->beginMacro(path.isEmpty() ? tr("End comparison") : tr("Compare with %1").arg(QFileInfo(path).fileName()));
    set("compare", path.isEmpty() ? Json() : Json(QFileInfo(path).absoluteFilePath().toStdString()));
    set("view", path.isEmpty() ? Json() : Json("compare"));
    history->endMacro();
}

void SnapshotPage::select(std::size_t first, std::size_t last)
{
    if (!m_opened.device)
        return;
    const bool isWhole = first == 0 && last >= m_opened.device->lifetimes().events();
    set("range", isWhole ? Json() : Json::array({first, last}));
}

void SnapshotPage::moveTo(std::size_t moment)
{
    if (!m_opened.device)
        return;
    m_shown.moment = std::min(moment, m_opened.device->lifetimes().events());
    showMoment();
}

void SnapshotPage::documentChanged(const ChangeEvent& event)
{
    const auto* changed = std::get_if<ViewChanged>(&event);
    const bool isOfRecords = std::holds_alternative<RecordAdded>(event) || std::holds_alternative<RecordRemoved>(event)
        || std::holds_alternative<RecordRenamed>(event);
    if (!std::holds_alternative<StudyReset>(event) && !isOfRecords
        && !(changed && changed->experiment == snapshotPageId))
        return;
    m_isStale = true;
    if (isVisible())
        readDocument();
}

void SnapshotPage::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    if (m_isStale)
        readDocument();
}

/// The study says another file, view or range.
void SnapshotPage::readDocument()
{
    m_isStale = false;
    readFile();
    if (file().isEmpty()) {
        showHeader();
        showStart();
    }
    m_compare->setOther(pathSetting("compare"));
    m_inspector->beside()->setOn(setting("beside") == Json(true));
    m_byTime->setChecked(setting("time") == Json(true));
    m_shown.byTime = m_byTime->isChecked();
    readRange();
    showKind();
    showAll();
}

void SnapshotPage::readFile()
{
    const QString path = file();
    const Json number = setting("device");
    const std::optional<std::uint32_t> device =
        number.is_number_unsigned() ? std::optional(number.get<std::uint32_t>()) : std::nullopt;
    if (path != m_asked) {
        m_asked = path;
        m_problem.reset();
        m_isStopped = false;
        if (path.isEmpty()) {
            m_opener.stop();
            m_isStopped = false; // it is not wanted any more
            return drop();
        }
        m_start->showPreview({}, 0); // that of another file ends
        m_patience.start();
        return m_opener.open(path, device);
    }
    if (!m_opened.device || m_opener.isBusy())
        return;
    if (const std::uint32_t wanted = device.value_or(busiestDevice(*m_opened.snapshot));
        wanted != m_opened.device->device())
        m_opener.analyse(m_opened, wanted);
}

void SnapshotPage::readRange()
{
    if (!m_opened.device)
        return;
    const std::size_t events = m_opened.device->lifetimes().events();
    const EventRange before = m_shown.range;
    m_shown.range = {0, events};
    m_shown.isSelected = false;
    const Json range = setting("range");
    if (range.is_array() && range.size() == 2 && range[0].is_number_unsigned() && range[1].is_number_unsigned()) {
        const std::size_t first = range[0].get<std::size_t>(), last = std::min(range[1].get<std::size_t>(), events);
        if (first < last) {
            m_shown.range = {first, last};
            m_shown.isSelected = first > 0 || last < events;
        }
    }
    if (before.first != m_shown.range.first || before.last != m_shown.range.last)
        askFigures();
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

/// The newest one of a snapshot, while no file is named.
const Record* SnapshotPage::record() const
{
    const std::vector<Record>& records = m_services.document.records();
    const auto found = std::find_if(records.rbegin(), records.rend(),
                                    [](const Record& one) { return one.experiment == snapshotPageId; });
    return file().isEmpty() && found != records.rend() ? &*found : nullptr;
}

const RecordPane* SnapshotPage::recordShown() const
{
    return m_stack->currentWidget() == m_recordPane ? m_recordPane : nullptr;
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
    if (!m_opened.device)
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
    m_playButton->setEnabled(m_opened.device != nullptr);
    m_compareButton->setEnabled(m_opened.device != nullptr);
    m_export->setEnabled(m_opened.device != nullptr);
    QStringList notes;
    m_devices->clear();
    if (m_opened.device) {
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
    m_byTime->setVisible(index == 0);
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
    m_inspector->setFigures(m_figures, record && record->predicted ? &*record->predicted : nullptr,
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

void SnapshotPage::askFigures()
{
    m_figuresWork.start([this, device = m_opened.device, range = m_shown.range]() -> BackgroundWork::Finish {
        auto figures = snapshotFigures(*device, range);
        auto alive = largestAlive(*device, range);
        return [this, figures = std::move(figures), alive = std::move(alive)] {
            m_figures = figures;
            m_inspector->setAlive(alive, m_services.settings.byteStyle());
            showBeside();
            emit updated();
        };
    });
}

void SnapshotPage::askFindings()
{
    m_findingsWork.start([this, device = m_opened.device]() -> BackgroundWork::Finish {
        auto findings = findingsOf(*device, 0, device->lifetimes().events());
        return [this, findings = std::move(findings)] {
            m_found = findings;
            showFindings();
            askFixes();
        };
    });
}

void SnapshotPage::showFindings()
{
    std::vector<SnapshotFinding> findings = m_found;
    if (m_opened.device)
        offerFixes(findings, m_fixes, m_fixedPlan.toStdString(), refusedPhase(*m_opened.device, findings));
    m_findings->setFindings(std::move(findings), m_services.settings.byteStyle());
    QTimer::singleShot(0, this, &SnapshotPage::fitBelow); // new cards have no height before
    emit updated();
}

/// Of the prediction beside, in the phase in which memory ran out.
void SnapshotPage::askFixes()
{
    const BesidePanel* beside = m_inspector->beside();
    const bool isRefused = std::ranges::find(m_found, "out-of-memory", &SnapshotFinding::id) != m_found.end();
    const auto* record = beside->prediction();
    if (!isRefused || !m_opened.device || record == nullptr) {
        m_fixesWork.cancel();
        if (!std::exchange(m_fixes, {}).empty())
            showFindings();
        return;
    }
    const auto phase = refusedPhase(*m_opened.device, m_found);
    m_fixesWork.start([this, device = record->device, parameters = beside->parameters(),
                       phase]() -> BackgroundWork::Finish {
        std::vector<SnapshotFix> fixes;
        for (const LeverOutcome& one : leversAt(device, parameters, phase).value_or(std::vector<LeverOutcome>()))
            fixes.push_back({one.lever.label, phase ? one.phaseSaving[std::size_t(*phase)] : one.saving});
        return [this, fixes = std::move(fixes),
                plan = tr("%1, batch %2").arg(toQString(parameters.text("model"))).arg(parameters.integer("batch"))] {
            m_fixes = fixes;
            m_fixedPlan = plan;
            showFindings();
        };
    });
}

/// Its events are selected and in sight, the moment is their peak.
void SnapshotPage::goTo(const SnapshotFinding& finding)
{
    const std::size_t events = m_opened.device->lifetimes().events();
    const std::size_t last = std::min(std::max(finding.lastEvent, finding.firstEvent), events);
    const std::size_t first = std::min(finding.firstEvent, last);
    setKind(m_kindKeys.front());
    if (first < last) {
        select(first, last);
        m_timeline->look(first, last);
    }
    moveTo(finding.id == "out-of-memory" ? first : m_opened.device->timeline().peakAllocated(first, last));
    m_timeline->setFocus(Qt::OtherFocusReason);
}

bool SnapshotPage::isSettled() const
{
    return !m_isStale && !m_opener.isBusy() && !m_figuresWork.isBusy() && !m_findingsWork.isBusy()
        && !m_fixesWork.isBusy() && !m_compare->isBusy() && !m_inspector->beside()->isBusy()
        && !(m_flame->isVisible() && m_flame->isBusy()) && !(m_table->isVisible() && m_table->isBusy());
}

void SnapshotPage::setDevice(const std::string& id)
{
    m_services.document.setDevice("training-memory", id);
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
