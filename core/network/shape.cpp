// SPDX-License-Identifier: Apache-2.0
#include "core/network/shape.h"

#include <algorithm>

namespace memscape {

bool Shape::operator==(const Shape& other) const
{
    return rank == other.rank
        && std::equal(sizes.begin(), sizes.begin() + std::min(rank, maxRank), other.sizes.begin());
}

std::optional<std::int64_t> Shape::elements() const
{
    std::int64_t product = 1;
    for (int i = 0; i < rank; ++i) {
        if (sizes[std::size_t(i)] < 0 || __builtin_mul_overflow(product, sizes[std::size_t(i)], &product)
            || product > (std::int64_t(1) << 62))
            return std::nullopt;
    }
    return product;
}

std::optional<Shape> Shape::broadcast(const Shape& a, const Shape& b)
{
    Shape result = a.rank >= b.rank ? a : b;
    const Shape& smaller = a.rank >= b.rank ? b : a;
    const int offset = result.rank - smaller.rank;
    for (int i = 0; i < smaller.rank; ++i) {
        std::int64_t& size = result[i + offset];
        if (size == 1)
            size = smaller[i];
        else if (smaller[i] != 1 && smaller[i] != size)
            return std::nullopt;
    }
    return result;
}

Layout::Layout(const Shape& sizes)
    : shape(sizes)
{
    // Unsigned, so that sizes which the builder refuses a moment later wrap instead of overflowing.
    std::uint64_t stride = 1;
    for (int i = sizes.rank - 1; i >= 0; --i) {
        strides[std::size_t(i)] = static_cast<std::int64_t>(stride);
        stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(sizes[i], 1));
    }
}

std::int64_t Layout::elements() const
{
    std::int64_t product = 1;
    for (int i = 0; i < shape.rank; ++i)
        product *= shape[i];
    return product;
}

bool Layout::isContiguous() const
{
    std::int64_t expected = 1;
    for (int i = shape.rank - 1; i >= 0; --i) {
        if (shape[i] == 1)
            continue;
        if (strides[std::size_t(i)] != expected)
            return false;
        expected *= shape[i];
    }
    return true;
}

bool Layout::isDense() const
{
    if (isContiguous())
        return true;
    std::array<int, maxRank> order{};
    int count = 0;
    const auto strideAt = [&](int place) { return strides[std::size_t(order[std::size_t(place)])]; };
    for (int i = 0; i < std::min(shape.rank, maxRank); ++i) {
        if (shape[i] == 1)
            continue;
        int place = count++; // by stride
        for (; place > 0 && strideAt(place - 1) > strides[std::size_t(i)]; --place)
            order[std::size_t(place)] = order[std::size_t(place - 1)];
        order[std::size_t(place)] = i;
    }
    std::int64_t expected = 1;
    for (int i = 0; i < count; ++i) {
        const int dimension = order[std::size_t(i)];
        if (strides[std::size_t(dimension)] != expected)
            return false;
        expected *= shape[dimension];
    }
    return true;
}

bool Layout::operator==(const Layout& other) const
{
    return shape == other.shape
        && std::equal(strides.begin(), strides.begin() + std::min(rank(), maxRank), other.strides.begin());
}

std::size_t Layout::hash() const
{
    std::uint64_t mixed = std::uint64_t(rank());
    for (int i = 0; i < std::min(rank(), maxRank); ++i) {
        for (const std::int64_t part : {shape.sizes[std::size_t(i)], strides[std::size_t(i)]})
            mixed = (mixed ^ std::uint64_t(part)) * 0x9e3779b97f4a7c15; // Knuth's multiplicative hash
        mixed ^= mixed >> 32;
    }
    return std::size_t(mixed);
}

Layout Layout::transposed(int a, int b) const
{
    Layout result = *this;
    const auto i = std::size_t(shape.at(a));
    const auto j = std::size_t(shape.at(b));
    std::swap(result.shape.sizes[i], result.shape.sizes[j]);
    std::swap(result.strides[i], result.strides[j]);
    return result;
}

Layout Layout::permuted(std::span<const int> order) const
{
    Layout result = *this;
    for (std::size_t i = 0; i < order.size(); ++i) {
        result.shape.sizes[i] = shape[order[i]];
        result.strides[i] = strides[std::size_t(order[i])];
    }
    return result;
}

Layout Layout::expanded(const Shape& sizes) const
{
    Layout result;
    result.shape = sizes;
    const int offset = sizes.rank - shape.rank;
    for (int i = 0; i < shape.rank; ++i)
        if (shape[i] == sizes[i + offset])
            result.strides[std::size_t(i + offset)] = strides[std::size_t(i)];
    return result;
}

Layout Layout::narrowed(int dimension, std::int64_t length) const
{
    Layout result = *this;
    result.shape[shape.at(dimension)] = length;
    return result;
}

Layout Layout::selected(int dimension) const
{
    Layout result;
    result.shape.rank = shape.rank - 1;
    for (int i = 0, j = 0; i < shape.rank; ++i) {
        if (i == shape.at(dimension))
            continue;
        result.shape[j] = shape[i];
        result.strides[std::size_t(j++)] = strides[std::size_t(i)];
    }
    return result;
}

Layout Layout::unsqueezed(int dimension) const
{
    Layout result;
    result.shape.rank = shape.rank + 1;
    const int at = dimension < 0 ? dimension + shape.rank + 1 : dimension;
    for (int i = 0, j = 0; i < shape.rank + 1; ++i) {
        if (i == at) {
            result.shape[i] = 1;
            result.strides[std::size_t(i)] = j < shape.rank ? shape[j] * strides[std::size_t(j)] : 1;
            continue;
        }
        result.shape[i] = shape[j];
        result.strides[std::size_t(i)] = strides[std::size_t(j++)];
    }
    return result;
}

std::optional<Layout> Layout::viewed(const Shape& sizes) const
{
    Layout result;
    result.shape = sizes;
    if (elements() == 0 || isContiguous())
        return Layout(sizes);
    // Walk both from the last dimension: a run of old dimensions that lie one behind the other is
    // one chunk, and each chunk must be a whole number of new dimensions.
    int view = sizes.rank - 1;
    std::int64_t base = strides[std::size_t(shape.rank - 1)];
    std::int64_t chunk = 1;
    std::int64_t covered = 1;
    for (int i = shape.rank - 1; i >= 0; --i) {
        chunk *= shape[i];
        const bool ends = i == 0 || (shape[i - 1] != 1 && strides[std::size_t(i - 1)] != chunk * base);
        if (!ends)
            continue;
        while (view >= 0 && (covered < chunk || sizes[view] == 1)) {
            result.strides[std::size_t(view)] = covered * base;
            covered *= sizes[view--];
        }
        if (covered != chunk)
            return std::nullopt;
        if (i > 0) {
            base = strides[std::size_t(i - 1)];
            chunk = covered = 1;
        }
    }
    if (view != -1)
        return std::nullopt;
    return result;
}

namespace {

/// The stride of `dimension` of the result in `input`; 0 where it is broadcast.
std::int64_t strideIn(const Layout& input, const Shape& shape, int dimension)
{
    const int i = dimension - (shape.rank - input.rank());
    return i < 0 || input[i] != shape[dimension] ? 0 : input.strides[std::size_t(i)];
}

/// > 0 when `a`, which is now the faster dimension, must become the slower one.
int comparison(const Shape& shape, std::span<const Layout* const> inputs, int a, int b)
{
    for (const Layout* const input : inputs) {
        const std::int64_t first = strideIn(*input, shape, a);
        const std::int64_t second = strideIn(*input, shape, b);
        if (first == 0 || second == 0)
            continue;
        if (first != second)
            return first < second ? -1 : 1;
        if (shape[a] > shape[b])
            return 1;
    }
    return 0;
}

} // namespace

Layout elementwiseLayout(const Shape& shape, std::span<const Layout* const> inputs)
{
    if (std::all_of(inputs.begin(), inputs.end(), [](const Layout* l) { return l->isContiguous(); }))
        return Layout(shape);
    std::array<int, maxRank> order{}; // fastest first
    for (int i = 0; i < shape.rank; ++i)
        order[std::size_t(i)] = shape.rank - 1 - i;
    for (int i = 1; i < shape.rank; ++i) {
        int moving = i;
        for (int j = i - 1; j >= 0; --j) {
            const int compared = comparison(shape, inputs, order[std::size_t(j)], order[std::size_t(moving)]);
            if (compared < 0)
                break;
            if (compared > 0) {
                std::swap(order[std::size_t(j)], order[std::size_t(moving)]);
                moving = j;
            }
        }
    }
    Layout result;
    result.shape = shape;
    std::int64_t stride = 1;
    for (int i = 0; i < shape.rank; ++i) {
        result.strides[std::size_t(order[std::size_t(i)])] = stride;
        stride *= shape[order[std::size_t(i)]];
    }
    return result;
}

} // namespace memscape
