// SPDX-License-Identifier: GPL-3.0-or-later
// Axes over which a student draws a curve, and on which later the model's and the machine's lie beside it. Drag to
// draw, drag again to change a part; Left and Right choose one of the points that count, Up and Down move it (Shift:
// finely), the wheel zooms. The axes' limits come from the unit alone: a range around the answer would tell it.
#pragma once

#include "app/labs/curve_drawing.h"
#include "app/labs/step_view.h"
#include "app/plots/plot_view.h"

#include <QWidget>

class QLabel;

namespace memscape {

class CurveBoard : public QWidget
{
    Q_OBJECT

public:
    explicit CurveBoard(QWidget* parent = nullptr);

    /// Begins anew where it is another question.
    void setQuestion(const LabQuestion& question, const std::vector<LabValue>& x);
    void setValues(const std::vector<double>& y);
    std::vector<double> values() const { return m_drawing.values(); }
    void setLocked(bool locked);
    /// The model's and the machine's curves; none while they stay hidden.
    void setOthers(const std::optional<Series>& predicted, const std::optional<Series>& measured);
    /// Said above the axes, "Ours and the machine's stay hidden…".
    void setNote(const QString& text);
    QString note() const;
    PlotView* plot() const { return m_plot; }
    std::size_t point() const { return m_point; } ///< that the arrow keys move, in the order of x

signals:
    void drawn(const std::vector<double>& y);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    bool key(int key, bool fine);
    void stroke(QPointF from, QPointF to);
    void refresh();
    std::vector<std::size_t> inOrder() const;

    PlotView* m_plot;
    QLabel* m_note;
    QLabel* m_status;
    std::optional<LabQuestion> m_question;
    AxisSpec m_across, m_up; ///< before anything is told
    CurveDrawing m_drawing;
    std::optional<Series> m_predicted, m_measured;
    std::size_t m_point = 0;
    bool m_isLocked = false;
};

} // namespace memscape
