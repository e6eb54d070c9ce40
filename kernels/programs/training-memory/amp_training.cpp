// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/training-memory/amp_training.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr int countedSteps = 10; // of the FP32 run, spread over all of them

class TrainingRun
{
public:
    TrainingRun(TrainingMachine& machine, const PrecisionCase& asked)
        : m_machine(machine)
        , m_asked(asked)
        , m_network(trainedNetwork(asked.shape))
    { }

    /// Errors: those of the trainers; run.cancelled before the second step.
    Result<TakenTraining> run();

private:
    Result<void> open();
    Result<void> add(const std::string& key, const std::string& label, Format format, bool isScaled);
    Result<void> takeSteps();

    TrainingMachine& m_machine;
    PrecisionCase m_asked;
    TrainedNetwork m_network;
    std::vector<std::unique_ptr<AmpTrainer>> m_trainers; ///< of the courses
    TakenTraining m_taken;
};

Result<void> TrainingRun::add(const std::string& key, const std::string& label, Format format, bool isScaled)
{
    MEMSCAPE_TRY(products, m_machine.products(format));
    MEMSCAPE_TRY(check, checkTrainer(m_machine.device(), products.devices, format));
    MEMSCAPE_CHECK(check.result("training in " + label));
    TrainerOptions options{m_network, format};
    if (isScaled)
        options.scaler = m_asked.scaler();
    MEMSCAPE_TRY(trainer, makeTrainer(m_machine.device(), products.devices, options));
    m_taken.courses.push_back({key, label, {}, 0});
    m_trainers.push_back(std::move(trainer));
    m_taken.method["products"][key] = products.name;
    if (!products.tried.is_null())
        m_taken.method["tried"][std::string(numberFormat(format).key)] = products.tried;
    m_taken.method["checks"][key] = check.text();
    return {};
}

Result<void> TrainingRun::open()
{
    MEMSCAPE_CHECK(trainingRecipe(m_asked.format)); // a format that is trained in
    const NumberFormat& format = numberFormat(m_asked.format);
    const std::string key(format.key), label(format.label);
    MEMSCAPE_CHECK(add("fp32", "FP32", Format::Fp32, false));
    if (m_asked.format == Format::Fp32)
        return {};
    const bool isScaled = m_asked.format == Format::Fp16; // BF16 has the range of FP32
    MEMSCAPE_CHECK(add(key, label, m_asked.format, isScaled));
    if (isScaled)
        MEMSCAPE_CHECK(add(key + "_unscaled", label + ", not scaled", m_asked.format, false));
    return {};
}

Result<void> TrainingRun::takeSteps()
{
    const int every = std::max(1, m_asked.steps / countedSteps);
    RunSink& sink = m_machine.sink();
    for (int i = 0; i < m_asked.steps; ++i) {
        sink.progress(i, m_asked.steps, fmt::format("step {} of {}", i + 1, m_asked.steps));
        for (std::size_t which = 0; which < m_trainers.size(); ++which) {
            const bool isCounted = which == 0 && i % every == every - 1;
            MEMSCAPE_TRY(step, m_trainers[which]->step(std::uint64_t(i), isCounted ? &m_taken.gradients : nullptr));
            step.isCounted = isCounted;
            m_taken.courses[which].steps.push_back(step);
        }
        m_machine.look();
    }
    return {};
}

Result<TakenTraining> TrainingRun::run()
{
    MEMSCAPE_CHECK(open());
    m_machine.beginWatch();
    if (auto taken = takeSteps(); !taken) {
        if (taken.error().code != "run.cancelled" || m_taken.courses.back().steps.size() < 2)
            return fail(std::move(taken).error());
        m_taken.isComplete = false;
    }
    for (std::size_t i = 0; i < m_trainers.size(); ++i)
        m_taken.courses[i].peak = double(m_trainers[i]->highWater());
    m_trainers.clear(); // their arrays are the next run's
    m_taken.quality = qualityOf(m_taken, [this](std::size_t samples) { return m_machine.seen(samples); });
    m_taken.method.update(m_machine.method());
    m_taken.method["task"] = fmt::format("{} → {} → {} → {} classes, new batches of {}: which of {} random "
                                         "directions the input points along most",
                                         m_network.inputs, m_network.hidden, m_network.hidden, TrainedNetwork::classes,
                                         m_network.batch, TrainedNetwork::classes);
    return std::move(m_taken);
}

class ProgrammedTraining final : public TrainingSource
{
public:
    explicit ProgrammedTraining(TrainingMachine& machine)
        : m_machine(machine)
    { }

    const Device& device() const override { return m_machine.device(); }
    Result<TakenTraining> train(const PrecisionCase& asked, const Parameters&) override
    {
        return TrainingRun(m_machine, asked).run();
    }
    std::optional<Figure> stored(Format format, double value) override { return m_machine.stored(format, value); }

private:
    TrainingMachine& m_machine;
};

} // namespace

std::unique_ptr<PointMeasurer> makeTrainingMeasurer(TrainingMachine& machine, const Experiment& experiment,
                                                    const Parameters& parameters)
{
    return makeTrainingMeasurer(std::make_unique<ProgrammedTraining>(machine), experiment, parameters);
}

} // namespace memscape
