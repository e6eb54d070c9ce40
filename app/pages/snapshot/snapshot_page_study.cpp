// SPDX-License-Identifier: GPL-3.0-or-later
// What the study says of the page: which file, view and range, or which record; each change is a step of the history.
#include "app/pages/snapshot/snapshot_page.h"

#include "app/document/pages.h"
#include "app/settings/words.h"

#include <QFileInfo>
#include <QToolButton>
#include <QUndoStack>

#include <algorithm>

namespace memscape {

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

/// The newest one of a snapshot, while no file is named.
const Record* SnapshotPage::record() const
{
    const std::vector<Record>& records = m_services.document.records();
    const auto found = std::find_if(records.rbegin(), records.rend(),
                                    [](const Record& one) { return one.experiment == snapshotPageId; });
    return file().isEmpty() && found != records.rend() ? &*found : nullptr;
}

void SnapshotPage::setDevice(const std::string& id)
{
    m_services.document.setDevice("training-memory", id);
}

} // namespace memscape
