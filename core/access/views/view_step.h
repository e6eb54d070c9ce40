// SPDX-License-Identifier: Apache-2.0
// What an operation makes of a tensor: another view of its storage, a copy, or PyTorch's refusal with
// PyTorch's words.
//
// A refusal is an answer, not bad input: Python raises there and the tensor stays as it was, so the
// operations after it go on from the same tensor. What no tensor of this program can be (more than 8
// dimensions, more than 2^53 elements) is bad input.
#pragma once

#include "core/access/views/view_operation.h"

namespace memscape {

struct ViewStep
{
    ViewOperation operation;
    bool ok = true;
    /// Why PyTorch refuses, as a word: view_incompatible, bad_numel, expand_mismatch, storage_oob,
    /// dim_range, index_range, bad_argument; and in PyTorch's own words.
    std::string error, message;
    TensorView view;          ///< after the operation; the one before when it is refused
    bool copied = false;      ///< is in a new storage
    std::int64_t written = 0; ///< elements of that storage
};

/// Errors: layout.rank, layout.elements, with the operation's character as place.
Result<ViewStep> apply(const TensorView& view, const ViewOperation& operation, std::int64_t itemBytes = 4);
Result<std::vector<ViewStep>> applyAll(TensorView view, const std::vector<ViewOperation>& operations,
                                       std::int64_t itemBytes = 4);

// The rules of the views: the new view, or a refusal as an error whose code is "torch." and the word.

tl::unexpected<Error> refused(const char* word, std::string message);

/// Errors of all below: torch.dim_range ("Dimension out of range …").
Result<std::size_t> wrappedDimension(std::int64_t dimension, std::int64_t rank);
Result<Sizes> inferredShape(const Sizes& shape, std::int64_t elements);

Result<TensorView> permuted(const TensorView& view, const Sizes& dims);
Result<TensorView> transposed(const TensorView& view, std::int64_t dim0, std::int64_t dim1);
Result<TensorView> movedDimensions(const TensorView& view, const Sizes& source, const Sizes& destination);
Result<TensorView> sliced(const TensorView& view, std::int64_t dim, std::optional<std::int64_t> start,
                          std::optional<std::int64_t> end, std::int64_t step);
Result<TensorView> narrowed(const TensorView& view, std::int64_t dim, std::int64_t start, std::int64_t length);
Result<TensorView> selected(const TensorView& view, std::int64_t dim, std::int64_t index);
Result<TensorView> expanded(const TensorView& view, const Sizes& sizes);
Result<TensorView> unsqueezed(const TensorView& view, std::int64_t dim);
Result<TensorView> squeezed(const TensorView& view, std::optional<std::int64_t> dim);
Result<TensorView> unfolded(const TensorView& view, std::int64_t dim, std::int64_t size, std::int64_t step);
Result<TensorView> diagonal(const TensorView& view, std::int64_t offset, std::int64_t dim1, std::int64_t dim2);
Result<TensorView> asStrided(const TensorView& view, const Sizes& size, const Sizes& stride,
                             std::optional<std::int64_t> offset, std::int64_t itemBytes);
Result<TensorView> chunkOf(const TensorView& view, std::int64_t chunks, std::int64_t dim, std::int64_t index);
Result<TensorView> viewed(const TensorView& view, const Sizes& shape);

} // namespace memscape
