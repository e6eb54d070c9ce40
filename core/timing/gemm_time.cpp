// SPDX-License-Identifier: Apache-2.0
#include "core/timing/gemm_time.h"

#include "core/base/number.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Tile
{
    int rows, columns;
    bool ofLanesAlone = false;
};
constexpr std::array<Tile, 8> tilesTried{
    {{128, 256}, {128, 128}, {64, 256}, {256, 64}, {64, 128}, {128, 64}, {64, 64}, {32, 32, true}}};

/// Of a few rows, which are the narrow side of an instruction.
constexpr Tile thinTile{16, 256};

/// Of the rate that a tile of 128 × 256 reaches.
double quality(const Tile& tile, double reads)
{
    return 1 / (1 + reads * (256.0 / tile.rows + 256.0 / tile.columns - 3));
}

double tilesAlong(double length, int tile)
{
    return std::ceil(length / tile);
}

constexpr double referenceSize = 8192; ///< of the product that `reached` is of

/// Waves whose filling is seen.
double wavesSeen(const TileUnits& units, double waves)
{
    return units.shares ? std::min(waves, 1.0) : waves;
}

/// FLOP/s of one multiprocessor within a tile: what the last wave wastes and what waves fill is not its rate.
double unitRate(const TileUnits& all)
{
    const int units = std::max(1, all.units);
    const Tile& tile = tilesTried[0];
    const double waves =
        std::ceil(tilesAlong(referenceSize, tile.rows) * tilesAlong(referenceSize, tile.columns) / units);
    const double wave = 2 * referenceSize * referenceSize * referenceSize / all.reached / waves;
    const double seen = waveFillSeconds * wavesSeen(all, waves) / waves;
    const double fill = std::min(seen, wave / 2); // of a device that no wave of 8192³ keeps busy so long
    return 2.0 * tile.rows * tile.columns * referenceSize / (wave - fill);
}

} // namespace

double tileReads(const Device& device, double reached, double elementBytes)
{
    constexpr double ofH100 = 0.25, flopsPerRead = 756e12 * 2 / 9.7e12; // of FP16; both halves of its L2
    const MemoryLevel* cache = device.lastCache();
    const double bandwidth = cache ? cache->bandwidth.valueOr(0) : 0;
    return bandwidth > 0 ? ofH100 * reached * elementBytes / bandwidth / flopsPerRead : ofH100;
}

TileUnits tileUnits(const Device& device, Multipliers multipliers, double reached, double elementBytes)
{
    const double capability = parseNumber(device.computeCapability).value_or(0);
    return {multipliers, std::max(1, device.units), reached, tileReads(device, reached, elementBytes),
            multipliers == Multipliers::TensorCores && capability > 0 && capability < 9};
}

TiledTime tiledTime(const TileUnits& all, double m, double n, double k, double count)
{
    const int units = std::max(1, all.units);
    const double rate = unitRate(all);
    TiledTime best;
    const auto tryTile = [&](const Tile& tile) {
        TiledTime time{tile.rows, tile.columns, tilesAlong(m, tile.rows) * tilesAlong(n, tile.columns) * count};
        time.waves = std::ceil(time.tiles / units);
        const double slowdown = std::max(1 / all.spare, std::cbrt(time.tiles / (time.waves * units)));
        const double multiplying = slowdown * 2.0 * tile.rows * tile.columns * k / (rate * quality(tile, all.reads));
        time.filling = wavesSeen(all, time.waves) * waveFillSeconds;
        time.seconds = time.waves * multiplying + time.filling;
        if (best.tileRows == 0 || time.seconds < best.seconds)
            best = time;
    };
    for (const Tile& tile : tilesTried)
        if (!tile.ofLanesAlone || all.multipliers == Multipliers::Lanes)
            tryTile(tile);
    if (m <= thinTile.rows)
        tryTile(thinTile);
    return best;
}

int resultBytes(const NumberFormat& format)
{
    switch (format.format) {
    case Format::Int8: return 4;
    case Format::Fp8E4M3:
    case Format::Fp8E5M2: return 2;
    default: return format.bytes;
    }
}

double gemmBytes(const NumberFormat& format, const GemmShape& shape)
{
    const double m = double(shape.m), n = double(shape.n), k = double(shape.k);
    return format.bytes * (m * k + k * n) + resultBytes(format) * m * n;
}

std::string_view gemmBoundText(GemmBound bound)
{
    switch (bound) {
    case GemmBound::Arithmetic: return "compute-bound";
    case GemmBound::Memory: return "memory-bound";
    case GemmBound::Overhead: break;
    }
    return "overhead";
}

Result<GemmTime> gemmTime(const Device& device, Format format, const GemmShape& shape)
{
    GemmTime time;
    MEMSCAPE_TRY(rate, productRate(device, format));
    time.rate = std::move(rate);
    const MemoryLevel* dram = device.dram();
    time.bandwidth = dram ? levelBandwidth(device, *dram, Operation::Copy).valueOr(0) : 0;
    if (time.bandwidth <= 0)
        return fail("predict.device", fmt::format("the DRAM bandwidth of {} is not known", device.name),
                    "choose a device of the catalogue, or calibrate this one");
    time.flops = shape.flops();
    time.bytes = gemmBytes(numberFormat(format), shape);
    time.memory = time.bytes / time.bandwidth;
    time.arithmetic = time.flops / time.rate.reached.value;
    double filling = 0;
    if (device.isGpu()) {
        const auto multipliers =
            format == Format::Fp32 || format == Format::Fp64 ? Multipliers::Lanes : Multipliers::TensorCores;
        const double m = double(shape.m), n = double(shape.n), k = double(shape.k);
        const TileUnits tiles =
            tileUnits(device, multipliers, time.rate.reached.value, double(numberFormat(format).bytes));
        const TiledTime tiled = tiledTime(tiles, m, n, k);
        time.tileRows = tiled.tileRows;
        time.tileColumns = tiled.tileColumns;
        time.tiles = tiled.tiles;
        time.waves = tiled.waves;
        time.quantization = time.flops / (tiled.waves * tiles.units * 2.0 * tiled.tileRows * tiled.tileColumns * k);
        time.arithmetic = tiled.seconds;
        filling = tiled.filling;
        time.overhead = device.launch.valueOr(0);
    }
    const double busy = std::max(time.arithmetic, time.memory);
    time.seconds = busy + time.overhead;
    const double multiplying = time.arithmetic - filling; // the rest of a wave waits for memory
    const double once = time.overhead + (time.waves > 0 ? waveFillSeconds : 0);
    time.bound = once > std::max(multiplying, time.memory) ? GemmBound::Overhead
        : time.memory > multiplying                        ? GemmBound::Memory
                                                           : GemmBound::Arithmetic;
    return time;
}

} // namespace memscape
