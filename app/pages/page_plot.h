// SPDX-License-Identifier: GPL-3.0-or-later
// The plot of a page with what stands around it: chips that choose among series of different units,
// one-click log axes, and the line below that says what is under the pointer. Where the picture of a
// page is its plot already, all but that line folds away; a button there brings the curves back.
#pragma once

#include "app/pages/curves.h"
#include "app/plots/plot_view.h"

#include <QToolButton>
#include <QWidget>

class QButtonGroup;
class QComboBox;
class QHBoxLayout;
class QLabel;

namespace memscape {

class PagePlot : public QWidget
{
    Q_OBJECT

public:
    explicit PagePlot(QWidget* parent = nullptr);

    PlotView* view() const { return m_view; }
    /// A strip at the foot; where the plot is low, the status line gives way to it.
    void addBelow(QWidget* strip);
    /// Chips are made anew only when the groups change.
    void setGroups(const std::vector<SeriesGroup>& groups, const QString& current);
    void setAxes(const AxisSpec& x, const AxisSpec& y);
    /// Without logarithms and bases: where they would mean nothing.
    void setPlain(bool plain);
    void setBases(bool shown) { m_bases->setChecked(shown); }
    /// Something else than the plot that is under the pointer; empty gives the line back.
    void setHoverText(const QString& text);
    QString statusText() const { return m_text; } ///< all of it, however narrow the line is
    /// The line offers to fold and unfold; without the plot it says `hint`.
    void setFoldable(bool foldable, const QString& hint = {});
    void setFolded(bool folded);
    bool isFolded() const { return m_isFolded; }
    /// The curves are of the last answer, and the next takes its time.
    void setBusy(bool busy);
    /// What the line below the plot says while nothing is pointed at; empty: how the plot is used.
    void setInvitation(const QString& text);

signals:
    void groupChosen(const QString& key);
    void logChosen(Qt::Axis axis, bool on);
    void basesChosen(bool on);
    void foldChosen(bool folded);

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QToolButton* chipButton(const QString& text, const QString& tip);
    QToolButton* logButton(const QString& text, const QString& tip, Qt::Axis axis);
    int roomInside() const;
    void refreshStatus();
    void fitStatus();
    void makeChips(const std::vector<SeriesGroup>& groups);
    /// Chips where there is room for them, else the list: a plot may be narrow.
    void fitChips();

    PlotView* m_view;
    QWidget* m_toolBar;
    QWidget* m_chipArea;
    QHBoxLayout* m_chips;
    QButtonGroup* m_group;
    QComboBox* m_list; ///< instead of chips when there are many, or no room
    QToolButton* m_reset;
    QToolButton* m_bases;
    QToolButton* m_logX;
    QToolButton* m_logY;
    QLabel* m_status;
    QToolButton* m_fold;
    QWidget* m_below = nullptr;
    std::vector<SeriesGroup> m_groups;
    QString m_hover, m_invitation;
    QString m_hint; ///< of the picture, while it replaces the plot
    QString m_text; ///< of the line, in full
    bool m_isFolded = false;
    bool m_isBusy = false;
    bool m_isPlain = false;
};

} // namespace memscape
