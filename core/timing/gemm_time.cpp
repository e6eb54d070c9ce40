// SPDX-License-Identifier: Apache-2.0
#include "core/timing/gemm_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Tile
{
    int rows, columns;
    double quality;
};
constexpr std::array<Tile, 4> tilesTried{{{128, 256, 1}, {128, 128, 0.8}, {64, 256, 0.67}, {256, 64, 0.67}}};

double tilesAlong(double length, int tile)
{
    return std::ceil(length / tile);
}

constexpr double referenceSize = 8192; ///< of the product that `reached` is of

/// Tiles that follow each other on a multiprocessor.
struct Waves
{
    double tiles = 0, waves = 0;
    double seconds = 0;
};

Waves wavesOf(const Tile& tile, int units, double rate, double m, double n, double k, double count)
{
    Waves all;
    all.tiles = tilesAlong(m, tile.rows) * tilesAlong(n, tile.columns) * count;
    all.waves = std::ceil(all.tiles / units);
    all.seconds = all.waves * (2.0 * tile.rows * tile.columns * k / (rate * tile.quality) + waveFillSeconds);
    return all;
}

/// FLOP/s of one multiprocessor within a tile: what the last wave wastes and what waves fill is not its rate.
double unitRate(int units, double reached)
{
    const Tile& tile = tilesTried[0];
    const double waves =
        std::ceil(tilesAlong(referenceSize, tile.rows) * tilesAlong(referenceSize, tile.columns) / units);
    const double wave = 2 * referenceSize * referenceSize * referenceSize / reached / waves;
    const double fill = std::min(waveFillSeconds, wave / 2); // of a device that no wave of 8192³ keeps busy so long
    return 2.0 * tile.rows * tile.columns * referenceSize / (wave - fill);
}

/// Arithmetic of one choice of tiles, into `time` when it is the best so far.
void tryTile(GemmTime& time, const GemmShape& shape, const Tile& tile, int units)
{
    const Waves all = wavesOf(tile, units, unitRate(units, time.rate.reached.value), double(shape.m), double(shape.n),
                              double(shape.k), 1);
    if (time.tileRows > 0 && all.seconds >= time.arithmetic)
        return;
    time.tileRows = tile.rows;
    time.tileColumns = tile.columns;
    time.tiles = all.tiles;
    time.waves = all.waves;
    time.quantization = time.flops / (all.waves * units * 2.0 * tile.rows * tile.columns * double(shape.k));
    time.arithmetic = all.seconds;
}

} // namespace

double tiledSeconds(int units, double reached, double m, double n, double k, double count)
{
    units = std::max(1, units);
    const double rate = unitRate(units, reached);
    double best = std::numeric_limits<double>::infinity();
    for (const Tile& tile : tilesTried)
        best = std::min(best, wavesOf(tile, units, rate, m, n, k, count).seconds);
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
    if (device.isGpu()) {
        for (const Tile& tile : tilesTried)
            tryTile(time, shape, tile, std::max(1, device.units));
        time.overhead = device.launch.valueOr(0);
    }
    const double busy = std::max(time.arithmetic, time.memory);
    time.seconds = busy + time.overhead;
    const double multiplying = time.arithmetic - time.waves * waveFillSeconds; // the rest of a wave waits for memory
    const double once = time.overhead + (time.waves > 0 ? waveFillSeconds : 0);
    time.bound = once > std::max(multiplying, time.memory) ? GemmBound::Overhead
        : time.memory > multiplying                        ? GemmBound::Memory
                                                           : GemmBound::Arithmetic;
    return time;
}

} // namespace memscape
