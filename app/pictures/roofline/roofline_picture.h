// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `roofline`: sloping roofs of the memory levels, flat ones of the number formats, and
// every kernel as a point under its own: predicted as a ring, measured as a dot. A click opens the
// kernel's experiment at its parameters; the intensity in question is a line that can be dragged.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/roofline/roofline_layout.h"

namespace memscape {

class RooflinePicture final : public Picture
{
    Q_OBJECT

public:
    explicit RooflinePicture(QWidget* parent = nullptr);

    QString title() const override;
    QString summary() const override;
    bool isPlot() const override { return true; }
    QString hint() const override;
    bool sharesHeight() const override { return true; } // it is the plot of this page, and more

    const std::vector<RooflineMark>& marks() const { return m_state.marks; }
    const RooflineState& state() const { return m_state; }
    /// Where a mark is drawn in a picture of this size.
    QPointF placeOf(const RooflineMark& mark, const QRectF& rect) const;

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    const RooflineMark* markAt(const QPointF& at) const;
    static QString rateText(double rate, Unit unit);
    QColor levelColour(std::size_t index, const Theme& theme) const;
    void paintAxes(QPainter& painter, const RooflineScales& scales, const Theme& theme) const;
    void paintRoofs(QPainter& painter, const RooflineScales& scales, const Theme& theme) const;
    void paintTexts(QPainter& painter, const RooflineScales& scales, const Theme& theme) const;
    void paintMarks(QPainter& painter, const RooflineScales& scales, const Theme& theme) const;
    void openMark(const RooflineMark& mark);

    RooflineState m_state;
    QString m_hovered;  ///< id of a mark
    int m_focused = -1; ///< mark under the keyboard
};

} // namespace memscape
