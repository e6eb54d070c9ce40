// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `stride`: 32 lanes of a warp (or 32 consecutive accesses of a core), the memory
// they touch, and how much of what is fetched is used. The counts are those of core/access: the
// picture draws one request, it does not compute a second opinion.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/stride/stride_layout.h"
#include "core/access/stride_case.h"

#include <optional>

class QFontMetricsF;

namespace memscape {

class StridePicture final : public Picture
{
    Q_OBJECT

public:
    explicit StridePicture(QWidget* parent = nullptr);

    QString title() const override;
    QString summary() const override;

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Layout;
    struct Hover
    {
        int lane = -1;
        int cell = -1; ///< of the strip that is read, or the only one
        bool operator==(const Hover&) const = default;
    };

    /// From a lane to its element in a strip above or below it.
    struct Connection
    {
        const StrideStrip* strip = nullptr;
        std::size_t lane = 0;
        bool above = false, writes = false;
    };

    Layout layoutFor(const QRectF& rect) const;
    Hover hoverAt(QPointF at) const;
    void paintHead(QPainter& painter, const Layout& layout, const Theme& theme) const;
    void paintStrip(QPainter& painter, const StrideStrip& strip, const Theme& theme, const QColor& colour,
                    const Hover& hover, bool labelled) const;
    void paintCell(QPainter& painter, const StrideCell& cell, const Theme& theme, const QColor& colour) const;
    QColor fieldColour(const StrideCell& cell, double begin, const Theme& theme) const;
    void paintConnection(QPainter& painter, const Layout& layout, const Theme& theme, const Connection& connection,
                         bool lit) const;
    void paintLanes(QPainter& painter, const Layout& layout, const Theme& theme, const Hover& hover) const;
    void paintFoot(QPainter& painter, const Layout& layout, const Theme& theme, bool onScreen) const;
    void paintChips(QPainter& painter, const Layout& layout, const Theme& theme) const;
    QString bytes(double value) const;
    QString wasteText(const Layout& layout, const QFontMetricsF& metrics, double room) const;
    void chooseOperation(int index);

    bool m_gpu = true;
    std::string m_deviceName;
    QString m_element;
    StrideCase m_walk;
    std::optional<WarpAccess> m_access;
    QString m_problem; ///< why there is nothing to draw
    Hover m_hover;
};

} // namespace memscape
