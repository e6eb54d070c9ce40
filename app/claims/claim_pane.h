// SPDX-License-Identifier: GPL-3.0-or-later
// One claim, or one deep question, in full: the note's words and their place, the verdict, our numbers for the device,
// what is right, and the cases or steps, each with a button that opens the page which shows it.
#pragma once

#include "app/claims/claims_judge.h"
#include "app/pages/page_visit.h"

#include <QScrollArea>

class QLabel;
class QVBoxLayout;

namespace memscape {

/// The page of that experiment at these parameters, on the device that was judged.
PageVisit visitOf(const Experiment& experiment, const Parameters& parameters, const std::string& device,
                  const QString& step);

class ClaimPane : public QScrollArea
{
    Q_OBJECT

public:
    explicit ClaimPane(QWidget* parent = nullptr);

    /// Of what is shown from now on: Decimal writes binary bytes as decimal ones.
    void setByteStyle(ByteStyle style) { m_bytes = style; }
    /// `deviceId`: of the page, in place of the id that the device has of itself.
    void showClaim(const ClaimsOfDevice& result, const JudgedClaim& claim, const std::string& deviceId);
    void showQuestion(const ClaimsOfDevice& result, const AnsweredQuestion& answer, const std::string& deviceId);
    void clear();

    /// What Enter opens: the first case; empty where nothing shows the claim.
    const std::vector<PageVisit>& visits() const { return m_visits; }
    QString text() const; ///< all of it, for a screen reader and tests

signals:
    void visitWanted(const memscape::PageVisit& visit);
    void claimWanted(const QString& id); ///< the claim that judges a question's answer

private:
    void begin();
    void end();
    QLabel* add(const QString& text, const char* tone);
    void addSection(const QString& title, const QString& text);
    void addQuote(const QString& words, const QString& place);
    void addVerdict(const std::string& verdict);
    void addVisit(const QString& words, const QString& parameters, const PageVisit& visit);
    std::string idFor(const ClaimsOfDevice& result, const std::string& device, const std::string& deviceId) const;

    ByteStyle m_bytes = ByteStyle::Binary;
    QWidget* m_content = nullptr;
    QVBoxLayout* m_column = nullptr;
    std::vector<PageVisit> m_visits;
};

} // namespace memscape
