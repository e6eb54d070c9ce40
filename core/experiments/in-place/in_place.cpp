// SPDX-License-Identifier: Apache-2.0
// in-place: what does an in-place operation save, and when is it not allowed?
//
// y = f(x) needs room for y beside x; f_(x) writes over x. What autograd says of that: in_place_rules.cpp. Bytes and
// seconds: in_place_figures.cpp. Left out: views of part of a tensor, expanded tensors, types that change.
#include "core/experiments/in-place/in_place.h"
#include "core/claims/claim_quotes.h"

#include "core/experiment/schema.h"
#include "core/experiments/common/judged_number.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

using Function = InPlaceOperation;
using Input = InPlaceInput;

const ChoiceTable<Function> functions{
    {Function::AddScalar, {"add-scalar", "x + number", "add_: backward needs nothing"}},
    {Function::MulScalar, {"mul-scalar", "x × number", "mul_: backward needs the number alone"}},
    {Function::MulMask, {"mul-mask", "x × mask", "mul_ with a tensor without gradient: backward needs that tensor"}},
    {Function::MulGate,
     {"mul-gate", "x × gate", "mul_ with a tensor that requires a gradient: backward needs the input too"}},
    {Function::Relu, {"relu", "ReLU", "relu_: backward needs the result"}},
    {Function::LeakyRelu,
     {"leaky-relu", "leaky ReLU", "leaky_relu_: backward needs a sign, of the input or the result"}},
    {Function::Sigmoid, {"sigmoid", "sigmoid", "sigmoid_: backward needs the result"}},
    {Function::Tanh, {"tanh", "tanh", "tanh_: backward needs the result"}},
    {Function::Exp, {"exp", "exp", "exp_: backward needs the result"}},
    {Function::Silu, {"silu", "SiLU", "silu(inplace=True): backward needs the input"}},
    {Function::Gelu, {"gelu", "GELU", "backward needs the input; torch.nn.functional.gelu has no in-place form"}}};

const ChoiceTable<Input> inputs{
    {Input::Linear, {"linear", "result of a linear layer", "which keeps its own inputs for backward, not its result"}},
    {Input::Sum, {"sum", "result of a sum", "which keeps nothing"}},
    {Input::Sigmoid, {"sigmoid", "result of a sigmoid", "which keeps its result for backward"}},
    {Input::Relu, {"relu", "result of a ReLU", "which keeps its result for backward"}},
    {Input::Read, {"read", "also read by a linear layer", "a sum that another layer has read, and keeps for backward"}},
    {Input::Leaf, {"leaf", "a parameter", "a leaf that requires grad; its owner keeps it"}},
    {Input::View, {"view", "view of a parameter", "shares a leaf's memory"}}};

Schema inPlaceSchema()
{
    return {
        choiceSpec("operation", "operation", "What is done to every element, in float32.", functions.choices(), "relu"),
        choiceSpec("input", "input", "What made the tensor that is overwritten.", inputs.choices()),
        flagSpec("gradients", "gradients",
                 "Whether autograd records for backward. Off: everything runs under torch.no_grad().", true),
        integerSpec("bytes", "tensor", "Size of the input, and of the result; float32.",
                    {.least = 4096, .most = 0x1p40, .standard = "64MiB", .unit = Unit::Byte, .scale = Scale::Log2}),
    };
}

/// Whose backward reads the input, beside the operation's.
const char* earlierReader(Input input)
{
    switch (input) {
    case Input::Sigmoid: return "the sigmoid that made it";
    case Input::Relu: return "the ReLU that made it";
    case Input::Read: return "the linear layer that read it";
    default: return "";
    }
}

/// What writing over the input destroys; empty where that is allowed, or cannot be written at all.
std::string destroyedBy(const InPlaceCase& asked, const Overwriting& rules)
{
    if (rules.isAllowed() || !asked.gradients || asked.operation == Function::Gelu)
        return {};
    if (asked.input == Input::Leaf)
        return "the values of the parameter";
    if (asked.input == Input::View)
        return "the values of the parameter that the input is a view of";
    return fmt::format("the input, saved by {}", earlierReader(asked.input));
}

Json tensorDetail(const InPlaceCase& asked, const InPlaceTensor& tensor, const std::string& operation)
{
    std::string why;
    const auto add = [&](const std::string& reason) { why += (why.empty() ? "" : "; ") + reason; };
    if (tensor.name == "copy")
        add("made before the input is overwritten");
    if (tensor.isOwned)
        add(tensor.name == "factor"          ? "the caller keeps it"
                : asked.input == Input::View ? "it shares a parameter's memory, which its owner keeps"
                                             : "a parameter: its owner keeps it");
    if (tensor.wasSaved)
        add(fmt::format("backward of {} reads it", earlierReader(asked.input)));
    if (tensor.isSaved)
        add(fmt::format("backward of {} reads it", operation));
    if (!tensor.staysAlive)
        add("nothing reads it afterwards: its memory is free again");
    else if (why.empty())
        add("what comes next reads it");
    return {{"name", tensor.name},          {"bytes", asked.bytes},       {"overwrites", tensor.overwrites},
            {"before", tensor.isGiven},     {"after", tensor.staysAlive}, {"saved", tensor.isSaved},
            {"was_saved", tensor.wasSaved}, {"owned", tensor.isOwned},    {"why", why}};
}

/// One way: what is alive, by whom it is kept, and what it moves.
Json wayDetail(const Device& device, const InPlaceCase& asked, bool isInPlace, const std::string& operation)
{
    Json tensors = Json::array();
    for (const InPlaceTensor& tensor : inPlaceTensors(asked, isInPlace))
        tensors.push_back(tensorDetail(asked, tensor, operation));
    const MovedBytes moved = movedBytes(device, asked, isInPlace);
    return {{"tensors", std::move(tensors)},
            {"moved", {{"read", moved.read}, {"fetched", moved.fetched}, {"written", moved.written}}}};
}

std::vector<Claim> inPlaceClaims(const InPlaceCase& asked, const Measurement& measured)
{
    const Overwriting rules = overwriting(asked);
    const auto n = double(asked.bytes);
    const double given = n * (1 + asked.hasOther());
    const JudgedNumber out = judgedNumber(measured, "out_peak", n * rules.outPeak);
    const JudgedNumber in = judgedNumber(measured, "in_peak", n * rules.inPeak);
    const double saved = out.value - in.value, savedAfter = n * (rules.outAfter - rules.inAfter);
    const double page = 0x1p21; // what a measured peak may be rounded to
    return {
        quotedClaim("in-place-constant",
                    in.value - given > n / 2 + page
                        ? "does not hold here: autograd copies the input first, so in place is O(n) too"
                        : "holds here",
                    fmt::format("beside {} that are there: {} out of place, {} in place ({})", bytesText(given),
                                bytesText(out.value - given), bytesText(in.value - given), in.side())),
        quotedClaim("in-place-saved",
                    saved < n / 2        ? "does not hold here: nothing is saved"
                        : savedAfter > 0 ? "holds here"
                                         : "holds at the peak only: afterwards as much is alive out of place",
                    fmt::format("a tensor of {}: {} less at the peak ({}), {} less afterwards", bytesText(n),
                                bytesText(saved), in.side(), bytesText(savedAfter))),
        quotedClaim("in-place-breakage",
                    rules.isAllowed() ? "does not hold here: PyTorch allows it, and the gradients are the same bits"
                        : asked.operation == Function::Gelu ? "does not arise: there is no in-place form"
                                                            : "holds here, but not silently: PyTorch refuses it",
                    rules.isAllowed() ? "0 rules broken"
                                      : fmt::format("1 rule broken, found {}: {}", rules.at, rules.error)),
    };
}

class InPlace final : public Experiment
{
public:
    std::string id() const override { return "in-place"; }
    std::string title() const override { return "In-place operations"; }
    std::string question() const override
    {
        return "What does an in-place operation save, and when is it not allowed?";
    }
    std::string group() const override { return "tensors"; }
    std::string help() const override
    {
        return "y = f(x) needs room for y beside x; f_(x) writes over x. The model counts what is alive at the peak "
               "and afterwards by autograd's rules, PyTorch's error messages included, and takes the time of both from "
               "the memory's rates: half the working set stays in a cache up to twice the size, and on a CPU an "
               "ordinary store fetches the line that it overwrites, which in place is there already. What is refused "
               "is timed all the same, as if it were allowed. Left out: parts of tensors, expanded tensors, stores "
               "past the caches, allocation, Python.";
    }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> headlines() const override { return {"out_peak", "in_peak", "out_time", "in_time"}; }
    ShortAnswer shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const override;
    std::vector<SeriesSpec> series() const override
    {
        return {{"out_time", "out of place"},
                {"in_time", "in place"},
                {"speedup", "speedup in place"},
                {"out_peak", "out of place"},
                {"in_peak", "in place"}};
    }
    Sweep axis(const Device& device, const Parameters&) const override
    {
        Sweep sweep{"bytes", {}};
        const double last = device.isGpu() ? 0x1p30 : 0x1p28, step = device.isGpu() ? 2 : 4;
        for (double bytes = device.isGpu() ? 0x1p20 : 0x1p14; bytes <= last; bytes *= step)
            sweep.values.emplace_back(bytes);
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        return predictedInPlace(device, inPlaceCase(parameters));
    }
    Json predictDetail(const Device& device, const Parameters& parameters) const override
    {
        const InPlaceCase asked = inPlaceCase(parameters);
        const Overwriting rules = overwriting(asked);
        const std::string operation = valueLabel(*findParameter(m_schema, "operation"), parameters.choice("operation"));
        return {{"allowed", rules.isAllowed()},
                {"error", rules.error},
                {"at", rules.at},
                {"rule", rules.rule},
                {"copies", rules.copies},
                {"destroys", destroyedBy(asked, rules)},
                {"out", wayDetail(device, asked, false, operation)},
                {"in", wayDetail(device, asked, true, operation)}};
    }
    std::vector<Claim> claims(const Device&, const Parameters& parameters, const Measurement& measured) const override
    {
        return inPlaceClaims(inPlaceCase(parameters), measured);
    }

private:
    Schema m_schema = inPlaceSchema();
};

ShortAnswer InPlace::shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const
{
    const Figure* const outPeak = findFigure(figures, "out_peak");
    const Figure* const inPeak = findFigure(figures, "in_peak");
    const Figure* const speedup = findFigure(figures, "speedup");
    for (const Figure* one : {outPeak, inPeak, speedup}) {
        if (!one || !std::isfinite(one->number()))
            return {};
    }
    const double factor = speedup->number();
    const std::string times = quantityText(factor >= 1 ? factor : 1 / factor, Unit::One);
    const std::string pace = times == "1" ? "as fast" : times + (factor >= 1 ? " times as fast" : " times as long");
    const Overwriting rules = overwriting(inPlaceCase(parameters));
    std::string sentence =
        fmt::format("{} {} at the peak, {} out of place; {}", rules.isAllowed() ? "In place takes" : "It would take",
                    inPeak->text(), outPeak->text(), pace);
    const std::string words = rules.error.substr(0, rules.error.find_last_not_of('.') + 1);
    sentence += rules.isAllowed() ? "." : fmt::format(". PyTorch refuses it {}: “{}”.", rules.at, words);
    return {std::move(sentence), "speedup", true, {"bytes", "operation"}};
}

} // namespace

InPlaceCase inPlaceCase(const Parameters& parameters)
{
    InPlaceCase asked;
    asked.operation = functions.of(parameters.choice("operation"));
    asked.input = inputs.of(parameters.choice("input"));
    asked.gradients = parameters.flag("gradients");
    asked.bytes = static_cast<std::uint64_t>(parameters.integer("bytes")) / 64 * 64;
    return asked;
}

const Experiment& inPlaceExperiment()
{
    static const InPlace experiment;
    return experiment;
}

} // namespace memscape
