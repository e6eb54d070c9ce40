// SPDX-License-Identifier: GPL-3.0-or-later
// The parameters of `checkpoint` that need more than a plain field: which chain (with a button that opens a
// file), which strategy (a button each, marked by whether it fits), and the budget, a slider between the
// least memory and what needs no recomputation. What the last two offer comes with a prediction.
#pragma once

#include "app/pages/fields/text_field.h"
#include "app/pictures/checkpoint/checkpoint_state.h"

class QButtonGroup;
class QGridLayout;
class QSpinBox;

namespace memscape {

class QuietSlider;

class ChainField : public TextField
{
    Q_OBJECT

public:
    explicit ChainField(const ParameterSpec& spec, QWidget* parent = nullptr);
};

class StrategyField : public ParameterField
{
    Q_OBJECT

public:
    explicit StrategyField(const ParameterSpec& spec, QWidget* parent = nullptr);

    void display(const ParameterValue& value, const std::optional<Sweep>& sweep) override;
    /// What each gives at the budget, in its tooltip; what does not fit is in italics.
    void setPoints(const std::vector<StrategyPoint>& points, const ScheduleUnits& units);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void choose(int index);
    bool isCounted(int index) const;
    void layoutButtons();

    QStringList m_keys; ///< of the buttons; the counted one without its number
    QButtonGroup* m_group;
    QSpinBox* m_count;
    QGridLayout* m_grid;
    int m_perRow = 0;
};

class BudgetField : public TextField
{
    Q_OBJECT

public:
    explicit BudgetField(const ParameterSpec& spec, QWidget* parent = nullptr);

    void display(const ParameterValue& value, const std::optional<Sweep>& sweep) override;
    /// Where the slider ends, and what an empty budget is; `length`: stages, where states are counted.
    void setRange(const FrontLine& front, int length);
    /// The text of a budget at a share of the slider.
    QString textAt(double share) const;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QString restText() const;
    void sliderMoved(int position);
    void refresh();
    bool countsStates() const;
    double value() const;
    double low() const;
    double high() const;

    QuietSlider* m_slider;
    QLabel* m_range;
    FrontLine m_front;
    int m_length = 0;
    QString m_text; ///< the parameter's
};

/// The text of a budget of so much memory: whole, and parsing back to the same.
QString budgetText(double memory);

} // namespace memscape
