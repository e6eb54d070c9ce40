// SPDX-License-Identifier: GPL-3.0-or-later
// The list of the page: the deep questions, then the claims note by note, those that the filter leaves. Heads of groups
// are rows that cannot be chosen.
#pragma once

#include "app/claims/claims_judge.h"

#include <QAbstractListModel>

#include <array>
#include <optional>

namespace memscape {

struct ClaimsFilter
{
    QString search = {};     ///< words that must all be in a claim
    std::string source = {}; ///< of one note; empty: all
    std::string topic = {};
    std::optional<ClaimVerdict> verdict = {};

    bool operator==(const ClaimsFilter&) const = default;
    bool isEmpty() const { return *this == ClaimsFilter(); }
};

class ClaimsModel : public QAbstractListModel
{
    Q_OBJECT

public:
    struct Row
    {
        enum class Kind { Head, Question, Claim } kind = Kind::Head;
        std::string id = {}; ///< of the question or claim
        QString text = {};   ///< head, question or quote
        QString detail = {}; ///< second line
        ClaimVerdict verdict = ClaimVerdict::Untested;
    };
    /// What a row is called: "interval" of Kind::Question and a claim "interval" are two.
    using Key = std::pair<Row::Kind, std::string>;

    explicit ClaimsModel(QObject* parent = nullptr);

    void setResult(ClaimsResult result);
    const ClaimsResult& result() const { return m_result; }
    void setFilter(const ClaimsFilter& filter);
    const ClaimsFilter& filter() const { return m_filter; }

    /// Of the claims that the rest of the filter leaves, by ClaimVerdict.
    const std::array<int, 4>& counts() const { return m_counts; }
    /// The claims that are listed, in their order.
    std::vector<JudgedClaim> listed() const;
    std::vector<std::string> sources() const;
    std::vector<std::string> topics() const; ///< sorted
    const std::vector<Row>& rows() const { return m_rows; }
    /// Invalid where the filter hides it, or there is none.
    QModelIndex indexOf(const Key& key) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    void refill();

    ClaimsResult m_result;
    ClaimsFilter m_filter;
    std::vector<Row> m_rows;
    std::array<int, 4> m_counts{};
};

} // namespace memscape
