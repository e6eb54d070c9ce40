// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/start_pane.h"

#include "app/pages/cards/card.h"
#include "app/pages/records/record_text.h"
#include "app/pages/snapshot/preview_curve.h"
#include "app/pages/snapshot/snapshot_words.h"

#include <QClipboard>
#include <QDir>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QProgressBar>
#include <QPushButton>

namespace memscape {

namespace {

constexpr auto recipe = "torch.cuda.memory._record_memory_history()      # before training\n"
                        "train(model, steps=5)\n"
                        "torch.cuda.memory._dump_snapshot(\"run.pickle\")   # after it, or when memory ran out";

} // namespace

StartPane::StartPane(QWidget* parent)
    : QWidget(parent)
    , m_title(toneLabel({}, "subtitle", this))
    , m_words(toneLabel({}, "dim", this, true))
    , m_code(toneLabel(QString::fromLatin1(recipe), "code", this, true))
    , m_after(toneLabel(
          tr("Then drop the file on this window. On a CPU, memscape_probe records the same; its help is under "
             "Help → How Memscape measures."),
          "dim", this))
    , m_preview(new PreviewCurve(this))
    , m_bar(new QProgressBar(this))
    , m_open(new QPushButton(tr("Open a snapshot…"), this))
    , m_example(new QPushButton(tr("Open the example"), this))
    , m_stop(new QPushButton(tr("Stop"), this))
    , m_again(new QPushButton(tr("Try again"), this))
    , m_copy(new QPushButton(tr("Copy details"), this))
{
    setAccessibleName(tr("Snapshot"));
    m_open->setObjectName(QStringLiteral("openSnapshot"));
    m_open->setProperty("role", "primary");
    m_example->setObjectName(QStringLiteral("openSnapshotExample"));
    m_stop->setObjectName(QStringLiteral("stopOpening"));
    m_stop->setProperty("role", "danger");
    m_stop->setShortcut(Qt::Key_Escape);
    m_copy->setObjectName(QStringLiteral("copyDetails"));
    m_bar->setRange(0, 1000);
    m_bar->setTextVisible(false);
    m_bar->setAccessibleName(tr("Progress of the opening"));
    auto* card = new Card(this);
    card->column()->setContentsMargins(24, 18, 24, 18);
    card->column()->setSpacing(10);
    for (QWidget* part :
         {static_cast<QWidget*>(m_title), static_cast<QWidget*>(m_words), static_cast<QWidget*>(m_code),
          static_cast<QWidget*>(m_after), static_cast<QWidget*>(m_preview), static_cast<QWidget*>(m_bar)})
        card->column()->addWidget(part);
    auto* buttons = new QHBoxLayout;
    for (QPushButton* button : {m_open, m_again, m_stop, m_example, m_copy}) {
        button->setAutoDefault(false);
        buttons->addWidget(button);
    }
    buttons->addStretch(1);
    card->column()->addLayout(buttons);
    card->setMaximumWidth(760);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 20, 20, 20);
    auto* row = new QHBoxLayout;
    row->addStretch(1);
    row->addWidget(card, 8);
    row->addStretch(1);
    column->addStretch(1);
    column->addLayout(row);
    column->addStretch(2);
    connect(m_open, &QPushButton::clicked, this, &StartPane::openWanted);
    connect(m_example, &QPushButton::clicked, this, &StartPane::exampleWanted);
    connect(m_stop, &QPushButton::clicked, this, &StartPane::stopWanted);
    connect(m_again, &QPushButton::clicked, this, &StartPane::againWanted);
    connect(m_copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(m_details); });
    showEmpty();
}

void StartPane::set(State state, const QString& title, const QString& words, const QString& details)
{
    m_title->setText(title);
    m_words->setText(words);
    m_words->setVisible(!words.isEmpty());
    m_details = details;
    m_code->setVisible(state == State::Empty);
    m_after->setVisible(state == State::Empty);
    m_preview->setVisible(state == State::Progress && !m_preview->isEmpty());
    m_bar->setVisible(state == State::Progress);
    m_stop->setVisible(state == State::Progress);
    m_open->setVisible(state != State::Progress);
    m_example->setVisible(state == State::Empty);
    m_again->setVisible(state == State::Stopped || state == State::Error);
    m_copy->setVisible(state == State::Error);
    setAccessibleDescription(text());
}

void StartPane::showEmpty()
{
    set(State::Empty, tr("Record a snapshot in three lines"), {});
}

void StartPane::showProgress(const QString& path, double share, const QString& what)
{
    const QFileInfo file(path);
    set(State::Progress, tr("Opening %1").arg(file.fileName()),
        tr("%1 · %2 · %3 %").arg(fileSizeText(std::uint64_t(file.size())), what).arg(int(share * 100)));
    m_bar->setValue(int(share * 1000));
}

void StartPane::showPreview(std::vector<std::int64_t> columns, double share)
{
    m_preview->setColumns(std::move(columns), share);
}

void StartPane::showStopped(const QString& path)
{
    set(State::Stopped, tr("%1 is not open: its opening was stopped.").arg(QFileInfo(path).fileName()), {});
}

void StartPane::showError(const QString& path, const Error& error)
{
    QStringList lines{QString::fromStdString(error.message)};
    if (!error.place.empty() && error.place != path.toStdString())
        lines << tr("at %1").arg(QString::fromStdString(error.place));
    if (!error.hint.empty())
        lines << QString::fromStdString(error.hint);
    set(State::Error, tr("%1 could not be opened").arg(QFileInfo(path).fileName()), lines.join(u'\n'),
        QStringLiteral("%1\n%2\n%3")
            .arg(QDir::toNativeSeparators(path), QString::fromStdString(error.code),
                 QString::fromStdString(error.text())));
}

QString StartPane::text() const
{
    return m_title->text() + (m_words->isHidden() ? QString() : u'\n' + m_words->text());
}

} // namespace memscape
