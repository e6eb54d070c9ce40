// SPDX-License-Identifier: Apache-2.0
#include "core/published/published_table.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/claims/claim_quotes.h"
#include "core/claims/claim_table.h"
#include "core/device/catalogue.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> tableKeys{"format",     "version",    "title", "source", "device",
                                         "experiment", "parameters", "note",  "rows"};
const std::vector<std::string> rowKeys{"row",    "family",     "figure",   "value", "unit",      "device",
                                       "cannot", "experiment", "per_step", "note",  "parameters"};

/// Of a file or a row; a model's file is looked for in `folder`.
Result<std::vector<std::string>> assignmentsOf(const JsonReader& reader, const fs::path& folder)
{
    if (!reader.has("parameters"))
        return std::vector<std::string>();
    MEMSCAPE_TRY(list, reader.at("parameters"));
    MEMSCAPE_TRY(given, textsOf(list));
    for (std::string& text : given) {
        if (text.starts_with("model=models/"))
            text = "model=" + (folder / text.substr(std::string_view("model=").size())).string();
    }
    return given;
}

/// In SI units. A rate becomes the time of the step.
Result<double> valueOf(const JsonReader& reader, const std::string& unit)
{
    MEMSCAPE_TRY(value, reader.number("value"));
    if (!(value > 0))
        return fail("published.value", fmt::format("{} is no published figure", numberText(value)),
                    "write what the table prints, above 0", "value");
    if (reader.has("per_step")) {
        MEMSCAPE_TRY(work, reader.number("per_step"));
        if (!unit.ends_with("/s") || !(work > 0))
            return fail("published.value", fmt::format("a step does not do {} of \"{}\"", numberText(work), unit),
                        "give per_step, above 0, to a rate: token/s", "per_step");
        return work / value;
    }
    if (unit == "1")
        return value;
    if (unit == "min")
        return 60 * value;
    const std::string text = fmt::format("{} {}", numberText(value), unit);
    if (const auto bytes = parseQuantity(text, Unit::Byte))
        return *bytes;
    if (const auto seconds = parseQuantity(text, Unit::Second))
        return *seconds;
    return fail("published.value", fmt::format("\"{}\" is no unit of a published figure", quotedForMessage(unit)),
                "write B, MB, GiB …, s, ms, min, 1, or a rate such as token/s with per_step", "unit");
}

Result<void> addParameters(PublishedRow& row, const std::string& experiment, std::vector<std::string> assignments)
{
    MEMSCAPE_TRY(found, findExperiment(experiment));
    // A later assignment wins: the row's over its file's.
    std::vector<std::string> last;
    std::set<std::string> seen;
    for (auto text = assignments.rbegin(); text != assignments.rend(); ++text) {
        if (seen.insert(text->substr(0, text->find('='))).second)
            last.insert(last.begin(), std::move(*text));
    }
    MEMSCAPE_TRY(parameters, askedParameters(*found, last));
    if (parameters.sweep())
        return fail("published.value", "a row sweeps no parameter", "write a row for each value", "parameters");
    row.experiment = found;
    row.parameters = std::move(parameters);
    return {};
}

Result<PublishedRow> rowOf(const JsonReader& reader, const JsonReader& table, const fs::path& folder)
{
    MEMSCAPE_CHECK(checkKeys(reader, rowKeys));
    PublishedRow row;
    for (const auto& [key, text] : {std::pair{"row", &row.row}, {"family", &row.family}, {"figure", &row.figure}}) {
        MEMSCAPE_TRY(value, reader.string(key));
        *text = value;
    }
    for (const auto& [key, text] : {std::pair{"title", &row.table}, {"source", &row.source}}) {
        MEMSCAPE_TRY(value, table.string(key));
        *text = value;
    }
    const auto& families = publishedFamilies();
    if (std::find(families.begin(), families.end(), row.family) == families.end())
        return fail("published.family", fmt::format("\"{}\" is no family", quotedForMessage(row.family)),
                    didYouMean(row.family, families), "family");
    MEMSCAPE_TRY(unit, reader.string("unit"));
    MEMSCAPE_TRY(value, valueOf(reader, unit));
    MEMSCAPE_TRY(printed, reader.number("value"));
    row.value = value;
    row.printed = fmt::format("{} {}", numberText(printed), unit);
    MEMSCAPE_TRY(tableNote, table.string("note", ""));
    MEMSCAPE_TRY(note, reader.string("note", tableNote));
    row.note = note;
    MEMSCAPE_TRY(tableDevice, table.string("device", ""));
    MEMSCAPE_TRY(device, reader.string("device", tableDevice));
    row.device = device;
    MEMSCAPE_TRY(cannot, reader.string("cannot", ""));
    row.cannot = cannot;
    if (!cannot.empty())
        return row;
    if (device.empty())
        return fail("published.device", "no device is named", "give device to the row or to its file", "device");
    MEMSCAPE_TRY(tableExperiment, table.string("experiment", "training-memory"));
    MEMSCAPE_TRY(experiment, reader.string("experiment", tableExperiment));
    MEMSCAPE_TRY(assignments, assignmentsOf(table, folder));
    MEMSCAPE_TRY(own, assignmentsOf(reader, folder));
    assignments.insert(assignments.end(), own.begin(), own.end());
    MEMSCAPE_CHECK(addParameters(row, experiment, std::move(assignments)));
    return row;
}

} // namespace

const std::vector<std::string>& publishedFamilies()
{
    static const std::vector<std::string> families{"full training", "LoRA", "QLoRA", "FSDP", "inference", "step time"};
    return families;
}

fs::path publishedFolder()
{
    return resourcesFolder() / "published";
}

Result<std::vector<fs::path>> publishedFiles()
{
    std::vector<fs::path> files = entriesOf(publishedFolder(), ".json");
    if (files.empty())
        return fail("file.missing", "there are no published tables in " + publishedFolder().string(),
                    "install memscape again, or set MEMSCAPE_RESOURCES to its resources");
    return files;
}

Result<std::vector<PublishedRow>> readPublished(const fs::path& file)
{
    MEMSCAPE_TRY(json, readClaimFile(file, "memscape-published"));
    const JsonReader table(json);
    const auto placed = [&](Error error, const std::string& row) {
        error.place = fmt::format("{}{}{}{}", file.filename().string(),
                                  row.empty() ? "" : fmt::format(", \"{}\"", quotedForMessage(row)),
                                  error.place.empty() ? "" : ", ", error.place);
        return error;
    };
    if (const auto known = checkKeys(table, tableKeys); !known)
        return fail(placed(known.error(), {}));
    MEMSCAPE_TRY(list, table.at("rows"));
    MEMSCAPE_TRY(items, list.items());
    std::vector<PublishedRow> rows;
    std::set<std::string> names;
    for (const JsonReader& item : items) {
        auto row = rowOf(item, table, file.parent_path());
        if (!row)
            return fail(placed(row.error(), item.string("row", "").value_or("")));
        if (!names.insert(row->row + "\n" + row->figure).second)
            return fail(
                placed({"published.twice", "two rows say the same figure of it", {}, "leave one out"}, row->row));
        rows.push_back(std::move(*row));
    }
    return rows;
}

} // namespace memscape
