// SPDX-License-Identifier: Apache-2.0
// Records and studies: the documents that pages, plots, tables, reports and the command line read.
// `{"format": "memscape-record", "version": 1, "experiment", "parameters", "device", "predicted",
// "measured", "comparison", "provenance"}`. Unknown keys are kept and written back. One migration
// function per version. A newer version than ours opens read-only with a message.
#pragma once

#include "core/base/json_parts.h"
#include "core/device/device.h"
#include "core/experiment/comparison.h"
#include "core/experiment/experiment.h"

#include <filesystem>
#include <optional>

namespace memscape {

inline constexpr int recordVersion = 1;
inline constexpr int studyVersion = 1;

struct Record
{
    std::string experiment;
    Parameters parameters;
    /// Of parameters when the experiment is not known to this program: kept as found.
    Json foreignParameters;
    Device device; ///< whole, so that the prediction can be made again
    std::optional<Prediction> predicted;
    std::optional<Measurement> measured;
    Json provenance; ///< program, version, backend, driver, clocks, time, samples; an object
    Json extra;      ///< unknown keys

    // What a person adds to it in a study.
    std::string name; ///< "stride sweep · H200"
    std::string note;
    bool pinned = false;
    /// The others of its experiment are compared with it; where several say so, the first counts.
    bool baseline = false;

    Comparison comparison() const; ///< empty without both sides
};

/// The baseline of an experiment; nothing without one.
std::optional<std::size_t> baselineOf(const std::vector<Record>& records, std::string_view experiment);
/// The one of `records` that `record`, one of them, is compared with; null when there is none or it is the baseline
/// itself.
const Record* baselineFor(const Record& record, const std::vector<Record>& records);

/// Predict and wrap: device, parameters resolved, provenance with program and version.
Result<Record> predictRecord(const Experiment& experiment, const Device& device, const Parameters& parameters);
/// The same, faster for repeated requests.
Result<Record> predictRecord(const Experiment& experiment, const Device& device, const Parameters& parameters,
                             PredictionContext& context);
/// The textbook's claims about the record's experiment, judged by measured numbers where it has them. None of an
/// experiment that this program does not know.
std::vector<Claim> claimsOf(const Record& record);
/// Writes claimsOf() into the detail of what was measured; the prediction keeps its own.
void judgeMeasured(Record& record);

Json recordToJson(const Record& record);
/// Errors: document.format, document.newer, document.experiment, json.*; each names the place.
Result<Record> recordFromJson(const Json& json, const std::string& place = {});

/// A set of records plus what the window shows. `*.memscape`.
struct Study
{
    std::string title;
    std::vector<Record> records;
    Json view;          ///< page, parameters per page, devices, zoom: the window's, opaque to core
    Json extra;         ///< unknown keys
    bool newer = false; ///< written by a newer program: open read-only
};

Json studyToJson(const Study& study);
Result<Study> studyFromJson(const Json& json);
/// A study whose records are still text in part: null in `json`, found by `parts` in `text`.
Result<Study> studyFromJson(const Json& json, std::string_view text, const std::vector<JsonPart>& parts);

Result<void> writeRecord(const std::filesystem::path& path, const Record& record);
Result<void> writeStudy(const std::filesystem::path& path, const Study& study);

/// The time now in UTC, to the second: "2026-01-02T03:04:05Z".
std::string utcNow();
/// {"program": "memscape", "version": "0.1.0", "time": "2026-…Z"}
Json programProvenance();
std::string programVersion();

} // namespace memscape
