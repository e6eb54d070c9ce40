// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/experiments/training-memory/memory_history.h"
#include "core/report/summary.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

Result<Record> predicted(const Arguments& arguments)
{
    MEMSCAPE_TRY(experiment, findExperiment(arguments.experiment));
    MEMSCAPE_TRY(parameters, askedParameters(*experiment, arguments.assignments));
    MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
    return predictRecord(*experiment, device, parameters);
}

Result<Snippet> snippetOf(const Arguments& arguments)
{
    MEMSCAPE_TRY(experiment, findExperiment(arguments.experiment));
    MEMSCAPE_TRY(parameters, askedParameters(*experiment, arguments.assignments));
    MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
    MEMSCAPE_CHECK(experiment->predictPoint(device, parameters)); // no lines for what can't be
    std::vector<std::string> keys;
    for (Snippet& snippet : experiment->snippets(device, parameters)) {
        if (snippet.key == arguments.snippet)
            return std::move(snippet);
        keys.push_back(std::move(snippet.key));
    }
    return fail("usage",
                fmt::format("{} on {} has no lines of \"{}\"", experiment->id(), device.name,
                            quotedForMessage(arguments.snippet)),
                keys.empty() ? "training-memory, batch-size, checkpoint and precision have some"
                             : didYouMean(arguments.snippet, keys));
}

/// The step as PyTorch would have recorded it, into a file.
int runMemoryViz(const Arguments& arguments)
{
    const auto history = [&]() -> Result<std::string> {
        MEMSCAPE_TRY(experiment, findExperiment(arguments.experiment));
        MEMSCAPE_TRY(parameters, askedParameters(*experiment, arguments.assignments));
        MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
        if (experiment->id() != "training-memory")
            return fail("usage", fmt::format("{} has no step to show in memory_viz", experiment->id()),
                        "training-memory has one");
        if (arguments.output.empty())
            return fail("usage.output", "a memory history is no text", "name a file: -o step.pickle");
        return memoryHistory(device, parameters);
    }();
    return history ? deliver(arguments.output, *history, false, 0) : refused(history.error());
}

int runSnippet(const Arguments& arguments)
{
    const auto snippet = snippetOf(arguments);
    if (!snippet)
        return refused(snippet.error());
    for (const std::string& text : snippet->notes)
        note(text);
    const bool printed = arguments.output.empty() || arguments.output == "-";
    return deliver(arguments.output, snippet->text, printed, 0);
}

} // namespace

int runPredict(const Arguments& arguments)
{
    if (arguments.snippet == "memory_viz")
        return runMemoryViz(arguments);
    if (!arguments.snippet.empty())
        return runSnippet(arguments);
    const auto record = predicted(arguments);
    if (!record)
        return refused(record.error());
    const bool json = arguments.json || arguments.output == "-";
    if (!json)
        printOut(recordText(*record));
    for (const std::string& gap : json ? gapSentences(*record) : std::vector<std::string>())
        note(gap);
    return deliver(arguments.output, jsonText(recordToJson(*record)), json, 0);
}

} // namespace memscape::cli
