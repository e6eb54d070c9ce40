// SPDX-License-Identifier: Apache-2.0
// What a way for bytes costs: T = α + n/β, the latency of a link and its bandwidth. Half of β is reached at αβ bytes.
//
// A link within a host goes through its caches: of data that a core's own caches hold a share o of, and the last cache
// a share h,
//     1/β = o/β_own + (h − o)/β_near + (1 − h)/β_far,    both by the caches' knees (working_set.h)
// Between cores β_own is the slow one: lines that another core has changed are asked of that core (on a Zen 4, 0.14 ns
// a byte; 0.06 ns once the last cache holds them). What comes in pieces has γ for each piece besides:
//
//     files         pieces of the page cache (page_cache.h)
//     a pipe        its fillings after the first: each waits until the other process is woken. On a Zen 4 with Linux
//                   6.18 α is 23 µs, and each 64 KiB more took 23 µs beside the copying
//     copies, and   the lines that a core's first cache has lost and its second one holds: on a Zen 4, 0.09 ns a byte
//     between cores come out of the other core's first, 0.14 ns out of its second; an Emerald Rapids copies 82 GB/s
//                   within its first, 39 GB/s within its second
//
// All are fitted to times of several sizes: least squares of the relative error, so that 4 bytes count as much as
// 64 MiB, and none of the five below zero.
//
// Left out: other traffic, steps between the sizes at which a protocol changes.
#pragma once

#include "core/base/result.h"
#include "core/device/device.h"

#include <string>
#include <vector>

namespace memscape {

/// Of the bytes that a stream touches.
struct CachedShares
{
    double last = 1;  ///< held by the last cache or a nearer one; 1 where no cache is known
    double own = 0;   ///< held by the caches that each core has of its own
    double first = 0; ///< held by the nearest of them
};
CachedShares cachedShares(const Device& host, double workingSet);

/// Seconds per byte of a link; a rate that is not known is that of the last cache. NaN where that is not known.
double secondsPerByte(const Link& link, const CachedShares& cached = {});

/// The pieces of so many bytes over a link within a host by its id ("pipe", "copy", "thread", "shared", "beside"); 0 of
/// others.
double linkPieces(const std::string& id, double bytes, const CachedShares& cached);
/// γ of a link as it was calibrated, s; 0 where there is none.
double pieceSeconds(const Device& device, const std::string& id);

/// A size and the time that it took.
struct LinkProbe
{
    double bytes = 0;
    double seconds = 0;
    CachedShares cached = {};
    double pieces = 0; ///< that it came in, where that depends on the size in a way of its own
};

/// What was probed of one kind.
struct LinkProbes
{
    std::string id, label;
    std::vector<LinkProbe> points;
    double touched = 2; ///< B of memory for each that is moved: its source and its target; 0: caches do not matter
    bool hasFarPieces = false; ///< pieces count as far as no cache holds them
    double leastPiece = 0;     ///< B of those that the page cache makes (page_cache.h); 0: it makes none
};

/// The probe with the caches that its bytes meet on that host, and the pieces that they come in there.
LinkProbe onDevice(const Device& host, const LinkProbes& kind, LinkProbe probe);
LinkProbes onDevice(const Device& host, LinkProbes kind); ///< all of its probes
/// Seconds of so many bytes over a link of that device, by its α, β and γ. NaN where it has no such link.
double linkSeconds(const Device& host, const LinkProbes& kind, const LinkProbe& probe);

struct FittedLink
{
    Link link;
    double piece = 0;    ///< γ, s
    double residual = 0; ///< median of |model / probe − 1|
};

/// Errors: calibration.probes with fewer than two sizes that took time.
Result<FittedLink> fitLink(const LinkProbes& probes);

} // namespace memscape
