// SPDX-License-Identifier: GPL-3.0-or-later
// The right side of a page: four headline figures that stay, then parameters, figures with their basis, why, claims,
// records, and the progress of a measurement at the foot. It shows what the page gives it: at once where one sees it; a
// card out of sight waits until nothing has moved for a moment, since laying out its words takes longer than the rest
// of a frame.
#pragma once

#include "app/pages/cards/claims_card.h"
#include "app/pages/cards/figures_table.h"
#include "app/pages/cards/headline_strip.h"
#include "app/pages/cards/textbook_card.h"
#include "app/pages/cards/why_card.h"
#include "app/pages/fields/parameter_form.h"
#include "app/pages/progress_row.h"
#include "app/pages/records/records_list.h"

#include <QFrame>
#include <QLabel>
#include <QTimer>

#include <functional>
#include <utility>
#include <vector>

class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace memscape {

/// A button below a note.
struct NoteAction
{
    QString label;
    std::function<void()> run;
};

/// One sentence about the measurement beside the prediction, and what can be done about it.
struct InspectorNote
{
    QString text;
    std::vector<NoteAction> actions = {};
};

class Inspector : public QFrame
{
    Q_OBJECT

public:
    Inspector(const Experiment& experiment, StudyDocument& document, RunController& runs, QWidget* parent = nullptr);

    ParameterForm* form() const { return m_form; }
    FiguresTable* figures() const { return m_figures; }
    HeadlineStrip* headlines() const { return m_headlines; }
    // With what they are to show, also out of sight.
    WhyCard* why() const { return showDue(), m_why; }
    ClaimsCard* claims() const { return showDue(), m_claims; }
    TextbookCard* textbook() const { return showDue(), m_textbook; }
    RecordsList* records() const { return m_records; }

    /// `compared`: there is a measurement, here or elsewhere.
    void setFigures(std::vector<FigureRow> rows, ByteStyle bytes, bool compared);
    /// The basis of the prediction, and its error against the measurement.
    void setBasis(const QString& basis, const QString& fit);
    void setNote(InspectorNote note);
    QString noteText() const { return m_note->text(); }
    void setClaims(std::vector<Claim> claims, ByteStyle bytes);
    void setFormulas(std::vector<TextbookFormula> formulas, ByteStyle bytes);
    /// Cards out of sight show what they are to show, too.
    bool isComplete() const { return m_due.empty(); }

signals:
    void claimWanted(const QString& id); ///< an entry of the page Claims

private:
    using Showing = std::function<void()>;
    /// Runs `show` for a card now, or later in place of what was to be shown there before.
    void show(const Card* card, Showing show);
    void showDue() const;
    void showSeen();
    void explain();
    void explainNow();
    void build(QVBoxLayout* column);
    void showHeadlines(const std::vector<FigureRow>& rows);
    void choose(const QString& key);
    QPushButton* noteButton(std::size_t index);

    const Experiment& m_experiment;
    HeadlineStrip* m_headlines;
    ParameterForm* m_form;
    FiguresTable* m_figures;
    QLabel* m_basis;
    QLabel* m_fit;
    QLabel* m_note;
    QVBoxLayout* m_noteActions; ///< a button each
    std::vector<std::function<void()>> m_noteRuns;
    WhyCard* m_why;
    ClaimsCard* m_claims;
    TextbookCard* m_textbook;
    RecordsList* m_records;
    QScrollArea* m_scroll;
    QString m_headline; ///< explained while no figure is selected
    ByteStyle m_bytes = ByteStyle::Binary;
    mutable std::vector<std::pair<const Card*, Showing>> m_due;
    mutable QTimer m_rest;
};

} // namespace memscape
