// SPDX-License-Identifier: Apache-2.0
// How the pieces of a picture lie: apart from each other.
#pragma once

#include <QDebug>
#include <QRectF>

#include <vector>

namespace memscape::test {

/// No two of them share more than an edge; those that do are told.
inline bool areApart(const std::vector<QRectF>& rects)
{
    for (std::size_t i = 0; i < rects.size(); ++i) {
        for (std::size_t j = i + 1; j < rects.size(); ++j) {
            if (rects[i].adjusted(0.1, 0.1, -0.1, -0.1).intersects(rects[j].adjusted(0.1, 0.1, -0.1, -0.1))) {
                qWarning() << rects[i] << "meets" << rects[j];
                return false;
            }
        }
    }
    return true;
}

} // namespace memscape::test
