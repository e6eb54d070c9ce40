// SPDX-License-Identifier: GPL-3.0-or-later
// Fusion with indicators of our own. Fusion draws the frame of an unchecked box in a darker shade
// of the window's colour: on a dark window that is a black square on black. Ours are drawn in the
// theme's colours, with a contrast of at least 3:1 (WCAG 2.1, 1.4.11).
#pragma once

#include <QProxyStyle>

namespace memscape {

class IndicatorStyle : public QProxyStyle
{
public:
    IndicatorStyle();

    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget = nullptr) const override;
    int styleHint(StyleHint hint, const QStyleOption* option = nullptr, const QWidget* widget = nullptr,
                  QStyleHintReturn* returned = nullptr) const override;
};

} // namespace memscape
