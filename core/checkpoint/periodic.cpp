// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/periodic.h"

#include <cassert>
#include <cmath>

namespace memscape {

namespace {

/// Stages [first, last): the first keeps its input, the others drop theirs.
void pass(Schedule& schedule, int first, int last)
{
    for (int i = first; i < last; ++i)
        schedule.push_back({i == first ? OperationKind::ForwardKeep : OperationKind::ForwardDrop, i, 0});
}

void save(Schedule& schedule, int first, int last)
{
    for (int i = first; i < last; ++i)
        schedule.push_back({OperationKind::ForwardSave, i, 0});
}

void reverse(Schedule& schedule, int first, int last)
{
    for (int i = last - 1; i >= first; --i)
        schedule.push_back({OperationKind::Backward, i, 0});
}

/// Segments that begin at `starts` (ascending, the first is 0, all below length).
Schedule segmentSchedule(int length, const std::vector<int>& starts, LastSegment last)
{
    assert(!starts.empty() && starts.front() == 0 && starts.back() < length);
    Schedule schedule;
    const std::size_t count = starts.size();
    const auto end = [&](std::size_t segment) { return segment + 1 < count ? starts[segment + 1] : length; };
    const auto isKept = [&](std::size_t segment) { return segment + 1 == count && last == LastSegment::Kept; };
    for (std::size_t segment = 0; segment < count; ++segment)
        isKept(segment) ? save(schedule, starts[segment], end(segment)) : pass(schedule, starts[segment], end(segment));
    schedule.push_back({OperationKind::Loss, length, 0});
    for (std::size_t segment = count; segment-- > 0;) {
        if (!isKept(segment))
            save(schedule, starts[segment], end(segment));
        reverse(schedule, starts[segment], end(segment));
    }
    return schedule;
}

} // namespace

Schedule keepEverything(int length)
{
    return segmentSchedule(length, {0}, LastSegment::Kept);
}

Schedule everyStages(int length, int every, LastSegment last)
{
    assert(every >= 1);
    std::vector<int> starts;
    for (std::int64_t start = 0; start < length; start += every)
        starts.push_back(int(start));
    return segmentSchedule(length, starts, last);
}

Schedule squareRootSchedule(int length)
{
    const int count = std::max(1, int(std::lround(std::sqrt(double(length)))));
    std::vector<int> starts;
    for (int segment = 0; segment < count; ++segment)
        starts.push_back(segment * (length / count));
    return segmentSchedule(length, starts, LastSegment::Kept);
}

} // namespace memscape
