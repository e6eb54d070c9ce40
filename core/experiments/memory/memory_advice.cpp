// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_advice.h"

#include "core/base/cancellation.h"
#include "core/base/found.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include <fmt/format.h>

namespace memscape {

namespace {

const Schema& schemaOfTraining()
{
    static const Schema schema = trainingSchema();
    return schema;
}

std::string keyOf(const Changes& changes)
{
    std::string key;
    for (const auto& [name, value] : changes)
        key += (key.empty() ? "" : ";") + name + "=" + value;
    return key;
}

bool isInForce(const Parameters& parameters, const Changes& changes)
{
    return std::all_of(changes.begin(), changes.end(), [&](const auto& change) {
        for (const auto& [key, value] : parameters.values()) {
            if (key == change.first)
                return valueText(value) == change.second;
        }
        return true; // a parameter that does not exist cannot be changed
    });
}

Lever lever(std::string label, std::string actsOn, std::string why, Changes changes, bool keepsTraining = true)
{
    std::string key = keyOf(changes);
    return {std::move(key), std::move(label), std::move(actsOn), std::move(why), std::move(changes), keepsTraining};
}

void addActivationLevers(std::vector<Lever>& levers, const Parameters& parameters)
{
    levers.push_back(lever("Checkpoint every block", "activations",
                           "keeps each block's input and computes the rest again in the backward pass",
                           {{"checkpointing", "block"}}));
    levers.push_back(lever("Checkpoint √n segments", "activations", "keeps the input of every √n-th block",
                           {{"checkpointing", "sqrt"}}));
    levers.push_back(lever("Selective checkpointing", "activations",
                           "computes only scores, softmax and context of attention again",
                           {{"checkpointing", "selective"}}));
    levers.push_back(
        lever("Flash attention", "activations", "never writes the N × N matrices", {{"attention", "flash"}}));
    levers.push_back(lever("Memory-efficient attention", "activations", "the same for fp32 and older GPUs",
                           {{"attention", "efficient"}}));
    const std::int64_t batch = parameters.integer("batch"), steps = parameters.integer("accumulation");
    const auto split = [&](std::int64_t parts) {
        levers.push_back(
            lever(fmt::format("Batch {} → {} × {}", batch, batch / parts, parts), "activations",
                  "smaller micro-batches, gradients summed: the same update",
                  {{"batch", fmt::format("{}", batch / parts)}, {"accumulation", fmt::format("{}", steps * parts)}}));
    };
    if (batch % 2 == 0)
        split(2);
    if (batch > 2)
        split(batch);
    levers.push_back(lever("Fused operators", "activations", "one kernel for norm, softmax, activation and loss",
                           {{"operators", "fused"}}));
    levers.push_back(lever("Fused loss (Liger)", "activations",
                           "logits of some rows at a time, in place of all of them and their gradient",
                           {{"loss", "liger"}}));
    levers.push_back(lever("Logits in half precision", "activations", "no 32-bit copy of the logits",
                           {{"logits_fp32", "false"}}, false));
}

void addStateLevers(std::vector<Lever>& levers, const Parameters& parameters)
{
    const std::string& optimizer = parameters.choice("optimizer");
    levers.push_back(lever("Fused optimizer", "optimizer step", "the update is one kernel: no temporaries",
                           {{"optimizer_implementation", "fused"}}));
    if (optimizer == "adam" || optimizer == "adamw") {
        levers.push_back(lever("8-bit Adam", "optimizer state", "moments in one byte with a scale per block",
                               {{"optimizer", "adam-8bit"}}, false));
        levers.push_back(lever("Adafactor", "optimizer state", "row and column sums instead of the second moment",
                               {{"optimizer", "adafactor"}}, false));
    }
    levers.push_back(lever("Optimizer on the host", "optimizer state", "state and master weights in the host's memory",
                           {{"offload", "optimizer"}}));
    levers.push_back(lever("Gradients on the host too", "gradients and optimizer state",
                           "backward sends each layer's gradients to the host (ZeRO-Offload)",
                           {{"offload", "gradients"}}));
    levers.push_back(lever("Parameters on the host", "weights", "each layer is fetched before it runs (ZeRO-3)",
                           {{"offload", "parameters"}, {"zero", "3"}}));
    // By PEFT's default LoRA trains fewer layers than QLoRA: side by side both are of all linear ones.
    const std::string& asked = parameters.text("adapter_targets");
    const std::string targets = asked == "default" ? "all-linear" : asked;
    const std::string rank = fmt::format("rank {}", parameters.integer("adapter_rank"));
    levers.push_back(lever("LoRA, " + rank, "gradients and optimizer state",
                           "trains thin matrices beside frozen ones, of all linear layers unless others are named",
                           {{"adapter", "lora"}, {"adapter_targets", targets}}, false));
    levers.push_back(lever("QLoRA, " + rank, "weights, gradients and optimizer state",
                           "the same beside a base in 4 bits", {{"adapter", "qlora"}, {"adapter_targets", targets}},
                           false));
    if (parameters.choice("precision") == "fp32") {
        levers.push_back(lever("bf16 autocast", "activations", "matrix products and what they save in half precision",
                               {{"precision", "bf16-autocast"}}, false));
    }
    if (parameters.choice("precision") == "fp32" || parameters.choice("precision").ends_with("autocast")) {
        levers.push_back(lever("bf16 mixed", "weights, gradients and activations",
                               "half weights and gradients, fp32 master copy", {{"precision", "bf16-mixed"}}, false));
    }
    if (parameters.choice("precision") != "bf16")
        levers.push_back(lever("Pure bf16", "everything", "moments and weights in half precision too",
                               {{"precision", "bf16"}}, false));
}

void addParallelLevers(std::vector<Lever>& levers, const Parameters& parameters)
{
    const std::int64_t devices = std::max<std::int64_t>(8, parameters.integer("data_parallel"));
    const std::string count = fmt::format("{}", devices);
    constexpr std::pair<const char*, const char*> stages[] = {
        {"optimizer state", "shards the optimizer over the replicas"},
        {"gradients and optimizer state", "shards gradients and optimizer"},
        {"weights, gradients and optimizer state", "shards weights, gradients and optimizer (FSDP)"}};
    for (int stage = 1; stage <= 3; ++stage) {
        levers.push_back(lever(fmt::format("ZeRO-{} over {} GPUs", stage, devices), stages[stage - 1].first,
                               stages[stage - 1].second,
                               {{"zero", fmt::format("{}", stage)}, {"data_parallel", count}}));
    }
    const std::int64_t tensor = parameters.integer("tensor_parallel");
    levers.push_back(lever(fmt::format("Tensor parallel, {} GPUs", tensor * 2), "weights and activations",
                           "every matrix is shared by the GPUs, head by head",
                           {{"tensor_parallel", fmt::format("{}", tensor * 2)}}));
    if (tensor > 1)
        levers.push_back(lever("Sequence parallel", "activations", "norms and residuals are shared too",
                               {{"sequence_parallel", "true"}}));
    levers.push_back(lever("Expandable segments", "reserved, unused",
                           "the allocator grows in pages and hardly fragments", {{"allocator", "expandable"}}));
}

Json outcomeJson(const LeverOutcome& outcome)
{
    Json changes = Json::object();
    for (const auto& [key, value] : outcome.lever.changes)
        changes[key] = value;
    return {{"key", outcome.lever.key},
            {"label", outcome.lever.label},
            {"acts_on", outcome.lever.actsOn},
            {"why", outcome.lever.why},
            {"changes", std::move(changes)},
            {"keeps_training", outcome.lever.keepsTraining},
            {"peak", outcome.peak},
            {"device_total", outcome.device},
            {"saving", outcome.saving},
            {"step_time", jsonNumber(outcome.seconds)},
            {"time_change", jsonNumber(outcome.timeChange)},
            {"fits", outcome.fits}};
}

/// What an out-of-memory error is about, and which levers act there.
Json outOfMemoryReport(const TrainingAnswer& answer, const std::optional<OutOfMemory>& refused,
                       const std::vector<LeverOutcome>& levers)
{
    if (!refused)
        return {};
    const Event& event = answer.simulation.trace.eventAt(refused->event);
    Json report = outOfMemoryJson(answer.simulation.trace, *refused);
    const std::string_view category = categoryText(event.category);
    report["tensor"] = answer.simulation.trace.names()[event.name];
    report["category"] = categoryKey(event.category);
    report["levers"] = Json::array();
    for (const LeverOutcome& outcome : levers) {
        const bool actsHere = event.phase == Phase::Optimizer
            ? outcome.lever.actsOn.find("optimizer") != std::string::npos
            : event.phase == Phase::Setup ? outcome.lever.actsOn.find(category) != std::string::npos
                                          : outcome.lever.actsOn.find("activations") != std::string::npos;
        if (actsHere || outcome.fits)
            report["levers"].push_back(outcome.lever.key);
    }
    report["summary"] = fmt::format(
        "{} for the result of {} in the {} phase{}: {} are allocated, and {} are all there is",
        quantityText(double(event.bytes), Unit::Byte), report["tensor"].get<std::string>(), phaseText(event.phase),
        event.module == 0 ? std::string() : " (" + answer.simulation.trace.modules()[event.module] + ")",
        quantityText(double(refused->before.allocated), Unit::Byte),
        quantityText(double(*answer.capacity), Unit::Byte));
    return report;
}

bool fitsWith(const Device& device, const Parameters& parameters, const Changes& changes, const TrainingAnswer& answer)
{
    const auto then = changed(parameters, changes);
    return then && !keepsTooMuch(device, *then, answer) && trainingFits(device, *then, *answer.networks);
}

} // namespace

bool keepsTooMuch(const Device& device, const Parameters& parameters, const TrainingAnswer& answer)
{
    const auto setup = trainingSetup(device, parameters);
    if (!setup || !answer.capacity)
        return false;
    const BuildOptions &then = setup->build, &now = answer.setup.build;
    const bool isSameNetwork = then.tensorParallel == now.tensorParallel && then.adapters == now.adapters
        && then.expertParallel == now.expertParallel && then.pipeline.ranks == now.pipeline.ranks
        && then.pipeline.chunks == now.pipeline.chunks;
    if (!isSameNetwork)
        return false;
    return keptBytes(answer.simulation.parameters(), setup->step.plan).device() > *answer.capacity - setup->context;
}

std::size_t stepsAtOnce(const TrainingAnswer& answer)
{
    constexpr std::size_t mostEvents = std::size_t(4) << 20; // of all steps together
    return std::clamp<std::size_t>(mostEvents / std::max<std::size_t>(answer.simulation.trace.events().size(), 1), 1,
                                   coreCount());
}

LeverOutcome leverOutcome(Lever lever, const TrainingAnswer& now, const TrainingAnswer& then)
{
    LeverOutcome outcome;
    outcome.lever = std::move(lever);
    if (outcome.lever.key.empty())
        outcome.lever.key = keyOf(outcome.lever.changes);
    outcome.peak = then.simulation.allocatedBytes();
    outcome.device = then.deviceBytes();
    outcome.saving = now.deviceBytes() - outcome.device;
    outcome.seconds = then.time.total;
    outcome.timeChange = now.time.total == 0 ? 0 : then.time.total / now.time.total - 1; // NaN: not known
    outcome.fits = then.fits;
    return outcome;
}

Result<Parameters> changed(const Parameters& parameters, const Changes& changes)
{
    Parameters made = parameters;
    for (const auto& [key, text] : changes) {
        const ParameterSpec* spec = findParameter(schemaOfTraining(), key);
        if (!spec)
            return fail("parameter.unknown", fmt::format("no parameter \"{}\"", key));
        MEMSCAPE_TRY(value, parseValue(*spec, text));
        made.set(key, value);
    }
    return made;
}

std::vector<std::size_t> orderByNetwork(const Device& device, const Parameters& parameters,
                                        const TrainingAnswer& answer, const std::vector<Changes>& changes)
{
    std::vector<BuildOptions> networks{answer.setup.build};
    std::vector<std::pair<std::size_t, std::size_t>> order; // network, change
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const auto then = changed(parameters, changes[i]);
        const auto setup = then ? trainingSetup(device, *then) : fail(then.error());
        if (!setup)
            continue;
        const auto known = std::find(networks.begin(), networks.end(), setup->build);
        order.emplace_back(known - networks.begin(), i);
        if (known == networks.end())
            networks.push_back(setup->build);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::size_t> indices;
    for (const auto& [network, index] : order)
        indices.push_back(index);
    return indices;
}

bool isHostMemory(const Device& device)
{
    return !device.isGpu() || device.sharesHostMemory;
}

std::vector<Lever> leversFor(const Device& device, const Parameters& parameters)
{
    std::vector<Lever> levers;
    addActivationLevers(levers, parameters);
    addStateLevers(levers, parameters);
    if (device.isGpu())
        addParallelLevers(levers, parameters);
    std::erase_if(levers, [&](const Lever& one) {
        const auto offloads = [](const auto& change) { return change.first == "offload"; };
        const bool isMoot = isHostMemory(device) && std::ranges::any_of(one.changes, offloads);
        return isMoot || isInForce(parameters, one.changes);
    });
    return levers;
}

std::vector<LeverOutcome> tryLevers(const Device& device, const Parameters& parameters, const TrainingAnswer& answer)
{
    const std::vector<Lever> levers = leversFor(device, parameters);
    std::vector<Changes> changes;
    for (const Lever& one : levers)
        changes.push_back(one.changes);
    std::vector<std::optional<LeverOutcome>> tried(levers.size());
    const FoundScope::Tell* const tell = FoundScope::current();
    std::mutex telling;
    const std::vector<std::size_t> order = orderByNetwork(device, parameters, answer, changes);
    inParallel(order.size(), stepsAtOnce(answer), [&](std::size_t k) {
        const std::size_t i = order[k];
        const auto then = changed(parameters, levers[i].changes);
        const auto result = then ? totalsOfTraining(device, *then, answer.networks) : fail(then.error());
        if (result) // else not for this model: an attention that its family does not have, a split that does not divide
            tried[i] = leverOutcome(levers[i], answer, *result);
        if (!tell || !tried[i] || tried[i]->saving <= 0)
            return;
        const std::lock_guard lock(telling);
        (*tell)(outcomeJson(*tried[i]));
    });
    std::vector<LeverOutcome> outcomes;
    for (std::optional<LeverOutcome>& outcome : tried) {
        if (outcome && outcome->saving > 0)
            outcomes.push_back(std::move(*outcome));
    }
    std::stable_sort(outcomes.begin(), outcomes.end(),
                     [](const LeverOutcome& a, const LeverOutcome& b) { return a.saving > b.saving; });
    return outcomes;
}

Result<std::vector<LeverOutcome>> leversAt(const Device& device, const Parameters& parameters,
                                           std::optional<Phase> phase)
{
    MEMSCAPE_TRY(answer, answerTraining(device, parameters));
    std::vector<LeverOutcome> outcomes;
    for (const Lever& lever : leversFor(device, parameters)) { // whole steps: totals know no phases
        MEMSCAPE_CHECK(checkWanted());
        const auto then = changed(parameters, lever.changes);
        const auto result = then ? answerTraining(device, *then, answer.networks) : fail(then.error());
        if (!result) // not for this model
            continue;
        outcomes.push_back(leverOutcome(lever, answer, *result));
        for (std::size_t i = 0; i < phaseCount; ++i)
            outcomes.back().phaseSaving[i] =
                answer.simulation.trace.peakBytes(Phase(i)) - result->simulation.trace.peakBytes(Phase(i));
    }
    const auto saving = [&](const LeverOutcome& one) {
        return phase ? one.phaseSaving[std::size_t(*phase)] : one.saving;
    };
    std::erase_if(outcomes, [&](const LeverOutcome& one) { return saving(one) <= 0; });
    std::stable_sort(outcomes.begin(), outcomes.end(),
                     [&](const LeverOutcome& a, const LeverOutcome& b) { return saving(a) > saving(b); });
    return outcomes;
}

std::optional<std::int64_t> largestThatFits(const Device& device, const Parameters& parameters, const std::string& key,
                                            const TrainingAnswer& answer)
{
    const ParameterSpec* spec = findParameter(schemaOfTraining(), key);
    if (!spec || !answer.capacity)
        return std::nullopt;
    const auto fits = [&](std::int64_t value) {
        return fitsWith(device, parameters, {{key, fmt::format("{}", value)}}, answer);
    };
    std::int64_t low = static_cast<std::int64_t>(spec->minimum);
    if (!fits(low))
        return std::nullopt;
    std::int64_t high = low;
    while (high < static_cast<std::int64_t>(spec->maximum) && fits(high)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

std::optional<std::int64_t> fewestDevices(const Device& device, const Parameters& parameters,
                                          const TrainingAnswer& answer)
{
    if (!answer.capacity)
        return std::nullopt;
    for (std::int64_t devices = 1; devices <= 65536; devices *= 2) {
        if (fitsWith(device, parameters,
                     {{"zero", devices > 1 ? "3" : "0"}, {"data_parallel", fmt::format("{}", devices)}}, answer))
            return devices;
    }
    return std::nullopt;
}

void addAdvice(Json& detail, const Device& device, const Parameters& parameters, const TrainingAnswer& answer,
               const std::optional<OutOfMemory>& outOfMemory)
{
    const std::string& wanted = parameters.choice("advice");
    detail["levers"] = Json::array();
    detail["out_of_memory"] = Json();
    if (wanted == "none")
        return;
    const auto outcomes = tryLevers(device, parameters, answer);
    for (const LeverOutcome& outcome : outcomes)
        detail["levers"].push_back(outcomeJson(outcome));
    detail["out_of_memory"] = outOfMemoryReport(answer, outOfMemory, outcomes);
    if (wanted != "fit" || !answer.capacity)
        return;
    const FitOutcome fit = makeItFit(device, parameters, answer);
    Json combinations = Json::array();
    for (const LeverOutcome& one : fit.combinations)
        combinations.push_back(outcomeJson(one));
    Json changing = Json::array();
    for (const LeverOutcome& one : fit.changing)
        changing.push_back(outcomeJson(one));
    detail["make_it_fit"] = {{"combinations", std::move(combinations)},
                             {"tried", fit.tried},
                             {"smallest", outcomeJson(fit.smallest)},
                             {"changing_training", std::move(changing)}};
    std::array<std::optional<std::int64_t>, 3> largest;
    inParallel(largest.size(), stepsAtOnce(answer), [&](std::size_t i) {
        largest[i] = i == 2 ? fewestDevices(device, parameters, answer)
                            : largestThatFits(device, parameters, i == 0 ? "batch" : "sequence", answer);
    });
    const auto number = [](const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(); };
    detail["largest"] = {
        {"batch", number(largest[0])}, {"sequence", number(largest[1])}, {"fewest_devices", number(largest[2])}};
}

} // namespace memscape
