// SPDX-License-Identifier: Apache-2.0
// In how many pieces a file lies in the page cache. A file that is read from its beginning is read ahead in windows of
// W bytes. The first window's pieces (folios) are single pages, and each window's are four times as large as those of
// the window before, up to 2 MiB: page_cache_ra_order() of Linux asks for two orders more each time. Each piece costs:
// it is allocated, it is a segment of the request to the disk, it is looked up by read(). A fault maps one of them
// whole, and at least 64 KiB (fault_around_bytes).
//
// On Linux 6.18 with ext4 and W = 8 MiB, 128 MiB that were read so took 468 faults: 64 for 4 MiB in the first three
// windows, then 16, then 4, then 2; the same file just after it was written, 64. So a time is
//     T = α + pieces × γ + n/β
// with α, β and γ of a calibration (link_time.h). Of a file that is copied out of the page cache γ counts for the share
// that no cache holds: what describes a piece lies in memory like its bytes.
//
// Left out: kernels and filesystems that ramp otherwise (a calibration counts faults and takes the largest piece that
// agrees; 64 KiB where pieces are never larger), memory so fragmented that no large piece is to be had.
#pragma once

#include "core/base/json.h"
#include "core/device/device.h"

#include <optional>

namespace memscape {

inline constexpr double filePage = 4096;     ///< B, the least piece
inline constexpr double faultAround = 65536; ///< B that a fault maps at least

struct PageCache
{
    double window = 0;  ///< B that are read ahead at a time
    double largest = 0; ///< B of a piece at most

    bool isKnown() const { return window > 0 && largest > 0; }
};

/// Pieces of the first `bytes` of a file; `least` B: filePage, or faultAround of what faults map. `cache` is known.
double pageCachePieces(const PageCache& cache, double bytes, double least);

/// The largest piece, B, with which so many faults for so many bytes agree best.
double largestPiece(double window, double bytes, double faults);

/// Of a calibration; none where it holds none, or nonsense.
std::optional<PageCache> pageCacheOf(const Device& device);
Json pageCacheToJson(const PageCache& cache);

} // namespace memscape
