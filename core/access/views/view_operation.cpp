// SPDX-License-Identifier: Apache-2.0
#include "core/access/views/view_operation.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memscape {

namespace {

constexpr auto integer = ArgumentKind::Integer;
constexpr auto maybe = ArgumentKind::OptionalInteger;
constexpr auto list = ArgumentKind::List;

std::vector<OperationSpec> makeSpecs()
{
    return {
        {"transpose", {{"dim0", integer}, {"dim1", integer}}, "Two dimensions change places, and so do their strides."},
        {"permute", {{"dims", list}}, "The dimensions in another order; the strides go with them."},
        {"narrow",
         {{"dim", integer}, {"start", integer}, {"length", integer}},
         "A window of one dimension: the offset grows, the strides stay."},
        {"select", {{"dim", integer}, {"index", integer}}, "One index of a dimension, which is removed."},
        {"slice",
         {{"dim", integer}, {"start", maybe, "none"}, {"end", maybe, "none"}, {"step", integer, "1"}},
         "x[start:end:step] of one dimension: the stride is multiplied by the step."},
        {"expand",
         {{"sizes", list}},
         "Dimensions of size 1 become larger with stride 0: one element, read many times."},
        {"unsqueeze", {{"dim", integer}}, "A new dimension of size 1."},
        {"squeeze", {{"dim", maybe, "none"}}, "Dimensions of size 1 are removed: all of them, or one."},
        {"view", {{"shape", list}}, "Another shape of the same storage; refused where strides cannot express it."},
        {"reshape", {{"shape", list}}, "A view where there is one, else a copy."},
        {"flatten",
         {{"start_dim", integer, "0"}, {"end_dim", integer, "-1"}},
         "Dimensions joined into one, by reshape."},
        {"unflatten", {{"dim", integer}, {"sizes", list}}, "One dimension split into several."},
        {"unfold",
         {{"dimension", integer}, {"size", integer}, {"step", integer}},
         "Windows that slide over a dimension: a new dimension whose elements overlap in memory."},
        {"diagonal",
         {{"offset", integer, "0"}, {"dim1", integer, "0"}, {"dim2", integer, "1"}},
         "The diagonal of two dimensions: its stride is the sum of theirs."},
        {"as_strided",
         {{"size", list}, {"stride", list}, {"storage_offset", maybe, "none"}},
         "Any sizes and strides that stay inside the storage."},
        {"movedim", {{"source", list}, {"destination", list}}, "Dimensions moved to other places."},
        {"t", {}, "The transpose of a matrix."},
        {"flip", {{"dims", list}}, "Dimensions backwards: a copy, since strides are never negative here."},
        {"contiguous",
         {{"memory_format", ArgumentKind::Format, "contiguous_format"}},
         "A dense copy in the order of the dimensions (or with channels last), unless it is one already."},
        {"clone",
         {{"memory_format", ArgumentKind::Format, "preserve_format"}},
         "Always a copy; a dense one keeps its strides."},
        {"repeat", {{"repeats", list}}, "Copies laid side by side; expand does it without memory."},
        {"chunk",
         {{"chunks", integer}, {"dim", integer, "0"}, {"index", integer, "0"}},
         "One of several equal parts of a dimension."},
        {"neg", {}, "An elementwise result: a new tensor with the order of dimensions of its input."},
        {"sum_dim",
         {{"dim", integer}, {"keepdim", ArgumentKind::Flag, "false"}},
         "A sum over one dimension: a new, contiguous tensor."},
        {"swap_last_two", {}, "transpose(-2,-1)", false},
        {"squeeze_dim", {{"dim", integer}}, "squeeze(dim)", false},
        {"contiguous_cl", {}, "contiguous(memory_format=channels_last)", false},
        {"contiguous_cl3d", {}, "contiguous(memory_format=channels_last_3d)", false},
        {"empty_like", {}, "A new tensor with the strides of a clone.", false},
        {"add_contig", {}, "x + a contiguous tensor of its shape.", false},
        {"add_self_t", {}, "A copy of x whose strides are reversed, + x.", false},
    };
}

constexpr std::pair<std::string_view, std::string_view> otherNames[] = {
    {"swapaxes", "transpose"}, {"swapdims", "transpose"}, {"moveaxis", "movedim"},
    {"mT", "swap_last_two"},   {"sum", "sum_dim"},
};

std::string formatText(const Argument& argument)
{
    if (argument.isPreserve)
        return "preserve_format";
    switch (argument.format) {
    case MemoryFormat::ChannelsLast: return "channels_last";
    case MemoryFormat::ChannelsLast3d: return "channels_last_3d";
    case MemoryFormat::Contiguous:
    case MemoryFormat::ColumnMajor: break;
    }
    return "contiguous_format";
}

std::string argumentText(const ArgumentSpec& spec, const Argument& argument, bool isOnly)
{
    switch (spec.kind) {
    case ArgumentKind::Integer: return fmt::format("{}", *argument.integer);
    case ArgumentKind::OptionalInteger: return argument.integer ? fmt::format("{}", *argument.integer) : "none";
    case ArgumentKind::List:
        return isOnly ? fmt::format("{}", fmt::join(argument.list, ","))
                      : fmt::format("[{}]", fmt::join(argument.list, ","));
    case ArgumentKind::Flag: return *argument.integer != 0 ? "true" : "false";
    case ArgumentKind::Format: break;
    }
    return formatText(argument);
}

} // namespace

const std::vector<OperationSpec>& operationSpecs()
{
    static const std::vector<OperationSpec> specs = makeSpecs();
    return specs;
}

const OperationSpec* findOperation(std::string_view name)
{
    for (const auto& [other, own] : otherNames) {
        if (other == name)
            name = own;
    }
    const auto& specs = operationSpecs();
    const auto found = std::ranges::find(specs, name, &OperationSpec::name);
    return found == specs.end() ? nullptr : &*found;
}

std::string viewText(const ViewOperation& operation)
{
    const OperationSpec& spec = *findOperation(operation.name);
    std::vector<std::string> words;
    for (std::size_t i = 0; i < spec.arguments.size(); ++i)
        words.push_back(argumentText(spec.arguments[i], operation.arguments[i], spec.arguments.size() == 1));
    while (!words.empty() && words.back() == spec.arguments[words.size() - 1].standard)
        words.pop_back();
    return fmt::format("{}({})", operation.name, fmt::join(words, ","));
}

std::string viewsText(const std::vector<ViewOperation>& operations)
{
    std::string text;
    for (const ViewOperation& operation : operations)
        text += (text.empty() ? "" : ";") + viewText(operation);
    return text;
}

} // namespace memscape
