// SPDX-License-Identifier: Apache-2.0
// How a tensor lies in its storage: sizes and strides in elements, up to six dimensions. Strides
// decide where eager PyTorch copies: a transposed head can be multiplied as it is only when it can
// be seen as a batch of matrices, and the gradient of a reshape is a copy exactly when no view of it
// exists. The rules are those of torch.Tensor.view (ATen/TensorUtils.cpp, computeStride) and of the
// output that TensorIterator allocates (ATen/TensorIterator.cpp, reorder_dimensions).
//
// Left out: storage offsets (they cost no bytes), negative strides, memory formats as such (channels
// last is a stride order like any other).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

namespace memscape {

constexpr int maxRank = 6;

/// Sizes of a tensor. Cheap to copy; a 0-dimensional shape is one element.
struct Shape
{
    constexpr Shape() = default;
    constexpr Shape(std::initializer_list<std::int64_t> list)
    {
        for (const std::int64_t size : list)
            append(size);
    }

    /// Dimensions beyond the sixth are our bug; they are dropped and `rank` says so.
    constexpr void append(std::int64_t size)
    {
        if (rank < maxRank)
            sizes[std::size_t(rank)] = size;
        ++rank;
    }
    constexpr std::int64_t operator[](int dimension) const { return sizes[std::size_t(dimension)]; }
    constexpr std::int64_t& operator[](int dimension) { return sizes[std::size_t(dimension)]; }
    /// −1 is the last dimension.
    constexpr int at(int dimension) const { return dimension < 0 ? dimension + rank : dimension; }
    constexpr std::int64_t last() const { return rank == 0 ? 1 : sizes[std::size_t(rank - 1)]; }

    bool operator==(const Shape& other) const;
    /// Product of the sizes; nothing when a size is negative or the product beyond 2^62.
    std::optional<std::int64_t> elements() const;
    /// NumPy broadcasting; nothing when the two do not fit.
    static std::optional<Shape> broadcast(const Shape& a, const Shape& b);

    std::array<std::int64_t, maxRank> sizes{};
    int rank = 0;
};

struct Layout
{
    Shape shape;
    std::array<std::int64_t, maxRank> strides{};

    Layout() = default;
    /// Row-major.
    explicit Layout(const Shape& sizes);

    std::int64_t operator[](int dimension) const { return shape[dimension]; }
    int rank() const { return shape.rank; }
    /// Product of the sizes; they must have been checked when the tensor was made.
    std::int64_t elements() const;
    bool isContiguous() const;
    /// Every element once and no holes: what an elementwise result can imitate.
    bool isDense() const;

    bool operator==(const Layout& other) const;
    std::size_t hash() const;

    Layout transposed(int a, int b) const;
    /// `order[i]` is the dimension that becomes the i-th.
    Layout permuted(std::span<const int> order) const;
    Layout expanded(const Shape& sizes) const;
    Layout narrowed(int dimension, std::int64_t length) const;
    Layout selected(int dimension) const;
    Layout unsqueezed(int dimension) const;
    /// The same elements with other sizes without copying, or nothing when that needs a copy.
    std::optional<Layout> viewed(const Shape& sizes) const;
};

/// What TensorIterator allocates for an elementwise result of `shape`: the order of dimensions of
/// the inputs, dense. Inputs of smaller shape count as broadcast.
Layout elementwiseLayout(const Shape& shape, std::span<const Layout* const> inputs);

} // namespace memscape
