// SPDX-License-Identifier: GPL-3.0-or-later
// The run that a worker is busy with. Private to this room.
#pragma once

#include "app/workers/worker_client.h"

#include <map>
#include <set>

namespace memscape {

struct WorkerClient::ActiveRun
{
    qint64 id = 0;
    RunRequest request;
    QElapsedTimer clock;
    bool cancelled = false;
    std::vector<Point> points; ///< in the order of their first arrival
    std::map<std::pair<double, std::string>, std::size_t> places;
    std::set<std::size_t> fresh; ///< points that were not announced yet
    std::optional<protocol::Progress> freshProgress;

    /// A new point, or the same with more samples in it.
    void take(Point point)
    {
        const auto [place, isNew] = places.try_emplace({point.x, point.name}, points.size());
        if (isNew && points.size() >= sweepLimit) { // more than any sweep has: a flood
            places.erase(place);
            return;
        }
        if (isNew)
            points.push_back(std::move(point));
        else
            points[place->second] = std::move(point);
        fresh.insert(place->second);
    }
};

} // namespace memscape
