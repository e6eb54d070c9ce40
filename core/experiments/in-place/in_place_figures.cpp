// SPDX-License-Identifier: Apache-2.0
// Bytes and seconds of an elementwise operation on n bytes, out of place and in place, passes following each other.
//
//                         out of place                     in place
//     working set         2 n                              n          (+ n for another factor)
//     a host moves        n in, n fetched to be written    n in,      (a store needs its line: write-allocate)
//                         over, n out                      n out
//     a GPU moves         n in, n out                      n in, n out
//     time, host          as a copy                        as a write of n, which fetches a line and writes it back,
//                                                          and no less than two lines of a copy's three take
//     time, GPU           as a copy                        as a copy within half the working set
// A second factor is a read of n bytes beside it. Where autograd keeps a copy of the input, a copy comes first. Rates
// are those of the device by working set (core/timing/working_set.h); a pass is never shorter than its instructions:
// loads and stores from L1, and the arithmetic, counted in the kernels, at half the rate of operations in FP32 (one
// instruction a slot; a fused multiplication and addition counts as two operations and one slot).
#include "core/experiments/common/explain.h"
#include "core/experiments/in-place/in_place.h"

#include "core/timing/stride_time.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Vector instructions for an element beside load and store; of e^x: scaled, clamped, split by two additions and a
/// subtraction, six steps of its series, two for the power of two, one to join them.
int instructionsOf(InPlaceOperation operation)
{
    constexpr int exponential = 14;
    switch (operation) {
    case InPlaceOperation::AddScalar:
    case InPlaceOperation::MulScalar:
    case InPlaceOperation::MulMask:
    case InPlaceOperation::MulGate:
    case InPlaceOperation::Relu: return 1;
    case InPlaceOperation::LeakyRelu: return 3;
    case InPlaceOperation::Exp: return exponential;
    case InPlaceOperation::Sigmoid: return exponential + 2;
    case InPlaceOperation::Tanh:
    case InPlaceOperation::Silu: return exponential + 3;
    case InPlaceOperation::Gelu: return exponential + 7;
    }
    return 1;
}

struct ElementwisePass
{
    double workingSet = 0;                  ///< B
    double copy = 0, memory = 0, issue = 0; ///< s: of the copy that autograd keeps, of the operation
    double launch = 0;                      ///< s, all kernels
    double seconds() const { return launch + copy + std::max(memory, issue); }
};

ElementwisePass passOf(const Device& device, const InPlaceCase& asked, const Overwriting& rules, bool isInPlace)
{
    const auto n = double(asked.bytes);
    const int threads = device.isGpu() ? device.units : std::max(1, device.threads);
    const int tensors = (isInPlace ? 1 : 2) + asked.hasOther();
    ElementwisePass pass;
    const bool copies = isInPlace && rules.copies;
    pass.workingSet = n * (tensors + copies);
    const auto rate = [&](Operation operation) {
        return bandwidthOf(device, pass.workingSet, operation, threads).bytesPerSecond;
    };
    const double asCopy = 2 * n / rate(Operation::Copy);
    const bool writesOnly = isInPlace && !device.isGpu();
    pass.memory = (writesOnly ? std::max(n / rate(Operation::Write), asCopy * 2 / 3) : asCopy)
        + (asked.hasOther() ? n / rate(Operation::Read) : 0);
    pass.copy = copies ? asCopy : 0;
    pass.launch = device.isGpu() ? device.launch.valueOr(0) * (1 + copies) : 0;
    const double slots = device.flopRate("fp32") / 2;
    const double arithmetic = slots > 0 ? double(asked.elements()) * instructionsOf(asked.operation) / slots : 0;
    const double moved = device.isGpu()
        ? 0
        : double(asked.elements()) / issueRate(device, Operation::Copy, sizeof(float), true, threads);
    pass.issue = std::max(arithmetic, moved);
    return pass;
}

Why bytesWhy(const InPlaceCase& asked, const Overwriting& rules, const std::string& formula, int tensors)
{
    Why why;
    why.formula = formula;
    why.with = fmt::format("= {} × {} = {}", tensors, bytesText(double(asked.bytes)),
                           bytesText(double(asked.bytes) * tensors));
    why.terms = {{"tensor", double(asked.bytes), Unit::Byte, "the input, and all that have its size", "parameter"}};
    if (asked.hasOther())
        why.terms.push_back(
            {"factor", double(asked.bytes), Unit::Byte, "the other tensor of the product", "parameter"});
    if (rules.copies)
        why.terms.push_back({"copy", double(asked.bytes), Unit::Byte,
                             "in place: backward needs the input, so autograd copies it first", "autograd"});
    why.source = "PyTorch: derivatives.yaml, torch/csrc/autograd/saved_variable.cpp";
    why.omits = {"what made the input, and gradients", "rounding of the allocator"};
    return why;
}

/// Of the level that serves most of the working set.
std::string rateSource(const Device& device, double workingSet)
{
    const int threads = device.isGpu() ? device.units : std::max(1, device.threads);
    const BandwidthModel model = bandwidthOf(device, workingSet, Operation::Copy, threads);
    const auto most =
        std::ranges::max_element(model.served, [](const ServedBy& a, const ServedBy& b) { return a.share < b.share; });
    return most == model.served.end() ? std::string() : levelBandwidth(device, *most->level, Operation::Copy).source;
}

Why timeWhy(const Device& device, const InPlaceCase& asked, const ElementwisePass& pass, bool isInPlace)
{
    Why why;
    why.formula = device.isGpu() ? "time = launches + copy + max(memory, instructions)"
                                 : "time = copy + max(memory, instructions)";
    why.with = device.isGpu()
        ? fmt::format("= {} + {} + max({}, {}) = {}", secondsText(pass.launch), secondsText(pass.copy),
                      secondsText(pass.memory), secondsText(pass.issue), secondsText(pass.seconds()))
        : fmt::format("= {} + max({}, {}) = {}", secondsText(pass.copy), secondsText(pass.memory),
                      secondsText(pass.issue), secondsText(pass.seconds()));
    const bool writesOnly = isInPlace && !device.isGpu();
    why.terms = {{"working set", pass.workingSet, Unit::Byte, "what must stay in a cache for the next pass", "counted"},
                 {"memory", pass.memory, Unit::Second,
                  writesOnly
                      ? "as a write, each line fetched and written back; at least two thirds of a copy"
                      : "as a copy, reads and writes counted" + std::string(asked.hasOther() ? ", and a read" : ""),
                  device.calibration ? "calibrated on this machine" : "the device's rates by working set"},
                 {"instructions", pass.issue, Unit::Second,
                  fmt::format("{} for each element beside load and store", instructionsOf(asked.operation)),
                  "counted in the kernels"}};
    why.source = rateSource(device, pass.workingSet);
    why.omits = {"allocating the result, which PyTorch's allocator keeps", "divisions take longer than one slot",
                 "Python and dispatch"};
    return why;
}

Why movedWhy(const Device& device, double bytes, bool isInPlace, bool copies)
{
    Why why;
    why.formula = device.isGpu() ? "moved = read + written"
        : isInPlace              ? "moved = read + written back"
                                 : "moved = read + fetched to be overwritten + written back";
    why.with = fmt::format("= {}{}", bytesText(bytes), copies ? ", the copy for backward included" : "");
    why.source = device.isGpu() ? "a GPU writes whole sectors without reading them"
                                : "write-allocate: an ordinary store fetches its line first";
    why.omits = {"what stays in a cache from one pass to the next", "stores past the caches, which fetch nothing"};
    return why;
}

} // namespace

MovedBytes movedBytes(const Device& device, const InPlaceCase& asked, bool isInPlace)
{
    const auto n = double(asked.bytes);
    const double fetched = device.isGpu() ? 0 : n; // of every tensor that is written to and was not read
    MovedBytes moved{n * (1 + asked.hasOther()), isInPlace ? 0 : fetched, n};
    if (isInPlace && overwriting(asked).copies) {
        moved.read += n;
        moved.fetched += fetched;
        moved.written += n;
    }
    return moved;
}

Figures inPlaceFigures(const Device& device, const InPlaceCase& asked, const InPlaceNumbers& numbers)
{
    const Overwriting rules = overwriting(asked);
    const auto n = double(asked.bytes);
    Figures figures{{"allowed", "in place", Unit::One, rules.isAllowed() ? "allowed" : "refused " + rules.at},
                    {"out_peak", "out-of-place peak", Unit::Byte, numbers.outPeak},
                    {"in_peak", "in-place peak", Unit::Byte, numbers.inPeak},
                    {"out_kept", "alive afterwards, out of place", Unit::Byte, n * rules.outAfter},
                    {"in_kept", "alive afterwards, in place", Unit::Byte, n * rules.inAfter},
                    {"out_moved", "moved, out of place", Unit::Byte, movedBytes(device, asked, false).total()},
                    {"in_moved", "moved, in place", Unit::Byte, movedBytes(device, asked, true).total()}};
    markCounted(figures, {"allowed", "out_kept", "in_kept", "out_moved", "in_moved"});
    const auto time = [&](const char* key, const char* label, const InPlaceTime& one) {
        figures.push_back({key, label, Unit::Second, one.seconds, one.low, one.high, {}});
    };
    time("out_time", "out-of-place time", numbers.outTime);
    time("in_time", "in-place time", numbers.inTime);
    figures.push_back({"speedup", "speedup in place", Unit::One, numbers.outTime.seconds / numbers.inTime.seconds});
    return figures;
}

Result<Figures> predictedInPlace(const Device& device, const InPlaceCase& asked)
{
    const Overwriting rules = overwriting(asked);
    const ElementwisePass out = passOf(device, asked, rules, false), in = passOf(device, asked, rules, true);
    if (!std::isfinite(out.seconds()) || !std::isfinite(in.seconds()))
        return fail("predict.device", "the memory bandwidth of this device is not known",
                    "calibrate it, or choose a device of the catalogue", device.id);
    const auto n = double(asked.bytes);
    Figures figures = inPlaceFigures(
        device, asked, {{out.seconds(), {}, {}}, {in.seconds(), {}, {}}, n * rules.outPeak, n * rules.inPeak});
    Why verdict;
    verdict.formula = rules.isAllowed() ? "no rule of autograd is broken" : "PyTorch: " + rules.error;
    verdict.with = rules.rule;
    verdict.source = "run in PyTorch for every operation and input, forward and backward";
    explain(figures, "allowed", verdict);
    explain(figures, "out_peak", bytesWhy(asked, rules, "peak = input + result + factor", rules.outPeak));
    explain(figures, "in_peak", bytesWhy(asked, rules, "peak = input + factor + copy for backward", rules.inPeak));
    const char* kept = "alive = result + factor + what backward or an owner keeps of the input";
    explain(figures, "out_kept", bytesWhy(asked, rules, kept, rules.outAfter));
    explain(figures, "in_kept", bytesWhy(asked, rules, kept, rules.inAfter));
    explain(figures, "out_moved", movedWhy(device, movedBytes(device, asked, false).total(), false, false));
    explain(figures, "in_moved", movedWhy(device, movedBytes(device, asked, true).total(), true, rules.copies));
    explain(figures, "out_time", timeWhy(device, asked, out, false));
    explain(figures, "in_time", timeWhy(device, asked, in, true));
    Why speedup;
    speedup.formula = "time out of place / time in place";
    speedup.with = fmt::format("= {} / {}", secondsText(out.seconds()), secondsText(in.seconds()));
    explain(figures, "speedup", speedup);
    return figures;
}

} // namespace memscape
