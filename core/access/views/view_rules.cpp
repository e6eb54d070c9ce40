// SPDX-License-Identifier: Apache-2.0
// The views, each after the function of the same name in ATen/native/TensorShape.cpp, with its checks in
// their order and their words.
#include "core/access/views/view_step.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memscape {

namespace {

Result<std::int64_t> product(std::int64_t a, std::int64_t b)
{
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result))
        return fail("layout.elements", fmt::format("{} × {} is beyond 64 bits", a, b), "use smaller numbers");
    return result;
}

Result<std::int64_t> sum(std::int64_t a, std::int64_t b)
{
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result))
        return fail("layout.elements", fmt::format("{} + {} is beyond 64 bits", a, b), "use smaller numbers");
    return result;
}

void erase(TensorView& view, std::size_t dim)
{
    view.size.erase(view.size.begin() + std::ptrdiff_t(dim));
    view.stride.erase(view.stride.begin() + std::ptrdiff_t(dim));
}

} // namespace

tl::unexpected<Error> refused(const char* word, std::string message)
{
    return fail(fmt::format("torch.{}", word), std::move(message));
}

Result<std::size_t> wrappedDimension(std::int64_t dimension, std::int64_t rank)
{
    const std::int64_t bounded = std::max<std::int64_t>(rank, 1); // a scalar has -1 and 0
    if (dimension < -bounded || dimension >= bounded)
        return refused("dim_range",
                       fmt::format("Dimension out of range (expected to be in range of [{}, {}], but got {})", -bounded,
                                   bounded - 1, dimension));
    return std::size_t(dimension < 0 ? dimension + bounded : dimension);
}

Result<Sizes> inferredShape(const Sizes& shape, std::int64_t elements)
{
    std::int64_t known = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == -1) {
            if (open)
                return refused("bad_argument", "only one dimension can be inferred");
            open = i;
        } else if (shape[i] < 0) {
            return refused("bad_argument", fmt::format("invalid shape dimension {}", shape[i]));
        } else {
            MEMSCAPE_SET(known, product(known, shape[i]));
        }
    }
    if (elements != known && !(open && known > 0 && elements % known == 0))
        return refused("bad_numel",
                       fmt::format("shape '{}' is invalid for input of size {}", sizesText(shape), elements));
    Sizes inferred = shape;
    if (open) {
        if (known == 0)
            return refused("bad_numel",
                           fmt::format("cannot reshape tensor of 0 elements into shape {} because the "
                                       "unspecified dimension size -1 can be any value and is ambiguous",
                                       sizesText(shape)));
        inferred[*open] = elements / known;
    }
    return inferred;
}

Result<TensorView> permuted(const TensorView& view, const Sizes& dims)
{
    if (dims.size() != view.size.size())
        return refused("bad_argument",
                       fmt::format("permute(sparse_coo): number of dimensions in the tensor input does not "
                                   "match the length of the desired ordering of dimensions i.e. input.dim() "
                                   "= {} is not equal to len(dims) = {}",
                                   view.size.size(), dims.size()));
    TensorView result = view;
    std::vector<bool> seen(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) {
        MEMSCAPE_TRY(from, wrappedDimension(dims[i], view.rank()));
        if (seen[from])
            return refused("bad_argument", "permute(): duplicate dims are not allowed.");
        seen[from] = true;
        result.size[i] = view.size[from];
        result.stride[i] = view.stride[from];
    }
    return result;
}

Result<TensorView> transposed(const TensorView& view, std::int64_t dim0, std::int64_t dim1)
{
    MEMSCAPE_TRY(a, wrappedDimension(dim0, view.rank()));
    MEMSCAPE_TRY(b, wrappedDimension(dim1, view.rank()));
    TensorView result = view;
    if (a != b) {
        std::swap(result.size[a], result.size[b]);
        std::swap(result.stride[a], result.stride[b]);
    }
    return result;
}

Result<TensorView> movedDimensions(const TensorView& view, const Sizes& source, const Sizes& destination)
{
    if (source.size() != destination.size())
        return refused("bad_argument",
                       fmt::format("movedim: Invalid source or destination dims: source ({} dims) should "
                                   "contain the same number of dims as destination ({} dims)",
                                   sizesText(source), sizesText(destination)));
    const std::size_t rank = view.size.size();
    std::vector<std::size_t> from, to;
    for (std::size_t i = 0; i < source.size(); ++i) {
        MEMSCAPE_TRY(one, wrappedDimension(source[i], view.rank()));
        MEMSCAPE_TRY(other, wrappedDimension(destination[i], view.rank()));
        from.push_back(one);
        to.push_back(other);
    }
    const auto hasTwice = [](std::vector<std::size_t> dims) {
        std::ranges::sort(dims);
        return std::ranges::adjacent_find(dims) != dims.end();
    };
    if (hasTwice(from) || hasTwice(to))
        return refused("bad_argument",
                       fmt::format("movedim: repeated dim in `{}` ({})", hasTwice(from) ? "source" : "destination",
                                   sizesText(hasTwice(from) ? source : destination)));
    if (rank == 0)
        return view;
    std::vector<std::int64_t> order(rank, -1);
    std::vector<bool> used(rank);
    for (std::size_t i = 0; i < from.size(); ++i) {
        order[to[i]] = std::int64_t(from[i]);
        used[from[i]] = true;
    }
    std::size_t next = 0;
    for (std::int64_t& one : order) {
        if (one >= 0)
            continue;
        while (used[next])
            ++next;
        one = std::int64_t(next++);
    }
    return permuted(view, order);
}

Result<TensorView> sliced(const TensorView& view, std::int64_t dim, std::optional<std::int64_t> start,
                          std::optional<std::int64_t> end, std::int64_t step)
{
    if (view.rank() == 0)
        return refused("bad_argument", "slice() cannot be applied to a 0-dim tensor.");
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    if (step <= 0)
        return refused("bad_argument", "slice step must be positive");
    const std::int64_t size = view.size[d];
    const auto clamped = [size](std::int64_t at, std::int64_t least) {
        return std::clamp(at < 0 ? at + size : at, least, size);
    };
    const std::int64_t first = clamped(start.value_or(0), 0);
    const std::int64_t last = std::max(first, clamped(end.value_or(INT64_MAX), 0));
    TensorView result = view;
    MEMSCAPE_TRY(before, product(first, view.stride[d]));
    MEMSCAPE_TRY(stride, product(view.stride[d], step));
    result.offset += before;
    result.size[d] = (last - first) / step + ((last - first) % step != 0);
    result.stride[d] = stride;
    return result;
}

Result<TensorView> narrowed(const TensorView& view, std::int64_t dim, std::int64_t start, std::int64_t length)
{
    if (view.rank() == 0)
        return refused("bad_argument", "narrow() cannot be applied to a 0-dim tensor.");
    if (length < 0)
        return refused("bad_argument", "narrow(): length must be non-negative.");
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    const std::int64_t size = view.size[d];
    if (start < -size || start > size)
        return refused(
            "index_range",
            fmt::format("start out of range (expected to be in range of [{}, {}], but got {})", -size, size, start));
    const std::int64_t first = start < 0 ? start + size : start;
    if (first > size - length)
        return refused("index_range",
                       fmt::format("start ({}) + length ({}) exceeds dimension size ({}).", first, length, size));
    return sliced(view, std::int64_t(d), first, first + length, 1);
}

Result<TensorView> selected(const TensorView& view, std::int64_t dim, std::int64_t index)
{
    if (view.rank() == 0)
        return refused("bad_argument", "select() cannot be applied to a 0-dim tensor.");
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    const std::int64_t size = view.size[d];
    if (index < -size || index >= size)
        return refused("index_range",
                       fmt::format("select(): index {} out of range for tensor of size {} at dimension {}", index,
                                   sizesText(view.size), d));
    TensorView result = view;
    result.offset += (index < 0 ? index + size : index) * view.stride[d];
    erase(result, d);
    return result;
}

Result<TensorView> expanded(const TensorView& view, const Sizes& sizes)
{
    if (sizes.size() < view.size.size())
        return refused("expand_mismatch",
                       fmt::format("expand(torch.FloatTensor{{{}}}, size={}): the number of sizes provided ({}) "
                                   "must be greater or equal to the number of dimensions in the tensor ({})",
                                   sizesText(view.size), sizesText(sizes), sizes.size(), view.size.size()));
    TensorView result = view;
    result.size = sizes;
    result.stride.assign(sizes.size(), 0);
    const std::size_t leading = sizes.size() - view.size.size();
    for (std::size_t i = sizes.size(); i-- > 0;) {
        const bool exists = i >= leading;
        std::int64_t size = exists ? view.size[i - leading] : 1;
        if (sizes[i] == -1 && !exists)
            return refused("expand_mismatch",
                           fmt::format("The expanded size of the tensor (-1) isn't allowed in a leading, "
                                       "non-existing dimension {}",
                                       i));
        if (sizes[i] != -1 && sizes[i] != size && size != 1)
            return refused("expand_mismatch",
                           fmt::format("The expanded size of the tensor ({}) must match the existing size ({}) "
                                       "at non-singleton dimension {}.  Target sizes: {}.  Tensor sizes: {}",
                                       sizes[i], size, i, sizesText(sizes), sizesText(view.size)));
        if (sizes[i] < -1)
            return refused("expand_mismatch",
                           fmt::format("The expanded size of the tensor ({}) isn't allowed: it is negative", sizes[i]));
        if (sizes[i] != -1 && sizes[i] != size)
            size = sizes[i];
        else if (exists)
            result.stride[i] = view.stride[i - leading];
        else if (view.rank() > 0) // a new dimension of size 1 lies before the next
            result.stride[i] = result.size[i + 1] * result.stride[i + 1];
        result.size[i] = size;
    }
    return result;
}

Result<TensorView> unsqueezed(const TensorView& view, std::int64_t dim)
{
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank() + 1));
    TensorView result = view;
    const std::int64_t stride = d == view.size.size() ? 1 : view.size[d] * view.stride[d];
    result.size.insert(result.size.begin() + std::ptrdiff_t(d), 1);
    result.stride.insert(result.stride.begin() + std::ptrdiff_t(d), stride);
    return result;
}

Result<TensorView> squeezed(const TensorView& view, std::optional<std::int64_t> dim)
{
    TensorView result = view;
    if (dim) {
        MEMSCAPE_TRY(d, wrappedDimension(*dim, view.rank()));
        if (view.rank() > 0 && view.size[d] == 1)
            erase(result, d);
        return result;
    }
    for (std::size_t i = view.size.size(); i-- > 0;) {
        if (view.size[i] == 1)
            erase(result, i);
    }
    return result;
}

Result<TensorView> unfolded(const TensorView& view, std::int64_t dim, std::int64_t size, std::int64_t step)
{
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    const std::int64_t most = view.rank() == 0 ? 1 : view.size[d];
    if (size < 0)
        return refused("bad_argument", fmt::format("size is {} but must be >= 0", size));
    if (size > most)
        return refused("index_range",
                       fmt::format("maximum size for tensor at dimension {} is {} but size is {}", d, most, size));
    if (step <= 0)
        return refused("bad_argument", fmt::format("step is {} but must be > 0", step));
    TensorView result = view;
    const std::int64_t stride = view.rank() == 0 ? 1 : view.stride[d];
    if (view.rank() > 0) {
        MEMSCAPE_TRY(distance, product(step, stride));
        result.size[d] = (most - size) / step + 1;
        result.stride[d] = distance;
    }
    result.size.push_back(size);
    result.stride.push_back(stride);
    return result;
}

Result<TensorView> diagonal(const TensorView& view, std::int64_t offset, std::int64_t dim1, std::int64_t dim2)
{
    MEMSCAPE_TRY(a, wrappedDimension(dim1, view.rank()));
    MEMSCAPE_TRY(b, wrappedDimension(dim2, view.rank()));
    if (a == b)
        return refused("bad_argument", fmt::format("diagonal dimensions cannot be identical {}, {}", dim1, dim2));
    std::int64_t length = 0;
    if (offset >= 0)
        length = offset >= view.size[b] ? 0 : std::min(view.size[a], view.size[b] - offset);
    else
        length = offset <= -view.size[a] ? 0 : std::min(view.size[a] + offset, view.size[b]);
    TensorView result = view;
    if (length > 0)
        result.offset += offset >= 0 ? offset * view.stride[b] : -offset * view.stride[a];
    erase(result, std::max(a, b));
    erase(result, std::min(a, b));
    result.size.push_back(length);
    result.stride.push_back(view.stride[a] + view.stride[b]);
    return result;
}

Result<TensorView> asStrided(const TensorView& view, const Sizes& size, const Sizes& stride,
                             std::optional<std::int64_t> offset, std::int64_t itemBytes)
{
    if (size.size() != stride.size())
        return refused("bad_argument", "mismatch in length of strides and shape");
    for (const std::int64_t one : stride) {
        if (one < 0)
            return refused("bad_argument",
                           fmt::format("as_strided: Negative strides are not supported at the moment, got strides: {}",
                                       sizesText(stride)));
    }
    const std::int64_t first = offset.value_or(view.offset);
    if (first < 0)
        return refused("bad_argument", fmt::format("Tensor: invalid storage offset {}", first));
    std::int64_t end = 1;
    bool isEmpty = false;
    for (std::size_t i = 0; i < size.size(); ++i) {
        if (size[i] < 0)
            return refused(
                "bad_argument",
                fmt::format("Trying to create tensor with negative dimension {}: {}", size[i], sizesText(size)));
        isEmpty = isEmpty || size[i] == 0;
        MEMSCAPE_TRY(reach, product(stride[i], std::max<std::int64_t>(size[i] - 1, 0)));
        MEMSCAPE_SET(end, sum(end, reach));
    }
    MEMSCAPE_TRY(needed, sum(end, first));
    MEMSCAPE_TRY(bytes, product(needed, itemBytes));
    if (!isEmpty && needed > view.storage)
        return refused("storage_oob",
                       fmt::format("setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a "
                                   "storage size of {} are out of bounds for storage of size {}",
                                   sizesText(size), sizesText(stride), first, itemBytes, bytes,
                                   view.storage * itemBytes));
    return TensorView{size, stride, first, view.storage};
}

Result<TensorView> chunkOf(const TensorView& view, std::int64_t chunks, std::int64_t dim, std::int64_t index)
{
    if (view.rank() == 0)
        return refused("bad_argument", "chunk expects at least a 1-dimensional tensor");
    if (chunks <= 0)
        return refused("bad_argument", fmt::format("chunk expects `chunks` to be greater than 0, got: {}", chunks));
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    const std::int64_t size = view.size[d];
    const std::int64_t part = size / chunks + (size % chunks != 0);
    const std::int64_t parts = part == 0 ? chunks : std::max<std::int64_t>(1, size / part + (size % part != 0));
    if (index < -parts || index >= parts)
        return refused("index_range", "tuple index out of range");
    const std::int64_t first = (index < 0 ? index + parts : index) * part;
    return narrowed(view, std::int64_t(d), first, std::min(part, size - first));
}

Result<TensorView> viewed(const TensorView& view, const Sizes& shape)
{
    MEMSCAPE_TRY(inferred, inferredShape(shape, view.elements()));
    TensorView result = view;
    if (!viewStrides(view, inferred, result.stride))
        return refused("view_incompatible",
                       "view size is not compatible with input tensor's size and stride (at least one dimension "
                       "spans across two contiguous subspaces). Use .reshape(...) instead.");
    result.size = std::move(inferred);
    return result;
}

} // namespace memscape
