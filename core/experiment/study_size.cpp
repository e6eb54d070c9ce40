// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/study_size.h"

#include "core/base/json_shape.h"
#include "core/base/quantity.h"
#include "core/base/text.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t namedRecords = 3; // of the largest

std::string nameOf(const Record& record)
{
    const std::string name =
        record.name.empty() ? fmt::format("{} on {}", record.experiment, record.device.name) : record.name;
    return quotedForMessage(name, 40);
}

} // namespace

std::vector<std::size_t> recordBytes(std::string_view text)
{
    std::vector<std::size_t> bytes;
    std::string_view key; // the last string of the outermost object
    std::size_t begin = 0;
    int depth = 0;
    bool isInRecords = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        switch (text[i]) {
        case '"': {
            const std::size_t end = jsonStringEnd(text, i);
            if (depth == 1)
                key = text.substr(i + 1, end - i - 2);
            i = end - 1;
            break;
        }
        case '[':
        case '{':
            if (depth == 1)
                isInRecords = text[i] == '[' && key == "records";
            if (depth == 2)
                begin = i;
            ++depth;
            break;
        case ']':
        case '}':
            if (--depth == 2 && isInRecords)
                bytes.push_back(i + 1 - begin);
            break;
        default: break;
        }
    }
    return bytes;
}

std::optional<Error> heavyStudyNote(std::string_view text, const Study& study, std::size_t heavy)
{
    if (text.size() <= heavy)
        return {};
    const std::vector<std::size_t> bytes = recordBytes(text);
    std::vector<std::size_t> order(std::min(bytes.size(), study.records.size()));
    std::iota(order.begin(), order.end(), std::size_t(0));
    const auto shown = order.begin() + std::ptrdiff_t(std::min(order.size(), namedRecords));
    std::partial_sort(order.begin(), shown, order.end(),
                      [&](std::size_t a, std::size_t b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : a < b; });
    std::vector<std::string> largest;
    for (auto index = order.begin(); index != shown; ++index)
        largest.push_back(fmt::format("“{}” ({})", nameOf(study.records[*index]), bytesText(double(bytes[*index]), 3)));
    std::string message = fmt::format("this study takes {}; one of more than {} cannot be opened",
                                      bytesText(double(text.size()), 3), bytesText(double(JsonLimits{}.bytes), 3));
    if (largest.size() == 1)
        message += ". Its record: " + largest.front();
    else if (!largest.empty())
        message += fmt::format(". The largest of its {} records: {}", bytes.size(), join(largest, ", "));
    return Error{
        "study.heavy", message, {}, "remove records that are no longer needed, or divide it among several studies"};
}

} // namespace memscape
