// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/batch-size/batch_device.h"

#include "kernels/host/batch-size/batch_program.h"
#include "kernels/programs/batch-size/batch_numbers.h"

#include <algorithm>

namespace memscape::host {

namespace {

constexpr double aloneFlops = 4e6;          // of a step; waking the others takes longer
constexpr std::int64_t aloneInputs = 16384; // numbers to make; the same

/// Examples and targets, made from their numbers.
class BatchData
{
public:
    BatchData(const BatchShape& shape, const ProductKernel& product);
    void fill(HostSession& session, std::uint64_t first, std::int64_t count, float* x, float* t) const;
    double risk(const float* weights, const float* bias) const;

private:
    std::size_t m_inputs, m_outputs;
    bool m_isLinear;
    ProductKernel m_product;
    std::vector<float> m_truth, m_scales; ///< W*, √λ_j
};

BatchData::BatchData(const BatchShape& shape, const ProductKernel& product)
    : m_inputs(std::size_t(shape.inputs()))
    , m_outputs(std::size_t(shape.outputs()))
    , m_isLinear(shape.isLinear())
    , m_product(product)
    , m_truth(m_inputs * m_outputs)
    , m_scales(batchScales(shape.inputs()))
{
    const float magnitude = batchTruthMagnitude(shape.inputs());
    for (std::size_t i = 0; i < m_truth.size(); ++i)
        m_truth[i] = batchTruth(i, magnitude);
}

void BatchData::fill(HostSession& session, std::uint64_t first, std::int64_t count, float* x, float* t) const
{
    const std::size_t in = m_inputs, out = m_outputs;
    const float noise = batchNoise();
    const auto body = [&](int thread, int threads) {
        ProductScratch scratch;
        const Part rows = partOf(std::size_t(count), thread, threads);
        for (std::size_t row = rows.begin; row < rows.end && !session.team().stopping(); ++row) {
            for (std::size_t j = 0; j < in; ++j)
                x[row * in + j] = batchInput((first + row) * in + j, m_scales[j]);
        }
        if (rows.size() > 0)
            m_product.run({rows.size(), out, in, x + rows.begin * in, in, false, m_truth.data(), in, true,
                           t + rows.begin * out, out, false},
                          scratch);
        for (std::size_t i = rows.begin * out; i < rows.end * out; ++i)
            t[i] = batchTarget(first * out + i, t[i], m_isLinear, noise);
    };
    if (count * std::int64_t(in) < aloneInputs)
        return body(0, 1);
    session.team().run([&](int thread) { body(thread, session.team().size()); });
}

double BatchData::risk(const float* weights, const float* bias) const
{
    double sum = 0;
    const std::size_t in = m_inputs, out = m_outputs;
    for (std::size_t k = 0; k < out; ++k) {
        float part = 0; // rounding is far below the labels' noise
        for (std::size_t j = 0; j < in; ++j) {
            const float off = (weights[k * in + j] - m_truth[k * in + j]) * m_scales[j];
            part += off * off;
        }
        sum += double(part) + double(bias[k]) * double(bias[k]);
    }
    return sum / double(out) + NoisyRegression::labelVariance;
}

class HostBatchDevice final : public BatchDevice
{
public:
    HostBatchDevice(HostSession& session, const ProductKernel& product, const BatchShape& shape)
        : m_session(session)
        , m_team(session, product)
        , m_shape(shape)
        , m_data(shape, product)
    { }

    Result<void> open(std::int64_t arenaBytes, std::int64_t storeBytes)
    {
        MEMSCAPE_SET(m_arena, allocate(std::size_t(arenaBytes), Pages::Huge, m_session.memory()));
        m_store.resize(std::size_t(storeBytes / 4));
        return {};
    }

    float* arena() override { return reinterpret_cast<float*>(m_arena.data()); }
    float* store() override { return m_store.empty() ? nullptr : m_store.data(); }

    Result<void> fill(std::uint64_t first, std::int64_t count, float* x, float* t) override
    {
        m_data.fill(m_session, first, count, x, t);
        return {};
    }
    Result<BatchSums> run(const BatchOperations& step, float rate, bool countsNorms) override
    {
        BatchSums sums;
        m_team.run(step, rate, countsNorms, sums);
        return sums;
    }
    Result<void> learn(const BatchOperations& step, float rate) override
    {
        double flops = 0;
        for (std::size_t i = 0; i + 1 < m_shape.sizes.size(); ++i)
            flops += 6.0 * double(m_shape.update()) * double(m_shape.sizes[i]) * double(m_shape.sizes[i + 1]);
        BatchSums unwanted;
        if (flops < aloneFlops)
            m_team.runAlone(step, rate);
        else
            m_team.run(step, rate, false, unwanted);
        return {};
    }
    Result<double> sample(const BatchOperations& step, int repeats) override
    {
        double seconds = 0;
        BatchSums unwanted;
        for (int i = 0; i < repeats; ++i)
            seconds += m_team.run(step, 0, false, unwanted);
        return seconds / repeats;
    }
    int repeatsFor(double seconds) const override
    {
        return std::max(1, int(shortestSample / possibleSeconds(seconds, 0)));
    }
    Result<double> risk(const float* weights, const float* bias) override { return m_data.risk(weights, bias); }

    Result<void> read(const float* from, std::span<float> values) override
    {
        std::copy_n(from, values.size(), values.begin());
        return {};
    }
    Result<void> write(float* to, std::span<const float> values) override
    {
        std::copy(values.begin(), values.end(), to);
        return {};
    }
    Result<void> checkStopped() override { return m_session.checkStopped(); }

private:
    HostSession& m_session;
    BatchTeam m_team;
    BatchShape m_shape;
    BatchData m_data;
    Buffer m_arena;
    std::vector<float> m_store; ///< the update's examples, when it is more than one micro-batch
};

} // namespace

BatchDeviceFactory batchDevices(HostSession& session, const ProductKernel& product)
{
    return
        [&session, product](const BatchShape& shape, std::int64_t arenaBytes) -> Result<std::unique_ptr<BatchDevice>> {
            const std::int64_t store = shape.storeBytes();
            MEMSCAPE_CHECK(session.checkFits(double(arenaBytes) + double(store)));
            auto device = std::make_unique<HostBatchDevice>(session, product, shape);
            MEMSCAPE_CHECK(device->open(arenaBytes, store));
            return std::unique_ptr<BatchDevice>(std::move(device));
        };
}

} // namespace memscape::host
