// SPDX-License-Identifier: Apache-2.0
// What PyTorch's autograd makes of an operation and its input, checked case by case in
// tests/data/pytorch/in_place.json:
//     a leaf that requires grad, or a view of one, is never overwritten while gradients are recorded;
//     what a node has saved must be unchanged when backward reads it: every tensor counts how often it was
//     written to, and a count that differs is an error, whatever the numbers are;
//     a rule of backward that needs the input makes a copy of it first (silu, a factor that wants a gradient);
//     leaky ReLU's rule reads the sign, which its result still has.
#include "core/experiments/in-place/in_place.h"

#include <algorithm>

namespace memscape {

namespace {

using Function = InPlaceOperation;
using Input = InPlaceInput;

bool isOwned(Input input)
{
    return input == Input::Leaf || input == Input::View;
}

/// Whether a node of the graph has saved the input before the operation.
bool isSavedBefore(Input input)
{
    return input == Input::Sigmoid || input == Input::Relu || input == Input::Read;
}

bool needsInput(Function operation)
{
    return operation == Function::MulGate || operation == Function::Silu || operation == Function::Gelu;
}

bool needsResult(Function operation)
{
    return operation == Function::Relu || operation == Function::Sigmoid || operation == Function::Tanh
        || operation == Function::Exp;
}

void refuse(Overwriting& rules, const InPlaceCase& asked)
{
    const auto say = [&](const char* error, const char* at, const char* rule) {
        rules.error = error;
        rules.at = at;
        rules.rule = rule;
    };
    if (asked.operation == Function::Gelu)
        say("gelu() got an unexpected keyword argument 'inplace'", "at the call", "there is no in-place form to call");
    else if (asked.gradients && asked.input == Input::Leaf)
        say("a leaf Variable that requires grad is being used in an in-place operation.", "at the call",
            "a leaf has no history that the change could become a part of; under no_grad an optimizer does it");
    else if (asked.gradients && asked.input == Input::View)
        say("a view of a leaf Variable that requires grad is being used in an in-place operation.", "at the call",
            "a view shares the leaf's memory");
    else if (asked.gradients && isSavedBefore(asked.input))
        say("one of the variables needed for gradient computation has been modified by an inplace operation",
            "in backward",
            asked.input == Input::Read ? "a linear layer read the input and keeps it for its weight's gradient"
                                       : "what made the input keeps it for its own gradient");
}

int howMany(const std::vector<InPlaceTensor>& tensors, bool InPlaceTensor::*what)
{
    return int(std::ranges::count_if(tensors, [&](const InPlaceTensor& one) { return one.*what; }));
}

} // namespace

std::vector<InPlaceTensor> inPlaceTensors(const InPlaceCase& asked, bool isInPlace)
{
    const bool signOfEither = asked.operation == Function::LeakyRelu; // the result has it too
    std::vector<InPlaceTensor> tensors;
    InPlaceTensor input{"input"}, result{"result"};
    input.isGiven = true;
    input.isSaved = asked.gradients && (needsInput(asked.operation) || signOfEither);
    input.wasSaved = asked.gradients && isSavedBefore(asked.input);
    input.isOwned = isOwned(asked.input);
    input.staysAlive = input.isSaved || input.wasSaved || input.isOwned;
    result.isSaved = asked.gradients && (needsResult(asked.operation) || (isInPlace && signOfEither));
    result.staysAlive = true;
    if (isInPlace) {
        result.overwrites = result.isGiven = true;
        result.wasSaved = input.wasSaved;
        result.isOwned = input.isOwned;
        tensors.push_back(result);
        if (asked.gradients && needsInput(asked.operation)) {
            InPlaceTensor copy{"copy"};
            copy.isSaved = copy.staysAlive = true;
            tensors.push_back(copy);
        }
    } else {
        tensors = {input, result};
    }
    if (asked.hasOther()) {
        InPlaceTensor factor{"factor"};
        factor.isGiven = factor.staysAlive = factor.isOwned = true;
        factor.isSaved = asked.gradients;
        tensors.push_back(factor);
    }
    return tensors;
}

Overwriting overwriting(const InPlaceCase& asked)
{
    Overwriting rules;
    rules.rule = asked.gradients ? "nothing that backward reads is overwritten" : "nothing is recorded";
    rules.copies = asked.gradients && needsInput(asked.operation);
    const std::vector<InPlaceTensor> out = inPlaceTensors(asked, false), in = inPlaceTensors(asked, true);
    rules.outPeak = int(out.size());
    rules.inPeak = int(in.size());
    rules.outAfter = howMany(out, &InPlaceTensor::staysAlive);
    rules.inAfter = howMany(in, &InPlaceTensor::staysAlive);
    refuse(rules, asked);
    return rules;
}

} // namespace memscape
