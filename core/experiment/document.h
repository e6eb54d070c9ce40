// SPDX-License-Identifier: Apache-2.0
// A document of ours as it was read: its text, what kind it is, and the record or the study that it holds.
#pragma once

#include "core/base/json_parts.h"
#include "core/experiment/record.h"

#include <filesystem>

namespace memscape {

/// "memscape-record", "memscape-study", "memscape-device", "memscape-chain", "memscape-lab", "memscape-answers",
/// "memscape-media";
/// document.format with what it looks like instead (a config.json, a snapshot, not JSON).
Result<std::string> documentFormat(const Json& json);

class Document
{
public:
    /// Errors: json.syntax and json.limit, with the place.
    static Result<Document> parse(std::string text);

    const std::string& text() const { return m_text; }
    /// Of a large study without its records: null stands in their places.
    const Json& json() const { return m_divided.rest; }
    Result<std::string> format() const { return documentFormat(json()); }
    Result<Record> record() const; ///< errors: those of recordFromJson()
    Result<Study> study() const;   ///< errors: those of studyFromJson(), json.syntax

private:
    std::string m_text;
    DividedJson m_divided; ///< not divided: no parts
};

Result<Record> readRecord(const std::filesystem::path& path);
Result<Study> readStudy(const std::filesystem::path& path); ///< a record file opens as a study of one

} // namespace memscape
