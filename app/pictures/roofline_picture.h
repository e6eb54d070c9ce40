// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `roofline`: sloping roofs of the memory levels, flat ones of the number formats, and
// every kernel as a point under its own: predicted as a ring, measured as a dot. A click opens the
// kernel's experiment at its parameters; the intensity in question is a line that can be dragged.
#pragma once

#include "app/pictures/picture.h"

#include <QPointF>
#include <QRectF>

#include <vector>

namespace memscape {

struct RooflineMark
{
    QString id, label, experiment, format, level, bound;
    ParameterChanges changes; ///< what its experiment is opened with
    double intensity = 0, rate = 0, roof = 0;
    bool isMeasured = false;
};

class RooflinePicture final : public Picture
{
    Q_OBJECT

public:
    explicit RooflinePicture(QWidget* parent = nullptr);

    void setState(const Experiment& experiment, const Device& device, const Parameters& parameters,
                  const Prediction* predicted, const Measurement* measured) override;
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString title() const override;
    QString summary() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    const std::vector<RooflineMark>& marks() const { return m_marks; }
    /// Where a mark is drawn in a picture of this size.
    QPointF placeOf(const RooflineMark& mark, const QRectF& rect) const;

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Roof
    {
        QString label;
        double value = 0; ///< B/s of a level, FLOP/s of a format
        bool isChosen = false;
    };
    struct Scales
    {
        QRectF area;
        double left = -8, right = 14, bottom = 20, top = 50; ///< log2
        double x(double intensity) const;
        double y(double rate) const;
        double intensityAt(double x) const;
    };
    Scales scalesFor(const QRectF& rect) const;
    const RooflineMark* markAt(const QPointF& at) const;
    static QString rateText(double rate, Unit unit);
    QString roofText(const Roof& format, double dram) const;
    QRectF roofLabel(const Scales& scales, const Roof& format, double dram) const;
    void paintAxes(QPainter& painter, const Scales& scales, const Theme& theme) const;
    void paintRoofs(QPainter& painter, const Scales& scales, const Theme& theme) const;
    void paintMarks(QPainter& painter, const Scales& scales, const Theme& theme) const;
    void openMark(const RooflineMark& mark);

    QString m_device;
    double m_intensity = 1;
    std::vector<Roof> m_levels, m_formats;
    std::vector<RooflineMark> m_marks;
    QString m_hovered; ///< id of a mark
    bool m_isDragging = false;
    int m_focused = -1; ///< mark under the keyboard
};

} // namespace memscape
