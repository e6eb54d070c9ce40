// SPDX-License-Identifier: Apache-2.0
// An array of plain values that grows to some gigabytes: a snapshot has millions of events. std::vector copies all it
// holds whenever it grows and for that moment holds it twice; realloc of large memory moves pages instead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace memscape {

template <typename T> class LargeArray
{
    static_assert(std::is_trivially_copyable_v<T>);

public:
    LargeArray() = default;
    LargeArray(LargeArray&& other) noexcept { swap(other); }
    LargeArray& operator=(LargeArray&& other) noexcept
    {
        LargeArray(std::move(other)).swap(*this);
        return *this;
    }
    LargeArray(const LargeArray&) = delete;
    LargeArray& operator=(const LargeArray&) = delete;
    ~LargeArray() { std::free(m_data); }

    std::size_t size() const { return m_size; }
    bool empty() const { return m_size == 0; }
    T& operator[](std::size_t i) { return m_data[i]; }
    const T& operator[](std::size_t i) const { return m_data[i]; }
    T& back() { return m_data[m_size - 1]; }
    const T& back() const { return m_data[m_size - 1]; }
    T* data() { return m_data; }
    const T* data() const { return m_data; }
    T* begin() { return m_data; }
    T* end() { return m_data + m_size; }
    const T* begin() const { return m_data; }
    const T* end() const { return m_data + m_size; }

    /// Throws std::bad_alloc, as a vector does.
    void push_back(T value)
    {
        if (m_size == m_capacity)
            reserve(std::max<std::size_t>(16, m_size + 1));
        m_data[m_size++] = value;
    }
    /// At least that much; grows by half, so that asking often costs little.
    void reserve(std::size_t count)
    {
        if (count <= m_capacity)
            return;
        count = std::max(count, m_capacity + m_capacity / 2);
        void* grown = count > std::size_t(-1) / sizeof(T) ? nullptr : std::realloc(m_data, count * sizeof(T));
        if (!grown)
            throw std::bad_alloc();
        m_data = static_cast<T*>(grown);
        m_capacity = count;
    }
    /// New elements are `value`.
    void resize(std::size_t count, T value = T())
    {
        reserve(count);
        for (; m_size < count; ++m_size)
            m_data[m_size] = value;
        m_size = count;
    }
    /// `count` elements that were written behind the end, in reserved room, belong to it.
    void extend(std::size_t count) { m_size += count; }
    void pop_back(std::size_t count = 1) { m_size -= count; }
    void append(std::span<const T> values)
    {
        if (m_size + values.size() > m_capacity)
            reserve(m_size + values.size());
        for (const T& value : values)
            m_data[m_size++] = value;
    }
    /// Bytes that it holds.
    std::size_t memory() const { return m_capacity * sizeof(T); }

private:
    void swap(LargeArray& other) noexcept
    {
        std::swap(m_data, other.m_data);
        std::swap(m_size, other.m_size);
        std::swap(m_capacity, other.m_capacity);
    }

    T* m_data = nullptr;
    std::size_t m_size = 0, m_capacity = 0;
};

} // namespace memscape
