// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/allocator_extension.h"

#include "app/plots/part_colours.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr auto bytesGroup = "reserved"; ///< of the curves over the requests
constexpr auto requestMarker = "request";
constexpr auto emptyMarker = "empty_cache"; ///< the parameter: dragged, it is edited, and can be undone

} // namespace

AllocatorExtension::AllocatorExtension(const PageParts& parts, QObject* parent)
    : PageExtension(parts, parent)
    , m_picture(qobject_cast<AllocatorPicture*>(parts.picture))
{
    connect(m_picture, &AllocatorPicture::cursorMoved, this, &AllocatorExtension::markersChanged);
}

bool AllocatorExtension::draws(const QString& group) const
{
    return group == QLatin1String(bytesGroup);
}

void AllocatorExtension::dressAxes(AxisSpec&, AxisSpec& y) const
{
    y.log = 0;
    y.fromZero = true;
    y.label = tr("bytes");
}

void AllocatorExtension::dressCurves(std::vector<Curve>& curves, const CurveInput&) const
{
    for (Curve& curve : curves) {
        if (curve.key != QStringLiteral("predicted.allocated"))
            continue;
        curve.role = CurveRole::Area;
        curve.palette = partIndex("activations");
        curve.labelled = false;
    }
}

void AllocatorExtension::dressPlot(PlotView& view) const
{
    view.setTitle(tr("Allocated and reserved over the requests"));
}

std::vector<SeriesGroup> AllocatorExtension::groups(std::vector<SeriesGroup> own, bool isSwept) const
{
    if (!isSwept)
        std::erase_if(own, [](const SeriesGroup& group) { return group.key != QLatin1String(bytesGroup); });
    return own;
}

std::optional<std::vector<Marker>> AllocatorExtension::markers(const QString&, const SeriesAxis* axis) const
{
    if (axis == nullptr || axis->key != "request")
        return std::nullopt;
    std::vector<Marker> markers;
    const int count = m_picture->state().last + 1;
    if (const int cursor = m_picture->cursor(); cursor >= 0)
        markers.push_back(
            {QString::fromLatin1(requestMarker), double(cursor + 1), tr("request %1").arg(cursor + 1), true});
    if (count > 0) // before the first request it gives nothing back: there it stands for never
        markers.push_back({QString::fromLatin1(emptyMarker), std::clamp(m_emptyCache, 1.0, double(count)),
                           m_emptyCache > 1 ? tr("empty_cache()") : tr("empty_cache() ›"), true});
    return markers;
}

bool AllocatorExtension::moveMarker(const QString& key, double request)
{
    if (key != QLatin1String(requestMarker))
        return false;
    m_picture->setCursor(int(std::lround(request)) - 1);
    return true;
}

QString AllocatorExtension::markerText(const QString& key, double request) const
{
    if (key != QLatin1String(emptyMarker))
        return {};
    const int count = m_picture->state().count();
    const int at = std::clamp(int(std::lround(request)), 1, std::max(1, count));
    return QString::number(at == 1 ? 0 : at);
}

} // namespace memscape
