// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a lab in a row: done, shown, open, not open yet. Each is a button with a name for screen readers.
#pragma once

#include "core/lab/lab_attempt.h"

#include <QAbstractButton>
#include <QWidget>

#include <vector>

namespace memscape {

enum class StepState { Done, Locked, Open, Closed };
StepState stepState(const LabAttempt& attempt, const std::string& step);
/// "done", "locked", "open", "not open yet".
QString stepStateText(StepState state);

class StepCircle : public QAbstractButton
{
    Q_OBJECT

public:
    StepCircle(int number, QWidget* parent);
    void set(StepState state, bool isShown, const QString& title);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    int m_number;
    StepState m_state = StepState::Closed;
    bool m_isShown = false;
};

class StepCircles : public QWidget
{
    Q_OBJECT

public:
    explicit StepCircles(QWidget* parent = nullptr);

    void display(const LabAttempt& attempt, const std::string& shown);
    const std::vector<StepCircle*>& circles() const { return m_circles; }

signals:
    void wanted(const QString& step);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<StepCircle*> m_circles;
    std::vector<std::string> m_ids;
};

} // namespace memscape
