// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/stride/stride_layout.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr std::uint64_t shownSkips = 3; // untouched sectors in a row that are drawn one by one
constexpr std::size_t mostLaneCells = 72;
constexpr double gapWeight = 0.55; // widths in cells
constexpr double lineWeight = 0.10;
constexpr double widestCell = 0.25; // of the area

std::vector<StrideCell> cellsOf(const WarpAccess& access, bool skipsShown)
{
    std::vector<StrideCell> cells;
    const std::uint64_t size = access.sizes.sector;
    for (std::size_t s = 0; s < access.sectors.size(); ++s) {
        const std::uint64_t address = access.sectors[s].address;
        if (s > 0) {
            const std::uint64_t end = access.sectors[s - 1].address + size;
            const std::uint64_t skipped = (address - end) / size;
            if (skipped > 0 && skipped <= shownSkips && skipsShown) {
                for (std::uint64_t k = 0; k < skipped; ++k)
                    cells.push_back({StrideCell::Kind::Skipped, {}, end + k * size, size, 0, false});
            } else if (skipped > 0) {
                cells.push_back({StrideCell::Kind::Gap, {}, end, address - end, 0, false});
            }
        }
        cells.push_back({StrideCell::Kind::Touched, {}, address, size, s, false});
    }
    std::uint64_t line = ~std::uint64_t{0};
    for (StrideCell& cell : cells) {
        cell.beginsLine = cell.kind != StrideCell::Kind::Gap && cell.address / access.sizes.line != line;
        if (cell.kind != StrideCell::Kind::Gap)
            line = cell.address / access.sizes.line;
    }
    return cells;
}

void placeCells(std::vector<StrideCell>& cells, const QRectF& area)
{
    double weight = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        weight += cells[i].kind == StrideCell::Kind::Gap ? gapWeight : 1.0;
        weight += i > 0 && cells[i].beginsLine ? lineWeight : 0;
    }
    const double unit = std::min(area.width() / std::max(weight, 1.0), area.width() * widestCell);
    double x = area.left() + (area.width() - unit * weight) / 2;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        x += i > 0 && cells[i].beginsLine ? unit * lineWeight : 0;
        const double width = unit * (cells[i].kind == StrideCell::Kind::Gap ? gapWeight : 1.0);
        cells[i].rect = QRectF(x, area.top(), width, area.height());
        x += width;
    }
}

} // namespace

StrideStrip layoutStrip(const WarpAccess& access, const QRectF& area)
{
    StrideStrip strip;
    strip.cells = cellsOf(access, true);
    if (strip.cells.size() > mostLaneCells)
        strip.cells = cellsOf(access, false);
    placeCells(strip.cells, area);

    std::vector<const StrideCell*> bySector(access.sectors.size(), nullptr);
    bool first = true;
    for (const StrideCell& cell : strip.cells) {
        if (cell.kind == StrideCell::Kind::Touched)
            bySector[cell.sector] = &cell;
        if (cell.kind == StrideCell::Kind::Gap) {
            strip.commonGap = first || strip.commonGap == cell.bytes ? cell.bytes : 0;
            first = false;
        }
    }
    for (const LaneAccess& lane : access.lanes) {
        const StrideCell* cell = bySector[lane.firstSector];
        // An element may reach into the next sector; its line points at what lies in the first.
        const double begin = static_cast<double>(lane.address - cell->address);
        const double end =
            std::min(begin + static_cast<double>(access.width), static_cast<double>(access.sizes.sector));
        const double share = (begin + end) / 2 / static_cast<double>(access.sizes.sector);
        strip.targets.push_back(cell->rect.left() + share * cell->rect.width());
    }
    return strip;
}

LaneRow layoutLanes(std::size_t lanes, const QRectF& area)
{
    LaneRow row;
    const double pitch = area.width() / static_cast<double>(std::max<std::size_t>(lanes, 1));
    row.radius = std::min(pitch * 0.44, area.height() / 2);
    for (std::size_t i = 0; i < lanes; ++i)
        row.centres.emplace_back(area.left() + pitch * (static_cast<double>(i) + 0.5), area.center().y());
    return row;
}

} // namespace memscape
