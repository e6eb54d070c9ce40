// SPDX-License-Identifier: Apache-2.0
// The figures of `training-memory`, each with its why.
#include "core/experiments/memory/memory_band.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_textbook.h"
#include "core/experiments/training-memory/training_memory.h"
#include "core/network/inventory.h"
#include "core/timing/offload_time.h"
#include "core/timing/pipeline_time.h"
#include "core/training/prepared_network.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view tapeSource =
    "PyTorch's autograd: derivatives.yaml, the engine, torch.optim, operator by operator";
constexpr double communicatorBytes = 0.5e9;
constexpr std::string_view allocatorSource = "c10/cuda/CUDACachingAllocator.cpp, replayed";
constexpr std::string_view cpuAllocatorSource = "c10/core/CPUAllocator.cpp: a malloc and a free for each block";

/// PyTorch's own rules for processors: core/training/cpu_kernels.h.
bool isOnCpu(const TrainingAnswer& answer)
{
    return answer.setup.step.plan.isOnCpu;
}

std::vector<std::string> omits(const TrainingAnswer& answer)
{
    if (isOnCpu(answer))
        return {"scratchpads of oneDNN's convolutions, which depend on the processor", "Python and loaded libraries",
                "memory of other programs"};
    std::vector<std::string> all{"workspaces of cuDNN and of sorting kernels", "memory of other programs",
                                 "communication libraries' own buffers"};
    if (answer.setup.step.plan.expertParallel > 1)
        all.emplace_back("experts that get more tokens than others: routing is taken to be even");
    return all;
}

Figure bytesFigure(std::string key, std::string label, double bytes, Why why)
{
    return figureOf(std::move(key), std::move(label), Unit::Byte, bytes, std::move(why));
}

/// What is frozen and what is trained, each in its own precision.
void addAdapterTerms(Why& why, const std::vector<ParameterTensor>& parameters)
{
    double frozen = 0, trained = 0;
    for (const ParameterTensor& parameter : parameters)
        (parameter.isTrained ? trained : frozen) += double(parameter.storedBytes);
    why.terms.push_back({"trained", double(trainedCount(parameters)), Unit::One, "parameters that are trained",
                         "adapters, modules_to_save"});
    why.terms.push_back({"frozen weights", frozen, Unit::Byte, "of the base, codes and scales", "base_precision"});
    why.terms.push_back({"trained weights", trained, Unit::Byte, "of adapters and saved modules", "adapter_precision"});
}

/// A figure per category of what stays between steps.
Figure keptFigure(std::string key, std::string label, std::int64_t bytes, const Simulation& simulation,
                  std::string rule)
{
    const double count = double(elementCount(simulation.parameters()));
    Why why;
    why.formula = "Σ over parameters: elements × bytes";
    why.with = fmt::format("= {} ({} per parameter)", bytesText(double(bytes)),
                           numberText(count > 0 ? double(bytes) / count : 0));
    why.terms = {{"Ψ", count, Unit::One, "parameters on this device", "the model"}};
    if (simulation.graph->hasAdapters)
        addAdapterTerms(why, simulation.parameters());
    why.source = std::move(rule);
    return bytesFigure(std::move(key), std::move(label), double(bytes), std::move(why));
}

/// Of the model and of adapters beside it, on all devices. Errors: those of the network's builder.
Result<std::int64_t> parameterCount(const TrainingAnswer& answer, const Inventory& tensors)
{
    BuildOptions whole = answer.setup.build;
    if (!whole.adapters)
        return tensors.total;
    whole.tensorParallel = whole.expertParallel = 1;
    whole.pipeline = {};
    MEMSCAPE_TRY(graph, answer.networks->network(whole));
    return elementCount(preparedNetwork(*answer.networks, *graph)->parameters);
}

Why countWhy(const Inventory& tensors, std::int64_t count)
{
    const std::int64_t beside = count - tensors.total;
    return {"Σ over tensors: product of the shape",
            fmt::format("= {} over {} tensors{}", tensors.total, tensors.tensorCount(),
                        beside > 0 ? fmt::format(", and {} of adapters", beside) : ""),
            {},
            "the model's description",
            {}};
}

/// B of the storage of the output that outlives the forward pass by its name alone, in training.
std::int64_t keptLogitsBytes(const TrainingAnswer& answer)
{
    const Graph& graph = *answer.simulation.graph;
    const bool isNamed = answer.setup.build.keepsLogits && graph.loss != noTensor && graph.output != noTensor;
    return isNamed ? graph.storageOf(graph.output).bytes : 0;
}

/// Which rank of a pipeline it is, and what that holds.
void addRankTerms(Why& why, const TrainingAnswer& answer)
{
    if (answer.ranks.empty())
        return;
    const Plan& plan = answer.setup.step.plan;
    const PipelineRank& rank = answer.ranks[std::size_t(answer.rank())];
    why.with += fmt::format(", on rank {} of {}", answer.rank(), answer.ranks.size());
    why.terms.push_back({"rank", double(answer.rank()), Unit::One, "the one that needs most; the first is 0",
                         fmt::format("{} ranks", answer.ranks.size())});
    why.terms.push_back(
        {"in flight", double(rank.inFlight), Unit::One,
         fmt::format("passes of {} layers whose backward has not run, at most", rank.layers / plan.virtualStages),
         std::string(pipelineScheduleText(plan.pipelineSchedule))});
}

Why allocatedWhy(const TrainingAnswer& answer)
{
    const Simulation& simulation = answer.simulation;
    Why why;
    why.formula = isOnCpu(answer) ? "highest sum of live blocks, each of the bytes that were asked for"
                                  : "highest sum of live blocks, each rounded up to 512 B";
    why.with = "=";
    for (std::size_t i = 0; i < categoryCount; ++i) {
        const auto bytes = simulation.peak.categories[i];
        if (bytes == 0)
            continue;
        why.with +=
            fmt::format("{} {} {}", why.with == "=" ? "" : " +", bytesText(double(bytes)), categoryText(Category(i)));
        why.terms.push_back(
            {std::string(categoryText(Category(i))), double(bytes), Unit::Byte, aliveAtThePeak, "the simulated step"});
    }
    why.with += fmt::format(", in the {} phase", phaseText(simulation.peak.phase));
    addRankTerms(why, answer);
    if (const double logits = double(keptLogitsBytes(answer)); logits > 0)
        why.terms.push_back({"logits", logits, Unit::Byte, "kept by a variable of the training loop (keeps_logits)",
                             "`logits, loss = model(x)`, `outputs = model(**batch)`"});
    why.source = tapeSource;
    if (!answer.implied.empty())
        why.source += "; " + answer.implied;
    why.omits = omits(answer);
    return why;
}

Why activationsWhy(const TrainingAnswer& answer, const TextbookFigures& textbook)
{
    Why why;
    why.formula = "most bytes that results of the forward pass hold at one moment";
    why.with = fmt::format("= {}", bytesText(double(highestBytes(answer.simulation.trace, Category::Activations))));
    if (textbook.activations)
        why.terms.push_back(
            {"textbook", *textbook.activations, Unit::Byte, textbook.activationsFormula, "Korthikanti et al. 2022"});
    why.source = tapeSource;
    if (const std::string& attention = answer.simulation.graph->attention.text; !attention.empty())
        why.source += fmt::format("; attention=auto is {}", attention);
    why.omits = {"buffers inside kernels"};
    return why;
}

/// The step's parts, which sum to it.
std::vector<Term> stepTimeTerms(const TrainingAnswer& answer)
{
    const StepTime& time = answer.time;
    std::vector<Term> terms;
    const auto add = [&](const char* symbol, double value, std::string meaning, std::string source) {
        if (value > 0)
            terms.push_back({symbol, value, Unit::Second, std::move(meaning), std::move(source)});
    };
    add("forward", time.forward, "every operator once for each micro-batch", "shapes and rates of the device");
    add("backward", time.backward, "gradients of operands, and their sums", "shapes and rates of the device");
    add("recomputation", time.recomputation, "what checkpointing runs again", "the plan");
    const bool isOffloaded = answer.setup.step.plan.offload != Offload::None;
    add("optimizer", time.optimizer,
        isOffloaded ? "Adam and others in one pass over host memory" : "reads and writes of the update",
        isOffloaded ? fmt::format("{} of a typical server, which the ranks of a machine share (a setting of Placement)",
                                  quantityText(typicalHostBandwidth, Unit::BytePerSecond))
                    : "torch.optim, operator by operator");
    add("exposed", time.exposed,
        fmt::format("of {} of communication, what does not hide", secondsText(time.communication)),
        isOffloaded                                       ? "layers as a pipeline: Ren et al. 2021"
            : answer.setup.step.checkpointing.sendsToHost ? "copies beside the passes; NCCL's cost model between GPUs"
                                                          : "NCCL's cost model: src/graph/tuning.cc");
    add("slowed", time.slowed, "the passes lack the multiprocessors that run the collectives beside them",
        "a block for each of NCCL's channels");
    add("bubble", time.bubble,
        fmt::format("what the busiest rank waits: every pass of {} ranks in its order, sends included",
                    answer.ranks.size()),
        std::string(pipelineScheduleText(answer.setup.step.plan.pipelineSchedule)));
    add("first touch", time.pageFaults, "pages that malloc gave back and gets again, cleared by the system",
        "three steps played through glibc's malloc");
    add("dispatch", time.dispatch, "the device waits for the host, which runs Python and dispatches each kernel",
        "the device's calibration; until then measured: PyTorch 2.15 on a Zen 4, operators of a GPU on a Xeon");
    return terms;
}

/// What holds the time of the passes, and how wide each part is.
void appendBand(Why& why, const StepBand& band)
{
    for (const BandPart& part : band.parts)
        why.terms.push_back({part.what, part.expected, Unit::Second,
                             fmt::format("{} to {}: {}", secondsText(part.low), secondsText(part.high), part.why),
                             "the band; not another summand"});
}

/// What a step of several ranks waits for, in words of its own; no further summands.
void appendParallel(Why& why, const TrainingAnswer& answer)
{
    if (answer.time.inPasses > 0)
        why.terms.push_back({"exchanged in passes", answer.time.inPasses, Unit::Second,
                             "of the exposed: what forward and backward wait for",
                             "tensor, context and expert parallelism"});
    if (answer.time.copied > 0)
        why.terms.push_back({"copied for collectives", answer.time.copied, Unit::Second,
                             "of forward and backward: gradients copied, converted and divided, weights copied out",
                             std::string(shardedByText(answer.setup.step.plan.shardedBy))});
    if (!answer.ranks.empty())
        why.terms.push_back({"(p − 1) / (m v)", idealBubble(answer.setup.step.plan), Unit::One,
                             "the bubble's share of the work if all ranks were alike",
                             "Narayanan et al. 2021, section 2.2"});
}

Why stepTimeWhy(const TrainingAnswer& answer)
{
    Why why;
    why.formula = "forward + backward + recomputation + optimizer + exposed communication + passes slowed by "
                  "hidden communication + bubble + pages touched first + waiting for the host; "
                  "each operator max(FLOPs / what its shape reaches, bytes / bandwidth) + launch";
    if (answer.timeMissing) {
        why.with = answer.timeMissing->text();
    } else {
        why.terms = stepTimeTerms(answer);
        for (const Term& term : why.terms)
            why.with += fmt::format("{} {}", why.with.empty() ? "=" : " +", secondsText(term.value));
        why.with +=
            fmt::format(", between {} and {}", secondsText(answer.timeBand.low), secondsText(answer.timeBand.high));
        appendParallel(why, answer);
        appendBand(why, answer.timeBand);
    }
    why.source = "roofline: Williams, Waterman, Patterson 2009; tiles and waves: NVIDIA's guide to matrix products; "
                 "rates of the device";
    why.omits = {"kernels that overlap", "clocks that sag further than where the rates come from",
                 "the pipeline of input data"};
    return why;
}

/// ": NCCL's ring, LL128, 341 µs each".
std::string choiceText(const Collective& one, const std::optional<NcclChoice>& choice)
{
    return choice
        ? fmt::format(": NCCL's {}, {} each", choice->text(), secondsText(choice->seconds(one.payload / one.calls)))
        : std::string();
}

Why communicationWhy(const TrainingAnswer& answer)
{
    Why why;
    why.formula = "Σ over transfers of one step: times × bytes × what a ring sends "
                  "(all-reduce 2 (N − 1) / N; reduce-scatter, all-gather and all-to-all (N − 1) / N; step of a ring, "
                  "send and host copy 1)";
    why.with = "=";
    for (std::size_t i = 0; i < answer.collectives.size(); ++i) {
        const Collective& one = answer.collectives[i];
        if (one.sentBytes() <= 0)
            continue;
        why.with += fmt::format("{}{}", why.with == "=" ? " " : " + ", bytesText(one.sentBytes()));
        const std::string among = one.degree > 1 ? fmt::format(" of {} devices", one.degree) : std::string();
        why.terms.push_back(
            {fmt::format("{}, {}", one.what, collectiveText(one.kind)), one.sentBytes(), Unit::Byte,
             fmt::format("{} × {}{}{}", numberText(one.count * one.calls), bytesText(one.payload / one.calls), among,
                         i < answer.choices.size() ? choiceText(one, answer.choices[i]) : ""),
             "the plan"});
    }
    if (why.terms.empty())
        why.with = "= 0 B: one device, nothing on the host";
    why.source = "Rajbhandari et al. 2020, section 7; Korthikanti et al. 2022, section 4.2; offload: Ren et al. 2021; "
                 "experts: Lepikhin et al. 2021; rings of keys and values: Liu et al. 2023";
    why.omits = {"collectives that recomputation repeats", "latency of each transfer", "the loss and norms"};
    return why;
}

Figures modelFigures(const TrainingAnswer& answer, const Inventory& tensors, std::int64_t count)
{
    const Simulation& simulation = answer.simulation;
    const KeptBytes& kept = simulation.kept;
    const std::int64_t active = tensors.active + count - tensors.total; // adapters among experts are all counted
    return {
        figureOf("parameter_count", "parameters", Unit::One, double(count), countWhy(tensors, count)),
        figureOf("active_parameter_count", "active parameters", Unit::One, double(active),
                 Why{"parameters that one token uses", fmt::format("= {}", active), {}, "the model's description", {}}),
        keptFigure("weights", "weights", kept.weights, simulation, "the precision's recipe"),
        keptFigure("master_weights", "master weights", kept.master, simulation, "fp32 copy of mixed precision"),
        keptFigure("gradients", "gradients", kept.gradients, simulation, "between backward and zero_grad"),
        keptFigure("optimizer_state", "optimizer state", kept.state, simulation, "torch.optim, bitsandbytes")};
}

Why reservedWhy(const TrainingAnswer& answer)
{
    const AllocatorCounts& peak = answer.simulation.allocator.peak;
    const std::string reserved = bytesText(double(peak.reserved)), allocated = bytesText(double(peak.allocated));
    if (isOnCpu(answer))
        return {"PyTorch on a CPU caches nothing: reserved is allocated",
                fmt::format("= {}", reserved),
                {},
                std::string(cpuAllocatorSource),
                {}};
    return {"what the caching allocator takes from the driver",
            fmt::format("= {} in {} segments for {} allocated", reserved, peak.segments, allocated),
            {},
            std::string(allocatorSource),
            {}};
}

/// What the driver's context takes is a setting; contexts differ by a factor of two around it, and a communication
/// library takes buffers of its own.
Figure deviceTotalFigure(const TrainingAnswer& answer, const Figure& reservedFigure)
{
    const double reserved = double(answer.simulation.reservedBytes()), context = double(answer.setup.context);
    if (isOnCpu(answer))
        return bytesFigure("device_total", "device total", reserved + context,
                           Why{"reserved: a processor has no context",
                               fmt::format("= {} + {}", bytesText(reserved), bytesText(context)),
                               {},
                               std::string(cpuAllocatorSource),
                               omits(answer)});
    const Plan& plan = answer.setup.step.plan;
    const bool isShared = plan.dataParallel > 1 || plan.tensorParallel > 1;
    Figure figure = bytesFigure("device_total", "device total", reserved + context,
                                Why{"reserved + context",
                                    fmt::format("= {} + {}", bytesText(reserved), bytesText(context)),
                                    {},
                                    "the context is a setting (device_context)",
                                    omits(answer)});
    figure.low = reservedFigure.low.value_or(reserved) + context / 2;
    figure.high = reservedFigure.high.value_or(reserved) + 2 * context + (isShared ? communicatorBytes : 0);
    figure.why->terms = {
        {"reserved", reserved, Unit::Byte, "by PyTorch's allocator", std::string(allocatorSource)},
        {"context", context, Unit::Byte,
         fmt::format("{} to {}: driver, GPU and loaded kernels", bytesText(context / 2), bytesText(2 * context)),
         "a setting"}};
    if (isShared)
        figure.why->terms.push_back({"communicator", communicatorBytes, Unit::Byte, "at most, beside the total",
                                     "several hundred megabytes for NCCL's buffers"});
    return figure;
}

/// What offloading and paged optimizers put elsewhere; nothing without them.
void appendHost(Figures& figures, const TrainingAnswer& answer)
{
    const HostShare& host = answer.host;
    const bool isPaged = answer.setup.step.plan.offload == Offload::None;
    if (isPaged && host.memory == 0)
        return;
    Why why{isPaged ? "the optimizer's state in managed memory: its pages are on the device while that has room"
                    : "what the plan keeps in the host's memory",
            fmt::format("= {}", bytesText(double(host.memory))),
            {},
            isPaged ? "bitsandbytes, Optimizer8bit.get_state_buffer" : "ZeRO-Offload: Ren et al. 2021",
            {"buffers through which copies pass", "the program, its libraries and its data"}};
    if (host.buffers > 0)
        why.terms.push_back({"buffers", double(host.buffers), Unit::Byte, "pinned: 4 of a sub-group in fp32",
                             "DeepSpeed 0.16.4, OptimizerSwapper"});
    figures.push_back(bytesFigure("host_memory", "host's memory", double(host.memory), std::move(why)));
    if (host.nvme == 0)
        return;
    figures.push_back(bytesFigure("nvme", "on the NVMe", double(host.nvme),
                                  Why{"master weights, optimizer state and gradients in fp32",
                                      fmt::format("= {}; the update reads and writes it in {}",
                                                  bytesText(double(host.nvme)), secondsText(host.swapping)),
                                      {},
                                      "ZeRO-Infinity: Rajbhandari et al. 2021; DeepSpeed 0.16.4",
                                      {"weights on an NVMe", "small tensors, which are not swapped"}}));
}

/// What batches of several lengths leave reserved, after the first and after the last: the median of the draws, between
/// the least and the most of them.
void appendLengths(Figures& figures, const TrainingAnswer& answer)
{
    if (answer.lengths.empty())
        return;
    const double alone = double(answer.simulation.reservedBytes());
    const std::size_t draws = answer.lengths.size(), batches = answer.lengths.front().size();
    std::int64_t longest = 0;
    for (const LengthsDraw& draw : answer.lengths)
        for (const BatchOfLength& batch : draw)
            longest = std::max(longest, batch.length);
    const auto reserved = [&](const char* key, const char* label, std::size_t batch, const std::string& when) {
        std::vector<double> bytes;
        for (const LengthsDraw& draw : answer.lengths)
            bytes.push_back(double(draw[batch].reserved));
        std::sort(bytes.begin(), bytes.end());
        const double median = bytes[bytes.size() / 2];
        figures.push_back(bytesFigure(
            key, label, median,
            Why{"the caching allocator replayed over batches one after the other, each as long as its longest "
                "text; the median of several draws, between the least and the most",
                draws == 1 ? fmt::format("= {} {}: all are as long", bytesText(median), when)
                           : fmt::format("= {} {}: {} draws leave {} to {}", bytesText(median), when, draws,
                                         bytesText(bytes.front()), bytesText(bytes.back())),
                {{"draws", double(draws), Unit::One,
                  draws == 1 ? "all would be alike" : fmt::format("lengths drawn evenly, seeds 1 to {}", draws),
                  "SplitMix64"},
                 {"batches", double(batches), Unit::One,
                  "of each draw: micro-batches, or steps of alike ones in a pipeline and with no_sync",
                  "a choice of this program"},
                 {"longest", double(longest), Unit::One, "tokens, of all batches that were drawn", "the draws"},
                 {"alone", alone, Unit::Byte, "reserved by a step of the longest length, and no other",
                  "peak reserved"}},
                std::string(allocatorSource),
                {"the lengths of a data set, which are not even", "batches behind the last, which may leave more",
                 "what the allocator gives back when the device is full"}}));
        figures.back().low = bytes.front();
        figures.back().high = bytes.back();
    };
    reserved("reserved_first", "reserved, first length", 0, "after the first");
    reserved("reserved_steady", "reserved, all lengths", batches - 1, fmt::format("after {} batches", batches));
}

Figures stepFigures(const TrainingAnswer& answer, const TextbookFigures& textbook)
{
    const Simulation& simulation = answer.simulation;
    const double allocated = double(simulation.allocatedBytes()), reserved = double(simulation.reservedBytes());
    Figures figures;
    figures.push_back(bytesFigure("activations", "activations",
                                  double(highestBytes(simulation.trace, Category::Activations)),
                                  activationsWhy(answer, textbook)));
    figures.push_back(bytesFigure(
        "temporary", "temporary", double(simulation.peak.categories[std::size_t(Category::Temporary)]),
        Why{"gradients of activations and operators' temporaries at the peak",
            fmt::format("= {}", bytesText(double(simulation.peak.categories[std::size_t(Category::Temporary)]))),
            {},
            std::string(tapeSource),
            {}}));
    MemoryBand band;
    band.addActivations(double(simulation.peak.categories[std::size_t(Category::Activations)]));
    band.addTemporary(double(simulation.peak.categories[std::size_t(Category::Temporary)]));
    figures.push_back(bytesFigure("peak_allocated", "peak allocated", allocated, allocatedWhy(answer)));
    band.giveTo(figures.back());
    if (const AllocatorCounts& peak = simulation.allocator.peak; peak.active > peak.allocated && !isOnCpu(answer)) {
        figures.push_back(bytesFigure(
            "peak_active", "peak active", double(peak.active),
            Why{"blocks in the program's hands, and those that it has freed while another stream may still use them",
                fmt::format("= {}, {} more than allocated", bytesText(double(peak.active)),
                            bytesText(double(peak.active - peak.allocated))),
                {},
                std::string(allocatorSource),
                {"active_bytes of torch.cuda.memory_stats()"}}));
        band.giveTo(figures.back());
    }
    if (!answer.setup.step.plan.updatesEarly()) { // whose first step makes its state as backward goes
        figures.push_back(bytesFigure(
            "first_step_peak", "peak of the first step", double(answer.firstPeak),
            Why{"as above, without the optimizer's state until its update, and without gradients of a step before",
                fmt::format("= {}, {} less than later steps", bytesText(double(answer.firstPeak)),
                            bytesText(allocated - double(answer.firstPeak))),
                {},
                std::string(tapeSource),
                {"a program that fits its first step may run out of memory in the second"}}));
        band.giveTo(figures.back());
    }
    figures.push_back(bytesFigure("peak_reserved", "peak reserved", reserved, reservedWhy(answer)));
    band.addAllocator(allocated);
    band.giveTo(figures.back());
    const Figure total = deviceTotalFigure(answer, figures.back());
    appendLengths(figures, answer);
    figures.push_back(total);
    appendHost(figures, answer);
    Why fits;
    fits.formula = "1 when the device total is within the device's memory, else 0";
    fits.with = answer.capacity
        ? fmt::format("{} of {}", bytesText(double(answer.deviceBytes())), bytesText(double(*answer.capacity)))
        : std::string("the device's memory is not known");
    figures.push_back(figureOf("fits", "fits", Unit::One, answer.fits ? 1.0 : 0.0, fits));
    figures.push_back(figureOf("fullest_rank", "fullest rank", Unit::One, double(answer.rank()),
                               Why{"the rank of the pipeline that needs most; the first is 0",
                                   answer.ranks.empty() ? std::string("no pipeline: all ranks are alike")
                                                        : fmt::format("of {} ranks", answer.ranks.size()),
                                   {},
                                   std::string(tapeSource),
                                   {"experts that get more tokens than others"}}));
    Figure time = figureOf("step_time", "step time", Unit::Second, answer.time.total, stepTimeWhy(answer));
    if (!answer.timeMissing) {
        time.low = answer.timeBand.low;
        time.high = answer.timeBand.high;
    }
    figures.push_back(std::move(time));
    figures.push_back(
        bytesFigure("communication", "communication", sentBytes(answer.collectives), communicationWhy(answer)));
    appendTextbook(figures, textbook);
    return figures;
}

} // namespace

Result<Figures> trainingFigures(const TrainingAnswer& answer)
{
    MEMSCAPE_TRY(tensors, inventory(answer.model));
    MEMSCAPE_TRY(count, parameterCount(answer, tensors));
    Figures figures = modelFigures(answer, tensors, count);
    for (Figure& figure : stepFigures(answer, textbookFigures(answer)))
        figures.push_back(std::move(figure));
    return figures;
}

} // namespace memscape
