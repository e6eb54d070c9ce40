// SPDX-License-Identifier: Apache-2.0
// What one core of a calibrated host needs for a walk over a tensor, from probes of the very kernels that read
// and copy views (kernels/host/calibration/calibrate_walks.cpp). Kinds of probes, all in steady state:
//
//   read|copy neighbours|apart   runs of `at` elements in L1, next to each other or every other one: seconds of a run.
//                                What a run costs beyond its elements is the end of the loop: its last elements go one
//                                by one, and the branch is guessed wrong
//   copy edges                   runs of `at` elements of a plane that is too thin for a tile: seconds of a run
//   copy plane                   a plane of six runs of five, of many: seconds of a plane
//   read|copy stream             everything in its order over a footprint of `at` bytes: seconds of an element of 4 B
//   tiles V, tiles V crowded     squares turned by version V, `at` bytes in both arrays: seconds of an element;
//                                crowded: rows a multiple of 1 KiB apart share a few sets of the caches
//   column LEVEL                 down a column whose lines come from LEVEL each time; `at` is the largest power of two
//                                that divides the distance between rows: seconds of a visit
//   column far LEVEL             the same where prefetchers are lost (rows pages apart) and 15 of 16 visits find their
//                                line in the first cache; `at` is the number of rows: seconds of a visit
//   column pages                 down a column of more pages than address translation reaches: seconds of a visit
//
// Between two probes values are interpolated, linearly for runs, in the logarithms for the others. No shape that a
// prediction is made for is looked up. Left out: several cores, runs that are not aligned alike.
#pragma once

#include "core/device/device.h"

#include <optional>
#include <string>

namespace memscape {

/// Seconds of a run of `elements`; nothing where this is not calibrated.
std::optional<double> runSeconds(const Device& device, const std::string& kind, double elementBytes, double elements);
/// The same of one more element in a long run.
std::optional<double> bulkSeconds(const Device& device, const std::string& kind, double elementBytes);
/// The value of a curve over bytes (footprints, distances), log-log.
std::optional<double> curveSeconds(const Device& device, const std::string& kind, double elementBytes, double at);

/// The largest power of two that divides a distance of that many bytes, between a line and a page.
double setStride(double pitchBytes);

} // namespace memscape
