// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/allocator_extension.h"

#include <QSplitter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr auto requestMarker = "request";
constexpr auto emptyMarker = "empty_cache"; ///< the parameter: dragged, it is edited, and can be undone

} // namespace

AllocatorExtension::AllocatorExtension(const PageParts& parts, QObject* parent)
    : PageExtension(parts, parent)
    , m_picture(qobject_cast<AllocatorPicture*>(parts.picture))
{
    connect(m_picture, &AllocatorPicture::cursorMoved, this, &AllocatorExtension::markersChanged);
    if (auto* centre = qobject_cast<QSplitter*>(m_picture->parentWidget()))
        centre->setStretchFactor(0, 1);
}

std::vector<SeriesGroup> AllocatorExtension::groups(std::vector<SeriesGroup> own, bool isSwept) const
{
    if (!isSwept)
        std::erase_if(own, [](const SeriesGroup& group) { return group.key != QStringLiteral("reserved"); });
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
    if (count > 0) // at the left end it is not called
        markers.push_back({QString::fromLatin1(emptyMarker),
                           m_emptyCache > 0 ? std::min(m_emptyCache, double(count)) : 0,
                           m_emptyCache > 0 ? tr("empty_cache()") : tr("empty_cache() ›"), true});
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
    return QString::number(std::clamp(int(std::lround(request)), 0, std::max(0, count)));
}

} // namespace memscape
