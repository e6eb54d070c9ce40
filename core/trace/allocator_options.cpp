// SPDX-License-Identifier: Apache-2.0
#include "core/trace/allocator_options.h"
#include "core/base/rounding.h"

#include "core/base/number.h"
#include "core/base/text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr double mostMebibytes = double(std::numeric_limits<std::int64_t>::max() / mebibyte / 2);

Result<std::int64_t> wholeNumber(std::string_view key, std::string_view text, double least, double most)
{
    const auto number = parseNumber(trimmed(text));
    if (!number || *number < least || *number > most || *number != std::trunc(*number))
        return fail(
            "allocator.value",
            fmt::format("{}: expected a whole number from {:.0f}, found \"{}\"", key, least, quotedForMessage(text)));
    return std::int64_t(*number);
}

Result<bool> trueOrFalse(std::string_view key, std::string_view text)
{
    if (text == "True" || text == "False")
        return text == "True";
    return fail("allocator.value",
                fmt::format("{}: expected True or False, found \"{}\"", key, quotedForMessage(text)));
}

/// "256:1,512:2,>:8": sizes in MiB that are powers of two. What lies before the first key takes its
/// value; ">" overwrites from the last key on.
Result<void> readDivisionList(std::string_view list, AllocatorOptions& options)
{
    auto& divisions = options.powerOf2Divisions;
    std::size_t last = 0;
    bool isFirst = true;
    for (const std::string& entry : split(list, ',')) {
        const auto pair = split(entry, ':');
        if (pair.size() != 2)
            return fail("allocator.value",
                        fmt::format("roundup_power2_divisions: expected SIZE:DIVISIONS, "
                                    "found \"{}\"",
                                    quotedForMessage(entry)));
        MEMSCAPE_TRY(value, wholeNumber("roundup_power2_divisions", pair[1], 0, 1 << 20));
        if (value != 0 && !std::has_single_bit(std::uint64_t(value)))
            return fail("allocator.value", "roundup_power2_divisions: divisions must be a power of two");
        if (trimmed(pair[0]) == ">") {
            std::fill(divisions.begin() + std::ptrdiff_t(last), divisions.end(), value);
            continue;
        }
        MEMSCAPE_TRY(key, wholeNumber("roundup_power2_divisions", pair[0], 1, mostMebibytes));
        if (!std::has_single_bit(std::uint64_t(key)))
            return fail("allocator.value", "roundup_power2_divisions: sizes must be powers of two");
        last = std::min<std::size_t>(std::size_t(std::bit_width(std::uint64_t(key))) - 1, 15);
        if (isFirst)
            std::fill(divisions.begin(), divisions.begin() + std::ptrdiff_t(last), value);
        isFirst = false;
        divisions[last] = value;
    }
    return {};
}

Result<void> readDivisions(std::string_view text, AllocatorOptions& options)
{
    if (text.starts_with('[')) {
        if (!text.ends_with(']'))
            return fail("allocator.value", "roundup_power2_divisions: the list has no closing bracket");
        return readDivisionList(text.substr(1, text.size() - 2), options);
    }
    MEMSCAPE_TRY(value, wholeNumber("roundup_power2_divisions", text, 0, 1 << 20));
    if (value != 0 && !std::has_single_bit(std::uint64_t(value)))
        return fail("allocator.value", "roundup_power2_divisions: divisions must be a power of two");
    options.powerOf2Divisions.fill(value);
    return {};
}

Result<void> readOption(std::string_view key, std::string_view value, AllocatorOptions& options)
{
    static const std::vector<std::string> known{
        "max_split_size_mb",   "max_non_split_rounding_mb",    "roundup_power2_divisions",
        "expandable_segments", "garbage_collection_threshold", "backend"};
    static const std::vector<std::string> ignored{"release_lock_on_cudamalloc",  "pinned_use_cuda_host_register",
                                                  "pinned_num_register_threads", "pinned_use_background_threads",
                                                  "per_process_memory_fraction", "graph_capture_record_stream_reuse"};
    if (key == "max_split_size_mb") {
        MEMSCAPE_TRY(size, wholeNumber(key, value, 20, mostMebibytes));
        options.maxSplit = size * mebibyte;
    } else if (key == "max_non_split_rounding_mb") {
        MEMSCAPE_TRY(size, wholeNumber(key, value, 20, mostMebibytes));
        options.maxNonSplitRounding = size * mebibyte;
    } else if (key == "roundup_power2_divisions") {
        MEMSCAPE_CHECK(readDivisions(value, options));
    } else if (key == "expandable_segments") {
        MEMSCAPE_TRY(isOn, trueOrFalse(key, value));
        options.expandableSegments = isOn;
    } else if (key == "garbage_collection_threshold") {
        const auto share = parseNumber(value);
        if (!share || *share <= 0 || *share >= 1)
            return fail("allocator.value", "garbage_collection_threshold: expected a number between 0 and 1");
        options.garbageCollectionThreshold = *share;
    } else if (key == "backend") {
        if (value != "native")
            return fail("allocator.backend",
                        fmt::format("backend {} is another allocator than the one "
                                    "that is replayed here",
                                    quotedForMessage(value)));
    } else if (std::find(ignored.begin(), ignored.end(), key) == ignored.end()) {
        return fail("allocator.option", fmt::format("no allocator option is called \"{}\"", quotedForMessage(key)),
                    didYouMean(key, known));
    }
    return {};
}

} // namespace

Result<AllocatorOptions> parseAllocatorOptions(std::string_view text)
{
    AllocatorOptions options;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t colon = std::min(text.find(':', begin), text.size());
        const bool isList = text.substr(colon).starts_with(":[");
        const std::size_t closed = isList ? std::min(text.find(']', colon), text.size()) : colon;
        const std::size_t end = std::min(text.find(',', closed), text.size());
        const auto key = trimmed(text.substr(begin, std::min(colon, end) - begin));
        const auto value = colon < end ? trimmed(text.substr(colon + 1, end - colon - 1)) : "";
        if (!key.empty() || !value.empty())
            MEMSCAPE_CHECK(readOption(key, value, options));
        begin = end + 1;
    }
    return options;
}

std::string allocatorOptionsText(const AllocatorOptions& options)
{
    const AllocatorOptions standard;
    std::vector<std::string> words;
    if (options.maxSplit)
        words.push_back(fmt::format("max_split_size_mb:{}", *options.maxSplit / mebibyte));
    if (options.maxNonSplitRounding != standard.maxNonSplitRounding)
        words.push_back(fmt::format("max_non_split_rounding_mb:{}", options.maxNonSplitRounding / mebibyte));
    if (options.powerOf2Divisions != standard.powerOf2Divisions) {
        std::vector<std::string> pairs;
        for (std::size_t i = 0; i < options.powerOf2Divisions.size(); ++i)
            pairs.push_back(fmt::format("{}:{}", std::size_t(1) << i, options.powerOf2Divisions[i]));
        words.push_back(fmt::format("roundup_power2_divisions:[{}]", fmt::join(pairs, ",")));
    }
    if (options.expandableSegments)
        words.emplace_back("expandable_segments:True");
    if (options.garbageCollectionThreshold > 0)
        words.push_back(fmt::format("garbage_collection_threshold:{}", numberText(options.garbageCollectionThreshold)));
    return fmt::format("{}", fmt::join(words, ","));
}

std::int64_t roundedRequest(std::int64_t bytes, const AllocatorOptions& options)
{
    if (bytes < smallestBlock)
        return smallestBlock;
    const auto size = std::uint64_t(bytes);
    const int interval = std::clamp(int(std::bit_width(size)) - 1 - 20, 0, 15);
    const std::int64_t divisions = options.powerOf2Divisions[std::size_t(interval)];
    if (divisions > 1 && bytes > smallestBlock * divisions) {
        if (std::has_single_bit(size))
            return bytes;
        const std::int64_t step = std::int64_t(std::bit_floor(size) / std::bit_floor(std::uint64_t(divisions)));
        return roundedUp(bytes, step);
    }
    return roundedUp(bytes, smallestBlock);
}

std::int64_t segmentBytes(std::int64_t rounded)
{
    if (rounded <= smallLimit)
        return smallSegment;
    if (rounded < largeRequest)
        return largeSegment;
    return roundedUp(rounded, largeRounding);
}

} // namespace memscape
