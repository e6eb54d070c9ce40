// SPDX-License-Identifier: Apache-2.0
// What is special to `layout`: the steps, the walk, the code that says the same, every version of the copy.
#include "core/experiments/layout/layout.h"

#include "core/access/views/view_code.h"

namespace memscape {

namespace {

Json viewJson(const TensorView& view)
{
    Json json{{"size", view.size}, {"stride", view.stride}, {"offset", view.offset}};
    json["contiguous"] = view.isContiguous();
    json["channels_last"] = view.rank() == 4 ? Json(view.isChannelsLast()) : Json();
    json["channels_last_3d"] = view.rank() == 5 ? Json(view.isChannelsLast3d()) : Json();
    json["dense"] = view.isDense();
    json["storage_elements"] = view.storage;
    return json;
}

Json argumentsJson(const ViewOperation& operation)
{
    const OperationSpec& spec = *findOperation(operation.name);
    Json json = Json::array();
    for (std::size_t i = 0; i < operation.arguments.size(); ++i) {
        const Argument& argument = operation.arguments[i];
        switch (spec.arguments[i].kind) {
        case ArgumentKind::List: json.push_back(argument.list); break;
        case ArgumentKind::Flag: json.push_back(*argument.integer != 0); break;
        case ArgumentKind::Format:
            json.push_back(argument.isPreserve                                   ? "preserve_format"
                               : argument.format == MemoryFormat::ChannelsLast   ? "channels_last"
                               : argument.format == MemoryFormat::ChannelsLast3d ? "channels_last_3d"
                                                                                 : "contiguous_format");
            break;
        case ArgumentKind::Integer:
        case ArgumentKind::OptionalInteger: json.push_back(argument.integer ? Json(*argument.integer) : Json()); break;
        }
    }
    return json;
}

Json versionsJson(const Device& device, const LayoutCase& asked)
{
    Json versions = Json::array();
    const double bytes = 2 * double(asked.view.elements()) * double(asked.itemBytes());
    for (int version = 1; asked.needsCopy() && version <= copyVersionCount; ++version) {
        const auto time = copyTime(device, asked.copyWalk(), version);
        if (!time)
            continue;
        versions.push_back({{"version", version},
                            {"lesson", copyLesson(device.isGpu(), version)},
                            {"time", jsonNumber(time->seconds)},
                            {"bandwidth", jsonNumber(bytes / time->seconds)},
                            {"limit", time->limit}});
    }
    return versions;
}

Json servedJson(const WalkTime& time)
{
    Json served = Json::array();
    for (const LevelShare& share : time.served)
        served.push_back(
            {{"level", share.level}, {"bytes", jsonNumber(share.bytes)}, {"time", jsonNumber(share.seconds)}});
    return served;
}

} // namespace

Json stepJson(const ViewStep& step, std::int64_t itemBytes)
{
    Json json{{"op", step.operation.name},
              {"text", viewText(step.operation)},
              {"args", argumentsJson(step.operation)},
              {"ok", step.ok},
              {"error", step.ok ? Json() : Json(step.error)},
              {"message", step.ok ? Json() : Json(step.message)}};
    json.update(viewJson(step.view));
    json["copied"] = step.copied;
    json["copied_bytes"] = step.written * itemBytes;
    return json;
}

Json layoutDetail(const Device& device, const LayoutAnswer& answer)
{
    const LayoutCase& asked = answer.asked;
    Json steps = Json::array();
    for (const ViewStep& step : asked.steps)
        steps.push_back(stepJson(step, asked.itemBytes()));
    Json loops = Json::array();
    const TensorWalk walk = asked.walk();
    for (auto loop = walk.loops.rbegin(); loop != walk.loops.rend(); ++loop)
        loops.push_back({{"count", loop->count}, {"stride", loop->stride}});
    return {{"base", viewJson(asked.base)},
            {"steps", std::move(steps)},
            {"view", viewJson(asked.view)},
            {"item_bytes", asked.itemBytes()},
            {"code",
             {{"pytorch", pytorchCode(asked.steps)},
              {"numpy", numpyCode(asked.base, asked.steps, asked.itemBytes())},
              {"numpy_strides", byteStridesText(asked.view, asked.itemBytes())}}},
            {"walk",
             {{"loops", std::move(loops)},
              {"sequential", walk.isSequential()},
              {"limit", answer.view.limit},
              {"served", servedJson(answer.view)},
              {"contiguous_served", servedJson(answer.dense)}}},
            {"versions", versionsJson(device, asked)}};
}

} // namespace memscape
