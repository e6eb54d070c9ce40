// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/loading/loading_words.h"
#include "core/experiments/memory/memory_parameters.h"

namespace memscape {

std::vector<ChoiceValue> loadingMedia()
{
    std::vector<ChoiceValue> all{
        {hostMedium, "this machine's disk", "as it was calibrated or described; the one that is measured"},
        {pageCacheMedium, "page cache", "the file was read before and is in the host's memory still"}};
    for (const Medium& one : shippedMedia())
        all.push_back({one.id, one.name, quantityText(one.bandwidth.value, Unit::BytePerSecond)});
    return all;
}

const ChoiceTable<LoadingMethod>& loadingMethods()
{
    static const ChoiceTable<LoadingMethod> table{
        {LoadingMethod::Read, {"read", "read", "read() copies out of the page cache, one thread"}},
        {LoadingMethod::Mmap, {"mmap", "mmap", "the file's pages are mapped and touched: nothing is copied"}},
        {LoadingMethod::Direct, {"direct", "direct I/O", "O_DIRECT, past the page cache"}},
        {LoadingMethod::Parallel, {"parallel", "parallel reads", "several threads read() parts of each chunk"}}};
    return table;
}

const ChoiceTable<LoadingTarget>& loadingTargets()
{
    static const ChoiceTable<LoadingTarget> table{
        {LoadingTarget::AsStored, {"none", "none", "the bytes stay as they are"}},
        {LoadingTarget::Float32, {"fp32", "to FP32", "widened or dequantized to 4 bytes by the host"}},
        {LoadingTarget::BFloat16, {"bf16", "to BF16", "rounded or dequantized to 2 bytes by the host"}},
        {LoadingTarget::Float16, {"fp16", "to FP16", "rounded or dequantized to 2 bytes by the host"}}};
    return table;
}

const ChoiceTable<LoadingCopies>& loadingCopies()
{
    static const ChoiceTable<LoadingCopies> table{
        {LoadingCopies::Stream,
         {"stream", "chunk by chunk", "made on the meta device; tensors are handed on as they come: buffers alone"}},
        {LoadingCopies::Once,
         {"once", "state dict once", "the whole state dict is read, then becomes the model (low_cpu_mem_usage)"}},
        {LoadingCopies::Twice,
         {"twice", "state dict twice", "the model is made first, then the state dict is copied into it"}}};
    return table;
}

const std::string& loadingMethodKey(LoadingMethod method)
{
    return loadingMethods().keyOf(method);
}

const std::string& loadingTargetKey(LoadingTarget target)
{
    return loadingTargets().keyOf(target);
}

const std::string& loadingFormKey(LoadingForm form)
{
    static const std::string keys[] = {"fp32", "bf16", "fp16", "int8", "int4", "other"};
    return keys[std::size_t(form)];
}

Schema loadingSchema()
{
    Schema schema{
        textSpec("model", "model", "Whose weights are loaded: a name, params:7e9, a config.json.", "gpt2", 1),
        choiceSpec("dtype", "stored as", "What the file holds. Quantized: matrices of layers, with their scales.",
                   {{"stored", "published type", "the type of the published weights"},
                    {"fp32", "FP32", "4 B"},
                    {"bf16", "BF16", "2 B"},
                    {"fp16", "FP16", "2 B"},
                    {"fp8", "FP8", "1 B"},
                    {"int8", "INT8", "1 B and a scale a channel"},
                    {"int4", "INT4", "half a byte, and a scale and a zero point for 128"},
                    {"nf4", "NF4", "bitsandbytes"},
                    {"gptq", "GPTQ", "4 bits, groups of 128"},
                    {"awq", "AWQ", "4 bits, groups of 128"}}),
        choiceSpec("convert", "conversion", "What the host makes of it on the way.", loadingTargets().choices()),
        choiceSpec("medium", "medium", "Where the file lies.", loadingMedia()),
        choiceSpec("cache", "page cache", "Whether the file is in the host's memory already.",
                   {{"cold", "cold", "no page of it: every byte comes from the medium"},
                    {"warm", "warm", "all of it: it was read before"}}),
        choiceSpec("method", "method", "How the file is read.", loadingMethods().choices()),
        integerSpec("gpus", "GPUs", "The model is divided evenly over so many.",
                    {.least = 1, .most = 64, .standard = "1", .appliesTo = AppliesTo::Gpus}),
        textSpec("medium_file", "own medium",
                 "A file that describes a medium of one's own, its rate and latency; empty: the one that is chosen.",
                 ""),
        textSpec("file", "file", "A safetensors file, its index, or a GGUF file in place of the model; read only.", ""),
        realSpec("touched", "share loaded", "The share of the file that is loaded; lazy loading leaves the rest.",
                 {.least = 1.0 / 1024, .most = 1, .standard = "1", .scale = Scale::Log2}),
        integerSpec("threads", "threads", "That read, where reads are parallel.",
                    {.least = 1, .most = 64, .standard = "4", .scale = Scale::Log2}),
        integerSpec("chunk", "chunk", "Bytes of the file that are handled at a time; 0 takes it in one piece.",
                    {.least = 0,
                     .most = 0x1p40,
                     .standard = "16MiB",
                     .unit = Unit::Byte,
                     .scale = Scale::Log2,
                     .words = {{"0", "one piece", "nothing is cut: each step waits for the one before"}}}),
        integerSpec("streams", "buffers",
                    "In flight: a chunk is read while another is converted or copied. 1: nothing overlaps.",
                    {.least = 1, .most = 8, .standard = "2"}),
        choiceSpec("low_cpu_mem", "host memory", "What the loader holds in the host's memory.",
                   loadingCopies().choices()),
        choiceSpec("staging", "staging", "The host's memory that copies to the GPU come from.",
                   {{"pinned", "pinned", "page-locked buffers, which a copy engine reads"},
                    {"pageable", "pageable", "ordinary memory, which the driver stages"}}),
        choiceSpec("host_link", "links", "How several GPUs reach the host.",
                   {{"own", "one each", "every GPU has a link of its own"},
                    {"shared", "shared", "one link for all, behind a switch"}}),
        textSpec("folder", "folder", "Where the measured file is written; empty: the system's folder for such files.",
                 ""),
        integerSpec("limit", "largest file", "That a measurement writes; it leaves room on the disk besides.",
                    {.least = 4096, .most = 0x1p40, .standard = "1GiB", .unit = Unit::Byte, .scale = Scale::Log2}),
    };
    schema.push_back(assumeSpec());
    for (const char* key : {"staging", "host_link"})
        std::ranges::find(schema, key, &ParameterSpec::key)->appliesTo = AppliesTo::Gpus;
    setGroup(schema, "how it is read", {"file", "touched", "threads", "chunk", "streams", "medium_file"});
    setGroup(schema, "memory and links", {"low_cpu_mem", "staging", "host_link"});
    setGroup(schema, "details", {"assume"});
    setGroup(schema, "measurement", {"folder", "limit"});
    return schema;
}

} // namespace memscape
