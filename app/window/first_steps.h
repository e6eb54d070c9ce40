// SPDX-License-Identifier: GPL-3.0-or-later
// The first minute: a row above the page that suggests three things to do (drag the marker, measure its
// point, ask whether a model fits) and offers the example study. A step goes once it is done, by this
// row or otherwise; the row goes with the last one, or when it is closed, and does not come back.
#pragma once

#include "app/settings/settings.h"

#include <QFrame>

#include <map>

class QToolButton;

namespace memscape {

enum class FirstStep { Drag, Measure, Model, Example };

class FirstSteps : public QFrame
{
    Q_OBJECT

public:
    FirstSteps(Settings& settings, QWidget* parent = nullptr);

    /// Removes a step that is done, also when the user took it without this row.
    void finish(FirstStep step);
    /// Steps that still stand.
    QStringList texts() const;
    /// None: a window that is low is not made higher by suggestions.
    QSize minimumSizeHint() const override { return {0, 0}; }
    QSize sizeHint() const override { return m_row->sizeHint(); }

signals:
    void wanted(memscape::FirstStep step);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void add(FirstStep step, const QString& text, const QString& tip);
    void refresh();

    Settings& m_settings;
    QWidget* m_row;
    std::map<FirstStep, QToolButton*> m_chips;
};

} // namespace memscape
