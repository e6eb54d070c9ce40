// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/training-memory/amp_device.h"

#include "kernels/host/measurement.h"
#include "kernels/host/precision/precision.h"
#include "kernels/host/training-memory/amp_arrays.h"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

class HostAmpDevice final : public AmpDevice
{
public:
    HostAmpDevice(HostSession& session, const GemmKernel& kernel, std::shared_ptr<HostBatch> batch)
        : m_session(session)
        , m_kernel(kernel)
        , m_batch(std::move(batch))
    { }

    Result<void> open(std::int64_t arenaBytes)
    {
        MEMSCAPE_CHECK(m_session.checkFits(double(arenaBytes)));
        MEMSCAPE_SET(m_arena, allocate(std::size_t(arenaBytes), Pages::Huge, m_session.memory()));
        return {};
    }

    std::byte* arena() override { return m_arena.data(); }

    Result<void> poison(const AmpArray& array) override
    {
        std::memset(array.data, 0xff, std::size_t(array.bytes()));
        return {};
    }
    Result<void> clear(const AmpArray& array) override
    {
        std::memset(array.data, 0, std::size_t(array.bytes()));
        return {};
    }
    Result<void> uniform(const AmpArray& array, std::uint64_t seed, float scale) override
    {
        uniformArray(team(), array, seed, scale);
        return {};
    }
    Result<void> batch(const TrainedNetwork& network, std::uint64_t index, const AmpArray& inputs,
                       const AmpArray& labels) override
    {
        m_batch->fill(team(), network, index);
        MEMSCAPE_CHECK(m_session.checkStopped());
        std::copy(m_batch->inputs.begin(), m_batch->inputs.end(), inputs.floats());
        std::copy(m_batch->labels.begin(), m_batch->labels.end(), labels.labels());
        return {};
    }

    Result<int> prepare(const AmpProduct& product) override
    {
        const auto& [m, n, k] = product.shape;
        MEMSCAPE_TRY(made,
                     TeamGemm::make(m_session, m_kernel,
                                    {product.shape, product.format, product.format, product.aTransposed ? m : k,
                                     product.bTransposed ? k : n, n, product.aTransposed, product.bTransposed}));
        m_products.push_back(std::move(made));
        return int(m_products.size()) - 1;
    }
    Result<void> multiply(int product, const AmpArray& a, const AmpArray& b, const AmpArray& c) override
    {
        m_products[std::size_t(product)].run(a.data, b.data, c.data);
        return {};
    }

    Result<void> convert(const AmpArray& from, const AmpArray& to) override
    {
        convertArray(team(), from, to);
        return {};
    }
    Result<void> addBias(const AmpArray& bias, const AmpArray& sums) override
    {
        host::addBias(team(), bias, sums);
        return {};
    }
    Result<void> biasRelu(const AmpArray& bias, const AmpArray& sums, const AmpArray& to) override
    {
        host::biasRelu(team(), bias, sums, to);
        return {};
    }
    Result<void> reluBackward(const AmpArray& activation, const AmpArray& gradient, const AmpArray& to) override
    {
        host::reluBackward(team(), activation, gradient, to);
        return {};
    }
    Result<void> sumRows(const AmpArray& gradient, const AmpArray& bias) override
    {
        host::sumRows(gradient, bias);
        return {};
    }

    Result<void> logSoftmax(const AmpArray& logits, const AmpArray& logProbabilities) override
    {
        host::logSoftmax(logits, logProbabilities);
        return {};
    }
    Result<void> meanLoss(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& loss) override
    {
        m_loss = host::meanLoss(logProbabilities, labels);
        *loss.floats() = float(m_loss);
        return {};
    }
    Result<void> lossBackward(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& gradient,
                              double factor) override
    {
        host::lossBackward(logProbabilities, labels, gradient, float(factor));
        return {};
    }

    Result<void> unscale(std::span<const AmpArray> gradients, float factor) override
    {
        m_isInfinite = false;
        for (const AmpArray& gradient : gradients)
            m_isInfinite |= !scaleArray(team(), gradient, factor);
        return {};
    }
    Result<bool> foundInfinite() override { return m_isInfinite; }
    Result<void> adam(const AmpAdamStep& step, std::span<const AmpParameter> parameters) override
    {
        for (const AmpParameter& parameter : parameters)
            adamArray(team(), step, parameter);
        return {};
    }

    Result<void> begin() override
    {
        m_counting = 0;
        m_begin = m_session.clock().now();
        return {};
    }
    Result<double> end() override { return m_session.clock().now() - m_begin - m_counting; }
    Result<void> count(const AmpArray& gradients, double scale, GradientCounter& counter) override
    {
        const double began = m_session.clock().now();
        eachChunk(gradients, [&](std::span<const float> part) { counter.add(part, scale); });
        m_counting += m_session.clock().now() - began;
        return {};
    }
    Result<double> loss() override { return m_loss; }
    Result<std::vector<float>> read(const AmpArray& array) override
    {
        return std::vector<float>(array.floats(), array.floats() + array.elements);
    }
    Result<void> checkStopped() override { return m_session.checkStopped(); }

private:
    ThreadTeam& team() { return m_session.team(); }

    HostSession& m_session;
    GemmKernel m_kernel;
    std::shared_ptr<HostBatch> m_batch;
    Buffer m_arena;
    std::vector<TeamGemm> m_products;
    double m_loss = 0, m_begin = 0, m_counting = 0; // s
    bool m_isInfinite = false;
};

class HostTrainingMachine final : public TrainingMachine
{
public:
    explicit HostTrainingMachine(HostSession& session)
        : m_session(session)
        , m_watch(session.watch().fastestClock())
    { }

    const Device& device() const override { return m_session.device(); }
    RunSink& sink() override { return m_session.sink(); }
    Result<TrainingProducts> products(Format format) override
    {
        MEMSCAPE_TRY(choice, fastestGemm(m_session, format));
        return TrainingProducts{hostAmpDevices(m_session, choice.kernel, m_batch), choice.kernel.name, choice.tried};
    }
    void beginWatch() override
    {
        m_watch = ContentionWatch(m_session.watch().fastestClock());
        m_watch.start(m_session.readTicks());
        m_watch.add(m_session.readCanary());
    }
    RunConditions seen(std::size_t samples) override
    {
        m_watch.add(m_session.readCanary());
        return m_watch.conditions(m_session.readTicks(), samples);
    }
    Json method() const override
    {
        return {{"threads", m_session.team().size()}, {"instructions", numberInstructions()}};
    }
    std::optional<Figure> stored(Format format, double value) override { return storedFigure(format, value); }

private:
    HostSession& m_session;
    ContentionWatch m_watch;
    std::shared_ptr<HostBatch> m_batch = std::make_shared<HostBatch>();
};

} // namespace

void HostBatch::fill(ThreadTeam& team, const TrainedNetwork& wanted, std::uint64_t wantedIndex)
{
    const bool isThere =
        !inputs.empty() && index == wantedIndex && network.batch == wanted.batch && network.inputs == wanted.inputs;
    if (isThere)
        return;
    network = wanted;
    index = wantedIndex;
    const auto width = std::uint64_t(wanted.inputs);
    std::vector<float> directions(width * ampClasses);
    inputs.resize(std::size_t(wanted.batch) * width);
    labels.resize(std::size_t(wanted.batch));
    for (std::uint64_t i = 0; i < directions.size(); ++i)
        directions[i] = ampDirection(width, i / ampClasses, int(i % ampClasses));
    team.run([&](int thread) {
        const Part rows = partOf(labels.size(), thread, team.size());
        for (std::size_t row = rows.begin; row < rows.end && !team.stopping(); ++row)
            labels[row] = ampExample(index, row, width, directions.data(), inputs.data() + row * width);
    });
}

AmpDeviceFactory hostAmpDevices(HostSession& session, const GemmKernel& kernel, std::shared_ptr<HostBatch> batch)
{
    return [&session, kernel, batch](std::int64_t arenaBytes) -> Result<std::unique_ptr<AmpDevice>> {
        auto device = std::make_unique<HostAmpDevice>(session, kernel, batch);
        MEMSCAPE_CHECK(device->open(arenaBytes));
        return std::unique_ptr<AmpDevice>(std::move(device));
    };
}

Result<MeasuredRun> measureTraining(HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    MEMSCAPE_CHECK(checkTrained(parameters));
    HostTrainingMachine machine(session);
    return runSweep(experiment, parameters, *makeTrainingMeasurer(machine, experiment, parameters), session);
}

} // namespace memscape::host
