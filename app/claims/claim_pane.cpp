// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/claims/claim_pane.h"

#include "app/pages/byte_words.h"
#include "app/pages/cards/card.h"
#include "app/pages/cards/verdict.h"
#include "app/settings/words.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QVBoxLayout>

namespace memscape {

namespace {

/// A page of which the claim's parameters are the standard has none to name.
QString assignmentsText(const std::vector<std::string>& assignments)
{
    return assignments.empty() ? ClaimPane::tr("standard parameters") : toQString(join(assignments, "   "));
}

/// "NVIDIA H200 SXM" of "nvidia-h200".
QString deviceName(const std::string& id)
{
    const auto device = findDevice(id);
    return toQString(device ? device->name : id);
}

QString titleOf(const Experiment& experiment)
{
    return toQString(experiment.title());
}

} // namespace

PageVisit visitOf(const Experiment& experiment, const Parameters& parameters, const std::string& device,
                  const QString& step)
{
    PageVisit visit{toQString(experiment.id()), {}, device, step};
    for (const auto& [key, value] : parameters.values())
        visit.changes.emplace_back(key, valueText(value));
    return visit;
}

ClaimPane::ClaimPane(QWidget* parent)
    : QScrollArea(parent)
{
    setObjectName(QStringLiteral("claimPane"));
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("The chosen claim"));
    begin();
    end();
}

void ClaimPane::begin()
{
    m_visits.clear();
    m_content = new QWidget;
    m_column = new QVBoxLayout(m_content);
    m_column->setContentsMargins(20, 14, 20, 16);
    m_column->setSpacing(6);
}

void ClaimPane::end()
{
    m_column->addStretch(1);
    setWidget(m_content); // deletes the one before
    m_content->show();
    verticalScrollBar()->setValue(0);
}

void ClaimPane::clear()
{
    begin();
    add(tr("Choose a claim."), "dim");
    end();
}

QLabel* ClaimPane::add(const QString& text, const char* tone)
{
    QLabel* label = toneLabel(text, tone, m_content, true);
    m_column->addWidget(label);
    return label;
}

void ClaimPane::addSection(const QString& title, const QString& text)
{
    if (text.isEmpty())
        return;
    m_column->addSpacing(6);
    add(title, "section");
    add(bytesInStyle(text, m_bytes), "plain");
}

void ClaimPane::addQuote(const QString& words, const QString& place)
{
    auto* card = new Card(m_content);
    card->column()->addWidget(toneLabel(QStringLiteral("“%1”").arg(words), "plain", card, true));
    card->column()->addWidget(toneLabel(place, "faint", card, true));
    m_column->addWidget(card);
}

void ClaimPane::addVerdict(const std::string& verdict)
{
    const ClaimVerdict kind = verdictKind(verdict);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    auto* mark = new QLabel(m_content);
    mark->setPixmap(verdictPixmap(kind, *this));
    mark->setFixedWidth(fontMetrics().height() + 2);
    auto* words = toneLabel(bytesInStyle(capitalized(toQString(verdict)), m_bytes), verdictTone(kind), m_content, true);
    words->setObjectName(QStringLiteral("verdict"));
    QFont bold = words->font();
    bold.setBold(true);
    words->setFont(bold);
    row->addWidget(mark, 0, Qt::AlignTop);
    row->addWidget(words, 1);
    m_column->addSpacing(4);
    m_column->addLayout(row);
}

void ClaimPane::addVisit(const QString& words, const QString& parameters, const PageVisit& visit)
{
    auto* card = new Card(m_content);
    auto* row = new QHBoxLayout;
    auto* lines = new QVBoxLayout;
    lines->setSpacing(2);
    lines->addWidget(toneLabel(bytesInStyle(words, m_bytes), "plain", card, true));
    lines->addWidget(toneLabel(parameters, "code", card, true));
    auto* button = new QPushButton(tr("Show it"), card);
    button->setObjectName(QStringLiteral("show.%1").arg(m_visits.size()));
    button->setAccessibleName(tr("Show it: %1").arg(words));
    button->setToolTip(tr("Open the page with these parameters; undo (Ctrl+Z) leads back"));
    if (m_visits.empty())
        button->setProperty("role", "primary");
    row->addLayout(lines, 1);
    row->addWidget(button, 0, Qt::AlignVCenter);
    card->column()->addLayout(row);
    m_column->addWidget(card);
    m_visits.push_back(visit);
    connect(button, &QPushButton::clicked, this, [this, visit] { emit visitWanted(visit); });
}

std::string ClaimPane::idFor(const ClaimsOfDevice& result, const std::string& device, const std::string& deviceId) const
{
    return device == result.device.id ? deviceId : device;
}

void ClaimPane::showClaim(const ClaimsOfDevice& result, const JudgedClaim& claim, const std::string& deviceId)
{
    const ClaimEntry& entry = *claim.entry;
    begin();
    addQuote(toQString(entry.quote), QStringLiteral("%1 · %2").arg(toQString(entry.title), toQString(entry.place())));
    addVerdict(claim.verdict);
    addSection(tr("OUR NUMBER FOR %1").arg(toQString(result.device.name).toUpper()), toQString(claim.ours));
    addSection(tr("WHAT IS RIGHT"), toQString(claim.right));
    m_column->addSpacing(6);
    add(entry.experiment ? tr("SHOWN BY %1").arg(titleOf(*entry.experiment).toUpper()) : tr("SHOWN BY NO EXPERIMENT"),
        "section");
    if (!entry.experiment)
        add(entry.cannot.empty() ? tr("It is arithmetic alone.") : tr("No page answers it yet."), "dim");
    for (std::size_t i = 0; i < entry.cases.size(); ++i) {
        const ClaimCase& one = entry.cases[i];
        QString words = entry.cases.size() > 1 ? toQString(one.name) : titleOf(*entry.experiment);
        if (claim.devices[i] != result.device.id)
            words += tr(" on %1").arg(deviceName(claim.devices[i]));
        addVisit(words, assignmentsText(one.assignments),
                 visitOf(*entry.experiment, one.parameters, idFor(result, claim.devices[i], deviceId),
                         tr("Show “%1”").arg(toQString(quotedForMessage(entry.quote, 40)))));
    }
    end();
}

void ClaimPane::showQuestion(const ClaimsOfDevice& result, const AnsweredQuestion& answer, const std::string& deviceId)
{
    const DeepQuestion& question = *answer.question;
    begin();
    add(toQString(question.question), "subtitle");
    m_column->addSpacing(4);
    addQuote(toQString(question.answer),
             tr("The answer of %1 · %2").arg(toQString(question.title), toQString(question.place())));
    if (const JudgedClaim* claim = result.claim(question.claim)) {
        addVerdict(claim->verdict);
        auto* link = new QPushButton(tr("The claim in the table →"), m_content);
        link->setObjectName(QStringLiteral("toClaim"));
        link->setProperty("role", "flat");
        m_column->addWidget(link, 0, Qt::AlignLeft);
        connect(link, &QPushButton::clicked, this, [this, id = toQString(question.claim)] { emit claimWanted(id); });
    }
    if (!answer.instead.empty())
        add(tr("The numbers are those of %1: %2.").arg(deviceName(answer.device), toQString(answer.instead)),
            "warning");
    addSection(tr("WHERE IT IS TRUE"), toQString(answer.isTrue));
    addSection(tr("WHERE IT IS NOT"), toQString(answer.isNot));
    m_column->addSpacing(6);
    add(tr("SEE FOR YOURSELF"), "section");
    for (std::size_t i = 0; i < question.steps.size(); ++i) {
        const QuestionStep& step = question.steps[i];
        addVisit(QStringLiteral("%1. %2").arg(i + 1).arg(toQString(answer.says[i])),
                 QStringLiteral("%1: %2").arg(titleOf(*step.experiment), assignmentsText(step.asked.assignments)),
                 visitOf(*step.experiment, step.asked.parameters, idFor(result, answer.devices[i], deviceId),
                         tr("Step %1 of “%2”").arg(i + 1).arg(toQString(quotedForMessage(question.question, 40)))));
    }
    end();
}

QString ClaimPane::text() const
{
    QStringList texts;
    for (const QLabel* label : m_content->findChildren<QLabel*>())
        texts << label->text();
    return texts.join(u'\n');
}

} // namespace memscape
