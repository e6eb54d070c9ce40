// SPDX-License-Identifier: Apache-2.0
// The chain of `checkpoint` in PyTorch, with its segments under torch.utils.checkpoint. Only segments of
// neighbours have a form there; schedules that come back to a stage more than once, or that were solved for
// a budget, have not, and the lines say so.
#include "core/experiments/common/framework_lines.h"

#include "core/experiments/common/python_lines.h"

#include <fmt/format.h>

namespace memscape {

namespace {

void writeStages(PythonLines& lines, const std::string& chain)
{
    constexpr std::string_view mlp = "mlp:";
    const auto cross = chain.find('x');
    if (chain.starts_with(mlp) && cross != std::string::npos && chain.find(',') == std::string::npos) {
        const std::string stages = chain.substr(mlp.size(), cross - mlp.size()), width = chain.substr(cross + 1);
        if (stages.find_first_not_of("0123456789") == std::string::npos
            && width.find_first_not_of("0123456789") == std::string::npos) {
            lines.add(fmt::format(
                "stages = [torch.nn.Sequential(torch.nn.Linear({0}, {0}), torch.nn.GELU()) for _ in range({1})]", width,
                stages));
            return;
        }
    }
    lines.comment("build_stages is yours: a list of modules, run one after the other.");
    lines.add(fmt::format("stages = build_stages({})", pythonText(chain)));
}

/// Where segments begin, as an expression; empty where the strategy has none.
std::string segmentStarts(PythonLines& lines, const std::string& strategy)
{
    if (strategy.starts_with("every:"))
        return fmt::format("list(range(0, len(stages), {}))", strategy.substr(strategy.find(':') + 1));
    if (strategy != "sqrt")
        return {};
    lines.import("import math");
    lines.add("segments = max(1, round(math.sqrt(len(stages))))");
    return "[i * (len(stages) // segments) for i in range(segments)]";
}

void writeSegments(PythonLines& lines, const std::string& starts, bool keepsLast)
{
    lines.import("from torch.utils.checkpoint import checkpoint");
    lines.add("starts = " + starts);
    lines.blank();
    lines.blank();
    lines.add("def forward(values):");
    lines.add("    for first, end in zip(starts, starts[1:] + [len(stages)]):");
    lines.add("        segment = torch.nn.Sequential(*stages[first:end])");
    if (keepsLast) {
        lines.add("        if end == len(stages):  # next to the loss: kept, reversed at once");
        lines.add("            values = segment(values)");
        lines.add("        else:");
        lines.add("            values = checkpoint(segment, values, use_reentrant=False)");
    } else {
        lines.add("        values = checkpoint(segment, values, use_reentrant=False)");
    }
    lines.add("    return values");
}

} // namespace

std::vector<Snippet> checkpointSnippets(const Parameters& parameters)
{
    const std::string& strategy = parameters.choice("strategy");
    PythonLines lines;
    for (std::string& line :
         commentLines(fmt::format("As chosen in Memscape: {}, {}.", parameters.text("chain"), strategy)))
        lines.preamble(std::move(line));
    lines.import("import torch");
    writeStages(lines, parameters.text("chain"));
    if (const std::string starts = segmentStarts(lines, strategy); !starts.empty()) {
        writeSegments(lines, starts, strategy == "sqrt" || lastSegmentOf(parameters) == LastSegment::Kept);
        return {{"pytorch", "PyTorch lines", lines.text()}};
    }
    if (strategy != "none")
        lines.comment(
            "PyTorch has no solver and no form for this schedule: torch.utils.checkpoint runs a segment a second "
            "time, once. √n segments and every k-th stage can be written with it. What is below keeps everything.");
    lines.blank();
    lines.blank();
    lines.add("def forward(values):");
    lines.add("    for stage in stages:");
    lines.add("        values = stage(values)");
    lines.add("    return values");
    return {{"pytorch", "PyTorch lines", lines.text()}};
}

} // namespace memscape
