// SPDX-License-Identifier: Apache-2.0
// What the course notes say about contiguity and layouts, with this tensor's own answer beside it.
#include "core/claims/claim_quotes.h"
#include "core/experiments/common/judged_number.h"
#include "core/experiments/layout/layout.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memscape {

namespace {

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
    return quotedClaim("contiguity-breaking",
                       kept.empty()         ? "holds for this tensor"
                           : broken.empty() ? "does not hold for this tensor: none of them breaks it"
                                            : "does not hold for all: a cut of the slowest dimension stays contiguous",
                       fmt::format("of this tensor {} stay contiguous; {}",
                                   kept.empty() ? std::string("none") : fmt::format("{}", fmt::join(kept, ", ")),
                                   broken.empty() ? std::string("none is broken")
                                                  : fmt::format("{} do not", fmt::join(broken, ", "))));
}

std::optional<Claim> restoringClaim(const LayoutCase& asked)
{
    const auto cloned = after(asked.view, "clone()");
    if (!cloned || asked.view.isContiguous())
        return {};
    return quotedClaim("contiguity-restoring",
                       cloned->isContiguous() ? "holds"
                                              : "does not hold for clone() of a dense tensor, which keeps its strides",
                       fmt::format("clone() of the result has strides {}, contiguous() {}", sizesText(cloned->stride),
                                   sizesText(asked.dense().stride)));
}

Claim strideClaim(const LayoutCase& asked)
{
    Sizes bytes = asked.view.stride;
    for (std::int64_t& one : bytes)
        one *= asked.itemBytes();
    return quotedClaim("stride-bytes",
                       asked.itemBytes() == 1 ? "holds for elements of one byte, in PyTorch as in NumPy"
                                              : "does not hold in PyTorch, which counts elements; it does in NumPy",
                       fmt::format("here x.stride() is {} in PyTorch and x.strides {} in NumPy",
                                   sizesText(asked.view.stride), sizesText(bytes)));
}

std::optional<Claim> speedClaim(const LayoutAnswer& answer, const Measurement& measured)
{
    if (!answer.asked.needsCopy() || answer.dense.seconds <= 0)
        return {};
    const JudgedNumber view = judgedNumber(measured, "view_time", answer.view.seconds);
    const JudgedNumber dense = judgedNumber(measured, "contiguous_time", answer.dense.seconds);
    const JudgedNumber copy = judgedNumber(measured, "copy_time", answer.copy.seconds);
    // Times of one side only: a ratio of a measured to a predicted one would judge the model.
    const bool isMeasured = view.isMeasured && dense.isMeasured && copy.isMeasured && dense.value > 0;
    const double ratio = isMeasured ? view.value / dense.value : answer.view.seconds / answer.dense.seconds;
    const double pays = isMeasured ? paysAfter(view.value, dense.value, copy.value)
                                   : paysAfter(answer.view.seconds, answer.dense.seconds, answer.copy.seconds);
    return quotedClaim("contiguous-faster",
                       !(ratio > 1.05) ? "does not hold for this walk"
                           : pays <= double(answer.asked.reads)
                           ? "holds for this walk and its reads"
                           : "holds for this walk, but the copy costs more than these reads save",
                       fmt::format("one pass through the view takes {} × that over a contiguous copy ({}); the copy {}",
                                   quantityText(ratio, Unit::One), isMeasured ? "measured" : "predicted",
                                   std::isfinite(pays) ? fmt::format("pays off after {} reads", pays)
                                                       : std::string("never pays off in this order")));
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
    const double gain = slow->seconds / fast->seconds, saved = slow->seconds - fast->seconds;
    return quotedClaim(
        "channels-last",
        gain < 1.05 ? "does not hold for reading this tensor pixel by pixel"
            : saved < conversion->seconds
            ? "holds for reading only while the layout is kept: one conversion cancels the gain"
            : gain <= 1.55 ? "holds for reading this tensor pixel by pixel"
                           : "holds for reading this tensor pixel by pixel, which gains more; no convolution is run",
        fmt::format("predicted: reading pixel by pixel takes {} from NCHW ({} sectors a request) and {} from NHWC; the "
                    "conversion {}",
                    secondsText(slow->seconds), quantityText(requests->sectors, Unit::One), secondsText(fast->seconds),
                    secondsText(conversion->seconds)));
}

} // namespace

std::vector<Claim> layoutClaims(const Device& device, const LayoutAnswer& answer, const Measurement& measured)
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
    add(speedClaim(answer, measured));
    add(channelsClaim(device, answer.asked));
    return claims;
}

} // namespace memscape
