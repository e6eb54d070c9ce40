// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/document.h"

#include "core/base/file.h"
#include "core/base/json_shape.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The file's name in front of the place inside it.
template <typename T> Result<T> inFile(Result<T> result, const std::filesystem::path& path)
{
    if (!result)
        return fail(placedIn(path.string(), std::move(result.error())));
    return result;
}

Result<Document> readDocument(const std::filesystem::path& path)
{
    MEMSCAPE_TRY(text, readFile(path));
    return inFile(Document::parse(std::move(text)), path);
}

} // namespace

Result<Document> Document::parse(std::string text)
{
    Document document;
    document.m_text = std::move(text);
    MEMSCAPE_CHECK(checkJsonShape(document.m_text));
    if (auto divided = divideJson(document.m_text, "records")) {
        document.m_divided = std::move(*divided);
        return document;
    }
    MEMSCAPE_TRY(json, parseJson(document.m_text));
    document.m_divided.rest = std::move(json);
    return document;
}

Result<Record> Document::record() const
{
    if (m_divided.parts.empty())
        return recordFromJson(json());
    MEMSCAPE_TRY(whole, parseJson(m_text));
    return recordFromJson(whole);
}

Result<Study> Document::study() const
{
    auto study = studyFromJson(json(), m_text, m_divided.parts);
    if (study || study.error().code != "json.syntax")
        return study;
    MEMSCAPE_TRY(whole, parseJson(m_text)); // it knows the line
    return studyFromJson(whole);
}

Result<std::string> documentFormat(const Json& json)
{
    constexpr std::array<std::string_view, 7> formats{"memscape-record", "memscape-study", "memscape-device",
                                                      "memscape-chain",  "memscape-lab",   "memscape-answers",
                                                      "memscape-media"};
    const std::string hint = "Memscape documents begin with {\"format\": \"memscape-…\"";
    if (!json.is_object())
        return fail("document.format", "not a Memscape document", hint + "}");
    const auto it = json.find("format");
    if (it == json.end()) {
        if (json.contains("model_type") || json.contains("architectures"))
            return fail("document.format", "this is a model's config.json, not a Memscape document",
                        "describe a model with memscape-cli, or open a record or a study", "format");
        if (json.contains("segments") && json.contains("device_traces"))
            return fail("document.format", "this is a PyTorch memory snapshot, not a Memscape document",
                        "open a record or a study", "format");
        return fail("document.format", "not a Memscape document", hint + "}", "format");
    }
    if (!it->is_string())
        return JsonReader(*it, "format").expected("a format name");
    const auto& format = it->get_ref<const std::string&>();
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
        return fail("document.format", fmt::format("unknown format \"{}\"", quotedForMessage(format)),
                    didYouMean(format, {formats.begin(), formats.end()}), "format");
    }
    return format;
}

Result<Record> readRecord(const std::filesystem::path& path)
{
    MEMSCAPE_TRY(document, readDocument(path));
    return inFile(document.record(), path);
}

Result<Study> readStudy(const std::filesystem::path& path)
{
    MEMSCAPE_TRY(document, readDocument(path));
    const auto format = document.format();
    if (!format || *format != "memscape-record")
        return inFile(document.study(), path);
    MEMSCAPE_TRY(record, inFile(document.record(), path));
    Study study;
    study.title = record.name.empty() ? path.stem().string() : record.name;
    study.records.push_back(std::move(record));
    return study;
}

} // namespace memscape
