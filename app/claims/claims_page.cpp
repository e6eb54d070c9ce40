// SPDX-License-Identifier: GPL-3.0-or-later
// What the page Claims shows: from the device to verdicts, from the filter to the list, from a row to the pane.
#include "app/claims/claims_page.h"

#include "app/document/study_document.h"
#include "app/pages/cards/verdict.h"
#include "app/pages/records/record_text.h"
#include "app/pages/run_controller.h"
#include "app/settings/settings.h"
#include "app/settings/words.h"
#include "app/workers/devices.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/report/claims_report.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QProgressBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QTimer>
#include <QToolButton>

#include <algorithm>

namespace memscape {

namespace {

/// As --screenshot says them, by ClaimVerdict.
const std::vector<std::string> verdictKeys{"holds", "holds-when", "does-not-hold", "cannot"};

Result<void> writeClaims(const QString& path, const ClaimsOfDevice& result, const std::vector<JudgedClaim>& claims)
{
    const bool isText = path.endsWith(QStringLiteral(".txt"), Qt::CaseInsensitive);
    const bool isJson = path.endsWith(QStringLiteral(".json"), Qt::CaseInsensitive);
    return writeFileAtomically(path.toStdString(),
                               isJson       ? claimsDocument(claims)
                                   : isText ? claimsText(claims, result.device)
                                            : claimsCsv(claims));
}

/// Rows with a tab between the cells, for a spreadsheet.
QString tableText(const std::vector<JudgedClaim>& claims)
{
    const auto line = [](const std::vector<std::string>& cells) {
        QStringList texts;
        for (const std::string& cell : cells)
            texts << toQString(cell).simplified();
        return texts.join(u'\t') + u'\n';
    };
    QString text = line({"note", "line", "quote", "verdict", "ours", "right"});
    for (const JudgedClaim& claim : claims) {
        const ClaimEntry& entry = *claim.entry;
        text += line({entry.title, std::to_string(entry.line), entry.quote, claim.verdict, claim.ours, claim.right});
    }
    return text;
}

} // namespace

std::string ClaimsPage::deviceId() const
{
    return m_services.deviceOf(claimsPageId);
}

void ClaimsPage::setDevice(const std::string& id)
{
    m_services.document.setDevice(claimsPageId, id);
}

const Device* ClaimsPage::device() const
{
    const DeviceEntry* entry = m_services.devices.find(deviceId());
    return entry ? &entry->device : nullptr;
}

void ClaimsPage::documentChanged(const ChangeEvent& event)
{
    const auto* changed = std::get_if<DeviceChanged>(&event);
    if (!std::holds_alternative<StudyReset>(event) && !(changed && changed->concerns(claimsPageId)))
        return;
    m_isStale = true;
    if (isVisible())
        judge();
}

void ClaimsPage::showEvent(QShowEvent* event)
{
    ToolPage::showEvent(event);
    if (m_isStale)
        judge();
}

void ClaimsPage::changeEvent(QEvent* event)
{
    ToolPage::changeEvent(event);
    if ((event->type() == QEvent::StyleChange || event->type() == QEvent::FontChange) && m_state != State::Fresh) {
        const auto paintAgain = [this] {
            m_list->doItemsLayout();
            showCounts();
            showChosenRow();
        };
        QTimer::singleShot(0, this, paintAgain); // the style visits every widget now: none may go
    }
}

/// From the search a person goes on with the arrows; Enter in the list shows what is chosen.
bool ClaimsPage::eventFilter(QObject* watched, QEvent* event)
{
    const int key = event->type() == QEvent::KeyPress ? static_cast<QKeyEvent*>(event)->key() : 0;
    if (watched == m_list && (key == Qt::Key_Return || key == Qt::Key_Enter)) {
        showChosen();
        return true;
    }
    if (watched == m_search) {
        if (key == Qt::Key_Down || key == Qt::Key_Up) {
            m_list->setFocus(Qt::ShortcutFocusReason);
            return true;
        }
        if (key == Qt::Key_Escape) {
            m_search->clear();
            m_list->setFocus(Qt::ShortcutFocusReason);
            return true;
        }
    }
    return ToolPage::eventFilter(watched, event);
}

void ClaimsPage::judge()
{
    m_isStale = false;
    m_problem.reset();
    m_device->setDevice(deviceId());
    m_device->setCalibrationPossible(!m_services.runs.current() && m_services.runs.obstacle(deviceId()).isEmpty());
    const Device* asked = device();
    if (asked == nullptr) {
        m_problem =
            Error{"device.unknown", "the device " + deviceId() + " is not available", {}, "choose another one above"};
        setState(State::Failed, toQString(m_problem->message), toQString(m_problem->hint));
        return;
    }
    setState(State::Judging, tr("Judging the claims for %1…").arg(shortDeviceName(*asked)),
             tr("Every claim’s number is predicted by the experiment that shows it."));
    m_progress->setRange(0, 0);
    m_judge.judge(*asked);
}

void ClaimsPage::stopJudging()
{
    m_judge.stop();
    setState(State::Stopped, tr("Stopped: nothing is judged for %1 yet.").arg(toQString(deviceId())), {});
}

void ClaimsPage::take(const ClaimsResult& result)
{
    m_model.setResult(result);
    fillChoices();
    setState(State::Judged, {}, {});
    if (!m_wanted.isEmpty())
        choose({ClaimsModel::Row::Kind::Claim, std::exchange(m_wanted, QString()).toStdString()});
}

/// The list stays while another device is judged; without one the state takes its place.
void ClaimsPage::setState(State state, const QString& text, const QString& hint)
{
    m_state = state;
    const bool isEmpty = m_model.rows().empty();
    const bool isFiltered = m_model.result() && isEmpty;
    const bool showsList = state == State::Judged || state == State::Judging ? !isEmpty : false;
    m_stack->setCurrentIndex(showsList ? 0 : 1);
    m_progressRow->setVisible(state == State::Judging && showsList);
    m_progressText->setText(text);
    m_stateText->setText(isFiltered && state == State::Judged ? tr("No claim matches.") : text);
    m_stateHint->setText(isFiltered && state == State::Judged ? tr("Search for fewer words, or show all claims.")
                                                              : hint);
    m_stateHint->setVisible(!m_stateHint->text().isEmpty());
    m_progress->setVisible(state == State::Judging);
    m_stop->setVisible(state == State::Judging);
    m_again->setVisible(state == State::Failed || state == State::Stopped);
    m_again->setText(state == State::Failed ? tr("Try again") : tr("Judge"));
    m_copy->setVisible(state == State::Failed);
    m_clear->setVisible(isFiltered && state == State::Judged);
    showCounts();
    QModelIndex chosen = m_chosen ? m_model.indexOf(*m_chosen) : QModelIndex();
    if (!chosen.isValid() && !isEmpty)
        chosen = m_model.index(1); // the row below the first head
    m_list->setCurrentIndex(chosen);
    showChosenRow();
    emit updated();
}

QString ClaimsPage::stateText() const
{
    return m_stack->currentIndex() == 0 ? QString() : m_stateText->text();
}

void ClaimsPage::readFilter()
{
    ClaimsFilter filter;
    filter.search = m_search->text();
    filter.source = m_source->currentData().toString().toStdString();
    filter.topic = m_topic->currentData().toString().toStdString();
    if (const int id = m_verdicts->checkedId(); id > 0)
        filter.verdict = ClaimVerdict(id - 1);
    m_model.setFilter(filter);
    if (m_state == State::Judged || m_state == State::Judging)
        setState(m_state, m_progressText->text(), m_stateHint->text());
}

void ClaimsPage::setFilter(const ClaimsFilter& filter)
{
    {
        const QSignalBlocker search(m_search), source(m_source), topic(m_topic);
        m_search->setText(filter.search);
        m_source->setCurrentIndex(std::max(0, m_source->findData(toQString(filter.source))));
        m_topic->setCurrentIndex(std::max(0, m_topic->findData(toQString(filter.topic))));
        m_verdicts->button(filter.verdict ? int(*filter.verdict) + 1 : 0)->setChecked(true);
    }
    readFilter();
}

void ClaimsPage::showCounts()
{
    const auto& counts = m_model.counts();
    int all = 0;
    for (const int count : counts)
        all += count;
    m_verdicts->button(0)->setText(tr("all %1").arg(all));
    for (int i = 0; i < 4; ++i) {
        auto* chip = static_cast<QToolButton*>(m_verdicts->button(i + 1));
        const auto verdict = ClaimVerdict(i);
        const QString word = verdict == ClaimVerdict::Untested ? tr("not testable") : verdictWord(verdict); // room
        chip->setText(QStringLiteral(" %1 %2").arg(word).arg(counts[std::size_t(i)]));
        chip->setToolTip(verdictWord(verdict));
        chip->setIcon(QIcon(verdictPixmap(ClaimVerdict(i), *this)));
    }
}

void ClaimsPage::showChosenRow()
{
    const QModelIndex index = m_list->currentIndex();
    const ClaimsResult& result = m_model.result();
    if (!index.isValid() || !result || index.row() >= m_model.rowCount())
        return m_pane->clear();
    const ClaimsModel::Row& row = m_model.rows()[std::size_t(index.row())];
    m_chosen = {row.kind, row.id};
    m_pane->setByteStyle(m_services.settings.byteStyle());
    if (row.kind == ClaimsModel::Row::Kind::Question)
        m_pane->showQuestion(*result, *result->answer(row.id), deviceId());
    else if (row.kind == ClaimsModel::Row::Kind::Claim)
        m_pane->showClaim(*result, *result->claim(row.id), deviceId());
}

bool ClaimsPage::choose(const ClaimsModel::Key& key)
{
    if (!m_model.indexOf(key).isValid() && !m_model.filter().isEmpty())
        setFilter({});
    const QModelIndex index = m_model.indexOf(key);
    if (!index.isValid())
        return false;
    m_list->setCurrentIndex(index);
    m_list->scrollTo(index, QAbstractItemView::PositionAtCenter);
    return true;
}

void ClaimsPage::showItem(const QString& id)
{
    if (m_state == State::Judged && !m_isStale)
        choose({ClaimsModel::Row::Kind::Claim, id.toStdString()});
    else
        m_wanted = id;
}

void ClaimsPage::showChosen()
{
    if (!m_pane->visits().empty())
        emit pageWanted(m_pane->visits().front());
}

QWidget* ClaimsPage::stage() const
{
    return m_list;
}

bool ClaimsPage::isSettled() const
{
    return !m_isStale && m_state != State::Judging;
}

PageExports ClaimsPage::exports() const
{
    const ClaimsResult result = m_model.result();
    if (!result || m_model.rows().empty())
        return {};
    PageExports what;
    what.name = QStringLiteral("claims-") + toQString(lowered(result->device.id));
    what.csv = what.json = [result, claims = m_model.listed()](const QString& path) {
        return writeClaims(path, *result, claims);
    };
    what.csvFilters = tr("CSV table (*.csv);;Text (*.txt)");
    what.data = [this] { return tableText(m_model.listed()); };
    return what;
}

/// "device=nvidia-h200", "source=vram-bottleneck", "topic=attention", "verdict=holds-when", "search=…", "entry=ID",
/// "question=ID".
Result<void> ClaimsPage::apply(const ScreenshotRequest& request)
{
    ClaimsFilter filter;
    std::optional<ClaimsModel::Key> chosen;
    std::string device = request.device;
    for (const QString& assignment : request.values) {
        const std::string key = assignment.section(u'=', 0, 0).toStdString();
        const QString value = assignment.section(u'=', 1);
        if (key == "device") {
            device = value.toStdString();
        } else if (key == "source") {
            filter.source = value.toStdString();
        } else if (key == "topic") {
            filter.topic = value.toStdString();
        } else if (key == "search") {
            filter.search = value;
        } else if (key == "entry") {
            chosen = {ClaimsModel::Row::Kind::Claim, value.toStdString()};
        } else if (key == "question") {
            chosen = {ClaimsModel::Row::Kind::Question, value.toStdString()};
        } else if (key == "verdict") {
            const auto found = std::ranges::find(verdictKeys, value.toStdString());
            if (found == verdictKeys.end())
                return fail("usage.value", "no verdict is \"" + quotedForMessage(value.toStdString()) + "\"",
                            didYouMean(value.toStdString(), verdictKeys));
            filter.verdict = ClaimVerdict(found - verdictKeys.begin());
        } else {
            return fail("usage.extra", "the page Claims has no \"" + quotedForMessage(key) + "\"",
                        didYouMean(key, {"device", "source", "topic", "verdict", "search", "entry", "question"}));
        }
    }
    if (!device.empty()) {
        if (m_services.devices.find(device) == nullptr)
            return fail("device.unknown", "no device \"" + quotedForMessage(device) + "\"",
                        "memscape-cli devices lists them; a device file goes with --device");
        setDevice(device);
    }
    MEMSCAPE_CHECK(request.settle());
    if (m_problem)
        return {}; // the page says it
    const auto known = [](const std::string& value, const std::vector<std::string>& all,
                          const char* what) -> Result<void> {
        if (value.empty() || std::ranges::find(all, value) != all.end())
            return {};
        return fail("usage.value", std::string("no ") + what + " \"" + quotedForMessage(value) + "\"",
                    didYouMean(value, all));
    };
    MEMSCAPE_CHECK(known(filter.source, m_model.sources(), "note"));
    MEMSCAPE_CHECK(known(filter.topic, m_model.topics(), "topic"));
    setFilter(filter);
    if (chosen && !choose(*chosen))
        return fail("usage.value", "no claim or question \"" + quotedForMessage(chosen->second) + "\"",
                    "memscape-cli claims --json lists the ids");
    return {};
}

} // namespace memscape
