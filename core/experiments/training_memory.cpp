// SPDX-License-Identifier: Apache-2.0
// training-memory: will a training step fit, what takes the space, what would help most?
//
// The step is simulated allocation by allocation (core/training/simulation.h), not multiplied together: the
// network's operators, what autograd saves for each, the backward pass with its gradients and temporaries,
// the optimizer's own; then the caching allocator is replayed on it. The closed formulas of papers stand
// beside the result, with what they leave out.
// Left out: see the omits of each figure.
#include "core/experiments/training_memory.h"

#include "core/base/cancellation.h"
#include "core/experiments/memory_advice.h"
#include "core/experiments/memory_detail.h"
#include "core/experiments/memory_parameters.h"
#include "core/experiments/memory_textbook.h"
#include "core/network/inventory.h"
#include "core/network/model_names.h"
#include "core/training/communication.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view tapeSource = "PyTorch's autograd: derivatives.yaml, the engine, torch.optim, operator by operator";
constexpr std::string_view allocatorSource = "c10/cuda/CUDACachingAllocator.cpp, replayed";

std::string bytesText(double bytes)
{
    return quantityText(bytes, Unit::Byte, ByteStyle::Binary, 4);
}

std::vector<std::string> omits()
{
    return {"workspaces of cuDNN and of sorting kernels", "memory of other programs", "communication libraries' own buffers"};
}

Figure bytesFigure(std::string key, std::string label, double bytes, Why why)
{
    return {std::move(key), std::move(label), Unit::Byte, bytes, {}, {}, std::move(why)};
}

/// A figure per category of what stays between steps.
Figure keptFigure(std::string key, std::string label, std::int64_t bytes, const Simulation& simulation, std::string rule)
{
    const double count = double(elementCount(simulation.parameters));
    Why why;
    why.formula = "Σ over parameters: elements × bytes";
    why.with = fmt::format("= {} ({} per parameter)", bytesText(double(bytes)), numberText(count > 0 ? double(bytes) / count : 0));
    why.terms = {{"Ψ", count, Unit::One, "parameters on this device", "the model"}};
    why.source = std::move(rule);
    return bytesFigure(std::move(key), std::move(label), double(bytes), std::move(why));
}

Why countWhy(const Inventory& tensors)
{
    return {"Σ over tensors: product of the shape", fmt::format("= {} over {} tensors", tensors.total, tensors.tensorCount()), {},
            "the model's description", {}};
}

/// B of the storage of the output that outlives the forward pass by its name alone, in training.
std::int64_t keptLogitsBytes(const TrainingAnswer& answer)
{
    const Graph& graph = *answer.simulation.graph;
    const bool isNamed = answer.setup.build.keepsLogits && graph.loss != noTensor && graph.output != noTensor;
    return isNamed ? graph.storageOf(graph.output).bytes : 0;
}

Why allocatedWhy(const TrainingAnswer& answer)
{
    const Simulation& simulation = answer.simulation;
    Why why;
    why.formula = "highest sum of live blocks, each rounded up to 512 B";
    why.with = "=";
    for (std::size_t i = 0; i < categoryCount; ++i) {
        const auto bytes = simulation.peak.categories[i];
        if (bytes == 0)
            continue;
        why.with += fmt::format("{} {} {}", why.with == "=" ? "" : " +", bytesText(double(bytes)), categoryText(Category(i)));
        why.terms.push_back({std::string(categoryText(Category(i))), double(bytes), Unit::Byte, "alive at the peak", "the simulated step"});
    }
    why.with += fmt::format(", in the {} phase", phaseText(simulation.peak.phase));
    if (const double logits = double(keptLogitsBytes(answer)); logits > 0)
        why.terms.push_back({"logits", logits, Unit::Byte, "kept by the training loop's own name for them (keeps_logits)",
                             "`logits, loss = model(x)`, `outputs = model(**batch)`"});
    why.source = tapeSource;
    why.omits = omits();
    return why;
}

Why activationsWhy(const TrainingAnswer& answer, const TextbookFigures& textbook)
{
    Why why;
    why.formula = "most bytes that results of the forward pass hold at one moment";
    why.with = fmt::format("= {}", bytesText(double(highestBytes(answer.simulation.trace, Category::Activations))));
    if (textbook.activations)
        why.terms.push_back({"textbook", *textbook.activations, Unit::Byte, textbook.activationsFormula, "Korthikanti et al. 2022"});
    why.source = tapeSource;
    why.omits = {"buffers inside kernels"};
    return why;
}

Why stepTimeWhy(const TrainingAnswer& answer)
{
    Why why;
    why.formula = "accumulation × (forward + backward + recomputation) + optimizer + exposed communication; "
                  "each operator max(FLOPs / rate, bytes / bandwidth) + launch";
    const StepTime& time = answer.time;
    const auto seconds = [](double value) { return quantityText(value, Unit::Second); };
    why.with = answer.timeMissing ? answer.timeMissing->text()
                                  : fmt::format("= {} + {} + {} + {} + {}", seconds(time.forward), seconds(time.backward),
                                                seconds(time.recomputation), seconds(time.optimizer), seconds(time.exposed));
    why.source = "roofline: Williams, Waterman, Patterson 2009; rates of the device";
    why.omits = {"Python and dispatch on the host", "cache hits between operators", "what a kernel misses of the dense rate"};
    return why;
}

Figures modelFigures(const TrainingAnswer& answer, const Inventory& tensors)
{
    const Simulation& simulation = answer.simulation;
    const KeptBytes& kept = simulation.kept;
    return {{"parameter_count", "parameters", Unit::One, double(tensors.total), {}, {}, countWhy(tensors)},
            {"active_parameter_count", "active parameters", Unit::One, double(tensors.active), {}, {},
             Why{"parameters that one token uses", fmt::format("= {}", tensors.active), {}, "the model's description", {}}},
            keptFigure("weights", "weights", kept.weights, simulation, "the precision's recipe"),
            keptFigure("master_weights", "master weights", kept.master, simulation, "fp32 copy of mixed precision"),
            keptFigure("gradients", "gradients", kept.gradients, simulation, "between backward and zero_grad"),
            keptFigure("optimizer_state", "optimizer state", kept.state, simulation, "torch.optim, bitsandbytes")};
}

Figures stepFigures(const TrainingAnswer& answer, const TextbookFigures& textbook)
{
    const Simulation& simulation = answer.simulation;
    const double allocated = double(simulation.allocatedBytes()), reserved = double(simulation.reservedBytes());
    Figures figures;
    figures.push_back(bytesFigure("activations", "activations", double(highestBytes(simulation.trace, Category::Activations)),
                                  activationsWhy(answer, textbook)));
    figures.push_back(bytesFigure(
        "temporary", "temporary", double(simulation.peak.categories[std::size_t(Category::Temporary)]),
        Why{"gradients of activations and operators' temporaries at the peak",
            fmt::format("= {}", bytesText(double(simulation.peak.categories[std::size_t(Category::Temporary)]))), {}, std::string(tapeSource), {}}));
    figures.push_back(bytesFigure("peak_allocated", "peak allocated", allocated, allocatedWhy(answer)));
    figures.push_back(bytesFigure(
        "peak_reserved", "peak reserved", reserved,
        Why{"what the caching allocator takes from the driver", fmt::format("= {} in {} segments for {} allocated", bytesText(reserved),
                                                                           simulation.allocator.peak.segments, bytesText(allocated)),
            {}, std::string(allocatorSource), {}}));
    figures.push_back(bytesFigure(
        "device_total", "device total", double(answer.deviceBytes()),
        Why{"reserved + context", fmt::format("= {} + {}", bytesText(reserved), bytesText(double(answer.setup.context))), {},
            "the context is a setting (device_context)", omits()}));
    Why fits;
    fits.formula = "1 when the device total is within the device's memory, else 0";
    fits.with = answer.capacity ? fmt::format("{} of {}", bytesText(double(answer.deviceBytes())), bytesText(double(*answer.capacity)))
                                : std::string("the device's memory is not known");
    figures.push_back({"fits", "fits", Unit::One, answer.fits ? 1.0 : 0.0, {}, {}, fits});
    figures.push_back({"step_time", "step time", Unit::Second, answer.time.total, {}, {}, stepTimeWhy(answer)});
    figures.push_back(bytesFigure("communication", "communication", answer.communication,
                                  Why{"bytes that one device sends per step", fmt::format("= {}", bytesText(answer.communication)), {},
                                      "Rajbhandari et al. 2020, section 7; Korthikanti et al. 2022, section 4.2", {}}));
    appendTextbook(figures, textbook);
    return figures;
}

class TrainingMemory final : public Experiment
{
public:
    std::string id() const override { return "training-memory"; }
    std::string title() const override { return "Memory budget"; }
    std::string question() const override { return "Will it fit, what takes the space, and what would help most?"; }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "One training step, allocation by allocation: the network's operators, what autograd saves for each, "
               "gradients, the optimizer and their temporaries, as eager PyTorch makes and frees them; then PyTorch's "
               "caching allocator replayed on it. Allocated, reserved and device total are three numbers. Every advice is "
               "a step simulated again. Left out: cuDNN's workspaces, torch.compile, and the driver's context, which is a "
               "setting.";
    }
    std::string notMeasured() const override
    {
        return "A measurement is a training step in PyTorch: it needs the PyTorch probe, which this version does not have. "
               "The prediction follows PyTorch's own allocations.";
    }
    const Schema& schema() const override { return m_schema; }
    std::vector<SeriesSpec> series() const override
    {
        return {{"peak_allocated", "peak allocated"}, {"peak_reserved", "peak reserved"}, {"device_total", "device total"},
                {"activations", "activations"}, {"step_time", "step time"}};
    }
    Sweep axis(const Device&, const Parameters& parameters) const override
    {
        return {"batch", {parameters.number("batch")}}; // the timeline is the curve; a sweep is asked for
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override;
    Result<Prediction> predict(const Device& device, const Parameters& parameters) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters) const override;

private:
    Result<std::vector<Point>> pointsOf(const Device& device, const Parameters& parameters,
                                        const std::shared_ptr<RecordedNetworks>& networks,
                                        const Figures& own) const;

    Schema m_schema = trainingSchema();
};

Result<Figures> figuresOf(const TrainingAnswer& answer)
{
    MEMSCAPE_TRY(tensors, inventory(answer.model));
    Figures figures = modelFigures(answer, tensors);
    for (Figure& figure : stepFigures(answer, textbookFigures(answer)))
        figures.push_back(std::move(figure));
    return figures;
}

Json modelJson(const TrainingAnswer& answer)
{
    return {{"name", answer.model.name},
            {"title", answer.model.title},
            {"family", familyText(answer.model.family)},
            {"architecture", answer.model.architecture},
            {"layers", answer.model.layers},
            {"source", answer.model.source},
            {"assumptions", answer.model.assumptions}};
}

Json detailOf(const Device& device, const TrainingAnswer& answer)
{
    const Simulation& simulation = answer.simulation;
    const std::int64_t over = answer.capacity ? std::max<std::int64_t>(0, answer.deviceBytes() - *answer.capacity) : 0;
    std::optional<std::int64_t> available;
    if (answer.capacity)
        available = *answer.capacity - answer.setup.context;
    Json detail = objectWithRoom(24); // more than it has, with advice
    detail["model"] = modelJson(answer);
    detail["parts"] = partsJson(simulation.peak, simulation.reservedBytes(), answer.setup.context);
    detail["fits"] = answer.fits;
    detail["over"] = over;
    detail["timeline"] = timelineJson(simulation.trace, simulation.peak, available, answer.outOfMemory);
    detail["peak"] = momentJson(simulation.trace, simulation.peak);
    detail["tree"] = treeJson(simulation.trace, simulation.peak);
    detail["live_at_end"] = simulation.allocator.current.allocated;
    detail["textbook"] = textbookJson(textbookFigures(answer));
    detail["basis"] = device.basis;
    detail["capacity"] = answer.capacity ? Json{{"bytes", *answer.capacity}, {"label", device.name}} : Json();
    return detail;
}

std::vector<Claim> claimsOf(const TrainingAnswer& answer, const Device& device, const Parameters& parameters)
{
    const std::int64_t batch = parameters.integer("batch");
    if (batch < 2)
        return trainingClaims(answer, nullptr);
    const auto halved = answerTraining(device, parameters.at("batch", double(batch / 2)), answer.networks);
    return trainingClaims(answer, halved ? &*halved : nullptr);
}

/// The points of the sweep; `own` are the figures of the parameters' own values.
Result<std::vector<Point>> TrainingMemory::pointsOf(const Device& device, const Parameters& parameters,
                                                    const std::shared_ptr<RecordedNetworks>& networks,
                                                    const Figures& own) const
{
    std::vector<Point> points;
    const Sweep sweep = sweepOf(*this, device, parameters);
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        const double* number = std::get_if<double>(&sweep.values[i]);
        Point point{number ? *number : double(i), valueText(sweep.values[i]), own, {}};
        if (parameters.sweep() && i > 0) { // the first is the parameters' own
            const Parameters there = parameters.at(sweep.key, sweep.values[i]);
            MEMSCAPE_TRY(answer, sweep.key == "model" ? answerTraining(device, there) : answerTraining(device, there, networks));
            MEMSCAPE_TRY(figures, figuresOf(answer));
            point.figures = std::move(figures);
        }
        points.push_back(std::move(point));
    }
    return points;
}

Result<Prediction> TrainingMemory::predict(const Device& device, const Parameters& parameters) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerTraining(device, own));
    MEMSCAPE_TRY(figures, figuresOf(answer));
    MEMSCAPE_TRY(points, pointsOf(device, parameters, answer.networks, figures));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = std::move(figures);
    prediction.series.insert(prediction.series.begin(), timelineSeries(answer.simulation.trace));
    prediction.detail = detailOf(device, answer);
    addAdvice(prediction.detail, device, own, answer);
    if (own.choice("advice") != "none")
        prediction.detail["claims"] = claimsJson(claimsOf(answer, device, own));
    return prediction;
}

std::vector<Claim> TrainingMemory::claims(const Device& device, const Parameters& parameters) const
{
    const auto answer = answerTraining(device, parameters);
    return answer ? claimsOf(*answer, device, parameters) : std::vector<Claim>();
}

Result<Figures> TrainingMemory::predictPoint(const Device& device, const Parameters& parameters) const
{
    MEMSCAPE_TRY(answer, answerTraining(device, parameters));
    return figuresOf(answer);
}

/// Whether the step fits. What it takes without a limit may be more than there is and still fit: the
/// allocator gives cached segments back before it gives up.
void fitInto(TrainingAnswer& answer, const Device& device)
{
    if (!device.isGpu()) // PyTorch's allocator for processors keeps nothing back
        answer.simulation.allocator.peak.reserved = answer.simulation.allocator.peak.allocated;
    if (!answer.capacity || answer.deviceBytes() <= *answer.capacity)
        return;
    AllocatorOptions options = answer.setup.allocator;
    options.deviceLimit = std::max<std::int64_t>(0, *answer.capacity - answer.setup.context);
    const AllocatorReplay replay = replayTrace(answer.simulation.trace, options);
    answer.outOfMemory = replay.outOfMemory;
    answer.fits = !replay.outOfMemory && device.isGpu();
    if (answer.fits)
        answer.simulation.allocator = replay.statistics;
}

void timeIt(TrainingAnswer& answer, const Device& device)
{
    const Plan& plan = answer.setup.step.plan;
    const auto& tensors = answer.simulation.parameters;
    answer.communication = sentBytes(dataParallelCommunication(tensors, plan));
    auto time = setupTime(device, answer.setup, *answer.simulation.graph, tensors);
    if (time) {
        answer.time = *time;
    } else {
        answer.time.total = std::numeric_limits<double>::quiet_NaN();
        answer.timeMissing = time.error();
    }
}

} // namespace

Result<StepTime> setupTime(const Device& device, const TrainingSetup& setup, const Graph& graph,
                           const std::vector<ParameterTensor>& parameters)
{
    std::vector<RecomputedRange> recomputed;
    for (const Segment& segment : segments(graph, setup.step.checkpointing))
        recomputed.push_back({segment.first, segment.last});
    return stepTime(graph, parameters, setup.step.plan, device, {1, recomputed});
}

namespace {

Result<TrainingAnswer> answered(const Device& device, const Parameters& parameters,
                                const std::shared_ptr<RecordedNetworks>& networks, int mostMicroBatches)
{
    MEMSCAPE_CHECK(checkWanted()); // advice asks for many of them
    MEMSCAPE_TRY(setup, trainingSetup(device, parameters));
    const int accumulation = setup.step.plan.accumulation;
    if (accumulation > mostMicroBatches)
        setup.step.plan.accumulation = mostMicroBatches - (accumulation - mostMicroBatches) % 2;
    MEMSCAPE_TRY(simulation, simulate(*networks, setup));
    setup.step.plan.accumulation = accumulation;
    TrainingAnswer answer;
    answer.model = networks->model();
    answer.networks = networks;
    answer.setup = std::move(setup);
    answer.simulation = std::move(simulation);
    answer.capacity = capacityOf(device);
    fitInto(answer, device);
    timeIt(answer, device);
    return answer;
}

} // namespace

Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters,
                                      const std::shared_ptr<RecordedNetworks>& networks)
{
    return answered(device, parameters, networks, std::numeric_limits<int>::max());
}

Result<TrainingAnswer> answerBriefly(const Device& device, const Parameters& parameters,
                                     const std::shared_ptr<RecordedNetworks>& networks)
{
    return answered(device, parameters, networks, 4);
}

bool trainingFits(const Device& device, const Parameters& parameters, RecordedNetworks& networks)
{
    const auto setup = trainingSetup(device, parameters);
    const auto graph = setup ? networks.network(setup->build) : fail(setup.error());
    const auto trace = graph ? simulateStep(**graph, setup->step) : fail(graph.error());
    const auto capacity = capacityOf(device);
    if (!trace || !capacity)
        return trace.has_value();
    AllocatorOptions options = setup->allocator;
    options.deviceLimit = std::max<std::int64_t>(0, *capacity - setup->context);
    if (!device.isGpu())
        return replayTrace(*trace, setup->allocator).statistics.peak.allocated <= *capacity;
    return trace->peakBytes() <= *options.deviceLimit && !replayTrace(*trace, options).outOfMemory;
}

Result<TrainingAnswer> answerTraining(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, readModel(parameters.text("model")));
    return answerTraining(device, parameters, std::make_shared<RecordedNetworks>(std::move(model)));
}

const Experiment& trainingMemoryExperiment()
{
    static const TrainingMemory experiment;
    return experiment;
}

} // namespace memscape
