// SPDX-License-Identifier: Apache-2.0
#include "core/base/rounding.h"
#include "core/experiment/document.h"

#include "core/base/file.h"
#include "core/base/json_parts.h"
#include "core/base/json_shape.h"
#include "core/base/parallel.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

using Migration = void (*)(Json&);

/// migrations[i] turns a document of version i + 1 into version i + 2. There is only version 1 yet.
constexpr std::array<Migration, recordVersion - 1> recordMigrations{};
constexpr std::array<Migration, studyVersion - 1> studyMigrations{};

std::string under(const std::string& place, std::string_view key)
{
    return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

/// Everything in `json` whose key is not one of ours.
template <std::size_t Size> Json unknownKeys(const Json& json, const std::array<std::string_view, Size>& known)
{
    Json::object_t extra;
    for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
        if (std::find(known.begin(), known.end(), key) == known.end())
            extra.emplace_back(key, value); // read keys are never there twice: no need to look
    }
    return extra;
}

void putBack(Json& json, const Json& extra)
{
    if (!extra.is_object() || extra.empty())
        return;
    auto& members = json.get_ref<Json::object_t&>();
    std::set<std::string> ours;
    for (const auto& [key, value] : members)
        ours.insert(key);
    members.reserve(members.size() + extra.size());
    for (const auto& [key, value] : extra.get_ref<const Json::object_t&>()) {
        if (!ours.contains(key))
            members.emplace_back(key, value);
    }
}

constexpr std::array<std::string_view, 13> recordKeys{"format",   "version",    "name",       "note",   "pinned",
                                                      "baseline", "experiment", "parameters", "device", "predicted",
                                                      "measured", "comparison", "provenance"};
constexpr std::array<std::string_view, 5> studyKeys{"format", "version", "title", "records", "view"};

/// The version of a document, after checking its format word.
Result<int> checkedVersion(const JsonReader& reader, std::string_view format)
{
    const auto found = documentFormat(reader.node());
    if (!found) { // of a record in a study, the place says which
        Error error = found.error();
        error.place = error.place.empty() ? reader.path() : under(reader.path(), error.place);
        return fail(std::move(error));
    }
    if (*found != format) {
        return fail("document.format", fmt::format("this is a {}, not a {}", *found, format), {},
                    under(reader.path(), "format"));
    }
    MEMSCAPE_TRY(node, reader.at("version"));
    MEMSCAPE_TRY(version, node.integer());
    if (version < 1 || version > 1'000'000)
        return node.expected("a version, 1 or higher");
    return static_cast<int>(version);
}

/// The document in our version: itself, or what `copy` then holds.
template <std::size_t Size>
const Json& migrated(const Json& json, int version, const std::array<Migration, Size>& migrations, Json& copy)
{
    if (static_cast<std::size_t>(version) > Size)
        return json;
    copy = json;
    for (std::size_t step = static_cast<std::size_t>(version); step <= Size; ++step)
        migrations[step - 1](copy);
    return copy;
}

/// Reads devices. The records of a study are of a few machines: an equal document that follows gives the
/// same device without being checked again.
class DeviceSource
{
public:
    Result<Device> read(const JsonReader& reader)
    {
        if (m_json && *m_json == reader.node())
            return m_device;
        MEMSCAPE_TRY(device, deviceFromJson(reader.node(), reader.path()));
        m_json = &reader.node();
        m_device = device;
        return device;
    }

private:
    const Json* m_json = nullptr; ///< of the last one; the document outlives this
    Device m_device;
};

Result<std::optional<Outcome>> optionalOutcome(const JsonReader& reader, std::string_view key)
{
    if (!reader.has(key))
        return std::optional<Outcome>();
    MEMSCAPE_TRY(node, reader.at(key));
    if (node.node().is_null())
        return std::optional<Outcome>();
    MEMSCAPE_TRY(outcome, outcomeFromJson(node));
    return std::optional<Outcome>(std::move(outcome));
}

Result<void> readParameters(Record& record, const JsonReader& reader)
{
    MEMSCAPE_TRY(node, reader.at("parameters"));
    if (const auto experiment = findExperiment(record.experiment)) {
        MEMSCAPE_TRY(parameters, parametersFromJson((*experiment)->schema(), node));
        record.parameters = parameters;
    } else if (node.node().is_object()) {
        record.foreignParameters = node.node(); // a newer program's experiment: kept, shown as text
    } else {
        return node.expected("an object");
    }
    return {};
}

/// Where the new key is not there already.
void renameMember(Json& object, const char* from, const char* to)
{
    const auto old = object.find(from);
    if (old == object.end())
        return;
    Json value = std::move(*old);
    object.erase(from);
    if (!object.contains(to))
        object[to] = std::move(value);
}

Result<Record> readRecordNode(const JsonReader& reader, DeviceSource& devices)
{
    Record record;
    MEMSCAPE_TRY(experiment, reader.string("experiment"));
    MEMSCAPE_TRY(name, reader.string("name", ""));
    MEMSCAPE_TRY(note, reader.string("note", ""));
    MEMSCAPE_TRY(pinned, reader.boolean("pinned", false));
    MEMSCAPE_TRY(baseline, reader.boolean("baseline", false));
    record.experiment = experiment;
    record.name = name;
    record.note = note;
    record.pinned = pinned;
    record.baseline = baseline;
    MEMSCAPE_CHECK(readParameters(record, reader));
    MEMSCAPE_TRY(deviceNode, reader.at("device"));
    MEMSCAPE_TRY(device, devices.read(deviceNode));
    record.device = std::move(device);
    MEMSCAPE_TRY(predicted, optionalOutcome(reader, "predicted"));
    MEMSCAPE_TRY(measured, optionalOutcome(reader, "measured"));
    record.predicted = std::move(predicted);
    if (record.predicted)
        renameMember(record.predicted->detail, "doctor", "out_of_memory"); // until version 0.1.0
    record.measured = std::move(measured);
    if (reader.has("provenance")) {
        MEMSCAPE_TRY(provenance, reader.at("provenance"));
        if (!provenance.node().is_object())
            return provenance.expected("an object");
        record.provenance = provenance.node();
        renameMember(record.provenance, "grade_reason", "reason"); // of a GPU, until version 0.1.0
    }
    record.extra = unknownKeys(reader.node(), recordKeys);
    return record;
}

Error newerDocument(int version, int ours, const std::string& place)
{
    return Error{"document.newer",
                 fmt::format("version {} is newer than this program reads (version {})", version, ours),
                 under(place, "version"), "update Memscape to open it"};
}

Result<Record> recordFrom(const Json& json, const std::string& place, DeviceSource& devices)
{
    const JsonReader reader(json, place);
    MEMSCAPE_TRY(version, checkedVersion(reader, "memscape-record"));
    if (version > recordVersion)
        return fail(newerDocument(version, recordVersion, place));
    Json copy;
    const Json& current = migrated(json, version, recordMigrations, copy);
    if (&current == &json)
        return readRecordNode(JsonReader(json, place), devices);
    DeviceSource own; // a device of the copy goes with it
    return readRecordNode(JsonReader(current, place), own);
}

/// Runs of neighbours on the cores of this machine: neighbours often name the same device. A part is parsed for its
/// record and dropped with its run: all of a large study at once would take several times its size.
Result<std::vector<Record>> recordsFrom(const std::vector<JsonReader>& items, std::string_view text,
                                        const std::vector<JsonPart>& parts)
{
    constexpr std::size_t neighbours = 16;
    std::vector<const JsonPart*> partOf(items.size(), nullptr);
    for (const JsonPart& part : parts)
        partOf[part.element] = &part;
    std::vector<Result<Record>> read(items.size());
    inParallel(quotientUp(items.size(), neighbours), coreCount(), [&](std::size_t run) {
        std::array<std::optional<Json>, neighbours> parsed;
        DeviceSource devices;
        for (std::size_t i = run * neighbours; i < std::min(items.size(), (run + 1) * neighbours); ++i) {
            auto& own = parsed[i % neighbours];
            if (partOf[i])
                own = parsePart(text, *partOf[i]);
            read[i] = partOf[i] && !own ? fail("json.syntax", "not valid JSON", {}, items[i].path())
                                        : recordFrom(own ? *own : items[i].node(), items[i].path(), devices);
        }
    });
    std::vector<Record> records;
    records.reserve(read.size());
    for (Result<Record>& one : read) {
        MEMSCAPE_TRY(record, std::move(one));
        records.push_back(std::move(record));
    }
    return records;
}

Result<void> writeReadable(const std::filesystem::path& path, const std::string& text)
{
    MEMSCAPE_CHECK(checkReadable(text));
    return writeFileAtomically(path, text);
}

} // namespace

Comparison Record::comparison() const
{
    return predicted && measured ? compare(*predicted, *measured) : Comparison{};
}

std::optional<std::size_t> baselineOf(const std::vector<Record>& records, std::string_view experiment)
{
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (records[i].baseline && records[i].experiment == experiment)
            return i;
    }
    return std::nullopt;
}

const Record* baselineFor(const Record& record, const std::vector<Record>& records)
{
    const auto index = baselineOf(records, record.experiment);
    return index && &records[*index] != &record ? &records[*index] : nullptr;
}

std::string programVersion()
{
    return MEMSCAPE_VERSION;
}

std::string utcNow()
{
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
}

Json programProvenance()
{
    return {{"program", "memscape"}, {"version", programVersion()}, {"time", utcNow()}};
}

Result<Record> predictRecord(const Experiment& experiment, const Device& device, const Parameters& parameters)
{
    PredictionContext once;
    return predictRecord(experiment, device, parameters, once);
}

Result<Record> predictRecord(const Experiment& experiment, const Device& device, const Parameters& parameters,
                             PredictionContext& context)
{
    auto predicted = experiment.predict(device, parameters, context);
    if (!predicted && parameters.sweep() && predicted.error().code != "predict.cancelled") {
        // The first point of a sweep is refused: the others stand without what the experiment adds to that one.
        if (auto others = experiment.Experiment::predict(device, parameters, context))
            predicted = std::move(others);
    }
    MEMSCAPE_TRY(prediction, std::move(predicted));
    Record record;
    record.experiment = experiment.id();
    record.parameters = parameters;
    record.device = device;
    record.predicted = std::move(prediction);
    record.provenance = programProvenance();
    return record;
}

std::vector<Claim> claimsOf(const Record& record)
{
    const auto experiment = findExperiment(record.experiment);
    if (!experiment || record.parameters.values().size() != (*experiment)->schema().size())
        return {};
    return (*experiment)->claims(record.device, record.parameters, record.measured.value_or(Measurement()));
}

void judgeMeasured(Record& record)
{
    if (!record.measured)
        return;
    if (const auto claims = claimsOf(record); !claims.empty())
        record.measured->detail["claims"] = claimsJson(claims);
}

Json recordToJson(const Record& record)
{
    Json json{{"format", "memscape-record"}, {"version", recordVersion}};
    if (!record.name.empty())
        json["name"] = record.name;
    if (!record.note.empty())
        json["note"] = record.note;
    if (record.pinned)
        json["pinned"] = true;
    if (record.baseline)
        json["baseline"] = true;
    json["experiment"] = record.experiment;
    json["parameters"] =
        record.foreignParameters.is_object() ? record.foreignParameters : parametersToJson(record.parameters);
    json["device"] = deviceToJson(record.device);
    json["predicted"] = record.predicted ? outcomeToJson(*record.predicted) : Json();
    json["measured"] = record.measured ? outcomeToJson(*record.measured) : Json();
    json["comparison"] = record.predicted && record.measured ? comparisonToJson(record.comparison()) : Json();
    json["provenance"] = record.provenance.is_object() ? record.provenance : Json::object();
    putBack(json, record.extra);
    return json;
}

Result<Record> recordFromJson(const Json& json, const std::string& place)
{
    DeviceSource devices;
    return recordFrom(json, place, devices);
}

Json studyToJson(const Study& study)
{
    Json records = Json::array();
    for (const Record& record : study.records)
        records.push_back(recordToJson(record));
    Json json{{"format", "memscape-study"},
              {"version", studyVersion},
              {"title", study.title},
              {"records", std::move(records)},
              {"view", study.view.is_object() ? study.view : Json::object()}};
    putBack(json, study.extra);
    return json;
}

Result<Study> studyFromJson(const Json& json)
{
    return studyFromJson(json, {}, {});
}

Result<Study> studyFromJson(const Json& json, std::string_view text, const std::vector<JsonPart>& parts)
{
    const JsonReader outer(json);
    MEMSCAPE_TRY(version, checkedVersion(outer, "memscape-study"));
    Study study;
    study.newer = version > studyVersion;
    Json copy;
    const Json& current = study.newer ? json : migrated(json, version, studyMigrations, copy);
    const JsonReader reader(current);
    MEMSCAPE_TRY(title, reader.string("title", ""));
    study.title = title;
    MEMSCAPE_TRY(records, reader.at("records"));
    MEMSCAPE_TRY(items, records.items());
    MEMSCAPE_TRY(read, recordsFrom(items, text, parts));
    study.records = std::move(read);
    if (reader.has("view")) {
        MEMSCAPE_TRY(view, reader.at("view"));
        if (!view.node().is_object())
            return view.expected("an object");
        study.view = view.node();
    }
    study.extra = unknownKeys(current, studyKeys);
    return study;
}

Result<void> writeRecord(const std::filesystem::path& path, const Record& record)
{
    return writeReadable(path, jsonText(recordToJson(record)));
}

Result<void> writeStudy(const std::filesystem::path& path, const Study& study)
{
    if (study.newer) {
        return fail("document.newer", "this study was written by a newer program and is open read-only",
                    "save it under another name, or update Memscape", path.string());
    }
    return writeReadable(path, jsonText(studyToJson(study)));
}

} // namespace memscape
