// SPDX-License-Identifier: GPL-3.0-or-later
// Sliders and lists that leave the mouse wheel to the panel they stand in: scrolling past a form must not change it,
// not even the field that was set last and has the focus.
#pragma once

#include "app/pages/fields/accessible_fields.h"

#include <QComboBox>
#include <QPainter>
#include <QSlider>
#include <QWheelEvent>

#include <functional>

namespace memscape {

class QuietSlider : public QSlider
{
public:
    explicit QuietSlider(Qt::Orientation orientation, QWidget* parent = nullptr)
        : QSlider(orientation, parent)
    {
        installAccessibleFields();
    }

    std::function<double(int)> valueAt; ///< the value of a position, in the quantity's unit

protected:
    void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

/// It also draws its own chevron: under a style sheet Fusion's arrow is gone.
class QuietComboBox : public QComboBox
{
public:
    explicit QuietComboBox(QWidget* parent = nullptr)
        : QComboBox(parent)
    {
        installAccessibleFields();
    }

protected:
    void paintEvent(QPaintEvent* event) override
    {
        QComboBox::paintEvent(event);
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(palette().color(isEnabled() ? QPalette::Active : QPalette::Disabled, QPalette::Text), 1.5));
        const QPointF tip(width() - 14.0, height() / 2.0 + 2);
        painter.drawPolyline(QPolygonF({tip + QPointF(-4, -4), tip, tip + QPointF(4, -4)}));
    }

    void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

} // namespace memscape
