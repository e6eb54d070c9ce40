// SPDX-License-Identifier: Apache-2.0
// Foreign files are checked for what any use of them needs, no more: a config.json by reading the model
// that it describes (what was assumed is said), a chain and a snapshot by reading it.
#include "app/cli/documents.h"

#include "core/base/text.h"
#include "core/checkpoint/chain.h"
#include "core/device/media.h"
#include "core/experiment/document.h"
#include "core/experiment/study_size.h"
#include "core/lab/lab_attempt.h"
#include "core/network/inventory.h"
#include "core/network/model_config.h"
#include "core/network/network_file.h"
#include "core/snapshot/snapshot_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

std::string sidesText(const Record& record)
{
    if (record.predicted && record.measured)
        return "predicted and measured";
    return record.predicted ? "predicted" : record.measured ? "measured" : "neither predicted nor measured";
}

Result<std::string> describeRecord(const Document& document)
{
    MEMSCAPE_TRY(record, document.record());
    const std::string device = record.device.name.empty() ? record.device.id : record.device.name;
    return fmt::format("record of {} on {}, {}", record.experiment, device, sidesText(record));
}

Result<std::string> describeStudy(const Document& document)
{
    MEMSCAPE_TRY(study, document.study());
    if (study.newer)
        return fail("document.newer", "this study was written by a newer Memscape",
                    "it opens read-only; update Memscape to check it", "version");
    const auto heavy = heavyStudyNote(document.text(), study);
    return fmt::format("study of {} record{}{}", study.records.size(), study.records.size() == 1 ? "" : "s",
                       heavy ? ". Caution: " + heavy->text() : "");
}

Result<std::string> describeDevice(const Json& json)
{
    MEMSCAPE_TRY(device, deviceFromJson(json));
    return fmt::format("device {}: {}, {} levels, {}", device.id, device.name, device.levels.size(), device.basis);
}

Result<std::string> describeMedia(const Json& json)
{
    MEMSCAPE_TRY(media, mediaFromJson(json, {}));
    std::string names;
    for (const Medium& medium : media)
        names += (names.empty() ? "" : "; ") + quotedForMessage(medium.name);
    return fmt::format("{} {}: {}", media.size(), media.size() == 1 ? "medium" : "media", names);
}

Result<std::string> describeChain(const Json& json)
{
    MEMSCAPE_TRY(chain, chainFromJson(JsonReader(json)));
    return fmt::format("chain of {} stage{}{}", chain.length(), chain.length() == 1 ? "" : "s",
                       chain.units.isBytes ? "" : ", in abstract units");
}

/// The text alone; `memscape-cli lab check` looks at the whole folder.
Result<std::string> describeLab(const Json& json)
{
    MEMSCAPE_TRY(id, JsonReader(json).string("id"));
    MEMSCAPE_TRY(steps, JsonReader(json).at("steps"));
    MEMSCAPE_TRY(items, steps.items());
    return fmt::format("lab {} of {} steps", quotedForMessage(id), items.size());
}

Result<std::string> describeAnswers(const Json& json, const std::string& text)
{
    MEMSCAPE_TRY(id, JsonReader(json).string("lab"));
    MEMSCAPE_TRY(lab, findLab(id));
    MEMSCAPE_TRY(attempt, LabAttempt::parse(lab, text));
    return fmt::format("answers of {} to the lab {}{}", quotedForMessage(attempt.student()), id,
                       attempt.isOfThisLab() ? "" : ", written for another version of it");
}

Result<std::string> describeConfig(const Json& json)
{
    MEMSCAPE_TRY(model, modelFromConfig(JsonReader(json), "config.json", UnknownArchitecture::LikeLlama));
    MEMSCAPE_TRY(list, inventory(model));
    MEMSCAPE_TRY(type, JsonReader(json).string("model_type", "a model"));
    std::string text = fmt::format("Hugging Face config.json of {}, {} parameters", type, list.total);
    if (list.active != list.total)
        text += fmt::format(", {} for each token", list.active);
    if (!model.caution.empty())
        text += fmt::format(". Caution: {}", model.caution);
    if (!model.assumptions.empty())
        text += fmt::format(" ({})", join(model.assumptions, "; "));
    return text;
}

Result<std::string> describeNetworkFile(const Json& json)
{
    MEMSCAPE_TRY(file, networkFileFromJson(JsonReader(json)));
    const auto operators =
        std::ranges::count_if(file.program, [](const FileStep& step) { return step.kind == FileStep::Kind::Operator; });
    std::string text = fmt::format("network file of {}, {} parameter tensors, {} operators", file.name,
                                   file.parameters.size(), operators);
    if (!file.assumptions.empty())
        text += fmt::format(" ({})", join(file.assumptions, " "));
    return text;
}

Result<std::string> describeSnapshotJson(const Json& json)
{
    const JsonReader reader(json);
    MEMSCAPE_TRY(node, reader.at("segments"));
    MEMSCAPE_TRY(segments, node.items());
    std::size_t blocks = 0;
    for (const JsonReader& segment : segments) {
        MEMSCAPE_TRY(size, segment.number("total_size"));
        if (size < 0)
            return segment.expected("a segment of 0 bytes or more");
        MEMSCAPE_TRY(inside, segment.at("blocks"));
        MEMSCAPE_TRY(items, inside.items());
        blocks += items.size();
    }
    return fmt::format("PyTorch memory snapshot: {} segments, {} blocks", segments.size(), blocks);
}

} // namespace

std::string describeSnapshot(const Snapshot& snapshot)
{
    double reserved = 0, active = 0;
    for (const SnapshotSegment& segment : snapshot.segments)
        reserved += double(segment.size);
    for (const SnapshotBlock& block : snapshot.blocks)
        active += block.state == SnapshotBlockState::Free ? 0 : double(block.size);
    std::string text =
        fmt::format("{}: {} segments of {}, {} blocks, {} in use, {} events",
                    snapshot.run ? "recorded run of PyTorch" : "PyTorch memory snapshot", snapshot.segments.size(),
                    bytesText(reserved), snapshot.blocks.size(), bytesText(active), snapshot.events.size());
    if (!snapshot.notes.empty())
        text += fmt::format(" ({})", join(snapshot.notes, " "));
    return text;
}

Result<std::string> describeDocument(std::string_view text)
{
    if (looksLikePickle(text)) {
        MEMSCAPE_TRY(snapshot, readSnapshotBytes(text));
        return describeSnapshot(snapshot);
    }
    MEMSCAPE_TRY(document, Document::parse(std::string(text)));
    const Json& json = document.json();
    if (json.is_object() && !json.contains("format")) {
        if (json.contains("segments") && json.contains("device_traces"))
            return describeSnapshotJson(json);
        if (json.contains("model_type") || json.contains("architectures") || json.contains("text_config"))
            return describeConfig(json);
    }
    if (isNetworkFile(JsonReader(json)))
        return describeNetworkFile(json);
    MEMSCAPE_TRY(format, document.format());
    if (format == "memscape-record")
        return describeRecord(document);
    if (format == "memscape-study")
        return describeStudy(document);
    if (format == "memscape-device")
        return describeDevice(json);
    if (format == "memscape-media")
        return describeMedia(json);
    if (format == "memscape-lab")
        return describeLab(json);
    if (format == "memscape-answers")
        return describeAnswers(json, document.text());
    return describeChain(json);
}

} // namespace memscape::cli
