// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"
#include "core/experiments/attention/attention.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// A size; sliders move in powers of two.
ParameterSpec size(std::string key, std::string label, std::string help, std::int64_t most, std::string standard)
{
    return integerSpec(std::move(key), std::move(label), std::move(help),
                       {.least = 1, .most = double(most), .standard = std::move(standard), .scale = Scale::Log2});
}

const ChoiceTable<DType> formats{
    {DType::Float32, {"float32", "float32 (4 B)", "computed as it is stored; no tensor cores"}},
    {DType::Float16, {"float16", "float16 (2 B)", "sums in float; scores above 65,504 overflow where they are stored"}},
    {DType::BFloat16, {"bfloat16", "bfloat16 (2 B)", "sums in float; the range of a float with 8 bits of precision"}}};

const ChoiceTable<AttentionPass> passes{
    {AttentionPass::Forward, {"forward", "forward", "O from Q, K and V: inference, or the first half of a step"}},
    {AttentionPass::Backward, {"backward", "backward", "dQ, dK and dV from dO and what the forward saved"}},
    {AttentionPass::Both, {"both", "forward and backward", "a training step of this layer"}}};

/// Every version with what it teaches.
std::string versionHelp()
{
    std::string help = "Which of our programs, numbered from naive to best; of flash attention when "
                       "both implementations run. 0: the best that can, which is the fastest where a run was "
                       "recorded on this kind of device, and else the newest that needs no such record.";
    for (const bool gpu : {false, true}) {
        for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
            help += fmt::format(" {} on a {}:", attentionKindText(kind), gpu ? "GPU" : "host");
            std::string_view separator = " ";
            for (const AttentionVersion& version : attentionVersions(kind, gpu)) {
                help += fmt::format("{}{} {} ({})", separator, version.number, version.name, version.teaches);
                separator = "; ";
            }
            help += '.';
        }
    }
    return help;
}

/// Predictions are of our own programs, whatever it says.
ParameterSpec backend()
{
    ParameterSpec spec = choiceSpec(
        "backend", "backend",
        "Which backend of PyTorch's scaled_dot_product_attention runs as flash, on the devices pytorch:…; it alone "
        "is allowed. Elsewhere it changes nothing.",
        {{"flash", "flash", "FlashAttention; on a CPU PyTorch's own tiles"},
         {"efficient", "efficient", "memory-efficient attention (xFormers): GPUs, float32 too"},
         {"cudnn", "cuDNN", "cuDNN's fused attention: GPUs, half precision"},
         {"math", "math", "composed inside PyTorch: it writes the matrix that flash never does"}});
    spec.appliesTo = AppliesTo::Pytorch;
    return spec;
}

} // namespace

Schema attentionSchema()
{
    return {size("batch", "batch", "Sequences that are computed together.", attentionBatchLimit, "1"),
            size("heads", "heads", "Query heads of every sequence; each has its own scores.", attentionHeadLimit, "16"),
            integerSpec("kv_heads", "kv heads",
                        "Heads of keys and values that the query heads share in groups (grouped-query "
                        "attention; 1 is multi-query). 0: as many as query heads.",
                        {.most = double(attentionHeadLimit),
                         .scale = Scale::Log2,
                         .words = {{"0", "as heads", "every query head has keys and values of its own"}}}),
            size("sequence", "sequence",
                 "Queries and keys of a sequence. Scores grow with its square, everything that "
                 "flash attention keeps grows with itself.",
                 attentionSequenceLimit, "2048"),
            size("head_dim", "head dimension", "Numbers in a query, key or value of one head: 32 to 256 in practice.",
                 attentionHeadDimLimit, "128"),
            choiceSpec("dtype", "format", "Of Q, K, V and O, and of S and P where they are stored.", formats.choices(),
                       "bfloat16"),
            flagSpec("causal", "causal", "A query sees the keys up to its own place only: half of the scores."),
            choiceSpec("pass", "pass", "Which half of a training step.", passes.choices(), "both"),
            choiceSpec("implementation", "implementation", "The implementation to predict and measure.",
                       {{"standard", "standard", "S and P are arrays of queries × keys in memory"},
                        {"flash", "flash", "tiles that stay on the chip; only O and one number a row are written"},
                        {"both", "both", "the two in turn, on the same inputs"}},
                       "both"),
            integerSpec("version", "version", versionHelp(),
                        {.most = 99, .words = {{"0", "best", "the best that can run here"}}}),
            backend()};
}

DType attentionDType(const Parameters& parameters)
{
    return formats.of(parameters.choice("dtype"));
}

AttentionPass attentionPass(const Parameters& parameters)
{
    return passes.of(parameters.choice("pass"));
}

} // namespace memscape
