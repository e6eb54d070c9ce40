// SPDX-License-Identifier: Apache-2.0
#include "core/timing/host_operations.h"

#include "core/timing/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double grain = 16; // columns that are not parted: floats of a line
constexpr std::size_t terms = 4;
using Row = std::array<double, terms>;

double roundedUp(double count, double unit)
{
    return std::ceil(count / unit) * unit;
}

/// What one thread computes: the longer side of the result is parted.
ProductShape slabOf(const ProductShape& shape, int threads)
{
    ProductShape slab = shape;
    if (shape.n >= shape.m)
        slab.n = std::min(shape.n, roundedUp(shape.n / threads, grain));
    else
        slab.m = std::ceil(shape.m / threads);
    return slab;
}

/// 1, f, o, r of a slab.
Row featuresOf(const HostOperations& host, const ProductShape& shape)
{
    const ProductShape slab = slabOf(shape, host.threads);
    return {1, 2 * slab.k * roundedUp(slab.m, host.tileRows) * roundedUp(slab.n, host.tileColumns),
            slab.m * slab.k + slab.k * slab.n, slab.m * slab.n};
}

/// Least squares of |Σ c_j x_j − 1| with only the terms of `used`, by Gauss and Jordan; empty when they do not
/// determine it, or when one would be negative.
std::optional<Row> solved(const std::vector<Row>& rows, unsigned used)
{
    double matrix[terms][terms + 1] = {};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < terms; ++i) {
            for (std::size_t j = 0; j < terms; ++j)
                matrix[i][j] += row[i] * row[j];
            matrix[i][terms] += row[i];
        }
    }
    Row solution{};
    for (std::size_t i = 0; i < terms; ++i) {
        if (!(used >> i & 1))
            continue;
        if (!(matrix[i][i] > 1e-12 * std::abs(matrix[i][terms])) || !std::isfinite(1 / matrix[i][i]))
            return {};
        for (std::size_t other = 0; other < terms; ++other) {
            if (other == i || !(used >> other & 1))
                continue;
            const double factor = matrix[other][i] / matrix[i][i];
            for (std::size_t j = 0; j <= terms; ++j)
                matrix[other][j] -= factor * matrix[i][j];
        }
    }
    for (std::size_t i = 0; i < terms; ++i) {
        if (used >> i & 1)
            solution[i] = matrix[i][terms] / matrix[i][i];
        if (!(solution[i] >= 0))
            return {};
    }
    return solution;
}

double squaresOf(const std::vector<Row>& rows, const Row& solution)
{
    double sum = 0;
    for (const Row& row : rows) {
        double model = 0;
        for (std::size_t j = 0; j < terms; ++j)
            model += solution[j] * row[j];
        sum += (model - 1) * (model - 1);
    }
    return sum;
}

/// The best of all choices of terms that gives no negative one: with four there are fifteen. Each column is
/// scaled to its largest entry first, since a floating-point operation is a millionth of a product.
std::optional<Row> nonNegative(std::vector<Row> rows)
{
    Row scale{};
    for (const Row& row : rows) {
        for (std::size_t j = 0; j < terms; ++j)
            scale[j] = std::max(scale[j], row[j]);
    }
    for (Row& row : rows) {
        for (std::size_t j = 0; j < terms; ++j)
            row[j] = scale[j] > 0 ? row[j] / scale[j] : 0;
    }
    std::optional<Row> best;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned used = 1; used < 1u << terms; ++used) {
        const auto found = solved(rows, used);
        if (!found || squaresOf(rows, *found) >= least)
            continue;
        least = squaresOf(rows, *found);
        best = found;
    }
    if (best) {
        for (std::size_t j = 0; j < terms; ++j)
            (*best)[j] = scale[j] > 0 ? (*best)[j] / scale[j] : 0;
    }
    return best;
}

double medianOf(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return median(values);
}

std::vector<double> secondsOf(const std::vector<OperationProbe>& probes, HostOperation operation)
{
    std::vector<double> seconds;
    for (const OperationProbe& probe : probes) {
        if (probe.operation == operation && probe.seconds > 0 && std::isfinite(probe.seconds))
            seconds.push_back(probe.seconds);
    }
    return seconds;
}

tl::unexpected<Error> notMeasured(HostOperation operation)
{
    return fail("calibration.probes",
                fmt::format("no time of the operation '{}' was measured", hostOperationText(operation)),
                "calibrate again when the machine is quieter");
}

/// Seconds per byte of a pass, without its call.
Result<double> passCost(const HostOperations& host, const std::vector<OperationProbe>& probes)
{
    std::vector<double> costs;
    for (const OperationProbe& probe : probes) {
        if (probe.operation == HostOperation::Elementwise && probe.seconds > host.call)
            costs.push_back((probe.seconds - host.call) / (8 * probe.shape.m));
    }
    if (costs.empty())
        return notMeasured(HostOperation::Elementwise);
    return medianOf(costs);
}

Result<HostProductCost> productCost(const HostOperations& host, HostOperation operation,
                                    const std::vector<OperationProbe>& probes)
{
    std::vector<Row> rows;
    for (const OperationProbe& probe : probes) {
        if (probe.operation != operation || !(probe.seconds > host.call) || !std::isfinite(probe.seconds))
            continue;
        Row row = featuresOf(host, probe.shape);
        for (double& one : row)
            one /= probe.seconds - host.call;
        rows.push_back(row);
    }
    const auto found = rows.size() < terms ? std::nullopt : nonNegative(std::move(rows));
    if (!found)
        return notMeasured(operation);
    return HostProductCost{(*found)[0], (*found)[1], (*found)[2], (*found)[3]};
}

double misfitOf(const HostOperations& host, const std::vector<OperationProbe>& probes)
{
    std::vector<double> errors;
    for (const OperationProbe& probe : probes) {
        if (probe.operation < HostOperation::Elementwise && probe.seconds > 0)
            errors.push_back(std::abs(host.productSeconds(probe.operation, probe.shape) / probe.seconds - 1));
    }
    return medianOf(std::move(errors));
}

const char* const productNames[] = {"forward", "input_gradient", "weight_gradient"};

} // namespace

std::string_view hostOperationText(HostOperation operation)
{
    switch (operation) {
    case HostOperation::Forward: return "forward";
    case HostOperation::InputGradient: return "input gradient";
    case HostOperation::WeightGradient: return "weight gradient";
    case HostOperation::Elementwise: return "elementwise";
    case HostOperation::Call: return "call";
    case HostOperation::Start: break;
    }
    return "start";
}

HostProductTime HostOperations::productTime(HostOperation operation, const ProductShape& shape) const
{
    const HostProductCost& cost = products[std::size_t(operation)];
    const Row features = featuresOf(*this, shape);
    return {cost.perProduct, cost.perFlop * features[1], cost.perOperand * features[2] + cost.perResult * features[3]};
}

double HostOperations::productSeconds(HostOperation operation, const ProductShape& shape) const
{
    return call + productTime(operation, shape).total();
}

Result<HostOperations> fitHostOperations(const std::vector<OperationProbe>& probes, int threads, double tileRows,
                                         double tileColumns)
{
    HostOperations host;
    host.threads = std::max(1, threads);
    host.tileRows = std::max(1.0, tileRows);
    host.tileColumns = std::max(1.0, tileColumns);
    host.evidence = Evidence::Measured;
    const auto calls = secondsOf(probes, HostOperation::Call), starts = secondsOf(probes, HostOperation::Start);
    if (calls.empty())
        return notMeasured(HostOperation::Call);
    host.call = medianOf(calls);
    host.start = starts.empty() ? 0 : medianOf(starts);
    MEMSCAPE_TRY(perByte, passCost(host, probes));
    host.perByte = perByte;
    for (const auto operation : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient}) {
        MEMSCAPE_TRY(cost, productCost(host, operation, probes));
        host.products[std::size_t(operation)] = cost;
    }
    host.misfit = misfitOf(host, probes);
    return host;
}

std::optional<HostOperations> hostOperationsFromJson(const Json& json)
{
    if (!json.is_object())
        return {};
    bool isWhole = true;
    const auto number = [&](const Json& object, const char* key) {
        const auto entry = object.find(key);
        const bool isNumber = entry != object.end() && entry->is_number() && entry->get<double>() >= 0;
        isWhole = isWhole && isNumber;
        return isNumber ? entry->get<double>() : 0;
    };
    HostOperations host;
    host.threads = int(std::clamp(number(json, "threads"), 0.0, 65536.0));
    host.tileRows = number(json, "tile_rows");
    host.tileColumns = number(json, "tile_columns");
    host.start = number(json, "start");
    host.call = number(json, "call");
    host.perByte = number(json, "per_byte");
    host.misfit = number(json, "misfit");
    for (std::size_t i = 0; i < host.products.size(); ++i) {
        const auto cost = json.find(productNames[i]);
        if (cost == json.end() || !cost->is_object())
            return {};
        host.products[i] = {number(*cost, "per_product"), number(*cost, "per_flop"), number(*cost, "per_operand"),
                            number(*cost, "per_result")};
    }
    if (!isWhole || host.threads < 1 || host.tileRows < 1 || host.tileColumns < 1)
        return {};
    host.evidence = Evidence::Measured;
    return host;
}

/// What a core of the 2020s needs: a barrier of a few hundred clocks, two operands rearranged and one result written
/// a clock, arithmetic at nine tenths of the derived rate.
HostOperations typicalHostOperations(const Device& device)
{
    HostOperations host;
    const double clock = device.clock.valueOr(3e9);
    host.threads = std::max(1, device.units);
    const auto rate = device.rates.find("fp32");
    const double flops = rate == device.rates.end() ? 0 : rate->second.flops.valueOr(0);
    const double ofCore = flops > 0 ? 0.9 * flops / host.threads : 32 * clock;
    host.call = (host.threads > 1 ? 600 : 40) / clock;
    host.start = host.call;
    host.perByte = 1 / (32 * clock * host.threads);
    host.products.fill({100 / clock, 1 / ofCore, 0.5 / clock, 1 / clock});
    return host;
}

HostOperations hostOperations(const Device& device)
{
    if (device.calibration && device.calibration->raw.is_object()) {
        const auto kept = device.calibration->raw.find("operations");
        if (kept != device.calibration->raw.end()) {
            if (const auto host = hostOperationsFromJson(*kept))
                return *host;
        }
    }
    return typicalHostOperations(device);
}

Json hostOperationsToJson(const HostOperations& host)
{
    Json json{{"threads", host.threads},          {"tile_rows", host.tileRows},
              {"tile_columns", host.tileColumns}, {"start", jsonNumber(host.start)},
              {"call", jsonNumber(host.call)},    {"per_byte", jsonNumber(host.perByte)},
              {"misfit", jsonNumber(host.misfit)}};
    for (std::size_t i = 0; i < host.products.size(); ++i) {
        const HostProductCost& cost = host.products[i];
        json[productNames[i]] = {{"per_product", jsonNumber(cost.perProduct)},
                                 {"per_flop", jsonNumber(cost.perFlop)},
                                 {"per_operand", jsonNumber(cost.perOperand)},
                                 {"per_result", jsonNumber(cost.perResult)}};
    }
    return json;
}

} // namespace memscape
