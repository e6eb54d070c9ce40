// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of the page and what they report.
#include "app/labs/lab_page.h"

#include "app/labs/answer_fields.h"
#include "app/labs/author_panel.h"
#include "app/labs/curve_board.h"
#include "app/labs/lab_list.h"
#include "app/labs/lab_stage.h"
#include "app/labs/lab_store.h"
#include "app/labs/result_table.h"
#include "app/labs/step_pane.h"
#include "app/pages/cards/card.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QButtonGroup>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QSplitter>
#include <QStackedWidget>
#include <QTemporaryDir>
#include <QToolButton>

namespace memscape {

namespace {

QPushButton* headerButton(const QString& text, const char* name, const QString& tip, QWidget* parent)
{
    auto* made = new QPushButton(text, parent);
    made->setObjectName(QString::fromLatin1(name));
    made->setToolTip(tip);
    made->setAutoDefault(false);
    return made;
}

} // namespace

LabPage::LabPage(PageServices services, QWidget* parent)
    : ToolPage(labsPageId, parent)
    , m_services(services)
    , m_list(new LabList(services.settings, this))
    , m_steps(new StepPane(this))
    , m_stage(new LabStage(services, this))
    , m_board(new CurveBoard(this))
    , m_results(new ResultTable(this))
    , m_author(new AuthorPanel(this))
{
    build();
    connectAll();
    connectRuns();
    addShortcuts();
    refresh();
}

LabPage::~LabPage()
{
    if (m_session)
        disconnect(m_session.get(), nullptr, this, nullptr); // its last save has no page to show it
    m_steps->disconnect(this);
    m_stage->disconnect(this);
}

void LabPage::build()
{
    m_stack = new QStackedWidget(this);
    m_stack->addWidget(m_list);
    m_stack->addWidget(buildLab());
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(buildHeader());
    column->addWidget(buildNotice());
    column->addWidget(m_stack, 1);
    askSave = [this](const QString& what, const QString& name, const QString& filters) {
        const QString folder = m_services.settings.lastFolder(QStringLiteral("labs"));
        return QFileDialog::getSaveFileName(this, what, folder + u'/' + name, filters);
    };
    askFolder = [this](const QString& what) {
        return QFileDialog::getExistingDirectory(this, what, m_services.settings.lastFolder(QStringLiteral("labs")));
    };
    askAnswers = [this] {
        return QFileDialog::getOpenFileName(this, tr("Open answers"),
                                            m_services.settings.lastFolder(QStringLiteral("labs")),
                                            tr("Answers to a lab (*.mlab)"));
    };
}

QWidget* LabPage::buildHeader()
{
    auto* header = new QFrame(this);
    header->setObjectName(QStringLiteral("header"));
    m_title = new ElidedLabel({}, "title", header);
    m_subtitle = toneLabel({}, "dim", header);
    m_subtitle->setObjectName(QStringLiteral("labProgress"));
    m_allLabs = headerButton(tr("All labs"), "allLabs", tr("Back to the list; your answers stay"), header);
    m_edit = headerButton(tr("Edit"), "editLab", tr("Write this lab: follow its folder, check it, grade these answers"),
                          header);
    m_edit->setCheckable(true);
    m_handIn = headerButton(tr("Hand in…"), "handIn", tr("Save your answers as a file for your teacher"), header);
    m_export = headerButton(tr("Export report"), "exportReport", tr("Your answers and results as a page"), header);
    auto* menu = new QMenu(m_export);
    for (const auto& [text, suffix, filter] :
         {std::tuple{tr("As HTML…"), "html", tr("HTML page (*.html)")}, {tr("As PDF…"), "pdf", tr("PDF (*.pdf)")}})
        menu->addAction(text, this, [this, ending = QString::fromLatin1(suffix), kinds = filter] {
            if (!m_session)
                return;
            const QString path = askSave(tr("Export report"), toQString(m_session->lab().id) + u'.' + ending, kinds);
            if (!path.isEmpty())
                exportReport(path);
        });
    m_export->setMenu(menu);
    auto* words = new QVBoxLayout;
    words->setSpacing(2);
    words->addWidget(m_title);
    words->addWidget(m_subtitle);
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(20, 12, 20, 12);
    row->setSpacing(8);
    row->addLayout(words, 1);
    for (QPushButton* one : {m_allLabs, m_edit, m_handIn, m_export})
        row->addWidget(one, 0, Qt::AlignVCenter);
    return header;
}

QWidget* LabPage::buildNotice()
{
    m_notice = new QFrame(this);
    m_notice->setObjectName(QStringLiteral("labNotice"));
    m_noticeText = toneLabel({}, "dim", m_notice, true);
    m_noticeButtons = new QHBoxLayout;
    auto* row = new QHBoxLayout(m_notice);
    row->setContentsMargins(20, 6, 20, 6);
    row->addWidget(m_noticeText, 1);
    row->addLayout(m_noticeButtons);
    m_notice->hide();
    return m_notice;
}

QWidget* LabPage::buildLab()
{
    m_cover = toneLabel({}, "dim", this);
    m_cover->setObjectName(QStringLiteral("cover"));
    m_cover->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    auto* card = new Card(this);
    card->column()->setContentsMargins(24, 18, 24, 18);
    card->column()->addWidget(m_cover);
    card->setMaximumWidth(int(520 * plotUnit()));
    auto* coverPane = new QWidget(this);
    auto* middle = new QGridLayout(coverPane);
    middle->addWidget(card, 1, 1);
    middle->setRowStretch(0, 1);
    middle->setRowStretch(2, 2);
    middle->setColumnStretch(0, 1);
    middle->setColumnStretch(1, 6);
    middle->setColumnStretch(2, 1);

    m_views = new QStackedWidget(this);
    m_views->addWidget(coverPane);
    m_views->addWidget(m_board);
    m_views->addWidget(m_stage);
    m_chips = new QWidget(this);
    auto* chips = new QHBoxLayout(m_chips);
    chips->setContentsMargins(20, 8, 20, 4);
    auto* group = new QButtonGroup(this);
    for (auto [chip, name, index] : {std::tuple{&m_curveChip, "curveChip", 1}, {&m_pageChip, "pageChip", 2}}) {
        *chip = new QToolButton(m_chips);
        (*chip)->setObjectName(QString::fromLatin1(name));
        (*chip)->setCheckable(true);
        (*chip)->setFocusPolicy(Qt::StrongFocus);
        (*chip)->setProperty("role", "chip");
        group->addButton(*chip, index);
        chips->addWidget(*chip);
    }
    m_curveChip->setText(tr("your curve"));
    chips->addStretch(1);
    connect(group, &QButtonGroup::idClicked, this, [this](int index) {
        m_ownView = true;
        showView(index);
    });

    m_resultArea = new QScrollArea(this);
    m_resultArea->setWidget(m_results);
    m_resultArea->setWidgetResizable(true);
    m_resultArea->setFrameShape(QFrame::NoFrame);
    m_resultArea->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* upper = new QWidget(this);
    auto* column = new QVBoxLayout(upper);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_chips);
    column->addWidget(m_views, 1);
    m_right = new QSplitter(Qt::Vertical, this);
    m_right->addWidget(upper);
    m_right->addWidget(m_resultArea);
    m_right->setStretchFactor(0, 1);
    m_right->setStretchFactor(1, 0);
    m_right->setSizes({1000, int(170 * plotUnit())});
    m_right->setChildrenCollapsible(false);
    m_sides = new QSplitter(Qt::Horizontal, this);
    m_sides->setObjectName(QStringLiteral("labSides"));
    m_sides->addWidget(m_steps);
    m_sides->addWidget(m_right);
    m_sides->setStretchFactor(0, 0);
    m_sides->setStretchFactor(1, 1);
    m_sides->setSizes({int(350 * plotUnit()), 1000});
    m_sides->setChildrenCollapsible(false);
    m_steps->setMinimumWidth(int(260 * plotUnit()));
    m_rows = new QSplitter(Qt::Vertical, this);
    m_rows->addWidget(m_sides);
    m_rows->addWidget(m_author);
    m_rows->setStretchFactor(0, 1);
    m_rows->setSizes({1000, int(220 * plotUnit())});
    m_rows->setChildrenCollapsible(false);
    m_author->hide();
    return m_rows;
}

void LabPage::connectAll()
{
    connect(m_list, &LabList::labWanted, this, &LabPage::openLab);
    connect(m_list, &LabList::folderWanted, this, [this] {
        const QString folder = askFolder(tr("Open a lab's folder"));
        if (!folder.isEmpty())
            openLab(folder);
    });
    connect(m_list, &LabList::answersWanted, this, [this] {
        const QString path = askAnswers();
        if (!path.isEmpty())
            openAnswers(path);
    });
    connect(m_allLabs, &QPushButton::clicked, this, &LabPage::closeLab);
    connect(m_edit, &QPushButton::toggled, this, &LabPage::setEditing);
    connect(m_handIn, &QPushButton::clicked, this, [this] {
        if (!m_session)
            return;
        const QString path = askSave(tr("Hand in"), handInName(m_session->attempt().student(), m_session->lab().id),
                                     tr("Answers to a lab (*.mlab)"));
        if (!path.isEmpty())
            handIn(path);
    });
    connect(m_steps, &StepPane::stepWanted, this, &LabPage::showStep);
    connect(m_steps, &StepPane::answered, this, &LabPage::answer);
    connect(m_steps, &StepPane::lockWanted, this, &LabPage::lock);
    connect(m_steps, &StepPane::measureWanted, this, &LabPage::measure);
    connect(m_steps, &StepPane::replayWanted, this, &LabPage::playReplay);
    connect(m_steps, &StepPane::hintWanted, this, &LabPage::hint);
    connect(m_board, &CurveBoard::drawn, this, [this](const std::vector<double>& y) {
        const LabQuestion* question = curveQuestion();
        if (auto* field = question ? qobject_cast<CurveAnswerField*>(m_steps->field(question->key)) : nullptr)
            field->setDrawn(y);
    });
    connect(m_stage, &LabStage::chosen, this, [this](const std::string& step, const Json& parameters) {
        if (!m_session || m_session->step().id != step)
            return;
        for (const LabQuestion& one : m_session->step().questions)
            if (one.kind == LabQuestionKind::Parameters)
                return answer(one.key, parameters);
    });
    connect(m_stage, &LabStage::putBack, this, [this](const QString& parameter) {
        tell(tr("The lab sets %1: it stays as it is.").arg(parameter), "warning");
    });
    connect(m_author, &AuthorPanel::labRead, this, [this](std::shared_ptr<const Lab> lab) {
        if (m_session)
            report(m_session->takeLab(std::move(lab)));
    });
    connect(m_author, &AuthorPanel::gradeWanted, this, &LabPage::gradeAttempt);
    connect(m_author, &AuthorPanel::solutionWanted, this, &LabPage::solveStep);
    connect(m_author, &AuthorPanel::packWanted, this, [this] {
        const QString path = askSave(tr("Student pack"), toQString(m_session->lab().id), {});
        if (!path.isEmpty())
            packForStudents(path);
    });
    connect(&m_services.devices, &DeviceDirectory::changed, this, &LabPage::refreshMeasuring);
    connect(&m_services.runs, &RunController::changed, this, &LabPage::refreshMeasuring);
}

void LabPage::connectRuns()
{
    RunController& runs = m_stage->runs();
    connect(m_stage, &LabStage::measured, this, [this](const std::string& step, const Record& record) {
        if (!m_session)
            return;
        m_ownView = false;
        report(m_session->attach(step, record));
    });
    connect(&runs, &RunController::changed, this, &LabPage::refreshMeasuring);
    connect(&runs, &RunController::problem, this, [this](const Error& error, const QString&) { tell(error); });
    connect(&runs, &RunController::notice, this, [this](const QString& text) { tell(text, "good"); });
    connect(&runs, &RunController::warning, this, [this](const QString& text) { tell(text, "warning"); });
    connect(&runs, &RunController::refused, this, [this](const Error& error, const RunningMeasurement& run) {
        tell(error, {{tr("Try anyway"), [this, run] {
                          m_stage->runs().measure(run.experiment, run.device, run.parameters, true);
                      }}});
    });
    connect(&runs, &RunController::busy, this, [this](const QString& text, const RunningMeasurement& run) {
        tell(tr("%1 The times measured now include this load.").arg(text), "warning",
             {{tr("Wait"),
               [this, run] {
                   m_stage->runs().startWhenQuiet(run);
                   tell(tr("Waiting for a quiet machine."), "dim",
                        {{tr("Measure anyway"), [this, run] { m_stage->runs().startAnyway(run); }},
                         {tr("Don’t measure"), [this] { m_stage->runs().stopWaiting(); }}});
               }},
              {tr("Measure anyway"), [this, run] { m_stage->runs().startAnyway(run); }}});
    });
}

void LabPage::addShortcuts()
{
    const auto add = [this](const char* keys, auto run) {
        auto* shortcut = new QShortcut(QKeySequence(QString::fromLatin1(keys)), this);
        shortcut->setContext(Qt::WidgetWithChildrenShortcut);
        connect(shortcut, &QShortcut::activated, this, run);
    };
    const auto click = [](QPushButton* button) {
        return [button] {
            if (button->isVisible())
                button->click();
        };
    };
    add("Ctrl+Return", click(m_steps->lockButton()));
    add("Ctrl+Enter", click(m_steps->lockButton()));
    add("Ctrl+PgDown", click(m_steps->nextButton()));
    add("Ctrl+PgUp", click(m_steps->backButton()));
    add("Ctrl+Shift+H", click(m_steps->hintButton()));
    add("Ctrl+Shift+M", click(m_steps->measureButton()));
}

} // namespace memscape
