// SPDX-License-Identifier: Apache-2.0
// Every batch that is looked at, simulated; and what they say together.
#include "core/experiments/batch-size/batch_size.h"

#include "core/base/cancellation.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double mostScheduledSteps = 1e7;
constexpr double mostRegressionSteps = 20000; // one at a time

BatchPoint pointOf(const Device& device, const TrainingAnswer& answer)
{
    BatchPoint point;
    const Plan& plan = answer.setup.step.plan;
    point.batch = answer.setup.build.batch;
    point.accumulation = plan.accumulation;
    point.allocated = answer.simulation.allocatedBytes();
    point.device = answer.deviceBytes();
    point.isHost = !device.isGpu();
    point.fits = answer.fits;
    point.time = answer.time;
    if (answer.model.family == Family::Mlp
        && !device.framework) { // our own program trains it: no framework dispatches its kernels
        point.time.total -= point.time.dispatch;
        point.time.dispatch = 0;
    }
    point.examples = double(point.batch) * double(point.accumulation) * double(plan.dataParallel);
    if (point.time.launchBound + point.time.dispatch >= std::max(point.time.memoryBound, point.time.arithmeticBound))
        point.bound = BatchBound::Launch;
    else
        point.bound = point.time.memoryBound > point.time.arithmeticBound ? BatchBound::Memory : BatchBound::Arithmetic;
    return point;
}

/// The second micro-batch finds the gradients of the first, every later one finds what the second found: memory
/// stays (within the remainders of the allocator's blocks), and each adds the time that the second added.
BatchPoint continued(const BatchPoint& one, const BatchPoint& two, std::int64_t accumulation)
{
    BatchPoint many = two;
    const double more = double(accumulation - 2);
    many.accumulation = accumulation;
    many.examples = one.examples * double(accumulation);
    for (double StepTime::*part :
         {&StepTime::forward, &StepTime::backward, &StepTime::recomputation, &StepTime::optimizer,
          &StepTime::communication, &StepTime::exposed, &StepTime::slowed, &StepTime::dispatch, &StepTime::pageFaults,
          &StepTime::attention, &StepTime::total, &StepTime::modelFlops, &StepTime::executedFlops,
          &StepTime::arithmeticBound, &StepTime::memoryBound, &StepTime::launchBound})
        many.time.*part += more * (two.time.*part - one.time.*part);
    return many;
}

/// What the kept answers are of: everything but what only moves along them.
std::string keyOf(const Device& device, const Parameters& parameters)
{
    const auto number = [](const Sourced& sourced) { return numberText(sourced.valueOr(0)); };
    std::string key = device.id + device.basis + number(device.launch);
    if (device.calibration)
        key += device.calibration->time;
    for (const MemoryLevel& level : device.levels)
        key += ' ' + number(level.capacity) + '/' + number(level.bandwidth);
    for (const auto& [name, rate] : device.rates)
        key += ' ' + name + number(rate.flops);
    for (const auto& [name, value] : parameters.values()) {
        const bool moves = name == "batch" || name == "accumulation" || name == "target_loss" || name == "noise_scale"
            || name == "fewest_steps" || name.starts_with("schedule") || name == "batch_limit";
        if (!moves)
            key += '\n' + name + '=' + valueText(value);
    }
    return key;
}

Result<std::shared_ptr<BatchMemory>> memoryFor(const Device& device, const Parameters& parameters,
                                               PredictionContext& context)
{
    const std::string key = keyOf(device, parameters);
    if (const auto* kept = std::any_cast<std::shared_ptr<BatchMemory>>(&context.kept); kept && (*kept)->key == key)
        return *kept;
    auto memory = std::make_shared<BatchMemory>();
    memory->key = key;
    MEMSCAPE_TRY(model, askedModel(parameters));
    memory->model = model;
    memory->networks = std::make_shared<RecordedNetworks>(std::move(model));
    context.kept = memory;
    return memory;
}

/// A chain of linear layers is measured with our own kernels, and predicted as they place its arrays; a device that
/// stands for PyTorch has its rules, and so has every other network.
Device runningOn(const Device& device, const BatchMemory& memory)
{
    const bool isOwn = memory.model.family == Family::Mlp && !device.framework;
    return isOwn ? withOwnKernels(device) : device;
}

Result<void> findLargest(BatchStudy& study, const Device& device, const Parameters& training)
{
    BatchMemory& memory = *study.memory;
    if (!memory.smallest) {
        MEMSCAPE_TRY(smallest, answerTraining(runningOn(device, memory), training.at("batch", 1.0), memory.networks));
        memory.smallest = std::move(smallest);
    }
    study.capacity = memory.smallest->capacity;
    if (study.capacity && !memory.smallest->fits)
        study.over = std::max<std::int64_t>(1, memory.smallest->deviceBytes() - *study.capacity);
    if (!memory.largest)
        memory.largest = largestThatFits(device, training, "batch", *memory.smallest);
    study.largest = *memory.largest;
    return {};
}

Result<void> addCurve(BatchStudy& study, const Device& device, const Parameters& training,
                      const std::vector<std::int64_t>& batches)
{
    std::vector<std::int64_t> wanted = batches;
    const std::int64_t last = std::max<std::int64_t>(1024, std::min<std::int64_t>(study.largest.value_or(0), 65536));
    for (std::int64_t batch = 1; batch <= last; batch *= 2)
        wanted.push_back(batch);
    wanted.push_back(study.asked.batch);
    if (study.largest)
        wanted.push_back(*study.largest);
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (const std::int64_t batch : wanted) {
        MEMSCAPE_CHECK(checkWanted());
        auto point = batchPoint(device, training, batch, study.asked.accumulation, *study.memory);
        const bool isAsked = std::find(batches.begin(), batches.end(), batch) != batches.end();
        if (!point && (isAsked || point.error().code == "predict.cancelled"))
            return fail(std::move(point).error());
        if (!point) // a batch of ours, larger than can be counted
            continue;
        study.curve.push_back(*point);
        for (const std::int64_t steps : {1, 2}) // for the front, while this batch's network is at hand
            (void)batchPoint(device, training, batch, steps, *study.memory);
    }
    return {};
}

/// The same update in halves, quarters and so on.
Result<void> addSplits(BatchStudy& study, const Device& device, const Parameters& training)
{
    const std::int64_t whole = study.asked.batch * study.asked.accumulation;
    for (std::int64_t steps = 1; steps <= whole && steps <= 65536; steps *= 2) {
        if (whole % steps != 0)
            break;
        auto point = batchPoint(device, training, whole / steps, steps, *study.memory);
        if (point)
            study.splits.push_back(*point);
        else if (point.error().code == "predict.cancelled")
            return fail(std::move(point).error());
    }
    return {};
}

double secondsToTarget(const BatchStudy& study, const BatchPoint& point)
{
    return study.noise.hyperbola.steps(point.examples) * point.time.total;
}

/// "5.3 ms", "13.7 h", "41 days".
std::string durationText(double seconds)
{
    if (seconds < 600)
        return secondsText(seconds);
    if (seconds < 7200)
        return quantityText(seconds / 60, Unit::One) + " min";
    if (seconds < 2 * 86400)
        return quantityText(seconds / 3600, Unit::One) + " h";
    return quantityText(seconds / 86400, Unit::One) + " days";
}

void chooseByTime(BatchStudy& study, const std::vector<const BatchPoint*>& fitting)
{
    const auto seconds = [&](const BatchPoint* point) { return secondsToTarget(study, *point); };
    const auto best = std::min_element(fitting.begin(), fitting.end(),
                                       [&](const auto* a, const auto* b) { return seconds(a) < seconds(b); });
    const double least = seconds(*best);
    study.sweetSpot = (*best)->batch;
    study.sweetReason = fmt::format("reaches the target soonest, in {}", durationText(least));
    const auto say = [&](const BatchPoint* other) {
        study.sweetReason += fmt::format("; batch {} takes {} more ({} the throughput, {} the examples)", other->batch,
                                         percentText(seconds(other) / least - 1),
                                         percentText(other->throughput() / (*best)->throughput()),
                                         percentText(study.noise.hyperbola.examples(other->examples)
                                                     / study.noise.hyperbola.examples((*best)->examples)));
    };
    if (best != fitting.begin())
        say(*(best - 1));
    if (best + 1 != fitting.end())
        say(*(best + 1));
    else if (study.largest == study.sweetSpot)
        study.sweetReason += "; more does not fit";
}

void chooseByThroughput(BatchStudy& study, const std::vector<const BatchPoint*>& fitting)
{
    double most = 0;
    for (const BatchPoint* point : fitting)
        most = std::max(most, point->throughput());
    for (const BatchPoint* point : fitting) {
        if (point->throughput() < 0.9 * most)
            continue;
        study.sweetSpot = point->batch;
        study.sweetReason = fmt::format("the smallest with {} of the largest throughput; examples to a target are not "
                                        "known here: {}",
                                        percentText(point->throughput() / most), study.noise.reason);
        return;
    }
}

void findSweetSpot(BatchStudy& study)
{
    std::vector<const BatchPoint*> fitting;
    for (const BatchPoint& point : study.curve) {
        if (point.fits && point.time.total > 0)
            fitting.push_back(&point);
    }
    if (fitting.empty())
        study.sweetReason = study.over > 0 ? "no batch fits; the levers of Memory budget show what would help"
                                           : "the device's rates are not known";
    else if (study.noise.knowsSteps())
        chooseByTime(study, fitting);
    else
        chooseByThroughput(study, fitting);
}

Result<void> findFront(BatchStudy& study, const Device& device, const Parameters& training)
{
    std::vector<ParetoPoint> points;
    for (const BatchPoint& point : study.curve) {
        for (const std::int64_t steps : {1, 2, 4, 8, 16}) {
            MEMSCAPE_CHECK(checkWanted());
            const auto made = batchPoint(device, training, point.batch, steps, *study.memory);
            if (!made || !made->fits || !(made->time.total > 0))
                continue;
            points.push_back({point.batch, steps, double(made->allocated), made->throughput(),
                              study.noise.knowsSteps() ? study.noise.hyperbola.examples(made->examples)
                                                       : std::numeric_limits<double>::quiet_NaN()});
        }
    }
    study.front = paretoFront(std::move(points));
    return {};
}

void runSchedules(BatchStudy& study)
{
    const BatchCase& asked = study.asked;
    const double fitting = asked.update(double(study.largest.value_or(asked.batch)));
    study.mostScheduled = asked.schedule.most > 0 ? asked.schedule.most : fitting;
    const bool isSlow = study.noise.source == BatchNoise::Source::Regression;
    study.scheduleLimit = isSlow ? mostRegressionSteps : mostScheduledSteps;
    BatchSchedule schedule = asked.schedule;
    schedule.most = std::max(study.mostScheduled, schedule.least);
    if (auto course = study.noise.course(asked))
        study.schedule = runSchedule(*course, schedule, study.scheduleLimit);
    schedule.kind = ScheduleKind::Constant;
    if (auto course = asked.schedule.kind == ScheduleKind::Constant ? nullptr : study.noise.course(asked))
        study.constant = runSchedule(*course, schedule, study.scheduleLimit);
}

bool beats(const ParetoPoint& a, const ParetoPoint& b)
{
    const bool comparesExamples = std::isfinite(a.examples) && std::isfinite(b.examples);
    const bool noWorse =
        a.memory <= b.memory && a.throughput >= b.throughput && (!comparesExamples || a.examples <= b.examples);
    return noWorse
        && (a.memory < b.memory || a.throughput > b.throughput || (comparesExamples && a.examples < b.examples));
}

} // namespace

const BatchPoint* BatchStudy::at(std::int64_t batch) const
{
    const auto found =
        std::find_if(curve.begin(), curve.end(), [&](const BatchPoint& one) { return one.batch == batch; });
    return found == curve.end() ? nullptr : &*found;
}

std::vector<ParetoPoint> paretoFront(std::vector<ParetoPoint> points)
{
    std::vector<ParetoPoint> front;
    for (const ParetoPoint& point : points) {
        if (std::none_of(points.begin(), points.end(), [&](const ParetoPoint& other) { return beats(other, point); }))
            front.push_back(point);
    }
    std::stable_sort(front.begin(), front.end(), [](const auto& a, const auto& b) {
        return a.memory != b.memory ? a.memory < b.memory : a.throughput < b.throughput;
    });
    return front;
}

Result<BatchPoint> batchPoint(const Device& device, const Parameters& parameters, std::int64_t batch,
                              std::int64_t accumulation, BatchMemory& memory)
{
    const auto key = std::make_pair(batch, accumulation);
    if (const auto known = memory.points.find(key); known != memory.points.end())
        return known->second;
    if (accumulation > 2) {
        MEMSCAPE_TRY(one, batchPoint(device, parameters, batch, 1, memory));
        MEMSCAPE_TRY(two, batchPoint(device, parameters, batch, 2, memory));
        return memory.points.emplace(key, continued(one, two, accumulation)).first->second;
    }
    Parameters there = parameters.at("batch", double(batch));
    there.set("accumulation", double(accumulation));
    MEMSCAPE_TRY(answer, totalsOfTraining(runningOn(device, memory), there, memory.networks));
    return memory.points.emplace(key, pointOf(device, answer)).first->second;
}

Result<BatchStudy> studyBatch(const Device& device, const Parameters& parameters,
                              const std::vector<std::int64_t>& batches, PredictionContext& context)
{
    BatchStudy study;
    study.asked = batchCase(parameters);
    const Parameters training = trainingParameters(parameters);
    MEMSCAPE_TRY(memory, memoryFor(device, training, context));
    study.memory = memory;
    study.noise = batchNoise(memory->model, study.asked);
    MEMSCAPE_TRY(own, answerTraining(runningOn(device, *memory), training, memory->networks));
    study.own = std::move(own);
    study.point = pointOf(device, study.own);
    memory->points[{study.asked.batch, study.asked.accumulation}] = study.point;
    MEMSCAPE_CHECK(findLargest(study, device, training));
    MEMSCAPE_CHECK(addCurve(study, device, training, batches));
    MEMSCAPE_CHECK(addSplits(study, device, training));
    findSweetSpot(study);
    MEMSCAPE_CHECK(findFront(study, device, training));
    runSchedules(study);
    return study;
}

} // namespace memscape
