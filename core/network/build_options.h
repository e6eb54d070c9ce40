// SPDX-License-Identifier: Apache-2.0
// What is decided before a network is recorded: the batch, the precisions, which kernels exist, and
// where one PyTorch differs from another.
#pragma once

#include "core/network/dtype.h"
#include "core/network/quantized.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class AttentionKernel : std::uint8_t {
    /// As the model's library has it (callsFusedAttention()): F.scaled_dot_product_attention (attention_path.h).
    Library,
    Eager,
    Flash,
    Efficient
};

/// How a language model gets from its last hidden states to its loss (core/network/operators_loss.cpp).
enum class LossForm : std::uint8_t {
    Library, ///< the whole logits, and cross_entropy of them
    Chunked, ///< logits and loss in pieces along the sequence: torchtune, LitGPT
    Liger,   ///< fused_linear_cross_entropy of Liger Kernel: gradients are made with the loss, some rows at a time
    Cut,     ///< cut cross-entropy (Wijmans et al. 2024): logits stay on the chip
    InPlace, ///< the whole logits, over which backward writes their gradient: Unsloth, Megatron
    Sum,     ///< the sum of the logits, by which scripts that measure a step save themselves a loss
};

/// Where transformers differs between versions (core/network/families/language_head.h, decoder.cpp).
enum class Transformers : std::uint8_t {
    Before445, ///< tables of rotary positions in each layer
    Before446, ///< a model returns its logits in float
    Before448, ///< models choose their attention themselves: Gemma 2 the written-out one
    Before450, ///< the loss takes a copy of the logits without the last token's
    Before454, ///< attention copies keys and values for the query heads that share them
    Before524, ///< its kernel shares them (enable_gqa)
    From524    ///< BERT's loss takes a copy of the logits in float, too
};

/// Where PyTorch on a GPU differs between versions.
enum class PyTorch : std::uint8_t {
    Before111, ///< softmax keeps its input for backward, too
    Before20,  ///< torch.optim goes one tensor after the other, zero_grad() keeps gradients
    Before21,  ///< all tensors at once; Adam's denominators are a list beside the roots
    Before214, ///< in place of the roots
    From214    ///< the memory-efficient kernel shares keys and values among query heads, too
};

/// Which parts of a hand-made decoder are written out operator by operator.
struct WrittenOut
{
    bool norm = false;
    bool softmax = false;
    bool activation = false;
    bool loss = false;
    static constexpr WrittenOut all() { return {true, true, true, true}; }
    bool operator==(const WrittenOut&) const = default;
};

/// Where PyTorch differs between versions and devices. The default is CUDA, PyTorch 2.
struct EagerRules
{
    /// A CPU's kernels and its autocast: numbers are tensors, kernels take blocks of their own
    /// (core/training/cpu_kernels.h).
    bool isOnCpu = false;
    bool isBefore2 = false;             ///< PyTorch 1, as far as the other rules do not say what differs
    std::int64_t threads = 1;           ///< torch.get_num_threads(): some kernels take a block for each
    bool meanSavesInput = false;        ///< before 2.0, for its number of elements
    bool softmaxSavesInput = false;     ///< before 1.11
    bool copiesBias = false;            ///< into a linear layer's result, by a kernel of its own: before 1.11
    bool softmaxHasProduct = true;      ///< of gradient and result in backward: CUDA's kernel (cuda/SoftMax.cu)
    bool hasFlash = true;               ///< FlashAttention's kernels: on Ampere and later
    bool prefersCudnn = false;          ///< cuDNN's kernel of attention before it: on Hopper and Blackwell
    bool efficientSharesHeads = true;   ///< PyTorch 2.14 (pull request 191085)
    bool meanIsSumAndQuotient = false;  ///< a model that writes x.sum(-1) / n itself
    bool normStatisticsInFloat = true;  ///< the CPU keeps mean and deviation in the input's dtype
    bool dropoutSavesNoise = false;     ///< F.dropout on a CPU: a factor per element, not a Bool
    bool accumulatesInPlace = true;     ///< since 2.0 a second gradient is added into the first
    bool slicesWholeDimensions = false; ///< before 2.0 x[:, :, None] made a node of each colon
    /// Autocast written out in Python after its documentation, not CUDA's: operands are cast in
    /// their order, and all of cross_entropy runs in float.
    bool emulatedAutocast = false;
    /// Saved tensors and networks as tests/data/pytorch/saved_bytes.json has them.
    static constexpr EagerRules torch113OnCpu()
    {
        EagerRules rules;
        rules.meanSavesInput = rules.dropoutSavesNoise = rules.slicesWholeDimensions = rules.emulatedAutocast = true;
        rules.normStatisticsInFloat = rules.accumulatesInPlace = rules.softmaxHasProduct = false;
        return rules;
    }
    static constexpr EagerRules onGpu(PyTorch version)
    {
        EagerRules rules;
        rules.softmaxSavesInput = rules.copiesBias = version == PyTorch::Before111;
        rules.isBefore2 = rules.meanSavesInput = rules.slicesWholeDimensions = version <= PyTorch::Before20;
        rules.accumulatesInPlace = !rules.isBefore2;
        rules.efficientSharesHeads = version == PyTorch::From214;
        return rules;
    }
    /// A step on a CPU, to the byte (tests/data/pytorch/cpu_steps.py).
    static constexpr EagerRules onCpu(bool isBefore2, std::int64_t threads)
    {
        EagerRules rules;
        rules.isOnCpu = rules.dropoutSavesNoise = true;
        rules.threads = threads;
        rules.isBefore2 = rules.meanSavesInput = rules.slicesWholeDimensions = isBefore2;
        rules.normStatisticsInFloat = rules.softmaxHasProduct = false;
        rules.accumulatesInPlace = !isBefore2;
        return rules;
    }
    bool operator==(const EagerRules&) const = default;
};

/// What torch.compile compiles together: core/network/compile.
enum class CompileScope : std::uint8_t {
    None,
    Network,
    Logits, ///< the network without its loss
    Layers
};

/// What is trained beside frozen weights, as PEFT has it.
enum class AdapterKind : std::uint8_t {
    LowRank, ///< LoRA and its variants (Hu et al. 2021)
    Ia3,     ///< a factor for each output of a layer, or input of a feed-forward one (Liu et al. 2022)
    Vera,    ///< factors between two frozen matrices that all layers share (Kopiczko et al. 2023)
    Norms,   ///< copies of norms (Zhao et al. 2023)
    Prompt,  ///< embeddings of tokens before the text (Lester et al. 2021)
    Prefix   ///< keys and values before those of the text (Li & Liang 2021)
};

/// Whether a kind stands beside single linear layers.
constexpr bool isBesideLayers(AdapterKind kind)
{
    return kind <= AdapterKind::Vera;
}

/// What is trained beside frozen weights, and how these are kept.
struct AdapterOptions
{
    std::int64_t rank = 16; ///< of LoRA and VeRA; 0: no adapter, only a base in fewer bits
    /// Module names by their last components ("q_proj"), or a word: "default", what peft takes for the architecture;
    /// "attention", the linear layers of attention; "all-linear" or none: every linear layer within a Layer block.
    /// Of Norms: the modules that are trained.
    std::vector<std::string> targets = {};
    BaseForm base = BaseForm::AsWeights; ///< of layers' frozen matrices
    std::optional<DType> compute = {};   ///< bnb_4bit_compute_dtype; nothing: that of the input, or autocast's
    std::optional<DType> weights = {};   ///< of the adapters; nothing: that of the network
    double dropout = 0;                  ///< in front of A
    bool isDecomposed = false;           ///< DoRA (Liu et al. 2024): a trained magnitude of each output
    bool isDownFrozen = false;           ///< LoRA-FA (Zhang et al. 2023): B alone is trained, A is not
    std::vector<std::string> saved = {}; ///< modules_to_save: trained whole, beside the frozen original
    bool quantizesHead = false;          ///< linear layers outside of Layer blocks are in the base's form, too
    bool keepsInputs = false;            ///< MatMul4Bit's node has x as an attribute (bitsandbytes before 0.44)
    bool dequantizesInHalf = false;      ///< weights were quantized from fp16 (bitsandbytes before 0.43)
    AdapterKind kind = AdapterKind::LowRank;
    std::int64_t virtualTokens = 20;           ///< of prompts and prefixes
    std::vector<std::string> feedForward = {}; ///< IA3: targets whose input is scaled, resolved with `targets`
    bool isQuantized() const { return isQuantizedForm(base); }
    bool stands() const { return rank > 0 && isBesideLayers(kind); } ///< beside linear layers
    bool operator==(const AdapterOptions&) const = default;
};

/// Chunks of layers of one rank of a pipeline (pipeline_part.h).
struct PipelinePart
{
    int ranks = 1, chunks = 1, rank = 0;
    bool operator==(const PipelinePart&) const = default;
};

struct BuildOptions
{
    std::int64_t batch = 1;
    std::int64_t sequence = 1;
    DType weights = DType::Float32;
    std::optional<DType> autocast = {}; ///< torch.autocast("cuda", dtype)
    AttentionKernel attention = AttentionKernel::Eager;
    /// Keys and values that query heads share are copied for each of them before a kernel of attention (repeat_kv), as
    /// for those kernels that cannot share them.
    bool repeatsHeads = false;
    WrittenOut writtenOut = {};
    /// Norms, activations and gates of a library's model are one kernel each, which keeps what it is given: as Liger
    /// Kernel, Apex and Megatron run them. Not on a CPU.
    bool isAllFused = false;
    bool isTransformers = false; ///< GPT-2 as transformers writes it, not as nanoGPT
    /// Some sequence of the batch is shorter than the others: transformers makes a mask (B, 1, S, S) of Bool.
    bool hasPadding = false;
    double dropout = 0;
    /// Dropout behind attention and feed-forward of every decoder, and in front of its layers: Megatron's
    /// hidden_dropout (core/transformer/transformer_layer.py, fused_bias_dropout.py; core/models/common/embeddings).
    bool dropsBranches = false;
    bool gradient = true;       ///< false: torch.no_grad, nothing is saved
    bool loss = true;           ///< ends in the training loss; false: in the logits
    bool lastLogits = false;    ///< without a loss: those of the last token alone, as generate() asks for them
    bool logitsInFloat = false; ///< `logits.float()` before the loss
    double maskedShare = 0;     ///< of all tokens, those that the head of a masked language model sees; 0: all
    Transformers transformers = Transformers::From524;
    /// The training loop names what the model returned until the next step: `logits, loss = model(x)`
    /// (nanoGPT), `outputs = model(**batch)`. Not so in transformers' Trainer, whose compute_loss()
    /// returns the loss alone.
    bool keepsLogits = false;
    LossForm lossForm = LossForm::Library;
    std::int64_t lossChunks = 8; ///< pieces of a chunked one
    int tensorParallel = 1;      ///< this is one of so many devices (tensor_parallel.h)
    bool sequenceParallel = false;
    int contextParallel = 1;    ///< `sequence` is one rank's part of so many
    int expertParallel = 1;     ///< this is one of so many that share the experts
    bool dividesExperts = true; ///< tensor parallelism divides each of them, too; else each device sends its own tokens
    PipelinePart pipeline = {};
    bool isProductInFp8 = false; ///< layers' linear operators cast their inputs to FP8
    bool keepsFp8 = true;        ///< and keep the casts for backward instead of the inputs
    std::optional<AdapterOptions> adapters = {};
    /// Virtual tokens of a kind; a prompt's are among `sequence`.
    std::int64_t virtualTokens(AdapterKind kind) const
    {
        return adapters && adapters->kind == kind ? adapters->virtualTokens : 0;
    }
    CompileScope compiled = CompileScope::None;
    bool padsProducts = true; ///< where it is compiled, as Inductor does since PyTorch 2.1
    EagerRules rules = {};
    bool recordsEveryIteration = false; ///< the long way: copies nothing of loops over layers and experts
    bool operator==(const BuildOptions&) const = default;
};

} // namespace memscape
