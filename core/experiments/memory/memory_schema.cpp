// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/memory/memory_specs.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

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

ParameterSpec precisionSpec()
{
    return choiceSpec(
        "precision", "precision",
        "What weights, activations and gradients are kept in. Autocast is PyTorch's AMP: weights stay fp32 and "
        "half copies come on top, but for a model that was loaded in half precision (under autocast). Mixed is "
        "Megatron's and DeepSpeed's: half weights, an fp32 master copy.",
        {{"fp32", "fp32", "everything in 32 bits"},
         {"bf16-autocast", "bf16 autocast", "torch.autocast: fp32 weights, matrix products in bf16"},
         {"fp16-autocast", "fp16 autocast", "torch.autocast with loss scaling: the same bytes in fp16"},
         {"bf16-under-autocast", "bf16 under autocast",
          "torch.autocast over weights in bf16: norms, softmax and the loss in fp32, the rest in bf16"},
         {"fp16-under-autocast", "fp16 under autocast", "the same with weights in fp16"},
         {"bf16-mixed", "bf16 mixed", "bf16 weights and gradients, fp32 master copy and optimizer"},
         {"fp16-mixed", "fp16 mixed", "fp16 weights and gradients, fp32 master copy and optimizer"},
         {"bf16", "pure bf16", "everything in bf16, the optimizer too"},
         {"fp16", "pure fp16", "everything in fp16, the optimizer too"},
         {"fp8", "fp8", "as bf16 mixed, matrix products in FP8 with cached casts"}},
        "bf16-mixed");
}

ParameterSpec fp8ScalingSpec()
{
    return choiceSpec(
        "fp8_scaling", "FP8 scaling",
        "Where the scale of a tensor comes from that is cast to FP8: it decides how often it is read, and what is "
        "kept for backward: the casts, or as torchao does the tensors themselves.",
        {{"delayed", "delayed", "from maxima of earlier steps: Transformer Engine, Megatron"},
         {"current", "current",
          "the tensor's own maximum, weights' once a step: Transformer Engine's Float8CurrentScaling"},
         {"tensorwise", "its own",
          "the tensor's own maximum, which takes a pass before the cast: torchao, torchtitan"}},
        "delayed");
}

ParameterSpec tf32Spec()
{
    return choiceSpec(
        "tf32", "TF32",
        "Which products of operands in fp32 run on tensor cores, which take 19 bits of each number (Ampere and later). "
        "What is kept is the same.",
        {{"convolutions", "convolutions", "PyTorch's default: torch.backends.cudnn.allow_tf32 alone"},
         {"all", "all products",
          "torch.set_float32_matmul_precision(\"high\"); the default before PyTorch 1.12 and in NVIDIA's "
          "containers"},
         {"none", "none", "32 bits throughout: torch.backends.cudnn.allow_tf32 = False"}},
        "convolutions");
}

ParameterSpec lossSpec()
{
    ParameterSpec spec = choiceSpec(
        "loss", "loss",
        "How a language model gets from its last hidden states to the loss. With a large vocabulary the "
        "logits and their "
        "gradient are often the peak. chunked:K takes K pieces of the sequence.",
        {{"library", "as its library", "the whole logits, and cross_entropy of them"},
         {"chunked:8", "in 8 chunks", "torchtune's CEWithChunkedOutputLoss: one piece at a time in fp32"},
         {"liger", "Liger, fused",
          "fused_linear_cross_entropy: logits of some rows at a time, their gradients at once"},
         {"cut", "cut cross-entropy", "logits stay on the chip; half precision (Wijmans et al. 2024)"},
         {"in-place", "in place",
          "whole logits, over which backward writes their gradient: Unsloth's kernel, and Megatron's loss on "
          "an fp32 copy"},
         {"sum", "their sum", "outputs.logits.sum(), as in scripts that measure attention in transformers"}},
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

ParameterSpec librarySpec()
{
    return choiceSpec(
        "library", "library",
        "Whose network is trained with a model's weights, and whose loop trains it. A library "
        "implies what it does by default, for each parameter that is not given: the answer says what and where that "
        "is read.",
        {{"auto", "as usual", "transformers' for those that it publishes, nanoGPT's for GPT-2; nothing is implied"},
         {"transformers", "transformers, PEFT",
          "its Trainer: fp32 unless told otherwise, adapters of rank 8 in bf16 autocast; GPT-2 too, whose GELU it "
          "writes out (gelu_new): three more results kept"},
         {"trl", "TRL", "SFTTrainer: bf16 autocast, checkpointing"},
         {"llama-factory", "LLaMA-Factory",
          "bf16 autocast, reentrant checkpointing, adapters beside all linear layers"},
         {"axolotl", "axolotl", "weights in bf16, no module in fp32"},
         {"unsloth", "Unsloth",
          "its kernels and loss, checkpoints in the host's memory, adapters of all linear layers"},
         {"llama-recipes", "llama-recipes", "FSDP 1 with checkpointing, adapters of rank 8 with dropout"},
         {"torchtune", "torchtune",
          "bf16, a loss in chunks, checkpointing; 8-bit AdamW in backward on one GPU; adapters of rank 8 in bf16"},
         {"litgpt", "LitGPT",
          "one matrix for queries, keys and values, heads copied, a head of its own, the loss of 128 tokens at a time; "
          "bases in 4 bits with the head among them; LoRA beside query, key, value, projection, mlp "
          "(adapter_targets)"},
         {"nanogpt", "nanoGPT", "bf16 autocast, compiled, a fused AdamW"},
         {"megatron", "Megatron-LM", "bf16 with fp32 gradients, fused kernels, dropout of 0.1"},
         {"lightning", "Lightning", "fp32, gradients freed between forward and backward"}},
        "auto");
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
                       {"logits", "Inductor, loss apart",
                        "a network that returns its logits, of which the training loop computes the loss eagerly"},
                       {"layers", "Inductor, by layers",
                        "regional compilation: each layer and the loss alone, what is between them eagerly; goes with "
                        "checkpointing, FSDP and tensor parallelism (torchtune, torchtitan, accelerate)"}},
                      "none");
}

std::vector<ParameterSpec> parallelSpecs()
{
    return {
        integerSpec("zero", "ZeRO stage",
                    "What data parallelism shards: 1 the optimizer, 2 gradients too, 3 weights too (FSDP).",
                    {.most = 3, .words = {{"0", "none", "every rank keeps all: DDP"}}}),
        choiceSpec("sharding_implementation", "sharded by",
                   "Whose code shards: it decides when weights are whole, which buffers there are and what mixed "
                   "precision keeps.",
                   {{"auto", "as usual", "FSDP 2 for stage 3, DeepSpeed for 1, 2 and for offloading less than all"},
                    {"fsdp2", "FSDP 2",
                     "fully_shard; stage 2 is reshard_after_forward=False. Mixed precision shards "
                     "fp32 weights and gathers half copies"},
                    {"fsdp1", "FSDP 1", "FullyShardedDataParallel: each unit is one flat parameter"},
                    {"deepspeed", "DeepSpeed",
                     "its default sizes: buckets of 500 million gradients, up to a billion parameters whole at once"},
                    {"deepspeed-late", "DeepSpeed, converted late",
                     "DeepSpeed given a model that was made before its configuration was read (from_pretrained before "
                     "TrainingArguments): under stage 3 its linear layers keep their gathered weights for backward"},
                    {"ideal", "the paper", "ZeRO as it was described: pieces, and one layer whole at a time"}},
                   "auto"),
        choiceSpec("deepspeed_sizes", "DeepSpeed's buckets",
                   "How many gradients DeepSpeed reduces at once, how many weights it gathers ahead, and up to which "
                   "size a parameter stays whole.",
                   {{"default", "DeepSpeed's", "500 million gradients, 50 million weights, 100,000 elements"},
                    {"auto", "\"auto\"",
                     "\"auto\" in a configuration that transformers or Accelerate fills in: hidden², 0.9 hidden² and "
                     "10 hidden"}},
                   "default"),
        choiceSpec(
            "fsdp_wrap", "wrapped",
            "Which modules FSDP gathers at once, each a unit. What lies outside of units is whole from forward to "
            "the end of backward.",
            {{"block", "every block", "transformer_auto_wrap_policy, fully_shard of each layer"},
             {"size", "by size",
              "size_based_auto_wrap_policy (FSDP 1): a module with that many parameters beside those of its units"},
             {"whole", "the model", "one unit: no auto_wrap_policy, Accelerate's NO_WRAP, fully_shard(model)"}},
            "block"),
        countSpec("fsdp_min_params", "wrapped from",
                  "Parameters from which on a module is a unit: min_num_params of size_based_auto_wrap_policy.",
                  1'000'000'000'000, "100000000", "parameters"),
        countSpec("data_parallel", "data parallel", "Replicas, each with its own batch; ZeRO shards over them.", 65536,
                  "1", "GPUs"),
        countSpec("tensor_parallel", "tensor parallel", "Devices that share each matrix, head by head.", 1024, "1",
                  "GPUs"),
        flagSpec("gradient_as_bucket_view", "gradients in buckets",
                 "DistributedDataParallel(gradient_as_bucket_view=True): gradients are views of the buckets that are "
                 "reduced. Off, PyTorch's default, the buckets are a second copy of all gradients. Megatron's own "
                 "DistributedDataParallel always has one buffer of gradients that it reduces: on."),
        flagSpec("no_sync", "whole gradients",
                 "FSDP sums the gradients of micro-batches whole and reduces them behind the last one (no_sync(), "
                 "set_requires_gradient_sync(False)), as Accelerate, transformers' Trainer and Lightning do "
                 "(Accelerate under FSDP 2 since its pull request 3762 of September 2025). Off, each micro-batch "
                 "reduces: torchtune, sync_each_batch=True."),
        flagSpec("sequence_parallel", "sequence parallel",
                 "Tensor parallelism also divides what lies between the matrices: norms, dropout, residuals."),
        flagSpec("async_tensor_parallel", "in pieces",
                 "Asynchronous tensor parallelism: what sequence parallelism gathers and scatters goes piece by piece, "
                 "each beside the product of another piece (Megatron's --tp-comm-overlap, torchtitan, Inductor's "
                 "micro-pipeline)."),
        countSpec(
            "data_parallel_replicate", "replicated shards",
            "Hybrid sharding (HSDP, PyTorch's HYBRID_SHARD): data-parallel ranks in so many groups, each of which "
            "keeps "
            "all shards; groups add their gradients.",
            65536, "1", "groups"),
        countSpec(
            "context_parallel", "context parallel",
            "Ranks that share each sequence: keys and values go round between them (ring attention). ZeRO shards over "
            "them, too.",
            1024, "1", "GPUs"),
        countSpec(
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
        countSpec(
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
        countSpec("virtual_stages", "virtual stages", "Chunks of layers on each rank of an interleaved pipeline.", 1024,
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
        countSpec("machine_gpus", "GPUs a machine", "Ranks that reach each other without the network.", 1024, "8",
                  "GPUs")};
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
        countSpec("sequence", "sequence", "Tokens of one sequence; pictures have their own size.", 16777216, "2048",
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
                    {"paged-adamw", "paged AdamW",
                     "two moments of 4 bytes in managed memory, which PyTorch's counters do not see (bitsandbytes)"},
                    {"paged-adam-8bit", "paged 8-bit Adam", "the same of one byte each; scales stay on the device"},
                    {"adafactor", "Adafactor", "row and column sums instead of a second moment"},
                    {"lion", "Lion", "one moment"},
                    {"muon", "Muon", "one moment for matrices, AdamW for the rest"},
                    {"galore", "GaLore", "moments of gradients projected to a rank, for matrices; AdamW for the rest"},
                    {"galore-8bit", "8-bit GaLore", "the same in one byte each, a scale per block of 256"},
                    {"apollo", "APOLLO", "the same with a random projection, whose moments scale the gradient"},
                    {"lomo", "LOMO", "no state; each weight is updated while backward runs"},
                    {"adalomo", "AdaLomo", "row and column sums; each weight is updated while backward runs"},
                    {"none", "none", "gradients only"}},
                   "adamw"),
        choiceSpec("optimizer_implementation", "optimizer's update", "How it is written: its temporaries differ.",
                   {{"auto", "as usual", "foreach, on a CPU loop; written out where the operators are"},
                    {"foreach", "foreach", "PyTorch's default on CUDA: temporaries as large as all parameters"},
                    {"loop", "loop", "one tensor after the other"},
                    {"fused", "fused", "one kernel, no temporaries"},
                    {"written-out", "written out", "every expression a new tensor, as a textbook writes it"}},
                   "auto"),
        attentionSpec(),
        checkpointingSpec(),
        countSpec("accumulation", "accumulation", "Micro-batches whose gradients are summed before one update.",
                  Plan::mostAccumulation, "1", "micro-batches")};
    appendSpecs(schema, parallelSpecs());
    appendSpecs(schema, {fp8ScalingSpec(), tf32Spec()});
    appendSpecs(
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
    appendSpecs(schema, adapterSpecs());
    appendSpecs(
        schema,
        {realSpec("dropout", "dropout", "Probability; each dropout keeps a mask of one byte per element.",
                  {.most = 0.99}),
         operatorsSpec(), librarySpec(), compileSpec(), lossSpec(),
         realSpec(
             "masked_share", "masked tokens",
             "Share of the tokens that the head and the loss of a masked language model see: the hidden states of "
             "the others stop before the head (sparse_prediction of ModernBERT, dense_seq_output of NVIDIA's BERT). "
             "0.15 is usual.",
             {.most = 1, .words = {{"0", "all tokens", "logits of each, as transformers' BERT makes them"}}}),
         flagSpec("logits_fp32", "logits in fp32", "The loss is computed on a 32-bit copy of the logits.", true),
         transformersSpec(), pytorchSpec(), keepsLogitsSpec(),
         choiceSpec(
             "repeats_heads", "heads repeated",
             "Keys and values that query heads share are copied for each of them before the kernel (repeat_kv), or the "
             "kernel shares them. The memory-efficient one cannot before PyTorch 2.14.",
             {{"auto", "as usual",
               "copied by scaled_dot_product_attention of transformers before 4.54 (attention=auto), and with padding"},
              {"true", "copied", "torchtune; transformers where it passes a mask"},
              {"false", "shared", "FlashAttention called by itself (flash_attention_2)"}},
             "auto"),
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
         integerSpec(
             "shortest_sequence", "shortest sequence",
             "Batches are padded to their longest text. From here to `sequence` lengths are drawn, each as "
             "likely as another, and 32 micro-batches (more where a step has not ended) are run one after the "
             "other in the same allocator: what the first and all of them leave reserved. Which lengths come "
             "when decides that: nine such histories are drawn (seeds 1 to 9), the figure is their median, its "
             "band goes from the least to the most. In a pipeline and with no_sync all micro-batches of a step are "
             "as long, and 32 steps are run. 0: every batch is `sequence` long.",
             {.most = 16777216,
              .scale = Scale::Log2,
              .suffix = "tokens",
              .words = {{"0", "all the same", "every batch is as long as the others"}}}),
         flagSpec(
             "padding", "padding",
             "Some text of a batch is shorter than the others, as DataCollatorWithPadding leaves them: transformers "
             "makes a mask of batch × 1 × sequence × sequence. scaled_dot_product_attention turns it into the "
             "queries' type in every layer, which keeps it; FlashAttention cannot take it, and heads are copied. "
             "Without a zero in attention_mask, or with attention=flash, there is no mask."),
         choiceSpec(
             "zero_grad_frees", "zero_grad frees",
             "Whether zero_grad() gives the gradients back (set_to_none=True) or fills them with zeros.",
             {{"auto", "as usual", "back, since PyTorch 2.0"},
              {"true", "gives back", "set_to_none=True: the next step makes them anew"},
              {"false", "keeps", "set_to_none=False: they are there through the next forward pass"},
              {"late", "late", "between forward and backward (torchvision's references, timm): the same until then"}},
             "auto"),
         choiceSpec(
             "phase", "phase",
             "How much of the step runs. Inference is under torch.no_grad(), where autocast keeps its casts of the "
             "weights; under torch.inference_mode() newer versions of PyTorch make them anew for every product.",
             phases.choices())});
    appendSpecs(schema,
                {flagSpec("channels_last", "channels last",
                          "Pictures lie in NHWC (memory_format=torch.channels_last). In NCHW, PyTorch's default, "
                          "convolutions on tensor cores turn what they read and write; the scratchpads of that are "
                          "left out.")});
    appendSpecs(schema, deviceSpecs());
    appendSpecs(schema, {assumeSpec()});
    appendSpecs(schema,
                {choiceSpec("advice", "advice", "How many changes are simulated to find what would help.",
                            {{"levers", "each lever", "every single change is simulated"},
                             {"fit", "make it fit", "combinations of changes, cheapest in time first"},
                             {"none", "none", "only the step itself"}},
                            "levers")});
    setGroup(schema, "parallelism and offload",
             {"zero",
              "sharding_implementation",
              "deepspeed_sizes",
              "fsdp_wrap",
              "fsdp_min_params",
              "data_parallel",
              "gradient_as_bucket_view",
              "no_sync",
              "tensor_parallel",
              "sequence_parallel",
              "async_tensor_parallel",
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
             {"optimizer_implementation", "optimizer_rank", "dropout", "clipping", "optimizer_in_backward",
              "fp32_gradients", "keeps_logits", "zero_grad_frees", "shortest_sequence", "padding", "phase", "assume"});
    setGroup(schema, "kernels and library",
             {"operators", "compile", "loss", "masked_share", "library", "transformers", "pytorch", "logits_fp32",
              "repeats_heads", "fp8_scaling", "tf32", "channels_last"});
    setGroup(schema, "adapters",
             {"adapter", "adapter_rank", "virtual_tokens", "adapter_targets", "adapter_dropout", "adapter_variant",
              "adapter_precision", "modules_to_save", "base_precision", "compute_precision", "kbit_preparation",
              "quantized_head", "bitsandbytes"});
    setGroup(schema, "memory details", {"device_context", "allocator"});
    return schema;
}

ParameterTexts standardModelOn(const Device& device)
{
    if (device.isGpu())
        return {};
    return {{"model", "gpt2"}, {"sequence", "1024"}}; // all the positions that it has
}

Offload offloadOf(const Parameters& parameters)
{
    return offloads.of(parameters.choice("offload"));
}

StepPhase phaseOf(const Parameters& parameters)
{
    return phases.of(parameters.choice("phase"));
}

} // namespace memscape
