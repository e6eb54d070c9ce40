// SPDX-License-Identifier: Apache-2.0
// The passes of amp.cu on the GPU against plain loops in double, in one format: sizes that are no
// multiple of anything, results that begin as not-a-numbers, and one element behind each that must stay.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/training-memory/amp.h"
#include "kernels/programs/common/half.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t rows = 533, width = 67, count = rows * width;
constexpr std::uint64_t logits = rows * ampClasses;

/// Numbers of a format as their bytes, and as the doubles they are.
class Array
{
public:
    Array(ElementFormat format, std::uint64_t elements)
        : m_format(format)
        , m_bytes((elements + 1) * bytesOf(format), 0xff) // one more, a canary
        , m_elements(elements)
    { }

    static std::size_t bytesOf(ElementFormat format) { return format == ElementFormat::Float32 ? 4 : 2; }

    void set(std::uint64_t i, float value)
    {
        if (m_format == ElementFormat::Float32)
            return put(i, value);
        put(i, m_format == ElementFormat::Float16 ? floatToFloat16(value) : floatToBfloat16(value));
    }
    double at(std::uint64_t i) const
    {
        if (m_format == ElementFormat::Float32)
            return double(get<float>(i));
        const auto bits = get<std::uint16_t>(i);
        return double(m_format == ElementFormat::Float16 ? float16ToFloat(bits) : bfloat16ToFloat(bits));
    }
    bool isCanaryAlive() const { return std::isnan(at(m_elements)); }

    AmpValues upload(Scratch& scratch)
    {
        m_device = scratch.upload(m_bytes);
        return {m_device, m_elements, m_format};
    }
    void download(Scratch& scratch) { scratch.download(m_bytes, m_device); }

private:
    template <typename T> void put(std::uint64_t i, T value)
    {
        std::memcpy(m_bytes.data() + i * sizeof value, &value, sizeof value);
    }
    template <typename T> T get(std::uint64_t i) const
    {
        T value;
        std::memcpy(&value, m_bytes.data() + i * sizeof value, sizeof value);
        return value;
    }

    ElementFormat m_format;
    std::vector<unsigned char> m_bytes;
    std::uint64_t m_elements;
    unsigned char* m_device = nullptr;
};

Array filled(ElementFormat format, std::uint64_t elements, std::uint64_t seed, float scale)
{
    Array made(format, elements);
    for (std::uint64_t i = 0; i < elements; ++i)
        made.set(i, scale * mlpUniform(seed, i));
    return made;
}

/// Half a last place of a format.
double placeOf(ElementFormat format)
{
    return format == ElementFormat::Float32 ? 0x1p-22 : format == ElementFormat::Float16 ? 0x1p-11 : 0x1p-8;
}

struct Passes
{
    ElementFormat format;
    Scratch scratch = {};
    Mismatches seen = {};

    /// |found − expected| within rounding of a number about `size`.
    void near(double found, double expected, double size)
    {
        seen.compare(found, expected, 1.02 * placeOf(format) * (std::fabs(expected) + 0.01 * size) + 1e-5 * size);
    }
    void alive(const Array& array) { seen.compare(array.isCanaryAlive() ? 1 : 0, 1, 0); }

    void columns();
    void loss();
    void weights();
    void histogram();
    void batch();
};

/// Casts, bias, ReLU forward and backward, sums over rows.
void Passes::columns()
{
    Array floats = filled(ElementFormat::Float32, count, 51, 4), bias = filled(format, width, 52, 1);
    Array sums(format, count), active(format, count), biased(format, count), below(format, count),
        columnSums(format, width), wide(ElementFormat::Float32, count);
    std::vector<float> partial(ampSlices * width);
    const AmpValues a = floats.upload(scratch), s = sums.upload(scratch), b = bias.upload(scratch),
                    up = active.upload(scratch), plus = biased.upload(scratch), down = below.upload(scratch),
                    c = columnSums.upload(scratch), w = wide.upload(scratch);
    float* const slices = scratch.upload(partial);
    if (scratch.ok()) {
        scratch.note(launchAmpConvert(a, s, nullptr));
        scratch.note(launchAmpBias(b, s, up.data, true, nullptr));
        scratch.note(launchAmpBias(b, s, plus.data, false, nullptr));
        scratch.note(launchAmpReluBackward(up, plus.data, down.data, nullptr));
        scratch.note(launchAmpSumRows(plus, c, slices, nullptr));
        scratch.note(launchAmpConvert(plus, w, nullptr));
    }
    for (Array* array : {&sums, &active, &biased, &below, &columnSums, &wide})
        array->download(scratch);
    if (!scratch.ok())
        return;
    std::vector<double> columnSum(width);
    for (std::uint64_t i = 0; i < count; ++i) {
        near(sums.at(i), floats.at(i), 1);
        const double sum = sums.at(i) + bias.at(i % width);
        near(biased.at(i), sum, 1);
        near(active.at(i), std::max(sum, 0.0), 1);
        seen.compare(below.at(i), active.at(i) > 0 ? biased.at(i) : 0, 0);
        seen.compare(wide.at(i), biased.at(i), 0);
        columnSum[i % width] += biased.at(i);
    }
    for (std::uint64_t i = 0; i < width; ++i)
        near(columnSums.at(i), columnSum[i], 10);
    for (const Array* array : {&sums, &active, &biased, &below, &columnSums, &wide})
        alive(*array);
}

void Passes::loss()
{
    Array input = filled(format, logits, 53, 9), logs(format, logits), gradient(format, logits),
          wide(ElementFormat::Float32, logits);
    std::vector<std::int64_t> labels(rows);
    for (std::uint64_t row = 0; row < rows; ++row)
        labels[row] = std::int64_t(mlpMixed(row) % ampClasses);
    std::vector<float> loss(2, std::numeric_limits<float>::quiet_NaN());
    std::vector<double> mean(1);
    const AmpValues x = input.upload(scratch), l = logs.upload(scratch), g = gradient.upload(scratch),
                    w = wide.upload(scratch);
    const std::int64_t* const deviceLabels = scratch.upload(labels);
    float* const deviceLoss = scratch.upload(loss);
    double* const deviceMean = scratch.upload(mean);
    if (scratch.ok()) {
        scratch.note(launchAmpLogSoftmax(x, l.data, nullptr));
        scratch.note(launchAmpConvert(l, w, nullptr));
        scratch.note(
            launchAmpMeanLoss(static_cast<float*>(w.data), deviceLabels, rows, deviceLoss, deviceMean, nullptr));
        scratch.note(launchAmpLossBackward(l, deviceLabels, g.data, 2, nullptr));
    }
    for (Array* array : {&logs, &gradient, &wide})
        array->download(scratch);
    scratch.download(loss, deviceLoss);
    scratch.download(mean, deviceMean);
    if (!scratch.ok())
        return;
    double expected = 0;
    for (std::uint64_t row = 0; row < rows; ++row) {
        double most = -1e30, sum = 0;
        for (std::uint64_t i = row * ampClasses; i < (row + 1) * ampClasses; ++i)
            most = std::max(most, input.at(i));
        for (std::uint64_t i = row * ampClasses; i < (row + 1) * ampClasses; ++i)
            sum += std::exp(input.at(i) - most);
        for (std::uint64_t j = 0; j < ampClasses; ++j) {
            const std::uint64_t i = row * ampClasses + j;
            const bool isLabel = std::int64_t(j) == labels[row];
            near(logs.at(i), input.at(i) - most - std::log(sum), 1);
            near(gradient.at(i), 2 * (std::exp(logs.at(i)) - (isLabel ? 1 : 0)), 1);
            expected -= isLabel ? wide.at(i) / double(rows) : 0;
        }
    }
    seen.compare(mean[0], expected, 1e-10 * expected);
    seen.compare(double(loss[0]), expected, 1e-6 * expected);
    for (const Array* array : {&logs, &gradient, &wide})
        alive(*array);
    seen.compare(std::isnan(loss[1]) ? 1 : 0, 1, 0);
}

/// Two arrays of different lengths; the last number of the second one overflows at a second unscaling.
void Passes::weights()
{
    if (format != ElementFormat::Float32)
        return;
    const AmpAdamStep step{1e-3F, 0.9F, 0.999F, 1e-8F, 0.01F, 0.271F, 0.0547F};
    Array weights[2] = {filled(format, count, 54, 1), filled(format, width, 55, 1)};
    Array gradients[2] = {filled(format, count, 56, 64), filled(format, width, 57, 64)};
    Array moments[2] = {filled(format, count, 58, 1), filled(format, width, 59, 1)};
    Array squares[2] = {filled(format, count, 60, 1), filled(format, width, 61, 1)};
    gradients[1].set(width - 1, 640);
    std::vector<Array> before;
    AmpTensors tensors, scaled;
    tensors.count = scaled.count = 2;
    for (int i = 0; i < 2; ++i) {
        for (std::uint64_t j = 0; j < (i == 0 ? count : width); ++j)
            squares[i].set(j, float(std::fabs(squares[i].at(j))));
        before.insert(before.end(), {weights[i], gradients[i], moments[i], squares[i]});
        tensors.elements[i] = scaled.elements[i] = i == 0 ? count : width;
        tensors.values[i] = static_cast<float*>(weights[i].upload(scratch).data);
        tensors.gradients[i] = scaled.values[i] = static_cast<float*>(gradients[i].upload(scratch).data);
        tensors.moments[i] = static_cast<float*>(moments[i].upload(scratch).data);
        tensors.squares[i] = static_cast<float*>(squares[i].upload(scratch).data);
    }
    std::vector<int> flags(2, 0);
    int* const infinite = scratch.upload(flags);
    if (scratch.ok()) {
        scratch.note(launchAmpUnscale(scaled, 1.0F / 64, infinite, nullptr));
        scratch.note(launchAmpAdam(tensors, step, nullptr));
    }
    for (int i = 0; i < 2; ++i) {
        for (Array* array : {&weights[i], &gradients[i], &moments[i], &squares[i]})
            array->download(scratch);
    }
    if (scratch.ok())
        scratch.note(launchAmpUnscale(scaled, 1e38F, infinite + 1, nullptr));
    scratch.download(flags, infinite);
    if (!scratch.ok())
        return;
    seen.compare(flags[0], 0, 0);
    seen.compare(flags[1], 1, 0);
    for (int i = 0; i < 2; ++i) {
        for (std::uint64_t j = 0; j < (i == 0 ? count : width); ++j) {
            const double g = before[std::size_t(4 * i + 1)].at(j) / 64;
            const double m = 0.9 * before[std::size_t(4 * i + 2)].at(j) + 0.1 * g;
            const double v = 0.999 * before[std::size_t(4 * i + 3)].at(j) + double(1 - step.beta2) * g * g;
            const double w = before[std::size_t(4 * i)].at(j) * (1 - 1e-5)
                - 1e-3 / double(step.correction1) * m / (std::sqrt(v) / double(step.correctionRoot2) + 1e-8);
            seen.compare(gradients[i].at(j), g, 1e-7 * (1 + std::fabs(g)));
            seen.compare(moments[i].at(j), m, 1e-6 * (1 + std::fabs(m)));
            seen.compare(squares[i].at(j), v, 1e-6);
            seen.compare(weights[i].at(j), w, 1e-5 + 1e-5 * std::fabs(w));
        }
        for (const Array* array : {&weights[i], &gradients[i], &moments[i], &squares[i]})
            alive(*array);
    }
}

void Passes::histogram()
{
    constexpr double scale = 8;
    Array gradients = filled(format, count, 62, 3);
    for (std::uint64_t i = 0; i < count; i += 3)
        gradients.set(i, float(gradients.at(i)) * 0x1p-12F); // subnormal in FP16, some zero
    gradients.set(7, std::numeric_limits<float>::infinity());
    std::vector<AmpCounts> counts(1);
    const AmpValues g = gradients.upload(scratch);
    AmpCounts* const device = scratch.upload(counts);
    if (scratch.ok())
        scratch.note(launchAmpCount(g, scale, device, nullptr));
    scratch.download(counts, device);
    if (!scratch.ok())
        return;
    std::vector<double> bars(ampBars + 1);
    double sum = 0, squares = 0, largest = 0, foundSum = 0, foundSquares = 0, foundLargest = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const double magnitude = std::fabs(gradients.at(i)) / scale;
        if (std::isinf(magnitude))
            continue;
        if (magnitude == 0) {
            ++bars[ampBars];
            continue;
        }
        const double log = std::log2(magnitude);
        ++bars[std::size_t(std::clamp(int(std::floor(log)) - ampFirstBar, 0, ampBars - 1))];
        sum += log;
        squares += log * log;
        largest = std::max(largest, magnitude);
    }
    for (const AmpCountPart& part : counts[0].parts) {
        foundSum += part.sum;
        foundSquares += part.squares;
        foundLargest = std::max(foundLargest, part.largest);
    }
    for (int i = 0; i <= ampBars; ++i)
        seen.compare(double(counts[0].bars[i]), bars[std::size_t(i)], 0);
    seen.compare(foundSum, sum, 1e-9 * std::fabs(sum));
    seen.compare(foundSquares, squares, 1e-9 * squares);
    seen.compare(foundLargest, largest, 0);
}

/// To the bit what the host makes.
void Passes::batch()
{
    std::vector<float> directions(width * ampClasses), x(rows * width), expected(width);
    std::vector<std::int64_t> labels(rows);
    float *const d = scratch.upload(directions), *const inputs = scratch.upload(x);
    std::int64_t* const deviceLabels = scratch.upload(labels);
    if (scratch.ok()) {
        scratch.note(launchAmpDirections(d, width, nullptr));
        scratch.note(launchAmpBatch(5, rows, width, d, inputs, deviceLabels, nullptr));
    }
    scratch.download(directions, d);
    scratch.download(x, inputs);
    scratch.download(labels, deviceLabels);
    for (std::uint64_t i = 0; i < directions.size() && scratch.ok(); ++i)
        seen.compare(double(directions[i]), double(ampDirection(width, i / ampClasses, int(i % ampClasses))), 0);
    for (std::uint64_t row = 0; row < rows && scratch.ok(); ++row) {
        const int label = ampExample(5, row, width, directions.data(), expected.data());
        seen.compare(double(labels[row]), label, 0);
        for (std::uint64_t j = 0; j < width; ++j)
            seen.compare(double(x[row * width + j]), double(expected[j]), 0);
    }
}

} // namespace

KernelCheck checkAmpElements(ElementFormat format)
{
    static const char* const names[] = {"FP32", "FP16", "BF16"};
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "passes of a training step, %s", names[int(format)]);
    Passes passes{format};
    passes.columns();
    passes.loss();
    passes.weights();
    passes.histogram();
    passes.batch();
    verdict(check, passes.scratch.error(), passes.seen.wrong, passes.seen.first, passes.seen.compared);
    return check;
}

} // namespace memscape::cuda
