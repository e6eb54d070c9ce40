// SPDX-License-Identifier: GPL-3.0-or-later
// What became of the answers: you, predicted, measured, points, a line for each check, and below a line that did not
// pass the lab's explanation.
#pragma once

#include "app/labs/step_view.h"

#include <QWidget>

class QGridLayout;

namespace memscape {

class ResultTable : public QWidget
{
    Q_OBJECT

public:
    explicit ResultTable(QWidget* parent = nullptr);
    void display(const std::vector<ResultRow>& rows);
    /// The whole grade: every check with what was expected, texts and flags. For the author.
    void display(const LabGrade& grade);
    QStringList texts() const; ///< of its lines, for tests: "ratio | 100 | 94 | 2 of 2"

private:
    void add(const QStringList& cells, const std::vector<const char*>& tones, const QString& note);
    void clear();

    QGridLayout* m_grid;
    QStringList m_texts;
    int m_row = 0;
};

} // namespace memscape
