// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/claims/claims_model.h"

#include "app/pages/cards/verdict.h"
#include "app/settings/words.h"

#include <algorithm>
#include <set>
#include <utility>

namespace memscape {

namespace {

QString experimentTitle(const Experiment* experiment)
{
    return experiment ? toQString(experiment->title()) : QString();
}

bool hasAllWords(const QString& text, const QString& search)
{
    const QStringList words = search.split(u' ', Qt::SkipEmptyParts);
    return std::ranges::all_of(words, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

QString searchedText(const JudgedClaim& claim)
{
    const ClaimEntry& entry = *claim.entry;
    return QStringList{
        toQString(entry.quote), toQString(entry.heading), toQString(entry.topic), toQString(entry.id),
        toQString(claim.ours),  toQString(claim.verdict), toQString(claim.right), experimentTitle(entry.experiment)}
        .join(u' ');
}

QString searchedText(const AnsweredQuestion& answer)
{
    QStringList words{toQString(answer.question->question), toQString(answer.question->answer),
                      toQString(answer.isTrue), toQString(answer.isNot)};
    for (const QuestionStep& step : answer.question->steps)
        words << experimentTitle(step.experiment);
    for (const std::string& says : answer.says)
        words << toQString(says);
    return words.join(u' ');
}

} // namespace

ClaimsModel::ClaimsModel(QObject* parent)
    : QAbstractListModel(parent)
{ }

void ClaimsModel::setResult(ClaimsResult result)
{
    m_result = std::move(result);
    refill();
}

void ClaimsModel::setFilter(const ClaimsFilter& filter)
{
    if (std::exchange(m_filter, filter) != filter)
        refill();
}

void ClaimsModel::refill()
{
    beginResetModel();
    static const ClaimsOfDevice none;
    const ClaimsOfDevice& result = m_result ? *m_result : none;
    m_rows.clear();
    m_counts = {};
    const auto add = [this](QString& head, Row row) {
        if (!head.isEmpty())
            m_rows.push_back({Row::Kind::Head, {}, std::exchange(head, {}), {}, {}});
        m_rows.push_back(std::move(row));
    };
    QString head = tr("Deep questions, step by step");
    for (const AnsweredQuestion& answer : result.answers) {
        const DeepQuestion& question = *answer.question;
        const JudgedClaim* claim = result.claim(question.claim);
        const ClaimVerdict verdict = claim ? verdictKind(claim->verdict) : ClaimVerdict::Untested;
        const std::string topic = claim ? claim->entry->topic : std::string();
        if ((!m_filter.source.empty() && question.source != m_filter.source)
            || (!m_filter.topic.empty() && topic != m_filter.topic)
            || (m_filter.verdict && verdict != *m_filter.verdict)
            || !hasAllWords(searchedText(answer), m_filter.search))
            continue;
        add(head,
            {Row::Kind::Question, question.id, toQString(question.question),
             tr("the notes’ answer %1 · %n steps", nullptr, int(question.steps.size())).arg(verdictWord(verdict)),
             verdict});
    }
    std::string source;
    for (const JudgedClaim& claim : result.claims) {
        const ClaimEntry& entry = *claim.entry;
        if (std::exchange(source, entry.source) != entry.source)
            head = toQString(entry.title);
        if ((!m_filter.source.empty() && entry.source != m_filter.source)
            || (!m_filter.topic.empty() && entry.topic != m_filter.topic)
            || !hasAllWords(searchedText(claim), m_filter.search))
            continue;
        const ClaimVerdict verdict = verdictKind(claim.verdict);
        ++m_counts[std::size_t(verdict)];
        if (m_filter.verdict && verdict != *m_filter.verdict)
            continue;
        QStringList detail{verdictWord(verdict), toQString(entry.topic)};
        if (entry.experiment)
            detail << experimentTitle(entry.experiment);
        add(head,
            {Row::Kind::Claim, entry.id, QStringLiteral("“%1”").arg(toQString(entry.quote)),
             detail.join(QStringLiteral(" · ")), verdict});
    }
    endResetModel();
}

std::vector<JudgedClaim> ClaimsModel::listed() const
{
    std::vector<JudgedClaim> claims;
    for (const Row& row : m_rows) {
        if (row.kind == Row::Kind::Claim)
            claims.push_back(*m_result->claim(row.id));
    }
    return claims;
}

std::vector<std::string> ClaimsModel::sources() const
{
    std::vector<std::string> all;
    for (std::size_t i = 0; m_result && i < m_result->claims.size(); ++i) {
        const JudgedClaim& claim = m_result->claims[i];
        if (all.empty() || all.back() != claim.entry->source)
            all.push_back(claim.entry->source);
    }
    return all;
}

std::vector<std::string> ClaimsModel::topics() const
{
    std::set<std::string> all;
    for (std::size_t i = 0; m_result && i < m_result->claims.size(); ++i)
        all.insert(m_result->claims[i].entry->topic);
    return {all.begin(), all.end()};
}

QModelIndex ClaimsModel::indexOf(const Key& key) const
{
    const auto found =
        std::ranges::find_if(m_rows, [&](const Row& row) { return row.kind == key.first && row.id == key.second; });
    return found == m_rows.end() || key.first == Row::Kind::Head ? QModelIndex() : index(int(found - m_rows.begin()));
}

int ClaimsModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : int(m_rows.size());
}

QVariant ClaimsModel::data(const QModelIndex& index, int role) const
{
    if (index.row() < 0 || index.row() >= rowCount())
        return {};
    const Row& row = m_rows[std::size_t(index.row())];
    switch (role) {
    case Qt::DisplayRole: return row.text;
    case Qt::AccessibleTextRole: return row.detail.isEmpty() ? row.text : row.text + QStringLiteral(": ") + row.detail;
    case Qt::ToolTipRole: return row.kind == Row::Kind::Head ? QVariant() : row.text;
    default: return {};
    }
}

Qt::ItemFlags ClaimsModel::flags(const QModelIndex& index) const
{
    const bool isHead =
        index.row() >= 0 && index.row() < rowCount() && m_rows[std::size_t(index.row())].kind == Row::Kind::Head;
    return isHead ? Qt::NoItemFlags : QAbstractListModel::flags(index);
}

} // namespace memscape
