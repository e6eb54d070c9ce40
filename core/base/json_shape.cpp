// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_shape.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace memscape {

namespace {

/// What a text goes beyond; bytes count from 1, 0 is nowhere.
struct JsonShape
{
    int depth = 0;
    std::size_t elements = 0;
    std::size_t tooDeep = 0;     ///< the first bracket beyond the limit
    std::size_t tooMany = 0;     ///< the first element beyond it
    std::size_t tooManyKeys = 0; ///< the colon of the first key beyond it
};

JsonShape shapeOf(std::string_view text, const JsonLimits& limits)
{
    JsonShape shape;
    int depth = 0;
    std::vector<std::size_t> keys(std::size_t(limits.depth) + 1); // of the open object at each depth
    bool inString = false;
    const auto countElement = [&](std::size_t i) {
        if (++shape.elements > limits.elements && shape.tooMany == 0)
            shape.tooMany = i + 1;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inString) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inString = false;
            continue;
        }
        const bool isCounted = depth >= 0 && depth <= limits.depth;
        switch (c) {
        case '"': inString = true; break;
        case '[':
        case '{':
            countElement(i);
            shape.depth = std::max(shape.depth, ++depth);
            if (depth > limits.depth && shape.tooDeep == 0)
                shape.tooDeep = i + 1;
            if (depth >= 0 && depth <= limits.depth)
                keys[std::size_t(depth)] = 0;
            break;
        case ']':
        case '}': --depth; break;
        case ',': countElement(i); break;
        case ':':
            if (isCounted && ++keys[std::size_t(depth)] > limits.keys && shape.tooManyKeys == 0)
                shape.tooManyKeys = i + 1;
            break;
        default: break;
        }
    }
    return shape;
}

} // namespace

std::string jsonPlace(std::string_view text, std::size_t byte)
{
    const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
    const auto line = std::ranges::count(before, '\n') + 1;
    const auto lineStart = before.rfind('\n') + 1; // npos + 1 is 0
    return fmt::format("line {}, column {}", line, before.size() - lineStart + 1);
}

std::size_t jsonStringEnd(std::string_view text, std::size_t begin)
{
    std::size_t i = begin + 1;
    while (i < text.size() && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
    return std::min(i + 1, text.size());
}

Result<void> checkJsonShape(std::string_view text, const JsonLimits& limits)
{
    const auto tooLarge = [&](std::string message, std::size_t byte) {
        return fail("json.limit", std::move(message),
                    "check that this is the right file: what Memscape writes is smaller",
                    byte > 0 ? jsonPlace(text, byte) : std::string());
    };
    if (text.size() > limits.bytes)
        return tooLarge(fmt::format("larger than {} MiB", limits.bytes >> 20), 0);
    const JsonShape shape = shapeOf(text, limits);
    if (shape.tooDeep > 0)
        return tooLarge(fmt::format("nested {} deep, at most {} is read", shape.depth, limits.depth), shape.tooDeep);
    if (shape.tooMany > 0)
        return tooLarge(fmt::format("{} elements, at most {} are read", shape.elements, limits.elements),
                        shape.tooMany);
    if (shape.tooManyKeys > 0)
        return tooLarge(fmt::format("an object with more than {} keys", limits.keys), shape.tooManyKeys);
    return {};
}

Result<void> checkReadable(std::string_view text, const JsonLimits& limits)
{
    const auto readable = checkJsonShape(text, limits);
    if (readable)
        return {};
    return fail("document.limit",
                fmt::format("not saved, because it could not be opened again: {}", readable.error().message),
                "remove records, or divide them among several studies");
}

} // namespace memscape
