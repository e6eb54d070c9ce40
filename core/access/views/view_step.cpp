// SPDX-License-Identifier: Apache-2.0
// One operation after the other: which rule it is, and what the copies leave behind.
#include "core/access/views/view_step.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The view after an operation, and whether it has a new storage.
struct Made
{
    TensorView view;
    bool copied = false;
};

Result<Made> asView(Result<TensorView> view)
{
    if (!view)
        return fail(std::move(view).error());
    return Made{std::move(*view), false};
}

Result<Made> asCopy(const Sizes& size, Sizes stride)
{
    MEMSCAPE_TRY(view, freshTensor(size, std::move(stride)));
    return Made{std::move(view), true};
}

Result<Made> rowMajorCopy(const Sizes& size)
{
    return asCopy(size, stridesOf(size, MemoryFormat::Contiguous));
}

Result<Made> inFormat(const TensorView& view, MemoryFormat format)
{
    const bool is3d = format == MemoryFormat::ChannelsLast3d;
    if (format != MemoryFormat::Contiguous && view.rank() != (is3d ? 5 : 4))
        return refused(
            "bad_argument",
            fmt::format("required rank {} tensor to use channels_last{} format", is3d ? 5 : 4, is3d ? "_3d" : ""));
    return asCopy(view.size, stridesOf(view.size, format));
}

Result<Made> contiguous(const TensorView& view, const Argument& format)
{
    if (format.isPreserve)
        return refused("bad_argument", "preserve memory format is unsupported by the contiguous operator");
    if (view.is(format.format))
        return Made{view, false};
    return inFormat(view, format.format);
}

Result<Made> clone(const TensorView& view, const Argument& format)
{
    return format.isPreserve ? asCopy(view.size, preservedStrides(view)) : inFormat(view, format.format);
}

Result<Made> reshaped(const TensorView& view, const Sizes& shape)
{
    MEMSCAPE_TRY(inferred, inferredShape(shape, view.elements()));
    TensorView result = view;
    if (!viewStrides(view, inferred, result.stride))
        return rowMajorCopy(inferred);
    result.size = std::move(inferred);
    return Made{std::move(result), false};
}

Result<Made> flattened(const TensorView& view, std::int64_t start, std::int64_t end)
{
    MEMSCAPE_TRY(first, wrappedDimension(start, view.rank()));
    MEMSCAPE_TRY(last, wrappedDimension(end, view.rank()));
    if (first > last)
        return refused("bad_argument", "flatten() has invalid args: start_dim cannot come after end_dim");
    if (view.rank() == 0)
        return reshaped(view, {1});
    if (first == last)
        return Made{view, false};
    Sizes shape(view.size.begin(), view.size.begin() + std::ptrdiff_t(first));
    std::int64_t joined = 1;
    for (std::size_t i = first; i <= last; ++i)
        joined *= view.size[i];
    shape.push_back(joined);
    shape.insert(shape.end(), view.size.begin() + std::ptrdiff_t(last) + 1, view.size.end());
    return reshaped(view, shape);
}

Result<Made> unflattened(const TensorView& view, std::int64_t dim, const Sizes& sizes)
{
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    if (sizes.empty())
        return refused("bad_argument", "unflatten: sizes must be non-empty");
    if (view.rank() == 0)
        return refused("bad_argument", "unflatten got an unexpected error: a 0-dim tensor has no dimension to split");
    auto inferred = inferredShape(sizes, view.size[d]);
    if (!inferred && inferred.error().code == "torch.bad_numel")
        return refused("bad_numel",
                       fmt::format("unflatten: Provided sizes {} don't multiply up to the size of dim {} ({}) in the "
                                   "input tensor",
                                   sizesText(sizes), d, view.size[d]));
    if (!inferred)
        return fail(std::move(inferred).error());
    Sizes shape = view.size;
    shape.erase(shape.begin() + std::ptrdiff_t(d));
    shape.insert(shape.begin() + std::ptrdiff_t(d), inferred->begin(), inferred->end());
    return asView(viewed(view, shape));
}

Result<Made> flipped(const TensorView& view, const Sizes& dims)
{
    std::vector<bool> seen(std::max<std::size_t>(view.size.size(), 1));
    for (const std::int64_t dim : dims) {
        MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
        if (seen[d])
            return refused("bad_argument", fmt::format("dim {} appears multiple times in the list of dims", d));
        seen[d] = true;
    }
    return asCopy(view.size, preservedStrides(view));
}

Result<Made> repeated(const TensorView& view, const Sizes& repeats)
{
    if (repeats.size() < view.size.size())
        return refused("bad_argument",
                       "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    Sizes size = repeats;
    std::int64_t elements = 1;
    const std::size_t leading = repeats.size() - view.size.size();
    for (std::size_t i = 0; i < repeats.size(); ++i) {
        if (repeats[i] < 0)
            return refused("bad_argument",
                           fmt::format("Trying to create tensor with negative dimension {}: {}",
                                       std::int64_t(std::uint64_t(repeats[i]) // wraps around, as PyTorch's does
                                                    * (i < leading ? 1 : std::uint64_t(view.size[i - leading]))),
                                       sizesText(repeats)));
        if ((i >= leading && __builtin_mul_overflow(repeats[i], view.size[i - leading], &size[i]))
            || __builtin_mul_overflow(elements, std::max<std::int64_t>(size[i], 1), &elements))
            return fail("layout.elements", "the repeated tensor is beyond 64 bits", "repeat less often");
    }
    return rowMajorCopy(size);
}

Result<Made> summed(const TensorView& view, std::int64_t dim, bool keeps)
{
    MEMSCAPE_TRY(d, wrappedDimension(dim, view.rank()));
    Sizes size = view.size;
    if (!size.empty() && keeps)
        size[d] = 1;
    else if (!size.empty())
        size.erase(size.begin() + std::ptrdiff_t(d));
    return rowMajorCopy(size);
}

Result<Made> elementwise(const TensorView& view, const TensorView& other)
{
    const TensorView* const inputs[] = {&other, &view};
    return asCopy(view.size, elementwiseStrides(inputs));
}

/// x.T.contiguous().T + x
Result<Made> plusMirrored(const TensorView& view)
{
    MEMSCAPE_TRY(other, freshTensor(view.size, stridesOf(view.size, MemoryFormat::ColumnMajor)));
    TensorView mirrored = view;
    std::ranges::reverse(mirrored.size);
    std::ranges::reverse(mirrored.stride);
    return elementwise(view, mirrored.isContiguous() ? view : other);
}

Result<Made> matrixTransposed(const TensorView& view)
{
    if (view.rank() > 2)
        return refused("bad_argument",
                       fmt::format("t() expects a tensor with <= 2 dimensions, but self is {}D", view.rank()));
    return view.rank() < 2 ? Result<Made>(Made{view, false}) : asView(transposed(view, 0, 1));
}

using Rule = std::function<Result<Made>(const TensorView&, const ViewOperation&, std::int64_t)>;

std::map<std::string, Rule, std::less<>> makeRules()
{
    using View = const TensorView&;
    using Call = const ViewOperation&;
    const Argument plain, preserve{{}, {}, {}, true};
    const Argument last{{}, {}, MemoryFormat::ChannelsLast, {}}, last3d{{}, {}, MemoryFormat::ChannelsLast3d, {}};
    std::map<std::string, Rule, std::less<>> rules{
        {"transpose", [](View v, Call c, auto) { return asView(transposed(v, c.integer(0), c.integer(1))); }},
        {"swap_last_two", [](View v, Call, auto) { return asView(transposed(v, -2, -1)); }},
        {"t", [](View v, Call, auto) { return matrixTransposed(v); }},
        {"permute", [](View v, Call c, auto) { return asView(permuted(v, c.list(0))); }},
        {"movedim", [](View v, Call c, auto) { return asView(movedDimensions(v, c.list(0), c.list(1))); }},
        {"narrow", [](View v, Call c, auto) { return asView(narrowed(v, c.integer(0), c.integer(1), c.integer(2))); }},
        {"select", [](View v, Call c, auto) { return asView(selected(v, c.integer(0), c.integer(1))); }},
        {"slice",
         [](View v, Call c, auto) {
             return asView(sliced(v, c.integer(0), c.arguments[1].integer, c.arguments[2].integer, c.integer(3)));
         }},
        {"expand", [](View v, Call c, auto) { return asView(expanded(v, c.list(0))); }},
        {"unsqueeze", [](View v, Call c, auto) { return asView(unsqueezed(v, c.integer(0))); }},
        {"squeeze", [](View v, Call c, auto) { return asView(squeezed(v, c.arguments[0].integer)); }},
        {"view", [](View v, Call c, auto) { return asView(viewed(v, c.list(0))); }},
        {"reshape", [](View v, Call c, auto) { return reshaped(v, c.list(0)); }},
        {"flatten", [](View v, Call c, auto) { return flattened(v, c.integer(0), c.integer(1)); }},
        {"unflatten", [](View v, Call c, auto) { return unflattened(v, c.integer(0), c.list(1)); }},
        {"unfold", [](View v, Call c, auto) { return asView(unfolded(v, c.integer(0), c.integer(1), c.integer(2))); }},
        {"diagonal",
         [](View v, Call c, auto) { return asView(diagonal(v, c.integer(0), c.integer(1), c.integer(2))); }},
        {"as_strided",
         [](View v, Call c, std::int64_t bytes) {
             return asView(asStrided(v, c.list(0), c.list(1), c.arguments[2].integer, bytes));
         }},
        {"chunk", [](View v, Call c, auto) { return asView(chunkOf(v, c.integer(0), c.integer(1), c.integer(2))); }},
        {"flip", [](View v, Call c, auto) { return flipped(v, c.list(0)); }},
        {"contiguous", [](View v, Call c, auto) { return contiguous(v, c.arguments[0]); }},
        {"contiguous_cl", [last](View v, Call, auto) { return contiguous(v, last); }},
        {"contiguous_cl3d", [last3d](View v, Call, auto) { return contiguous(v, last3d); }},
        {"clone", [](View v, Call c, auto) { return clone(v, c.arguments[0]); }},
        {"empty_like", [preserve](View v, Call, auto) { return clone(v, preserve); }},
        {"repeat", [](View v, Call c, auto) { return repeated(v, c.list(0)); }},
        {"neg", [](View v, Call, auto) { return elementwise(v, v); }},
        {"sum_dim", [](View v, Call c, auto) { return summed(v, c.integer(0), c.integer(1) != 0); }},
        {"add_self_t", [](View v, Call, auto) { return plusMirrored(v); }},
        {"add_contig",
         [](View v, Call, auto) -> Result<Made> {
             MEMSCAPE_TRY(other, freshTensor(v.size));
             const TensorView* const inputs[] = {&v, &other};
             return asCopy(v.size, elementwiseStrides(inputs));
         }},
    };
    rules.emplace("squeeze_dim", rules.at("squeeze"));
    return rules;
}

/// What this program does not draw or count, however well PyTorch would.
Result<void> checkLimits(const TensorView& view)
{
    auto fresh = freshTensor(view.size);
    return fresh ? Result<void>() : fail(std::move(fresh).error());
}

} // namespace

Result<ViewStep> apply(const TensorView& view, const ViewOperation& operation, std::int64_t itemBytes)
{
    static const std::map<std::string, Rule, std::less<>> rules = makeRules();
    ViewStep step{operation, true, {}, {}, view, false, 0};
    auto made = rules.find(operation.name)->second(view, operation, itemBytes);
    if (made) {
        if (auto checked = checkLimits(made->view); !checked)
            made = fail(std::move(checked).error());
    }
    if (made) {
        step.copied = made->copied;
        step.written = made->copied ? made->view.storage : 0;
        step.view = std::move(made->view);
        return step;
    }
    Error error = std::move(made).error();
    constexpr std::string_view prefix = "torch.";
    if (!error.code.starts_with(prefix)) {
        error.place = fmt::format("views, character {}", operation.place + 1);
        error.message = fmt::format("{}: {}", viewText(operation), error.message);
        return fail(std::move(error));
    }
    step.ok = false;
    step.error = error.code.substr(prefix.size());
    step.message = std::move(error.message);
    return step;
}

Result<std::vector<ViewStep>> applyAll(TensorView view, const std::vector<ViewOperation>& operations,
                                       std::int64_t itemBytes)
{
    std::vector<ViewStep> steps;
    for (const ViewOperation& operation : operations) {
        MEMSCAPE_TRY(step, apply(view, operation, itemBytes));
        view = step.view;
        steps.push_back(std::move(step));
    }
    return steps;
}

} // namespace memscape
