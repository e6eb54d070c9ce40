// SPDX-License-Identifier: Apache-2.0
// `precision` as its callers see it: what its parameters ask, the small network that `train` trains,
// and the memory and time of its step in each recipe of mixed precision.
#pragma once

#include "core/experiment/experiment.h"
#include "core/precision/loss_scaler.h"
#include "core/precision/magnitudes.h"
#include "core/timing/gemm_time.h"
#include "core/training/plan.h"

#include <vector>

namespace memscape {

enum class PrecisionOperation { Matmul, Train };

/// What the parameters of `precision` say.
struct PrecisionCase
{
    PrecisionOperation operation = PrecisionOperation::Matmul;
    GemmShape shape;
    Format format = Format::Bf16;
    double value = 0;
    Magnitudes gradients;
    double lossScale = 1;
    int steps = 1;
    int growthInterval = 2000;

    bool trains() const { return operation == PrecisionOperation::Train; }
    LossScalerOptions scaler() const { return {float(lossScale), 2, 0.5, growthInterval}; }
};
PrecisionCase precisionCase(const Parameters& parameters);
Schema precisionSchema();
/// Every format as a value of the parameter `format`, with what it is for.
std::vector<ChoiceValue> formatChoices();

/// The classifier that `train` trains: inputs → hidden → hidden → classes with ReLU between, cross
/// entropy, AdamW in one kernel. m is the batch, k the inputs, n the hidden width.
struct TrainedNetwork
{
    static constexpr std::int64_t classes = 16;
    std::int64_t batch = 1, inputs = 1, hidden = 1;

    std::int64_t parameters() const { return (inputs + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * classes; }
    /// Of the products of a step: forward, and twice that backward, but the first layer's input
    /// wants no gradient.
    double flops() const;
};
TrainedNetwork trainedNetwork(const GemmShape& shape);

/// The recipe that a format of `train` stands for: autocast, as PyTorch's AMP does it. Errors:
/// predict.format for formats that are not trained in.
Result<Precision> trainingRecipe(Format format);

/// One step of the network in a recipe, from the step simulator.
struct RecipeStep
{
    Precision recipe = Precision::Fp32;
    std::int64_t weights = 0, gradients = 0, master = 0, state = 0; ///< B kept
    std::int64_t casts = 0;       ///< B of weights cast to half precision, until the forward pass ends
    std::int64_t activations = 0; ///< B at most, those casts among them
    std::int64_t peak = 0;        ///< B live at most, rounded as the pool does
    double seconds = 0;           ///< NaN where the device's rates are not known
};
Result<RecipeStep> recipeStep(const Device& device, const TrainedNetwork& network, Precision recipe);

// The parts of the prediction.
Result<Figures> matmulFigures(const Device& device, const PrecisionCase& asked);
Result<Figures> trainFigures(const Device& device, const PrecisionCase& asked);
/// What `value` becomes: the same for both operations.
Figures valueFigures(const PrecisionCase& asked);
/// Shares of the assumed gradients that are lost at the case's loss scale.
Figures gradientFigures(const PrecisionCase& asked);
Json precisionDetail(const Device& device, const PrecisionCase& asked);
std::vector<Claim> precisionClaims(const Device& device, const PrecisionCase& asked, const Measurement& measured);

/// Bars of the histograms of gradients: log2 |g| from −50 to 20.
inline constexpr int histogramFirst = -50, histogramBars = 70;
Json histogramJson(const MagnitudeHistogram& histogram);

} // namespace memscape
