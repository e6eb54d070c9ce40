// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_textbook.h"
#include "core/claims/claim_quotes.h"
#include "core/experiments/common/sources.h"

#include "core/training/textbook.h"

#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

std::string decimalBytes(double bytes)
{
    return quantityText(bytes, Unit::Byte, ByteStyle::Decimal, 3);
}

bool isTransformer(const ModelDescription& model)
{
    return (model.family == Family::Decoder || model.family == Family::Encoder) && model.heads > 0 && model.hidden > 0;
}

const PipelineRank* fullest(const TrainingAnswer& answer)
{
    return answer.ranks.empty() ? nullptr : &answer.ranks[std::size_t(answer.rank())];
}

textbook::Transformer transformerOf(const TrainingAnswer& answer)
{
    textbook::Transformer made;
    made.layers = double(answer.model.layers);
    made.hidden = double(answer.model.hidden);
    made.heads = double(answer.model.heads);
    made.sequence = double(answer.setup.build.sequence);
    made.vocabulary = double(answer.model.vocab);
    made.batch = double(answer.setup.build.batch);
    if (const PipelineRank* const rank = fullest(answer)) // passes of a chunk that are in flight
        made.layers = double(rank->inFlight * rank->layers / answer.setup.step.plan.virtualStages);
    made.tensorParallel = double(answer.setup.step.plan.tensorParallel);
    return made;
}

textbook::Kept keptBy(const TrainingAnswer& answer)
{
    const bool sequence = answer.setup.step.plan.sequenceParallel;
    switch (answer.setup.step.checkpointing.kind) {
    case Checkpointing::None: break;
    case Checkpointing::AttentionCore: return sequence ? textbook::Kept::SelectiveSequence : textbook::Kept::Selective;
    case Checkpointing::Layers:
    case Checkpointing::SecondLayers:
    case Checkpointing::Operators:
    case Checkpointing::SquareRoot: return textbook::Kept::Full;
    }
    return sequence ? textbook::Kept::AllSequence : textbook::Kept::All;
}

std::string keptFormula(textbook::Kept kept)
{
    switch (kept) {
    case textbook::Kept::All: return "L · s b h (10 + 24/t + 5 a s / (h t))";
    case textbook::Kept::AllSequence: return "L · s b h / t · (34 + 5 a s / h)";
    case textbook::Kept::Selective: return "L · s b h (10 + 24/t)";
    case textbook::Kept::SelectiveSequence: return "L · s b h · 34/t";
    case textbook::Kept::Full: break;
    }
    return "L · 2 s b h";
}

/// What the formula takes for granted and this step does otherwise.
std::string activationDifference(const TrainingAnswer& answer)
{
    std::string text = "the formula counts GPT's block in 16 bits with dropout";
    const BuildOptions& build = answer.setup.build;
    if (build.weights == DType::Float32 && !build.autocast)
        text += "; here every element has 4 bytes";
    if (build.autocast)
        text += "; autocast keeps norms and softmax in 32 bits, and casts of the weights";
    if (build.dropout == 0)
        text += "; here is no dropout, so no masks";
    const bool isFused = build.attention == AttentionKernel::Library
        ? callsFusedAttention(answer.model, build.transformers)
        : build.attention != AttentionKernel::Eager;
    if (isFused)
        text += "; " + std::string("this attention writes no N × N matrices");
    if (answer.model.gated)
        text += "; the feed-forward is gated: three matrices of another width";
    if (answer.model.norm == NormKind::RmsNorm)
        text += "; RMSNorm written in single operators keeps a 32-bit copy";
    if (answer.setup.step.checkpointing.kind == Checkpointing::Layers && answer.setup.step.checkpointing.every > 1)
        text += "; only every few blocks keep their input, and a whole segment is in memory while it is recomputed";
    if (answer.setup.step.checkpointing.kind == Checkpointing::SecondLayers)
        text += "; every second block keeps everything";
    if (answer.setup.step.checkpointing.kind == Checkpointing::Operators)
        text += "; results of attention and of every second product are kept besides each block's input";
    if (const PipelineRank* const rank = fullest(answer))
        text += fmt::format("; L are the layers of the {} passes in flight on this rank", rank->inFlight);
    return text + "; logits, loss and temporaries are outside of it";
}

TextbookLine stateLine(const TrainingAnswer& answer)
{
    const Plan& plan = answer.setup.step.plan;
    const KeptBytes& kept = answer.simulation.kept;
    TextbookLine line;
    const double count = double(elementCount(answer.simulation.parameters()));
    line.formula =
        plan.zeroStage == 0 ? "16 Ψ" : fmt::format("ZeRO stage {} over N = {}", plan.zeroStage, plan.shards());
    line.source = "Rajbhandari et al. 2020, Table 1";
    line.value = textbook::zeroBytes(count, plan.shards(), plan.zeroStage);
    line.ours = double(kept.device());
    line.difference = std::abs(line.value - line.ours) <= 0.001 * line.value
        ? "none: the same bytes per parameter"
        : fmt::format("the formula is mixed precision with Adam; this recipe keeps {} bytes a parameter on the device",
                      numberText(std::round(100 * line.ours / count) / 100));
    return line;
}

TextbookLine notesLine(const TrainingAnswer& answer, double activations)
{
    TextbookLine line;
    line.formula = "4 M + activations";
    line.source = managementNotes;
    line.value = 16.0 * double(elementCount(answer.simulation.parameters())) + activations;
    line.ours = double(answer.simulation.allocatedBytes());
    line.difference = "weights, gradients and two moments of 4 bytes each; temporaries, logits and the optimizer's "
                      "intermediate results are left out";
    return line;
}

Claim claim(std::string_view id, bool holds, std::string otherwise, std::string ours)
{
    return quotedClaim(id, holds ? "holds" : std::move(otherwise), std::move(ours));
}

/// Weights in every copy that the step keeps of them, against 4 bytes each.
Claim halvedParameters(const TrainingAnswer& answer)
{
    const Plan& plan = answer.setup.step.plan;
    Plan single = plan;
    single.precision = Precision::Fp32;
    const KeptBytes &kept = answer.simulation.kept, whole = keptBytes(answer.simulation.parameters(), single);
    const double ours = double(kept.weights + kept.master), full = double(whole.weights + whole.master);
    return claim("amp-halves-parameters", ours < 0.55 * full,
                 isAutocast(plan.precision) ? "does not hold: autocast keeps fp32 weights and adds half copies of them"
                     : kept.master > 0      ? "does not hold: the master copy adds 4 bytes to the 2 of each weight"
                                            : "does not hold: the weights are not halved",
                 fmt::format("weights {} and a master copy of {}, in fp32 {}", decimalBytes(double(kept.weights)),
                             decimalBytes(double(kept.master)), decimalBytes(full)));
}

} // namespace

TextbookFigures textbookFigures(const TrainingAnswer& answer)
{
    TextbookFigures made;
    const double ours = double(highestBytes(answer.simulation.trace, Category::Activations));
    if (isTransformer(answer.model)) {
        const textbook::Kept kept = keptBy(answer);
        const textbook::Transformer model = transformerOf(answer);
        made.activations = model.layers * textbook::layerBytes(model, kept);
        made.activationsFormula = keptFormula(kept);
        made.lines.push_back({made.activationsFormula, "Korthikanti et al. 2022, Table 2", *made.activations, ours,
                              activationDifference(answer)});
    }
    const TextbookLine states = stateLine(answer);
    if (made.activations)
        made.total = states.value + *made.activations;
    made.lines.push_back(states);
    made.lines.push_back(notesLine(answer, ours));
    return made;
}

void appendTextbook(Figures& figures, const TextbookFigures& textbook)
{
    Why activations{textbook.activationsFormula,
                    textbook.activations ? "= " + decimalBytes(*textbook.activations) : std::string(),
                    {},
                    "Korthikanti et al. 2022, Table 2",
                    {"everything outside of the layers: logits, loss, temporaries"}};
    if (!textbook.activations)
        activations.formula = "no closed formula for this family";
    Why total{"states (ZeRO) + activations (Korthikanti)",
              textbook.total ? "= " + decimalBytes(*textbook.total) : std::string(),
              {},
              "Rajbhandari et al. 2020; Korthikanti et al. 2022",
              {"temporaries, logits, the allocator, the context"}};
    if (!textbook.total)
        total.with = "no closed formula for the activations of this family, so none for the total";
    figures.push_back(figureOf("textbook_activations", "textbook activations", Unit::Byte,
                               textbook.activations.value_or(nan), activations));
    figures.push_back(figureOf("textbook_total", "textbook total", Unit::Byte, textbook.total.value_or(nan), total));
}

Json textbookJson(const TextbookFigures& textbook)
{
    Json lines = Json::array();
    for (const TextbookLine& line : textbook.lines) {
        lines.push_back({{"formula", line.formula},
                         {"source", line.source},
                         {"value", jsonNumber(line.value)},
                         {"unit", "B"},
                         {"ours", jsonNumber(line.ours)},
                         {"difference", line.difference}});
    }
    return lines;
}

std::vector<Claim> trainingClaims(const TrainingAnswer& answer, const TrainingAnswer* halved)
{
    std::vector<Claim> made;
    const double allocated = double(answer.simulation.allocatedBytes());
    const double activations = double(highestBytes(answer.simulation.trace, Category::Activations));
    if (halved) {
        const double ratio = double(halved->simulation.allocatedBytes()) / allocated;
        made.push_back(
            claim("oom-halve", ratio < 0.55, "does not hold: only what belongs to the batch is halved",
                  fmt::format("half the batch takes {} of the memory: {} instead of {}", percentText(ratio),
                              decimalBytes(double(halved->simulation.allocatedBytes())), decimalBytes(allocated))));
    }
    const double count = double(elementCount(answer.simulation.parameters()));
    // The quote is of FP32 throughout: beside any other recipe it would be judged by another question.
    if (count > 6e9 && count < 8e9 && answer.setup.step.plan.precision == Precision::Fp32) {
        const double states = double(answer.simulation.kept.device());
        made.push_back(claim("seven-billion-single", std::abs(allocated / 120e9 - 1) < 0.1,
                             allocated > 120e9 ? "does not hold for this step: it needs more"
                                               : "does not hold for this step: it needs less",
                             fmt::format("here {}: {} of states, {} of activations", decimalBytes(allocated),
                                         decimalBytes(states), decimalBytes(activations))));
    }
    const BuildOptions& build = answer.setup.build;
    if (answer.model.architecture == "bert" && answer.model.layers == 12 && build.batch == 32
        && build.sequence == 512) {
        made.push_back(claim("bert-activations", std::abs(activations / 8e9 - 1) < 0.1,
                             activations > 8e9 ? "does not hold with this attention, precision and dropout: it is more"
                                               : "does not hold with this attention, precision and dropout: it is less",
                             fmt::format("here {}", decimalBytes(activations))));
    }
    const Plan& plan = answer.setup.step.plan;
    if (plan.precision != Precision::Fp32 && answer.simulation.kept.weights > 0)
        made.push_back(halvedParameters(answer));
    return made;
}

} // namespace memscape
