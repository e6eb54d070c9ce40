// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_specs.h"

#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/litgpt.h"
#include "core/network/model_names.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

const ChoiceTable<AttentionKernel> attentionKernels{
    {AttentionKernel::Library,
     {"auto", "as the library does",
      "F.scaled_dot_product_attention, which takes FlashAttention in 16 bits on Ampere and later (on Hopper and "
      "Blackwell cuDNN's kernel), else the memory-efficient one, else its math path, operator by operator: the answer "
      "says which, and why. Written out where the model's code never calls it (from-scratch, BLOOM, MPT, GPT-J, "
      "gpt-oss, T5, Gemma 2) and before PyTorch 2"}},
    {AttentionKernel::Eager, {"eager", "eager", "scores and probabilities written out: N × N matrices in memory"}},
    {AttentionKernel::Flash, {"flash", "flash", "tiles on the chip: the N × N matrices are never written"}},
    {AttentionKernel::Efficient,
     {"efficient", "memory-efficient", "the same idea for any GPU and fp32; pads the statistics"}}};

} // namespace

ParameterSpec countSpec(std::string key, std::string label, std::string help, double most, std::string standard,
                        std::string suffix)
{
    return integerSpec(
        std::move(key), std::move(label), std::move(help),
        {.least = 1, .most = most, .standard = std::move(standard), .scale = Scale::Log2, .suffix = std::move(suffix)});
}

ParameterSpec modelSpec()
{
    return textSpec(
        "model", "model",
        "Which network: a name that ships with the program (gpt2, llama-2-7b …), the path of a Hugging Face "
        "config.json, of safetensors or GGUF weights, params:7.5e9 when only a size is known, or "
        "from-scratch:hidden=2560,layers=32,heads=32,ffn=10240,vocab=10000.",
        "llama-2-7b", 1);
}

ParameterSpec batchSpec()
{
    return countSpec("batch", "batch", "Sequences (or pictures) that go through the network at once on one device.",
                     1048576, "8");
}

ParameterSpec attentionSpec()
{
    std::vector<ChoiceValue> kernels = attentionKernels.choices();
    kernels.push_back({"cudnn", "cuDNN",
                       "cuDNN's fused kernel, which keeps what flash keeps and is twice as quick on a Hopper: "
                       "SDPBackend.CUDNN_ATTENTION, Transformer Engine there unless NVTE_FUSED_ATTN=0 (then flash)"});
    return choiceSpec(
        "attention", "attention",
        "How scaled dot-product attention is computed. PyTorch has one fused kernel for processors, which "
        "flash and memory-efficient both mean there; PyTorch 1 has none.",
        std::move(kernels), "auto");
}

ParameterSpec linkBandwidthSpec()
{
    return realSpec("link_bandwidth", "link bandwidth",
                    "Between GPUs, in one direction, by a data sheet: where the device's is not known or is another.",
                    {.most = 1e15,
                     .unit = Unit::BytePerSecond,
                     .scale = Scale::Log2,
                     .words = {{"0", "the device's own", "what the catalogue says of the device's link"}}});
}

std::vector<ParameterSpec> deviceSpecs()
{
    return {integerSpec(
                "device_context", "device context",
                "What the driver's context takes outside of PyTorch's counters. It depends on driver, GPU and loaded "
                "kernels; reports lie between 250 MB and 1 GB. A setting, not a prediction. A processor has none.",
                {.most = 0x1p40, .standard = "500MB", .unit = Unit::Byte, .scale = Scale::Log2}),
            choiceSpec(
                "allocator", "allocator",
                "PYTORCH_CUDA_ALLOC_CONF: how the caching allocator takes memory; a CPU has none.",
                {{"default", "default", "segments of 2 MiB, 20 MiB or the requested size"},
                 {"expandable", "expandable segments", "expandable_segments:True: grows in pages, hardly fragments"}},
                "default")};
}

void appendSpecs(Schema& schema, std::vector<ParameterSpec> more)
{
    for (ParameterSpec& spec : more)
        schema.push_back(std::move(spec));
}

ParameterSpec transformersSpec()
{
    return choiceSpec(
        "transformers", "transformers",
        "Which version; any may be given, and behaves as the last listed before it. Before 5.24 the masked language "
        "model of BERT "
        "computed its loss on its logits as they are. "
        "Before 4.54 attention copied keys and values for the query heads that share them (repeat_kv). "
        "Before 4.50 the loss of a language model took a copy of the logits without the last token's, "
        "as large as they are. Before 4.46 a model returned its logits in fp32. The logits of OPT, BLOOM, GPT-NeoX, "
        "GPT-BigCode, Falcon, MPT and StableLM kept their type until 4.49. Before 4.45 each layer of Qwen 2, Mistral, "
        "Mixtral, Phi, StableLM, StarCoder 2, GPT-NeoX and Falcon had tables of sine and cosine for all positions; "
        "generate() took logits of all tokens of a prompt then (logits=all). Each layer of GPT-NeoX had a mask of all "
        "positions until 4.48. Gemma 2's attention is scaled_dot_product_attention, which leaves out its cap, before "
        "4.45 and from 4.48 to 5.0, and else written out. Experts of GPT-OSS were copied out of one parameter one by "
        "one in 4.55, and are multiplied at once in 5.24.",
        {{"5.24", "5.24 or newer", "BERT's loss is of logits in fp32, too"},
         {"4.54", "4.54 to 5.23", "attention's kernel shares keys and values"},
         {"4.50", "4.50 to 4.53", "labels are shifted, not logits"},
         {"4.48", "4.48 and 4.49", "the loss copies the logits"},
         {"4.46", "4.46 and 4.47", "and Gemma 2's attention is written out"},
         {"4.45", "4.45", "and the model returns its logits in fp32"},
         {"4.38", "4.38 to 4.44", "and tables in each layer"}},
        "5.24");
}

ParameterSpec keepsLogitsSpec()
{
    return choiceSpec(
        "keeps_logits", "logits kept",
        "Whether a variable of the training loop holds what the model returns (logits, loss = model(x), outputs = "
        "model(**batch)): the logits then stay in memory through backward and update.",
        {{"auto", "as usual",
          "kept by a loop of one's own (nanoGPT's) and LitGPT's; freed where the loss alone is returned: transformers' "
          "Trainer and what is built on it, Megatron, Lightning, torchtune (library, loss=chunked)"},
         {"true", "kept", "the variable lives on"},
         {"false", "freed", "the model returns the loss alone, or the loop deletes the logits"}},
        "auto");
}

ParameterSpec pytorchSpec()
{
    return choiceSpec(
        "pytorch", "PyTorch",
        "Which version runs on the GPU; any may be given, and behaves as the last listed before it. Before 2.14 "
        "scaled_dot_product_attention was written out for query heads that "
        "share keys where FlashAttention does not run: in fp32, and on GPUs older than Ampere. Before 2.1 Adam over "
        "all tensors at once (foreach) had a list of denominators beside that of square roots: as much again as the "
        "trained parameters. Before 2.0 torch.optim went one tensor after the other, and zero_grad() kept gradients, "
        "unless told otherwise. Before 1.11 softmax kept its input for backward, beside its result, and a linear "
        "layer's bias was copied by a kernel of its own. A processor has "
        "the version that runs on it.",
        {{"2.14", "2.14 or newer", "as the operators are now, cuDNN's attention first on Hopper and Blackwell"},
         {"2.1", "2.1 to 2.13", "of the kernels of attention only FlashAttention shares keys among query heads"},
         {"2.0", "2.0", "two lists in Adam's update"},
         {"1.13", "1.11 to 1.13", "loops over tensors, gradients that stay"},
         {"1.10", "1.10 or older", "and inputs of softmax"}},
        "2.14");
}

ParameterSpec assumeSpec()
{
    return choiceSpec("assume", "unknown architecture",
                      "What becomes of a config.json whose model_type the program does not know.",
                      {{"none", "is refused", "the message names those that are known"},
                       {"llama", "is like LLaMA", "RMSNorm, rotary positions, gated feed-forward; may be far off"}},
                      "none");
}

Result<ModelDescription> askedModel(const Parameters& parameters, std::string_view name)
{
    return readModel(
        name, parameters.choice("assume") == "llama" ? UnknownArchitecture::LikeLlama : UnknownArchitecture::Refused);
}

bool isLitGptAsked(const Parameters& parameters)
{
    return parameters.has("library") && parameters.choice("library") == "litgpt";
}

Result<ModelDescription> askedModel(const Parameters& parameters)
{
    auto model = askedModel(parameters, parameters.text("model"));
    return model && isLitGptAsked(parameters) ? asLitGpt(std::move(*model)) : std::move(model);
}

ParameterTexts tokensWithinPositions(const Parameters& parameters, std::initializer_list<std::string_view> keys,
                                     ParameterTexts implied)
{
    const auto model = askedModel(parameters); // what is wrong with it, the prediction says
    const std::int64_t limit = model ? model->tokenLimit() : 0;
    for (const std::string_view key : keys) {
        if (limit > 0 && parameters.integer(key) > limit)
            implied.emplace_back(key, std::to_string(limit));
    }
    return implied;
}

Device withLink(Device device, double bandwidth)
{
    if (!(bandwidth > 0))
        return device;
    const Sourced given{bandwidth, Evidence::Specified, "given (link_bandwidth)", {}};
    std::erase_if(device.links, [](const Link& link) { return link.id.starts_with("peer of "); });
    const auto peer =
        std::find_if(device.links.begin(), device.links.end(), [](const Link& link) { return link.id == "peer"; });
    if (peer == device.links.end())
        device.links.push_back({"peer", "link as given", given, {}});
    else
        peer->bandwidth = given;
    return device;
}

Transformers transformersOf(const Parameters& parameters)
{
    const std::string& version = parameters.choice("transformers");
    return version == "4.38" ? Transformers::Before445
        : version == "4.45"  ? Transformers::Before446
        : version == "4.46"  ? Transformers::Before448
        : version == "4.48"  ? Transformers::Before450
        : version == "4.50"  ? Transformers::Before454
        : version == "4.54"  ? Transformers::Before524
                             : Transformers::From524;
}

PyTorch pytorchOf(const Device& device, const Parameters& parameters)
{
    if (!device.isGpu() || !parameters.has("pytorch"))
        return PyTorch::From214;
    const std::string& version = parameters.choice("pytorch");
    return version == "1.10" ? PyTorch::Before111
        : version == "1.13"  ? PyTorch::Before20
        : version == "2.0"   ? PyTorch::Before21
        : version == "2.1"   ? PyTorch::Before214
                             : PyTorch::From214;
}

bool freesGradientsOf(const Device& device, const Parameters& parameters)
{
    const std::string& frees = parameters.choice("zero_grad_frees");
    return frees == "true" || (frees != "false" && pytorchOf(device, parameters) >= PyTorch::Before21);
}

bool keepsLogitsOf(const Parameters& parameters)
{
    const std::string& keeps = parameters.choice("keeps_logits");
    if (keeps != "auto" || isLitGptAsked(parameters))
        return keeps != "false";
    const bool isFreed = parameters.has("library") && freesLogits(parameters.choice("library"));
    return !isFreed && !parameters.choice("loss").starts_with("chunked");
}

bool repeatsHeadsOf(const Parameters& parameters)
{
    const std::string& repeats = parameters.choice("repeats_heads");
    if (repeats != "auto" || isLitGptAsked(parameters))
        return repeats == "true";
    return attentionOf(parameters) == AttentionKernel::Library && transformersOf(parameters) <= Transformers::Before454;
}

AttentionKernel attentionOf(const Parameters& parameters)
{
    return isCudnnAsked(parameters) ? AttentionKernel::Flash : attentionKernels.of(parameters.choice("attention"));
}

bool isCudnnAsked(const Parameters& parameters)
{
    return parameters.choice("attention") == "cudnn";
}

} // namespace memscape
