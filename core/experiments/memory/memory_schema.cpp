// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

ParameterSpec count(std::string key, std::string label, std::string help, double most, std::string standard,
                    std::string suffix = {})
{
    return integerSpec(
        std::move(key), std::move(label), std::move(help),
        {.least = 1, .most = most, .standard = std::move(standard), .scale = Scale::Log2, .suffix = std::move(suffix)});
}

const ChoiceTable<AttentionKernel> attentionKernels{
    {AttentionKernel::Eager, {"eager", "eager", "scores and probabilities written out: N × N matrices in memory"}},
    {AttentionKernel::Flash, {"flash", "flash", "tiles on the chip: the N × N matrices are never written"}},
    {AttentionKernel::Efficient,
     {"efficient", "memory-efficient", "the same idea for any GPU and fp32; pads the statistics"}}};

const ChoiceTable<Offload> offloads{
    {Offload::None, {"none", "none", "everything on the device"}},
    {Offload::Optimizer,
     {"optimizer", "optimizer",
      "master copy and optimizer state on the host, which updates them; gradients stay on the device until then"}},
    {Offload::Gradients,
     {"gradients", "optimizer, gradients",
      "ZeRO-Offload (Ren et al. 2021): backward also sends each layer's gradients to the host"}},
    {Offload::Parameters,
     {"parameters", "optimizer, gradients, weights",
      "ZeRO-Infinity: the weights too; each layer is fetched before it runs"}}};

const ChoiceTable<StepPhase> phases{
    {StepPhase::Training, {"training", "training step", "forward, backward, update"}},
    {StepPhase::Forward, {"forward", "forward, graph kept", "what backward would need is still alive at the end"}},
    {StepPhase::Inference, {"inference", "inference", "forward under no_grad: nothing is saved"}}};

/// What a forward pass alone computes in.
const ChoiceTable<DType> computedIn{{DType::BFloat16, {"bf16", "bf16", "2 bytes"}},
                                    {DType::Float16, {"fp16", "fp16", "2 bytes"}},
                                    {DType::Float32, {"fp32", "fp32", "4 bytes"}}};

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
    return count("batch", "batch", "Sequences (or pictures) that go through the network at once on one device.",
                 1048576, "8");
}

ParameterSpec precisionSpec()
{
    return choiceSpec(
        "precision", "precision",
        "What weights, activations and gradients are kept in. Autocast is PyTorch's AMP: weights stay fp32 and "
        "half copies come on top. Mixed is Megatron's and DeepSpeed's: half weights, an fp32 master copy.",
        {{"fp32", "fp32", "everything in 32 bits"},
         {"bf16-autocast", "bf16 autocast", "torch.autocast: fp32 weights, matrix products in bf16"},
         {"fp16-autocast", "fp16 autocast", "torch.autocast with loss scaling: the same bytes in fp16"},
         {"bf16-mixed", "bf16 mixed", "bf16 weights and gradients, fp32 master copy and optimizer"},
         {"fp16-mixed", "fp16 mixed", "fp16 weights and gradients, fp32 master copy and optimizer"},
         {"bf16", "pure bf16", "everything in bf16, the optimizer too"},
         {"fp16", "pure fp16", "everything in fp16, the optimizer too"},
         {"fp8", "fp8", "as bf16 mixed, matrix products in FP8 with cached casts"}},
        "bf16-mixed");
}

ParameterSpec attentionSpec()
{
    return choiceSpec(
        "attention", "attention",
        "How scaled dot-product attention is computed. PyTorch has one fused kernel for processors, which "
        "flash and memory-efficient both mean there; PyTorch 1 has none.",
        attentionKernels.choices());
}

ParameterSpec lossSpec()
{
    ParameterSpec spec =
        choiceSpec("loss", "loss",
                   "How a language model gets from its last hidden states to the loss. With a large vocabulary the "
                   "logits and their "
                   "gradient are often the peak. chunked:K takes K pieces of the sequence.",
                   {{"library", "as its library", "the whole logits, and cross_entropy of them"},
                    {"chunked:8", "in 8 chunks", "torchtune's CEWithChunkedOutputLoss: one piece at a time in fp32"},
                    {"liger", "Liger, fused",
                     "fused_linear_cross_entropy: logits of some rows at a time, their gradients at once"},
                    {"cut", "cut cross-entropy", "logits stay on the chip; half precision (Wijmans et al. 2024)"}},
                   "library");
    spec.counted = "chunked";
    return spec;
}

ParameterSpec operatorsSpec()
{
    return choiceSpec(
        "operators", "operators",
        "Whether norm, softmax, activation, loss and optimizer of a from-scratch decoder are one kernel each or "
        "written out as a student would. Other models are what their library does, unless all are fused; a processor "
        "has no such kernels.",
        {{"fused", "fused", "one kernel for each"},
         {"written-out", "written out", "operator by operator: every intermediate result is saved"},
         {"all-fused", "fused in every model",
          "norms, activations and gates of a library's model too: Liger Kernel, Apex, Megatron"}},
        "fused");
}

ParameterSpec compileSpec()
{
    return choiceSpec("compile", "compile",
                      "torch.compile(model) on a GPU: Inductor writes one kernel for a chain of elementwise operators "
                      "and norms, and a "
                      "minimum cut decides what backward keeps and what it computes again inside its kernels.",
                      {{"none", "none", "eager: an operator is a kernel, and keeps what its backward needs"},
                       {"inductor", "Inductor",
                        "fewer and larger kernels, no intermediate results of chains; gradients of all weights at "
                        "once at the end of backward"},
                       {"inductor-2.0", "Inductor of PyTorch 2.0",
                        "the same without padding: products whose rows start anywhere, as a vocabulary of 50,257 "
                        "makes them, stay slow"},
                       {"layers", "Inductor, by layers",
                        "regional compilation: each layer and the loss alone, what is between them eagerly; goes with "
                        "checkpointing and FSDP (torchtune, torchtitan, accelerate)"}},
                      "none");
}

std::vector<ParameterSpec> parallelSpecs()
{
    return {
        integerSpec("zero", "ZeRO stage",
                    "What data parallelism shards: 1 the optimizer, 2 gradients too, 3 weights too (FSDP).",
                    {.most = 3}),
        choiceSpec(
            "sharding_implementation", "sharded by",
            "Whose code shards: it decides when weights are whole, which buffers there are and what mixed "
            "precision keeps.",
            {{"auto", "as usual", "FSDP 2 for stage 3, DeepSpeed for 1, 2 and for offloading less than all"},
             {"fsdp2", "FSDP 2",
              "fully_shard, a unit for each layer; stage 2 is reshard_after_forward=False. Mixed precision shards "
              "fp32 weights and gathers half copies"},
             {"fsdp1", "FSDP 1", "FullyShardedDataParallel: the same units, each one flat parameter"},
             {"deepspeed", "DeepSpeed",
              "its default sizes: buckets of 500 million gradients, up to a billion parameters whole at once"},
             {"ideal", "the paper", "ZeRO as it was described: pieces, and one layer whole at a time"}},
            "auto"),
        count("data_parallel", "data parallel", "Replicas, each with its own batch; ZeRO shards over them.", 65536, "1",
              "GPUs"),
        count("tensor_parallel", "tensor parallel", "Devices that share each matrix, head by head.", 1024, "1", "GPUs"),
        flagSpec("gradient_as_bucket_view", "gradients in buckets",
                 "DistributedDataParallel(gradient_as_bucket_view=True): gradients are views of the buckets that are "
                 "reduced. Off, PyTorch's default, the buckets are a second copy of all gradients."),
        flagSpec("sequence_parallel", "sequence parallel",
                 "Tensor parallelism also divides what lies between the matrices: norms, dropout, residuals."),
        count("data_parallel_replicate", "replicated shards",
              "Hybrid sharding (HSDP, PyTorch's HYBRID_SHARD): data-parallel ranks in so many groups, each of which "
              "keeps "
              "all shards; groups add their gradients.",
              65536, "1", "groups"),
        count(
            "context_parallel", "context parallel",
            "Ranks that share each sequence: keys and values go round between them (ring attention). ZeRO shards over "
            "them, too.",
            1024, "1", "GPUs"),
        count(
            "expert_parallel", "expert parallel",
            "Of the data- and context-parallel ranks, those that share a mixture's experts: each token travels to the "
            "ranks of its experts and back.",
            1024, "1", "GPUs"),
        choiceSpec(
            "reductions", "reductions", "Whether what data parallelism reduces and gathers runs beside the passes.",
            {{"auto", "as usual",
              "beside backward under DDP, FSDP and ZeRO stage 3; DeepSpeed's stages 1 and 2 wait (overlap_comm)"},
             {"overlapped", "beside the passes", "Megatron's --overlap-grad-reduce and --overlap-param-gather"},
             {"waited", "waited for", "the step waits for each: Megatron without these flags"}},
            "auto"),
        flagSpec("whole_experts", "experts whole",
                 "Tensor parallelism divides no expert, and its ranks are among those that share them: Megatron's "
                 "--expert-tensor-parallel-size 1."),
        count(
            "pipeline_parallel", "pipeline parallel",
            "Ranks that share the layers; micro-batches (accumulation) pass through them one after the other. Shown is "
            "the rank that needs most.",
            1024, "1", "GPUs"),
        choiceSpec("pipeline_schedule", "pipeline schedule",
                   "In which order a rank runs its micro-batches: it decides how many are in flight.",
                   {{"1f1b", "1F1B", "a forward and a backward in turn: at most as many in flight as ranks behind"},
                    {"interleaved", "interleaved 1F1B",
                     "several chunks of layers on each rank: a smaller bubble, more in "
                     "flight"},
                    {"gpipe", "GPipe", "all forwards, then all backwards: every micro-batch in flight"}},
                   "1f1b"),
        count("virtual_stages", "virtual stages", "Chunks of layers on each rank of an interleaved pipeline.", 1024,
              "1", "chunks"),
        linkBandwidthSpec(),
        realSpec("network_bandwidth", "network",
                 "Between machines, of each GPU in one direction: 50 GB/s with an adapter of 400 Gbit/s each. "
                 "Ranks are numbered tensor parallelism first, then context, data and pipeline, so the last of these "
                 "leave the machine first.",
                 {.most = 1e15,
                  .unit = Unit::BytePerSecond,
                  .scale = Scale::Log2,
                  .words = {{"0", "none", "all ranks are in one machine"}}}),
        count("machine_gpus", "GPUs a machine", "Ranks that reach each other without the network.", 1024, "8", "GPUs")};
}

} // namespace

ParameterSpec linkBandwidthSpec()
{
    return realSpec("link_bandwidth", "link bandwidth",
                    "Between GPUs, in one direction: where the device's link is not known or is another.",
                    {.most = 1e15,
                     .unit = Unit::BytePerSecond,
                     .scale = Scale::Log2,
                     .words = {{"0", "of the link", "what the device says of its link"}}});
}

namespace {

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

void append(Schema& schema, std::vector<ParameterSpec> more)
{
    for (ParameterSpec& spec : more)
        schema.push_back(std::move(spec));
}

ParameterSpec checkpointingSpec()
{
    ParameterSpec spec = choiceSpec(
        "checkpointing", "checkpointing", "Which activations are dropped and recomputed in the backward pass.",
        {{"none", "none", "everything that backward needs is kept"},
         {"block", "every block", "only each block's input is kept; a third more work"},
         {"block-reentrant", "every block, reentrant",
          "the same with use_reentrant=True: a block runs again to its end, as it did in any form before PyTorch 2.1"},
         {"every:2", "every 2 blocks", "the input of every second block is kept"},
         {"every:4", "every 4 blocks", "the input of every fourth block is kept"},
         {"sqrt", "√n", "segments of √layers blocks"},
         {"second", "every second block",
          "every second block keeps its input, the others everything: torchtitan's "
          "selective layer"},
         {"selective", "selective", "only scores, softmax and context of attention are computed again"},
         {"operators", "selective, by operator",
          "results of attention and of every second product without bias are kept, the rest of each block is computed "
          "again: torchtitan's selective op"}},
        "none");
    spec.counted = "every";
    return spec;
}

} // namespace

Schema trainingSchema()
{
    Schema schema{
        modelSpec(),
        batchSpec(),
        count("sequence", "sequence", "Tokens of one sequence; pictures have their own size.", 16777216, "2048",
              "tokens"),
        precisionSpec(),
        choiceSpec("optimizer", "optimizer", "What updates the weights, and keeps state for each of them.",
                   {{"adamw", "AdamW", "two moments: 8 bytes a parameter"},
                    {"adam", "Adam", "two moments: 8 bytes a parameter"},
                    {"sgd", "SGD", "no state"},
                    {"momentum", "SGD, momentum", "one moment: 4 bytes a parameter"},
                    {"adam-8bit", "8-bit Adam", "two moments of one byte, a scale per block of 256"},
                    {"adam-4bit", "4-bit Adam", "two moments of half a byte, a scale per block of 128 (torchao)"},
                    {"adam-fp8", "FP8 Adam", "two moments of one byte in E4M3, a scale per block of 256 (torchao)"},
                    {"adafactor", "Adafactor", "row and column sums instead of a second moment"},
                    {"lion", "Lion", "one moment"},
                    {"muon", "Muon", "one moment for matrices, AdamW for the rest"},
                    {"galore", "GaLore", "moments of gradients projected to a rank, for matrices; AdamW for the rest"},
                    {"apollo", "APOLLO", "the same with a random projection, whose moments scale the gradient"},
                    {"lomo", "LOMO", "no state; each weight is updated while backward runs"},
                    {"adalomo", "AdaLomo", "row and column sums; each weight is updated while backward runs"},
                    {"none", "none", "gradients only"}},
                   "adamw"),
        choiceSpec("optimizer_implementation", "implementation", "How the update is written: its temporaries differ.",
                   {{"auto", "as usual", "foreach, on a CPU loop; written out where the operators are"},
                    {"foreach", "foreach", "PyTorch's default on CUDA: temporaries as large as all parameters"},
                    {"loop", "loop", "one tensor after the other"},
                    {"fused", "fused", "one kernel, no temporaries"},
                    {"written-out", "written out", "every expression a new tensor, as a textbook writes it"}},
                   "auto"),
        attentionSpec(),
        checkpointingSpec(),
        count("accumulation", "accumulation", "Micro-batches whose gradients are summed before one update.",
              Plan::mostAccumulation, "1", "micro-batches")};
    append(schema, parallelSpecs());
    append(
        schema,
        {choiceSpec("offload", "offload", "What is kept in the host's memory.", offloads.choices()),
         flagSpec(
             "activation_offload", "activations on the host",
             "What the model keeps for backward before its head is copied to the host's pinned memory, and back when "
             "it is needed (torchtune's enable_activation_offloading, TRL's activation_offloading); of a "
             "checkpointed layer that is its input."),
         realSpec("nvme_bandwidth", "NVMe bandwidth",
                  "Of the disk that the offloaded master weights, state and fp32 gradients lie on, read and written "
                  "together (ZeRO-Infinity; DeepSpeed's offload_optimizer.device=nvme).",
                  {.most = 1e15,
                   .unit = Unit::BytePerSecond,
                   .scale = Scale::Log2,
                   .words = {{"0", "no NVMe", "they lie in the host's memory"}}}),
         choiceSpec("adapter", "adapters", "Train little beside frozen weights, as PEFT does.",
                    {{"none", "none", "every weight is trained"},
                     {"lora", "LoRA", "two thin matrices beside each projection; the base is frozen"},
                     {"qlora", "QLoRA", "the same beside a base in 4 bits (NF4, double quantization)"},
                     {"ia3", "IA3", "a factor for each key, value and input of the last feed-forward matrix"},
                     {"vera", "VeRA", "factors between two frozen random matrices that all layers share"},
                     {"norms", "norms alone", "copies of the norms (PEFT's LNTuning)"},
                     {"prompt", "prompt tuning", "embeddings of virtual tokens before the text"},
                     {"prefix", "prefix tuning", "keys and values of virtual tokens in each layer"}},
                    "none")});
    append(schema, adapterSpecs());
    append(
        schema,
        {realSpec("dropout", "dropout", "Probability; each dropout keeps a mask of one byte per element.",
                  {.most = 0.99}),
         operatorsSpec(), compileSpec(), lossSpec(),
         flagSpec("logits_fp32", "logits in fp32", "The loss is computed on a 32-bit copy of the logits.", true),
         transformersSpec(),
         flagSpec(
             "keeps_logits", "logits kept",
             "The training loop keeps a variable for what the model returns (logits, loss = model(x), outputs = "
             "model(**batch)), so the logits stay in memory through backward and update. Off for a loop whose model "
             "returns the loss alone.",
             true),
         flagSpec("repeats_heads", "heads repeated",
                  "Keys and values that query heads share are copied for each of them before the kernel (repeat_kv: "
                  "torchtune, transformers' sdpa where it passes a mask or is older than 4.48). Off, FlashAttention "
                  "shares them."),
         integerSpec("optimizer_rank", "rank of the optimizer",
                     "Rank that GaLore and APOLLO project the gradient of a matrix to.",
                     {.least = 1, .most = 65536, .standard = "128", .scale = Scale::Log2}),
         flagSpec("clipping", "gradient clipping", "torch.nn.utils.clip_grad_norm_ before the update."),
         flagSpec("optimizer_in_backward", "update in backward",
                  "Each parameter has an optimizer of its own, which a hook calls when its gradient is there "
                  "(register_post_accumulate_grad_hook, torchtune's optimizer_in_bwd, LOMO): gradients never lie side "
                  "by side."),
         flagSpec("fp32_gradients", "fp32 gradients",
                  "Half gradients are summed in fp32: beside the weights of a mixed recipe (Megatron, nanotron, "
                  "DeepSpeed's grad_accum_dtype), under FSDP while they are reduced (reduce_dtype)."),
         integerSpec("shortest_sequence", "shortest batch",
                     "Batches are padded to their longest text. From here to `sequence` lengths are drawn, each as "
                     "likely as another (seed 1), and 32 steps are run one after the other in the same allocator: what "
                     "the first and all of them leave reserved. 0: every batch is `sequence` long.",
                     {.most = 16777216, .scale = Scale::Log2, .suffix = "tokens"}),
         flagSpec("zero_grad_frees", "zero_grad frees", "zero_grad(set_to_none=True), PyTorch's default since 2.0.",
                  true),
         choiceSpec(
             "phase", "phase",
             "How much of the step runs. Inference is under torch.no_grad(), where autocast keeps its casts of the "
             "weights; under torch.inference_mode() newer versions of PyTorch make them anew for every product.",
             phases.choices())});
    append(schema,
           {flagSpec("channels_last", "channels last",
                     "Pictures lie in NHWC (memory_format=torch.channels_last). In NCHW, PyTorch's default, "
                     "convolutions on tensor cores turn what they read and write; the scratchpads of that are "
                     "left out.")});
    append(schema, deviceSpecs());
    append(schema, {assumeSpec()});
    append(schema,
           {choiceSpec("advice", "advice", "How many changes are simulated to find what would help.",
                       {{"levers", "each lever", "every single change is simulated"},
                        {"fit", "make it fit", "combinations of changes, cheapest in time first"},
                        {"none", "none", "only the step itself"}},
                       "levers")});
    setGroup(schema, "parallelism and offload",
             {"zero",
              "sharding_implementation",
              "data_parallel",
              "gradient_as_bucket_view",
              "tensor_parallel",
              "sequence_parallel",
              "reductions",
              "data_parallel_replicate",
              "context_parallel",
              "expert_parallel",
              "whole_experts",
              "pipeline_parallel",
              "pipeline_schedule",
              "virtual_stages",
              "link_bandwidth",
              "network_bandwidth",
              "machine_gpus",
              "offload",
              "nvme_bandwidth",
              "activation_offload"});
    setGroup(schema, "training details",
             {"optimizer_implementation", "optimizer_rank", "optimizer_in_backward", "dropout", "clipping",
              "channels_last", "operators", "compile", "phase", "assume"});
    setGroup(schema, "adapters",
             {"adapter", "adapter_rank", "virtual_tokens", "adapter_targets", "adapter_dropout", "adapter_variant",
              "adapter_precision", "modules_to_save", "base_precision", "compute_precision", "kbit_preparation",
              "quantized_head", "bitsandbytes"});
    setGroup(schema, "memory details",
             {"repeats_heads", "loss", "logits_fp32", "keeps_logits", "transformers", "fp32_gradients",
              "zero_grad_frees", "shortest_sequence", "device_context", "allocator"});
    return schema;
}

ParameterTexts standardModelOn(const Device& device)
{
    if (device.isGpu())
        return {};
    return {{"model", "gpt2"}, {"sequence", "1024"}}; // all the positions that it has
}

ParameterSpec transformersSpec()
{
    return choiceSpec(
        "transformers", "transformers",
        "Which version. Before 4.50 the loss of a language model took a copy of the logits without the last token's, "
        "as large as they are. Before 4.45 a model returned its logits in fp32, and each layer of Qwen 2, Mistral, "
        "Mixtral, Phi, StableLM, StarCoder 2, GPT-NeoX and Falcon had tables of sine and cosine for all positions; "
        "generate() took logits of all tokens of a prompt then (logits=all).",
        {{"4.50", "4.50 or newer", "labels are shifted, not logits"},
         {"4.45", "4.45 to 4.49", "the loss copies the logits"},
         {"4.38", "4.38 to 4.44", "and they are fp32; tables in each layer"}},
        "4.50");
}

Schema inferenceSchema()
{
    Schema schema{
        modelSpec(),
        batchSpec(),
        count("context", "context", "Tokens that the cache of keys and values holds for each sequence.", 16777216,
              "4096", "tokens"),
        choiceSpec("weight_precision", "weights", "What the weights are stored in.",
                   {{"stored", "as stored", "the dtype of the published file, else bf16"},
                    {"fp32", "fp32", "4 bytes"},
                    {"bf16", "bf16", "2 bytes"},
                    {"fp16", "fp16", "2 bytes"},
                    {"fp8", "fp8", "1 byte, one scale per tensor"},
                    {"int8", "int8", "1 byte, one scale per output channel"},
                    {"int4", "int4", "half a byte, an fp16 scale per group of 128"},
                    {"nf4", "NF4", "half a byte, an fp32 scale per 64 (bitsandbytes)"},
                    {"nf4-double", "NF4, double", "the scales in 8 bits, too: 4.127 bits an element"},
                    {"gptq", "GPTQ 4 bit", "half a byte; scale and zero point per group of 128, an index per input"},
                    {"awq", "AWQ 4 bit", "half a byte; scale and zero point per group of 128"},
                    {"q8_0", "GGUF Q8_0", "llama.cpp: 34 bytes for 32 weights"},
                    {"q6_k", "GGUF Q6_K", "llama.cpp: 210 bytes for 256 weights"},
                    {"q5_k_m", "GGUF Q5_K_M", "llama.cpp: 176 bytes for 256, some matrices in Q6_K"},
                    {"q5_k_s", "GGUF Q5_K_S", "llama.cpp: 176 bytes for 256 weights"},
                    {"q4_k_m", "GGUF Q4_K_M", "llama.cpp: 144 bytes for 256, some matrices in Q6_K"},
                    {"q4_k_s", "GGUF Q4_K_S", "llama.cpp: 144 bytes for 256, some matrices in Q5_K"},
                    {"q4_0", "GGUF Q4_0", "llama.cpp: 18 bytes for 32 weights"},
                    {"iq4_xs", "GGUF IQ4_XS", "llama.cpp: 136 bytes for 256 weights"},
                    {"q3_k_l", "GGUF Q3_K_L", "llama.cpp: 110 bytes for 256, some matrices in Q5_K"},
                    {"q3_k_m", "GGUF Q3_K_M", "llama.cpp: 110 bytes for 256, some matrices in Q4_K"},
                    {"q3_k_s", "GGUF Q3_K_S", "llama.cpp: 110 bytes for 256 weights"},
                    {"q2_k", "GGUF Q2_K", "llama.cpp: 84 bytes for 256, some matrices in Q3_K"}},
                   "stored"),
        choiceSpec("kv_precision", "cache", "What keys and values are kept in.",
                   {{"bf16", "bf16", "2 bytes"},
                    {"fp16", "fp16", "2 bytes"},
                    {"fp32", "fp32", "4 bytes"},
                    {"fp8", "fp8", "1 byte"},
                    {"int8", "int8", "1 byte and an fp16 scale per head and token"},
                    {"int4", "int4", "half a byte, fp16 scale and zero point per 32 elements"},
                    {"q8_0", "GGUF Q8_0", "llama.cpp: 34 bytes for 32 elements"},
                    {"q4_0", "GGUF Q4_0", "llama.cpp: 18 bytes for 32 elements"}},
                   "bf16"),
        count("sequence", "prefill", "Tokens of each sequence that go through the network at once; 1 is decoding.",
              16777216, "512", "tokens"),
        choiceSpec("precision", "computed in", "What activations are computed in.", computedIn.choices()),
        attentionSpec(),
        choiceSpec("logits", "logits", "Of which tokens a prefill computes logits.",
                   {{"all", "of every token", "what a forward pass returns"},
                    {"last", "of the last token", "what generation needs: generate(), vLLM, llama.cpp"}},
                   "all"),
        count("cache_page", "page of the cache",
              "Tokens of a page (vLLM's block_size: 16); the last page of a sequence is partly empty.", 65536, "1",
              "tokens"),
        integerSpec("shared_prefix", "shared prefix",
                    "Tokens with which all sequences begin, a system prompt: their whole pages are kept once.",
                    {.most = 16777216, .scale = Scale::Log2, .suffix = "tokens"}),
        realSpec(
            "memory_share", "share of the memory",
            "What an engine takes when it starts (vLLM's gpu_memory_utilization); the cache is what is left of it.",
            {.least = 0.01, .most = 1, .standard = "0.9"}),
        textSpec("draft_model", "draft model",
                 "A smaller model that proposes tokens (speculative decoding); its weights and cache are in memory, "
                 "too. none: without.",
                 "none", 1),
        count("draft_tokens", "proposed tokens", "Tokens that the draft model proposes before the model checks them.",
              64, "5", "tokens"),
        realSpec("draft_acceptance", "accepted proposals",
                 "The share of the draft's tokens that the model accepts. 0.75 is T5 small's for T5 XXL in translation "
                 "(Leviathan 2023, table 2).",
                 {.least = 0, .most = 1, .standard = "0.75"}),
        count("tensor_parallel", "tensor parallel", "Devices that share each matrix, head by head.", 1024, "1", "GPUs"),
        quantizedHeadSpec(),
        bitsandbytesSpec(),
        transformersSpec(),
        linkBandwidthSpec()};
    append(schema, deviceSpecs());
    append(schema, {assumeSpec()});
    setGroup(schema, "engine",
             {"cache_page", "shared_prefix", "memory_share", "draft_model", "draft_tokens", "draft_acceptance"});
    setGroup(schema, "details",
             {"precision", "attention", "logits", "transformers", "quantized_head", "bitsandbytes", "tensor_parallel",
              "link_bandwidth", "device_context", "allocator", "assume"});
    return schema;
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

Result<ModelDescription> askedModel(const Parameters& parameters)
{
    return askedModel(parameters, parameters.text("model"));
}

Device withLink(Device device, double bandwidth)
{
    if (!(bandwidth > 0))
        return device;
    const Sourced given{bandwidth, Evidence::Specified, "given (link_bandwidth)", {}};
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
        : version == "4.45"  ? Transformers::Before450
                             : Transformers::From450;
}

AttentionKernel attentionOf(const Parameters& parameters)
{
    return attentionKernels.of(parameters.choice("attention"));
}

Offload offloadOf(const Parameters& parameters)
{
    return offloads.of(parameters.choice("offload"));
}

StepPhase phaseOf(const Parameters& parameters)
{
    return phases.of(parameters.choice("phase"));
}

DType computedInOf(const Parameters& parameters)
{
    return computedIn.of(parameters.choice("precision"));
}

} // namespace memscape
