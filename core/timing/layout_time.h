// SPDX-License-Identifier: Apache-2.0
// How long it takes to read a tensor through a view, and to copy it so that it lies as it is read.
//
// Everything is in a steady state: the tensor was read before, and what of it stays in the caches is
// there. One core of a host, all multiprocessors of a GPU.
//
// Host, reading:   t = max(visits / issue rate, Σ lines served by a level / line rate of that level)
//   lines served   by the cache simulator on the walk itself (core/access/views/tensor_walk.h); where it
//                  plays only a part, a level that holds the whole tensor misses as little as its knee says
//   line rate      of streams when neighbours in the walk share a line or follow on. Farther neighbours come one
//                  by one: two clocks from L2 into L1, behind it at most lines in flight / latency (Little's
//                  law), from DRAM the calibrated curve over the distance between lines
//                  (core/timing/stride_time.h), which also bounds the last cache from a page's distance on
// Host, copying:   version 1 reads as above; tiles fetch each line of the storage once, those in registers four
//                  neighbours at a time, of which only the first is far. The target's lines
//                  are added: t = max(elements / rate of the version, reads + writes). Version 4 writes to memory
//                  whatever fits the caches.
// GPU, reading:    t = launch + max(DRAM, L2, L1)
//   DRAM           distinct sectors, or all sectors of all requests where what must wait for its second
//                  visit is more than L2 holds, over the read bandwidth
//   L2             sectors of all requests over its bandwidth
//   L1             one look-up per line and request, four a clock and multiprocessor
// GPU, copying:    version 1 moves the sectors of its strided side; tiles move each byte once each way at the
//                  rate of a copy. Version 2 is held by 32-way bank conflicts when its tile is not padded:
//                  a wavefront for each element and multiprocessor.
//
// A calibrated host says more (walk_rates.h): what a run of so many elements takes, its end included; what a line of
// each level holds up a column, by how few sets its rows share; tiles and streams by footprint. Then
//   reading        t = runs × seconds of a run + Σ lines × stall of their level    rows more than a line apart
//                  t = max(runs × seconds of a run, stream of that footprint)      else
//   copying rows   t = runs × end + max(elements × bulk, stream)
//   copying tiles  t = max(elements in tiles × seconds of one + runs at the edges × seconds of a run, stream)
//
// Left out: hashed cache sets, other work; uncalibrated, also page walks (huge pages are requested) and loops so
// short that their ends cost more than what is in them.
// Sources: the two clocks were measured with kernels/host/layout/layout_kernels.cpp on a Zen 5 EPYC (0.48 ns at
// 4.1 GHz, seven shapes) and are what AMD documents for Zen, 32 B a clock; the four look-ups per clock were fitted to
// gpu-benches' strides on GH200 (RRZE); Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA (2009), for the
// tiles.
#pragma once

#include "core/access/views/tensor_walk.h"
#include "core/device/device.h"

#include <string>
#include <vector>

namespace memscape {

struct LevelShare
{
    std::string level; ///< "L2", "DRAM"
    double bytes = 0;  ///< that it delivers in one pass
    double seconds = 0;
};

struct WalkTime
{
    double seconds = 0;
    double memory = 0, issue = 0;    ///< s, the two that may hold it
    std::vector<LevelShare> served;  ///< nearest first
    std::vector<double> misses;      ///< lines, by cache; hosts only
    std::vector<std::string> caches; ///< their names
    bool isWhole = true;             ///< every visit was played through the caches
    double runs = 0;                 ///< of the innermost loop; where the device's walks are calibrated
    bool adds = false;               ///< far lines hold the loop up: seconds = issue + memory, not the larger
    std::string limit;               ///< "L3", "issue", "L2": what holds it
    std::string source;              ///< of the rates
};

/// One pass in the order of the walk. Errors: predict.device when a bandwidth is not known; access.*.
Result<WalkTime> walkTime(const Device& device, const TensorWalk& walk);

/// Versions of the copy: 1 naive, 2 tiled, 3 in registers (GPU: padded), 4 past the caches (GPU: vectors).
inline constexpr int copyVersionCount = 4;

struct CopyTime
{
    double seconds = 0;
    double reads = 0, writes = 0, issue = 0; ///< s
    double ends = 0, call = 0;               ///< s, of rows; of the pass; where the device's walks are calibrated
    bool isCalibrated = false;
    std::string formula; ///< of a calibrated device
    std::string limit;
};
/// The walk's elements written one after the other. `version` 0 is the best. Errors as above.
Result<CopyTime> copyTime(const Device& device, const TensorWalk& walk, int version);

/// The caches of a host as the simulator takes them, nearest first.
std::vector<CacheGeometry> simulatedCaches(const Device& device);

} // namespace memscape
