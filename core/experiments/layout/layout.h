// SPDX-License-Identifier: Apache-2.0
// `layout` as its callers see it: the tensor and the operations that its parameters name, the walk over
// the result, and what reading and copying it costs.
#pragma once

#include "core/access/views/view_step.h"
#include "core/experiment/experiment.h"
#include "core/network/dtype.h"
#include "core/timing/layout_time.h"

namespace memscape {

/// What the parameters of `layout` say.
struct LayoutCase
{
    TensorView base;
    DType dtype = DType::Float32;
    std::vector<ViewStep> steps;
    TensorView view; ///< after the last step
    WalkOrder order = WalkOrder::LastFastest;
    std::int64_t reads = 1;
    int version = 0;

    std::int64_t itemBytes() const { return elementBytes(dtype); }
    TensorView dense() const; ///< view.contiguous()
    bool needsCopy() const { return !view.isContiguous(); }
    TensorWalk walk() const { return walkOf(view, order, itemBytes()); }
    TensorWalk denseWalk() const { return walkOf(dense(), order, itemBytes()); }
    /// What contiguous() walks: the target in the order in which it lies.
    TensorWalk copyWalk() const { return walkOf(view, WalkOrder::LastFastest, itemBytes()); }
    std::int64_t copiedBytes() const; ///< of the steps
};

/// Errors: shape.*, layout.*, views.*, each with its place.
Result<LayoutCase> layoutCase(const Parameters& parameters);
// What each choice of the schema is.
DType layoutDType(const Parameters& parameters);
WalkOrder walkOrder(const Parameters& parameters);
MemoryFormat storedOrder(const Parameters& parameters, std::size_t rank); ///< of a tensor with that many dimensions

struct LayoutAnswer
{
    LayoutCase asked;
    WalkRequests requests;
    double lines = 0, pages = 0; ///< distinct, of the view
    WalkTime view, dense;        ///< one pass each
    CopyTime copy;               ///< zero when nothing must be copied

    double viewTotal() const { return double(asked.reads) * view.seconds; }
    double denseTotal() const { return copy.seconds + double(asked.reads) * dense.seconds; }
};
/// Errors: those of layoutCase(), predict.device.
Result<LayoutAnswer> answerLayout(const Device& device, const Parameters& parameters);

Schema layoutSchema();
/// A tensor and operations worth looking at.
struct LayoutPreset
{
    std::string label, shape, views, walk;
    std::string lesson; ///< what to look at
};
const std::vector<LayoutPreset>& layoutPresets();

/// Reads after which the copy has paid for itself: copy / (view − dense) for one pass each, at least 1;
/// infinity when it never does. 0 when there is nothing to copy.
double paysAfter(double viewSeconds, double denseSeconds, double copySeconds);

// The parts of the prediction.
/// What is counted, the same for a prediction and a measurement.
Figures countedLayoutFigures(const Device& device, const LayoutAnswer& answer);
/// Misses of each simulated cache in one pass through the view: "l1_misses". Predictions: a processor may say
/// otherwise.
Figures missedLayoutFigures(const LayoutAnswer& answer);
Figures timedLayoutFigures(const Device& device, const LayoutAnswer& answer);
Json layoutDetail(const Device& device, const LayoutAnswer& answer);
/// One step as JSON: op, args, ok, error, message, size, stride, offset, contiguous, channels_last, copied …
Json stepJson(const ViewStep& step, std::int64_t itemBytes);
std::vector<Claim> layoutClaims(const Device& device, const LayoutAnswer& answer, const Measurement& measured);
/// What a version of the copy teaches.
std::string copyLesson(bool isGpu, int version);

} // namespace memscape
