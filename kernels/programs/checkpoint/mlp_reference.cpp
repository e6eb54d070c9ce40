// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/checkpoint/mlp_reference.h"

#include "kernels/programs/checkpoint/chain_executor.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double cubic = 0.044715;
const double scale = std::sqrt(2 / std::numbers::pi);

/// A row-major matrix of doubles.
struct Matrix
{
    std::size_t rows = 0, columns = 0;
    std::vector<double> values;

    Matrix(std::size_t r, std::size_t c)
        : rows(r)
        , columns(c)
        , values(r * c)
    { }
    double& operator()(std::size_t r, std::size_t c) { return values[r * columns + c]; }
    double operator()(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
};

Matrix uniform(std::size_t rows, std::size_t columns, std::uint64_t seed, float times = 1)
{
    Matrix matrix(rows, columns);
    for (std::size_t i = 0; i < matrix.values.size(); ++i)
        matrix.values[i] = double(mlpUniform(seed, i) * times); // rounded to float, as the device has it
    return matrix;
}

/// a · b, either read transposed.
Matrix product(const Matrix& a, bool aTransposed, const Matrix& b, bool bTransposed)
{
    const std::size_t inner = aTransposed ? a.rows : a.columns;
    Matrix c(aTransposed ? a.columns : a.rows, bTransposed ? b.rows : b.columns);
    for (std::size_t i = 0; i < c.rows; ++i) {
        for (std::size_t j = 0; j < c.columns; ++j) {
            for (std::size_t k = 0; k < inner; ++k)
                c(i, j) += (aTransposed ? a(k, i) : a(i, k)) * (bTransposed ? b(j, k) : b(k, j));
        }
    }
    return c;
}

/// Largest absolute value: what rounding errors are relative to.
double largest(const std::vector<double>& values)
{
    double most = 0;
    for (const double value : values)
        most = std::max(most, std::abs(value));
    return most;
}

/// Errors relative to the largest element of the array: sums of rounded products have no better
/// measure.
void compareArray(Check& check, std::size_t place, const std::vector<float>& found,
                  const std::vector<double>& reference)
{
    const double unit = std::max(largest(reference), 1e-30);
    check.require(place, found.size() == reference.size(), "sizes differ");
    for (std::size_t i = 0; i < found.size() && i < reference.size(); ++i)
        check.compare(place + i, double(found[i]) / unit, reference[i] / unit);
}

/// Ways to run five stages: everything saved both ways, inputs kept, dropped in two segments, and
/// one that is not persistent (x_2 goes and comes again).
std::vector<Schedule> checkedSchedules()
{
    using enum OperationKind;
    std::vector<Schedule> all{saveEverything(5), saveEverything(5, MlpSave::Result), keepInputs(5)};
    all.push_back({{ForwardKeep, 0},
                   {ForwardDrop, 1},
                   {ForwardDrop, 2},
                   {ForwardSave, 3},
                   {ForwardSave, 4},
                   {Loss, 5},
                   {Backward, 4},
                   {Backward, 3},
                   {ForwardSave, 0},
                   {ForwardSave, 1},
                   {ForwardSave, 2, 1},
                   {Backward, 2},
                   {Backward, 1},
                   {Backward, 0}});
    all.push_back({{ForwardKeep, 0},  {ForwardKeep, 1},  {ForwardKeep, 2}, {DiscardValue, 2}, {ForwardSave, 3},
                   {ForwardSave, 4},  {Loss, 5},         {Backward, 4},    {Backward, 3},     {ForwardSave, 0},
                   {DiscardValue, 1}, {DiscardSaved, 1}, {ForwardKeep, 0}, {ForwardKeep, 1},  {ForwardSave, 2},
                   {Backward, 2},     {ForwardSave, 1},  {Backward, 1},    {ForwardSave, 0},  {Backward, 0}});
    return all;
}

} // namespace

double geluReference(double z)
{
    return 0.5 * z * (1 + std::tanh(scale * (z + cubic * z * z * z)));
}

double geluSlopeReference(double z)
{
    const double t = std::tanh(scale * (z + cubic * z * z * z));
    return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * scale * (1 + 3 * cubic * z * z);
}

float mlpWeightScale(const MlpShape& shape)
{
    return float(std::sqrt(3 * 2.35 / double(shape.width)));
}

MlpReference mlpReference(const MlpShape& shape)
{
    const auto batch = std::size_t(shape.batch), width = std::size_t(shape.width);
    const auto length = std::size_t(shape.length);
    std::vector<Matrix> x{uniform(batch, width, mlpInputSeed)}, z, w;
    for (std::size_t i = 0; i < length; ++i) {
        w.push_back(uniform(width, width, mlpWeightSeed(int(i)), mlpWeightScale(shape)));
        const Matrix b = uniform(1, width, mlpBiasSeed(int(i)), mlpBiasScale);
        z.push_back(product(x.back(), false, w.back(), false));
        x.push_back(z.back());
        for (std::size_t k = 0; k < x.back().values.size(); ++k) {
            z.back().values[k] += b.values[k % width];
            x.back().values[k] = geluReference(z.back().values[k]);
        }
    }
    MlpReference reference;
    reference.gradients.resize(length);
    Matrix y = uniform(batch, width, mlpTargetSeed);
    const double count = double(y.values.size());
    for (std::size_t k = 0; k < y.values.size(); ++k) {
        const double difference = x.back().values[k] - y.values[k];
        reference.loss += difference * difference / count;
        y.values[k] = 2 * difference / count;
    }
    for (std::size_t i = length; i-- > 0;) {
        for (std::size_t k = 0; k < y.values.size(); ++k)
            y.values[k] *= geluSlopeReference(z[i].values[k]);
        reference.gradients[i] = product(x[i], true, y, false).values;
        std::vector<double> bias(width);
        for (std::size_t k = 0; k < y.values.size(); ++k)
            bias[k % width] += y.values[k];
        reference.gradients[i].insert(reference.gradients[i].end(), bias.begin(), bias.end());
        y = product(y, false, w[i], true);
    }
    return reference;
}

Result<Check> checkMlpDevice(const MlpDeviceFactory& makeDevice)
{
    const MlpShape shape{5, 67, 37}; // neither a multiple of any vector
    const std::int64_t arena = 16 * mlpArrayBytes(shape);
    MEMSCAPE_TRY(device, makeDevice(shape, arena));
    const MlpReference reference = mlpReference(shape);
    // Five products of 67 terms in float, in whatever order.
    Check check({1e-5, 0});
    std::vector<std::uint64_t> digests;
    for (const Schedule& schedule : checkedSchedules()) {
        MEMSCAPE_TRY(run, execute(*device, shape, arena, schedule, {true, true, {}}));
        check.compare(0, run.loss / reference.loss, 1);
        for (std::size_t i = 0; i < reference.gradients.size(); ++i) {
            MEMSCAPE_TRY(found, device->readGradients(int(i)));
            compareArray(check, 100'000 * (i + 1), found, reference.gradients[i]);
        }
        if (digests.empty())
            digests = run.digests;
        for (std::size_t i = 0; i < digests.size(); ++i)
            check.require(i, run.digests[i] == digests[i],
                          fmt::format("gradient {} has other bits than when all is saved", i));
    }
    return check;
}

} // namespace memscape
