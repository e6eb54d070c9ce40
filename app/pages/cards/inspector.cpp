// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/inspector.h"

#include "app/settings/scroll_column.h"

#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QTimer>

#include <algorithm>

namespace memscape {

namespace {

constexpr int cardRest = 120; ///< ms without a change after which cards out of sight follow

} // namespace

Inspector::Inspector(const Experiment& experiment, StudyDocument& document, RunController& runs, QWidget* parent)
    : QFrame(parent)
    , m_experiment(experiment)
    , m_headlines(new HeadlineStrip(this))
    , m_form(new ParameterForm(experiment.schema(), this))
    , m_figures(new FiguresTable(this))
    , m_basis(toneLabel({}, "faint", this))
    , m_fit(toneLabel({}, "faint", this))
    , m_note(toneLabel({}, "dim", this))
    , m_noteActions(new QVBoxLayout)
    , m_why(new WhyCard(this))
    , m_claims(new ClaimsCard(this))
    , m_textbook(new TextbookCard(this))
    , m_records(new RecordsList(document, experiment.id(), this))
    , m_scroll(new QScrollArea(this))
{
    setObjectName(QStringLiteral("inspector"));
    if (const auto series = experiment.series(); !series.empty())
        m_headline = QString::fromStdString(series.front().key);
    setAccessibleName(tr("Inspector"));
    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(16, 14, 16, 10);
    column->setSpacing(8);
    build(column);
    scrollColumn(m_scroll, content);

    auto* progress = new ProgressRow(runs, this);
    progress->setContentsMargins(16, 0, 16, 10);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->setSpacing(0);
    outer->addWidget(m_headlines);
    outer->addWidget(m_scroll, 1);
    outer->addWidget(progress);

    m_rest.setSingleShot(true);
    m_rest.setInterval(cardRest);
    connect(&m_rest, &QTimer::timeout, this, &Inspector::showDue);
    connect(m_scroll->verticalScrollBar(), &QScrollBar::valueChanged, this, &Inspector::showSeen);
    connect(m_figures, &FiguresTable::currentKeyChanged, this, &Inspector::explain);
    connect(m_headlines, &HeadlineStrip::chosen, this, &Inspector::choose);
    connect(m_claims, &ClaimsCard::claimWanted, this, &Inspector::claimWanted);
    connect(m_records, &RecordsList::revealWanted, this, [this](QWidget* what) {
        QTimer::singleShot(0, what, [this, what] { m_scroll->ensureWidgetVisible(what, 0, 24); });
    });
}

void Inspector::build(QVBoxLayout* column)
{
    column->addWidget(toneLabel(tr("Parameters"), "subtitle", this));
    column->addWidget(m_form);
    column->addSpacing(8);
    column->addWidget(m_figures);
    for (QWidget* line : {static_cast<QWidget*>(m_fit), static_cast<QWidget*>(m_basis), static_cast<QWidget*>(m_note)})
        column->addWidget(line);
    column->addLayout(m_noteActions);
    column->addSpacing(4);
    column->addWidget(m_why);
    column->addWidget(m_textbook);
    column->addWidget(m_claims);
    column->addSpacing(8);
    column->addWidget(m_records);
    column->addStretch(1);
}

void Inspector::setFigures(std::vector<FigureRow> rows, ByteStyle bytes, bool compared)
{
    m_bytes = bytes;
    showHeadlines(rows);
    m_figures->setCompared(compared);
    m_figures->setRows(std::move(rows), bytes);
    explain();
}

void Inspector::showHeadlines(const std::vector<FigureRow>& rows)
{
    Figures figures;
    for (const FigureRow& row : rows) {
        if (row.predicted || row.measured)
            figures.push_back(row.predicted ? *row.predicted : *row.measured);
    }
    std::vector<FigureRow> chosen;
    for (const Figure* figure : headlineFigures(m_experiment, figures)) {
        for (const FigureRow& row : rows) {
            if (row.key.toStdString() == figure->key)
                chosen.push_back(row);
        }
    }
    m_headlines->setRows(chosen, m_bytes);
}

/// The row of a figure, and why it is what it is.
void Inspector::choose(const QString& key)
{
    const auto& rows = m_figures->figures()->rows();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].key != key)
            continue;
        m_figures->selectRow(int(i));
        QTimer::singleShot(0, m_why, [this] {
            m_scroll->ensureWidgetVisible(m_why, 0, 24);
            m_scroll->ensureWidgetVisible(m_figures, 0, 24);
        });
    }
}

void Inspector::show(const Card* card, Showing show)
{
    std::erase_if(m_due, [card](const auto& due) { return due.first == card; });
    if (!card->visibleRegion().isEmpty())
        return show();
    m_due.emplace_back(card, std::move(show));
    m_rest.start();
}

void Inspector::showDue() const
{
    m_rest.stop();
    for (const auto& [card, show] : std::exchange(m_due, {}))
        show();
}

/// Those that have been scrolled into view.
void Inspector::showSeen()
{
    for (auto& [card, show] : std::exchange(m_due, {}))
        this->show(card, std::move(show));
}

void Inspector::setClaims(std::vector<Claim> claims, ByteStyle bytes)
{
    show(m_claims, [this, bytes, claims = std::move(claims)] { m_claims->setClaims(claims, bytes); });
}

void Inspector::setFormulas(std::vector<TextbookFormula> formulas, ByteStyle bytes)
{
    show(m_textbook, [this, bytes, formulas = std::move(formulas)] { m_textbook->setFormulas(formulas, bytes); });
}

void Inspector::explain()
{
    show(m_why, [this] { explainNow(); });
}

void Inspector::explainNow()
{
    const QString key = m_figures->currentIndex().isValid() ? m_figures->currentKey() : m_headline;
    for (const FigureRow& row : m_figures->figures()->rows()) {
        if (row.key == key) {
            m_why->setFigure(row.predicted ? &*row.predicted : nullptr, m_bytes);
            return;
        }
    }
    m_why->setFigure(nullptr, m_bytes);
}

void Inspector::setBasis(const QString& basis, const QString& fit)
{
    m_basis->setText(basis);
    m_basis->setVisible(!basis.isEmpty());
    m_fit->setText(fit);
    m_fit->setVisible(!fit.isEmpty());
}

void Inspector::setNote(InspectorNote note)
{
    m_note->setText(note.text);
    m_note->setVisible(!note.text.isEmpty());
    m_noteRuns.clear();
    for (std::size_t i = 0; i < std::max(note.actions.size(), std::size_t(m_noteActions->count())); ++i) {
        QPushButton* button = noteButton(i);
        button->setVisible(i < note.actions.size());
        if (i < note.actions.size()) {
            button->setText(note.actions[i].label);
            m_noteRuns.push_back(std::move(note.actions[i].run));
        }
    }
}

/// Made when there is one more than there ever were.
QPushButton* Inspector::noteButton(std::size_t index)
{
    if (index < std::size_t(m_noteActions->count()))
        return qobject_cast<QPushButton*>(m_noteActions->itemAt(int(index))->widget());
    auto* button = new QPushButton(this);
    button->setObjectName(QStringLiteral("noteAction"));
    m_noteActions->addWidget(button, 0, Qt::AlignLeft);
    connect(button, &QPushButton::clicked, this, [this, index] {
        const auto run = index < m_noteRuns.size() ? m_noteRuns[index] : nullptr; // it may replace the note
        if (run)
            run();
    });
    return button;
}

} // namespace memscape
