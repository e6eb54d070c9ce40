// SPDX-License-Identifier: Apache-2.0
#include "app/cli/snapshot.h"

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/report/memory_tables.h"
#include "core/report/report.h"
#include "core/report/snapshot_record.h"
#include "core/report/summary.h"
#include "core/snapshot/snapshot_export.h"
#include "core/snapshot/snapshot_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

namespace memscape::cli {

namespace {

constexpr std::array<std::string_view, 4> formats{"html", "csv", "json", "memory_viz"};

constexpr std::uint64_t quickFile = 256u << 20; ///< bytes: smaller ones need no progress

/// "reading: 43 %" on a terminal, one line that is written over.
class PercentLine
{
public:
    ~PercentLine()
    {
        if (m_shown >= 0)
            std::fputs("\r\033[K", stderr);
    }
    void show(std::string_view what, double share)
    {
        const int percent = int(100 * share);
        if (percent == m_shown || ::isatty(STDERR_FILENO) == 0)
            return;
        m_shown = percent;
        const std::string line = fmt::format("\r\033[K{}: {} %", what, percent);
        std::fputs(line.c_str(), stderr);
        std::fflush(stderr);
    }

private:
    int m_shown = -1;
};

/// "1", "cuda:1"; nothing said: the device with most events.
Result<std::uint32_t> deviceOf(const Snapshot& snapshot, std::string_view text)
{
    if (text.empty())
        return busiestDevice(snapshot);
    const auto devices = snapshot.devices();
    const std::string_view digits = text.substr(text.rfind(':') == text.npos ? 0 : text.rfind(':') + 1);
    std::uint32_t device = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), device);
    if (text == "cpu")
        return 0;
    if (problem != std::errc() || end != digits.data() + digits.size())
        return fail("snapshot.device", fmt::format("\"{}\" is no device of a snapshot", quotedForMessage(text)),
                    fmt::format("the file has cuda:{}", fmt::join(devices, ", cuda:")));
    return device;
}

/// Its findings; where memory ran out with the fixes of the plan, if one is named. Bytes, not times: the device of a
/// snapshot is not known, so a common one is taken.
Result<std::vector<SnapshotFinding>> findingsFor(const SnapshotDevice& device, const EventRange& range,
                                                 const std::vector<std::string>& plan)
{
    std::vector<SnapshotFinding> findings = findingsOf(device, range.first, range.last);
    if (plan.empty())
        return findings;
    MEMSCAPE_TRY(experiment, findExperiment("training-memory"));
    MEMSCAPE_TRY(parameters, askedParameters(*experiment, plan));
    if (parameters.sweep())
        return fail("snapshot.plan", "a run has one plan: nothing can be swept", "give each parameter one value");
    if (std::ranges::find(findings, "out-of-memory", &SnapshotFinding::id) == findings.end()) {
        std::fprintf(stderr, "note: no request was refused: the plan is for nothing\n");
        return findings;
    }
    MEMSCAPE_TRY(common, findDevice("nvidia-h100-sxm"));
    const auto phase = refusedPhase(device, findings);
    MEMSCAPE_TRY(levers, leversAt(common, parameters, phase));
    std::vector<SnapshotFix> fixes;
    for (const LeverOutcome& one : levers)
        fixes.push_back({one.lever.label, phase ? one.phaseSaving[std::size_t(*phase)] : one.saving});
    offerFixes(findings, fixes, fmt::format("{}", fmt::join(plan, " ")), phase);
    return findings;
}

Result<std::string> exported(const SnapshotDevice& device, const EventRange& range, const std::string& name,
                             std::string_view format, const std::vector<SnapshotFinding>& findings)
{
    std::string text;
    const auto append = [&](std::string_view piece) {
        text += piece;
        return true;
    };
    if (format == "memory_viz")
        MEMSCAPE_CHECK(writeMemoryViz(device, range, append));
    else if (format == "csv")
        MEMSCAPE_CHECK(writeBlocksCsv(device, range, append));
    else if (format == "html")
        text = reportHtml({snapshotRecord(device, range, name, findings)}, name);
    else
        text = jsonText(recordToJson(snapshotRecord(device, range, name, findings)));
    return text;
}

/// Figures, findings and who holds the peak: what a person reads.
std::string summaryText(const Record& record)
{
    std::string text = printable(record.name) + "\n\n" + alignedText(figuresTable(record));
    const Json& detail = snapshotOutcome(record)->detail;
    for (const Json& finding : detail["findings"]) {
        const auto words = [&](const char* key) { return printable(finding[key].get<std::string>()); };
        text +=
            fmt::format("\n{}: {}\n  {}\n  → {}\n", words("level"), words("title"), words("evidence"), words("remedy"));
    }
    if (detail["findings"].empty())
        text += "\nNothing remarkable was found.\n";
    for (const NamedTable& one : memoryTables(record)) {
        if (one.title != "Findings")
            text += "\n" + one.title + "\n" + alignedText(one.table, 2);
    }
    for (const Json& one : detail["notes"])
        text += "\n" + printable(one.get<std::string>()) + "\n";
    return text;
}

} // namespace

bool isPickleFile(const std::string& path)
{
    std::error_code problem;
    if (path == "-" || !std::filesystem::is_regular_file(path, problem))
        return false;
    std::ifstream file(path, std::ios::binary);
    char beginning[2] = {};
    file.read(beginning, 2);
    return file && looksLikePickle({beginning, 2});
}

std::string nameOfFile(const std::string& path)
{
    return path == "-" ? "standard input" : std::filesystem::path(path).filename().string();
}

Result<std::shared_ptr<const SnapshotDevice>> openSnapshot(const std::string& path, const std::string& device)
{
    PercentLine line;
    const auto read = [&]() -> Result<Snapshot> {
        SnapshotReadOptions options;
        options.progress = [&line](std::uint64_t done, std::uint64_t total) {
            if (total >= quickFile)
                line.show("reading", double(done) / double(total));
        };
        if (path != "-")
            return readSnapshot(path, options);
        MEMSCAPE_TRY(text, readText(path));
        return readSnapshotBytes(text);
    };
    MEMSCAPE_TRY(snapshot, read());
    const auto shared = std::make_shared<const Snapshot>(std::move(snapshot));
    MEMSCAPE_TRY(index, deviceOf(*shared, device));
    return SnapshotDevice::analyse(shared, index, [&](double share) {
        if (shared->fileBytes >= quickFile)
            line.show("rebuilding every moment", share);
    });
}

int runSnapshot(const Arguments& arguments)
{
    if (!arguments.format.empty() && std::ranges::find(formats, arguments.format) == formats.end())
        return refused({"usage",
                        fmt::format("there is no format \"{}\"", quotedForMessage(arguments.format)),
                        {},
                        didYouMean(arguments.format, {formats.begin(), formats.end()})});
    if (const auto place = writable(arguments.output); !place)
        return refused(place.error());
    const std::string path = arguments.files.front(), name = nameOfFile(path);
    const auto device = openSnapshot(path, arguments.device);
    if (!device)
        return refused(device.error());
    const auto range = parseEventRange(arguments.range, (*device)->lifetimes().events());
    if (!range)
        return refused(range.error());
    const auto findings = findingsFor(**device, *range, arguments.assignments);
    if (!findings)
        return refused(findings.error());
    if (!arguments.format.empty()) {
        const auto text = exported(**device, *range, name, arguments.format, *findings);
        if (!text)
            return refused(text.error());
        return deliver(arguments.output.empty() ? "-" : arguments.output, *text, false, 0);
    }
    const Record record = snapshotRecord(**device, *range, name, *findings);
    const bool json = arguments.json || arguments.output == "-";
    if (!json)
        printOut(summaryText(record));
    return deliver(arguments.output, jsonText(recordToJson(record)), json, 0);
}

} // namespace memscape::cli
