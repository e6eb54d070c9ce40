// SPDX-License-Identifier: Apache-2.0
// The options of PyTorch's CUDA caching allocator (PYTORCH_CUDA_ALLOC_CONF), its constants, and
// how it rounds a request. Source: c10/cuda/CUDACachingAllocator.cpp and CUDAAllocatorConfig.cpp of
// PyTorch 2.6.
#pragma once

#include "core/base/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memscape {

constexpr std::int64_t smallestBlock = 512;     ///< every block is a multiple of it
constexpr std::int64_t smallLimit = 1 << 20;    ///< requests up to here use the small pool
constexpr std::int64_t smallSegment = 2 << 20;  ///< what the small pool takes from the driver
constexpr std::int64_t largeSegment = 20 << 20; ///< for requests of 1 to 10 MiB
constexpr std::int64_t largeRequest = 10 << 20; ///< from here on a request has its own segment…
constexpr std::int64_t largeRounding = 2 << 20; ///< … rounded up to a multiple of this
constexpr std::int64_t expandablePageSmall = 2 << 20;
constexpr std::int64_t expandablePageLarge = 20 << 20;

struct AllocatorOptions
{
    /// false: PyTorch's allocator for processors (c10/core/CPUAllocator.cpp), one malloc of the bytes that were asked
    /// for and one free. Nothing is rounded, split or kept: reserved is allocated. Other options but the limit are
    /// idle.
    bool caches = true;
    /// max_split_size_mb: blocks of this size and more are neither split nor given to smaller
    /// requests.
    std::optional<std::int64_t> maxSplit = {};
    /// max_non_split_rounding_mb: by how much a block beyond maxSplit may be larger than its
    /// request.
    std::int64_t maxNonSplitRounding = largeSegment;
    /// roundup_power2_divisions: of [2^k, 2^(k+1)) for k = 20 … 35 (entry 0 also below, entry 15
    /// also above). 0 or 1: multiples of 512 only.
    std::array<std::int64_t, 16> powerOf2Divisions{};
    bool expandableSegments = false;
    double garbageCollectionThreshold = 0; ///< share of fractionLimit; 0: off
    /// set_per_process_memory_fraction, in bytes; without it garbage collection never runs.
    std::optional<std::int64_t> fractionLimit = {};
    /// What the driver has for this process: device memory less context and other programs.
    std::optional<std::int64_t> deviceLimit = {};
};

/// The text of PYTORCH_CUDA_ALLOC_CONF: "max_split_size_mb:128,expandable_segments:True",
/// "roundup_power2_divisions:[256:1,512:2,>:8]". Keys that change no byte on the device (pinned_*,
/// backend:native …) are accepted and ignored. Errors: allocator.option with the nearest names,
/// allocator.value, allocator.backend (cudaMallocAsync is another allocator).
Result<AllocatorOptions> parseAllocatorOptions(std::string_view text);

/// A text that reads back as these options, limits aside: "max_split_size_mb:128"; empty where all are the defaults.
std::string allocatorOptionsText(const AllocatorOptions& options);

/// The size of the block that serves a request of `bytes` > 0 (before any block is left unsplit).
std::int64_t roundedRequest(std::int64_t bytes, const AllocatorOptions& options);

/// What is asked of the driver when no free block serves a rounded request.
std::int64_t segmentBytes(std::int64_t rounded);

} // namespace memscape
