// SPDX-License-Identifier: Apache-2.0
// A list of a few elements that live where the list lives: sizes of a tensor, states of a parameter. A network has
// 100,000 of these, so none of them asks for memory of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace memscape {

template <typename T, std::size_t most> class Few
{
public:
    Few() = default;
    Few(std::initializer_list<T> list)
    {
        for (const T& one : list)
            push_back(one);
    }

    /// More than `most` are our bug.
    void push_back(const T& one)
    {
        assert(m_count < most);
        m_items[m_count++] = one;
    }
    std::size_t size() const { return m_count; }
    bool empty() const { return m_count == 0; }
    T& operator[](std::size_t i) { return m_items[i]; }
    const T& operator[](std::size_t i) const { return m_items[i]; }
    const T& back() const { return m_items[m_count - 1]; }
    T* begin() { return m_items.data(); }
    T* end() { return m_items.data() + m_count; }
    const T* begin() const { return m_items.data(); }
    const T* end() const { return m_items.data() + m_count; }
    bool operator==(const Few& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

private:
    std::array<T, most> m_items{};
    std::uint32_t m_count = 0;
};

} // namespace memscape
