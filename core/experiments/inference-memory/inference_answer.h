// SPDX-License-Identifier: Apache-2.0
// `inference-memory` as its figures see it: what is asked, one forward pass of it, and what fits.
#pragma once

#include "core/experiment/experiment.h"
#include "core/experiments/inference-memory/inference_time.h"
#include "core/network/model.h"
#include "core/trace/peak.h"
#include "core/training/loading_peak.h"
#include "core/training/serving.h"
#include "core/training/simulation.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace memscape {

/// How the cache of keys and values gets room for a token.
enum class CacheGrowth : std::uint8_t {
    Reserved, ///< there for the whole context from the start: an engine's pages, a static cache
    Copied,   ///< torch.cat makes a layer's keys anew, beside the old ones
    KeptTwice ///< the same, and every old one is named until the step ends
};

struct ServingRequest
{
    StoredForm weights = StoredForm::AsStored;
    CacheForm cache = CacheForm::BFloat16;
    DType computed = DType::BFloat16;
    std::int64_t batch = 1, context = 1, chunk = 1, tensorParallel = 1;
    std::int64_t page = 1, sharedPrefix = 0;
    CacheGrowth growth = CacheGrowth::Reserved;
    Library library = Library::Engine;
    bool isOldBitsandbytes = false; ///< before 0.43: weights pass through fp16
    bool lastLogits = false;        ///< of the last token alone
    Transformers transformers = Transformers::From524;
    double memoryShare = 1;  ///< of the device, that an engine takes
    std::string draft;       ///< a second, smaller model; empty: none
    LoadingPlan loading;     ///< how the weights come from their file
    bool hasOwnHead = false; ///< though the model ties it to the embedding
    std::int64_t deviceContext = 0;

    CacheUse use(std::int64_t sequences) const { return {sequences, context, tensorParallel, page, sharedPrefix}; }
    CacheUse use() const { return use(batch); }
};

/// Errors: those of storedFormFromText(), cacheFormFromText().
Result<ServingRequest> servingRequest(const Device& device, const Parameters& parameters);
/// How the network is run for `batch` sequences.
TrainingSetup servingSetup(const Device& device, const Parameters& parameters, const ServingRequest& request,
                           std::int64_t batch);

/// The forward pass as events, and the most bytes that it adds to the weights.
struct ServingPass
{
    Trace trace;
    Moment peak;
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const PreparedNetwork> network;
    std::int64_t activations = 0;
};

struct DraftModel
{
    ModelDescription model;
    std::int64_t weights = 0;
};

/// What lies beside the weights at the fullest moment, B.
struct ServingMoment
{
    std::int64_t cache = 0, copies = 0, activations = 0;
    std::int64_t bytes() const { return cache + copies + activations; }
};

struct ServingAnswer
{
    ModelDescription model;
    ServingRequest request;
    ServingPass pass;
    std::int64_t weights = 0;
    std::optional<std::int64_t> capacity;
    std::optional<DraftModel> draft = {};
    std::int64_t tokenActivations = 0; ///< of a single token's pass, where the cache grows
    std::int64_t start = 0;            ///< B beside the weights that an engine finds to be taken when it starts
    std::int64_t hostWeights = 0;      ///< B of the weights that stay in the host's memory
    LoadingPeak loading = {};

    /// Of a draft model, too.
    Result<std::int64_t> caches(const CacheUse& use) const;
    /// A cache that grows is as long as the prompt while that runs, and as the context at the last token, beside whose
    /// activations are copies of it.
    Result<ServingMoment> fullest(const CacheUse& use) const { return fullest(use, pass.activations); }
    Result<ServingMoment> fullest(const CacheUse& use, std::int64_t activations) const;
    /// On the device, of a draft model, too.
    std::int64_t allWeights() const { return weights - hostWeights + (draft ? draft->weights : 0); }
    /// With what is said of a moment, B, loading is within the device's memory.
    bool fits(std::int64_t moment) const;
    /// With another context.
    Result<std::int64_t> total(std::int64_t context) const;
    /// False for pictures, encoders and state spaces, whose context needs nothing of its own.
    bool growsWithContext() const;
    std::int64_t available() const { return capacity.value_or(0) - request.deviceContext; }
};

/// Errors: those of readModel(), of a model of `draft_model` too; network.* of the pass; model.size.
Result<ServingAnswer> servingAnswer(const Device& device, const Parameters& parameters);

/// Most tokens a sequence, and most sequences, that fit; NaN on a device whose memory is not known.
double largestServedContext(const ServingAnswer& answer);
double largestServedBatch(const Device& device, const ServingAnswer& answer, const Parameters& parameters);
/// What an engine like vLLM has for its cache, B, and how many sequences of the whole context that holds; NaN without.
double cachePool(const ServingAnswer& answer);
double concurrentSequences(const ServingAnswer& answer);

/// All figures, with their whys.
Result<Figures> servingFigures(const Device& device, const ServingAnswer& answer, const Parameters& parameters);
/// What a curve over `swept` shows at a point; `own` is the answer at the page's setting.
Result<Figures> servingCurveFigures(const Device& device, const ServingAnswer& own, const Parameters& parameters,
                                    const std::string& swept);

} // namespace memscape
