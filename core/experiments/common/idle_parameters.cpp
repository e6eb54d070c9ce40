// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/common/idle_parameters.h"

#include "core/checkpoint/mlp_chain.h"
#include "core/experiments/checkpoint/checkpoint_chain.h"
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/cnn.h"
#include "core/network/families/decoder.h"
#include "core/network/gguf_mixture.h"
#include "core/network/litgpt.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/network/network_file.h"

#include <algorithm>

namespace memscape {

namespace {

/// What of a network a parameter may act on; all of it while the model cannot be read.
struct ModelTraits
{
    bool hasTokens = true; ///< sequences of them, not pictures or rows
    bool hasAttention = true;
    bool callsFused = true; ///< kernels of attention, where its library is new enough
    bool sharesKeys = true; ///< heads of queries share those of keys
    bool hasCache = true;   ///< of keys and values
    bool hasDropout = true;
    bool hasLanguageHead = true; ///< of a library's model, whose loss can be computed in other ways
    bool hasVersions = true;     ///< a decoder of transformers, which older versions ran otherwise
    bool hadTables = true;       ///< of positions, in each layer
    bool hasOwnVersions = true;  ///< its attention or experts ran otherwise, whatever its loss
    bool castsLogits = true;     ///< before its loss, in some version
    bool castsLate = false;      ///< from transformers 4.49 on alone
    bool hasMaskedHead = false;  ///< BERT's, whose loss casts its logits from transformers 5.24 on
    bool takesAdapters = true;
    bool hasConvolutions = false; ///< of many channels
    bool writesOut = true;        ///< some of its operators have a written-out form
    bool sharesSequences = true, hasExperts = true;
    bool isUnknown = false; ///< its architecture
    bool hasLitGpts = true; ///< LitGPT has a network for it
    bool isGpt2 = true;     ///< of which nanoGPT has one, too
    bool isEncoder = false; ///< of text
    bool isTied = true;     ///< its head is the embedding
};

bool cnnHasDropout(const ModelDescription& model)
{
    const auto layers = cnnLayers(model);
    return !layers || std::any_of(layers->begin(), layers->end(), [](const CnnLayer& layer) {
        return layer.kind == CnnLayerKind::Dropout;
    });
}

bool isAttention(const FileStep& step)
{
    return step.kind == FileStep::Kind::Operator && networkFileOperators()[step.op] == "attention";
}

ModelTraits traitsOf(const std::string& text)
{
    const auto model = readModel(text, UnknownArchitecture::LikeLlama);
    if (!model)
        return {};
    const Family family = model->family;
    ModelTraits traits;
    traits.isUnknown = !model->caution.empty();
    traits.isEncoder = family == Family::Encoder;
    traits.isTied = model->tied;
    const bool isByHand = model->architecture == "from-scratch";
    const bool isStateSpace = family == Family::StateSpace;
    const bool isDecoder = family == Family::Decoder || family == Family::EncoderDecoder;
    traits.hasTokens = isDecoder || isStateSpace || family == Family::Encoder;
    traits.hasAttention =
        (traits.hasTokens && !isStateSpace) || family == Family::VisionTransformer || family == Family::Diffusion;
    traits.callsFused = callsFusedAttention(*model, Transformers::From524);
    traits.sharesKeys = family == Family::Decoder && model->kvHeads < model->heads;
    traits.hasCache = isDecoder || isStateSpace;
    traits.hasLanguageHead = traits.hasCache && !isByHand && model->head == HeadKind::LanguageModel;
    traits.hasVersions = family == Family::Decoder && traits.hasLanguageHead && model->architecture != "gpt2";
    traits.hadTables = traits.hasVersions && hadTablesInLayers(*model);
    traits.hasOwnVersions = model->attentionSoftcap > 0 || model->architecture == "gpt_oss";
    traits.castsLogits = family == Family::Decoder || isStateSpace;
    traits.castsLate = traits.hasVersions && isOlderThanLlama(*model);
    traits.hasMaskedHead = model->head == HeadKind::MaskedLanguageModel;
    traits.writesOut = traits.hasAttention || isStateSpace;
    traits.sharesSequences = family == Family::Decoder && !isByHand;
    traits.hasExperts = model->experts.count > 0;
    traits.takesAdapters = family != Family::Cnn;
    traits.hasDropout = traits.hasAttention && !isByHand;
    traits.hasConvolutions = family == Family::Cnn || family == Family::Diffusion || family == Family::Traced;
    if (family == Family::Traced) {
        const auto& program = *model->program;
        traits.hasTokens = program.sequence > 0 && program.scalesSequence;
        traits.hasAttention = std::ranges::any_of(program.program, isAttention);
        traits.hasDropout = traits.writesOut = traits.hasLanguageHead = traits.hasVersions = false;
    }
    if (family == Family::Cnn)
        traits.hasDropout = cnnHasDropout(*model);
    traits.hasLitGpts = bool(asLitGpt(*model));
    traits.isGpt2 = model->architecture == "gpt2" && model->activation == ActivationKind::GeluNew;
    return traits;
}

class Idle
{
public:
    explicit Idle(const Parameters& parameters)
        : m_parameters(parameters)
    { }

    /// It means nothing when `what` holds.
    void add(std::string_view key, bool what)
    {
        if (what && m_parameters.has(key) && !contains(key))
            m_keys.emplace_back(key);
    }
    bool contains(std::string_view key) const { return std::ranges::find(m_keys, key) != m_keys.end(); }
    bool is(std::string_view key, std::string_view value) const
    {
        return m_parameters.has(key) && m_parameters.choice(key) == value;
    }
    bool isOne(std::string_view key) const { return m_parameters.integer(key) == 1; }
    std::vector<std::string> keys() { return std::move(m_keys); }

private:
    const Parameters& m_parameters;
    std::vector<std::string> m_keys;
};

void addSharding(Idle& idle, const Parameters& parameters)
{
    const std::int64_t stage = parameters.integer("zero");
    const bool isAlone =
        idle.isOne("data_parallel") && (!parameters.has("context_parallel") || idle.isOne("context_parallel"));
    const bool isOneGroup = !parameters.has("data_parallel_replicate") || idle.isOne("data_parallel_replicate");
    const bool isFsdp = !isAlone
        && (idle.is("sharding_implementation", "fsdp2") || idle.is("sharding_implementation", "fsdp1")
            || (idle.is("sharding_implementation", "auto") && stage == 3));
    const bool isDeepSpeed = stage > 0
        && (idle.is("sharding_implementation", "deepspeed") || idle.is("sharding_implementation", "deepspeed-late")
            || (idle.is("sharding_implementation", "auto") && !isFsdp && !(isAlone && idle.is("offload", "none"))));
    idle.add("sharding_implementation", stage == 0);
    idle.add("deepspeed_sizes", !isDeepSpeed);
    idle.add("fsdp_wrap", !isFsdp || stage < 2);
    idle.add("fsdp_min_params", !isFsdp || stage < 2 || !idle.is("fsdp_wrap", "size"));
    idle.add("data_parallel_replicate", (isAlone || stage == 0) && isOneGroup);
    const bool isTraining = !idle.is("phase", "forward") && !idle.is("phase", "inference");
    idle.add("gradient_as_bucket_view", isAlone || stage > 0 || !isTraining);
    const bool growsBatch = parameters.has("target_loss"); // then it is summed of micro-batches
    const bool sumsNone = !parameters.has("accumulation") || (idle.isOne("accumulation") && !growsBatch);
    idle.add("no_sync", !isFsdp || !isTraining || sumsNone);
    idle.add("reductions", (isAlone && !isDeepSpeed) || !isTraining);
    const bool isFloat =
        idle.is("precision", "fp32") || idle.is("precision", "bf16-autocast") || idle.is("precision", "fp16-autocast");
    const bool isPure = idle.is("precision", "bf16") || idle.is("precision", "fp16")
        || idle.is("precision", "bf16-under-autocast") || idle.is("precision", "fp16-under-autocast");
    idle.add("fp32_gradients", !isTraining || isFloat || (isPure && !isFsdp && !isDeepSpeed));
}

/// Of ranks that share sequences, experts or layers.
void addRanks(Idle& idle, const ModelTraits& traits)
{
    const bool isTraining = !idle.is("phase", "forward") && !idle.is("phase", "inference");
    idle.add("context_parallel", idle.isOne("context_parallel") && !traits.sharesSequences);
    idle.add("expert_parallel", idle.isOne("expert_parallel") && !traits.hasExperts);
    idle.add("whole_experts", idle.isOne("tensor_parallel") || (idle.isOne("expert_parallel") && !traits.hasExperts));
    idle.add("pipeline_parallel", idle.isOne("pipeline_parallel") && !isTraining);
    const bool isInterleaved = !idle.isOne("pipeline_parallel") && idle.is("pipeline_schedule", "interleaved");
    idle.add("pipeline_schedule", idle.isOne("pipeline_parallel"));
    idle.add("virtual_stages", idle.isOne("virtual_stages") && !isInterleaved);
}

/// What would be refused there stays in sight while it is set: it has to be taken back.
void addParallelism(Idle& idle, const ModelTraits& traits, const Parameters& parameters)
{
    const bool isWhole = idle.isOne("tensor_parallel");
    idle.add("tensor_parallel", isWhole && !traits.hasAttention);
    std::int64_t ranks = parameters.integer("tensor_parallel");
    if (parameters.has("data_parallel"))
        ranks *= parameters.integer("data_parallel");
    if (parameters.has("pipeline_parallel")) {
        addRanks(idle, traits);
        ranks *= parameters.integer("context_parallel") * parameters.integer("pipeline_parallel");
    }
    if (parameters.has("machine_gpus")) {
        const bool isOneMachine = ranks <= parameters.integer("machine_gpus");
        idle.add("network_bandwidth", isOneMachine && parameters.number("network_bandwidth") == 0);
        idle.add("machine_gpus", parameters.number("network_bandwidth") == 0);
    }
    idle.add("link_bandwidth", ranks == 1 && parameters.number("link_bandwidth") == 0);
    if (parameters.has("zero"))
        addSharding(idle, parameters);
    if (parameters.has("sequence_parallel"))
        idle.add("sequence_parallel", isWhole && !parameters.flag("sequence_parallel"));
    if (parameters.has("async_tensor_parallel")) {
        idle.add("async_tensor_parallel", isWhole);
        idle.add("fp8_scaling",
                 !idle.is("precision", "fp8") || idle.is("phase", "forward") || idle.is("phase", "inference"));
    }
}

/// What acts through the update and the loss.
void addUpdate(Idle& idle, const ModelTraits& traits, const Parameters& parameters)
{
    const bool isTraining = !idle.is("phase", "forward") && !idle.is("phase", "inference");
    const bool updatesHere = isTraining && !idle.is("optimizer", "none") && idle.is("offload", "none");
    idle.add("optimizer", !isTraining);
    idle.add("nvme_bandwidth", !isTraining || idle.is("optimizer", "none") || idle.is("offload", "none"));
    const bool isProjected =
        idle.is("optimizer", "galore") || idle.is("optimizer", "galore-8bit") || idle.is("optimizer", "apollo");
    const bool isLomo = idle.is("optimizer", "lomo") || idle.is("optimizer", "adalomo");
    idle.add("optimizer_implementation", !updatesHere || isProjected || isLomo);
    idle.add("optimizer_rank", !isTraining || !isProjected);
    idle.add("accumulation", !isTraining);
    idle.add("clipping", !isTraining);
    const bool isEarly = parameters.has("optimizer_in_backward") && parameters.flag("optimizer_in_backward");
    idle.add("optimizer_in_backward", (!updatesHere && !isEarly) || isLomo); // whose update is there
    idle.add("zero_grad_frees", !isTraining || isEarly || isLomo);
    idle.add("masked_share", !isTraining || !traits.hasMaskedHead);
    idle.add("loss", !isTraining || (!traits.hasLanguageHead && idle.is("loss", "library")));
    const bool hasNoLogits = idle.is("loss", "liger") || idle.is("loss", "cut");
    idle.add("keeps_logits", !isTraining || hasNoLogits);
    const bool hasOneLoss = isTraining && !idle.is("loss", "library");
    const bool isMasked = traits.hasMaskedHead && isTraining && !hasOneLoss;
    idle.add("transformers",
             !isMasked && (!traits.hasVersions || (hasOneLoss && !traits.hadTables && !traits.hasOwnVersions)));
    const bool isBefore450 = idle.is("transformers", "4.48") || idle.is("transformers", "4.46")
        || idle.is("transformers", "4.45") || idle.is("transformers", "4.38");
    const bool keepsType =
        isMasked ? !idle.is("transformers", "5.24") : !traits.castsLogits || (traits.castsLate && isBefore450);
    const bool hasLogits = isTraining && (traits.hasLanguageHead || isMasked) && !hasNoLogits;
    idle.add("logits_fp32", !hasLogits || keepsType || idle.is("precision", "fp32"));
    // Elsewhere the choice reaches the update alone, which is written out for Adam only.
    const bool isAdam = idle.is("optimizer", "adam") || idle.is("optimizer", "adamw");
    const bool reachesUpdate =
        updatesHere && idle.is("optimizer_implementation", "auto") && (isAdam || idle.is("operators", "written-out"));
    idle.add("operators", !traits.writesOut && !reachesUpdate);
}

/// Whose loop it is says whether the logits stay, see keepsLogitsOf().
bool loopMatters(const Idle& idle, const Parameters& parameters)
{
    return idle.is("keeps_logits", "auto") && !idle.contains("keeps_logits")
        && !parameters.choice("loss").starts_with("chunked");
}

void addAdapters(Idle& idle, const Parameters& parameters)
{
    if (!parameters.has("adapter"))
        return;
    const BaseForm base = baseFormOf(parameters);
    for (const std::string& key : adapterKeys())
        idle.add(key, key != "adapter" && key != "bitsandbytes" && idle.is("adapter", "none"));
    idle.add("bitsandbytes", !isNormalFloat(base) && !parameters.choice("optimizer").ends_with("-8bit"));
    if (idle.is("adapter", "none"))
        return;
    const AdapterKind kind = adapterKindOf(parameters);
    const bool isVirtual = kind == AdapterKind::Prompt || kind == AdapterKind::Prefix;
    const bool isLowRank = kind == AdapterKind::LowRank;
    idle.add("virtual_tokens", !isVirtual);
    for (const char* key : {"adapter_rank", "adapter_dropout"})
        idle.add(key, !isLowRank && kind != AdapterKind::Vera);
    idle.add("adapter_variant", !isLowRank);
    for (const char* key : {"adapter_targets", "modules_to_save"})
        idle.add(key, isVirtual);
    idle.add("adapter_precision", kind == AdapterKind::Norms);
    idle.add("compute_precision", !isNormalFloat(base));
    idle.add("kbit_preparation", !isQuantizedForm(base) || base == BaseForm::Gptq);
    idle.add("quantized_head", !isQuantizedForm(base));
}

/// transformers makes a mask for fused kernels; its decoders' eager attention has one in any case.
void addPadding(Idle& idle, const ModelTraits& traits, const Parameters& parameters)
{
    const bool isTransformers =
        !traits.isGpt2 || (parameters.has("library") && runsTransformers(parameters.choice("library")));
    const bool isDecoder = (traits.hasVersions || traits.isGpt2) && isTransformers && traits.callsFused;
    const bool isEager = idle.is("attention", "eager");
    idle.add("padding",
             idle.is("attention", "flash") || isLitGptAsked(parameters)
                 || !(traits.isEncoder || (isDecoder && !isEager)));
}

Idle idleOfStep(const Device& device, const Parameters& parameters)
{
    const ModelTraits traits = traitsOf(parameters.text("model"));
    Idle idle(parameters);
    idle.add("sequence", !traits.hasTokens);
    idle.add("attention", !traits.hasAttention);
    const bool isPadded = parameters.has("padding") && parameters.flag("padding") && !idle.is("attention", "flash");
    const bool areShared = !idle.is("attention", "efficient") || idle.is("pytorch", "2.14");
    idle.add("repeats_heads", !traits.sharesKeys || idle.is("attention", "eager") || !areShared || isPadded);
    addPadding(idle, traits, parameters);
    if (parameters.has("shortest_sequence"))
        idle.add("shortest_sequence", !traits.hasTokens || !device.isGpu() || !idle.is("phase", "training"));
    addParallelism(idle, traits, parameters);
    addUpdate(idle, traits, parameters);
    idle.add("adapter", !traits.takesAdapters && idle.is("adapter", "none"));
    addAdapters(idle, parameters);
    idle.add("dropout", !traits.hasDropout);
    if (parameters.has("activation_offload")) { // where it would be refused it stays in sight while it is set
        const bool isOneMemory = !device.isGpu() || device.sharesHostMemory;
        idle.add("activation_offload",
                 idle.is("phase", "inference") || (isOneMemory && !parameters.flag("activation_offload")));
    }
    idle.add("tf32", !idle.is("precision", "fp32") || device.flopRate("tf32") <= 0);
    idle.add("channels_last", !traits.hasConvolutions || !device.isGpu());
    idle.add("compile", !device.isGpu() && idle.is("compile", "none")); // it would be refused
    idle.add("device_context", !device.isGpu());
    idle.add("pytorch", !device.isGpu());   // a processor has a version of its own
    idle.add("allocator", !device.isGpu()); // nothing is cached there
    idle.add("assume", !traits.isUnknown);
    idle.add("library",
             !traits.hasLitGpts && !traits.isGpt2 && !isLitGptAsked(parameters) && !loopMatters(idle, parameters));
    if (isLitGptAsked(parameters)) {
        for (const char* key : {"operators", "logits_fp32", "transformers", "repeats_heads", "adapter_precision",
                                "kbit_preparation", "quantized_head"})
            idle.add(key, true);
        idle.add("loss", idle.is("loss", "library"));
    }
    return idle;
}

} // namespace

std::vector<std::string> idleTrainingParameters(const Device& device, const Parameters& parameters)
{
    return idleOfStep(device, parameters).keys();
}

std::vector<std::string> idleBatchParameters(const Device& device, const Parameters& parameters)
{
    Idle idle = idleOfStep(device, parameters);
    idle.add("schedule_growth", !idle.is("schedule", "linear"));
    idle.add("schedule_smoothing", !idle.is("schedule", "adaptive"));
    idle.add("batch_limit", idle.is("schedule", "constant"));
    idle.add("fewest_steps", parameters.number("noise_scale") == 0); // then a law or closed form says both
    return idle.keys();
}

std::vector<std::string> idleInferenceParameters(const Device& device, const Parameters& parameters)
{
    const ModelTraits traits = traitsOf(parameters.text("model"));
    Idle idle(parameters);
    for (const char* key : {"kv_precision", "cache_growth", "cache_page", "memory_share", "draft_model"})
        idle.add(key, !traits.hasCache);
    for (const char* key : {"draft_tokens", "draft_acceptance"})
        idle.add(key, !traits.hasCache || parameters.text("draft_model") == "none");
    idle.add("shared_prefix", !traits.hasCache || idle.isOne("batch"));
    idle.add("logits", !traits.hasLanguageHead);
    idle.add("sequence", !traits.hasTokens);
    idle.add("context", !traits.hasTokens);
    idle.add("attention", !traits.hasAttention);
    addParallelism(idle, traits, parameters);
    const std::string& form = parameters.choice("weight_precision");
    // TensorRT joins pictures' kernels, too; vLLM and llama.cpp imply others of what has a cache or a head.
    idle.add("library", !device.isGpu() && !traits.hasCache && !traits.hasLanguageHead);
    const bool isNormalFloat = form.starts_with("nf4");
    const bool hasGroups = form == "int4" || form.starts_with("gptq") || form == "awq";
    const bool isQuantized = isNormalFloat || hasGroups || form == "int8";
    idle.add("group_size", !hasGroups);
    idle.add("quantized_head", !isQuantized || !traits.hasLanguageHead);
    const bool isMadeWhole = isNormalFloat && idle.isOne("tensor_parallel");
    idle.add("compute_precision", !isMadeWhole);
    idle.add("bitsandbytes", !isMadeWhole && form != "int8");
    idle.add("output_head", !traits.isTied || !traits.hasLanguageHead);
    const bool isCalibrated = form.starts_with("gptq") || form == "awq";
    const bool isGguf = bool(ggufMixtureFromText(form));
    idle.add("loading", isGguf);
    const bool isStateDict = idle.is("loading", "state-dict") || idle.is("loading", "on-device");
    const bool isThroughHost = idle.is("loading", "host") || (!device.isGpu() && !isStateDict);
    const bool isMadeAsLoaded = (isQuantized && !isCalibrated) || form == "fp8";
    idle.add("transformers", !traits.hasVersions && (isGguf || !(isThroughHost || isMadeAsLoaded)));
    idle.add("file_precision", isGguf || isCalibrated);
    idle.add("device_context", !device.isGpu());
    idle.add("allocator", true); // nothing is reserved here beyond what is allocated
    idle.add("assume", !traits.isUnknown);
    return idle.keys();
}

std::vector<std::string> idleCheckpointParameters(const Parameters& parameters)
{
    const std::string& chain = parameters.text("chain");
    const std::string& strategy = parameters.choice("strategy");
    const auto model = modelOfChain(chain);
    const bool isMlp = isMlpText(chain), isModel = model.has_value();
    const ModelTraits traits = isModel ? traitsOf(*model) : ModelTraits{};
    Idle idle(parameters);
    idle.add("last_segment", !strategy.starts_with("every"));
    idle.add("batch", !isMlp && !isModel);
    idle.add("sequence", !isModel || !traits.hasTokens);
    idle.add("precision", !isModel);
    idle.add("attention", !isModel || !traits.hasAttention);
    const bool isWrittenOut = idle.is("attention", "eager") || (idle.is("attention", "auto") && !traits.callsFused);
    idle.add("layer_options", !isModel || !traits.hasAttention || !isWrittenOut);
    idle.add("assume", !traits.isUnknown);
    return idle.keys();
}

std::vector<std::string> idleAssumption(const std::string& model)
{
    return traitsOf(model).isUnknown ? std::vector<std::string>() : std::vector<std::string>{"assume"};
}

std::vector<std::string> idlePrecisionParameters(const Parameters& parameters)
{
    Idle idle(parameters);
    const bool trains = idle.is("operation", "train");
    idle.add("gradient_spread", idle.is("distribution", "normal")); // the loss scale moves the drawn gradients
    idle.add("steps", !trains);
    idle.add("growth_interval", !trains);
    return idle.keys();
}

} // namespace memscape
