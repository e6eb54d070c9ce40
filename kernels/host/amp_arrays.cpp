// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/amp_arrays.h"

#include "kernels/host/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace memscape::host {

namespace {

constexpr std::size_t chunk = 2048;
using Chunk = std::array<float, chunk>;

/// body(first, count) over chunks of `elements`, shared out among the team.
template <typename Body>
void overChunks(ThreadTeam& team, std::int64_t elements, const Body& body)
{
    team.run([&](int thread) {
        const Part part = partOf(std::size_t(elements), thread, team.size(), 64);
        for (std::size_t at = part.begin; at < part.end && !team.stopping(); at += chunk)
            body(at, std::min(chunk, part.end - at));
    });
}

} // namespace

PooledArray& PooledArray::operator=(PooledArray&& other) noexcept
{
    if (this == &other)
        return *this;
    give();
    m_pool = std::exchange(other.m_pool, nullptr);
    m_offset = other.m_offset;
    m_elements = std::exchange(other.m_elements, 0);
    m_format = other.m_format;
    m_data = std::exchange(other.m_data, nullptr);
    return *this;
}

Result<PooledArray> PooledArray::take(ArrayPool& pool, std::int64_t elements, Format format)
{
    PooledArray made;
    const std::int64_t bytes = elements * numberFormat(format).bytes;
    MEMSCAPE_TRY(offset, pool.pool.take(bytes));
    made.m_pool = &pool;
    made.m_offset = offset;
    made.m_elements = elements;
    made.m_format = format;
    made.m_data = pool.base + offset;
    std::memset(made.m_data, 0xff, std::size_t(bytes));
    return made;
}

void PooledArray::give()
{
    if (m_pool != nullptr)
        m_pool->pool.give(m_offset);
    m_pool = nullptr;
    m_data = nullptr;
    m_elements = 0;
}

void PooledArray::read(std::size_t first, std::span<float> values) const
{
    if (m_format == Format::Fp32)
        std::memcpy(values.data(), floats() + first, values.size_bytes());
    else
        widenRow(m_format, as<std::uint16_t>() + first, values.data(), values.size());
}

void PooledArray::write(std::size_t first, std::span<const float> values)
{
    if (m_format == Format::Fp32)
        std::memcpy(floats() + first, values.data(), values.size_bytes());
    else
        narrowRow(m_format, values.data(), as<std::uint16_t>() + first, values.size());
}

void eachChunk(const PooledArray& array, const std::function<void(std::span<const float>)>& body)
{
    Chunk values;
    const auto elements = std::size_t(array.elements());
    for (std::size_t at = 0; at < elements; at += chunk) {
        const std::span<float> part(values.data(), std::min(chunk, elements - at));
        array.read(at, part);
        body(part);
    }
}

void convertArray(ThreadTeam& team, const PooledArray& from, PooledArray& to)
{
    overChunks(team, from.elements(), [&](std::size_t at, std::size_t count) {
        Chunk values;
        from.read(at, {values.data(), count});
        to.write(at, {values.data(), count});
    });
}

void addBias(ThreadTeam& team, const PooledArray& bias, PooledArray& sums)
{
    const auto width = std::size_t(bias.elements());
    std::vector<float> biases(width);
    bias.read(0, biases);
    overChunks(team, sums.elements(), [&](std::size_t at, std::size_t count) {
        Chunk values;
        sums.read(at, {values.data(), count});
        std::size_t column = at % width;
        for (std::size_t i = 0; i < count; ++i) {
            values[i] += biases[column];
            column = column + 1 == width ? 0 : column + 1;
        }
        sums.write(at, {values.data(), count});
    });
}

void reluArray(ThreadTeam& team, const PooledArray& from, PooledArray& to)
{
    overChunks(team, from.elements(), [&](std::size_t at, std::size_t count) {
        Chunk values;
        from.read(at, {values.data(), count});
        for (std::size_t i = 0; i < count; ++i)
            values[i] = values[i] < 0 ? 0.0F : values[i]; // a not-a-number stays one
        to.write(at, {values.data(), count});
    });
}

void reluBackward(ThreadTeam& team, const PooledArray& activation, const PooledArray& gradient,
                  PooledArray& to)
{
    overChunks(team, gradient.elements(), [&](std::size_t at, std::size_t count) {
        Chunk values, active;
        gradient.read(at, {values.data(), count});
        activation.read(at, {active.data(), count});
        for (std::size_t i = 0; i < count; ++i)
            values[i] = active[i] > 0 ? values[i] : 0.0F;
        to.write(at, {values.data(), count});
    });
}

void sumRows(const PooledArray& gradient, PooledArray& bias)
{
    const auto width = std::size_t(bias.elements());
    const std::size_t rows = std::size_t(gradient.elements()) / width;
    std::vector<float> sums(width, 0.0F), row(width);
    for (std::size_t i = 0; i < rows; ++i) {
        gradient.read(i * width, row);
        for (std::size_t j = 0; j < width; ++j)
            sums[j] += row[j];
    }
    bias.write(0, sums);
}

void logSoftmax(const PooledArray& logits, PooledArray& logProbabilities, std::int64_t classes)
{
    const auto width = std::size_t(classes);
    std::vector<float> row(width);
    for (std::size_t at = 0; at < std::size_t(logits.elements()); at += width) {
        logits.read(at, row);
        const float most = *std::max_element(row.begin(), row.end());
        float sum = 0;
        for (const float logit : row)
            sum += std::exp(logit - most);
        const float log = std::log(sum) + most;
        for (float& logit : row)
            logit -= log;
        logProbabilities.write(at, row);
    }
}

double meanLoss(const PooledArray& logProbabilities, const PooledArray& labels,
                std::int64_t classes)
{
    const auto width = std::size_t(classes);
    const std::size_t rows = std::size_t(logProbabilities.elements()) / width;
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row)
        sum -= double(logProbabilities.floats()[row * width
                                                + std::size_t(labels.as<std::int64_t>()[row])]);
    return sum / double(rows);
}

void lossBackward(const PooledArray& logProbabilities, const PooledArray& labels,
                  PooledArray& gradient, std::int64_t classes, double factor)
{
    const auto width = std::size_t(classes);
    std::vector<float> row(width);
    for (std::size_t at = 0; at < std::size_t(gradient.elements()); at += width) {
        const auto label = std::size_t(labels.as<std::int64_t>()[at / width]);
        logProbabilities.read(at, row);
        for (std::size_t j = 0; j < width; ++j)
            row[j] = float(factor) * (std::exp(row[j]) - (j == label ? 1.0F : 0.0F));
        gradient.write(at, row);
    }
}

bool scaleArray(ThreadTeam& team, PooledArray& array, float factor)
{
    std::vector<char> isFinite(std::size_t(team.size()), 1);
    team.run([&](int thread) {
        const Part part = partOf(std::size_t(array.elements()), thread, team.size(), 64);
        float* const values = array.floats();
        bool finite = true;
        for (std::size_t i = part.begin; i < part.end; ++i) {
            values[i] *= factor;
            finite &= std::isfinite(values[i]);
        }
        isFinite[std::size_t(thread)] = finite;
    });
    return std::all_of(isFinite.begin(), isFinite.end(), [](char one) { return one != 0; });
}

void adamArray(ThreadTeam& team, const AdamStep& step, PooledArray& weights,
               const PooledArray& gradients, float* moments, float* squares)
{
    team.run([&](int thread) {
        const Part part = partOf(std::size_t(weights.elements()), thread, team.size(), 64);
        float* const w = weights.floats();
        const float* const g = gradients.floats();
        for (std::size_t i = part.begin; i < part.end; ++i) {
            moments[i] += (g[i] - moments[i]) * (1 - step.beta1);
            squares[i] = squares[i] * step.beta2 + g[i] * g[i] * (1 - step.beta2);
            const float root = std::sqrt(squares[i]) / step.correctionRoot2 + step.epsilon;
            w[i] -= step.rate * step.decay * w[i];
            w[i] -= step.rate / step.correction1 * moments[i] / root;
        }
    });
}

} // namespace memscape::host
