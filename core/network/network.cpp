// SPDX-License-Identifier: Apache-2.0
#include "core/network/network.h"

#include "core/network/adapter_targets.h"
#include "core/network/compile/compiled_graph.h"
#include "core/network/families/cnn_network.h"
#include "core/network/families/decoder.h"
#include "core/network/families/dit.h"
#include "core/network/families/encoder.h"
#include "core/network/families/from_scratch.h"
#include "core/network/families/gpt2.h"
#include "core/network/families/mamba.h"
#include "core/network/families/mlp.h"
#include "core/network/families/swin.h"
#include "core/network/families/t5.h"
#include "core/network/families/unet.h"
#include "core/network/families/whisper.h"
#include "core/network/network_program.h"
#include "core/network/pipeline_part.h"
#include "core/network/tensor_parallel.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// As nanoGPT runs it, with PyTorch's fused GELU unless activations are to be written out.
Gpt2Shape gpt2Shape(const ModelDescription& model, const BuildOptions& options)
{
    Gpt2Shape shape;
    shape.hidden = model.hidden;
    shape.heads = model.heads;
    shape.headWidth = model.headDim;
    shape.layers = model.layers;
    shape.feedForward = model.ffn;
    shape.vocabulary = model.vocab;
    shape.positions = model.maxPositions;
    shape.isTied = model.tied;
    shape.isActivationComposite =
        model.activation == ActivationKind::GeluNew && (options.writtenOut.activation || options.isTransformers);
    if (model.activation == ActivationKind::Relu)
        shape.activation = OperatorKind::Relu;
    return shape;
}

/// Of a network file with a table of positions.
Result<void> checkPositions(const ModelDescription& model, std::int64_t sequence)
{
    if (model.tokenLimit() == 0 || sequence <= model.tokenLimit())
        return {};
    return fail(beyondPositions("sequence", sequence, model.tokenLimit()));
}

Result<Graph> recorded(const ModelDescription& model, const BuildOptions& options)
{
    switch (model.family) {
    case Family::Cnn: return cnnNetwork(model, options);
    case Family::Mlp: return mlpChain(model, options);
    case Family::Encoder: return bert(model, options);
    case Family::VisionTransformer:
        return model.architecture == "swin" ? swin(model, options) : visionTransformer(model, options);
    case Family::Diffusion: return model.architecture == "dit" ? dit(model, options) : unet(model, options);
    case Family::EncoderDecoder: return model.architecture == "whisper" ? whisper(model, options) : t5(model, options);
    case Family::StateSpace: return mamba(model, options);
    case Family::Traced:
        MEMSCAPE_CHECK(checkPositions(model, options.sequence));
        return runNetworkFile(*model.program, options);
    case Family::Decoder: break;
    }
    if (model.architecture == "gpt2")
        return gpt2(gpt2Shape(model, options), options);
    if (model.architecture == "from-scratch")
        return fromScratchDecoder(model, options);
    return decoder(model, options);
}

/// The other forms take the one matrix behind a library's language model.
Result<void> checkLoss(const ModelDescription& model, const BuildOptions& options)
{
    const bool isLanguageModel = (model.family == Family::Decoder || model.family == Family::EncoderDecoder
                                  || model.family == Family::StateSpace)
        && model.architecture != "from-scratch" && model.head == HeadKind::LanguageModel;
    const bool isSummed = options.lossForm == LossForm::Sum && model.family == Family::Encoder;
    if (options.lossForm == LossForm::Library || !options.loss || isLanguageModel || isSummed)
        return {};
    Error error{"network.loss", "this model does not end in a language model's head: it computes its loss its own way",
                "loss", "choose loss=library"};
    error.remedy = Remedy{"loss", "library"};
    return fail(std::move(error));
}

/// Virtual tokens need embeddings or a cache to stand before, and norms that are trained alone need names.
Result<void> checkAdapters(const ModelDescription& model, const BuildOptions& options)
{
    if (!options.adapters || options.adapters->stands())
        return {};
    const AdapterOptions& adapters = *options.adapters;
    const bool isPrefix = adapters.kind == AdapterKind::Prefix;
    if (adapters.kind == AdapterKind::Norms && withNamedAdapters(model, options).adapters->targets.empty())
        return fail("plan.lora", fmt::format("PEFT knows no norms of {} by name", model.name),
                    "name modules in adapter_targets", "adapter_targets");
    if (adapters.kind != AdapterKind::Prompt && !isPrefix)
        return {};
    const bool isLibrarys =
        model.family == Family::Decoder && model.architecture != "from-scratch" && model.vision.layers == 0;
    if (!isLibrarys || (isPrefix && model.latent.keyValueRank > 0) || options.contextParallel > 1)
        return fail("plan.lora",
                    fmt::format("virtual tokens stand before the text of a library's decoder alone, whole on each "
                                "rank: not of {}",
                                model.name),
                    "choose adapter=lora", "adapter");
    return {};
}

/// Ranks that share sequences or experts.
Result<void> checkSharedTokens(const ModelDescription& model, const BuildOptions& options)
{
    if (options.contextParallel > 1) {
        if (model.family != Family::Decoder || model.architecture == "from-scratch")
            return fail("network.parallel",
                        fmt::format("context parallelism divides the sequences of a library's decoder; {} is a {}",
                                    model.name, familyText(model.family)),
                        "choose context_parallel=1", "context_parallel");
        if (options.attention == AttentionKernel::Eager || model.attentionSoftcap > 0)
            return fail("network.parallel", "ranks that pass keys and values on need attention in tiles",
                        "choose attention=flash, or context_parallel=1", "context_parallel");
    }
    if (options.expertParallel == 1)
        return {};
    const std::int64_t count = model.experts.count;
    if (count == 0)
        return fail("network.parallel", fmt::format("{} has no experts that ranks could share", model.name),
                    "choose expert_parallel=1", "expert_parallel");
    if (count % options.expertParallel != 0)
        return fail("network.parallel",
                    fmt::format("{} experts cannot be shared evenly by {} ranks", count, options.expertParallel),
                    fmt::format("choose expert_parallel so that it divides {}", count), "expert_parallel");
    return {};
}

/// Each storage was checked when it was made; a step adds them up, in a graph and its gradients.
Result<void> checkTotal(const Graph& graph)
{
    std::int64_t total = 0;
    for (const Storage& storage : graph.storages) {
        if (__builtin_add_overflow(total, storage.bytes, &total) || total > (std::int64_t(1) << 58))
            return fail("network.size", "the network has more bytes than can be counted",
                        "take a smaller batch, sequence or model");
    }
    return {};
}

} // namespace

bool callsFusedAttention(const ModelDescription& model, Transformers version)
{
    static constexpr std::string_view later[] = {"opt", "phi3", "dinov2", "swin", "gptj"};
    if (version == Transformers::Before445
        && std::find(std::begin(later), std::end(later), model.architecture) != std::end(later))
        return false;
    // Gemma 2's cap has no place there: it was left out where 4.48 to 5.0 chose for all models, and before 4.45.
    const bool leavesOutCap = version == Transformers::Before445
        || (version >= Transformers::Before450 && version <= Transformers::Before524);
    const bool isBiased = model.positions == PositionKind::Alibi || model.positions == PositionKind::RelativeBias;
    return !isBiased && (model.attentionSoftcap == 0 || leavesOutCap) && model.architecture != "gpt_oss"
        && model.architecture != "from-scratch";
}

Result<Graph> buildNetwork(const ModelDescription& model, const BuildOptions& asked)
{
    BuildOptions options = asked;
    const bool isWrittenOut =
        asked.attention == AttentionKernel::Library && !callsFusedAttention(model, asked.transformers);
    if (isWrittenOut)
        options.attention = AttentionKernel::Eager;
    MEMSCAPE_CHECK(checkModel(model));
    MEMSCAPE_CHECK(checkLoss(model, options));
    MEMSCAPE_CHECK(checkSharedTokens(model, options));
    MEMSCAPE_CHECK(checkAdapters(model, options));
    MEMSCAPE_TRY(part, tensorParallelPart(model, options.tensorParallel, options.dividesExperts));
    auto graph = options.adapters ? recorded(part, withNamedAdapters(part, options)) : recorded(part, options);
    if (graph)
        MEMSCAPE_CHECK(checkTotal(*graph));
    if (graph && isWrittenOut)
        graph->attention.text = "written out: the model's code does not call scaled_dot_product_attention";
    if (graph && options.pipeline.ranks > 1)
        return pipelinePart(*graph, options.pipeline);
    if (graph && options.compiled != CompileScope::None) {
        MEMSCAPE_TRY(compiled, compiledGraph(*graph, options.compiled));
        compiled.padsProducts = options.padsProducts;
        compiled.attention = graph->attention;
        return compiled;
    }
    return graph;
}

} // namespace memscape
