// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/claims_card.h"

#include "app/pages/byte_words.h"
#include "app/pages/cards/verdict.h"
#include "app/pictures/common/json_values.h"

#include <nlohmann/json.hpp>

namespace memscape {

std::vector<Claim> readClaims(const Json& detail)
{
    std::vector<Claim> claims;
    const Json& json = member(detail, "claims");
    if (!json.is_array())
        return claims;
    for (const Json& one : json)
        claims.push_back(
            {words(one, "quote"), words(one, "source"), words(one, "verdict"), words(one, "ours"), words(one, "id")});
    return claims;
}

ClaimsCard::ClaimsCard(QWidget* parent)
    : Card(parent)
{
    setObjectName(QStringLiteral("claims"));
    setAccessibleName(tr("Textbook claims"));
    column()->addWidget(toneLabel(tr("Textbook says"), "strong", this));
    setVisible(false);
}

void ClaimsCard::setClaims(const std::vector<Claim>& claims, ByteStyle bytes)
{
    while (m_lines.size() < claims.size()) {
        Lines lines{toneLabel({}, "dim", this, true), toneLabel({}, "good", this, true), new LinkLabel("faint", this)};
        for (QLabel* label : {lines.quote, lines.verdict, lines.source})
            column()->addWidget(label);
        lines.source->setAccessibleName(tr("Where it is claimed"));
        connect(lines.source, &QLabel::linkActivated, this, &ClaimsCard::claimWanted);
        m_lines.push_back(lines);
    }
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
        const bool used = i < claims.size();
        for (QLabel* label : {m_lines[i].quote, m_lines[i].verdict, m_lines[i].source})
            label->setVisible(used);
        if (!used)
            continue;
        const Claim& claim = claims[i];
        m_lines[i].quote->setText(QStringLiteral("“%1”").arg(QString::fromStdString(claim.quote)));
        const std::string ours = claim.ours.empty() ? claim.verdict : claim.verdict + ": " + claim.ours;
        m_lines[i].verdict->setText(bytesInStyle(QString::fromStdString(ours), bytes));
        setTone(m_lines[i].verdict, verdictTone(verdictKind(claim.verdict)));
        QString source = QString::fromStdString(claim.source).toHtmlEscaped();
        if (!claim.id.empty())
            source += QStringLiteral(" · <a href=\"%1\">%2</a>")
                          .arg(QString::fromStdString(claim.id).toHtmlEscaped(), tr("in Claims"));
        m_lines[i].source->setText(source);
        m_lines[i].source->setFocusPolicy(claim.id.empty() ? Qt::NoFocus : Qt::StrongFocus);
    }
    setVisible(!claims.empty());
}

} // namespace memscape
