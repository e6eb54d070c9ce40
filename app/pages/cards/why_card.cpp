// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/why_card.h"

#include "app/pages/byte_words.h"

namespace memscape {

namespace {

QString termText(const Term& term, ByteStyle bytes)
{
    QString text = QString::fromStdString(term.symbol) + QStringLiteral(" = ")
        + QString::fromStdString(quantityText(term.value, term.unit, bytes));
    if (!term.meaning.empty())
        text += QStringLiteral(", ") + QString::fromStdString(term.meaning);
    if (!term.source.empty())
        text += QStringLiteral(": ") + QString::fromStdString(term.source);
    return text;
}

} // namespace

WhyCard::WhyCard(QWidget* parent)
    : Card(parent)
{
    setObjectName(QStringLiteral("why"));
    setAccessibleName(tr("Why this number?"));
    column()->addWidget(toneLabel(tr("Why this number?"), "strong", this));
}

QLabel* WhyCard::line(std::size_t index, const char* tone)
{
    while (m_lines.size() <= index) {
        m_lines.push_back(toneLabel({}, tone, this, true));
        column()->addWidget(m_lines.back());
    }
    setTone(m_lines[index], tone);
    m_lines[index]->setVisible(true);
    return m_lines[index];
}

void WhyCard::finish(std::size_t used)
{
    for (std::size_t i = used; i < m_lines.size(); ++i)
        m_lines[i]->setVisible(false);
    setAccessibleDescription(text());
}

void WhyCard::setFigure(const Figure* figure, ByteStyle bytes)
{
    m_figure = figure ? std::optional(*figure) : std::nullopt;
    std::size_t at = 0;
    if (figure == nullptr || !figure->why) {
        line(at++, "faint")
            ->setText(figure ? tr("%1 follows from its definition.").arg(QString::fromStdString(figure->label))
                             : tr("Select a figure above."));
        finish(at);
        return;
    }
    const Why& why = *figure->why;
    line(at++, "plain")->setText(QString::fromStdString(why.formula));
    const QString with = bytesInStyle(QString::fromStdString(why.with), bytes);
    if (!with.isEmpty())
        line(at++, "predicted")->setText(with);
    const QString result = QString::fromStdString(figure->text(bytes));
    if (figure->isNumber() && !with.contains(result))
        line(at++, "predicted")->setText(QStringLiteral("= ") + result);
    for (const Term& term : why.terms)
        line(at++, "faint")->setText(termText(term, bytes));
    if (!why.source.empty())
        line(at++, "faint")->setText(tr("source: %1").arg(QString::fromStdString(why.source)));
    for (const std::string& omitted : why.omits)
        line(at++, "faint")->setText(tr("leaves out: %1").arg(QString::fromStdString(omitted)));
    finish(at);
}

QString WhyCard::text() const
{
    QStringList lines;
    for (const QLabel* label : m_lines) {
        if (!label->isHidden())
            lines << label->text();
    }
    return lines.join(u'\n');
}

} // namespace memscape
