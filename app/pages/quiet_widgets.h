// SPDX-License-Identifier: GPL-3.0-or-later
// Sliders and lists that leave the mouse wheel to the panel they stand in until they have the focus:
// scrolling past a form must not change it.
#pragma once

#include <QComboBox>
#include <QSlider>
#include <QWheelEvent>

namespace memscape {

class QuietSlider : public QSlider
{
public:
    using QSlider::QSlider;

protected:
    void wheelEvent(QWheelEvent* event) override
    {
        if (hasFocus())
            QSlider::wheelEvent(event);
        else
            event->ignore();
    }
};

class QuietComboBox : public QComboBox
{
public:
    using QComboBox::QComboBox;

protected:
    void wheelEvent(QWheelEvent* event) override
    {
        if (hasFocus())
            QComboBox::wheelEvent(event);
        else
            event->ignore();
    }
};

} // namespace memscape
