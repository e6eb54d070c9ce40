// SPDX-License-Identifier: Apache-2.0
#include "core/protocol/message.h"

#include "core/base/text.h"

#include <fmt/format.h>

namespace memscape::protocol {

namespace {

Json errorToJson(const Error& error)
{
    return {{"code", error.code}, {"message", error.message}, {"place", error.place}, {"hint", error.hint}};
}

Result<Error> errorFromJson(const JsonReader& reader)
{
    MEMSCAPE_TRY(code, reader.string("code"));
    MEMSCAPE_TRY(message, reader.string("message"));
    MEMSCAPE_TRY(place, reader.string("place", ""));
    MEMSCAPE_TRY(hint, reader.string("hint", ""));
    return Error{code, message, place, hint};
}

Json toJson(const Hello& hello)
{
    Json devices = Json::array();
    for (const WorkerDevice& device : hello.devices) {
        devices.push_back({{"id", device.id},
                           {"name", device.name},
                           {"missing", device.missing},
                           {"description", device.description}});
    }
    return {{"type", "hello"},
            {"protocol", hello.protocol},
            {"worker", hello.worker},
            {"pid", hello.pid},
            {"devices", std::move(devices)}};
}

Json toJson(const Started& started)
{
    return {{"type", "started"}, {"id", started.id}};
}

Json toJson(const Progress& progress)
{
    return {{"type", "progress"},
            {"id", progress.id},
            {"done", progress.done},
            {"total", progress.total},
            {"label", progress.label}};
}

Json toJson(const Sample& sample)
{
    return {{"type", "sample"},
            {"id", sample.id},
            {"key", sample.key},
            {"x", jsonNumber(sample.point.x)},
            {"name", sample.point.name},
            {"figures", figuresToJson(sample.point.figures)},
            {"detail", sample.point.detail}};
}

Json toJson(const Note& note)
{
    return {{"type", "note"}, {"id", note.id}, {"level", note.level}, {"code", note.code}, {"text", note.text}};
}

Json toJson(const Done& done)
{
    return {{"type", "done"},
            {"id", done.id},
            {"status", done.status},
            {"elapsed", jsonNumber(done.elapsed)},
            {"error", done.error ? errorToJson(*done.error) : Json()},
            {"result", done.result},
            {"provenance", done.provenance}};
}

Json toJson(const UnknownMessage& message)
{
    return {{"type", message.type}};
}

Json toJson(const Run& run)
{
    Json json{{"cmd", "run"},
              {"id", run.id},
              {"experiment", run.experiment},
              {"device", run.device},
              {"parameters", run.parameters.is_object() ? run.parameters : Json::object()}};
    if (run.isForced)
        json["force"] = true;
    return json;
}

Json toJson(const Cancel& cancel)
{
    return {{"cmd", "cancel"}, {"id", cancel.id}};
}
Json toJson(const Quit&)
{
    return {{"cmd", "quit"}};
}

Result<std::int64_t> idOf(const JsonReader& reader)
{
    MEMSCAPE_TRY(node, reader.at("id"));
    return node.integer();
}

Result<Event> readHello(const JsonReader& reader)
{
    Hello hello;
    MEMSCAPE_TRY(protocolNode, reader.at("protocol"));
    MEMSCAPE_TRY(protocol, protocolNode.integer());
    hello.protocol = static_cast<int>(protocol);
    if (hello.protocol != version) // the rest may look different there
        return Event(hello);
    MEMSCAPE_SET(hello.worker, reader.string("worker", ""));
    MEMSCAPE_SET(hello.pid, reader.integer("pid", 0));
    MEMSCAPE_TRY(devices, reader.at("devices"));
    MEMSCAPE_TRY(items, devices.items());
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(id, item.string("id"));
        MEMSCAPE_TRY(name, item.string("name", id));
        MEMSCAPE_TRY(missing, item.string("missing", ""));
        hello.devices.push_back({id, name, missing, item.has("description") ? item.node()["description"] : Json()});
    }
    return Event(std::move(hello));
}

Result<Event> readProgress(const JsonReader& reader)
{
    MEMSCAPE_TRY(id, idOf(reader));
    MEMSCAPE_TRY(done, reader.integer("done", 0));
    MEMSCAPE_TRY(total, reader.integer("total", 0));
    MEMSCAPE_TRY(label, reader.string("label", ""));
    return Event(Progress{id, static_cast<int>(done), static_cast<int>(total), label});
}

Result<Event> readSample(const JsonReader& reader)
{
    MEMSCAPE_TRY(id, idOf(reader));
    MEMSCAPE_TRY(key, reader.string("key"));
    MEMSCAPE_TRY(x, reader.number("x"));
    MEMSCAPE_TRY(name, reader.string("name", ""));
    MEMSCAPE_TRY(figuresNode, reader.at("figures"));
    MEMSCAPE_TRY(figures, figuresFromJson(figuresNode));
    Json detail = reader.has("detail") ? reader.node()["detail"] : Json();
    return Event(Sample{id, key, Point{x, name, std::move(figures), std::move(detail)}});
}

Result<Event> readNote(const JsonReader& reader)
{
    MEMSCAPE_TRY(id, reader.integer("id", 0));
    MEMSCAPE_TRY(level, reader.string("level", "info"));
    MEMSCAPE_TRY(code, reader.string("code", ""));
    MEMSCAPE_TRY(text, reader.string("text"));
    return Event(Note{id, level, code, text});
}

Result<Event> readDone(const JsonReader& reader)
{
    Done done;
    MEMSCAPE_SET(done.id, idOf(reader));
    MEMSCAPE_SET(done.status, reader.string("status"));
    MEMSCAPE_SET(done.elapsed, reader.number("elapsed", 0.0));
    if (reader.has("error") && !reader.node()["error"].is_null()) {
        MEMSCAPE_TRY(node, reader.at("error"));
        MEMSCAPE_SET(done.error, errorFromJson(node));
    }
    done.result = reader.has("result") ? reader.node()["result"] : Json();
    done.provenance = reader.has("provenance") ? reader.node()["provenance"] : Json();
    return Event(std::move(done));
}

Result<Json> parsedLine(std::string_view line)
{
    if (line.size() > lineLimit)
        return fail("protocol.limit", fmt::format("a line of more than {} MiB", lineLimit >> 20));
    auto json = parseJson(line);
    if (!json && json.error().code == "json.limit")
        return fail("protocol.limit", json.error().message, "what a worker sends is smaller: restart the workers",
                    json.error().place);
    if (!json || !json->is_object()) {
        return fail("protocol.syntax", fmt::format("not a message: \"{}\"", quotedForMessage(line)),
                    "stdout of a worker may carry only its messages");
    }
    return json;
}

std::string line(const Json& json)
{
    return jsonLine(json) + '\n';
}

} // namespace

std::string encode(const Event& event)
{
    return std::visit([](const auto& one) { return line(toJson(one)); }, event);
}

std::string encode(const Command& command)
{
    return std::visit([](const auto& one) { return line(toJson(one)); }, command);
}

Result<Event> decodeEvent(std::string_view text)
{
    MEMSCAPE_TRY(json, parsedLine(text));
    const JsonReader reader(json);
    MEMSCAPE_TRY(type, reader.string("type"));
    if (type == "hello")
        return readHello(reader);
    if (type == "started") {
        MEMSCAPE_TRY(id, idOf(reader));
        return Event(Started{id});
    }
    if (type == "progress")
        return readProgress(reader);
    if (type == "sample")
        return readSample(reader);
    if (type == "note")
        return readNote(reader);
    if (type == "done")
        return readDone(reader);
    return Event(UnknownMessage{type});
}

Result<Command> decodeCommand(std::string_view text)
{
    MEMSCAPE_TRY(json, parsedLine(text));
    const JsonReader reader(json);
    MEMSCAPE_TRY(command, reader.string("cmd"));
    if (command == "quit")
        return Command(Quit{});
    if (command == "cancel") {
        MEMSCAPE_TRY(id, idOf(reader));
        return Command(Cancel{id});
    }
    if (command == "run") {
        MEMSCAPE_TRY(id, idOf(reader));
        MEMSCAPE_TRY(experiment, reader.string("experiment"));
        MEMSCAPE_TRY(device, reader.string("device"));
        Json parameters = reader.has("parameters") ? reader.node()["parameters"] : Json::object();
        if (!parameters.is_object())
            return JsonReader(parameters, "parameters").expected("an object");
        MEMSCAPE_TRY(isForced, reader.boolean("force", false));
        return Command(Run{id, experiment, device, std::move(parameters), isForced});
    }
    return fail("protocol.command", fmt::format("no command \"{}\"", quotedForMessage(command)),
                didYouMean(command, {"run", "cancel", "quit"}));
}

Result<std::vector<std::string>> LineReader::feed(std::string_view bytes)
{
    bool overflowed = false;
    while (!bytes.empty()) {
        const auto end = bytes.find('\n');
        const std::string_view part = bytes.substr(0, end);
        if (!m_dropping)
            m_rest += part;
        if (m_rest.size() > lineLimit) {
            overflowed = true;
            m_dropping = true;
            m_rest.clear();
        }
        if (end == std::string_view::npos)
            break;
        bytes.remove_prefix(end + 1);
        if (!m_dropping) {
            if (m_rest.ends_with('\r'))
                m_rest.pop_back();
            if (!m_rest.empty())
                m_whole.push_back(std::move(m_rest));
        }
        m_rest.clear();
        m_dropping = false;
    }
    if (overflowed)
        return fail("protocol.limit", fmt::format("a line of more than {} MiB", lineLimit >> 20));
    return std::exchange(m_whole, {});
}

std::string LineReader::finish()
{
    m_dropping = false;
    return std::exchange(m_rest, {});
}

} // namespace memscape::protocol
