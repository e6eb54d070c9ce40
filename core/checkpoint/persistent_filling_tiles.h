// SPDX-License-Identifier: Apache-2.0
// One tile of segments in one block of memory. Everything is inlined into the functions of
// persistent_fill.cpp that are compiled for one instruction set each.
#pragma once

#include "core/checkpoint/persistent_filling.h"

#include <algorithm>

namespace memscape::persistent {

/// e(segment, from …) of a block's lanes, zero above the window: in the table, or, at its edges,
/// put into `edge`.
template <typename Cost> const Cost* Filling<Cost>::read(const Segment& segment, std::int32_t from, Cost* edge) const
{
    if (from >= segment.first && from + laneCount <= segment.last)
        return cellsOf(segment, from);
    for (int lane = 0; lane < laneCount; ++lane) {
        const std::int32_t m = from + lane;
        edge[lane] = m >= segment.last ? Cost(0) : m >= segment.first ? *cellsOf(segment, m) : infeasible<Cost>;
    }
    return edge;
}

template <typename Cost> Place<Cost> Filling<Cost>::placeOf(int i, int j)
{
    Place<Cost> place;
    place.s = i * tileSize;
    place.t = j * tileSize;
    place.rows = std::min(tileSize, m_stageCount - place.s);
    place.columns = std::min(tileSize, m_stageCount - place.t);
    for (int k = 0; k < tileSize; ++k) {
        place.left[k] = m_left + leftOf(place.s + k, 0);
        place.below[k] = m_below + belowOf(0, place.t + k);
    }
    for (int k = 0; k <= tileSize; ++k)
        place.segments[k] = m_segment.data() + m_segments.rowStart(std::min(place.s + k, m_stageCount - 1));
    return place;
}

/// What the block below ends with holds for every lane. Answers the most of all.
template <typename Cost> Cost Filling<Cost>::begin(const Place<Cost>& place, std::int32_t block, Cost* least)
{
    Cost most = 0;
    for (int r = 0; r < tileSize; ++r) {
        for (int c = 0; c < tileSize; ++c) {
            const int s = place.s + r, t = place.t + c;
            Cost before = infeasible<Cost>;
            if (s <= t && c < place.columns) {
                const Segment& segment = place.segments[r][t];
                const Cost* cells = cellsOf(segment, std::clamp(block, segment.first, segment.last));
                __builtin_prefetch(cells, 1);
                __builtin_prefetch(cells + laneCount - 1, 1);
                before = place.left[r][t * laneCount + laneCount - 1];
                before = before < costLimit<Cost> ? Cost(before + m_passed[s]) : infeasible<Cost>;
                most = std::max(most, before);
            }
            std::fill_n(least + (r * tileSize + c) * laneCount, laneCount, before);
        }
    }
    return most;
}

/// The j of a segment that its tile doesn't share.
template <typename Cost>
template <int Width>
void Filling<Cost>::combineEdges(const Place<Cost>& place, int r, int c, Cost* least)
{
    const int s = place.s + r, t = place.t + c;
    const int rowEnd = place.s + tileSize;
    if (place.s == place.t) {
        combineOne<Cost, Width>(least, place.left[r], place.below[c], s + 1, t + 1);
        return;
    }
    combineOne<Cost, Width>(least, place.left[r], place.below[c], s + 1, rowEnd);
    combineOne<Cost, Width>(least, place.left[r], place.below[c], place.t + 1, t + 1);
}

/// Every j of a segment, as far as the block's memory lets it pass that many stages.
template <typename Cost>
void Filling<Cost>::combineGuarded(const Place<Cost>& place, int r, int c, std::int32_t block, Cost* least)
{
    const int s = place.s + r, t = place.t + c;
    std::int64_t passing = 0;
    for (int j = s + 1; j <= t; ++j) {
        passing = std::max(passing, std::int64_t(m_passing[j - 1]) + (j - 1 == s ? 0 : m_values[j - 1]));
        const std::int64_t enough = passing + m_values[t + 1] - block;
        if (enough >= laneCount)
            return;
        const Cost* left = place.left[r] + (j - 1) * laneCount;
        const Cost* below = place.below[c] + j * laneCount;
        for (std::int64_t lane = std::max<std::int64_t>(0, enough); lane < laneCount; ++lane)
            least[lane] = std::min(least[lane], Cost(left[lane] + below[lane]));
    }
}

template <typename Cost>
template <int Width>
void Filling<Cost>::save(const Place<Cost>& place, int r, int c, std::int32_t block, const Recent<Cost>& next,
                         Cost* least)
{
    const int s = place.s + r, t = place.t + c;
    alignas(64) Cost edge[laneCount] = {};
    for (std::int32_t k = m_waysOf[s]; k < m_waysOf[s + 1]; ++k) {
        const Way<Cost>& way = m_ways[k];
        const std::int32_t enough = std::max(way.backward, way.forward + m_values[t + 1]) - block;
        if (enough >= laneCount)
            continue;
        const Cost* after = edge;
        if (s < t && next.row == s + 1 && way.saved <= laneCount)
            readBack<Cost, Width>(edge, next.lanes, way.saved);
        else if (s < t)
            after = read(place.segments[r + 1][t], block - way.saved, edge);
        const Cost beyond = way.beyond + m_passed[s];
        if (enough <= 0) {
            leastOf<Cost, Width>(least, after, beyond);
        } else {
            for (std::int32_t lane = enough; lane < laneCount; ++lane)
                least[lane] = std::min(least[lane], Cost(after[lane] + beyond));
        }
    }
}

template <typename Cost>
template <int Width>
void Filling<Cost>::finish(const Place<Cost>& place, int r, int c, std::int32_t block, Recent<Cost>& recent,
                           const Cost* least)
{
    const int s = place.s + r, t = place.t + c;
    const Segment& segment = place.segments[r][t];
    const Cost passed = m_passed[s];
    Cost* extra = place.left[r] + t * laneCount;
    copy<Cost, Width>(recent.lanes, extra);
    shift<Cost, Width>(recent.lanes + laneCount, least, -passed);
    copy<Cost, Width>(extra, recent.lanes + laneCount);
    if (block >= segment.first && block + laneCount <= segment.last) {
        copy<Cost, Width>(cellsOf(segment, block), recent.lanes + laneCount);
    } else {
        for (std::int32_t lane = std::max(0, segment.first - block); lane < std::min(laneCount, segment.last - block);
             ++lane)
            *cellsOf(segment, block + lane) = extra[lane];
    }
    recent.row = s;

    alignas(64) Cost edge[laneCount];
    const Cost* before = edge;
    if (m_values[s] <= laneCount)
        readBack<Cost, Width>(edge, recent.lanes, m_values[s]);
    else
        before = read(segment, block - m_values[s], edge);
    shift<Cost, Width>(place.below[c] + s * laneCount, before, passed);
}

/// What finish() made of the same segment further on.
template <typename Cost> void Filling<Cost>::copyLanes(const Place<Cost>& place, int r, int c, Cost* least) const
{
    const Cost* const extra = m_left + leftOf(place.s + r + groupStages, place.t + c + groupStages);
    const Cost passed = m_passed[place.s + r];
    for (int lane = 0; lane < laneCount; ++lane)
        least[lane] = extra[lane] < costLimit<Cost> ? Cost(extra[lane] + passed) : infeasible<Cost>;
}

template <typename Cost>
template <int Width, int Columns>
void Filling<Cost>::fillTile(int i, int j, std::int32_t block, Recent<Cost>* recent)
{
    Tile& known = tile(i, j);
    if (block + laneCount <= known.first || block - laneCount >= known.settled)
        return;
    const Place<Cost> place = placeOf(i, j);
    alignas(64) Cost least[tileSize * tileSize * laneCount];
    if (known.isCopied) {
        for (int r = place.rows - 1; r >= 0; --r) {
            for (int c = i == j ? r : 0; c < place.columns; ++c) {
                copyLanes(place, r, c, least);
                finish<Width>(place, r, c, block, recent[c], least);
            }
        }
        return;
    }
    const Cost most = begin(place, block, least);
    while (known.furthest > place.s && m_passed[known.furthest] >= most)
        --known.furthest;
    const bool isFree = block >= known.free;
    if (isFree && i < j) {
        const int end = std::min(place.t, known.furthest) + 1;
        for (int c = 0; c < tileSize; c += Columns)
            combine<Cost, Width, Columns>(least + c * laneCount, place.left, place.below + c, place.s + tileSize, end);
    }
    for (int r = place.rows - 1; r >= 0; --r) {
        for (int c = i == j ? r : 0; c < place.columns; ++c) {
            Cost* lanes = least + (r * tileSize + c) * laneCount;
            if (isFree)
                combineEdges<Width>(place, r, c, lanes);
            else
                combineGuarded(place, r, c, block, lanes);
            save<Width>(place, r, c, block, recent[c], lanes);
            finish<Width>(place, r, c, block, recent[c], lanes);
        }
    }
}

template <typename Cost> template <int Width, int Columns> void Filling<Cost>::fillGroup(int group, std::int32_t block)
{
    const int begin = group * tileSize, end = std::min(begin + tileSize, m_tileCount);
    for (int j = begin; j < m_tileCount; ++j) {
        Recent<Cost> recent[tileSize];
        for (int i = std::min(j, end - 1); i >= begin; --i)
            fillTile<Width, Columns>(i, j, block, recent);
    }
}

} // namespace memscape::persistent
