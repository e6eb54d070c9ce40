// SPDX-License-Identifier: GPL-3.0-or-later
// What the page of `allocator` has beyond other pages: on its plot the request that the picture shows, and
// empty_cache(), which can be dragged anywhere.
#pragma once

#include "app/pages/page_extension.h"
#include "app/pictures/allocator/allocator_picture.h"

namespace memscape {

class AllocatorExtension : public PageExtension
{
    Q_OBJECT

public:
    AllocatorExtension(const PageParts& parts, QObject* parent);

    bool drawsPredictedParameters() const override { return true; } // cards keep their choice until it is played
    bool dependsOnRates() const override { return false; }
    void setState(const ShownState& state) override { m_emptyCache = double(state.parameters.integer("empty_cache")); }
    /// Its plot has axes of its own: bytes from zero.
    bool draws(const QString& group) const override;
    void dressAxes(AxisSpec& x, AxisSpec& y) const override;
    /// What is allocated is an area below what is reserved.
    void dressCurves(std::vector<Curve>& curves, const CurveInput& input) const override;
    void dressPlot(PlotView& view) const override;
    /// Others than the bytes over the requests only where something was swept.
    std::vector<SeriesGroup> groups(std::vector<SeriesGroup> own, bool isSwept) const override;
    std::optional<std::vector<Marker>> markers(const QString& group, const SeriesAxis* axis) const override;
    bool moveMarker(const QString& key, double request) override;
    QString markerText(const QString& key, double request) const override;

private:
    AllocatorPicture* m_picture;
    double m_emptyCache = 0; ///< the request, from 1; 0: never
};

} // namespace memscape
