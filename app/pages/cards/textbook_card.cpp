// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/textbook_card.h"

#include <cmath>

namespace memscape {

namespace {

QString valuesText(const TextbookFormula& one, ByteStyle bytes)
{
    const QString formula =
        TextbookCard::tr("formula %1, simulated %2").arg(memoryText(one.value, bytes), memoryText(one.ours, bytes));
    if (!std::isfinite(one.value) || !std::isfinite(one.ours) || one.ours == 0)
        return formula;
    const QString error = QString::fromStdString(percentText((one.value - one.ours) / one.ours));
    return TextbookCard::tr("%1 (%2)").arg(formula, error.front().isDigit() ? u'+' + error : error);
}

} // namespace

TextbookCard::TextbookCard(QWidget* parent)
    : Card(parent)
{
    setObjectName(QStringLiteral("textbook"));
    setAccessibleName(tr("Textbook formulas"));
    column()->addWidget(toneLabel(tr("Textbook formulas"), "strong", this));
    setVisible(false);
}

void TextbookCard::setFormulas(const std::vector<TextbookFormula>& formulas, ByteStyle bytes)
{
    while (m_lines.size() < formulas.size()) {
        Lines lines{toneLabel({}, "code", this, true), toneLabel({}, "plain", this, true),
                    toneLabel({}, "dim", this, true), toneLabel({}, "faint", this, true)};
        for (QLabel* label : {lines.formula, lines.values, lines.difference, lines.source})
            column()->addWidget(label);
        m_lines.push_back(lines);
    }
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        const bool used = i < formulas.size();
        const TextbookFormula one = used ? formulas[i] : TextbookFormula{};
        const std::pair<QLabel*, QString> texts[] = {{m_lines[i].formula, one.formula},
                                                     {m_lines[i].values, used ? valuesText(one, bytes) : QString()},
                                                     {m_lines[i].difference, one.difference},
                                                     {m_lines[i].source, one.source}};
        for (const auto& [label, text] : texts) {
            label->setText(text);
            label->setVisible(!text.isEmpty());
        }
    }
    setVisible(!formulas.empty());
}

} // namespace memscape
