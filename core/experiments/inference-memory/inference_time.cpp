// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/inference-memory/inference_time.h"

#include "core/network/inventory.h"
#include "core/network/network.h"
#include "core/timing/reached_step.h"
#include "core/timing/step_band.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// FLOPs of scores and context over the whole cache, all layers and sequences.
double attentionFlops(const ModelDescription& model, const Serving& serving)
{
    const double width = double(model.heads) * double(model.queryHeadDim() + model.valueHeadDim());
    double tokens = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
        tokens += double(model.isSliding(layer) ? std::min(serving.context, model.slidingWindow) : serving.context);
    return 2 * width * tokens * double(serving.batch * serving.tokens);
}

double readBandwidth(const Device& device, double held)
{
    if (!device.isGpu())
        return bandwidthOf(device, held, Operation::Read, device.units).bytesPerSecond;
    const MemoryLevel* const dram = device.dram();
    return dram ? levelBandwidth(device, *dram, Operation::Read).valueOr(0) : 0;
}

/// Weights, cache and launches of one token for each sequence.
Result<void> addDecoding(ServingTime& time, const Device& device, const ModelDescription& model, TrainingSetup setup,
                         const Serving& serving, double held)
{
    setup.build.sequence = serving.tokens;
    setup.build.adapters.reset(); // kernels for one token read the 4 bits themselves
    MEMSCAPE_TRY(graph, buildNetwork(model, setup.build));
    MEMSCAPE_TRY(tensors, inventory(model));
    MEMSCAPE_TRY(rates, deviceRates(device));
    const Plan& plan = setup.step.plan;
    MEMSCAPE_TRY(step, reachedStepTime(graph, preparedNetwork(graph)->parameters, plan, device, held));
    const Format format = productFormat(plan.precision);
    OperatorCost product;
    product.isProduct = true;
    product.dtype = setup.build.weights;
    const double rate = rates.rate(product) * reachedShare(device, format);
    const double bandwidth = readBandwidth(device, held);
    const double share = 1 / double(std::max(1, plan.tensorParallel));
    const double products = 2 * double(tensors.active) * share * double(serving.batch * serving.tokens) / rate;
    time.weights = std::max(serving.weightsRead / bandwidth, products);
    time.areWeightsArithmetic = products > serving.weightsRead / bandwidth;
    time.cache = std::max(serving.cacheRead / bandwidth, attentionFlops(model, serving) * share / rate);
    double fourBitLayers = 0, fourBitWeights = 0;
    for (const Operator& op : graph.operators) {
        time.kernels += forwardCost(graph, op).kernels;
        if (!serving.isFourBit || !isMatrixProduct(op.kind) || op.kind == OperatorKind::Bmm)
            continue;
        ++fourBitLayers;
        const Layout& weight = graph.layoutOf(graph.inputs(op)[1]);
        fourBitWeights += weight[0] == model.vocab ? 0 : double(weight.elements());
    }
    if (serving.batch * serving.tokens > 1) // made whole, and multiplied as such
        time.weights += fourBitWeights * 2 * double(elementBytes(setup.build.weights)) / rates.bandwidth;
    time.launches = time.kernels * rates.launch;
    time.dispatch = device.isGpu() ? decodeDispatchOfGpu(device) : decodeDispatch + rates.launch;
    time.host = time.kernels * time.dispatch + fourBitLayers * fourBitDispatch;
    time.exposed = step.exposed;
    return {};
}

Figure timeFigure(std::string key, std::string label, Unit unit, double value, Why why, double low, double high)
{
    Figure figure{std::move(key), std::move(label), unit, value, {}, {}, std::move(why)};
    if (std::isfinite(low) && std::isfinite(high)) {
        figure.low = low;
        figure.high = high;
    }
    return figure;
}

std::string seconds(double value)
{
    return quantityText(value, Unit::Second);
}

} // namespace

ServingTime servingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                        const Graph& graph, const std::vector<ParameterTensor>& parameters, const Serving& serving,
                        double held)
{
    ServingTime time;
    time.of = serving;
    const auto prefill = reachedStepTime(graph, parameters, setup.step.plan, device, held);
    if (!prefill) {
        time.missing = prefill.error();
        return time;
    }
    StepTime pass = *prefill; // as a graph, like the tokens behind it
    pass.total -= pass.dispatch;
    pass.dispatch = 0;
    const StepBand band = stepBand(pass, device, setup.step.plan);
    time.prefill = pass.total;
    time.prefillLow = band.low;
    time.prefillHigh = band.high;
    if (serving.cacheRead > 0) {
        if (const auto added = addDecoding(time, device, model, setup, serving, held); !added)
            time.missing = added.error();
    }
    return time;
}

ServingTime decodingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                         const Serving& serving, double held)
{
    ServingTime time;
    time.of = serving;
    if (const auto added = addDecoding(time, device, model, setup, serving, held); !added)
        time.missing = added.error();
    return time;
}

Figures servingTimeFigures(const ServingTime& time)
{
    const Serving& serving = time.of;
    const std::string source = "roofline: Williams, Waterman, Patterson 2009; rates of the device";
    const auto orMissing = [&](std::string with) { return time.missing ? time.missing->text() : std::move(with); };
    Figures figures{timeFigure(
        "prefill_time", "prefill", Unit::Second, time.prefill,
        Why{"Σ over operators of one forward pass: max(FLOPs / reached rate, bytes / bandwidth) + launch",
            orMissing(fmt::format("= {} for {} × {} tokens", seconds(time.prefill), serving.batch, serving.sequence)),
            {},
            source,
            {"a prompt longer than one pass", "Python and dispatch on the host"}},
        time.prefillLow, time.prefillHigh)};
    if (!(serving.cacheRead > 0))
        return figures;
    const double decode = time.decode();
    figures.push_back(timeFigure(
        "token_time", "time per token", Unit::Second, decode,
        Why{"weights + cache + kernels × launch + communication",
            orMissing(fmt::format("= {} + {} + {} + {}", seconds(time.weights), seconds(time.cache),
                                  seconds(time.launches), seconds(time.exposed))),
            {{"weights", serving.weightsRead, Unit::Byte,
              time.areWeightsArithmetic ? "read once a step, and quicker than their products: arithmetic rules"
                                        : "read once a step whatever the batch: bandwidth rules",
              "the form that they are stored in"},
             {"cache", serving.cacheRead, Unit::Byte, "every sequence reads its own", "the model's description"},
             {"kernels", time.kernels, Unit::One, "operators of the pass that start one", "the recorded network"}},
            source,
            {"bandwidth that a kernel does not reach (0.6 to 0.9 of it is usual: the band)",
             "Python and dispatch on the host", "sampling"}},
        time.decodeLow(), time.decodeHigh()));
    figures.push_back(
        timeFigure("eager_token_time", "time per token, eager", Unit::Second, time.eagerDecode(),
                   Why{"max(time per token, the host's: kernels × dispatch, and more for each 4-bit layer)",
                       orMissing(fmt::format("= max({}, {})", seconds(decode), seconds(time.host))),
                       {{"dispatch", time.dispatch, Unit::Second, "for each kernel, Python and launch included",
                         "of GPUs: gpt-fast's and LitGPT's eager loops on A100s, 26 and 32 µs; of processors measured: "
                         "transformers 5.24, PyTorch 2.15 on a Zen 4"},
                        {"4-bit", fourBitDispatch, Unit::Second, "for each layer of bitsandbytes",
                         "measured: bitsandbytes 0.50 on a Zen 4"}},
                       "published for servers of 2023; later processors take about half as long",
                       {"a first run's start: kernels are loaded, cuBLAS is made ready", "sampling"}},
                   time.eagerDecodeLow(), time.eagerDecodeHigh()));
    figures.push_back(timeFigure("tokens_per_second", "tokens per second", Unit::One, time.tokensPerSecond(),
                                 Why{"batch / time per token",
                                     orMissing(fmt::format("= {} / {}", serving.batch, seconds(decode))),
                                     {},
                                     "the time per token",
                                     {"prefill"}},
                                 double(serving.batch) / time.decodeHigh(), double(serving.batch) / time.decodeLow()));
    return figures;
}

} // namespace memscape
