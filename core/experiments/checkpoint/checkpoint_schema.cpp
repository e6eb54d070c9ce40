// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"
#include "core/experiments/checkpoint/checkpoint.h"
#include "core/experiments/memory/memory_parameters.h"

#include "core/base/text.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view statesPrefix = "slots:";

const ChoiceTable<LastSegment> lastSegments{
    {LastSegment::Kept, {"kept", "kept", "saved in the first pass: nothing of it runs twice"}},
    {LastSegment::Recomputed,
     {"recomputed", "recomputed", "run again like the others: every stage runs twice (the textbook's +33 %)"}}};

ParameterSpec strategySpec()
{
    ParameterSpec spec = choiceSpec(
        "strategy", "strategy",
        "The strategy that chooses which activations stay. Its schedule is replayed, byte by byte. every:K keeps the "
        "input of every K-th stage.",
        {{"none", "keep everything", "no forward runs twice: the most memory, the least time"},
         {"sqrt", "√n segments", "round(√L) segments, the inputs of segments stay (Chen et al. 2016)"},
         {"revolve", "Revolve",
          "binomial checkpointing: fewest forwards for a number of stored states, all stages equal"},
         {"mixed", "mixed Revolve", "as Revolve, but a slot may hold all that one stage saves (Maddison 2024)"},
         {"optimal", "optimal",
          "dynamic program over memory: the quickest schedule in which a kept value stays until its own backward; no "
          "other strategy at the same budget is quicker"},
         {"selective", "selective", "a knapsack: keep the values that cost most to recompute per byte"},
         {"adaptive", "adaptive (heuristic)",
          "no plan: when memory is short, values that are cheap, large and stale are dropped (DTR)"},
         {"exhaustive", "true optimum", "exhaustive search; up to seven stages"}},
        "optimal");
    spec.counted = "every";
    return spec;
}

ParameterSpec shared(std::string_view key, std::string standard)
{
    ParameterSpec spec = *findParameter(trainingSchema(), key);
    spec.help = "Of a model. " + spec.help;
    if (!standard.empty())
        spec.standard = std::move(standard);
    return spec;
}

tl::unexpected<Error> badBudget(std::string message)
{
    return fail("parameter.range", std::move(message),
                "give bytes (12GiB) or, in abstract units, a whole number; slots:N counts the states "
                "of uniform:L under revolve and mixed",
                "budget");
}

} // namespace

Schema checkpointSchema()
{
    return {textSpec("chain", "chain",
                     "The stages in a row that are run forward and backward: mlp:24x1024 (24 stages of "
                     "Linear 1024 and GELU, which measure runs "
                     "for real), gpt2 or another model (a network cut into its layers; model:PATH of a file), "
                     "uniform:64 (equal stages "
                     "in abstract units; "
                     "uniform:64,saved=4,forward=1,backward=2), or the path of a memscape-chain file.",
                     "mlp:24x1024", 1),
            strategySpec(),
            textSpec("budget", "budget",
                     "The memory that activations and their gradients may take at any moment, e.g. "
                     "600MiB; a whole number for chains in abstract "
                     "units. Empty: half-way between the least and what keeping everything takes. "
                     "slots:N: so many stored states, for revolve "
                     "and mixed on uniform:L.",
                     ""),
            integerSpec("slots", "slots",
                        "Into how many parts the dynamic program divides the budget of a chain in bytes, where "
                        "its stages are too many and too different to be solved on exact sizes. Sizes are "
                        "rounded to whole slots, so more slots find better schedules and take longer; the answer "
                        "says how far from the optimum it may be. A chain in abstract units has one slot a unit.",
                        {.least = 8, .most = 20000, .standard = "500", .scale = Scale::Log2}),
            choiceSpec("last_segment", "last segment",
                       "Of every:K: the segment next to the loss is reversed at once, so it can be kept in "
                       "the first pass.",
                       lastSegments.choices()),
            integerSpec("batch", "batch",
                        "Rows of the MLP chain, or sequences (pictures) of a model. 0: 512 rows, 8 sequences.",
                        {.most = 1048576,
                         .scale = Scale::Log2,
                         .words = {{"0", "automatic", "512 rows of an MLP, 8 sequences of a model"}}}),
            shared("sequence", "1024"),
            shared("precision", ""),
            shared("attention", ""),
            choiceSpec("layer_options", "ways per layer",
                       "Of a model: whether the optimal schedule may also keep a layer without its "
                       "attention core, which is then computed again "
                       "(Korthikanti et al. 2022, selective), where that is written out (attention=eager).",
                       {{"all", "all or nothing", "a layer's activations are all kept, or all recomputed"},
                        {"selective", "all, selective, nothing", "the solver chooses per layer"}}),
            assumeSpec()};
}

LastSegment lastSegmentOf(const Parameters& parameters)
{
    return lastSegments.of(parameters.choice("last_segment"));
}

Result<CheckpointBudget> parseBudget(const ChainSource& source, const Parameters& parameters)
{
    const std::string given(trimmed(parameters.text("budget")));
    const std::string& strategy = parameters.choice("strategy");
    const bool isBytes = source.chain.units.isBytes;
    CheckpointBudget budget;
    if (given.empty())
        return budget;
    budget.isGiven = true;
    const bool countsStates = given.starts_with(statesPrefix);
    const std::string amount = countsStates ? given.substr(statesPrefix.size()) : given;
    const auto number = countsStates || !isBytes ? parseNumber(amount) : parseQuantity(amount, Unit::Byte);
    if (!number)
        return badBudget(fmt::format("can't read \"{}\": {}", quotedForMessage(given), number.error().message));
    if (*number <= 0 || *number != std::floor(*number))
        return badBudget(fmt::format("\"{}\" is not a whole number above 0", quotedForMessage(given)));
    const auto whole = std::int64_t(std::min(*number, 0x1p60));
    if (countsStates && source.isUniform && (strategy == "revolve" || strategy == "mixed"))
        budget.states = whole;
    else if (countsStates && isBytes)
        return badBudget(fmt::format("slots:{} counts states, which is for revolve and mixed on uniform:L", amount));
    else
        budget.memory = whole;
    return budget;
}

} // namespace memscape
