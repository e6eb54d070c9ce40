// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/remedies.h"

#include "app/settings/words.h"

#include <QRegularExpression>

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// Adds "key=value" to a proposal; false where it is no value of a parameter.
bool addChange(Proposal& proposal, const Schema& schema, const std::string& key, const std::string& text,
               ByteStyle bytes)
{
    const ParameterSpec* spec = findParameter(schema, key);
    const auto value = spec ? parseValue(*spec, text) : fail("parameter.unknown", key);
    if (!value)
        return false;
    const QString words = toQString(spec->label) + QStringLiteral(": ") + toQString(valueLabel(*spec, *value, bytes));
    proposal.label += (proposal.label.isEmpty() ? QString() : QStringLiteral(", ")) + words;
    proposal.changes.emplace_back(key, text);
    return true;
}

} // namespace

std::vector<Proposal> proposalsOf(const Error& error, const Schema& schema, ByteStyle bytes)
{
    std::vector<Proposal> proposals;
    Proposal own;
    if (error.remedy && addChange(own, schema, error.remedy->parameter, error.remedy->value, bytes))
        return {own};
    static const QRegularExpression alternative(QStringLiteral(",? or ")),
        change(QStringLiteral("\\b([a-z][a-z0-9_]*)=([^\\s,;()]*[^\\s,;:()])"));
    for (const QString& words : toQString(error.hint).split(alternative)) {
        Proposal proposal;
        bool isWhole = true;
        for (auto found = change.globalMatch(words); found.hasNext() && isWhole;) {
            const auto match = found.next();
            isWhole =
                addChange(proposal, schema, match.captured(1).toStdString(), match.captured(2).toStdString(), bytes);
        }
        if (isWhole && !proposal.changes.empty())
            proposals.push_back(std::move(proposal));
    }
    return proposals;
}

} // namespace memscape
