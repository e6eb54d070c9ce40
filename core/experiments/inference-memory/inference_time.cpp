// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/inference-memory/inference_time.h"

#include "core/base/number.h"
#include "core/network/inventory.h"
#include "core/network/network.h"
#include "core/timing/eager_calls.h"
#include "core/timing/eager_kernels.h"
#include "core/timing/joined_operators.h"
#include "core/timing/reached_step.h"
#include "core/timing/step_band.h"
#include "core/timing/token_kernels.h"
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

/// What a step reads at, B/s.
struct ReadRates
{
    double plain = 0, quantized = 0, keys = 0;
};

/// Blocks that read a key head again run side by side, so that L2 passes a part of it on: they take keys as a stream is
/// read.
ReadRates readRates(const Device& device, const Serving& serving, double held)
{
    if (!device.isGpu()) {
        const double all = bandwidthOf(device, held, Operation::Read, device.units).bytesPerSecond;
        return {all, all, all};
    }
    const double plain = decodingBandwidth(device, WeightBits::Sixteen);
    const MemoryLevel* const dram = device.dram();
    const double stream = dram ? levelBandwidth(device, *dram, Operation::Read).valueOr(0) : 0;
    return {plain, decodingBandwidth(device, serving.isEightBit ? WeightBits::Eight : WeightBits::Four),
            serving.readsKeysAgain() ? stream : plain};
}

/// As an engine does (engineKernels()).
bool joinsKernels(Library library)
{
    return library != Library::LlamaCpp && library != Library::LlamaCpp2023 && library != Library::AutoAwq;
}

EngineStyle styleOf(const Device& device, const ModelDescription& model, const Serving& serving)
{
    EngineStyle style;
    style.isVllm = serving.isVllms();
    style.isBefore09 = serving.library != Library::Vllm09;
    const bool multipliesFloat8 = serving.isFloat8 && device.flopRate("fp8") > 0;
    style.quantizesInputs = multipliesFloat8 && (style.isVllm || model.latent.keyValueRank > 0);
    return style;
}

/// What a prompt may be of its prediction where an engine's own kernels multiply, at least: llama.cpp's products in
/// 16 bits add up in 16 bits, at twice the rate on GeForce boards (ggml-cuda.cu, CUBLAS_COMPUTE_16F), TensorRT chooses
/// among kernels by timing them, and Triton's for a few rows are tuned for some boards alone. A judgement.
constexpr double ownKernelsLow = 0.75, ownKernelsHigh = 1.3;

/// s of an engine's host from a token to the next. vLLM's of version 0.6: what Qwen2.5 0.5B takes beside its kernels
/// (3.21 ms a token in BF16 on an A100: QwenLM/Qwen2.5, docs/source/benchmark/speed_benchmark.rst, vLLM 0.6.3); before,
/// bubbles of 4 ms were seen (vllm-project/vllm, issue 6854, July 2024).
double secondsBetween(Library library)
{
    return library == Library::Vllm ? 1.7e-3 : library == Library::Vllm05 ? 4e-3 : 0;
}

/// s of a loop's copies of its cache beside reading it once: all of it is read and written for the next token, and
/// copied for every query head by a kernel that computes an offset for each element (repeat_kv; eager_kernels.h). Of a
/// few heads FlashAttention splits the keys, so that all multiprocessors read them (its version 2.2 and PyTorch's).
double copiesOfCache(const Device& device, const Serving& serving, double elementSize, double bandwidth)
{
    if (!serving.isCacheCopied)
        return 0;
    const double appended = 2 * serving.cacheRead / bandwidth;
    if (!serving.areHeadsCopied || serving.queriesPerKey <= 1)
        return appended;
    const double ofHeads = serving.cacheRead * serving.queriesPerKey;
    const double offsets = device.isGpu() ? issueSeconds(device, permutedCopyInstructions * ofHeads / elementSize) : 0;
    return appended + std::max((serving.cacheRead + ofHeads) / bandwidth, offsets)
        + (ofHeads - serving.cacheRead) / bandwidth;
}

/// Lanes' instructions for an NF4 weight that bitsandbytes 0.45 makes 16 bits: a tree of 15 tests, of which a warp of
/// 32 weights takes every branch, and 16 leaves (csrc/kernels.cu, dDequantizeNF4; a table in later versions). Three for
/// a test and two for a leaf are counted by hand: no compiler's output was read.
constexpr double treeOfNormalFloat = 15 * 3 + 16 * 2;

/// s of NF4 weights that are made whole, beside being read: each element's instructions or its writing, and reading it.
double madeWhole(const Device& device, double elements, double elementSize, double bandwidth)
{
    const double moved = elements * elementSize / bandwidth;
    return std::max(moved, device.isGpu() ? issueSeconds(device, elements * treeOfNormalFloat) : 0) + moved;
}

/// B an element that a cast of 16 bits to fp32 moves: it reads 2 and writes 4, and the product reads 4 instead of 2.
constexpr double widenedBytes = 2 + 4 + 4 - 2;

/// 4-bit layers that multiply in fp32 beside activations in 16 bits.
bool computesInWiderType(const BuildOptions& build)
{
    return build.adapters && build.adapters->compute == DType::Float32 && elementBytes(build.weights) == 2;
}

/// Times a layer that Falcon's attention waits for the device, and what the host is called for meanwhile: a tensor of a
/// list, its copy.
constexpr double waitsOfFalcon = 2, callsOfWait = 2;

bool waitsForDevice(const Device& device, const ModelDescription& model)
{
    return device.isGpu() && model.architecture == "falcon" && model.kvHeads < model.heads;
}

/// Kernels from the first product of each layer to its next.
double kernelsOfAttention(const Graph& graph, std::int64_t layers)
{
    const auto hasWeight = [](const Operator& op) { return isMatrixProduct(op.kind) && op.kind != OperatorKind::Bmm; };
    const auto all = std::count_if(graph.operators.begin(), graph.operators.end(), hasWeight);
    const std::int64_t ofLayer = std::max<std::int64_t>(1, all / layers); // the head is one more
    double kernels = 0;
    std::int64_t products = 0;
    for (const Operator& op : graph.operators) {
        if (hasWeight(op))
            ++products;
        else if (products % ofLayer == 1 && products < ofLayer * layers)
            kernels += forwardCost(graph, op).kernels;
    }
    return kernels;
}

/// Of one decoding step.
std::vector<Term> collectiveTermsOf(const Graph& graph, const Plan& plan, const Device& device,
                                    const DeviceRates& rates, double held)
{
    const ReachedTiming timing(device, plan, held);
    std::vector<Term> terms;
    for (const Collective& one : stepCollectives(graph, preparedNetwork(graph)->parameters, plan)) {
        if (one.sentBytes() <= 0)
            continue;
        const double seconds = collectiveSeconds(one, rates, timing.options());
        terms.push_back(
            {fmt::format("{}, {}", one.what, collectiveText(one.kind)), seconds, Unit::Second,
             fmt::format("{} × {} among {}: {}, {} each", numberText(one.count * one.calls),
                         bytesText(one.payload / one.calls), one.degree, collectiveWay(one, rates, timing.options()),
                         secondsText(seconds / (one.count * one.calls))),
             "core/timing/nccl.h"});
    }
    return terms;
}

/// Weights, cache and kernels of one token for each sequence.
Result<void> addDecoding(ServingTime& time, const Device& device, const ModelDescription& model, TrainingSetup setup,
                         const Serving& serving, double held)
{
    setup.build.sequence = serving.tokens;
    const bool isWidened = computesInWiderType(setup.build);
    setup.build.adapters.reset(); // kernels for one token read the 4 bits themselves
    setup.build.writtenOut.activation = true;
    if (serving.writesScores) // by llama.cpp's own kernels, which are counted apart
        setup.build.attention = AttentionKernel::Flash;
    MEMSCAPE_TRY(graph, buildNetwork(model, setup.build));
    MEMSCAPE_TRY(tensors, inventory(model));
    MEMSCAPE_TRY(rates, deviceRates(device));
    setup.step.plan.served.reducesItself = serving.reducesItself();
    const Plan& plan = setup.step.plan;
    MEMSCAPE_TRY(step, reachedStepTime(graph, preparedNetwork(graph)->parameters, plan, device, held));
    const Format format = productFormat(plan.precision);
    OperatorCost product;
    product.isProduct = true;
    product.dtype = setup.build.weights;
    const double rate = rates.rate(product) * reachedShare(device, format);
    const ReadRates reads = readRates(device, serving, held);
    const double share = 1 / double(std::max(1, plan.tensorParallel));
    double products = 2 * double(tensors.active) * share * double(serving.batch * serving.tokens) / rate;
    const double read = serving.weightsRead.plain / reads.plain + serving.weightsRead.quantized / reads.quantized;
    time.cache = std::max(serving.keysRead() / reads.keys, attentionFlops(model, serving) * share / rate);
    const double elementSize = double(elementBytes(setup.build.weights));
    time.copies = copiesOfCache(device, serving, elementSize, rates.bandwidth);
    double fourBitLayers = 0, fourBitWeights = 0, awqSums = 0;
    for (const Operator& op : graph.operators) {
        const double kernels = forwardCost(graph, op).kernels;
        time.eagerKernels += kernels;
        time.eagerCalls += eagerCalls(op, EagerPass::WithoutAutograd, kernels);
        if (serving.isAwq && isMatrixProduct(op.kind) && op.kind != OperatorKind::Bmm)
            ++awqSums; // of the parts that AutoAWQ's product leaves (gemm_forward_cuda: _out_feats.sum(0))
        if (!serving.isFourBit || !isMatrixProduct(op.kind) || op.kind == OperatorKind::Bmm)
            continue;
        ++fourBitLayers;
        const Layout& weight = graph.layoutOf(graph.inputs(op)[1]);
        fourBitWeights += weight[0] == model.vocab ? 0 : double(weight.elements());
    }
    const bool areMany = serving.batch * serving.tokens > 1;
    if (areMany && isWidened) {
        product.dtype = DType::Float32;
        const double flops = 2 * fourBitWeights * double(serving.batch * serving.tokens);
        products += flops / (rates.rate(product) * reachedShare(device, Format::Fp32)) - flops / rate;
    }
    time.weights = std::max(read, products);
    time.areWeightsArithmetic = products > read;
    double beside = awqSums + (serving.writesScores ? double(model.layers) * (llamaCppScoreKernels + 1) : 0);
    if (isWidened) // its input and its result are cast
        beside += 2 * fourBitLayers;
    if (areMany) { // by a kernel of its own, and in fp32 by a cast
        time.weights += isWidened ? fourBitWeights * widenedBytes / rates.bandwidth : 0;
        time.weights += madeWhole(device, fourBitWeights, elementSize, rates.bandwidth);
        beside += fourBitLayers;
    }
    time.eagerKernels += beside;
    time.eagerCalls += beside;
    const bool isLoop = device.isGpu() && serving.library == Library::AutoAwq;
    const bool isJoined = device.isGpu() && joinsKernels(serving.library);
    const LoopedKernels looped = fusedLoop(model, serving.isAwq);
    const bool isLlamaCpp = device.isGpu() && serving.library == Library::LlamaCpp;
    time.kernels = isLoop ? looped.kernels()
        : isJoined        ? engineKernels(model, styleOf(device, model, serving))
        : isLlamaCpp      ? llamaCppKernels(model, serving.isQuantized, serving.writesScores)
                          : time.eagerKernels;
    time.launches = time.kernels
        * (isJoined                     ? engineKernelSeconds(device)
               : isLoop                 ? streamKernelSeconds(device)
               : isLlamaCpp && !areMany ? llamaCppKernelSeconds(device)
                                        : rates.launch);
    if (serving.isMarlins() && device.isGpu())
        time.launches += marlinSeconds(device, model, plan.tensorParallel);
    time.eagerLaunches = time.eagerKernels * rates.launch;
    time.eagerPass = serving.weightsRead.quantized > 0 ? 0 : step.forward;
    time.between = device.isGpu() ? secondsBetween(serving.library) : 0;
    time.dispatch = device.isGpu() ? decodeDispatchOfGpu(device) : decodeDispatch + rates.launch;
    time.dispatchSource = device.eagerKernel.known() ? device.eagerKernel.source
        : device.isGpu() ? "LitGPT's eager loop on an A100, between gpt-fast's and transformers'"
                         : "measured: transformers 5.24, PyTorch 2.15 on a Zen 4";
    time.loopHost = isLoop ? looped.hostSeconds(time.dispatch, rates.launch) : 0;
    time.host = fourBitLayers * fourBitDispatch
        + (device.isGpu() ? eagerHostSeconds(time.eagerCalls, time.eagerKernels, time.dispatch)
                          : time.eagerCalls * decodeDispatch + time.eagerKernels * rates.launch);
    if (waitsForDevice(device, model)) {
        const Link* const host = device.link("host");
        const double wait = callsOfWait * time.dispatch + (host ? host->latency.valueOr(0) : 0);
        time.waits = double(model.layers) * waitsOfFalcon * wait;
        time.ahead = (isLoop ? double(model.layers) : kernelsOfAttention(graph, model.layers)) * time.dispatch;
    }
    time.exposed = step.exposed;
    time.collectives = collectiveTermsOf(graph, plan, device, rates, held);
    return {};
}

Result<double> passSeconds(const Device& device, const ModelDescription& model, const TrainingSetup& setup, double held)
{
    MEMSCAPE_TRY(graph, buildNetwork(model, setup.build));
    MEMSCAPE_TRY(pass, reachedStepTime(graph, preparedNetwork(graph)->parameters, setup.step.plan, device, held));
    return pass.total - pass.dispatch;
}

/// How the library runs a prompt of so many tokens: TensorRT in a graph of its own.
Device promptDevice(const Device& device, const Serving& serving)
{
    Device run = device;
    if (serving.library == Library::TensorRt)
        run.launch.value = graphLaunchSeconds(device);
    return run;
}

TrainingSetup promptSetup(const Device& device, const ModelDescription& model, TrainingSetup setup,
                          const Serving& serving)
{
    ServedKernels& served = setup.step.plan.served;
    const double active = double(model.experts.active), count = double(model.experts.count);
    const double tokens = double(serving.batch * serving.sequence);
    if (count > 0 && device.isGpu() && serving.library != Library::AutoAwq)
        served.expertsHit = count * (1 - std::pow(1 - active / count, tokens));
    const bool isMultiplied = serving.isFloat8 && device.flopRate("fp8") > 0; // which has its bytes
    if (!isMultiplied && device.isGpu() && !serving.isFourBit) {
        served.weights = serving.stored.layers;
        served.expertWeights = serving.stored.experts;
        served.isHeadStored = serving.isHeadStored;
    }
    if (serving.library == Library::LlamaCpp && serving.isQuantized && device.isGpu())
        served.vectorRows = llamaCppVectorRows;
    if (serving.library == Library::LlamaCpp && device.isGpu() && tokens > llamaCppVectorRows)
        served.expertTile = std::min(tokens, llamaCppTileRows);
    served.reducesItself = serving.reducesItself();
    served.joinsProducts = serving.library == Library::TensorRt && device.isGpu();
    return setup;
}

/// Those that experts share counted once.
double kernelsOfPass(const Graph& graph, const Plan& plan)
{
    const JoinedOperators joined(graph, plan);
    double kernels = 0;
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        kernels += joined.share(i) * joined.joined(forwardCost(graph, graph.operators[i]), i).kernels;
    return kernels;
}

/// s that an engine's prompt takes beside an eager network's (less than 0): operators between products are joined, as a
/// compiler joins them; in FP8 layers multiply in it, of inputs that are cast.
Result<double> besideEager(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                           bool isFloat8, double held)
{
    TrainingSetup joined = setup, float8 = setup;
    joined.build.compiled = CompileScope::Network;
    float8.build.isProductInFp8 = true;
    float8.step.plan.precision = Precision::Fp8;
    MEMSCAPE_TRY(eager, passSeconds(device, model, setup, held));
    MEMSCAPE_TRY(compiled, passSeconds(device, model, joined, held));
    if (!isFloat8)
        return compiled - eager;
    MEMSCAPE_TRY(multiplied, passSeconds(device, model, float8, held));
    return compiled - eager + multiplied - eager;
}

/// The same; of layers that are alike, one more tells what each takes: dense ones, and those with experts.
Result<double> engineSeconds(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                             bool isFloat8, double held)
{
    const bool areTold =
        model.family == Family::Decoder && model.slidingLayers.empty() && !model.program && model.layers > 2;
    if (!areTold)
        return besideEager(device, model, setup, isFloat8, held);
    std::int64_t sparse = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
        sparse += !model.sparseLayers.empty() && model.isSparse(layer);
    const std::uint8_t first = sparse == model.layers ? 1 : 0;
    const auto ofLayers = [&](std::vector<std::uint8_t> kinds) {
        ModelDescription few = model;
        few.layers = std::int64_t(kinds.size());
        if (!few.sparseLayers.empty())
            few.sparseLayers = std::move(kinds);
        return besideEager(device, few, setup, isFloat8, held);
    };
    MEMSCAPE_TRY(one, ofLayers({first}));
    MEMSCAPE_TRY(two, ofLayers({first, first}));
    const std::int64_t alike = first == 1 ? model.layers : model.layers - sparse;
    const double ofAlike = one + double(alike - 1) * (two - one);
    if (alike == model.layers)
        return ofAlike;
    MEMSCAPE_TRY(other, ofLayers({first, 1}));
    return ofAlike + double(sparse) * (other - one);
}

Figure timeFigure(std::string key, std::string label, Unit unit, double value, Why why, double low, double high)
{
    Figure figure = figureOf(std::move(key), std::move(label), unit, value, std::move(why));
    if (std::isfinite(low) && std::isfinite(high)) {
        figure.low = low;
        figure.high = high;
    }
    return figure;
}

} // namespace

ServingTime servingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                        const Graph& graph, const std::vector<ParameterTensor>& parameters, const Serving& serving,
                        double held)
{
    ServingTime time;
    time.of = serving;
    const Device run = promptDevice(device, serving);
    const TrainingSetup prompt = promptSetup(device, model, setup, serving);
    const auto prefill = reachedStepTime(graph, parameters, prompt.step.plan, run, held);
    if (!prefill) {
        time.missing = prefill.error();
        return time;
    }
    StepTime pass = *prefill; // as a graph, like the tokens behind it
    pass.total -= pass.dispatch;
    pass.dispatch = 0;
    const StepBand band = stepBand(pass, run, prompt.step.plan);
    double beside = 0;
    const bool isPromptAlone = serving.library == Library::TensorRt;
    if (device.isGpu() && (serving.cacheRead > 0 || isPromptAlone) && joinsKernels(serving.library)) {
        const bool isFloat8 = serving.isFloat8 && device.flopRate("fp8") > 0;
        beside = engineSeconds(run, model, prompt, isFloat8, held).value_or(0);
    }
    if (device.isGpu() && serving.library == Library::LlamaCpp) {
        beside = std::min(0.0,
                          llamaCppKernels(model, serving.isQuantized, serving.writesScores)
                              - kernelsOfPass(graph, prompt.step.plan))
            * device.launch.valueOr(0);
    }
    const double share = 1 + beside / pass.total; // the band's parts are the eager pass's
    time.prefill = share * pass.total;
    time.prefillLow = share * band.low;
    time.prefillHigh = share * band.high;
    if (device.isGpu() && (serving.cacheRead > 0 || isPromptAlone)) {
        time.prefillLow = std::min(time.prefillLow, ownKernelsLow * time.prefill);
        time.prefillHigh = std::max(time.prefillHigh, ownKernelsHigh * time.prefill);
    }
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
    Figures figures{
        timeFigure("prefill_time", "prefill", Unit::Second, time.prefill,
                   Why{"Σ over operators of one forward pass: max(FLOPs / reached rate, bytes / bandwidth) + launch",
                       orMissing(fmt::format("= {} for {} × {} tokens", secondsText(time.prefill), serving.batch,
                                             serving.sequence)),
                       {},
                       source,
                       {"a prompt longer than one pass", "Python and dispatch on the host"}},
                   time.prefillLow, time.prefillHigh)};
    if (!(serving.cacheRead > 0))
        return figures;
    const double decode = time.decode();
    std::vector<Term> terms{
        {"weights", serving.weightsRead.bytes(), Unit::Byte,
         time.areWeightsArithmetic ? "read once a step, and quicker than their products: arithmetic rules"
                                   : "read once a step whatever the batch: bandwidth rules",
         "the form that they are stored in"},
        {"cache", serving.keysRead(), Unit::Byte, "every sequence reads its own", "the model's description"},
        {"kernels", time.kernels, Unit::One, "as the library joins them", "core/timing/token_kernels.h"}};
    terms.insert(terms.end(), time.collectives.begin(), time.collectives.end());
    figures.push_back(timeFigure(
        "token_time", "time per token", Unit::Second, decode,
        Why{"weights + cache + kernels + communication + host",
            orMissing(fmt::format("= {} + {} + {} + {} + {}", secondsText(time.weights), secondsText(time.cache),
                                  secondsText(time.launches), secondsText(time.exposed), secondsText(time.between))
                      + (time.loopHost > 0 ? ", or a loop's host: " + secondsText(time.loopHost) : "")),
            std::move(terms),
            source,
            {"kernels of quantized weights that reach less of the bandwidth", "Python and dispatch on the host",
             "sampling"}},
        time.decodeLow(), time.decodeHigh()));
    figures.push_back(timeFigure(
        "eager_token_time", "time per token, eager", Unit::Second, time.eagerDecode(),
        Why{"max(the device's, the host's: calls, kernels, and more for each 4-bit layer)",
            orMissing(fmt::format("= max({}, {})", secondsText(time.eagerDevice()), secondsText(time.host))
                      + (time.waits > 0 ? fmt::format(", {} of it in turn, + {} of waiting in each layer",
                                                      secondsText(time.ahead), secondsText(time.waits))
                                        : "")),
            {{"dispatch", time.dispatch, Unit::Second,
              "for an operator of LLaMA: 0.36 of it a call of PyTorch, 0.64 what comes with a kernel",
              time.dispatchSource},
             {"calls", time.eagerCalls, Unit::One, "modules and views are calls, too", "core/timing/eager_calls.h"},
             {"kernels", time.eagerKernels, Unit::One, "one after the other", "the network's operators"},
             {"4-bit", fourBitDispatch, Unit::Second, "for each layer of bitsandbytes",
              "measured: bitsandbytes 0.50 on a Zen 4"}},
            "published for servers of 2023; later processors take about half as long",
            {"a first run's start: kernels are loaded, cuBLAS is made ready", "sampling"}},
        time.eagerDecodeLow(), time.eagerDecodeHigh()));
    figures.push_back(timeFigure("tokens_per_second", "tokens per second", Unit::One, time.tokensPerSecond(),
                                 Why{"batch / time per token",
                                     orMissing(fmt::format("= {} / {}", serving.batch, secondsText(decode))),
                                     {},
                                     "the time per token",
                                     {"prefill"}},
                                 double(serving.batch) / time.decodeHigh(), double(serving.batch) / time.decodeLow()));
    if (time.answerTokens() > 0)
        figures.push_back(timeFigure(
            "answer_time", "time of an answer", Unit::Second, time.answer(),
            Why{"prefill + (context − sequence) × time per token in the middle of the answer",
                orMissing(fmt::format("= {} + {} × {}", secondsText(time.prefill), time.answerTokens(),
                                      secondsText(time.answerToken()))),
                {},
                "both times above",
                {"a prompt longer than one pass"}},
            time.prefillLow + time.answerTokens() * (time.answerToken() - time.decode() + time.decodeLow()),
            time.prefillHigh + time.answerTokens() * (time.answerToken() - time.decode() + time.decodeHigh())));
    return figures;
}

} // namespace memscape
