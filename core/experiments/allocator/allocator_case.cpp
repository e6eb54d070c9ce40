// SPDX-License-Identifier: Apache-2.0
// From the parameters of `allocator` to requests: a step of a model as Memory budget simulates it, a script, or the
// history of a PyTorch snapshot.
#include "core/experiments/allocator/allocator.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/experiment/schema.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/snapshot/snapshot_reader.h"
#include "core/snapshot/snapshot_requests.h"
#include "core/trace/trace_script.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view modelTracePrefix = "model:";
constexpr std::size_t largestScript = 64 << 20; // B

/// Of a call of the driver whose cost is not given, s. No catalogue has it. cudaMalloc: an assumption; a card of 2010
/// took 50 us from 4 KiB to 512 KiB and more above (M. Boyer, University of Virginia, Memory Allocation Overhead). A
/// host: mmap and munmap of 2 MiB took 8 to 22 us each on a busy virtual machine of 2 cores.
constexpr double assumedGpuCall = 100e-6;
constexpr double assumedHostCall = 10e-6;

bool isScriptText(const std::string& text)
{
    return text.find(';') != std::string::npos || text.find('\n') != std::string::npos
        || lowered(text).starts_with("alloc ");
}

/// "script.txt", "./a/b": something that only a file can be meant by. Models have dots in their names, and digits
/// behind.
bool isPath(const std::string& text)
{
    std::error_code ignored;
    const std::string extension = std::filesystem::path(text).extension().string();
    const bool isNamed = extension.size() > 2 && extension.find_first_of("0123456789:,=") == std::string::npos;
    return isNamed || text.find('/') != std::string::npos || std::filesystem::exists(text, ignored);
}

bool describesModel(const std::string& path)
{
    std::error_code ignored;
    return path.ends_with(".json") || path.ends_with(".safetensors") || std::filesystem::is_directory(path, ignored);
}

struct RequestSource
{
    RequestTrace trace;
    std::string title;
    bool isStep = false;
};

Result<RequestSource> stepSource(const Device& device, const std::string& name, const Parameters& parameters)
{
    const auto model = askedModel(parameters, name);
    if (!model)
        return fail(
            Error{model.error().code, model.error().message, "trace", model.error().hint, model.error().remedy});
    ParameterTexts texts{{"model", name}};
    for (const char* key : {"batch", "sequence"})
        texts.emplace_back(key, fmt::format("{}", parameters.integer(key)));
    for (const char* key : {"precision", "optimizer"})
        texts.emplace_back(key, parameters.choice(key));
    MEMSCAPE_TRY(training, resolve(trainingSchema(), texts));
    MEMSCAPE_TRY(setup, trainingSetup(device, training));
    RecordedNetworks networks(*model);
    MEMSCAPE_TRY(graph, networks.network(setup.build));
    MEMSCAPE_TRY(trace, simulateStep(*graph, *preparedNetwork(networks, *graph), setup.step));
    MEMSCAPE_CHECK(trace.check());
    MEMSCAPE_TRY(requests, requestsOf(trace, mostRequests));
    const auto steps = int(parameters.integer("steps"));
    MEMSCAPE_TRY(all, repeated(std::move(requests), steps, mostRequests));
    return RequestSource{std::move(all),
                         fmt::format("{} of {}", steps == 1 ? "one step" : fmt::format("{} steps", steps),
                                     model->title.empty() ? model->name : model->title),
                         true};
}

bool isPickle(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    char beginning[2] = {};
    file.read(beginning, 2);
    return file && looksLikePickle({beginning, 2});
}

/// Of the device with most events.
Result<RequestSource> snapshotSource(const std::string& path)
{
    const std::string name = std::filesystem::path(path).filename().string();
    const auto read = [&]() -> Result<RequestSource> {
        MEMSCAPE_TRY(snapshot, readSnapshot(path));
        const auto shared = std::make_shared<const Snapshot>(std::move(snapshot));
        MEMSCAPE_TRY(device, SnapshotDevice::analyse(shared, busiestDevice(*shared)));
        MEMSCAPE_TRY(trace, requestsOf(*device, mostRequests));
        return RequestSource{std::move(trace), name, false};
    };
    auto source = read();
    if (source || source.error().code == "predict.cancelled")
        return source;
    Error error = source.error();
    error.message = fmt::format("{} cannot be played: {}", quotedForMessage(name), error.message);
    if (error.hint.empty())
        error.hint = "write it anew: torch.cuda.memory._dump_snapshot()";
    error.place = "trace";
    return fail(std::move(error));
}

/// A PyTorch snapshot, or a file of lines.
Result<RequestSource> fileSource(const std::string& path)
{
    if (isPickle(path))
        return snapshotSource(path);
    auto text = readFile(path, largestScript);
    if (!text) {
        Error error = text.error();
        if (error.code == "file.missing")
            error.hint =
                "name a model (gpt2), a PyTorch snapshot, a file of lines like \"alloc a 96MiB\" and \"free a\", "
                "or the lines themselves with ; between them";
        if (error.code == "file.limit")
            error.hint = "keep a part of it: one step is enough";
        error.place = "trace";
        return fail(std::move(error));
    }
    MEMSCAPE_TRY(trace, parseTraceScript(*text, path));
    return RequestSource{std::move(trace), std::filesystem::path(path).filename().string(), false};
}

Result<RequestSource> requestSource(const Device& device, const Parameters& parameters)
{
    const std::string text(trimmed(parameters.text("trace")));
    if (isScriptText(text)) {
        MEMSCAPE_TRY(trace, parseTraceScript(text));
        return RequestSource{std::move(trace), "a script", false};
    }
    if (text.starts_with(modelTracePrefix))
        return stepSource(device, text.substr(modelTracePrefix.size()), parameters);
    if (isPath(text) && !describesModel(text))
        return fileSource(text);
    return stepSource(device, text, parameters);
}

/// Size and time of a file, which tell whether it is still the one that was read; empty where the text names none.
std::string stampOf(const std::string& path)
{
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    const auto time = std::filesystem::last_write_time(path, missing);
    return missing ? std::string() : fmt::format("{} {}", size, time.time_since_epoch().count());
}

/// The source of the last question, for the next one: another setting asks the same requests.
struct KeptSource
{
    std::vector<std::string> key;
    RequestSource source;
};

Result<RequestSource> keptSource(const Device& device, const Parameters& parameters, PredictionContext& context)
{
    const std::string& trace = parameters.text("trace");
    std::vector<std::string> key{device.id, trace};
    for (const char* number : {"batch", "sequence", "steps"})
        key.push_back(fmt::format("{}", parameters.integer(number)));
    key.push_back(parameters.choice("precision"));
    key.push_back(parameters.choice("optimizer"));
    if (!isModelText(trace))
        key.push_back(stampOf(std::string(trimmed(trace))));
    if (const auto* kept = std::any_cast<KeptSource>(&context.kept); kept && kept->key == key)
        return kept->source;
    MEMSCAPE_TRY(source, requestSource(device, parameters));
    context.kept = KeptSource{std::move(key), source};
    return source;
}

const ChoiceTable<FirstTouch> touches{
    {FirstTouch::Lazy, {"lazy", "when a block is written", "pages come one by one, with a page fault each"}},
    {FirstTouch::Eager, {"eager", "with the segment", "MAP_POPULATE: all pages of a range come when it is taken"}},
    {FirstTouch::None, {"none", "never", "nothing is written: addresses alone are taken"}}};

/// Sizes fit half of a host's memory; a GPU plays them as they are.
std::int64_t divisorOf(const Device& device, const Parameters& parameters, std::int64_t live)
{
    if (const std::int64_t given = parameters.integer("scale"); given > 0)
        return given;
    const auto capacity = capacityOf(device);
    std::int64_t divisor = 1;
    while (!device.isGpu() && capacity && live / divisor > *capacity / 2)
        divisor *= 2;
    return divisor;
}

/// Of setting=recorded. A host begins with nothing reserved: it plays what a recording finds as requests like others.
Result<PolicySetting> recordedSettingOf(const Device& device, const RequestTrace& trace, bool isWhole)
{
    if (!trace.recording)
        return fail("allocator.recorded", "these requests were not recorded: no setting is known",
                    "choose setting=default, or play a snapshot (trace=run.pickle)", "setting");
    const AllocatorOptions& options = trace.recording->options;
    if (!options.caches)
        return readSetting("malloc"); // PyTorch's allocator of a processor
    const std::string text = allocatorOptionsText(options);
    if (!device.isGpu() || !isWhole)
        return readSetting(text);
    MEMSCAPE_TRY(setting, readSetting(recordedSetting));
    setting.options = options;
    if (!text.empty())
        setting.label += ": " + text;
    return setting;
}

Result<PolicySetting> policySetting(const Device& device, const Parameters& parameters, const RequestTrace& trace,
                                    bool isWhole)
{
    auto setting = readSetting(parameters.text("setting"));
    if (!setting) {
        Error error = setting.error();
        error.place = "setting";
        if (error.hint.empty())
            error.hint = "write it as PYTORCH_CUDA_ALLOC_CONF has it: max_split_size_mb:128,expandable_segments:True";
        return fail(std::move(error));
    }
    if (setting->goesOn) {
        MEMSCAPE_TRY(recorded, recordedSettingOf(device, trace, isWhole));
        setting = std::move(recorded);
    }
    if (setting->key == "default" && device.framework && !device.isGpu())
        setting = readSetting("malloc"); // what PyTorch takes memory from on a processor
    AllocatorOptions& options = setting->options;
    const auto capacity = capacityOf(device);
    if (const std::int64_t limit = parameters.integer("limit"); limit > 0)
        options.deviceLimit = limit;
    else if (device.isGpu() && capacity && !setting->goesOn)
        options.deviceLimit = capacity;
    if (const double fraction = parameters.number("fraction"); fraction > 0 && setting->kind == PolicyKind::Caching) {
        const std::int64_t whole = options.deviceLimit.value_or(capacity.value_or(0));
        if (whole == 0)
            return fail("allocator.fraction", "a fraction of which memory? The device's is not known", "give limit too",
                        "fraction");
        options.fractionLimit = std::int64_t(fraction * double(whole));
    }
    return *setting;
}

} // namespace

bool isModelText(const std::string& trace)
{
    const std::string text(trimmed(trace));
    return !isScriptText(text) && (text.starts_with(modelTracePrefix) || !isPath(text) || describesModel(text));
}

Result<AllocatorCase> allocatorCase(const Device& device, const Parameters& parameters, PredictionContext& context)
{
    AllocatorCase asked;
    if (auto setting = policySetting(device, parameters, {}, true);
        !setting && setting.error().code != "allocator.recorded")
        return fail(std::move(setting).error()); // before a step is simulated for it
    MEMSCAPE_TRY(source, keptSource(device, parameters, context));
    asked.title = std::move(source.title);
    asked.isStep = source.isStep;
    RequestTrace trace = std::move(source.trace);
    asked.divisor = divisorOf(device, parameters, peakOfLiveBytes(trace));
    if (asked.divisor > 1)
        divideSizes(trace, asked.divisor);
    MEMSCAPE_SET(asked.setting, policySetting(device, parameters, trace, asked.divisor == 1));
    if (const std::int64_t at = parameters.integer("empty_cache"); at > 0)
        trace = withEmptyCache(std::move(trace), std::size_t(at - 1));
    asked.peakLive = peakOfLiveBytes(trace);
    asked.trace = std::make_shared<const RequestTrace>(std::move(trace));
    asked.touch = touches.of(parameters.choice("touch"));
    asked.driverCall = parameters.number("driver_call");
    asked.assumesDriverCall = asked.driverCall == 0;
    if (asked.assumesDriverCall)
        asked.driverCall = device.isGpu() ? assumedGpuCall : assumedHostCall;
    return asked;
}

Result<AllocatorCase> allocatorCase(const Device& device, const Parameters& parameters)
{
    PredictionContext once;
    return allocatorCase(device, parameters, once);
}

Schema allocatorSchema()
{
    const auto ofTheStep = [](std::string_view key, const char* standard) {
        ParameterSpec spec = *findParameter(trainingSchema(), key);
        spec.help = "Of a model's step. " + spec.help;
        spec.standard = standard;
        spec.group = {};
        return spec;
    };
    return {
        textSpec(
            "trace", "trace",
            "The requests that are played: a training step of a model (gpt2, or what Memory budget takes), a PyTorch "
            "memory snapshot or run file, a file of lines like \"alloc a 96MiB\", \"free a\" and \"empty_cache\", or "
            "such lines here with ; between them.",
            "gpt2", 1),
        textSpec("setting", "setting",
                 "The allocator: default, expandable_segments, max_split_size_mb:128 or any text of "
                 "PYTORCH_CUDA_ALLOC_CONF; recorded, as a snapshot's run had it; first-fit, best-fit, powers-of-two, "
                 "malloc, cudaMalloc, cudaMallocAsync; or a "
                 "plan made beforehand: largest-first, lifetime-colouring.",
                 "default"),
        ofTheStep("batch", "8"),
        ofTheStep("sequence", "1024"),
        ofTheStep("precision", "bf16-mixed"),
        ofTheStep("optimizer", "adamw"),
        integerSpec("steps", "steps", "How many steps follow each other: the second finds the cache of the first.",
                    {.least = 1, .most = 64, .standard = "1", .scale = Scale::Log2}),
        integerSpec("empty_cache", "empty_cache() before",
                    "The request before which torch.cuda.empty_cache() is called, counted from 1.",
                    {.most = double(mostRequests) + 1, .standard = "0", .words = {{"0", "never", "it is not called"}}}),
        integerSpec("limit", "device limit", "What the driver has for this program.",
                    {.most = 0x1p50,
                     .standard = "0",
                     .unit = Unit::Byte,
                     .scale = Scale::Log2,
                     .words = {{"0", "automatic",
                                "a GPU's memory, none on a processor; of setting=recorded what the run had, where the "
                                "driver refused something"}}}),
        realSpec("fraction", "process fraction",
                 "torch.cuda.set_per_process_memory_fraction(): without it garbage_collection_threshold does nothing.",
                 {.most = 1, .words = {{"0", "not set", "it is not called"}}}),
        realSpec("driver_call", "a driver's call",
                 "Seconds that one cudaMalloc or cudaFree takes, when you know it: a measurement says it.",
                 {.most = 1,
                  .standard = "0",
                  .unit = Unit::Second,
                  .words = {{"0", "assumed", "100 us on a GPU, 10 us on a processor"}}}),
        integerSpec("scale", "sizes divided by", "So that a large trace fits a small machine.",
                    {.most = 1 << 20,
                     .standard = "0",
                     .scale = Scale::Log2,
                     .words = {{"0", "automatic", "on a processor, until it fits half of the memory"}}}),
        [] {
            ParameterSpec spec = choiceSpec("touch", "first touch",
                                            "When the system gives the pages of what was reserved.", touches.choices());
            spec.appliesTo = AppliesTo::Hosts;
            return spec;
        }(),
        assumeSpec()};
}

} // namespace memscape
