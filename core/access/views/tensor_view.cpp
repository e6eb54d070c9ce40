// SPDX-License-Identifier: Apache-2.0
#include "core/access/views/tensor_view.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memscape {

namespace {

bool isContiguousInOrder(const TensorView& view, std::initializer_list<std::size_t> order)
{
    std::int64_t expected = 1;
    for (const std::size_t i : order) {
        if (view.size[i] == 1)
            continue;
        if (view.stride[i] != expected)
            return false;
        expected *= view.size[i];
    }
    return true;
}

/// Strides of a dense tensor whose dimensions are filled in that order. Like PyTorch's, sizes of 0
/// count as they are: the strides behind them become 0.
Sizes stridesInOrder(const Sizes& size, std::initializer_list<std::size_t> order)
{
    Sizes stride(size.size());
    std::int64_t next = 1;
    for (const std::size_t i : order) {
        stride[i] = next;
        next *= size[i];
    }
    return stride;
}

Sizes columnMajor(const Sizes& size)
{
    Sizes stride(size.size());
    std::int64_t next = 1;
    for (std::size_t i = 0; i < size.size(); ++i) {
        stride[i] = next;
        next *= std::max<std::int64_t>(size[i], 1);
    }
    return stride;
}

Sizes rowMajor(const Sizes& size)
{
    Sizes stride(size.size());
    std::int64_t next = 1;
    for (std::size_t i = size.size(); i-- > 0;) {
        stride[i] = next;
        next *= std::max<std::int64_t>(size[i], 1);
    }
    return stride;
}

/// Insertion sort as TensorIterator does it: `compare(a, b)` is negative when a comes first, positive
/// when b must, 0 when the two do not say.
template <typename Compare> std::vector<std::size_t> orderOf(std::size_t rank, Compare&& compare)
{
    std::vector<std::size_t> order(rank); // fastest first
    std::iota(order.rbegin(), order.rend(), std::size_t(0));
    for (std::size_t i = 1; i < rank; ++i) {
        std::size_t moving = i;
        for (std::size_t j = i; j-- > 0;) {
            const int compared = compare(order[j], order[moving]);
            if (compared < 0)
                break;
            if (compared > 0) {
                std::swap(order[j], order[moving]);
                moving = j;
            }
        }
    }
    return order;
}

Result<void> validateSizes(const Sizes& size)
{
    if (size.size() > rankLimit)
        return fail("layout.rank",
                    fmt::format("a tensor here has at most {} dimensions, not {}", rankLimit, size.size()),
                    "remove dimensions of size 1, or join some");
    std::int64_t product = 1;
    for (const std::int64_t one : size) {
        if (one < 0)
            return fail("layout.size", fmt::format("a dimension cannot have the size {}", one), "sizes are 0 or more");
        if (__builtin_mul_overflow(product, std::max<std::int64_t>(one, 1), &product) || product > elementLimit)
            return fail("layout.elements", fmt::format("{} has more than 2^53 elements", sizesText(size)),
                        "use smaller sizes");
    }
    return {};
}

} // namespace

std::int64_t TensorView::elements() const
{
    std::int64_t product = 1;
    for (const std::int64_t one : size)
        product *= one;
    return product;
}

bool TensorView::isContiguous() const
{
    if (isEmpty())
        return true;
    std::int64_t expected = 1;
    for (std::size_t i = size.size(); i-- > 0;) {
        if (size[i] == 1)
            continue;
        if (stride[i] != expected)
            return false;
        expected *= size[i];
    }
    return true;
}

bool TensorView::isChannelsLast() const
{
    return rank() == 4 && isContiguousInOrder(*this, {1, 3, 2, 0});
}

bool TensorView::isChannelsLast3d() const
{
    return rank() == 5 && isContiguousInOrder(*this, {1, 4, 3, 2, 0});
}

bool TensorView::is(MemoryFormat format) const
{
    switch (format) {
    case MemoryFormat::Contiguous: return isContiguous();
    case MemoryFormat::ChannelsLast: return isChannelsLast();
    case MemoryFormat::ChannelsLast3d: return isChannelsLast3d();
    case MemoryFormat::ColumnMajor: break;
    }
    TensorView mirrored = *this;
    std::ranges::reverse(mirrored.size);
    std::ranges::reverse(mirrored.stride);
    return mirrored.isContiguous();
}

bool TensorView::isDense() const
{
    if (isContiguous() || isChannelsLast() || isChannelsLast3d())
        return true;
    if (rank() == 1)
        return size[0] < 2 || stride[0] == 1;
    std::vector<std::size_t> order(size.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::ranges::sort(order, [this](std::size_t a, std::size_t b) {
        if (size[a] < 2)
            return false;
        return size[b] < 2 || stride[a] < stride[b];
    });
    std::int64_t expected = 1;
    for (const std::size_t i : order) {
        if (size[i] < 2)
            return true;
        if (stride[i] != expected)
            return false;
        expected *= size[i];
    }
    return true;
}

std::int64_t TensorView::extent() const
{
    if (isEmpty())
        return 0;
    std::int64_t last = offset;
    for (std::size_t i = 0; i < size.size(); ++i)
        last += (size[i] - 1) * stride[i];
    return last + 1;
}

Sizes stridesOf(const Sizes& size, MemoryFormat format)
{
    switch (format) {
    case MemoryFormat::ChannelsLast: return stridesInOrder(size, {1, 3, 2, 0});
    case MemoryFormat::ChannelsLast3d: return stridesInOrder(size, {1, 4, 3, 2, 0});
    case MemoryFormat::ColumnMajor: return columnMajor(size);
    case MemoryFormat::Contiguous: break;
    }
    return rowMajor(size);
}

Result<TensorView> freshTensor(const Sizes& size, Sizes stride)
{
    MEMSCAPE_CHECK(validateSizes(size));
    TensorView view{size, std::move(stride), 0, 0};
    view.storage = view.extent();
    return view;
}

Result<TensorView> freshTensor(const Sizes& size, MemoryFormat format)
{
    MEMSCAPE_CHECK(validateSizes(size));
    const std::size_t needed = format == MemoryFormat::ChannelsLast ? 4
        : format == MemoryFormat::ChannelsLast3d                    ? 5
                                                                    : size.size();
    if (size.size() != needed)
        return fail("layout.format", fmt::format("channels last needs {} dimensions, not {}", needed, size.size()),
                    "four are N, C, H, W; five are N, C, D, H, W");
    return freshTensor(size, stridesOf(size, format));
}

bool viewStrides(const TensorView& view, const Sizes& shape, Sizes& strides)
{
    if (view.size.empty()) {
        strides.assign(shape.size(), 1);
        return true;
    }
    if (view.isEmpty()) {
        strides = view.size == shape ? view.stride : rowMajor(shape);
        return true;
    }
    strides.assign(shape.size(), 0);
    std::size_t left = shape.size(); // new dimensions that have no stride yet
    std::int64_t base = view.stride.back(), chunk = 1, covered = 1;
    for (std::size_t i = view.size.size(); i-- > 0;) {
        chunk *= view.size[i];
        const bool ends = i == 0 || (view.size[i - 1] != 1 && view.stride[i - 1] != chunk * base);
        if (!ends)
            continue;
        while (left > 0 && (covered < chunk || shape[left - 1] == 1)) {
            strides[left - 1] = covered * base;
            covered *= shape[left - 1];
            --left;
        }
        if (covered != chunk)
            return false;
        if (i > 0) {
            base = view.stride[i - 1];
            chunk = covered = 1;
        }
    }
    return left == 0;
}

Sizes preservedStrides(const TensorView& view)
{
    if (view.isDense())
        return view.stride;
    const auto order = orderOf(view.size.size(), [&view](std::size_t a, std::size_t b) {
        if (view.stride[a] == 0 || view.stride[b] == 0)
            return 0;
        if (view.stride[a] != view.stride[b])
            return view.stride[a] < view.stride[b] ? -1 : 1;
        return view.size[a] > view.size[b] ? 1 : 0;
    });
    Sizes strides(view.size.size());
    std::int64_t next = 1;
    for (const std::size_t i : order) {
        strides[i] = next;
        next *= std::max<std::int64_t>(view.size[i], 1);
    }
    return strides;
}

Sizes elementwiseStrides(std::span<const TensorView* const> inputs)
{
    const TensorView& first = *inputs.front();
    const auto all = [inputs](auto&& holds) { return std::ranges::all_of(inputs, holds); };
    if (all([](const TensorView* one) { return one->isContiguous(); }))
        return rowMajor(first.size);
    if (all([](const TensorView* one) { return one->isChannelsLast(); }))
        return stridesOf(first.size, MemoryFormat::ChannelsLast);
    if (all([&](const TensorView* one) { return one->isDense() && one->stride == first.stride; }))
        return first.stride;
    const auto order = orderOf(first.size.size(), [&](std::size_t a, std::size_t b) {
        for (const TensorView* one : inputs) {
            if (one->stride[a] == 0 || one->stride[b] == 0)
                continue;
            if (one->stride[a] != one->stride[b])
                return one->stride[a] < one->stride[b] ? -1 : 1;
            if (first.size[a] > first.size[b])
                return 1;
        }
        return 0;
    });
    Sizes strides(first.size.size());
    std::int64_t next = 1;
    for (const std::size_t i : order) {
        strides[i] = next;
        next *= first.size[i];
    }
    return strides;
}

std::string sizesText(const Sizes& sizes)
{
    return fmt::format("[{}]", fmt::join(sizes, ", "));
}

} // namespace memscape
