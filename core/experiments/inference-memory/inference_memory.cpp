// SPDX-License-Identifier: Apache-2.0
// inference-memory: how long a context, how many requests fit beside the weights?
//
//     device total = weights + cache of keys and values + activations of one forward pass + context of the driver
// Weights and cache are counted tensor by tensor (core/training/serving.h). Activations are those of the
// network itself, run under no_grad on a chunk of `sequence` tokens, allocation by allocation. How long prompt and
// tokens take: inference_time.h.
// Left out: see the omits of each figure.
#include "core/base/cancellation.h"
#include "core/experiment/experiment.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/inference-memory/inference_time.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/training/blas_workspace.h"
#include "core/training/serving.h"
#include "core/training/textbook.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Request
{
    StoredForm weights = StoredForm::AsStored;
    CacheForm cache = CacheForm::BFloat16;
    DType computed = DType::BFloat16;
    std::int64_t batch = 1, context = 1, chunk = 1, tensorParallel = 1;
    std::int64_t page = 1, sharedPrefix = 0;
    bool lastLogits = false; ///< of the last token alone
    double memoryShare = 1;  ///< of the device, that an engine takes
    std::string draft;       ///< a second, smaller model; empty: none
    std::int64_t deviceContext = 0;

    CacheUse use(std::int64_t sequences) const { return {sequences, context, tensorParallel, page, sharedPrefix}; }
    CacheUse use() const { return use(batch); }
};

Result<Request> requestOf(const Device& device, const Parameters& parameters)
{
    Request request;
    MEMSCAPE_TRY(weights, storedFormFromText(parameters.choice("weight_precision")));
    MEMSCAPE_TRY(cache, cacheFormFromText(parameters.choice("kv_precision")));
    request.weights = weights;
    request.cache = cache;
    request.computed = computedInOf(parameters);
    request.batch = parameters.integer("batch");
    request.context = parameters.integer("context");
    request.chunk = std::min(parameters.integer("sequence"), request.context);
    request.tensorParallel = parameters.integer("tensor_parallel");
    request.page = parameters.integer("cache_page");
    request.sharedPrefix = std::min(parameters.integer("shared_prefix"), request.context);
    request.lastLogits = parameters.choice("logits") == "last";
    request.memoryShare = parameters.number("memory_share");
    if (parameters.text("draft_model") != "none")
        request.draft = parameters.text("draft_model");
    request.deviceContext = device.isGpu() ? parameters.integer("device_context") : 0; // a processor has none
    return request;
}

TrainingSetup setupOf(const Device& device, const Parameters& parameters, const Request& request, std::int64_t batch)
{
    TrainingSetup setup;
    setup.build.batch = batch;
    setup.build.sequence = request.chunk;
    setup.build.weights = request.computed;
    setup.build.attention = attentionOn(device, parameters);
    setup.build.rules = setup.step.rules = rulesOn(device);
    setup.build.gradient = false;
    setup.build.loss = false;
    setup.build.lastLogits = request.lastLogits;
    setup.build.tensorParallel = static_cast<int>(request.tensorParallel);
    setup.step.plan.phase = StepPhase::Inference;
    setup.step.plan.precision = request.computed == DType::Float32 ? Precision::Fp32
        : request.computed == DType::Float16                       ? Precision::Fp16
                                                                   : Precision::Bf16;
    setup.step.plan.tensorParallel = static_cast<int>(request.tensorParallel);
    setup.step.blasWorkspace = blasWorkspaceBytes(device);
    setup.allocator = allocatorOf(device, parameters);
    return setup;
}

/// The forward pass as events, and the most bytes that it adds to the weights.
struct ServingPass
{
    Trace trace;
    Moment peak;
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const PreparedNetwork> network;
    std::int64_t activations = 0;
};

Result<ServingPass> passOf(const Device& device, const ModelDescription& model, const Parameters& parameters,
                           const Request& request, std::int64_t batch)
{
    MEMSCAPE_TRY(simulation, simulate(model, setupOf(device, parameters, request, batch)));
    ServingPass pass{std::move(simulation.trace), simulation.peak, simulation.graph, simulation.network, 0};
    std::int64_t live = 0;
    for (const Event& event : pass.trace.events()) {
        if (event.category == Category::Weights)
            continue;
        live += event.change();
        pass.activations = std::max(pass.activations, live);
    }
    return pass;
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

struct Draft
{
    ModelDescription model;
    std::int64_t weights = 0;
};

struct Answer
{
    ModelDescription model;
    Request request;
    ServingPass pass;
    std::int64_t weights = 0;
    std::optional<std::int64_t> capacity;
    std::optional<Draft> draft = {};

    /// Of a draft model, too.
    Result<std::int64_t> caches(const CacheUse& use) const
    {
        MEMSCAPE_TRY(own, cacheBytes(model, request.cache, use));
        if (!draft)
            return own;
        MEMSCAPE_TRY(drafted, cacheBytes(draft->model, request.cache, use));
        return own + drafted;
    }
    std::int64_t allWeights() const { return weights + (draft ? draft->weights : 0); }
    Result<std::int64_t> total(std::int64_t context) const
    {
        Request asked = request;
        asked.context = context;
        MEMSCAPE_TRY(cache, caches(asked.use()));
        return allWeights() + pass.activations + cache;
    }
    std::int64_t available() const { return capacity.value_or(0) - request.deviceContext; }
};

Result<std::optional<Draft>> draftOf(const Request& request)
{
    if (request.draft.empty())
        return std::optional<Draft>();
    auto model = readModel(request.draft);
    if (!model) {
        Error error = model.error();
        error.place = "draft_model" + (error.place.empty() ? "" : ", " + error.place);
        return fail(std::move(error));
    }
    MEMSCAPE_TRY(weights,
                 servedWeights(*model, request.weights, elementBytes(request.computed), request.tensorParallel));
    return std::optional(Draft{std::move(*model), weights});
}

Result<Answer> answerOf(const Device& device, const Parameters& parameters)
{
    Answer answer;
    MEMSCAPE_TRY(model, askedModel(parameters));
    MEMSCAPE_TRY(request, requestOf(device, parameters));
    if (model.program && model.maxPositions > 0 && request.context > model.maxPositions)
        return fail("network.shape",
                    fmt::format("a context of {} tokens is longer than the {} positions of this model", request.context,
                                model.maxPositions),
                    fmt::format("take at most {0} tokens: context={0}", model.maxPositions), "context");
    MEMSCAPE_TRY(pass, passOf(device, model, parameters, request, request.batch));
    MEMSCAPE_TRY(weights,
                 servedWeights(model, request.weights, elementBytes(request.computed), request.tensorParallel));
    answer.model = std::move(model);
    answer.request = request;
    answer.pass = std::move(pass);
    answer.weights = weights;
    answer.capacity = capacityOf(device);
    MEMSCAPE_TRY(draft, draftOf(request));
    answer.draft = std::move(draft);
    return answer;
}

double largestContext(const Answer& answer)
{
    if (!answer.capacity)
        return std::numeric_limits<double>::quiet_NaN();
    const std::int64_t most = answer.model.maxPositions > 0 ? answer.model.maxPositions : 16777216;
    return double(largest(most, [&](std::int64_t context) {
        const auto total = answer.total(context);
        return total && *total <= answer.available();
    }));
}

/// An engine that keeps its cache in pages (vLLM) takes a share of the device's memory when it starts: what weights,
/// activations and context leave of it is the cache.
double cachePool(const Answer& answer)
{
    if (!answer.capacity)
        return std::numeric_limits<double>::quiet_NaN();
    return std::max(0.0,
                    answer.request.memoryShare * double(*answer.capacity)
                        - double(answer.allWeights() + answer.pass.activations + answer.request.deviceContext));
}

/// Sequences of the whole context that fit into it; NaN without a cache.
double concurrentSequences(const Answer& answer)
{
    const auto two = answer.caches(answer.request.use(2)), three = answer.caches(answer.request.use(3));
    if (!two || !three || *three == *two)
        return std::numeric_limits<double>::quiet_NaN();
    const auto own = double(*three - *two), shared = double(*two) - 2 * own;
    return std::max(0.0, (cachePool(answer) - shared) / own);
}

/// Cache and activations grow by the same bytes with each sequence, up to rounding: two passes say where
/// the limit is, and whole passes beside it decide.
double largestBatch(const Device& device, const Answer& answer, const Parameters& parameters)
{
    if (!answer.capacity)
        return std::numeric_limits<double>::quiet_NaN();
    constexpr std::int64_t most = 1 << 20;
    const auto needs = [&](std::int64_t batch) -> double {
        const auto cache = answer.caches(answer.request.use(batch));
        const auto pass = passOf(device, answer.model, parameters, answer.request, batch);
        return cache && pass ? double(answer.allWeights() + *cache + pass->activations)
                             : std::numeric_limits<double>::infinity();
    };
    const auto fits = [&](std::int64_t batch) { return needs(batch) <= double(answer.available()); };
    const double one = needs(1), two = needs(2);
    if (!(one <= double(answer.available())))
        return 0;
    std::int64_t guess = 1;
    if (two > one && std::isfinite(two))
        guess +=
            static_cast<std::int64_t>(std::min((double(answer.available()) - one) / (two - one), double(most - 1)));
    if (fits(guess) && (guess == most || !fits(guess + 1)))
        return double(guess);
    return double(largest(most, fits));
}

Figure bytesFigure(std::string key, std::string label, double bytes, std::string formula, std::string with,
                   std::string source, std::vector<std::string> omits = {})
{
    return {std::move(key),
            std::move(label),
            Unit::Byte,
            bytes,
            {},
            {},
            Why{std::move(formula), std::move(with), {}, std::move(source), std::move(omits)}};
}

Figure countFigure(std::string key, std::string label, double value, std::string formula)
{
    return {std::move(key),
            std::move(label),
            Unit::One,
            value,
            {},
            {},
            Why{std::move(formula), {}, {}, "the simulated pass", {}}};
}

Result<ServingTime> timeOf(const Device& device, const Answer& answer, const Parameters& parameters, double held)
{
    const Request& request = answer.request;
    Serving serving{request.batch, request.context, request.chunk, 0, 0};
    MEMSCAPE_TRY(weights,
                 weightsReadByStep(answer.model, request.weights, elementBytes(request.computed),
                                   request.tensorParallel, request.batch));
    MEMSCAPE_TRY(cache, // every sequence reads its whole context, pages that it shares included
                 cacheBytes(answer.model, request.cache, {request.batch, request.context, request.tensorParallel}));
    serving.weightsRead = weights;
    serving.cacheRead = double(cache);
    const TrainingSetup setup = setupOf(device, parameters, request, request.batch);
    return servingTime(device, answer.model, setup, *answer.pass.graph, answer.pass.network->parameters, serving, held);
}

/// All but the largest context and batch, which are searched for.
Result<Figures> directFigures(const Device& device, const Answer& answer, const Parameters& parameters)
{
    const Request& request = answer.request;
    MEMSCAPE_TRY(tensors, inventory(answer.model));
    MEMSCAPE_TRY(cache, cacheBytes(answer.model, request.cache, request.use()));
    MEMSCAPE_TRY(token, cacheBytes(answer.model, request.cache, {1, 1, request.tensorParallel}));
    MEMSCAPE_TRY(caches, answer.caches(request.use()));
    const std::int64_t drafted = answer.allWeights() - answer.weights + caches - cache;
    const std::int64_t total = answer.weights + cache + drafted + answer.pass.activations;
    const std::int64_t onDevice = total + request.deviceContext;
    const bool fits = !answer.capacity || onDevice <= *answer.capacity;
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
                    "formats of bitsandbytes, GPTQ, AWQ", {"padding to a kernel's tile"}),
        bytesFigure(
            "kv_cache", "KV cache", double(cache),
            "Σ over layers: tokens kept × 2 × KV heads × head dimension × bytes × batch",
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
        bytesFigure("peak_allocated", "peak allocated", double(total), "weights + KV cache + activations",
                    fmt::format("= {} + {} + {}", bytesText(double(answer.weights)), bytesText(double(cache)),
                                bytesText(double(answer.pass.activations))),
                    "the three above", {"what the allocator holds beyond it"}),
        bytesFigure("device_total", "device total", double(onDevice), "peak allocated + device context",
                    fmt::format("= {} + {}", bytesText(double(total)), bytesText(double(request.deviceContext))),
                    "the context is a setting"),
        countFigure("fits", "fits", fits ? 1 : 0, "1 when the device total is within the device's memory, else 0")};
    const Device linked = withLink(device, parameters.number("link_bandwidth"));
    MEMSCAPE_TRY(time, timeOf(linked, answer, parameters, double(total)));
    for (Figure& figure : servingTimeFigures(time))
        figures.push_back(std::move(figure));
    if (answer.draft)
        figures.push_back(bytesFigure(
            "draft_model", "draft model", double(drafted), "its weights + its cache",
            fmt::format("= {} + {}", bytesText(double(answer.draft->weights)), bytesText(double(caches - cache))),
            "the description of draft_model", {"its activations", "the time that it saves"}));
    return figures;
}

Result<Figures> figuresOf(const Device& device, const Answer& answer, const Parameters& parameters)
{
    MEMSCAPE_TRY(figures, directFigures(device, answer, parameters));
    figures.push_back(countFigure("largest_context", "largest context", largestContext(answer),
                                  "most tokens per sequence that fit, up to the model's positions"));
    figures.push_back(countFigure("largest_batch", "largest batch", largestBatch(device, answer, parameters),
                                  "most sequences of this context that fit"));
    if (answer.caches({}).value_or(0) == 0)
        return figures;
    const double pool = cachePool(answer);
    figures.push_back(bytesFigure(
        "cache_pool", "cache of an engine", pool, "memory_share × capacity − weights − activations − device context",
        answer.capacity
            ? fmt::format("= {} × {} − {} − {} − {}", quantityText(answer.request.memoryShare, Unit::One),
                          bytesText(double(*answer.capacity)), bytesText(double(answer.allWeights())),
                          bytesText(double(answer.pass.activations)), bytesText(double(answer.request.deviceContext)))
            : "the device's memory is not known",
        "vLLM's worker: what it profiles at its start", {"graphs that it captures afterwards"}));
    figures.push_back(countFigure("concurrent_sequences", "sequences at once", concurrentSequences(answer),
                                  "cache of an engine / whole pages of one sequence, the shared prefix once"));
    return figures;
}

/// What a curve shows at a point. A context that is longer changes the cache alone: the pass over a chunk
/// of it stays what it was.
Result<Figures> curveFigures(const Device& device, const Answer& own, const Parameters& parameters,
                             const std::string& swept)
{
    MEMSCAPE_CHECK(checkWanted());
    MEMSCAPE_TRY(request, requestOf(device, parameters));
    if (swept == "context" && request.chunk == own.request.chunk) {
        const ServingPass& pass = own.pass;
        Answer there{
            own.model, request, {Trace(), {}, pass.graph, pass.network, pass.activations}, own.weights, own.capacity};
        return directFigures(device, there, parameters);
    }
    MEMSCAPE_TRY(there, answerOf(device, parameters));
    return directFigures(device, there, parameters);
}

Json detailOf(const Device& device, const Answer& answer)
{
    Json detail = objectWithRoom(11);
    const Request& request = answer.request;
    const std::int64_t cache = cacheBytes(answer.model, request.cache, request.use()).value_or(0);
    const std::int64_t drafted =
        answer.allWeights() - answer.weights + answer.caches(request.use()).value_or(0) - cache;
    const auto part = [](const char* key, const char* label, std::int64_t bytes) {
        return Json{{"key", key}, {"label", label}, {"bytes", bytes}};
    };
    detail["model"] = modelJson(answer.model);
    detail["parts"] =
        Json::array({part("weights", "weights", answer.weights), part("key_value_cache", "KV cache", cache),
                     part("activations", "activations", answer.pass.activations),
                     part("context", "device context", request.deviceContext)});
    if (answer.draft)
        detail["parts"].push_back(part("draft_model", "draft model", drafted));
    const std::int64_t total = answer.weights + cache + drafted + answer.pass.activations + request.deviceContext;
    detail["capacity"] = capacityJson(device);
    const bool fits = !answer.capacity || total <= *answer.capacity;
    detail["fits"] = fits;
    detail["fit"] = fitText(fits, total, answer.capacity);
    detail["over"] = answer.capacity ? std::max<std::int64_t>(0, total - *answer.capacity) : 0;
    detail["peak"] = momentJson(answer.pass.trace, answer.pass.peak);
    detail["phase_peaks"] = phasePeaksJson(answer.pass.trace);
    detail["tree"] = treeJson(answer.pass.trace, answer.pass.peak);
    return detail;
}

std::vector<Claim> claimsAbout(const Answer& answer)
{
    std::vector<Claim> made;
    if (answer.model.kvHeads == 0 || answer.model.family != Family::Decoder)
        return made;
    const auto token = cacheBytes(answer.model, CacheForm::Float16, {});
    const double naive = textbook::cachePerToken(double(answer.model.layers), double(answer.model.heads),
                                                 double(answer.model.headDim), 2);
    if (!token)
        return made;
    made.push_back({"KV cache per token = 2 × layers × hidden × 2 bytes", "common rule of thumb",
                    std::abs(naive - double(*token)) < 1
                        ? "holds"
                        : "does not hold: this model shares or compresses keys and values",
                    fmt::format("the rule gives {}, this model keeps {} in 16 bits", bytesText(naive),
                                bytesText(double(*token)))});
    return made;
}

class InferenceMemory final : public Experiment
{
public:
    std::string id() const override { return "inference-memory"; }
    std::string title() const override { return "Inference memory"; }
    std::string question() const override
    {
        return "Weights, cache, quantization: how long a context fits, and how fast?";
    }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "Inference needs the weights, a cache of keys and values that grows with every token, and "
               "the activations of one forward pass. A token takes as long as reading the weights once, whatever the "
               "batch, and each sequence's cache; many sequences, and prompts, take what their products do. Weights "
               "are counted in the form they are stored in, with the "
               "scales of quantized ones; the cache by heads, windows and latent vectors as the model has them. An "
               "engine "
               "like vLLM takes a share of the memory and fills it with pages of cache: how many sequences run at "
               "once.";
    }
    std::string notMeasured() const override
    {
        return "A measurement is a forward pass in PyTorch: choose a device whose name begins with PyTorch. If there "
               "is none: "
               "packaging/run --with-pytorch, or a Python that has torch (--python, MEMSCAPE_PYTHON).";
    }
    std::string notMeasuredOn(const Device& device) const override
    {
        return device.framework ? std::string() : notMeasured();
    }
    bool isMeasuredInPytorch() const override { return true; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override
    {
        return idleInferenceParameters(device, parameters);
    }
    std::vector<std::string> headlines() const override
    {
        return {"fits", "device_total", "kv_cache", "largest_context"};
    }
    ShortAnswer shortAnswer(const Device& device, const Parameters&, const Figures& figures) const override
    {
        ShortAnswer answer = memoryAnswer(device, figures);
        const Figure* const rate = findFigure(figures, "tokens_per_second");
        if (rate && std::isfinite(rate->number()))
            answer.sentence += fmt::format(" {} tokens/s, {} a token.", quantityText(rate->number(), Unit::One),
                                           quantityText(findFigure(figures, "token_time")->number(), Unit::Second));
        answer.knobs = {"weight_precision", "kv_precision", "batch", "context", "sequence", "attention"};
        return answer;
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"peak_allocated", "peak allocated"},
                {"kv_cache", "KV cache"},
                {"weights", "weights"},
                {"activations", "activations"},
                {"token_time", "time per token"},
                {"tokens_per_second", "tokens per second"}};
    }
    Sweep axis(const Device&, const Parameters&) const override
    {
        Sweep sweep{"context", {}};
        for (double tokens = 1024; tokens <= 1048576; tokens *= 4)
            sweep.values.emplace_back(tokens);
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        MEMSCAPE_TRY(answer, answerOf(device, parameters));
        return figuresOf(device, answer, parameters);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters) const override;
    Json predictDetail(const Device& device, const Parameters& parameters) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;

private:
    Schema m_schema = inferenceSchema();
};

Result<Prediction> InferenceMemory::predict(const Device& device, const Parameters& parameters) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerOf(device, own));
    MEMSCAPE_TRY(figures, figuresOf(device, answer, own));
    const Sweep sweep = sweepOf(*this, device, parameters);
    std::vector<Point> points;
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        const double* number = std::get_if<double>(&sweep.values[i]);
        MEMSCAPE_TRY(there, curveFigures(device, answer, parameters.at(sweep.key, sweep.values[i]), sweep.key));
        points.push_back({number ? *number : double(i), valueText(sweep.values[i]), std::move(there), {}});
    }
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = std::move(figures);
    prediction.detail = detailOf(device, answer);
    prediction.detail["basis"] = device.basis;
    if (const auto made = claimsAbout(answer); !made.empty())
        prediction.detail["claims"] = claimsJson(made);
    return prediction;
}

Json InferenceMemory::predictDetail(const Device& device, const Parameters& parameters) const
{
    const auto answer = answerOf(device, parameters);
    return answer ? detailOf(device, *answer) : Json::object();
}

std::vector<Claim> InferenceMemory::claims(const Device& device, const Parameters& parameters, const Measurement&) const
{
    const auto answer = answerOf(device, parameters);
    return answer ? claimsAbout(*answer) : std::vector<Claim>();
}

} // namespace

const Experiment& inferenceMemoryExperiment()
{
    static const InferenceMemory experiment;
    return experiment;
}

} // namespace memscape
