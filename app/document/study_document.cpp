// SPDX-License-Identifier: GPL-3.0-or-later
// What is in the study and every edit of it. The file side is in study_file.cpp, the view as JSON
// in study_view.cpp.
#include "app/document/study_document.h"

#include "app/document/commands.h"
#include "app/document/pages.h"

#include <QFileSystemWatcher>
#include <QLockFile>
#include <QTimer>
#include <QUndoStack>

#include <algorithm>
#include <chrono>
#include <functional>

namespace memscape {

namespace {

QString shown(const std::string& text)
{
    return QString::fromStdString(text);
}

Parameters defaultsOf(const std::string& experiment)
{
    const auto found = findExperiment(experiment);
    if (!found)
        return {};
    return resolve((*found)->schema(), std::vector<std::string>{}).value_or(Parameters{});
}

/// The name of a record in the text of a step.
QString nameOf(const Record& record)
{
    return shown(record.name.empty() ? record.experiment : record.name);
}

} // namespace

StudyDocument::StudyDocument(QObject* parent)
    : QObject(parent)
    , m_undo(new QUndoStack(this))
    , m_watcher(new QFileSystemWatcher(this))
    , m_diskTimer(new QTimer(this))
{
    connect(m_undo, &QUndoStack::cleanChanged, this, [this] { emitEvent(ModifiedChanged{}); });
    // A writer that renames or writes in pieces causes several notices; the last one counts.
    m_diskTimer->setSingleShot(true);
    m_diskTimer->setInterval(std::chrono::milliseconds(100));
    connect(m_diskTimer, &QTimer::timeout, this, &StudyDocument::checkDisk);
    connect(m_watcher, &QFileSystemWatcher::fileChanged, m_diskTimer, qOverload<>(&QTimer::start));
    connect(m_watcher, &QFileSystemWatcher::directoryChanged, m_diskTimer, qOverload<>(&QTimer::start));
}

StudyDocument::~StudyDocument()
{
    m_undo->disconnect(this); // clearing the history signals a change that is not needed any more
}

bool StudyDocument::isModified() const
{
    return !m_undo->isClean();
}

const PageState* StudyDocument::findPage(const std::string& experiment) const
{
    const auto found = m_pages.find(experiment);
    return found == m_pages.end() ? nullptr : &found->second;
}

Parameters StudyDocument::parameters(const std::string& experiment) const
{
    const PageState* state = findPage(experiment);
    if (state && state->parameters)
        return *state->parameters;
    return standard(experiment);
}

Parameters StudyDocument::standard(const std::string& experiment) const
{
    return m_standard ? m_standard(experiment) : defaultsOf(experiment);
}

std::string StudyDocument::device(const std::string& experiment) const
{
    const PageState* state = findPage(experiment);
    return state ? state->device : std::string();
}

Json StudyDocument::viewSetting(const std::string& experiment, const std::string& key) const
{
    const PageState* state = findPage(experiment);
    if (!state)
        return {};
    const auto found = state->settings.find(key);
    return found == state->settings.end() ? Json() : found->second;
}

void StudyDocument::push(QUndoCommand* command)
{
    m_undo->push(command);
}

/// Undoing what one cannot see is confusing: show the page it happened on.
void StudyDocument::show(const std::string& experiment, bool byHand)
{
    if (byHand && !experiment.empty() && experimentOfPage(m_page) != experiment)
        setPage(experiment);
}

void StudyDocument::pushParameters(const std::string& experiment, Parameters parameters, const QString& text,
                                   const std::string& slot, int gesture)
{
    if (parameters == this->parameters(experiment))
        return;
    using Value = std::optional<Parameters>;
    if (const PageState* const state = findPage(experiment); !state || !state->parameters)
        m_firstEdit = {experiment, gesture};
    Value next = std::move(parameters);
    const bool isOneDrag = gesture != 0 && m_firstEdit == std::pair(experiment, gesture);
    if (isOneDrag && *next == standard(experiment)) // it ends where the page opened
        next.reset();
    push(new ChangeValue<Value>(text,
                                {experiment + "/" + slot,
                                 [this, experiment]() -> Value& { return m_pages[experiment].parameters; },
                                 [this, experiment](bool byHand) {
                                     show(experiment, byHand);
                                     emitEvent(ParametersChanged{experiment});
                                 }},
                                std::move(next), gesture));
}

void StudyDocument::setParameter(const std::string& experiment, const std::string& key, const ParameterValue& value,
                                 int gesture)
{
    Parameters next = parameters(experiment);
    // A swept parameter that is given one value is swept no longer.
    if (next.sweep() && next.sweep()->key == key)
        next = next.at(key, value);
    else
        next.set(key, value);
    setParameter(experiment, key, std::move(next), gesture);
}

void StudyDocument::setParameter(const std::string& experiment, const std::string& key, Parameters next, int gesture)
{
    QString text = tr("Change %1").arg(shown(key));
    if (const auto found = findExperiment(experiment)) {
        const ParameterSpec* const spec = findParameter((*found)->schema(), key);
        const auto value =
            std::find_if(next.values().begin(), next.values().end(), [&](const auto& one) { return one.first == key; });
        if (spec && value != next.values().end())
            text = tr("Change %1 to %2").arg(shown(spec->label), shown(valueLabel(*spec, value->second)));
    }
    pushParameters(experiment, std::move(next), text, "parameter/" + key, gesture);
}

void StudyDocument::setSweep(const std::string& experiment, const std::optional<Sweep>& sweep)
{
    Parameters next = parameters(experiment);
    next.setSweep(sweep);
    const QString text = sweep ? tr("Sweep %1").arg(shown(sweep->key)) : tr("Stop sweeping");
    pushParameters(experiment, std::move(next), text, "sweep", 0);
}

void StudyDocument::setParameters(const std::string& experiment, const Parameters& parameters, const QString& text)
{
    pushParameters(experiment, parameters, text, "parameters", 0);
}

void StudyDocument::setDevice(const std::string& experiment, const std::string& device)
{
    if (device == this->device(experiment))
        return;
    const QString text = tr("Change device to %1").arg(shown(device));
    const auto pushFor = [&](const std::string& page) {
        push(new ChangeValue<std::string>(text,
                                          {page + "/device",
                                           [this, page]() -> std::string& { return m_pages[page].device; },
                                           [this, page](bool byHand) {
                                               show(page, byHand);
                                               emitEvent(DeviceChanged{page});
                                           }},
                                          device, 0));
    };
    m_undo->beginMacro(text);
    pushFor(experiment);
    pushFor("");
    m_undo->endMacro();
}

void StudyDocument::setViewSetting(const std::string& experiment, const std::string& key, const Json& value)
{
    if (value == viewSetting(experiment, key))
        return;
    push(new ChangeValue<Json>(tr("Change view"),
                               {experiment + "/settings/" + key,
                                [this, experiment, key]() -> Json& { return m_pages[experiment].settings[key]; },
                                [this, experiment, key](bool byHand) {
                                    show(experiment, byHand);
                                    emitEvent(ViewChanged{experiment, key});
                                }},
                               value, 0));
}

std::size_t StudyDocument::addRecord(Record record)
{
    const QString text = tr("Add %1").arg(nameOf(record));
    std::vector<Record> one;
    one.push_back(std::move(record));
    addRecords(std::move(one), text);
    return m_study.records.size() - 1;
}

void StudyDocument::addRecords(std::vector<Record> records, const QString& text)
{
    if (records.empty())
        return;
    push(new ChangeRecords(text, *this, ChangeRecords::Kind::Insert, m_study.records.size(), std::move(records)));
}

void StudyDocument::removeRecord(std::size_t index)
{
    if (index >= m_study.records.size())
        return;
    push(new ChangeRecords(tr("Delete %1").arg(nameOf(m_study.records[index])), *this, ChangeRecords::Kind::Remove,
                           index, {}));
}

void StudyDocument::removeRecords(const std::vector<std::size_t>& indices)
{
    std::vector<std::size_t> order = indices;
    std::ranges::sort(order, std::greater<>()); // those before keep their places
    if (order.size() > 1)
        m_undo->beginMacro(tr("Delete %n records", nullptr, int(order.size())));
    for (const std::size_t index : order)
        removeRecord(index);
    if (order.size() > 1)
        m_undo->endMacro();
}

void StudyDocument::pushRecordText(std::size_t index, const QString& text, std::string Record::*field,
                                   const std::string& value, int gesture)
{
    if (index >= m_study.records.size() || m_study.records[index].*field == value)
        return;
    const bool isName = field == &Record::name;
    push(new ChangeValue<std::string>(
        text,
        {"record/" + std::to_string(index) + (isName ? "/name" : "/note"),
         [this, index, field]() -> std::string& { return m_study.records[index].*field; },
         [this, index, isName](bool) { emitEvent(isName ? ChangeEvent(RecordRenamed{index}) : RecordChanged{index}); }},
        value, gesture));
}

void StudyDocument::renameRecord(std::size_t index, const std::string& name)
{
    pushRecordText(index, tr("Rename to %1").arg(shown(name)), &Record::name, name, 0);
}

void StudyDocument::setRecordNote(std::size_t index, const std::string& note, int gesture)
{
    pushRecordText(index, tr("Change note"), &Record::note, note, gesture);
}

void StudyDocument::pushRecordFlag(std::size_t index, const QString& text, bool Record::*field, bool value)
{
    if (index >= m_study.records.size() || m_study.records[index].*field == value)
        return;
    const char* slot = field == &Record::pinned ? "/pinned" : "/baseline";
    push(new ChangeValue<bool>(text,
                               {"record/" + std::to_string(index) + slot,
                                [this, index, field]() -> bool& { return m_study.records[index].*field; },
                                [this, index](bool) { emitEvent(RecordChanged{index}); }},
                               value, 0));
}

void StudyDocument::setRecordPinned(std::size_t index, bool pinned)
{
    if (index >= m_study.records.size())
        return;
    const QString name = nameOf(m_study.records[index]);
    pushRecordFlag(index, pinned ? tr("Pin %1").arg(name) : tr("Unpin %1").arg(name), &Record::pinned, pinned);
}

void StudyDocument::setBaseline(std::size_t index, bool baseline)
{
    const std::vector<Record>& records = m_study.records;
    if (index >= records.size() || records[index].baseline == baseline)
        return;
    const QString text = baseline ? tr("Compare with %1").arg(nameOf(records[index])) : tr("Compare with no baseline");
    m_undo->beginMacro(text);
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (i != index && records[i].experiment == records[index].experiment)
            pushRecordFlag(i, text, &Record::baseline, false);
    }
    pushRecordFlag(index, text, &Record::baseline, baseline);
    m_undo->endMacro();
}

void StudyDocument::setPage(const std::string& experiment)
{
    if (experiment == m_page)
        return;
    m_page = experiment;
    emitEvent(PageChanged{});
}

void StudyDocument::visitPage(const std::string& page)
{
    if (page == m_page)
        return;
    push(new ChangeValue<std::string>(
        tr("Change page"),
        {"page", [this]() -> std::string& { return m_page; }, [this](bool) { emitEvent(PageChanged{}); }}, page, 0));
}

} // namespace memscape
