// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/adapter_parameters.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/memory/memory_specs.h"

namespace memscape {

namespace {

/// What a forward pass alone computes in.
const ChoiceTable<DType> computedIn{{DType::BFloat16, {"bf16", "bf16", "2 bytes"}},
                                    {DType::Float16, {"fp16", "fp16", "2 bytes"}},
                                    {DType::Float32, {"fp32", "fp32", "4 bytes"}}};

} // namespace

Schema inferenceSchema()
{
    Schema schema{
        modelSpec(),
        batchSpec(),
        countSpec("context", "context", "Tokens that the cache of keys and values holds for each sequence.", 16777216,
                  "4096", "tokens"),
        choiceSpec("weight_precision", "weights", "What the weights are stored in.",
                   {{"stored", "as stored", "the dtype of the published file, else bf16"},
                    {"fp32", "fp32", "4 bytes"},
                    {"bf16", "bf16", "2 bytes"},
                    {"fp16", "fp16", "2 bytes"},
                    {"fp8", "fp8", "1 byte, one scale per tensor"},
                    {"int8", "int8", "1 byte, one scale per output channel"},
                    {"int4", "int4", "half a byte, a bf16 scale and zero point per group (torchao, gpt-fast)"},
                    {"nf4", "NF4", "half a byte, an fp32 scale per 64 (bitsandbytes)"},
                    {"nf4-double", "NF4, double", "the scales in 8 bits, too: 4.127 bits an element"},
                    {"gptq", "GPTQ 4 bit", "half a byte; scale and zero point per group, an index per input"},
                    {"gptq-8bit", "GPTQ 8 bit", "a byte; scale and zero point per group, an index per input"},
                    {"awq", "AWQ 4 bit", "half a byte; scale and zero point per group"},
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
        choiceSpec("kv_precision", "KV cache", "What keys and values are kept in.",
                   {{"bf16", "bf16", "2 bytes"},
                    {"fp16", "fp16", "2 bytes"},
                    {"fp32", "fp32", "4 bytes"},
                    {"fp8", "fp8", "1 byte"},
                    {"int8", "int8", "1 byte and an fp16 scale per head and token"},
                    {"int4", "int4", "half a byte, fp16 scale and zero point per 32 elements"},
                    {"q8_0", "GGUF Q8_0", "llama.cpp: 34 bytes for 32 elements"},
                    {"q4_0", "GGUF Q4_0", "llama.cpp: 18 bytes for 32 elements"}},
                   "bf16"),
        countSpec("sequence", "prefill", "Tokens of each sequence that go through the network at once; 1 is decoding.",
                  16777216, "512", "tokens"),
        choiceSpec("precision", "computed in", "What activations are computed in.", computedIn.choices()),
        attentionSpec(),
        choiceSpec("logits", "logits", "Of which tokens a prefill computes logits.",
                   {{"all", "of every token", "what a forward pass returns"},
                    {"last", "of the last token", "what generation needs: generate(), vLLM, llama.cpp"}},
                   "all"),
        choiceSpec(
            "library", "library",
            "What generates: how kernels are joined, what a host does between tokens, how attention reads keys "
            "that several query heads share. Weights in GGUF are llama.cpp's. A loop of eager PyTorch has a "
            "figure of its own. vLLM and llama.cpp imply what they do by default, for what is not "
            "given: the answer says what.",
            {{"engine", "an engine",
              "TensorRT-LLM, LMDeploy, SGLang, gpt-fast, torch.compile: joined kernels in a graph"},
             {"tensorrt", "TensorRT",
              "one engine in a graph: activations run within products, those of the same rows are one"},
             {"vllm", "vLLM 0.6 to 0.8", "an engine whose scheduler runs on the host between tokens: 1.7 ms"},
             {"vllm-0.9", "vLLM since 0.9",
              "the host is hidden behind kernels; at its start it samples for 1024 sequences on GPUs of 70 GiB"},
             {"vllm-0.5", "vLLM before 0.6", "outputs are processed between tokens, too: 4 ms"},
             {"engine-2023", "an engine of 2023",
              "keys are read once for each query head, ranks reduce by NCCL: TensorRT-LLM before XQA, PagedAttention, "
              "FlashAttention 2.0"},
             {"llama.cpp", "llama.cpp", "a kernel for nearly each operator, a token's in a graph"},
             {"llama.cpp-2023", "llama.cpp before May 2024", "a kernel for each operator, launched one by one"},
             {"autoawq", "AutoAWQ, fused",
              "its fused modules and its product GEMM in a loop of Python, which the device waits for"}},
            "engine"),
        choiceSpec("cache_growth", "cache grows",
                   "How the cache gets room for a token. Prompt and last token are two moments of one that grows.",
                   {{"reserved", "reserved", "there for the whole context: vLLM, llama.cpp, StaticCache"},
                    {"copied", "by copies", "torch.cat of each layer: DynamicCache, generate() of transformers 4.42"},
                    {"kept-twice", "by copies, kept",
                     "tuples of generate() before 4.42: the step's old ones stay named until it ends, the cache is "
                     "there twice"}},
                   "reserved"),
        countSpec("cache_page", "cache page",
                  "Tokens of a page (vLLM's block_size: 16); the last page of a sequence is partly empty.", 65536, "1",
                  "tokens"),
        integerSpec("shared_prefix", "shared prefix",
                    "Tokens with which all sequences begin, a system prompt: their whole pages are kept once.",
                    {.most = 16777216, .scale = Scale::Log2, .suffix = "tokens"}),
        realSpec(
            "memory_share", "GPU memory share",
            "What an engine takes when it starts (vLLM's gpu_memory_utilization); the cache is what is left of it.",
            {.least = 0.01, .most = 1, .standard = "0.9"}),
        textSpec("draft_model", "draft model",
                 "A smaller model that proposes tokens (speculative decoding); its weights and cache are in memory, "
                 "too. none: without.",
                 "none", 1),
        countSpec("draft_tokens", "proposed tokens",
                  "Tokens that the draft model proposes before the model checks them.", 64, "5", "tokens"),
        realSpec("draft_acceptance", "accepted proposals",
                 "The share of the draft's tokens that the model accepts. 0.75 is T5 small's for T5 XXL in translation "
                 "(Leviathan 2023, table 2).",
                 {.least = 0, .most = 1, .standard = "0.75"}),
        countSpec("tensor_parallel", "tensor parallel", "Devices that share each matrix, head by head.", 1024, "1",
                  "GPUs"),
        choiceSpec("group_size", "group size",
                   "Weights along the input that share a scale and a zero point (group_size of GPTQ and AWQ): small "
                   "groups are more exact and larger.",
                   {{"32", "32", "4 bits take 4.63 with their scales and zero points"},
                    {"64", "64", "4 bits take 4.31"},
                    {"128", "128", "4 bits take 4.16: what most models are published in"},
                    {"none", "none", "one for each output (group_size = -1)"}},
                   "128"),
        quantizedHeadSpec(),
        choiceSpec(
            "output_head", "output head",
            "Of a model that ties its head to the embedding: many checkpoints hold a head all the same.",
            {{"model", "as the model says", "one matrix"},
             {"loaded", "loaded, then tied",
              "the file has a second one (Qwen's AWQ), which is let go when transformers ties it: peak of loading"},
             {"own", "a matrix of its own",
              "copied or loaded and never tied: torchao's untied embedding, programs that copy the weights one by "
              "one"}},
            "model"),
        choiceSpec("loading", "loading", "How the weights get from their file to the device. GGUF is mapped.",
                   {{"auto", "as the library does", "vLLM in place, others directly"},
                    {"direct", "directly", "tensor by tensor from mapped safetensors: from_pretrained(device_map=…)"},
                    {"host", "through host memory", "from_pretrained(), then model.to(\"cuda\")"},
                    {"state-dict", "as a state dict", "torch.load() beside a model in host memory, then .to(\"cuda\")"},
                    {"on-device", "as one on the device", "torch.load(map_location=\"cuda\") beside the model there"},
                    {"in-place", "in place", "parameters are made on the device and filled: vLLM, LitGPT"}},
                   "auto"),
        choiceSpec("file_precision", "in the file", "What the file holds.",
                   {{"auto", "as published", "int8, int4 and NF4 are made while 16 or 32 bits are loaded"},
                    {"fp32", "fp32", "4 bytes"},
                    {"bf16", "bf16", "2 bytes"},
                    {"fp16", "fp16", "2 bytes"},
                    {"quantized", "the quantized weights", "saved after they were quantized"}},
                   "auto"),
        computePrecisionSpec(),
        bitsandbytesSpec(),
        transformersSpec(),
        linkBandwidthSpec()};
    appendSpecs(schema, deviceSpecs());
    appendSpecs(schema, {assumeSpec()});
    setGroup(schema, "engine",
             {"library", "cache_growth", "cache_page", "shared_prefix", "memory_share", "draft_model", "draft_tokens",
              "draft_acceptance"});
    setGroup(schema, "details",
             {"precision", "attention", "logits", "transformers", "group_size", "quantized_head", "output_head",
              "loading", "file_precision", "compute_precision", "bitsandbytes", "tensor_parallel", "link_bandwidth",
              "device_context", "allocator", "assume"});
    return schema;
}

DType computedInOf(const Parameters& parameters)
{
    return computedIn.of(parameters.choice("precision"));
}

} // namespace memscape
