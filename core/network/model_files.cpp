// SPDX-License-Identifier: Apache-2.0
#include "core/network/model_files.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/network/gguf.h"
#include "core/network/gguf_model.h"
#include "core/network/inventory.h"
#include "core/network/network_file.h"
#include "core/network/safetensors.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t configLimit = 16u << 20; // real ones are a few kB; id2label makes some 1 MB

constexpr std::size_t networkFileLimit = 256u << 20;

ModelDescription tracedModel(NetworkFile file, const fs::path& path)
{
    ModelDescription model;
    model.name = path.string();
    model.title = file.name;
    model.architecture = "traced";
    model.family = Family::Traced;
    model.head = HeadKind::None;
    model.source = path.string();
    model.assumptions = file.assumptions;
    model.assumptions.push_back(
        fmt::format("{} is the program that PyTorch {} ran when it was exported: its dropout is "
                    "its own, and other operators, norms or losses cannot be chosen",
                    file.name, file.torch));
    model.program = std::make_shared<const NetworkFile>(std::move(file));
    return model;
}

/// A network file is asked for again with every answer: the last one is kept as long as the file stays as it was.
Result<ModelDescription> readNetworkFile(const fs::path& path, std::size_t size)
{
    struct Kept
    {
        fs::path path;
        std::size_t size = 0;
        fs::file_time_type time;
        ModelDescription model;
    };
    static std::mutex mutex;
    static std::optional<Kept> kept;
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(path, error);
    const std::lock_guard lock(mutex);
    if (kept && !error && kept->path == path && kept->size == size && kept->time == time)
        return kept->model;
    MEMSCAPE_TRY(text, readFile(path, networkFileLimit));
    if (!validUtf8(text))
        return fail("json.encoding", "is not UTF-8 text", "this is not a JSON document, or it was damaged",
                    path.string());
    auto json = parseJson(text);
    auto file = json ? networkFileFromJson(JsonReader(*json)) : tl::unexpected(json.error());
    if (!file) {
        Error problem = file.error();
        problem.place = path.string() + (problem.place.empty() ? "" : ", " + problem.place);
        return fail(std::move(problem));
    }
    MEMSCAPE_TRY(positions, JsonReader(*json, path.string()).integer("positions", 0));
    kept = Kept{path, size, time, tracedModel(std::move(*file), path)};
    kept->model.maxPositions = std::max<std::int64_t>(positions, 0);
    return kept->model;
}

Result<ModelDescription> readConfigFile(const fs::path& path, UnknownArchitecture unknown)
{
    MEMSCAPE_TRY(size, regularFileSize(path));
    if (saysNetworkFile(path))
        return readNetworkFile(path, size);
    if (size > configLimit)
        return fail("file.limit",
                    fmt::format("{} is {} MiB; a configuration of a model is at most {} MiB", path.string(), size >> 20,
                                configLimit >> 20),
                    "name a config.json");
    MEMSCAPE_TRY(text, readFile(path, configLimit));
    if (!validUtf8(text))
        return fail("json.encoding", "is not UTF-8 text", "this is not a JSON document, or it was damaged",
                    path.string());
    auto json = parseJson(text);
    auto model = json ? modelFromConfig(JsonReader(*json), path.string(), unknown) : tl::unexpected(json.error());
    if (!model) {
        Error error = model.error();
        error.place = path.string() + (error.place.empty() ? "" : ", " + error.place);
        return fail(std::move(error));
    }
    model->source = path.string();
    return model;
}

Result<ModelDescription> modelFromWeights(const fs::path& path, bool index, UnknownArchitecture unknown)
{
    auto stored = index ? readSafetensorsIndex(path) : readSafetensors(path);
    if (!stored)
        return fail(stored.error());
    const fs::path config = path.parent_path() / "config.json";
    std::error_code error;
    if (!fs::exists(config, error))
        return fail("config.missing",
                    fmt::format("{} holds {} parameters in {} tensors, but there is no config.json beside it that says "
                                "how they are connected",
                                path.filename().string(), stored->elements, stored->tensors.size()),
                    fmt::format("put the model's config.json into the same folder, or use params:{}", stored->elements),
                    path.string());
    MEMSCAPE_TRY(model, readConfigFile(config, unknown));
    model.name = path.string();
    compareWithStored(model, *stored, path);
    return model;
}

} // namespace

void compareWithStored(ModelDescription& model, const StoredModel& stored, const fs::path& path)
{
    StoredWeights weights{stored.elements, stored.bytes, {}};
    const std::pair<const std::string, std::int64_t>* largest = nullptr;
    for (const auto& entry : stored.bytesByDtype) {
        weights.bytesByDtype.push_back(entry);
        if (!largest || entry.second > largest->second)
            largest = &entry;
    }
    if (largest)
        model.storedDtype = largest->first;
    model.stored = std::move(weights);
    model.source = path.string();
    const auto described = inventory(model);
    if (described && described->total != stored.elements)
        model.assumptions.push_back(
            fmt::format("the weights hold {} elements, the configuration describes {} parameters: "
                        "layers are taken "
                        "from the configuration, the stored bytes from the weights",
                        stored.elements, described->total));
}

// The exporter writes what it is first.
bool saysNetworkFile(const fs::path& path)
{
    std::error_code error;
    if (!fs::is_regular_file(path, error))
        return false; // a pipe would wait
    std::ifstream stream(path, std::ios::binary);
    std::string beginning(4096, '\0');
    stream.read(beginning.data(), std::streamsize(beginning.size()));
    return std::string_view(beginning).substr(0, std::size_t(stream.gcount())).find("\"memscape-network\"")
        != std::string_view::npos;
}

Result<ModelDescription> modelFromFile(const fs::path& path, UnknownArchitecture unknown)
{
    std::error_code error;
    if (fs::is_directory(path, error)) {
        for (const char* name : {"model.safetensors.index.json", "model.safetensors", "config.json"}) {
            if (fs::exists(path / name, error))
                return modelFromFile(path / name, unknown);
        }
        return fail("file.missing", fmt::format("there is no config.json in {}", path.string()),
                    "name a file, or a folder that holds a model's config.json");
    }
    const std::string name = path.filename().string();
    if (name.ends_with(".safetensors.index.json"))
        return modelFromWeights(path, true, unknown);
    if (name.ends_with(".safetensors"))
        return modelFromWeights(path, false, unknown);
    if (saysGguf(path))
        return modelFromGguf(path, unknown);
    return readConfigFile(path, unknown);
}

} // namespace memscape
