// SPDX-License-Identifier: Apache-2.0
// A strided tensor as PyTorch sees one: sizes, strides and an offset into a storage, all in elements.
// Element (i0, i1, …) lies at  offset + Σ i_d · stride_d.  A view changes these numbers and nothing
// else; a copy makes a new storage.
//
// The rules are PyTorch's own, followed rule by rule:
//   contiguous          c10/core/Contiguity.h: strides of dimensions of size 1 do not matter, a tensor
//                       of no elements always is
//   channels last       c10/core/MemoryFormat.h, is_channels_last_strides_2d and _3d_s5
//   dense               c10/core/Contiguity.h, non-overlapping and dense: every element of a block once
//   view                ATen/TensorUtils.cpp, computeStride: a run of dimensions that lie one behind the
//                       other is one chunk, and each chunk must be a whole number of new dimensions
//   a copy's strides    ATen/ExpandUtils.cpp, infer_dense_strides; ATen/TensorIterator.cpp
//
// Left out: conjugation and negation bits, sparse and named tensors, storages of less than one byte
// per element.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace memscape {

using Sizes = std::vector<std::int64_t>;

/// Dimensions that a tensor may have here.
inline constexpr std::size_t rankLimit = 8;
/// Elements that a tensor and its storage may have.
inline constexpr std::int64_t elementLimit = std::int64_t(1) << 53;

enum class MemoryFormat { Contiguous, ChannelsLast, ChannelsLast3d, ColumnMajor };

struct TensorView
{
    Sizes size, stride;       ///< by dimension; strides in elements
    std::int64_t offset = 0;  ///< elements before the first one
    std::int64_t storage = 0; ///< elements of its storage

    int rank() const { return int(size.size()); }
    std::int64_t elements() const; ///< product of the sizes, 1 without dimensions
    bool isEmpty() const { return elements() == 0; }

    bool isContiguous() const;
    bool isChannelsLast() const;   ///< of four dimensions, else false
    bool isChannelsLast3d() const; ///< of five dimensions, else false
    bool isDense() const;          ///< every element of a block of memory once, in any order
    bool is(MemoryFormat format) const;

    /// Elements of storage from its beginning to the end of the last element; 0 when empty.
    std::int64_t extent() const;
    bool operator==(const TensorView&) const = default;
};

/// Strides of a dense tensor. Channels-last strides need four (five) dimensions.
Sizes stridesOf(const Sizes& size, MemoryFormat format);

/// A tensor with a storage of its own. Errors: layout.rank (over 8 dimensions), layout.size (negative
/// sizes), layout.elements (more than 2^53, counting a size of 0 as 1), layout.format (channels last
/// of another rank).
Result<TensorView> freshTensor(const Sizes& size, MemoryFormat format = MemoryFormat::Contiguous);
Result<TensorView> freshTensor(const Sizes& size, Sizes stride);

/// The strides with which `view` can be seen in another shape of as many elements; false when that
/// needs a copy.
bool viewStrides(const TensorView& view, const Sizes& shape, Sizes& strides);

/// Strides of a dense copy that keeps the order of dimensions: clone(), empty_like().
Sizes preservedStrides(const TensorView& view);

/// Strides that TensorIterator gives the result of an elementwise operation on inputs of one shape.
Sizes elementwiseStrides(std::span<const TensorView* const> inputs);

/// "[2, 3, 4]", as PyTorch prints sizes.
std::string sizesText(const Sizes& sizes);

} // namespace memscape
