// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `precision`: the bits that each number format stores of one value, which can be
// dragged along its line or changed bit by bit; under them the gradients over the range of the chosen
// format, moved by the loss scale, with what is lost on either side. Bits and shares are core's: the
// picture asks core/precision and draws.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/precision/precision_layout.h"
#include "core/experiments/precision/precision.h"

#include <optional>

namespace memscape {

class PrecisionPicture final : public Picture
{
    Q_OBJECT

public:
    explicit PrecisionPicture(QWidget* parent = nullptr);

    QString title() const override;
    QString summary() const override;

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    enum class Handle { Value, Scale };

    void paintLegend(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const;
    void paintLine(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const;
    void paintRow(QPainter& painter, const FormatRow& row, const Theme& theme, double unit) const;
    void paintRange(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const;
    void paintBars(QPainter& painter, const PrecisionLayout& layout, const Theme& theme,
                   const MagnitudeHistogram& histogram, bool isMeasured) const;
    void paintCaption(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const;
    void paintAxis(QPainter& painter, const PrecisionLayout& layout, const Theme& theme) const;
    /// What the bars show: measured gradients where there are some.
    const MagnitudeHistogram& shown() const { return m_measured ? *m_measured : m_assumed; }
    LostShares lost() const;
    QString lostText() const;
    void drag(const QPointF& at, const PrecisionLayout& layout);
    void setValue(double value);
    void setScale(double scale);

    PrecisionCase m_asked;
    MagnitudeHistogram m_assumed;
    std::optional<MagnitudeHistogram> m_measured;
    Handle m_handle = Handle::Value; ///< that is held
    double m_grip = 0;               ///< log2 of the scale less that of the pointer, while it is dragged
};

} // namespace memscape
