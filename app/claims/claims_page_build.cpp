// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of the page Claims and what they report.
#include "app/claims/claims_delegate.h"
#include "app/claims/claims_page.h"
#include "app/document/study_document.h"
#include "app/pages/cards/card.h"
#include "app/pages/cards/verdict.h"
#include "app/pages/fields/quiet_widgets.h"
#include "app/pages/run_controller.h"
#include "app/settings/settings.h"
#include "app/settings/words.h"
#include "app/workers/devices.h"

#include <QButtonGroup>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QShortcut>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>

namespace memscape {

ClaimsPage::ClaimsPage(PageServices services, QWidget* parent)
    : ToolPage(claimsPageId, parent)
    , m_services(services)
    , m_device(new DeviceButton(services.devices, this))
    , m_pane(new ClaimPane(this))
{
    build();
    connectAll();
    m_device->setDevice(deviceId());
}

void ClaimsPage::build()
{
    m_list = new QListView(this);
    m_list->setObjectName(QStringLiteral("claimsList"));
    m_list->setAccessibleName(tr("Questions and claims"));
    m_list->setModel(&m_model);
    m_list->setItemDelegate(new ClaimsDelegate(m_list));
    m_list->setResizeMode(QListView::Adjust);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setMouseTracking(true);
    m_list->installEventFilter(this);
    m_list->setMinimumWidth(220);
    m_pane->setMinimumWidth(240);
    auto* parts = new QSplitter(Qt::Horizontal, this);
    parts->setObjectName(QStringLiteral("claimsSplitter"));
    parts->setChildrenCollapsible(false);
    parts->addWidget(m_list);
    parts->addWidget(m_pane);
    parts->setSizes({460, 560});
    m_stack = new QStackedWidget(this);
    m_stack->addWidget(parts);
    m_stack->addWidget(buildState());
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(buildHeader());
    column->addWidget(buildFilters());
    column->addWidget(m_stack, 1);
}

QWidget* ClaimsPage::buildHeader()
{
    auto* header = new QFrame(this);
    header->setObjectName(QStringLiteral("header"));
    auto* words = new QVBoxLayout;
    words->setSpacing(2);
    words->addWidget(toneLabel(toQString(info().title), "title", header));
    words->addWidget(toneLabel(toQString(info().question), "dim", header));
    m_export = new QPushButton(tr("Export"), header);
    m_export->setObjectName(QStringLiteral("export"));
    m_export->setToolTip(tr("Save the listed claims as JSON, CSV or text, or copy them"));
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(20, 12, 20, 12);
    row->setSpacing(8);
    row->addLayout(words, 1);
    row->addWidget(m_device, 0, Qt::AlignVCenter);
    row->addWidget(m_export, 0, Qt::AlignVCenter);
    return header;
}

QWidget* ClaimsPage::buildFilters()
{
    auto* filters = new QWidget(this);
    m_search = new QLineEdit(filters);
    m_search->setObjectName(QStringLiteral("claimsSearch"));
    m_search->setPlaceholderText(tr("Search (/): attention, zero, 4096 …"));
    m_search->setAccessibleName(tr("Search claims"));
    m_search->setClearButtonEnabled(true);
    m_search->installEventFilter(this);
    const auto choice = [filters](const char* name, const QString& words) {
        auto* box = new QuietComboBox(filters);
        box->setObjectName(QString::fromLatin1(name));
        box->setAccessibleName(words);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        box->setMinimumContentsLength(12);
        return box;
    };
    m_source = choice("claimsSource", tr("Note"));
    m_topic = choice("claimsTopic", tr("Topic"));
    auto* first = new QHBoxLayout;
    first->setSpacing(8);
    first->addWidget(m_search, 3);
    first->addWidget(m_source, 2);
    first->addWidget(m_topic, 2);
    auto* second = new QHBoxLayout;
    second->setSpacing(6);
    m_verdicts = new QButtonGroup(this);
    for (int i = 0; i <= 4; ++i) {
        auto* chip = new QToolButton(filters);
        chip->setObjectName(QStringLiteral("verdict.%1").arg(i));
        chip->setCheckable(true);
        chip->setFocusPolicy(Qt::StrongFocus);
        chip->setProperty("role", "chip");
        chip->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        m_verdicts->addButton(chip, i);
        second->addWidget(chip);
    }
    m_verdicts->button(0)->setChecked(true);
    second->addStretch(1);
    m_progressRow = new QWidget(filters);
    m_progressText = toneLabel({}, "faint", m_progressRow);
    m_progressText->setWordWrap(false);
    auto* stop = new QPushButton(tr("Stop"), m_progressRow);
    connect(stop, &QPushButton::clicked, this, &ClaimsPage::stopJudging);
    auto* third = new QHBoxLayout(m_progressRow);
    third->setContentsMargins(0, 0, 0, 0);
    third->addWidget(m_progressText, 1);
    third->addWidget(stop);
    m_progressRow->hide();
    auto* column = new QVBoxLayout(filters);
    column->setContentsMargins(20, 10, 20, 8);
    column->setSpacing(8);
    column->addLayout(first);
    column->addLayout(second);
    column->addWidget(m_progressRow);
    fillChoices();
    return filters;
}

QWidget* ClaimsPage::buildState()
{
    auto* state = new QWidget(this);
    m_stateText = toneLabel({}, "subtitle", state, true);
    m_stateText->setObjectName(QStringLiteral("claimsState"));
    m_stateHint = toneLabel({}, "dim", state, true);
    m_progress = new QProgressBar(state);
    m_progress->setAccessibleName(tr("Predictions made"));
    m_stop = new QPushButton(tr("Stop"), state);
    m_again = new QPushButton(tr("Judge"), state);
    m_copy = new QPushButton(tr("Copy details"), state);
    m_clear = new QPushButton(tr("Show all claims"), state);
    m_stop->setObjectName(QStringLiteral("stopJudging"));
    m_again->setObjectName(QStringLiteral("judge"));
    m_copy->setObjectName(QStringLiteral("copyDetails"));
    m_clear->setObjectName(QStringLiteral("clearFilter"));
    auto* row = new QHBoxLayout;
    for (QPushButton* button : {m_stop, m_again, m_clear, m_copy})
        row->addWidget(button);
    row->addStretch(1);
    auto* column = new QVBoxLayout(state);
    column->setContentsMargins(40, 60, 40, 40);
    column->setSpacing(10);
    for (QWidget* part :
         {static_cast<QWidget*>(m_stateText), static_cast<QWidget*>(m_stateHint), static_cast<QWidget*>(m_progress)})
        column->addWidget(part);
    column->addLayout(row);
    column->addStretch(1);
    connect(m_stop, &QPushButton::clicked, this, &ClaimsPage::stopJudging);
    connect(m_again, &QPushButton::clicked, this, &ClaimsPage::judge);
    connect(m_clear, &QPushButton::clicked, this, [this] {
        setFilter({});
        m_list->setFocus();
    });
    connect(m_copy, &QPushButton::clicked, this, [this] {
        if (m_problem)
            QGuiApplication::clipboard()->setText(toQString(m_problem->code + "\n" + m_problem->text()));
    });
    return state;
}

/// Notes and topics of the table; what was chosen stays.
void ClaimsPage::fillChoices()
{
    const auto fill = [](QComboBox* box, const QString& all,
                         const std::vector<std::pair<QString, std::string>>& items) {
        const QSignalBlocker blocker(box);
        const QVariant chosen = box->currentData();
        box->clear();
        box->addItem(all, QString());
        for (const auto& [text, key] : items)
            box->addItem(text, toQString(key));
        box->setCurrentIndex(std::max(0, box->findData(chosen)));
    };
    std::vector<std::pair<QString, std::string>> sources, topics;
    for (const std::string& source : m_model.sources()) {
        for (const JudgedClaim& claim : m_model.result()->claims) {
            if (claim.entry->source == source) {
                sources.emplace_back(toQString(claim.entry->title), source);
                break;
            }
        }
    }
    for (const std::string& topic : m_model.topics())
        topics.emplace_back(toQString(topic), topic);
    fill(m_source, tr("All notes"), sources);
    fill(m_topic, tr("All topics"), topics);
}

void ClaimsPage::setExportMenu(QMenu* menu)
{
    m_export->setMenu(menu);
}

void ClaimsPage::connectAll()
{
    connect(&m_services.document, &StudyDocument::changed, this, &ClaimsPage::documentChanged);
    connect(&m_services.devices, &DeviceDirectory::changed, this, [this] {
        m_isStale = true; // a calibration makes another device of it
        if (isVisible())
            judge();
    });
    connect(m_device, &DeviceButton::picked, this, [this](const QString& id) { setDevice(id.toStdString()); });
    connect(m_device, &DeviceButton::calibrateWanted, this, [this] { m_services.runs.calibrate(deviceId()); });
    connect(m_device, &DeviceButton::forgetWanted, this, [this] { m_services.runs.forgetCalibration(deviceId()); });
    connect(m_device, &DeviceButton::commandWanted, this, &ClaimsPage::workerWanted);
    connect(m_device, &DeviceButton::fileWanted, this, [this] { emit openWanted({}); });
    connect(&m_judge, &ClaimsJudge::judged, this, &ClaimsPage::take);
    connect(&m_judge, &ClaimsJudge::progress, this, [this](int done, int all) {
        m_progress->setRange(0, all);
        m_progress->setValue(done);
    });
    connect(&m_judge, &ClaimsJudge::failed, this, [this](const Error& error) {
        m_problem = error;
        setState(State::Failed, toQString(error.message),
                 toQString(error.place + (error.hint.empty() ? "" : "\n" + error.hint)));
    });
    connect(&m_services.settings, &Settings::changed, this, [this](Settings::Key key) {
        if (key == Settings::Key::ByteStyle)
            showChosenRow();
    });
    connect(m_search, &QLineEdit::textChanged, this, &ClaimsPage::readFilter);
    connect(m_search, &QLineEdit::returnPressed, this, [this] { m_list->setFocus(Qt::ShortcutFocusReason); });
    connect(m_source, &QComboBox::currentIndexChanged, this, &ClaimsPage::readFilter);
    connect(m_topic, &QComboBox::currentIndexChanged, this, &ClaimsPage::readFilter);
    connect(m_verdicts, &QButtonGroup::idClicked, this, &ClaimsPage::readFilter);
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, &ClaimsPage::showChosenRow);
    connect(m_list, &QListView::doubleClicked, this,
            &ClaimsPage::showChosen); // activated is one click on some desktops
    connect(m_pane, &ClaimPane::visitWanted, this, &ClaimsPage::pageWanted);
    connect(
        m_pane, &ClaimPane::claimWanted, this, [this](const QString& id) { showItem(id); },
        Qt::QueuedConnection); // it replaces the pane that asks
    for (const QKeySequence& keys : {QKeySequence(QStringLiteral("/")), QKeySequence(QKeySequence::Find)}) {
        auto* find = new QShortcut(keys, this); // also while the rail has the keyboard; only while the page is shown
        connect(find, &QShortcut::activated, this, [this] {
            m_search->setFocus(Qt::ShortcutFocusReason);
            m_search->selectAll();
        });
    }
}

} // namespace memscape
