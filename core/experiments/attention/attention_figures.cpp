// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/attention/attention.h"

#include "core/base/text.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view flashPaper = "Dao, Fu, Ermon, Rudra, Ré 2022, arXiv:2205.14135";

std::string prefixOf(const AttentionAnswer& answer)
{
    return fmt::format("{}_", attentionKindText(answer.problem.kind));
}

std::string labelOf(const AttentionAnswer& answer, std::string_view what)
{
    return fmt::format("{} {}", attentionKindText(answer.problem.kind), what);
}

/// The arrays that are alive in a pass, with their bytes.
std::vector<Term> arrayTerms(const Device& device, const AttentionAnswer& answer, bool isSaved)
{
    std::vector<Term> terms;
    const auto arrays =
        attentionArrays(answer.version, answer.problem.shape, answer.problem.dtype, std::max(device.units, 1));
    for (const AttentionArray& array : arrays.value_or(std::vector<AttentionArray>())) {
        if (isSaved && !array.isSaved)
            continue;
        const bool inBoth = array.inForward && array.inBackward;
        terms.push_back({array.name, double(array.bytes), Unit::Byte,
                         inBoth                ? "in the forward and the backward"
                             : array.inForward ? "in the forward"
                                               : "in the backward",
                         fmt::format("version {} of our {} attention", answer.version.number,
                                     attentionKindText(answer.problem.kind))});
    }
    return terms;
}

Why flopsWhy(const AttentionAnswer& answer)
{
    const AttentionShape& shape = answer.problem.shape;
    Why why;
    const char* times = answer.problem.pass == AttentionPass::Forward ? ""
        : answer.problem.pass == AttentionPass::Backward              ? "2.5 · "
                                                                      : "3.5 · ";
    why.formula = fmt::format("FLOPs = {}4 · scores · d", times);
    why.with = fmt::format("scores = {} heads × {} × {}{} = {}, d = {}", shape.batch * shape.heads, shape.queries,
                           shape.keys, shape.causal ? ", what a causal mask leaves" : "",
                           numberText(shape.visibleScores()), shape.headDim);
    why.terms = {
        {"scores", shape.visibleScores(), Unit::One, "pairs of a query and a key that is not masked", "the parameters"},
        {"d", double(shape.headDim), Unit::One, "head dimension", "the parameters"}};
    why.source = "the convention of the FlashAttention papers: two products forward, five backward";
    why.omits = {"the softmax", "scores computed behind a mask, and recomputation"};
    return why;
}

Why bytesWhy(const AttentionAnswer& answer)
{
    Why why;
    why.formula = answer.cost.bytesFormula;
    std::vector<std::string> parts;
    for (const AttentionStep& step : answer.cost.steps) {
        parts.push_back(fmt::format("{} ({})", bytesText(step.bytes), step.name));
        why.terms.push_back({step.name, step.bytes, Unit::Byte, "read and written", "arrays × times they pass"});
    }
    why.with = "= " + join(parts, " + ");
    why.source = fmt::format("{}, section 3", flashPaper);
    why.omits = {"caches that keep a small S or P between two passes"};
    return why;
}

Why peakWhy(const Device& device, const AttentionAnswer& answer)
{
    Why why;
    why.formula = "extra peak = the most bytes alive at once besides Q, K, V, O and their gradients";
    why.with = fmt::format("= max({} forward, {} backward) of the selected passes; beside {} of inputs and outputs",
                           bytesText(double(answer.memory.forward)), bytesText(double(answer.memory.backward)),
                           bytesText(double(answer.memory.tensors)));
    why.terms = arrayTerms(device, answer, false);
    why.source = "the arrays that the program takes from its pool, each rounded up to 512 B";
    why.omits = {"tiles: shared memory on a GPU, the cores' caches on a host"};
    return why;
}

Why savedWhy(const Device& device, const AttentionAnswer& answer)
{
    Why why;
    const AttentionShape& shape = answer.problem.shape;
    const bool isStandard = answer.problem.kind == AttentionKind::Standard;
    const char* what = isStandard ? "P: batch · heads · queries · keys · e" : "L: batch · heads · queries · 4 B";
    why.formula = fmt::format("saved = {}", what);
    why.with = isStandard ? fmt::format("= {} · {} · {} · {} · {} B", shape.batch, shape.heads, shape.queries,
                                        shape.keys, elementBytes(answer.problem.dtype))
                          : fmt::format("= {} · {} · {} · 4 B", shape.batch, shape.heads, shape.queries);
    why.terms = arrayTerms(device, answer, true);
    why.source = flashPaper;
    why.omits = {"Q, K, V and O, which both kinds keep"};
    return why;
}

double totalBytes(const AttentionAnswer& answer)
{
    return double(answer.memory.tensors) + double(answer.memory.peak(answer.problem.pass));
}

/// Whether it fits is said where the sum is.
Why totalWhy(const Device& device, const AttentionAnswer& answer)
{
    Why why;
    why.formula = "total = Q, K, V, O and what the pass adds of their gradients + extra peak";
    const MemoryLevel* dram = device.dram();
    const double capacity = dram ? dram->capacity.valueOr(0) : 0;
    const double total = totalBytes(answer);
    std::string fits = "how much memory the device has is not known";
    if (capacity > 0)
        fits = fmt::format("{} of {}: it {}", percentText(total / capacity, 3), bytesText(capacity),
                           total <= capacity ? "fits" : "does not fit");
    why.with = fmt::format("= {} + {}; {}", bytesText(double(answer.memory.tensors)),
                           bytesText(double(answer.memory.peak(answer.problem.pass))), fits);
    why.source = "the arrays that the program takes, each rounded up to 512 B";
    why.omits = {"the driver's context and other programs in the device's memory"};
    return why;
}

Why timeWhy(const AttentionAnswer& answer)
{
    Why why;
    why.formula = answer.cost.timeFormula;
    std::vector<std::string> parts;
    for (const AttentionStep& step : answer.cost.steps)
        parts.push_back(fmt::format("{} ({})", secondsText(step.seconds), step.name));
    why.with = "= " + join(parts, " + ");
    why.terms = answer.cost.terms;
    why.source = answer.cost.timeSource;
    why.omits = answer.cost.omits;
    return why;
}

void addKind(Figures& figures, const Device& device, const AttentionAnswer& answer)
{
    const std::string prefix = prefixOf(answer);
    const double flops = attentionFlops(answer.problem.shape, answer.problem.pass);
    const auto add = [&](std::string_view key, std::string_view label, Unit unit, double value, Why why) {
        figures.push_back(
            figureOf(fmt::format("{}{}", prefix, key), labelOf(answer, label), unit, value, std::move(why)));
    };
    add("time", "time", Unit::Second, answer.cost.seconds, timeWhy(answer));
    add("extra_peak", "extra memory", Unit::Byte, double(answer.memory.peak(answer.problem.pass)),
        peakWhy(device, answer));
    add("saved_for_backward", "saved for backward", Unit::Byte, double(answer.memory.saved), savedWhy(device, answer));
    add("total_bytes", "memory in all", Unit::Byte, totalBytes(answer), totalWhy(device, answer));
    add("hbm_bytes", "memory traffic", Unit::Byte, answer.cost.bytes, bytesWhy(answer));
    add("flops", "operations", Unit::One, flops, flopsWhy(answer));
    Why rate = timeWhy(answer);
    rate.formula = "rate = operations / time";
    rate.with = fmt::format("= {} / {}", numberText(flops), secondsText(answer.cost.seconds));
    add("rate", "rate", Unit::FlopPerSecond, flops / answer.cost.seconds, rate);
    markCounted(figures, {"standard_flops", "flash_flops"});
}

/// What other ways to attend would save for their backward: the number of scores is their whole
/// point.
Figure otherWay(const AttentionAnswers& answers, std::string key, std::string label, double perRow, std::string formula)
{
    const AttentionShape& shape = answers.shape;
    const double e = double(elementBytes(answers.dtype));
    Why why;
    why.formula = std::move(formula);
    why.with = fmt::format("= {} rows · {} · {} B", shape.queryRows(), numberText(std::round(perRow * 100) / 100), e);
    why.terms = {{"n", double(shape.keys), Unit::One, "keys", "the parameters"}};
    why.source = "the number of scores that the pattern keeps, stored as standard attention stores P";
    why.omits = {"indices of the pattern, blocks that are not full, and that its answer is another "
                 "one than attention's"};
    return figureOf(std::move(key), std::move(label), Unit::Byte, double(shape.queryRows()) * perRow * e,
                    std::move(why));
}

void addComparison(Figures& figures, const Device& device, const AttentionAnswers& answers)
{
    const AttentionAnswer &standard = *answers.standard, &flash = *answers.flash;
    Why speed;
    speed.formula = "speedup = standard time / flash time";
    speed.with = fmt::format("= {} / {}", secondsText(standard.cost.seconds), secondsText(flash.cost.seconds));
    speed.source = "the two predictions";
    figures.push_back(
        figureOf("speedup", "flash is faster by", Unit::One, standard.cost.seconds / flash.cost.seconds, speed));
    Why crossover;
    crossover.formula = "the shortest power of two from which flash time < standard time";
    crossover.with = "everything else as it is";
    crossover.source = "the two predictions";
    crossover.omits = {"what lies between two powers of two"};
    const auto found = attentionCrossover(device, answers);
    crossover.with = found > 0 ? fmt::format("from sequence {} on, everything else as it is", found)
                               : "flash is not faster at any length up to 131,072";
    figures.push_back(figureOf("crossover", "flash is faster from", Unit::One, double(found), crossover));
}

} // namespace

Figures attentionFigures(const Device& device, const AttentionAnswers& answers)
{
    Figures figures;
    if (answers.standard)
        addKind(figures, device, *answers.standard);
    if (answers.flash)
        addKind(figures, device, *answers.flash);
    if (answers.standard && answers.flash)
        addComparison(figures, device, answers);
    const double n = double(answers.shape.keys), d = double(answers.shape.headDim);
    figures.push_back(
        otherWay(answers, "sqrt_sparse_saved", "sparse n √n would save", std::sqrt(n), "n · √n scores a head"));
    figures.push_back(otherWay(answers, "log_sparse_saved", "sparse n log₂ n would save", std::max(1.0, std::log2(n)),
                               "n · log₂ n scores a head"));
    figures.push_back(
        otherWay(answers, "linear_saved", "linear attention would save", d, "φ(Q), n · d numbers a head"));
    return figures;
}

} // namespace memscape
