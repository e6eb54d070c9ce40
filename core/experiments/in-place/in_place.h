// SPDX-License-Identifier: Apache-2.0
// `in-place` as its callers see it: what its parameters say, what autograd makes of it, and its figures, made of
// predicted or of measured numbers.
#pragma once

#include "core/experiment/experiment.h"
#include "core/experiments/in-place/in_place_functions.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// Where the input comes from.
enum class InPlaceInput {
    Leaf,    ///< it is a parameter
    View,    ///< of one
    Sum,     ///< x + 1, which saves nothing
    Linear,  ///< which saves its own inputs
    Sigmoid, ///< which saves its result
    Relu,    ///< the same
    Read     ///< a sum that a linear layer has read, and saved
};

/// What the parameters of `in-place` say.
struct InPlaceCase
{
    InPlaceOperation operation = InPlaceOperation::Relu;
    InPlaceInput input = InPlaceInput::Linear;
    bool gradients = true;
    std::uint64_t bytes = 0; ///< of the tensor, whole cache lines

    std::uint64_t elements() const { return bytes / sizeof(float); }
    bool hasOther() const { return hasOtherFactor(operation); }
};
InPlaceCase inPlaceCase(const Parameters& parameters);

/// What autograd says and keeps. Counts are of tensors of the input's size: input, result, factor, copy.
struct Overwriting
{
    std::string error;     ///< in PyTorch's words; empty: allowed
    std::string at = {};   ///< "call" or "backward"
    std::string rule = {}; ///< why, in ours
    bool copies = false;   ///< in place, autograd keeps a copy of the input, made before
    int outPeak = 0, inPeak = 0, outAfter = 0, inAfter = 0;

    bool isAllowed() const { return error.empty(); }
};
Overwriting overwriting(const InPlaceCase& asked);

/// A tensor of the input's size that is alive while the operation runs.
struct InPlaceTensor
{
    std::string name;        ///< "input", "result", "factor"; "copy": of the input, for backward
    bool overwrites = false; ///< the result in the input's memory
    bool isGiven = false;    ///< alive before the operation
    bool staysAlive = false; ///< after it, once the program's own names are gone
    bool isSaved = false;    ///< the operation keeps it for its backward
    bool wasSaved = false;   ///< a node of the graph had saved it before
    bool isOwned = false;    ///< something outside the graph keeps it: a parameter, a factor
};
std::vector<InPlaceTensor> inPlaceTensors(const InPlaceCase& asked, bool isInPlace);

/// Bytes that cross the memory bus where nothing stays in a cache.
struct MovedBytes
{
    double read = 0, fetched = 0, written = 0; ///< B; fetched: lines that are about to be overwritten

    double total() const { return read + fetched + written; }
};
MovedBytes movedBytes(const Device& device, const InPlaceCase& asked, bool isInPlace);

/// Seconds of one pass, measured with their band.
struct InPlaceTime
{
    double seconds = nan;
    std::optional<double> low = {}, high = {};
};
/// What is predicted or measured, out of place and in place.
struct InPlaceNumbers
{
    InPlaceTime outTime, inTime;
    double outPeak = 0, inPeak = 0; ///< B
};
/// The figures of both sides, without reasons.
Figures inPlaceFigures(const Device& device, const InPlaceCase& asked, const InPlaceNumbers& numbers);

/// The same predicted, with the reasons. Errors: predict.device.
Result<Figures> predictedInPlace(const Device& device, const InPlaceCase& asked);

} // namespace memscape
