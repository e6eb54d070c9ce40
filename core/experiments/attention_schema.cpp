// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/attention.h"

#include <fmt/format.h>

namespace memscape {

namespace {

ParameterSpec number(std::string key, std::string label, std::string help, double minimum,
                     double maximum, std::string standard, std::vector<ChoiceValue> words = {})
{
    return {std::move(key),
            std::move(label),
            std::move(help),
            ParameterKind::Integer,
            Unit::One,
            minimum,
            maximum,
            Scale::Log2,
            std::move(words),
            std::move(standard)};
}

std::vector<ChoiceValue> formats()
{
    return {{"float32", "float32 (4 B)", "computed as it is stored; no tensor cores"},
            {"float16", "float16 (2 B)",
             "sums in float; scores above 65,504 overflow where they are stored"},
            {"bfloat16", "bfloat16 (2 B)",
             "sums in float; the range of a float with 8 bits of precision"}};
}

std::vector<ChoiceValue> passes()
{
    return {{"forward", "forward", "O from Q, K and V: inference, or the first half of a step"},
            {"backward", "backward", "dQ, dK and dV from dO and what the forward saved"},
            {"both", "forward and backward", "a training step of this layer"}};
}

/// Every version with what it teaches.
std::string versionHelp()
{
    std::string help =
        "Which of our programs, numbered from naive to best; of flash attention when "
        "both implementations run. 0: the best that can, which is the fastest where a run was "
        "recorded on this kind of device, and else the newest that needs no such record.";
    for (const bool gpu : {false, true}) {
        for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
            help += fmt::format(" {} on a {}:", attentionKindText(kind), gpu ? "GPU" : "host");
            std::string_view separator = " ";
            for (const AttentionVersion& version : attentionVersions(kind, gpu)) {
                help += fmt::format("{}{} {} ({})", separator, version.number, version.name,
                                    version.teaches);
                separator = "; ";
            }
            help += '.';
        }
    }
    return help;
}

std::vector<ChoiceValue> implementations()
{
    return {
        {"standard", "standard", "S and P are arrays of queries × keys in memory"},
        {"flash", "flash", "tiles that stay on the chip; only O and one number a row are written"},
        {"both", "both", "the two in turn, on the same inputs"}};
}

} // namespace

Schema attentionSchema()
{
    return {number("batch", "batch", "Sequences that are computed together.", 1,
                   double(attentionBatchLimit), "1"),
            number("heads", "heads", "Query heads of every sequence; each has its own scores.", 1,
                   double(attentionHeadLimit), "16"),
            number("kv_heads", "kv heads",
                   "Heads of keys and values that the query heads share in groups (grouped-query "
                   "attention; 1 is multi-query). 0: as many as query heads.",
                   0, double(attentionHeadLimit), "0",
                   {{"0", "as heads", "every query head has keys and values of its own"}}),
            number("sequence", "sequence",
                   "Queries and keys of a sequence. Scores grow with its square, everything that "
                   "flash attention keeps grows with itself.",
                   1, double(attentionSequenceLimit), "2048"),
            number("head_dim", "head dimension",
                   "Numbers in a query, key or value of one head: 32 to 256 in practice.", 1,
                   double(attentionHeadDimLimit), "128"),
            choiceSpec("dtype", "format", "Of Q, K, V and O, and of S and P where they are stored.",
                   formats(), "bfloat16"),
            {"causal",
             "causal",
             "A query sees the keys up to its own place only: half of the scores.",
             ParameterKind::Flag,
             Unit::One,
             0,
             0,
             Scale::Linear,
             {},
             "false"},
            choiceSpec("pass", "pass", "Which half of a training step.", passes(), "both"),
            choiceSpec("implementation", "implementation", "Whose bytes and time.", implementations(),
                   "both"),
            {"version",
             "version",
             versionHelp(),
             ParameterKind::Integer,
             Unit::One,
             0,
             99,
             Scale::Linear,
             {{"0", "best", "the best that can run here"}},
             "0"}};
}

} // namespace memscape
