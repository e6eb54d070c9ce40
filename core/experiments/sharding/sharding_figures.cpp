// SPDX-License-Identifier: Apache-2.0
// The figures of `sharding` with their reasons, and its claims.
#include "core/claims/claim_quotes.h"
#include "core/experiments/common/explain.h"
#include "core/experiments/sharding/sharding.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* zeroPaper = "Rajbhandari et al. 2020 (ZeRO), section 5 and 7";

Term alphaTerm(const ShardingAnswer& answer)
{
    const ShardingLink& link = answer.asked.link;
    return {"α", answer.step.rate.latency, Unit::Second, "of one step of a ring", link.source};
}

Term betaTerm(const ShardingAnswer& answer)
{
    const ShardingLink& link = answer.asked.link;
    return {"β", answer.step.rate.bandwidth, Unit::BytePerSecond, "of one rank, one direction; " + link.label,
            link.source};
}

/// "ring, Simple, 24 channels"
std::string chosenText(const NcclChoice& choice)
{
    return fmt::format("{}, {} channels", choice.text(), choice.channels);
}

/// Each kind of collective with NCCL's choice for the largest of its payloads.
std::vector<Term> ncclTerms(const ShardingAnswer& answer)
{
    const ShardingLink& link = answer.asked.link;
    std::vector<Term> terms;
    std::vector<ShardCollective> largest;
    for (const ShardCollective& one : answer.step.collectives()) {
        const auto alike = std::ranges::find_if(
            largest, [&](const ShardCollective& other) { return other.kind == one.kind && other.what == one.what; });
        if (alike == largest.end())
            largest.push_back(one);
        else if (one.payload() > alike->payload())
            *alike = one;
    }
    for (const ShardCollective& one : largest) {
        const ShardNccl asked = ncclOf(one, link);
        if (const auto choice = ncclChoiceOf(asked.asked, asked.peer, link.machines, *link.nccl))
            terms.push_back(
                {fmt::format("{}, {}", one.what, collectiveText(one.kind)), choice->seconds(one.payload()),
                 Unit::Second,
                 fmt::format("NCCL's {}: {} + {} / {}", chosenText(*choice), secondsText(choice->latency),
                             bytesText(one.payload()), quantityText(choice->bandwidth, Unit::BytePerSecond)),
                 "NCCL's cost model (src/graph/tuning.cc)"});
    }
    return terms;
}

/// Where over the size of a payload NCCL changes what it does, for the collective that sends most.
std::vector<Term> ncclRangeTerms(const ShardingAnswer& answer)
{
    const ShardingLink& link = answer.asked.link;
    const ShardCollective* most = nullptr;
    const std::vector<ShardCollective> all = answer.step.collectives();
    for (const ShardCollective& one : all) {
        if (one.kind != CollectiveKind::HostCopy && (!most || one.payload() > most->payload()))
            most = &one;
    }
    if (!most || !link.nccl)
        return {};
    const ShardNccl asked = ncclOf(*most, link);
    std::vector<Term> terms;
    for (const NcclRange& range : ncclRangesOf(asked.asked, asked.peer, link.machines, *link.nccl))
        terms.push_back(
            {fmt::format("from {}", bytesText(range.from)), range.choice.bandwidth, Unit::BytePerSecond,
             fmt::format("{} of {} ranks: {}", collectiveText(most->kind), most->ranks, chosenText(range.choice)),
             "NCCL's cost model"});
    return terms;
}

/// What one step of a ring waits for beside its bytes.
double stepLatency(const ShardingAnswer& answer)
{
    const ShardingLink& link = answer.asked.link;
    if (link.nccl) {
        for (const ShardCollective& one : answer.step.collectives()) {
            const ShardNccl asked = ncclOf(one, link);
            if (const auto choice = ncclChoiceOf(asked.asked, asked.peer, link.machines, *link.nccl))
                return choice->latency / double(ringSteps(one.kind, one.ranks));
        }
    }
    return answer.step.rate.latency;
}

/// Σ of a ring's α and β for every collective: what stands in textbooks.
double ringOfTextbooks(const ShardingAnswer& answer)
{
    double sum = 0;
    for (const ShardCollective& one : answer.step.collectives())
        if (one.kind != CollectiveKind::HostCopy)
            sum += one.count * ringSeconds(one.kind, one.payload(), one.ranks, answer.step.rate);
    return sum;
}

/// What of the model stage `zero` divides by N, in words.
const char* dividedText(int zero)
{
    switch (zero) {
    case 0: return "nothing is divided";
    case 1: return "optimizer state and master weights are divided by N";
    case 2: return "gradients, optimizer state and master weights are divided by N";
    default: return "weights, gradients, optimizer state and master weights are divided by N";
    }
}

Why storedWhy(const ShardingAnswer& answer)
{
    const KeptBytes& kept = answer.kept;
    Why why;
    why.formula = "stored = weights + gradients + master weights + optimizer state, of one rank";
    why.with = fmt::format("= {} + {} + {} + {}", bytesText(double(kept.weights)), bytesText(double(kept.gradients)),
                           bytesText(double(kept.master)), bytesText(double(kept.state)));
    const Plan& plan = answer.asked.plan();
    why.terms = {{"N", double(plan.dataParallel), Unit::One, dividedText(plan.zeroStage), zeroPaper}};
    if (plan.tensorParallel > 1)
        why.terms.push_back({"t", double(plan.tensorParallel), Unit::One,
                             "tensor-parallel ranks: each has a part of every matrix", "Shoeybi et al. 2019"});
    if (kept.host > 0)
        why.terms.push_back({"host", double(kept.host), Unit::Byte, "kept in the host's memory instead", "the plan"});
    why.source = zeroPaper;
    why.omits = {"activations, which have a figure of their own", "buckets and buffers of the collectives"};
    return why;
}

Why gatheredWhy(const ShardingAnswer& answer)
{
    Why why;
    why.formula = "the most bytes of whole weights that a rank holds at one moment";
    why.with = answer.step.gathered > 0
        ? fmt::format("= {}, {} layers at a time{}", bytesText(double(answer.step.gathered)), answer.asked.prefetch + 1,
                      answer.asked.plan().isByFsdp() ? " beside the root (what lies outside of layers)" : "")
        : std::string("= 0 B: the weights that a rank uses are its own");
    why.source = "Zhao et al. 2023 (FSDP)";
    why.omits = {"FSDP 2's buffers beside its parameters, and how far DeepSpeed gathers ahead: see Memory budget"};
    return why;
}

/// Alike collectives together: what they are, how many, and what a rank sends in them.
std::vector<Term> collectiveTerms(const ShardingAnswer& answer)
{
    struct Sum
    {
        std::string symbol;
        double times = 0, sent = 0, payload = 0;
        std::int64_t ranks = 1;
    };
    std::vector<Sum> sums;
    for (const ShardCollective& one : answer.step.collectives()) {
        const std::string symbol =
            fmt::format("{}, {}, {}", one.what, shardPhaseText(one.phase), collectiveText(one.kind));
        auto sum = std::ranges::find(sums, symbol, &Sum::symbol);
        if (sum == sums.end())
            sum = sums.insert(sums.end(), Sum{symbol, 0, 0, 0, one.ranks});
        sum->times += one.count;
        sum->sent += one.sentBytes();
        sum->payload += one.payload() * one.count;
    }
    std::vector<Term> terms;
    for (const Sum& sum : sums)
        terms.push_back({sum.symbol, sum.sent, Unit::Byte,
                         fmt::format("{} of them, {} together{}", countText(sum.times), bytesText(sum.payload),
                                     sum.ranks > 1 ? fmt::format(", over {} ranks", sum.ranks) : std::string()),
                         "the plan"});
    return terms;
}

Why sentWhy(const ShardingAnswer& answer)
{
    Why why;
    why.formula = "sent = Σ over collectives: steps × ⌈payload / N⌉; all-reduce 2 (N − 1) steps, others N − 1";
    why.with = "= " + bytesText(answer.step.sent);
    why.terms = collectiveTerms(answer);
    why.source = zeroPaper;
    if (answer.asked.link.nccl)
        why.omits.emplace_back("in a tree some ranks send more than others, and a switch that reduces halves it: this "
                               "is a ring's");
    why.omits.push_back("the loss and norms");
    return why;
}

Why communicationWhy(const ShardingAnswer& answer)
{
    Why why;
    const ShardStep& step = answer.step;
    const bool isByNccl = answer.asked.link.nccl.has_value();
    why.formula = isByNccl ? "Σ over collectives: latency + payload / bandwidth of what NCCL chooses, the quickest by "
                             "its own cost model"
                           : "Σ over collectives: steps × (α + ⌈payload / N⌉ / β)";
    why.with = "= " + secondsText(step.communication);
    if (isByNccl) {
        why.terms = ncclTerms(answer);
        why.terms.push_back(betaTerm(answer));
        if (answer.asked.ranks() > 1)
            why.terms.push_back({"ring of textbooks", ringOfTextbooks(answer), Unit::Second,
                                 "Σ steps × (α + ⌈payload / N⌉ / β), with all of β and the α of a copy",
                                 "Patarasuk and Yuan 2009"});
    } else {
        why.terms = {alphaTerm(answer), betaTerm(answer)};
    }
    if (answer.step.copied > 0)
        why.terms.push_back(
            {"host", answer.asked.hostBandwidth, Unit::BytePerSecond, "of copies to and from the host", "the device"});
    why.source = isByNccl ? "NCCL, src/graph/tuning.cc; a measurement is a ring of copies between GPUs, without NCCL; "
                            "not yet run on GPUs"
                          : "Patarasuk and Yuan 2009";
    why.omits = {"ranks that arrive late"};
    return why;
}

Why exposedWhy(const ShardingAnswer& answer)
{
    const ShardStep& step = answer.step;
    Why why;
    why.formula = "exposed = time of the step − what the rank computes";
    why.with =
        fmt::format("= {} − {} = {}", secondsText(step.end), secondsText(step.compute), secondsText(step.exposed()));
    why.terms = answer.asked.link.nccl ? ncclTerms(answer) : std::vector<Term>{alphaTerm(answer)};
    why.terms.push_back(betaTerm(answer));
    why.source = answer.asked.link.isSerial
        ? "the ranks' own cores move the bytes: nothing is computed meanwhile"
        : "timeline of units and collectives: buckets behind backward, weights gathered ahead";
    why.omits = {"kernels that run slower beside a collective", "the update on the host, where it is offloaded"};
    return why;
}

Why computeWhy(const ShardingAnswer& answer)
{
    Why why;
    why.formula = "Σ over units: forward + backward (recomputation included), and the update";
    why.with = "= " + secondsText(answer.step.compute);
    why.source = "each operator max(FLOPs / rate, bytes / bandwidth) + launch: Williams, Waterman, Patterson 2009";
    if (answer.asked.link.isSerial)
        why.source += "; a rank computes on one core";
    why.omits = {"Python and dispatch on the host", "cores that share a memory"};
    return why;
}

Why ratioWhy(const ShardingAnswer& answer)
{
    const KeptBytes& alone = answer.network->alone;
    Why why;
    why.formula = "what one rank stores of the whole model / what each of the ranks stores";
    why.with = fmt::format("= {} / {}", bytesText(double(alone.device())), bytesText(double(answer.kept.device())));
    why.terms = {{"N", double(answer.asked.ranks()), Unit::One, dividedText(answer.asked.plan().zeroStage), zeroPaper}};
    why.source = zeroPaper;
    why.omits = {"activations, which data parallelism does not divide"};
    return why;
}

Why speedupWhy(const ShardingAnswer& answer)
{
    Why why;
    why.formula = "examples a second of all ranks / of one rank that has everything";
    why.with = fmt::format("= {} × {} / {}", answer.asked.plan().dataParallel,
                           secondsText(answer.network->aloneSeconds), secondsText(answer.step.end));
    why.source = "every data-parallel rank has its own batch";
    if (answer.asked.plan().zeroStage > 0)
        why.source += "; with ZeRO it updates its own part alone, so that more than N is possible";
    why.omits = {"whether one rank has the memory for it"};
    return why;
}

/// B/s that each rank's link carries: what NCCL's tests call busbw.
double busBandwidth(double sent, double seconds)
{
    return sent > 0 && seconds > 0 ? sent / seconds : nan;
}

/// The same for one of its terms.
Why partWhy(const ShardingAnswer& answer, double bytes)
{
    Why why = storedWhy(answer);
    why.formula = "Σ over parameters: elements that a rank keeps × bytes";
    why.with = "= " + bytesText(bytes);
    return why;
}

void addTimes(Figures& figures, const ShardingAnswer& answer)
{
    const ShardStep& step = answer.step;
    const double kept = double(answer.kept.device());
    figures.push_back(figureOf("step_time", "step time", Unit::Second, step.end, exposedWhy(answer)));
    figures.push_back(figureOf("compute_time", "computing", Unit::Second, step.compute, computeWhy(answer)));
    Why hidden;
    hidden.formula = "hidden = collectives − exposed";
    hidden.with = fmt::format("= {} − {}", secondsText(step.communication), secondsText(step.exposed()));
    hidden.source = "timeline";
    figures.push_back(figureOf("hidden_time", "hidden", Unit::Second, std::max(0.0, step.hidden()), std::move(hidden)));
    figures.push_back(figureOf("memory_ratio", "times less memory", Unit::One,
                               kept > 0 ? double(answer.network->alone.device()) / kept : nan, ratioWhy(answer)));
    figures.push_back(figureOf("speedup", "speedup", Unit::One,
                               double(answer.asked.plan().dataParallel) * answer.network->aloneSeconds / step.end,
                               speedupWhy(answer)));
}

void addMemory(Figures& figures, const ShardingAnswer& answer)
{
    const KeptBytes& kept = answer.kept;
    const auto part = [&](const char* key, const char* label, std::int64_t bytes) {
        figures.push_back(figureOf(key, label, Unit::Byte, double(bytes), partWhy(answer, double(bytes))));
    };
    part("weights", "weights", kept.weights);
    part("gradients", "gradients", kept.gradients);
    part("master_weights", "master weights", kept.master);
    part("optimizer_state", "optimizer state", kept.state);
    const double activations = double(answer.network->activations), gathered = double(answer.step.gathered);
    Why simulated;
    simulated.formula = "most bytes that results of the forward pass hold at one moment";
    simulated.with = "= " + bytesText(activations);
    simulated.source = "the simulated step, as on the page Memory budget";
    figures.push_back(figureOf("activations", "activations", Unit::Byte, activations, std::move(simulated)));
    Why sum;
    sum.formula = "stored + gathered + activations";
    sum.with =
        fmt::format("= {} + {} + {}", bytesText(double(kept.device())), bytesText(gathered), bytesText(activations));
    sum.source = "sum";
    sum.omits = {"temporaries, buckets and the allocator: see Memory budget",
                 "that their peaks are at different moments"};
    figures.push_back(figureOf("memory", "memory of a rank", Unit::Byte, double(kept.device()) + gathered + activations,
                               std::move(sum)));
    part("on_host", "in the host's memory", kept.host);
    Why copied = sentWhy(answer);
    copied.formula = "Σ over copies to the host and from it";
    copied.with = "= " + bytesText(answer.step.copied);
    figures.push_back(figureOf("copied", "over the host's link", Unit::Byte, answer.step.copied, std::move(copied)));
}

/// Of the figures that a measurement has, too.
void explainMeasured(Figures& figures, const ShardingAnswer& answer)
{
    const ShardStep& step = answer.step;
    explain(figures, "stored", storedWhy(answer));
    explain(figures, "gathered", gatheredWhy(answer));
    explain(figures, "sent", sentWhy(answer));
    explain(figures, "communication_time", communicationWhy(answer));
    explain(figures, "exposed_time", exposedWhy(answer));
    Why latency;
    const bool isByNccl = answer.asked.link.nccl.has_value();
    latency.formula = isByNccl ? "latency of the step's first collective / steps of its ring" : "α of the link";
    latency.with = "= " + secondsText(stepLatency(answer));
    latency.terms = isByNccl ? ncclTerms(answer) : std::vector<Term>{alphaTerm(answer)};
    latency.source = isByNccl ? "NCCL, src/graph/tuning.cc" : answer.asked.link.source;
    explain(figures, "latency", std::move(latency));
    Why bus;
    bus.formula =
        "sent / collectives: what NCCL's tests call bus bandwidth, 2 (N − 1) / N × payload / time of an all-reduce";
    bus.with = fmt::format("= {} / {}", bytesText(step.sent), secondsText(step.communication));
    bus.terms = ncclRangeTerms(answer);
    bus.terms.push_back(betaTerm(answer));
    bus.source = "nccl-tests, doc/PERFORMANCE.md";
    explain(figures, "bus_bandwidth", std::move(bus));
}

} // namespace

Figures measuredShardingFigures(const ShardingNumbers& numbers)
{
    const auto time = [](const char* key, const char* label, const ShardingNumbers::Time& value) {
        return Figure{key, label, Unit::Second, value.seconds, value.low, value.high, {}};
    };
    Figure bus{"bus_bandwidth", "bandwidth of each link", Unit::BytePerSecond,
               busBandwidth(numbers.sent, numbers.communication.seconds)};
    if (numbers.communication.low && numbers.communication.high && numbers.sent > 0) {
        bus.low = busBandwidth(numbers.sent, *numbers.communication.high);
        bus.high = busBandwidth(numbers.sent, *numbers.communication.low);
    }
    Figures figures{{"stored", "stored by each rank", Unit::Byte, numbers.stored},
                    {"gathered", "gathered at most", Unit::Byte, numbers.gathered},
                    {"sent", "sent by each rank", Unit::Byte, numbers.sent},
                    time("exposed_time", "exposed", numbers.exposed),
                    time("communication_time", "collectives", numbers.communication),
                    std::move(bus),
                    time("latency", "latency α of a step", numbers.latency)};
    markCounted(figures, {"stored"});
    return figures;
}

Figures shardingFigures(const ShardingAnswer& answer)
{
    ShardingNumbers numbers;
    numbers.stored = double(answer.kept.device());
    numbers.gathered = double(answer.step.gathered);
    numbers.sent = answer.step.sent;
    numbers.communication.seconds = answer.step.communication;
    numbers.exposed.seconds = answer.step.exposed();
    numbers.latency.seconds = stepLatency(answer);
    Figures figures = measuredShardingFigures(numbers);
    explainMeasured(figures, answer);
    addTimes(figures, answer);
    addMemory(figures, answer);
    return figures;
}

std::vector<Claim> shardingClaims(const ShardingAnswer& answer)
{
    const Plan& plan = answer.asked.plan();
    if (plan.zeroStage == 0 || plan.dataParallel == 1 || plan.offload != Offload::None || plan.tensorParallel > 1)
        return {};
    const double ratio = double(answer.network->alone.device()) / double(answer.kept.device());
    const double claimed = plan.zeroStage == 1 ? 4 : plan.zeroStage == 2 ? 8 : double(plan.dataParallel);
    const char* const id = plan.zeroStage == 1 ? "zero-1-reduction"
        : plan.zeroStage == 2                  ? "zero-2-reduction"
                                               : "zero-3-linear";
    const std::string verdict = std::abs(ratio - claimed) < 0.05 * claimed
        ? "holds here, for weights, gradients and states; activations stay"
        : ratio < claimed
        ? fmt::format("does not hold here: {} instead of {} times less", shortNumber(ratio, 3), shortNumber(claimed, 3))
        : "does not hold here: more";
    return {quotedClaim(id, verdict,
                        fmt::format("each of {} ranks stores {}, one alone {}: {} times less", plan.dataParallel,
                                    bytesText(double(answer.kept.device())),
                                    bytesText(double(answer.network->alone.device())), shortNumber(ratio, 3)))};
}

} // namespace memscape
