// SPDX-License-Identifier: Apache-2.0
// Foreign files are checked for what any use of them needs, no more: a config.json for the sizes that
// must be positive whole numbers, a chain for the lengths of its arrays, a snapshot for being whole.
#include "app/cli/documents.h"

#include "core/experiment/record.h"

#include <array>
#include <cmath>

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

Result<std::string> describeRecord(const Json& json)
{
    MEMSCAPE_TRY(record, recordFromJson(json));
    const std::string device = record.device.name.empty() ? record.device.id : record.device.name;
    return fmt::format("record of {} on {}, {}", record.experiment, device, sidesText(record));
}

Result<std::string> describeStudy(const Json& json)
{
    MEMSCAPE_TRY(study, studyFromJson(json));
    if (study.newer)
        return fail("document.newer", "this study was written by a newer Memscape",
                    "it opens read-only; update Memscape to check it", "version");
    return fmt::format("study of {} record{}", study.records.size(), study.records.size() == 1 ? "" : "s");
}

Result<std::string> describeDevice(const Json& json)
{
    MEMSCAPE_TRY(device, deviceFromJson(json));
    return fmt::format("device {}: {}, {} levels, {}", device.id, device.name, device.levels.size(),
                       device.basis);
}

Result<std::string> describeChain(const Json& json)
{
    const JsonReader reader(json);
    MEMSCAPE_TRY(first, reader.at("forward"));
    MEMSCAPE_TRY(forward, first.numbers());
    const std::size_t length = forward.size();
    struct Array
    {
        const char* key;
        std::size_t extra; // the last stage has a backward but no forward of its own
    };
    for (const Array& array : {Array{"backward", 1}, Array{"values", 1}, Array{"saved", 1},
                               Array{"forward_overhead", 0}, Array{"backward_overhead", 1}}) {
        MEMSCAPE_TRY(node, reader.at(array.key));
        MEMSCAPE_TRY(numbers, node.numbers());
        if (numbers.size() != length + array.extra)
            return node.expected(fmt::format("{} numbers beside {} in forward", length + array.extra, length));
    }
    return fmt::format("chain of {} stages", length);
}

Result<std::string> describeConfig(const Json& json)
{
    constexpr std::array sizes{"hidden_size", "num_hidden_layers", "num_attention_heads",
                               "num_key_value_heads", "intermediate_size", "vocab_size",
                               "max_position_embeddings", "n_embd", "n_layer", "n_head"};
    const JsonReader reader(json);
    int known = 0;
    for (const char* key : sizes) {
        if (!reader.has(key) || json.at(key).is_null())
            continue;
        MEMSCAPE_TRY(node, reader.at(key));
        MEMSCAPE_TRY(value, node.integer());
        if (value < 1)
            return node.expected("a whole number of at least 1");
        ++known;
    }
    if (known == 0)
        return fail("config.sizes", "no model size is named in this config.json",
                    "expected keys such as hidden_size and num_hidden_layers");
    MEMSCAPE_TRY(type, reader.string("model_type", "a model"));
    return fmt::format("Hugging Face config.json of {}", type);
}

Result<std::string> describeSnapshot(const Json& json)
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

/// torch.cuda.memory._dump_snapshot writes a pickle: 0x80, the protocol, …, a final full stop.
bool isPickle(std::string_view text)
{
    return text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

Result<std::string> describePickle(std::string_view text)
{
    if (text.back() != '.')
        return fail("document.truncated", "this pickle breaks off before its end", "copy the file again",
                    fmt::format("byte {}", text.size()));
    if (text.find("device_traces") == std::string_view::npos)
        return fail("document.format", "this is a pickle, but not a PyTorch memory snapshot",
                    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") writes one");
    return std::string("PyTorch memory snapshot (pickle), whole; its contents are not checked");
}

} // namespace

Result<std::string> describeDocument(std::string_view text)
{
    if (isPickle(text))
        return describePickle(text);
    MEMSCAPE_TRY(json, parseJson(text));
    if (json.is_object() && !json.contains("format")) {
        if (json.contains("segments") && json.contains("device_traces"))
            return describeSnapshot(json);
        if (json.contains("model_type") || json.contains("architectures"))
            return describeConfig(json);
    }
    MEMSCAPE_TRY(format, documentFormat(json));
    if (format == "memscape-record")
        return describeRecord(json);
    if (format == "memscape-study")
        return describeStudy(json);
    if (format == "memscape-device")
        return describeDevice(json);
    return describeChain(json);
}

} // namespace memscape::cli
