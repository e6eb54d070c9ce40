// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"
#include "core/experiments/inference-memory/inference_answer.h"
#include "core/experiments/inference-memory/inference_time.h"
#include "core/experiments/inference-memory/speculative_time.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_band.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/inventory.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

Figure bytesFigure(std::string key, std::string label, double bytes, std::string formula, std::string with,
                   std::string source, std::vector<std::string> omits = {})
{
    return figureOf(std::move(key), std::move(label), Unit::Byte, bytes,
                    Why{std::move(formula), std::move(with), {}, std::move(source), std::move(omits)});
}

Figure countFigure(std::string key, std::string label, double value, std::string formula)
{
    return figureOf(std::move(key), std::move(label), Unit::One, value,
                    Why{std::move(formula), {}, {}, "the simulated pass", {}});
}

bool isQuantized(const StoredForm& form)
{
    return form.kind >= StoredForm::Int8;
}

double headsOnDevice(std::int64_t heads, std::int64_t parallel)
{
    return double(std::max<std::int64_t>(1, heads / parallel));
}

/// What a step of `tokens` of each sequence reads.
Result<Serving> servingOf(const ModelDescription& model, const ServingRequest& request, std::int64_t tokens)
{
    Serving serving;
    serving.batch = request.batch;
    serving.context = request.context;
    serving.sequence = request.chunk;
    serving.tokens = tokens;
    const bool isGguf = request.weights.kind == StoredForm::Gguf;
    serving.library = isGguf && request.library != Library::LlamaCpp2023 ? Library::LlamaCpp : request.library;
    serving.isQuantized = isQuantized(request.weights);
    MEMSCAPE_TRY(stored, storedShares(model, request.weights, elementBytes(request.computed)));
    serving.stored = stored;
    serving.isHeadStored = isGguf || request.weights.quantizesHead;
    serving.isFourBit = request.weights.isNormalFloat();
    serving.isFloat8 = request.weights.kind == StoredForm::Float8;
    serving.isEightBit = serving.isFloat8 || request.weights.kind == StoredForm::Int8
        || request.weights.kind == StoredForm::Gptq8
        || (request.weights.kind == StoredForm::Gguf && request.weights.mixture == GgufMixture::Q8_0);
    serving.hasExperts = model.experts.count > 0;
    serving.isAwq = request.weights.kind == StoredForm::Awq;
    serving.isGptq = request.weights.kind == StoredForm::Gptq;
    serving.queryHeads = headsOnDevice(model.heads, request.tensorParallel);
    if (model.kvHeads > 0 && model.latent.keyValueRank == 0)
        serving.queriesPerKey = serving.queryHeads / headsOnDevice(model.kvHeads, request.tensorParallel);
    serving.isCacheCopied = request.growth != CacheGrowth::Reserved;
    serving.areHeadsCopied = request.transformers <= Transformers::Before454;
    MEMSCAPE_TRY(weights,
                 weightsReadByStep(model, request.weights, elementBytes(request.computed), request.tensorParallel,
                                   request.batch * tokens));
    MEMSCAPE_TRY(cache, // every sequence reads its whole context, pages that it shares included
                 cacheBytes(model, request.cache, {request.batch, request.context, request.tensorParallel}));
    serving.weightsRead = weights;
    serving.cacheRead = double(cache);
    return serving;
}

/// `plain` is a token without the draft.
Result<Figures> draftFigures(const Device& device, const ServingAnswer& answer, const Parameters& parameters,
                             const ServingTime& plain, double held)
{
    const TrainingSetup setup = servingSetup(device, parameters, answer.request, answer.request.batch);
    SpeculativeTime time{parameters.integer("draft_tokens"), parameters.number("draft_acceptance"), {}, {}};
    MEMSCAPE_TRY(drafted, servingOf(answer.draft->model, answer.request, 1));
    MEMSCAPE_TRY(checked, servingOf(answer.model, answer.request, time.proposed + 1));
    time.draft = decodingTime(device, answer.draft->model, setup, drafted, held);
    time.check = decodingTime(device, answer.model, setup, checked, held);
    return speculativeFigures(time, plain);
}

Result<ServingTime> timeOf(const Device& device, const ServingAnswer& answer, const Parameters& parameters, double held)
{
    const ServingRequest& request = answer.request;
    MEMSCAPE_TRY(serving, servingOf(answer.model, request, 1));
    const TrainingSetup setup = servingSetup(device, parameters, request, request.batch);
    const bool isLlamaCpp = serving.library == Library::LlamaCpp || serving.library == Library::LlamaCpp2023;
    serving.writesScores = isLlamaCpp && setup.build.attention == AttentionKernel::Eager;
    return servingTime(device, answer.model, setup, *answer.pass.graph, answer.pass.network->parameters, serving, held);
}

const char* cacheFormula(const ModelDescription& model)
{
    if (model.family == Family::StateSpace)
        return "layers × channels × (state + kernel of the convolution) × bytes × batch, whatever the context";
    if (model.architecture == "whisper")
        return "Σ over the decoder's layers: (tokens kept + the encoder's positions) × 2 × heads × head dimension × "
               "bytes × "
               "batch";
    return "Σ over layers: tokens kept × 2 × KV heads × head dimension × bytes × batch";
}

const char* peakFormula(CacheGrowth growth)
{
    return growth == CacheGrowth::Reserved
        ? "weights + KV cache + activations"
        : "weights + the larger of: the prompt's cache + activations; the context's cache + its copies + activations "
          "of one token";
}

const char* loadingFormula(const LoadingPlan& plan)
{
    switch (plan.way) {
    case LoadingWay::Host: return "the weights, one after the other from the host's memory";
    case LoadingWay::StateDict: return "the weights, when the model is moved";
    case LoadingWay::OnDevice: return "the model and the file's tensors beside it";
    case LoadingWay::InPlace:
        return "the parameters, made before they are filled, and what is quantized or repacked beside them";
    case LoadingWay::Mapped: return "the weights that the device runs, copied from the mapped file";
    case LoadingWay::Direct: break;
    }
    return plan.quantizes() ? "over tensors, by name: what is there already + one as loaded + its quantized form"
                            : "the weights, and what is loaded only to be tied or joined";
}

const char* hostFormula(const LoadingPlan& plan)
{
    switch (plan.way) {
    case LoadingWay::StateDict: return "the model + the file";
    case LoadingWay::OnDevice: return "the model before it is moved";
    case LoadingWay::Host: return "the model, as far as it is not pages of the mapped file";
    case LoadingWay::Direct: return "tensors that are cast or sent back on the way, four at once";
    default: return "nothing of its own: pages of the mapped file";
    }
}

Figures loadingFiguresOf(const ServingAnswer& answer)
{
    const LoadingPeak& peak = answer.loading;
    Figures figures{
        bytesFigure("load_peak", "peak while loading", double(peak.device), loadingFormula(answer.request.loading),
                    fmt::format("= {}, {} of weights stay", bytesText(double(peak.device)),
                                bytesText(double(answer.weights - answer.hostWeights))),
                    "core/training/loading_peak.h",
                    {"temporary tensors of a library's own quantizing", "a draft model"}),
        bytesFigure("load_host", "host memory while loading", double(peak.host), hostFormula(answer.request.loading),
                    {}, "core/training/loading_peak.h", {"Python and its libraries", "the driver's buffers"}),
        bytesFigure("load_mapped", "pages of the file", double(peak.mapped),
                    "the file, where it is mapped: in memory while there is room, taken back when there is none", {},
                    "core/training/loading_peak.h")};
    MemoryBand band;
    band.addWeights(double(peak.device), isQuantized(answer.request.weights));
    band.giveTo(figures.front());
    return figures;
}

/// All but the largest context and batch, which are searched for.
Result<Figures> directFigures(const Device& device, const ServingAnswer& answer, const Parameters& parameters)
{
    const ServingRequest& request = answer.request;
    MEMSCAPE_TRY(tensors, inventory(answer.model));
    MEMSCAPE_TRY(cache, cacheBytes(answer.model, request.cache, request.use()));
    MEMSCAPE_TRY(token, cacheBytes(answer.model, request.cache, {1, 1, request.tensorParallel}));
    MEMSCAPE_TRY(caches, answer.caches(request.use()));
    MEMSCAPE_TRY(moment, answer.fullest(request.use()));
    const std::int64_t drafted = (answer.draft ? answer.draft->weights : 0) + caches - cache;
    const std::int64_t total = answer.allWeights() + moment.bytes();
    const std::int64_t onDevice = total + request.deviceContext;
    const bool fits = answer.fits(total);
    const std::string note = servingNote(parameters);
    Figures figures{
        countFigure("parameter_count", "parameters", double(tensors.total), "Σ over tensors: product of the shape"),
        countFigure("active_parameter_count", "active parameters", double(tensors.active),
                    "parameters that one token uses"),
        bytesFigure("weights", "weights", double(answer.weights),
                    "Σ over tensors: elements × bytes of their form, and scales",
                    fmt::format("= {} ({} bits per parameter)", bytesText(double(answer.weights)),
                                quantityText(8 * double(answer.weights) * double(request.tensorParallel)
                                                 / double(tensors.total),
                                             Unit::One, ByteStyle::Binary, 4)),
                    answer.hostWeights > 0
                        ? fmt::format("formats of llama.cpp, whose layer of inputs, {}, stays in the host's memory",
                                      bytesText(double(answer.hostWeights)))
                        : "formats of bitsandbytes, GPTQ, AWQ",
                    {"padding to a kernel's tile"}),
        bytesFigure(
            "kv_cache", "KV cache", double(cache), cacheFormula(answer.model),
            fmt::format("= {} per token, {} tokens × {}", bytesText(double(token)), request.context, request.batch),
            "the model's description",
            request.page > 1 || request.context == 1
                ? std::vector<std::string>()
                : std::vector<std::string>{"pages of an engine, which are partly empty (cache_page)"}),
        bytesFigure("activations", "activations", double(answer.pass.activations),
                    "most bytes that one forward pass under no_grad adds to the weights",
                    fmt::format("= {} for {} × {} tokens", bytesText(double(answer.pass.activations)), request.batch,
                                request.chunk),
                    "the network's operators",
                    {"eager attention of a chunk over a longer cache writes wider scores than these"}),
        bytesFigure("peak_allocated", "peak allocated", double(total), peakFormula(request.growth),
                    fmt::format("= {} + {}{} + {}", bytesText(double(answer.allWeights())),
                                bytesText(double(moment.cache)),
                                moment.copies > 0 ? " + " + bytesText(double(moment.copies)) : std::string(),
                                bytesText(double(moment.activations))),
                    "the three above" + (note.empty() ? note : "; " + note), {"what the allocator holds beyond it"}),
        bytesFigure("device_total", "device total", double(onDevice), "peak allocated + device context",
                    fmt::format("= {} + {}", bytesText(double(total)), bytesText(double(request.deviceContext))),
                    "the context is a setting"),
        countFigure(
            "fits", "fits", fits ? 1 : 0,
            "1 when the device total, and loading with the device context, are within the device's memory, else 0")};
    for (Figure& figure : loadingFiguresOf(answer))
        figures.push_back(std::move(figure));
    MemoryBand band;
    band.addActivations(double(moment.activations));
    band.addWeights(double(answer.allWeights()), isQuantized(request.weights));
    for (Figure& figure : figures) {
        if (figure.key == "peak_allocated" || figure.key == "device_total")
            band.giveTo(figure);
    }
    const Device linked = withLink(device, parameters.number("link_bandwidth"));
    MEMSCAPE_TRY(time, timeOf(linked, answer, parameters, double(total)));
    for (Figure& figure : servingTimeFigures(time))
        figures.push_back(std::move(figure));
    if (!answer.draft)
        return figures;
    figures.push_back(bytesFigure(
        "draft_model", "draft model", double(drafted), "its weights + its cache",
        fmt::format("= {} + {}", bytesText(double(answer.draft->weights)), bytesText(double(caches - cache))),
        "the description of draft_model", {"its activations"}));
    if (time.of.cacheRead > 0) {
        MEMSCAPE_TRY(speculative, draftFigures(linked, answer, parameters, time, double(total)));
        for (Figure& figure : speculative)
            figures.push_back(std::move(figure));
    }
    return figures;
}

} // namespace

Result<Figures> servingFigures(const Device& device, const ServingAnswer& answer, const Parameters& parameters)
{
    MEMSCAPE_TRY(figures, directFigures(device, answer, parameters));
    if (answer.growsWithContext())
        figures.push_back(countFigure("largest_context", "largest context", largestServedContext(answer),
                                      "most tokens per sequence that fit, up to the model's positions"));
    figures.push_back(countFigure("largest_batch", "largest batch", largestServedBatch(device, answer, parameters),
                                  "most sequences of this context that fit"));
    if (answer.caches({}).value_or(0) == 0)
        return figures;
    const double pool = cachePool(answer);
    figures.push_back(bytesFigure(
        "cache_pool", "cache of an engine", pool, "memory_share × capacity − weights − what the start needs",
        answer.capacity ? fmt::format("= {} × {} − {} − {}", quantityText(answer.request.memoryShare, Unit::One),
                                      bytesText(double(*answer.capacity)), bytesText(double(answer.allWeights())),
                                      bytesText(double(answer.start)))
                        : "the device's memory is not known",
        "the larger of a pass over its largest batch and sampling for all sequences, as vLLM profiles them; of other "
        "engines activations and device context",
        {"graphs that it captures afterwards"}));
    if (answer.request.library == Library::Vllm || answer.request.library == Library::Vllm09) {
        const double taken = answer.capacity ? answer.request.memoryShare * double(*answer.capacity) : nan;
        figures.push_back(bytesFigure(
            "engine_total", "an engine in all", taken + double(answer.request.deviceContext),
            "memory_share × capacity + device context",
            fmt::format("= {} + {}", bytesText(taken), bytesText(double(answer.request.deviceContext))),
            "vLLM counts what is taken from after its context is there (worker: init_gpu_memory, init_snapshot)",
            {"graphs that it captures afterwards"}));
    }
    figures.push_back(countFigure("concurrent_sequences", "sequences at once", concurrentSequences(answer),
                                  "cache of an engine / whole pages of one sequence, the shared prefix once"));
    return figures;
}

/// What a curve shows at a point. A context that is longer changes the cache alone: the pass over a chunk
/// of it stays what it was.
Result<Figures> servingCurveFigures(const Device& device, const ServingAnswer& own, const Parameters& parameters,
                                    const std::string& swept)
{
    MEMSCAPE_CHECK(checkWanted());
    MEMSCAPE_TRY(request, servingRequest(device, parameters));
    if (swept == "context" && request.chunk == own.request.chunk) {
        const ServingPass& pass = own.pass;
        ServingAnswer there{own.model,
                            request,
                            {Trace(), {}, pass.graph, pass.network, pass.activations},
                            own.weights,
                            own.capacity,
                            own.draft,
                            own.tokenActivations,
                            own.start,
                            own.hostWeights,
                            own.loading};
        return directFigures(device, there, parameters);
    }
    MEMSCAPE_TRY(there, servingAnswer(device, parameters));
    return directFigures(device, there, parameters);
}

} // namespace memscape
