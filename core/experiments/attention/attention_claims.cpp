// SPDX-License-Identifier: Apache-2.0
// What the course notes and papers say about attention, with this problem's numbers beside it.
#include "core/claims/claim_quotes.h"
#include "core/experiments/attention/attention.h"
#include "core/experiments/common/judged_number.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

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
        const auto memory =
            attentionMemory(answer->version, shape, answers.dtype, answers.pass, std::max(device.units, 1));
        if (!memory)
            return 0;
        bytes[i++] = double(memory->tensors) + double(memory->peak(answers.pass));
    }
    return bytes[0] / bytes[1];
}

Claim lessMemory(const Device& device, const AttentionAnswers& answers, const Measurement& measured)
{
    const AttentionAnswer &standard = *answers.standard, &flash = *answers.flash;
    const auto peak = [&](const AttentionAnswer& answer, const char* key) {
        return judgedNumber(measured, key, double(answer.memory.peak(answers.pass)));
    };
    const JudgedNumber ofStandard = peak(standard, "standard_extra_peak"), ofFlash = peak(flash, "flash_extra_peak");
    const double total =
        (double(standard.memory.tensors) + ofStandard.value) / (double(flash.memory.tensors) + ofFlash.value);
    const double saved = double(standard.memory.saved) / double(flash.memory.saved);
    std::int64_t first = 0, last = 0; // lengths at which the whole is 10 to 20 times less
    for (std::int64_t n = 64; n <= (1 << 18); n = n * 5 / 4) {
        const double ratio = totalRatio(device, answers, n);
        if (ratio >= 10 && ratio <= 20) {
            first = first == 0 ? n : first;
            last = n;
        }
    }
    const std::string when = total >= 10 && total <= 20 ? "holds here, inputs and outputs counted"
        : total > 20                                    ? "does not hold here: it takes less still"
                     : "does not hold here: inputs and outputs counted, it saves less";
    const std::string where = first == 0 ? std::string("no sequence has 10 to 20 times")
                                         : fmt::format("10 to 20 times is at sequences of about {} to {}", first, last);
    return quotedClaim("flash-less", when,
                       fmt::format("at {}: {} with inputs and outputs ({}), {} of what is saved for the backward "
                                   "({} against {}); {}",
                                   answers.shape.keys, timesText(total), ofStandard.side(), timesText(saved),
                                   bytesText(double(standard.memory.saved), 3),
                                   bytesText(double(flash.memory.saved), 3), where));
}

Claim faster(const Device& device, const AttentionAnswers& answers, const Measurement& measured)
{
    const JudgedNumber speedup =
        judgedNumber(measured, "speedup", answers.standard->cost.seconds / answers.flash->cost.seconds);
    const double ratio = speedup.value;
    const std::int64_t crossover = attentionCrossover(device, answers);
    const char* verdict = ratio > 4 ? "does not hold here: it is faster still"
        : ratio >= 3                ? "holds here"
        : ratio > 1                 ? "does not hold here: it gains less"
                                    : "does not hold here: it is slower";
    return quotedClaim("flash-faster", verdict,
                       fmt::format("{} here {}; by the model {}", speedup.side(), timesText(ratio),
                                   crossover > 0 ? fmt::format("flash is faster from sequence {} on", crossover)
                                                 : "flash is faster at no length"));
}

/// What flash takes beside its inputs at twice the length: twice as much when it is linear.
Claim linearMemory(const Device& device, const AttentionAnswers& answers)
{
    AttentionShape twice = answers.shape;
    twice.queries *= 2;
    twice.keys *= 2;
    const auto longer =
        attentionMemory(answers.flash->version, twice, answers.dtype, answers.pass, std::max(device.units, 1));
    const double grows =
        longer ? double(longer->peak(answers.pass)) / double(answers.flash->memory.peak(answers.pass)) : 0;
    const double perToken = double(answers.flash->memory.saved) / double(answers.shape.batch * answers.shape.queries);
    return quotedClaim(
        "flash-linear",
        !longer           ? "open: twice this length is too long to be counted"
            : grows < 1.7 ? "does not hold at this length: it takes less than proportionally"
            : grows < 2.3 ? "holds for what it takes beside its inputs; the operations stay quadratic"
                          : "does not hold at this length: it takes more than proportionally",
        fmt::format("at twice the length {} of the extra memory; {} per token saved; {} operations per token and key",
                    timesText(grows), bytesText(perToken, 3), 4 * answers.shape.headDim * answers.shape.heads));
}

/// The notes' own numbers: 8 × 16 heads × 4096².
Claim twoGigabytes(const AttentionAnswers& answers)
{
    const double elements = 8.0 * 16 * 4096 * 4096;
    const double bytes = elements * double(elementBytes(answers.dtype));
    return quotedClaim(
        "two-gigabytes",
        std::fabs(bytes / 2e9 - 1) < 0.1
            ? "holds for one of the two arrays"
            : fmt::format("does not hold: in {} one of the two arrays takes {}; it is 2 G elements, not bytes",
                          dtypeText(answers.dtype), quantityText(bytes, Unit::Byte, ByteStyle::Decimal)),
        fmt::format("{} elements: {} in a half format, {} in float32, for one of the two arrays",
                    quantityText(elements / 1e9, Unit::One) + "·10⁹",
                    quantityText(2 * elements, Unit::Byte, ByteStyle::Decimal),
                    quantityText(4 * elements, Unit::Byte, ByteStyle::Decimal)));
}

Claim sparse(const AttentionAnswers& answers)
{
    const double n = double(answers.shape.keys);
    const double rows = double(answers.shape.queryRows()), e = double(elementBytes(answers.dtype));
    const double kept = rows * std::min(std::sqrt(n), std::log2(std::max(2.0, n))) * e;
    return quotedClaim("attention-sparse",
                       kept > 4 * rows ? "holds for the scores that are kept; the answer is another one than "
                                         "attention's, and flash attention saves less with the same answer"
                                       : "holds at this length, and saves less than flash attention; the answer "
                                         "is another one than attention's",
                       fmt::format("full {}, n√n {}, n log₂ n {}; flash saves {}", bytesText(rows * n * e, 3),
                                   bytesText(rows * std::sqrt(n) * e, 3),
                                   bytesText(rows * std::log2(std::max(2.0, n)) * e, 3), bytesText(4 * rows, 3)));
}

Claim linearAttention(const AttentionAnswers& answers)
{
    const double n = double(answers.shape.keys), d = double(answers.shape.headDim);
    return quotedClaim("attention-linear",
                       n > d ? "holds, with another kernel in place of the softmax"
                             : "holds, but a sequence shorter than the head dimension gains nothing",
                       fmt::format("2 n d² against 2 n² d operations a head and product: {} of them at n = {}, d = {}",
                                   percentText(d / n, 3), n, d));
}

Claim complexity(const AttentionAnswers& answers)
{
    const double n = double(answers.shape.keys), d = double(answers.shape.headDim);
    const double ratio = (n * n * d + n * d * d) / (n * n + 4 * n * d);
    return quotedClaim(
        "attention-complexity",
        ratio > 0.5 && ratio < 2
            ? "holds here, where d is so small that it does not show"
            : fmt::format("does not hold: that is the count of operations, here {} what exists; the scores are "
                          "L² per head without d",
                          timesText(ratio)),
        fmt::format("L² d = {} numbers a head; what exists is L² = {} and 4 L d = {}",
                    quantityText(n * n * d, Unit::One), quantityText(n * n, Unit::One),
                    quantityText(4 * n * d, Unit::One)));
}

Claim traffic(const Device& device, const AttentionAnswers& answers)
{
    const double d = double(answers.shape.headDim);
    const double onChip = onChipBytes(device) / double(elementBytes(answers.dtype));
    const double ours = answers.standard->cost.bytes / answers.flash->cost.bytes;
    const double claimed = onChip / (d * d);
    return {"IO: standard Θ(N d + N²) accesses of memory, flash Θ(N² d² / M)", "Dao et al. 2022, Theorem 2",
            claimed <= 1               ? "does not apply here: d² is more than the chip holds"
                : ours > 1.1 * claimed ? "holds as a bound; the last cache keeps K and V, so DRAM sees less still"
                : ours > 0.5 * claimed ? "holds here"
                                       : "does not hold here: the inputs and outputs that both move outweigh it",
            fmt::format("N² / (N² d² / M) = {} with M = {} numbers; our count here: {} against {}, {}",
                        timesText(claimed), quantityText(onChip, Unit::One), bytesText(answers.standard->cost.bytes, 3),
                        bytesText(answers.flash->cost.bytes, 3), timesText(ours))};
}

Claim memoryEfficient(const AttentionAnswers& answers)
{
    const double rows = double(answers.shape.batch * answers.shape.heads);
    const double padded = std::ceil(double(answers.shape.queries) / 32) * 32;
    const bool isPadded = 4 * rows * padded > 1.25 * 4 * double(answers.shape.queryRows());
    return quotedClaim("xformers-efficient",
                       isPadded ? "does not hold at this length: rows are saved in whole 32"
                                : "holds, as for flash attention: keys in chunks (Rabe and Staats 2021), one number a "
                                  "row saved",
                       fmt::format("PyTorch's \"efficient\" kernel saves the log-sum-exp in rows of whole 32: {}; "
                                   "flash {}",
                                   bytesText(4 * rows * padded, 3),
                                   bytesText(4 * double(answers.shape.queryRows()), 3)));
}

} // namespace

std::vector<Claim> attentionClaims(const Device& device, const AttentionAnswers& answers, const Measurement& measured)
{
    std::vector<Claim> claims;
    if (answers.standard && answers.flash) {
        claims.push_back(lessMemory(device, answers, measured));
        claims.push_back(faster(device, answers, measured));
    }
    if (answers.flash)
        claims.push_back(linearMemory(device, answers));
    claims.push_back(twoGigabytes(answers));
    claims.push_back(memoryEfficient(answers));
    claims.push_back(sparse(answers));
    claims.push_back(linearAttention(answers));
    claims.push_back(complexity(answers));
    if (answers.standard && answers.flash)
        claims.push_back(traffic(device, answers));
    return claims;
}

} // namespace memscape
