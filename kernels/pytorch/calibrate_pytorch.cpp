// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/calibrate_pytorch.h"

#include "core/experiment/record.h"
#include "core/timing/pytorch_operations.h"
#include "kernels/measure/quality.h"
#include "kernels/pytorch/sampled_run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

Result<Quality> qualityOf(const JsonReader& probes, const RunConditions& conditions)
{
    std::map<std::string, std::vector<double>> spreads;
    MEMSCAPE_TRY(rows, probes.items());
    for (const JsonReader& row : rows) {
        MEMSCAPE_TRY(kind, row.string("kind"));
        MEMSCAPE_TRY(spread, row.number("spread", 0.0));
        spreads[kind].push_back(spread);
    }
    return gradeOfParts(spreads, conditions.stealShare);
}

Json productRatesOf(const PytorchOperations& host)
{
    Json rates = Json::object();
    for (const auto& [format, rate] : host.rates)
        rates[format] = jsonNumber(rate);
    return rates;
}

} // namespace

Result<Device> calibratePytorch(PytorchProbe& probe)
{
    MEMSCAPE_CHECK(probe.start());
    probe.sink().progress(0, 0, "importing PyTorch");
    Device device = probe.device().device;
    ProbeWatch watch(device);
    watch.begin();
    MEMSCAPE_TRY(done, probe.run("calibration", Json::object()));
    if (done.error)
        return fail(*done.error);
    const JsonReader result(done.result, "result");
    MEMSCAPE_TRY(detail, result.at("detail"));
    MEMSCAPE_TRY(rows, detail.at("probes"));
    MEMSCAPE_TRY(threads, detail.number("threads"));
    MEMSCAPE_TRY(probes, pytorchProbesFromJson(rows));
    MEMSCAPE_TRY(operations, fitPytorchOperations(probes, int(std::clamp(threads, 1.0, 65536.0))));
    MEMSCAPE_TRY(quality, qualityOf(rows, watch.end(probes.size())));

    Calibration calibration = device.calibration.value_or(Calibration());
    if (!calibration.raw.is_object())
        calibration.raw = Json::object();
    calibration.raw["pytorch"] = pytorchOperationsToJson(operations);
    calibration.raw["product_rates"] = productRatesOf(operations);
    calibration.time = utcNow();
    calibration.program = "memscape " + programVersion();
    calibration.machine = device.name;
    calibration.grade = std::string(1, quality.grade);
    device.calibration = std::move(calibration);
    device.basis = "calibrated";
    device.notes.push_back(fmt::format("calibration grade {}: {}", quality.grade, quality.reason));
    return device;
}

} // namespace memscape
