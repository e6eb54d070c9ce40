// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"
#include "core/experiments/batch-size/batch_size.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>

namespace memscape {

namespace {

/// What a law or a closed form says of the model unless it is given.
ParameterSpec ofModel(std::string key, std::string label, std::string help, double most, Scale scale,
                      std::string suffix = {})
{
    return realSpec(std::move(key), std::move(label), std::move(help),
                    {.most = most,
                     .scale = scale,
                     .suffix = std::move(suffix),
                     .words = {{"0", "from the model", "from a published law or a closed form for the model"}}});
}

const ChoiceTable<ScheduleKind> schedules{
    {ScheduleKind::Constant, {"constant", "constant", "the same batch from the first step to the last"}},
    {ScheduleKind::Linear, {"linear", "linear growth", "B(t) = B₀ (1 + αt), up to the limit"}},
    {ScheduleKind::Adaptive,
     {"adaptive", "adaptive", "towards the noise scale of the moment, clipped: after AdaBatch"}}};

ParameterSpec& named(Schema& schema, std::string_view key)
{
    return *std::find_if(schema.begin(), schema.end(), [&](const ParameterSpec& spec) { return spec.key == key; });
}

} // namespace

Schema batchSizeSchema()
{
    Schema schema = trainingSchema();
    std::erase_if(schema, [](const ParameterSpec& spec) {
        return spec.key == "advice" || spec.key == "phase" || spec.key == "shortest_sequence"
            || spec.key == "nvme_bandwidth";
    });
    ParameterSpec& model = named(schema, "model");
    model.standard = "mlp:256,64";
    model.help += " A measurement needs mlp:SIZES, a chain of linear layers that is trained for real; of one layer, "
                  "mlp:256,64, the gradients' noise is known in closed form.";
    named(schema, "batch").standard = "32";
    named(schema, "precision").standard = "fp32";
    named(schema, "optimizer").standard = "sgd";
    const auto behind =
        std::find_if(schema.begin(), schema.end(), [](const ParameterSpec& spec) { return spec.key == "precision"; });
    schema.insert(
        behind,
        {ofModel(
             "target_loss", "target loss",
             "The loss that training is to reach; steps and examples are counted to it. Of a decoder: nats per token. "
             "0: one that suits the model.",
             1e6, Scale::Linear),
         choiceSpec("schedule", "schedule", "How the batch changes while training.", schedules.choices()),
         realSpec("schedule_growth", "growth α", "Of linear growth: the share of the first batch that each step adds.",
                  {.most = 1e6, .standard = "0.02", .suffix = "per step"}),
         realSpec("schedule_smoothing", "smoothing",
                  "Of the adaptive schedule: how far each step goes towards the noise scale, from 0 (not at all) to 1.",
                  {.least = 0.0001, .most = 1, .standard = "0.1", .scale = Scale::Log2}),
         integerSpec("batch_limit", "largest batch of the schedule",
                     "Examples of an update that a growing batch stops at. 0: as many as fit the device at once.",
                     {.most = 0x1p40,
                      .scale = Scale::Log2,
                      .suffix = "examples",
                      .words = {{"0", "as fit", "as many as fit the device at once"}}}),
         ofModel("noise_scale", "noise scale",
                 "Of the gradients, in examples: tr(Σ)/|G|². A measurement gives it. 0: from the model, where a law "
                 "or a closed form is known.",
                 1e12, Scale::Log2, "examples"),
         ofModel(
             "fewest_steps", "fewest steps",
             "S_min: steps to the target with an unlimited batch. 0: from the model, where a law or a closed form is "
             "known.",
             1e12, Scale::Log2, "steps")});
    setGroup(schema, "schedule and noise",
             {"schedule", "schedule_growth", "schedule_smoothing", "batch_limit", "noise_scale", "fewest_steps"});
    return schema;
}

BatchCase batchCase(const Parameters& parameters)
{
    BatchCase asked;
    asked.batch = parameters.integer("batch");
    asked.accumulation = parameters.integer("accumulation");
    asked.replicas = parameters.integer("data_parallel");
    asked.sequence = parameters.integer("sequence");
    asked.targetLoss = parameters.number("target_loss");
    asked.noiseScale = parameters.number("noise_scale");
    asked.fewestSteps = parameters.number("fewest_steps");
    asked.schedule.kind = schedules.of(parameters.choice("schedule"));
    asked.schedule.first = asked.update(double(asked.batch));
    asked.schedule.growth = parameters.number("schedule_growth");
    asked.schedule.smoothing = parameters.number("schedule_smoothing");
    asked.schedule.least = asked.perBatch();
    asked.schedule.most = parameters.number("batch_limit");
    return asked;
}

Parameters trainingParameters(const Parameters& parameters)
{
    Parameters training = parameters;
    training.setSweep({});
    training.set("phase", std::string("training"));
    training.set("advice", std::string("none"));
    training.set("shortest_sequence", 0.0);
    training.set("nvme_bandwidth", 0.0);
    return training;
}

std::string_view boundText(BatchBound bound, bool isHost)
{
    switch (bound) {
    case BatchBound::Launch: return isHost ? "call-bound" : "launch-bound";
    case BatchBound::Memory: return "memory-bound";
    case BatchBound::Arithmetic: break;
    }
    return "compute-bound";
}

std::string_view noiseSourceText(BatchNoise::Source source)
{
    switch (source) {
    case BatchNoise::Source::Given: return "given";
    case BatchNoise::Source::Regression: return "closed form";
    case BatchNoise::Source::Law: return "published law";
    case BatchNoise::Source::Unknown: break;
    }
    return "unknown";
}

} // namespace memscape
