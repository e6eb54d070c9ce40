// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/inference-memory/inference_answer.h"

#include "core/base/number.h"
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/training/blas_workspace.h"
#include "core/training/sharding.h"
#include "core/training/vllm_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace memscape {

namespace {

Library libraryOf(std::string_view text)
{
    return text == "tensorrt"      ? Library::TensorRt
        : text == "vllm-0.5"       ? Library::Vllm05
        : text == "vllm"           ? Library::Vllm
        : text == "vllm-0.9"       ? Library::Vllm09
        : text == "engine-2023"    ? Library::Engine2023
        : text == "llama.cpp-2023" ? Library::LlamaCpp2023
        : text == "llama.cpp"      ? Library::LlamaCpp
        : text == "autoawq"        ? Library::AutoAwq
                                   : Library::Engine;
}

LoadingWay loadingWayOf(const Parameters& parameters, const ServingRequest& request)
{
    if (request.weights.kind == StoredForm::Gguf)
        return LoadingWay::Mapped;
    const std::string& way = parameters.choice("loading");
    if (way == "auto")
        return parameters.choice("library").starts_with("vllm") ? LoadingWay::InPlace : LoadingWay::Direct;
    return way == "host"      ? LoadingWay::Host
        : way == "state-dict" ? LoadingWay::StateDict
        : way == "on-device"  ? LoadingWay::OnDevice
        : way == "in-place"   ? LoadingWay::InPlace
                              : LoadingWay::Direct;
}

/// A processor's memory is the host's.
LoadingWay onHost(LoadingWay way)
{
    const bool isStateDict = way == LoadingWay::StateDict || way == LoadingWay::OnDevice;
    return isStateDict ? LoadingWay::StateDict : way == LoadingWay::Mapped ? way : LoadingWay::Host;
}

/// bitsandbytes and torchao quantize as they load; the other forms are made once and published so.
StoredForm filedForm(const Parameters& parameters, StoredForm kept)
{
    const std::string& said = parameters.choice("file_precision");
    const bool isCalibrated = kept.kind == StoredForm::Gguf || kept.kind == StoredForm::Gptq
        || kept.kind == StoredForm::Gptq8 || kept.kind == StoredForm::Awq;
    if (isCalibrated || said == "quantized" || (said == "auto" && kept.kind == StoredForm::Float8))
        return kept;
    return said == "fp32" ? StoredForm::Float32
        : said == "bf16"  ? StoredForm::BFloat16
        : said == "fp16"  ? StoredForm::Float16
                          : StoredForm::AsStored;
}

Result<LoadingPlan> loadingPlanOf(const Device& device, const Parameters& parameters, const ServingRequest& request)
{
    LoadingPlan plan;
    plan.way = loadingWayOf(parameters, request);
    if (!device.isGpu())
        plan.way = onHost(plan.way);
    plan.form = request.weights;
    plan.file = filedForm(parameters, request.weights);
    plan.computed = elementBytes(request.computed);
    plan.tensorParallel = request.tensorParallel;
    plan.transposesBytes = isOldBitsandbytes(parameters);
    plan.hasLooseHead = parameters.choice("output_head") == "loaded";
    plan.transformers = request.transformers;
    const bool isStateDict = plan.way == LoadingWay::StateDict || plan.way == LoadingWay::OnDevice;
    if (isStateDict && plan.quantizes())
        return fail("plan.combination", "a state dict is loaded into weights of its own kind",
                    "choose file_precision=quantized, or loading=direct", "loading");
    return plan;
}

} // namespace

Result<ServingRequest> servingRequest(const Device& device, const Parameters& parameters)
{
    ServingRequest request;
    MEMSCAPE_TRY(weights, storedFormFromText(parameters.choice("weight_precision")));
    MEMSCAPE_TRY(cache, cacheFormFromText(parameters.choice("kv_precision")));
    request.weights = weights;
    request.weights.quantizesHead = parameters.flag("quantized_head");
    request.weights.group =
        static_cast<std::int64_t>(parseNumber(parameters.choice("group_size")).value_or(0)); // none: 0
    request.isOldBitsandbytes = parameters.choice("bitsandbytes") == "0.41";
    request.cache = cache;
    request.library = libraryOf(parameters.choice("library"));
    request.computed = computedInOf(parameters);
    request.batch = parameters.integer("batch");
    request.context = parameters.integer("context");
    request.chunk = std::min(parameters.integer("sequence"), request.context);
    request.tensorParallel = parameters.integer("tensor_parallel");
    request.page = parameters.integer("cache_page");
    const std::string& growth = parameters.choice("cache_growth");
    request.growth = growth == "reserved" ? CacheGrowth::Reserved
        : growth == "copied"              ? CacheGrowth::Copied
                                          : CacheGrowth::KeptTwice;
    request.sharedPrefix = std::min(parameters.integer("shared_prefix"), request.context);
    request.transformers = transformersOf(parameters);
    request.lastLogits = parameters.choice("logits") == "last";
    request.memoryShare = parameters.number("memory_share");
    if (parameters.text("draft_model") != "none") {
        if (request.growth != CacheGrowth::Reserved)
            return fail("plan.combination", "a draft model is modelled beside a cache that is reserved",
                        "choose cache_growth=reserved, or draft_model=none", "cache_growth");
        request.draft = parameters.text("draft_model");
    }
    request.hasOwnHead = parameters.choice("output_head") == "own";
    MEMSCAPE_SET(request.loading, loadingPlanOf(device, parameters, request));
    request.deviceContext = device.isGpu() ? parameters.integer("device_context") : 0; // a processor has none
    return request;
}

TrainingSetup servingSetup(const Device& device, const Parameters& parameters, const ServingRequest& request,
                           std::int64_t batch)
{
    TrainingSetup setup;
    setup.build.batch = batch;
    setup.build.sequence = request.chunk;
    setup.build.weights = request.computed;
    setup.build.attention = attentionOn(device, parameters);
    setup.build.rules = setup.step.rules = rulesOn(device, parameters);
    setup.build.gradient = false;
    setup.build.loss = false;
    setup.build.lastLogits = request.lastLogits;
    setup.build.transformers = request.transformers;
    setup.build.repeatsHeads =
        setup.build.attention == AttentionKernel::Library && request.transformers <= Transformers::Before454;
    setup.build.tensorParallel = static_cast<int>(request.tensorParallel);
    // One token goes through kernels of its own, more through the whole matrix, dequantized.
    if (request.weights.isNormalFloat() && request.tensorParallel == 1 && batch * request.chunk > 1) {
        AdapterOptions& base = setup.build.adapters.emplace();
        base.rank = 0;
        base.base =
            request.weights.kind == StoredForm::NormalFloat4 ? BaseForm::NormalFloat4 : BaseForm::NormalFloat4Double;
        base.quantizesHead = request.weights.quantizesHead;
        base.compute = computePrecisionOf(parameters);
        // dequantize_4bit() makes the type that was quantized, which is then cast (_functions.py, MatMul4Bit).
        base.dequantizesInHalf =
            request.isOldBitsandbytes || (base.compute == DType::Float32 && elementBytes(request.computed) == 2);
    }
    setup.step.plan.phase = StepPhase::Inference;
    setup.step.plan.precision = request.computed == DType::Float32 ? Precision::Fp32
        : request.computed == DType::Float16                       ? Precision::Fp16
                                                                   : Precision::Bf16;
    setup.step.plan.attendsByCudnn = isCudnnAsked(parameters);
    setup.step.plan.tensorParallel = static_cast<int>(request.tensorParallel);
    setup.step.blasWorkspace = blasWorkspaceBytes(device);
    setup.allocator = allocatorOf(device, parameters);
    return setup;
}

namespace {

Result<ServingPass> servingPass(const Device& device, const ModelDescription& model, const Parameters& parameters,
                                const ServingRequest& request, std::int64_t batch)
{
    MEMSCAPE_TRY(simulation, simulate(model, servingSetup(device, parameters, request, batch)));
    ServingPass pass{std::move(simulation.trace), simulation.peak, simulation.graph, simulation.network, 0};
    std::int64_t live = 0;
    for (const Event& event : pass.trace.events()) {
        if (event.category == Category::Weights)
            continue;
        live += event.change();
        pass.activations = std::max(pass.activations, live);
    }
    for (const NamedTensor& buffer : pass.graph->buffers) // tables and masks that no checkpoint has
        if (buffer.name == "cos_cached" || buffer.name == "sin_cached" || buffer.name == "bias")
            pass.activations += pass.graph->storageOf(buffer.tensor).bytes;
    return pass;
}

bool isVllm(Library library)
{
    return library == Library::Vllm05 || library == Library::Vllm || library == Library::Vllm09;
}

/// What an engine finds to be taken beside the weights when it starts; only vLLM's way is known.
Result<std::int64_t> startBytes(const Device& device, const ServingAnswer& answer, const Parameters& parameters)
{
    ServingRequest request = answer.request;
    const bool isRecent = request.library == Library::Vllm09;
    // What is taken is counted from a snapshot behind the context since 0.6.5 (memory_profiling, pull request 10511).
    const bool countsContext = request.library != Library::Vllm && !isRecent;
    const std::int64_t context = countsContext ? request.deviceContext : 0;
    if (!isVllm(request.library))
        return answer.pass.activations + context;
    const bool isA100 = device.id.find("a100") != std::string::npos;
    const VllmProfile profile = vllmProfile(isRecent, answer.capacity.value_or(0), isA100, request.context);
    request.chunk = std::min(profile.tokens, request.context);
    MEMSCAPE_TRY(pass, servingPass(device, answer.model, parameters, request, piece(profile.tokens, request.chunk)));
    return std::max(pass.activations, samplerBytes(answer.model, profile, elementBytes(request.computed))) + context;
}

/// The largest whole number up to `most` for which fits() is true; 0 when 1 is too much.
template <typename Fits> std::int64_t largest(std::int64_t most, Fits fits)
{
    std::int64_t low = 0, high = 1;
    while (high <= most && fits(high)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (middle <= most && fits(middle) ? low : high) = middle;
    }
    return low;
}

Result<std::optional<DraftModel>> draftOf(const ServingRequest& request)
{
    if (request.draft.empty())
        return std::optional<DraftModel>();
    auto model = readModel(request.draft);
    if (!model) {
        Error error = model.error();
        error.place = "draft_model" + (error.place.empty() ? "" : ", " + error.place);
        return fail(std::move(error));
    }
    MEMSCAPE_TRY(weights,
                 servedWeights(*model, request.weights, elementBytes(request.computed), request.tensorParallel));
    return std::optional(DraftModel{std::move(*model), weights});
}

} // namespace

Result<std::int64_t> ServingAnswer::caches(const CacheUse& use) const
{
    MEMSCAPE_TRY(own, cacheBytes(model, request.cache, use));
    if (!draft)
        return own;
    MEMSCAPE_TRY(drafted, cacheBytes(draft->model, request.cache, use));
    return own + drafted;
}

// torch.cat of a layer's keys holds the new ones and the old; then those of the values, when the old keys have gone.
Result<ServingMoment> ServingAnswer::fullest(const CacheUse& use, std::int64_t activations) const
{
    MEMSCAPE_TRY(whole, caches(use));
    if (request.growth == CacheGrowth::Reserved)
        return ServingMoment{whole, 0, activations};
    CacheUse prompt = use, last = use;
    prompt.context = std::min(request.chunk, use.context);
    last.context = std::max<std::int64_t>(use.context - 1, 1);
    MEMSCAPE_TRY(filled, caches(prompt));
    MEMSCAPE_TRY(old, caches(last));
    const std::int64_t sides = 2 * std::max<std::int64_t>(model.layers, 1);
    const ServingMoment reading{filled, 0, activations};
    const ServingMoment writing{whole, request.growth == CacheGrowth::KeptTwice ? old : old / sides, tokenActivations};
    return reading.bytes() > writing.bytes() ? reading : writing;
}

Result<std::int64_t> ServingAnswer::total(std::int64_t context) const
{
    ServingRequest asked = request;
    asked.context = context;
    MEMSCAPE_TRY(moment, fullest(asked.use()));
    return allWeights() + moment.bytes();
}

Result<ServingAnswer> servingAnswer(const Device& device, const Parameters& parameters)
{
    ServingAnswer answer;
    MEMSCAPE_TRY(model, askedModel(parameters));
    MEMSCAPE_TRY(request, servingRequest(device, parameters));
    if (request.hasOwnHead)
        model.tied = false;
    const std::int64_t limit = model.program || model.family == Family::Decoder ? model.tokenLimit() : 0;
    if (limit > 0 && request.context > limit)
        return fail(beyondPositions("context", request.context, limit));
    MEMSCAPE_TRY(pass, servingPass(device, model, parameters, request, request.batch));
    MEMSCAPE_TRY(weights,
                 servedWeights(model, request.weights, elementBytes(request.computed), request.tensorParallel));
    if (device.isGpu()) {
        MEMSCAPE_TRY(tensors, inventory(model));
        answer.hostWeights = hostWeights(tensors, model, request.weights, request.tensorParallel);
    }
    MEMSCAPE_SET(answer.loading, loadingPeak(model, request.loading));
    if (!device.isGpu())
        answer.loading.device = std::max(answer.loading.device, answer.loading.host);
    answer.model = std::move(model);
    answer.request = request;
    answer.pass = std::move(pass);
    answer.weights = weights;
    answer.capacity = capacityOf(device);
    MEMSCAPE_TRY(draft, draftOf(request));
    answer.draft = std::move(draft);
    MEMSCAPE_TRY(start, startBytes(device, answer, parameters));
    answer.start = start;
    if (request.growth != CacheGrowth::Reserved) {
        request.chunk = 1;
        MEMSCAPE_TRY(token, servingPass(device, answer.model, parameters, request, request.batch));
        answer.tokenActivations = token.activations;
    }
    return answer;
}

bool ServingAnswer::fits(std::int64_t moment) const
{
    return !capacity || std::max(moment, loading.device) + request.deviceContext <= *capacity;
}

bool ServingAnswer::growsWithContext() const
{
    const auto one = caches({.context = 1}), two = caches({.context = 2});
    return one && two && *two > *one;
}

double largestServedContext(const ServingAnswer& answer)
{
    if (!answer.capacity)
        return std::numeric_limits<double>::quiet_NaN();
    if (!answer.fits(0))
        return 0;
    const std::int64_t most = answer.model.maxPositions > 0 ? answer.model.maxPositions : 16777216;
    return double(largest(most, [&](std::int64_t context) {
        const auto total = answer.total(context);
        return total && *total <= answer.available();
    }));
}

/// An engine that keeps its cache in pages (vLLM) takes a share of the device's memory when it starts: what weights
/// and its start leave of it is the cache.
double cachePool(const ServingAnswer& answer)
{
    if (!answer.capacity)
        return std::numeric_limits<double>::quiet_NaN();
    return std::max(0.0,
                    answer.request.memoryShare * double(*answer.capacity) - double(answer.allWeights() + answer.start));
}

/// Sequences of the whole context that fit into it; NaN without a cache.
double concurrentSequences(const ServingAnswer& answer)
{
    const auto two = answer.caches(answer.request.use(2)), three = answer.caches(answer.request.use(3));
    if (!two || !three || *three == *two)
        return std::numeric_limits<double>::quiet_NaN();
    const auto own = double(*three - *two), shared = double(*two) - 2 * own;
    return std::max(0.0, (cachePool(answer) - shared) / own);
}

/// Cache and activations grow by the same bytes with each sequence, up to rounding: two passes say where
/// the limit is, and whole passes beside it decide.
double largestServedBatch(const Device& device, const ServingAnswer& answer, const Parameters& parameters)
{
    if (!answer.capacity)
        return std::numeric_limits<double>::quiet_NaN();
    constexpr std::int64_t most = 1 << 20;
    const auto needs = [&](std::int64_t batch) -> double {
        const auto pass = servingPass(device, answer.model, parameters, answer.request, batch);
        const auto moment = pass ? answer.fullest(answer.request.use(batch), pass->activations) : fail(pass.error());
        return moment ? double(answer.allWeights() + moment->bytes()) : std::numeric_limits<double>::infinity();
    };
    const auto fits = [&](std::int64_t batch) { return needs(batch) <= double(answer.available()); };
    const double one = needs(1), two = needs(2);
    if (!answer.fits(0) || !(one <= double(answer.available())))
        return 0;
    std::int64_t guess = 1;
    if (two > one && std::isfinite(two))
        guess +=
            static_cast<std::int64_t>(std::min((double(answer.available()) - one) / (two - one), double(most - 1)));
    if (fits(guess) && (guess == most || !fits(guess + 1)))
        return double(guess);
    return double(largest(most, fits));
}

} // namespace memscape
