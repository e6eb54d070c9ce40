// SPDX-License-Identifier: Apache-2.0
#include "core/timing/gemm_time.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Tile
{
    int rows, columns;
    double quality;
};
constexpr std::array<Tile, 2> tilesTried{{{128, 256, 1}, {128, 128, 0.8}}};

double tilesAlong(double length, int tile)
{
    return std::ceil(length / tile);
}

/// Of the product that `reached` is of: what its last wave wasted is not the multiprocessors' rate.
double referenceQuantization(int units)
{
    const double tiles = tilesAlong(8192, tilesTried[0].rows) * tilesAlong(8192, tilesTried[0].columns);
    return tiles / (std::ceil(tiles / units) * units);
}

/// Arithmetic of one choice of tiles, into `time` when it is the best so far.
void tryTile(GemmTime& time, const GemmShape& shape, const Tile& tile, int units)
{
    const double tiles = tilesAlong(double(shape.m), tile.rows) * tilesAlong(double(shape.n), tile.columns);
    const double waves = std::ceil(tiles / units);
    const double done = waves * units * 2.0 * tile.rows * tile.columns * double(shape.k);
    const double rate = time.rate.reached.value / referenceQuantization(units) * tile.quality;
    const double seconds = done / rate;
    if (time.tileRows > 0 && seconds >= time.arithmetic)
        return;
    time.tileRows = tile.rows;
    time.tileColumns = tile.columns;
    time.tiles = tiles;
    time.waves = waves;
    time.quantization = time.flops / done;
    time.arithmetic = seconds;
}

} // namespace

double tiledShare(int units, double m, double n, double count)
{
    units = std::max(1, units);
    double best = 0;
    for (const Tile& tile : tilesTried) {
        const double tiles = tilesAlong(m, tile.rows) * tilesAlong(n, tile.columns) * count;
        const double done = std::ceil(tiles / units) * units * tile.rows * tile.columns;
        best = std::max(best, tile.quality * m * n * count / done / referenceQuantization(units));
    }
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
        time.overhead = device.launch.valueOr(0) + productFillSeconds;
    }
    const double busy = std::max(time.arithmetic, time.memory);
    time.seconds = busy + time.overhead;
    time.bound = time.overhead > busy   ? GemmBound::Overhead
        : time.memory > time.arithmetic ? GemmBound::Memory
                                        : GemmBound::Arithmetic;
    return time;
}

} // namespace memscape
