// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_builder.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace memscape {

bool JsonBuilder::add(Json value)
{
    m_values.push_back(std::move(value));
    return true;
}

bool JsonBuilder::start()
{
    m_open.push_back({m_values.size(), m_keys.size()});
    return true;
}

bool JsonBuilder::key(string_t& key)
{
    m_keys.push_back(std::move(key));
    return true;
}

bool JsonBuilder::end_array()
{
    const auto begin = m_values.begin() + static_cast<std::ptrdiff_t>(m_open.back().values);
    Json array = Json::array_t(std::make_move_iterator(begin), std::make_move_iterator(m_values.end()));
    m_values.erase(begin, m_values.end());
    m_open.pop_back();
    return add(std::move(array));
}

/// For every key from `begin` on, numbered from 0: the number of the member whose value it gets, or the
/// count of keys when it has come before. Equal keys are neighbours once they are sorted.
std::vector<std::size_t> JsonBuilder::lastOfEachKey(std::size_t begin)
{
    const std::size_t count = m_keys.size() - begin;
    std::vector<std::size_t> order(count), last(count);
    std::iota(order.begin(), order.end(), std::size_t(0));
    last = order;
    const auto keyOf = [&](std::size_t i) -> const std::string& { return m_keys[begin + i]; };
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        ++m_comparisons;
        const int difference = keyOf(a).compare(keyOf(b));
        return difference != 0 ? difference < 0 : a < b;
    });
    for (std::size_t i = 0, end = 0; i < count; i = end) {
        for (end = i + 1; end < count && keyOf(order[end]) == keyOf(order[i]); ++end)
            last[order[end]] = count; // its value stands at the first
        last[order[i]] = order[end - 1];
    }
    return last;
}

bool JsonBuilder::end_object()
{
    const Frame frame = m_open.back();
    m_open.pop_back();
    Json::object_t members;
    const std::vector<std::size_t> last = lastOfEachKey(frame.keys);
    members.reserve(last.size());
    for (std::size_t i = 0; i < last.size(); ++i) {
        if (last[i] < last.size())
            members.emplace_back(std::move(m_keys[frame.keys + i]), std::move(m_values[frame.values + last[i]]));
    }
    m_keys.resize(frame.keys);
    m_values.resize(frame.values);
    return add(std::move(members));
}

bool JsonBuilder::parse_error(std::size_t position, const std::string& token,
                              const nlohmann::detail::exception& problem)
{
    m_fault = {position, token, dynamic_cast<const Json::out_of_range*>(&problem) != nullptr};
    return false;
}

} // namespace memscape
