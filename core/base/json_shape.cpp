// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_shape.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Shape
{
    int depth = 0;
    std::size_t elements = 0;
    std::size_t tooDeep = 0; ///< byte of the first bracket beyond the limit, from 1; 0 without
};

Shape shapeOf(std::string_view text, int depthLimit)
{
    Shape shape;
    int depth = 0;
    bool inString = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inString) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inString = false;
            continue;
        }
        switch (c) {
        case '"': inString = true; break;
        case '[':
        case '{':
            ++shape.elements;
            shape.depth = std::max(shape.depth, ++depth);
            if (depth > depthLimit && shape.tooDeep == 0)
                shape.tooDeep = i + 1;
            break;
        case ']':
        case '}': --depth; break;
        case ',': ++shape.elements; break;
        default: break;
        }
    }
    return shape;
}

} // namespace

std::string jsonPlace(std::string_view text, std::size_t byte)
{
    const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto lineStart = before.rfind('\n') + 1; // npos + 1 is 0
    return fmt::format("line {}, column {}", line, before.size() - lineStart + 1);
}

Result<void> checkJsonShape(std::string_view text, const JsonLimits& limits)
{
    if (text.size() > limits.bytes)
        return fail("json.limit", fmt::format("larger than {} MiB", limits.bytes >> 20));
    const Shape shape = shapeOf(text, limits.depth);
    if (shape.depth > limits.depth) {
        return fail("json.limit",
                    fmt::format("nested {} deep, at most {} is read", shape.depth, limits.depth), {},
                    jsonPlace(text, shape.tooDeep));
    }
    if (shape.elements > limits.elements)
        return fail("json.limit", fmt::format("{} elements, at most {} are read", shape.elements,
                                              limits.elements));
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
