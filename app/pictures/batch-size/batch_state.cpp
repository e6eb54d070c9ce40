// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/batch-size/batch_state.h"

#include "app/pictures/common/json_values.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostPoints = 512; // a file may hold more
constexpr double mostBatch = 1 << 20;   // of the parameter

template <typename Body> void each(const Json& array, const Body& body)
{
    for (std::size_t i = 0; array.is_array() && i < std::min(array.size(), mostPoints); ++i)
        body(array[i]);
}

BatchMark markOf(const Json& point)
{
    BatchMark mark;
    mark.batch = number(point, "batch", 0);
    mark.accumulation = number(point, "accumulation", 1);
    mark.update = number(point, "update");
    mark.memory = number(point, "device_total");
    mark.allocated = number(point, "peak_allocated");
    mark.throughput = number(point, "throughput");
    mark.steps = number(point, "steps");
    mark.examples = number(point, "examples");
    mark.bound = textOf(point, "bound");
    mark.fits = isTrue(point, "fits", true);
    return mark;
}

double valueAt(const Json& array, std::size_t index)
{
    return array.is_array() && index < array.size() && array[index].is_number()
        ? array[index].get<double>()
        : std::numeric_limits<double>::quiet_NaN();
}

void readSchedule(const Json& schedule, BatchState& state)
{
    const Json& steps = member(schedule, "step");
    for (std::size_t i = 0; steps.is_array() && i < std::min(steps.size(), mostPoints); ++i)
        state.schedule.push_back({valueAt(steps, i), valueAt(member(schedule, "batch"), i),
                                  valueAt(member(schedule, "noise_scale"), i), valueAt(member(schedule, "loss"), i),
                                  valueAt(member(schedule, "seen"), i)});
    std::erase_if(state.schedule,
                  [](const BatchSchedulePoint& point) { return !(point.step >= 0) || !(point.batch > 0); });
    state.scheduleSteps = number(schedule, "steps", 0);
    state.scheduleExamples = number(schedule, "examples", 0);
    state.isScheduleReached = isTrue(schedule, "reached", true);
    state.constantSteps = number(member(schedule, "constant"), "steps", 0);
    state.constantExamples = number(member(schedule, "constant"), "examples", 0);
}

void readNoise(const Json& noise, BatchState& state)
{
    state.target = number(noise, "target_loss", 0);
    state.noiseScale = number(noise, "noise_scale");
    state.fewestSteps = number(noise, "fewest_steps", 0);
    state.fewestExamples = number(noise, "fewest_examples", 0);
    state.critical = state.knowsSteps() ? state.fewestExamples / state.fewestSteps : 0;
    state.noiseReason = textOf(noise, "reason");
    state.noiseRemedy = textOf(noise, "remedy");
}

void readMeasured(const Outcome& measured, BatchState& state)
{
    const Series* throughput = measured.findSeries("throughput");
    if (throughput == nullptr || throughput->x.key != "batch")
        return;
    const Series* examples = measured.findSeries("examples_to_target");
    const Series* memory = measured.findSeries("memory");
    for (std::size_t i = 0; i < std::min({throughput->x.values.size(), throughput->y.size(), mostPoints}); ++i) {
        BatchMark mark;
        mark.batch = throughput->x.values[i];
        mark.update = mark.batch * state.perBatch;
        mark.throughput = throughput->y[i];
        mark.examples = examples && i < examples->y.size() ? examples->y[i] : std::numeric_limits<double>::quiet_NaN();
        mark.steps = mark.examples / mark.update;
        mark.memory = memory && i < memory->y.size() ? memory->y[i] : std::numeric_limits<double>::quiet_NaN();
        if (mark.batch > 0)
            state.measured.push_back(mark);
    }
    if (const Json& fitted = member(measured.detail, "hyperbola"); !state.knowsSteps() && fitted.is_object()) {
        state.fewestSteps = number(fitted, "fewest_steps", 0);
        state.fewestExamples = number(fitted, "fewest_examples", 0);
        state.isFitted = state.knowsSteps();
        state.critical = state.isFitted ? state.fewestExamples / state.fewestSteps : 0;
        for (BatchMark& mark : state.curve) {
            if (state.isFitted && mark.update > 0) {
                mark.steps = state.steps(mark.update);
                mark.examples = state.examples(mark.update);
            }
        }
    }
    if (const Figure* noise = findFigure(measured.figures, "noise_scale"))
        state.measuredNoise = noise->number();
}

double between(const std::vector<BatchMark>& curve, double batch, double BatchMark::*value)
{
    const auto above = std::ranges::find_if(curve, [&](const BatchMark& mark) { return mark.batch >= batch; });
    if (above == curve.end())
        return std::numeric_limits<double>::quiet_NaN();
    if (above == curve.begin() || above->batch == batch)
        return (*above).*value;
    const BatchMark &low = *(above - 1), &high = *above;
    const double share = (std::log(batch) - std::log(low.batch)) / (std::log(high.batch) - std::log(low.batch));
    return low.*value + share * (high.*value - low.*value);
}

} // namespace

double BatchState::memoryAt(double at) const
{
    return between(curve, at, &BatchMark::memory);
}

double BatchState::allocatedAt(double at) const
{
    return between(curve, at, &BatchMark::allocated);
}

double BatchState::throughputAt(double at) const
{
    return between(curve, at, &BatchMark::throughput);
}

QString BatchState::boundAt(double at) const
{
    QString found;
    for (const BatchRegime& regime : regimes) {
        if (regime.from <= at)
            found = regime.bound;
    }
    return found;
}

BatchState batchState(const Device& device, const Parameters& parameters, const Outcome* predicted,
                      const Outcome* measured)
{
    BatchState state;
    state.device = QString::fromStdString(device.name);
    state.model = QString::fromStdString(parameters.text("model"));
    state.batch = parameters.number("batch");
    state.accumulation = parameters.number("accumulation");
    state.perBatch = state.accumulation * parameters.number("data_parallel");
    state.scheduleKind = QString::fromStdString(parameters.choice("schedule"));
    if (predicted == nullptr)
        return state;
    const Json& detail = predicted->detail;
    each(member(detail, "curve"), [&](const Json& point) { state.curve.push_back(markOf(point)); });
    std::erase_if(state.curve, [](const BatchMark& mark) { return !(mark.batch >= 1) || !(mark.memory > 0); });
    std::ranges::sort(state.curve, [](const auto& a, const auto& b) { return a.batch < b.batch; });
    each(member(detail, "regimes"), [&](const Json& regime) {
        state.regimes.push_back({textOf(regime, "bound"), number(regime, "from", 1), number(regime, "to", 1)});
    });
    each(member(detail, "pareto"), [&](const Json& point) { state.front.push_back(markOf(point)); });
    std::erase_if(state.front, [](const BatchMark& mark) { return !(mark.allocated > 0) || !(mark.throughput > 0); });
    readNoise(member(detail, "noise"), state);
    readSchedule(member(detail, "schedule"), state);
    state.capacity = number(detail, "capacity");
    state.largest = number(detail, "largest", 0);
    state.isLimited = state.largest >= mostBatch - 1;
    state.over = number(detail, "over", 0);
    state.sweetSpot = number(member(detail, "sweet_spot"), "batch", 0);
    state.sweetReason = textOf(member(detail, "sweet_spot"), "why");
    if (measured)
        readMeasured(*measured, state);
    return state;
}

QString shortCount(double count)
{
    if (!std::isfinite(count))
        return QStringLiteral("–");
    if (count < 9999.5)
        return QString::fromStdString(quantityText(count, Unit::One));
    static constexpr const char* prefixes[] = {" k", " M", " G", " T", " P"};
    int power = -1;
    while (count >= 999.5 && power < 4) {
        count /= 1000;
        ++power;
    }
    return QString::fromStdString(quantityText(count, Unit::One)) + QString::fromUtf8(prefixes[power]);
}

} // namespace memscape
