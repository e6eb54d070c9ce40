// SPDX-License-Identifier: Apache-2.0
// inference-memory: how long a context, how many requests fit beside the weights?
//
//     device total = weights + cache of keys and values + activations of one forward pass + context of the driver
// Weights and cache are counted tensor by tensor (core/training/serving.h). Activations are those of the
// network itself, run under no_grad on a chunk of `sequence` tokens, allocation by allocation. How long prompt and
// tokens take: inference_time.h.
// Left out: see the omits of each figure.
#include "core/experiment/experiment.h"
#include "core/experiment/predicted_points.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/inference-memory/inference_answer.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/training/textbook.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

Json detailOf(const Device& device, const ServingAnswer& answer)
{
    Json detail = objectWithRoom(13);
    const ServingRequest& request = answer.request;
    const ServingMoment moment = answer.fullest(request.use()).value_or(ServingMoment());
    const std::int64_t caches = answer.caches(request.use()).value_or(0);
    const std::int64_t draftedCache = caches - cacheBytes(answer.model, request.cache, request.use()).value_or(0);
    const std::int64_t drafted = (answer.draft ? answer.draft->weights : 0) + draftedCache;
    const auto part = [](const char* key, const char* label, std::int64_t bytes) {
        return Json{{"key", key}, {"label", label}, {"bytes", bytes}};
    };
    detail["model"] = modelJson(answer.model);
    detail["parts"] = Json::array({part("weights", "weights", answer.weights - answer.hostWeights),
                                   part("key_value_cache", "KV cache", moment.cache - draftedCache),
                                   part("activations", "activations", moment.activations),
                                   part("context", "device context", request.deviceContext)});
    if (moment.copies > 0)
        detail["parts"].push_back(part("cache_copies", "copies of the cache", moment.copies));
    if (answer.draft)
        detail["parts"].push_back(part("draft_model", "draft model", drafted));
    const std::int64_t total = answer.allWeights() + moment.bytes() + request.deviceContext;
    detail["capacity"] = capacityJson(device, request.deviceContext);
    const bool fits = answer.fits(total - request.deviceContext);
    const std::int64_t needed = std::max(total, answer.loading.device + request.deviceContext);
    detail["loading"] = answer.loading.device + request.deviceContext;
    detail["fits"] = fits;
    detail["fit"] = fitText(fits, needed, answer.capacity);
    detail["over"] = answer.capacity ? std::max<std::int64_t>(0, needed - *answer.capacity) : 0;
    if (!answer.pass.graph->attention.text.empty())
        detail["attention"] = answer.pass.graph->attention.text;
    addPeaks(detail, answer.pass.trace, answer.pass.peak);
    return detail;
}

std::vector<Claim> claimsAbout(const ServingAnswer& answer)
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

/// Where loading is the peak: beside what `said` tells of the moment behind it, or in its place where that fits.
std::string withLoading(const Device& device, const Figures& figures, std::string said)
{
    const Figure* const load = findFigure(figures, "load_peak");
    const Figure* const peak = findFigure(figures, "peak_allocated");
    const Figure* const total = findFigure(figures, "device_total");
    const Figure* const fits = findFigure(figures, "fits");
    if (!load || !peak || !total || !fits || !(load->number() > peak->number()))
        return said;
    const double needed = load->number() + total->number() - peak->number();
    const double capacity = double(capacityOf(device).value_or(0));
    if (fits->number() > 0 || total->number() > capacity)
        return said + fmt::format(" Loading takes more: {}.", quantityText(needed, Unit::Byte));
    return fmt::format("It does not fit while it is loaded: {} of {}; {} when it runs.",
                       quantityText(needed, Unit::Byte), quantityText(capacity, Unit::Byte),
                       quantityText(total->number(), Unit::Byte));
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
               "packaging/run --with-pytorch, or a Python that has torch (Settings, Workers in the window; --python, "
               "MEMSCAPE_PYTHON).";
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
    ParameterTexts implied(const Parameters& parameters) const override
    {
        return tokensWithinPositions(parameters, {"context", "sequence"}, servingDefaults(parameters));
    }
    std::vector<std::string> headlines() const override
    {
        return {"fits", "device_total", "kv_cache", "largest_context", "largest_batch"};
    }
    ShortAnswer shortAnswer(const Device& device, const Parameters&, const Figures& figures) const override
    {
        ShortAnswer answer = memoryAnswer(device, figures);
        answer.sentence = withLoading(device, figures, answer.sentence);
        const Figure* const rate = findFigure(figures, "tokens_per_second");
        if (rate && std::isfinite(rate->number()))
            answer.sentence += fmt::format(" {} tokens/s, {} a token.", quantityText(rate->number(), Unit::One),
                                           secondsText(findFigure(figures, "token_time")->number()));
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
    Sweep axis(const Device& device, const Parameters& parameters) const override
    {
        const auto idle = idleInferenceParameters(device, parameters);
        if (std::find(idle.begin(), idle.end(), "context") != idle.end())
            return {"batch", {1.0, 4.0, 16.0, 64.0, 256.0, 1024.0}};
        const auto model = askedModel(parameters);
        const double limit = model ? double(model->tokenLimit()) : 0;
        Sweep sweep{"context", {}};
        for (double tokens = limit > 0 ? limit / 64 : 1024; tokens <= (limit > 0 ? limit : 1048576); tokens *= 4)
            sweep.values.emplace_back(std::ceil(tokens));
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        MEMSCAPE_TRY(answer, servingAnswer(device, parameters));
        return servingFigures(device, answer, parameters);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters, PredictionContext&) const override;
    Json predictDetail(const Device& device, const Parameters& parameters) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;

private:
    Schema m_schema = inferenceSchema();
};

Result<Prediction> InferenceMemory::predict(const Device& device, const Parameters& parameters,
                                            PredictionContext&) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, servingAnswer(device, own));
    MEMSCAPE_TRY(figures, servingFigures(device, answer, own));
    const Sweep sweep = sweepOf(*this, device, parameters);
    const auto modelled = [&](const Parameters& point, std::size_t) {
        return servingCurveFigures(device, answer, point, sweep.key);
    };
    MEMSCAPE_TRY(points, predictedPoints(sweep, parameters, modelled));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = std::move(figures);
    setDetail(prediction, detailOf(device, answer));
    prediction.detail["basis"] = device.basis;
    if (const auto made = claimsAbout(answer); !made.empty())
        prediction.detail["claims"] = claimsJson(made);
    return prediction;
}

Json InferenceMemory::predictDetail(const Device& device, const Parameters& parameters) const
{
    const auto answer = servingAnswer(device, parameters);
    return answer ? detailOf(device, *answer) : Json::object();
}

std::vector<Claim> InferenceMemory::claims(const Device& device, const Parameters& parameters, const Measurement&) const
{
    const auto answer = servingAnswer(device, parameters);
    return answer ? claimsAbout(*answer) : std::vector<Claim>();
}

} // namespace

const Experiment& inferenceMemoryExperiment()
{
    static const InferenceMemory experiment;
    return experiment;
}

} // namespace memscape
