// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/training-memory/amp_arrays.h"

#include "kernels/host/precision/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace memscape::host {

namespace {

constexpr std::size_t chunk = 2048;
using Chunk = std::array<float, chunk>;

/// Elements [first, first + values.size()), widened.
void read(const AmpArray& array, std::size_t first, std::span<float> values)
{
    if (array.format == Format::Fp32)
        std::memcpy(values.data(), array.floats() + first, values.size_bytes());
    else
        widenRow(array.format, array.as<std::uint16_t>() + first, values.data(), values.size());
}

void write(const AmpArray& array, std::size_t first, std::span<const float> values)
{
    if (array.format == Format::Fp32)
        std::memcpy(array.floats() + first, values.data(), values.size_bytes());
    else
        narrowRow(array.format, values.data(), array.as<std::uint16_t>() + first, values.size());
}

/// body(first, count) over chunks of `elements`, shared out among the team.
template <typename Body> void overChunks(ThreadTeam& team, std::int64_t elements, const Body& body)
{
    team.run([&](int thread) {
        const Part part = partOf(std::size_t(elements), thread, team.size(), 64);
        for (std::size_t at = part.begin; at < part.end && !team.stopping(); at += chunk)
            body(at, std::min(chunk, part.end - at));
    });
}

/// to ← change(sums + bias of the column), where `to` may be the sums.
template <typename Change>
void biased(ThreadTeam& team, const AmpArray& bias, const AmpArray& sums, const AmpArray& to, const Change& change)
{
    const auto width = std::size_t(bias.elements);
    std::vector<float> biases(width);
    read(bias, 0, biases);
    overChunks(team, sums.elements, [&](std::size_t at, std::size_t count) {
        Chunk values;
        read(sums, at, {values.data(), count});
        std::size_t column = at % width;
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = change(values[i] + biases[column]);
            column = column + 1 == width ? 0 : column + 1;
        }
        write(to, at, {values.data(), count});
    });
}

} // namespace

void eachChunk(const AmpArray& array, const std::function<void(std::span<const float>)>& body)
{
    Chunk values;
    const auto elements = std::size_t(array.elements);
    for (std::size_t at = 0; at < elements; at += chunk) {
        const std::span<float> part(values.data(), std::min(chunk, elements - at));
        read(array, at, part);
        body(part);
    }
}

void uniformArray(ThreadTeam& team, const AmpArray& array, std::uint64_t seed, float scale)
{
    overChunks(team, array.elements, [&](std::size_t at, std::size_t count) {
        for (std::size_t i = at; i < at + count; ++i)
            array.floats()[i] = scale * mlpUniform(seed, i);
    });
}

void convertArray(ThreadTeam& team, const AmpArray& from, const AmpArray& to)
{
    overChunks(team, from.elements, [&](std::size_t at, std::size_t count) {
        Chunk values;
        read(from, at, {values.data(), count});
        write(to, at, {values.data(), count});
    });
}

void addBias(ThreadTeam& team, const AmpArray& bias, const AmpArray& sums)
{
    biased(team, bias, sums, sums, [](float value) { return value; });
}

void biasRelu(ThreadTeam& team, const AmpArray& bias, const AmpArray& sums, const AmpArray& to)
{
    biased(team, bias, sums, to, [](float value) { return ampActive(value); });
}

void reluBackward(ThreadTeam& team, const AmpArray& activation, const AmpArray& gradient, const AmpArray& to)
{
    overChunks(team, gradient.elements, [&](std::size_t at, std::size_t count) {
        Chunk values, active;
        read(gradient, at, {values.data(), count});
        read(activation, at, {active.data(), count});
        for (std::size_t i = 0; i < count; ++i)
            values[i] = ampPassed(active[i], values[i]);
        write(to, at, {values.data(), count});
    });
}

void sumRows(const AmpArray& gradient, const AmpArray& bias)
{
    const auto width = std::size_t(bias.elements);
    const std::size_t rows = std::size_t(gradient.elements) / width;
    std::vector<float> sums(width, 0.0F), row(width);
    for (std::size_t i = 0; i < rows; ++i) {
        read(gradient, i * width, row);
        for (std::size_t j = 0; j < width; ++j)
            sums[j] += row[j];
    }
    write(bias, 0, sums);
}

void logSoftmax(const AmpArray& logits, const AmpArray& logProbabilities)
{
    float row[ampClasses];
    for (std::size_t at = 0; at < std::size_t(logits.elements); at += ampClasses) {
        read(logits, at, row);
        ampLogSoftmax(row);
        write(logProbabilities, at, row);
    }
}

double meanLoss(const AmpArray& logProbabilities, const AmpArray& labels)
{
    const std::size_t rows = std::size_t(logProbabilities.elements) / ampClasses;
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row)
        sum -= double(logProbabilities.floats()[row * ampClasses + std::size_t(labels.labels()[row])]);
    return sum / double(rows);
}

void lossBackward(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& gradient, float factor)
{
    float row[ampClasses];
    for (std::size_t at = 0; at < std::size_t(gradient.elements); at += ampClasses) {
        const auto label = std::size_t(labels.labels()[at / ampClasses]);
        read(logProbabilities, at, row);
        for (std::size_t j = 0; j < ampClasses; ++j)
            row[j] = ampLossGradient(row[j], j == label, factor);
        write(gradient, at, row);
    }
}

bool scaleArray(ThreadTeam& team, const AmpArray& array, float factor)
{
    std::vector<char> isFinite(std::size_t(team.size()), 1);
    team.run([&](int thread) {
        const Part part = partOf(std::size_t(array.elements), thread, team.size(), 64);
        float* const values = array.floats();
        bool finite = true;
        for (std::size_t i = part.begin; i < part.end; ++i) {
            values[i] *= factor;
            finite &= std::isfinite(values[i]);
        }
        isFinite[std::size_t(thread)] = finite;
    });
    return std::ranges::all_of(isFinite, [](char one) { return one != 0; });
}

void adamArray(ThreadTeam& team, const AmpAdamStep& step, const AmpParameter& parameter)
{
    team.run([&](int thread) {
        const Part part = partOf(std::size_t(parameter.weights.elements), thread, team.size(), 64);
        const float* const gradients = parameter.gradients.floats();
        float *const weights = parameter.weights.floats(), *const moments = parameter.moments.floats(),
                     *const squares = parameter.squares.floats();
        for (std::size_t i = part.begin; i < part.end; ++i) {
            float weight = weights[i], moment = moments[i], square = squares[i];
            ampAdam(step, gradients[i], weight, moment, square);
            weights[i] = weight;
            moments[i] = moment;
            squares[i] = square;
        }
    });
}

} // namespace memscape::host
