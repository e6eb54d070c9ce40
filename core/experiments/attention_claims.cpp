// SPDX-License-Identifier: Apache-2.0
// What the course notes and papers say about attention, with this problem's numbers beside it.
#include "core/experiments/attention.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* notes = "course notes, GPU memory management";
constexpr const char* theory = "course notes, device and memory theory";

std::string bytesText(double bytes)
{
    return quantityText(bytes, Unit::Byte, ByteStyle::Binary, 3);
}

std::string timesText(double ratio)
{
    return fmt::format("{}×", quantityText(ratio, Unit::One));
}

/// All bytes of the two kinds at one length: inputs, outputs and the extra peak.
double totalRatio(const Device& device, const AttentionAnswers& answers, std::int64_t sequence)
{
    double bytes[2] = {};
    int i = 0;
    for (const AttentionAnswer* answer : {&*answers.standard, &*answers.flash}) {
        AttentionShape shape = answers.shape;
        shape.queries = shape.keys = sequence;
        const auto memory = attentionMemory(answer->version, shape, answers.dtype, answers.pass,
                                            std::max(device.units, 1));
        if (!memory)
            return 0;
        bytes[i++] = double(memory->tensors) + double(memory->peak(answers.pass));
    }
    return bytes[0] / bytes[1];
}

Claim lessMemory(const Device& device, const AttentionAnswers& answers)
{
    const AttentionAnswer &standard = *answers.standard, &flash = *answers.flash;
    const double total = totalRatio(device, answers, answers.shape.keys);
    const double saved = double(standard.memory.saved) / double(flash.memory.saved);
    std::int64_t first = 0, last = 0; // lengths at which the whole is 10 to 20 times less
    for (std::int64_t n = 64; n <= (1 << 18); n = n * 5 / 4) {
        const double ratio = totalRatio(device, answers, n);
        if (ratio >= 10 && ratio <= 20) {
            first = first == 0 ? n : first;
            last = n;
        }
    }
    const std::string when = first == 0
        ? "does not hold: the ratio grows with the sequence"
        : fmt::format(
            "holds when the sequence is about {} to {} and inputs and outputs are counted: "
            "the ratio grows with the sequence",
            first, last);
    return {"Flash Attention: 10-20x less memory", notes, when,
            fmt::format("at {}: {} with inputs and outputs, {} of what is saved for the backward "
                        "({} against {})",
                        answers.shape.keys, timesText(total), timesText(saved),
                        bytesText(double(standard.memory.saved)),
                        bytesText(double(flash.memory.saved)))};
}

Claim faster(const Device& device, const AttentionAnswers& answers)
{
    const double ratio = answers.standard->cost.seconds / answers.flash->cost.seconds;
    const std::int64_t crossover = attentionCrossover(device, answers);
    const char* verdict = ratio >= 3 && ratio <= 4 ? "holds here"
        : device.isGpu() ? "holds when bytes, not products, held standard attention: it depends on "
                           "the length, the head dimension and the GPU"
                         : "does not hold on a CPU, where products take most of the time of both";
    return {"Flash Attention: 3-4x faster than standard attention", notes, verdict,
            fmt::format("predicted here {}; {}", timesText(ratio),
                        crossover > 0 ? fmt::format("flash is ahead from sequence {} on", crossover)
                                      : "flash is not ahead at any length")};
}

Claim linearMemory(const AttentionAnswers& answers)
{
    const double perToken =
        double(answers.flash->memory.saved) / double(answers.shape.batch * answers.shape.queries);
    return {
        "Flash Attention: O(N) memory", notes,
        "holds for what it takes beside its inputs; the operations stay quadratic",
        fmt::format("{} per token saved, whatever the sequence; {} operations per token and key",
                    bytesText(perToken), 4 * answers.shape.headDim * answers.shape.heads)};
}

/// The notes' own numbers: 8 × 16 heads × 4096².
Claim twoGigabytes()
{
    const double elements = 8.0 * 16 * 4096 * 4096;
    return {
        "seq_len=4096, batch=8, heads=16: 2GB just for attention", notes,
        "does not hold: it is 2 G elements, not bytes, and S and P both exist in the forward",
        fmt::format("{} elements: {} in a half format, {} in float32, for one of the two arrays",
                    quantityText(elements / 1e9, Unit::One) + "·10⁹",
                    quantityText(2 * elements, Unit::Byte, ByteStyle::Decimal),
                    quantityText(4 * elements, Unit::Byte, ByteStyle::Decimal))};
}

Claim sparse(const AttentionAnswers& answers)
{
    const double n = double(answers.shape.keys);
    const double rows = double(answers.shape.queryRows()), e = double(elementBytes(answers.dtype));
    return {"Sparse attention patterns: O(n√n) or O(n log n) memory", theory,
            "holds for the scores that are kept; the answer is another one than attention's, and "
            "flash attention saves less with the same answer",
            fmt::format("full {}, n√n {}, n log₂ n {}; flash saves {}", bytesText(rows * n * e),
                        bytesText(rows * std::sqrt(n) * e),
                        bytesText(rows * std::log2(std::max(2.0, n)) * e), bytesText(4 * rows))};
}

Claim linearAttention(const AttentionAnswers& answers)
{
    const double n = double(answers.shape.keys), d = double(answers.shape.headDim);
    return {"Linear attention: O(n) memory complexity", theory,
            n > d ? "holds, with another kernel in place of the softmax"
                  : "holds, but a sequence shorter than the head dimension gains nothing",
            fmt::format(
                "2 n d² against 2 n² d operations a head and product: {} of them at n = {}, d = {}",
                percentText(d / n, 3), n, d)};
}

Claim complexity(const AttentionAnswers& answers)
{
    const double n = double(answers.shape.keys), d = double(answers.shape.headDim);
    return {"Self-attention memory: O(L² × d + L × d²)", "course notes, batch size optimization",
            "does not hold: that is the count of operations; the scores are L² per head without d",
            fmt::format("L² d = {} numbers a head; what exists is L² = {} and 4 L d = {}",
                        quantityText(n * n * d, Unit::One), quantityText(n * n, Unit::One),
                        quantityText(4 * n * d, Unit::One))};
}

Claim traffic(const Device& device, const AttentionAnswers& answers)
{
    const double d = double(answers.shape.headDim), n = double(answers.shape.keys);
    const double onChip = onChipBytes(device) / double(elementBytes(answers.dtype));
    const double ours = answers.standard->cost.bytes / answers.flash->cost.bytes;
    return {
        "IO: standard Θ(N d + N²) accesses of memory, flash Θ(N² d² / M)",
        "Dao et al. 2022, Theorem 2",
        "holds as a bound; the last cache keeps K and V, so DRAM sees less still",
        fmt::format("N² / (N² d² / M) = {} with M = {} numbers; our count here: {} against {}, {}",
                    timesText(n * n / (n * n * d * d / onChip)), quantityText(onChip, Unit::One),
                    bytesText(answers.standard->cost.bytes), bytesText(answers.flash->cost.bytes),
                    timesText(ours))};
}

Claim memoryEfficient(const AttentionAnswers& answers)
{
    const double rows = double(answers.shape.batch * answers.shape.heads);
    const double padded = std::ceil(double(answers.shape.queries) / 32) * 32;
    return {"xFormers memory-efficient attention: O(N) memory", notes,
            "holds, as for flash attention: keys in chunks (Rabe and Staats 2021), one number a "
            "row saved",
            fmt::format(
                "PyTorch's \"efficient\" kernel saves the log-sum-exp in rows of whole 32: {}; "
                "flash {}",
                bytesText(4 * rows * padded), bytesText(4 * double(answers.shape.queryRows())))};
}

} // namespace

std::vector<Claim> attentionClaims(const Device& device, const AttentionAnswers& answers)
{
    std::vector<Claim> claims;
    if (answers.standard && answers.flash) {
        claims.push_back(lessMemory(device, answers));
        claims.push_back(faster(device, answers));
    }
    if (answers.flash)
        claims.push_back(linearMemory(answers));
    claims.push_back(twoGigabytes());
    claims.push_back(memoryEfficient(answers));
    claims.push_back(sparse(answers));
    claims.push_back(linearAttention(answers));
    claims.push_back(complexity(answers));
    if (answers.standard && answers.flash)
        claims.push_back(traffic(device, answers));
    return claims;
}

} // namespace memscape
