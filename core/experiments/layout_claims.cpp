// SPDX-License-Identifier: Apache-2.0
// What the course notes say about contiguity and layouts, with this tensor's own answer beside it.
#include "core/experiments/layout.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memscape {

namespace {

constexpr const char* notes = "course notes";

/// The tensor after one operation; nothing where it is refused.
std::optional<TensorView> after(const TensorView& base, const std::string& text)
{
    const auto operations = parseViews(text);
    if (!operations)
        return {};
    const auto steps = applyAll(base, *operations);
    if (!steps || steps->empty() || !steps->back().ok)
        return {};
    return steps->back().view;
}

std::optional<Claim> breakingClaim(const TensorView& base)
{
    if (!base.isContiguous() || base.rank() < 2 || base.isEmpty())
        return {};
    std::vector<std::string> kept, broken;
    for (const char* text : {"transpose(0,1)", "select(0,0)", "select(-1,0)", "narrow(0,0,1)", "narrow(-1,0,1)"}) {
        if (const auto view = after(base, text))
            (view->isContiguous() ? kept : broken).push_back(text);
    }
    if (kept.empty())
        return {};
    return Claim{"Operations affecting contiguity: breaking: transpose, permute, select, narrow", notes,
                 "holds when it is not the slowest dimension that is cut",
                 fmt::format("of this tensor {} stay contiguous; {}", fmt::join(kept, ", "),
                             broken.empty() ? std::string("none is broken") : fmt::format("{} do not", fmt::join(broken, ", ")))};
}

std::optional<Claim> restoringClaim(const LayoutCase& asked)
{
    const auto cloned = after(asked.view, "clone()");
    if (!cloned || asked.view.isContiguous())
        return {};
    return Claim{"Restoring: .contiguous(), .clone()", notes,
                 cloned->isContiguous() ? "holds" : "does not hold for clone() of a dense tensor, which keeps its strides",
                 fmt::format("clone() of the result has strides {}, contiguous() {}", sizesText(cloned->stride),
                             sizesText(asked.dense().stride))};
}

Claim strideClaim(const LayoutCase& asked)
{
    Sizes bytes = asked.view.stride;
    for (std::int64_t& one : bytes)
        one *= asked.itemBytes();
    return {"Stride: number of bytes to jump to next element in each dimension", notes,
            "holds when it is NumPy's; PyTorch counts elements",
            fmt::format("here x.stride() is {} in PyTorch and x.strides {} in NumPy", sizesText(asked.view.stride), sizesText(bytes))};
}

std::optional<Claim> speedClaim(const LayoutAnswer& answer)
{
    if (!answer.asked.needsCopy() || answer.dense.seconds <= 0)
        return {};
    const double ratio = answer.view.seconds / answer.dense.seconds;
    const double pays = paysAfter(answer.view.seconds, answer.dense.seconds, answer.copy.seconds);
    return Claim{"Contiguous: faster operations, better cache locality, optimized GPU performance", notes,
                 ratio > 1.05 ? "holds when the copy is read often enough" : "does not hold for this walk",
                 fmt::format("one pass through the view takes {} × that over a contiguous copy; the copy {}",
                             quantityText(ratio, Unit::One),
                             std::isfinite(pays) ? fmt::format("pays after {} reads", pays) : std::string("never pays in this order"))};
}

/// Reading the channels of each pixel, from NCHW and from NHWC.
std::optional<Claim> channelsClaim(const Device& device, const LayoutCase& asked)
{
    if (asked.base.rank() != 4 || asked.base.isEmpty() || asked.base.size[1] < 2)
        return {};
    const auto first = freshTensor(asked.base.size);
    const auto last = freshTensor(asked.base.size, MemoryFormat::ChannelsLast);
    if (!first || !last)
        return {};
    const TensorWalk nchw = walkOf(*after(*first, "permute(0,2,3,1)"), WalkOrder::LastFastest, asked.itemBytes());
    const TensorWalk nhwc = walkOf(*after(*last, "permute(0,2,3,1)"), WalkOrder::LastFastest, asked.itemBytes());
    const auto slow = walkTime(device, nchw), fast = walkTime(device, nhwc);
    const auto conversion = copyTime(device, nchw, 0);
    const auto requests = walkRequests(nchw);
    if (!slow || !fast || !conversion || !requests)
        return {};
    return Claim{"NHWC (channels-last): better for modern GPU architectures; can be 20-50% faster for CNNs", notes,
                 "holds when kernels read channels together; converting at every layer eats it",
                 fmt::format("reading pixel by pixel takes {} from NCHW ({} sectors a request) and {} from NHWC; the conversion {}",
                             quantityText(slow->seconds, Unit::Second), quantityText(requests->sectors, Unit::One),
                             quantityText(fast->seconds, Unit::Second), quantityText(conversion->seconds, Unit::Second))};
}

} // namespace

std::vector<Claim> layoutClaims(const Device& device, const LayoutAnswer& answer)
{
    std::vector<Claim> claims;
    const auto add = [&claims](std::optional<Claim> claim) {
        if (claim)
            claims.push_back(std::move(*claim));
    };
    add(breakingClaim(answer.asked.base));
    add(restoringClaim(answer.asked));
    if (answer.asked.view.rank() > 0)
        add(strideClaim(answer.asked));
    add(speedClaim(answer));
    add(channelsClaim(device, answer.asked));
    return claims;
}

} // namespace memscape
