// SPDX-License-Identifier: Apache-2.0
// The host as a backend: always there, a real device with real caches.
#include "kernels/host/host_backend.h"

#include "core/device/catalogue.h"
#include "core/experiment/record.h"
#include "kernels/host/allocator/allocator.h"
#include "kernels/host/batch-size/batch_size.h"
#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/measurement.h"
#include "kernels/host/precision/precision.h"
#include "kernels/host/roofline/roofline.h"

#include <map>
#include <new>

#include <nlohmann/json.hpp>

namespace memscape {

namespace host {
// One for every experiment that is a sweep over points.
std::unique_ptr<HostMeasurement> makeHierarchyMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeStrideMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeTransferMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeLoadingMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeLayoutMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeInPlaceMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makePlacementMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeAttentionMeasurement(HostSession& session);
std::unique_ptr<HostMeasurement> makeShardingMeasurement(HostSession& session);
} // namespace host

namespace {

using Measure = Result<MeasuredRun> (*)(host::HostSession&, const Experiment&, const Parameters&);

template <std::unique_ptr<host::HostMeasurement> (*make)(host::HostSession&)>
Result<MeasuredRun> swept(host::HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    const std::unique_ptr<host::HostMeasurement> measurement = make(session);
    return host::runSweep(experiment, parameters, *measurement, session);
}

/// What this CPU can be asked; null for the others. `roofline` asks these again.
Measure measureOf(const std::string& experiment)
{
    static const std::map<std::string, Measure> all{
        {"hierarchy", swept<host::makeHierarchyMeasurement>},
        {"stride", swept<host::makeStrideMeasurement>},
        {"transfer", swept<host::makeTransferMeasurement>},
        {"loading", swept<host::makeLoadingMeasurement>},
        {"layout", swept<host::makeLayoutMeasurement>},
        {"in-place", swept<host::makeInPlaceMeasurement>},
        {"placement", swept<host::makePlacementMeasurement>},
        {"attention", swept<host::makeAttentionMeasurement>},
        {"sharding", swept<host::makeShardingMeasurement>},
        {"allocator", host::measureAllocator},
        {"batch-size", host::measureBatchSize},
        {"checkpoint", host::measureCheckpoint},
        {"precision", host::measurePrecision},
    };
    const auto found = all.find(experiment);
    return found == all.end() ? nullptr : found->second;
}

Result<MeasuredRun> measureExperiment(host::HostSession& session, const Experiment& experiment,
                                      const Parameters& parameters)
{
    if (const Measure measure = measureOf(experiment.id()))
        return measure(session, experiment, parameters);
    if (const std::string reason = experiment.notMeasuredOn(session.device()); !reason.empty())
        return fail("run.skipped", reason, "look at the prediction, or choose another device");
    return fail("run.skipped", "\"" + experiment.question() + "\" has no measurement on a CPU",
                "choose a GPU, or look at the prediction");
}

class HostBackend final : public Backend
{
public:
    explicit HostBackend(host::Instruments instruments)
        : m_instruments(std::move(instruments))
    { }

    std::string id() const override { return "host"; }

    std::vector<BackendDevice> devices() override
    {
        auto device = findDevice("cpu");
        BackendDevice found{"cpu", {}, {}, device ? *device : describeHost()};
        found.name = found.device.name;
        return {std::move(found)};
    }

    Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device, const Parameters& parameters,
                                RunSink& sink) override
    {
        try {
            return measured(experiment, device, parameters, sink);
        } catch (const std::bad_alloc&) {
            return fail("run.memory", "the memory ran out while it was measured",
                        "choose smaller sizes, or close other programs");
        }
    }

    Result<MeasuredRun> measured(const Experiment& experiment, const BackendDevice& device,
                                 const Parameters& parameters, RunSink& sink) const
    {
        host::HostSession session(device.device, sink, m_instruments);
        if (experiment.id() == "roofline")
            return host::measureRoofline(session, measureExperiment);
        return measureExperiment(session, experiment, parameters);
    }

    Result<Device> calibrate(const BackendDevice& device, RunSink& sink) override
    {
        // From the description, not from an older calibration.
        const Device described = describeHost();
        host::HostSession session(described, sink, m_instruments);
        MEMSCAPE_TRY(probes, host::probeHost(session));
        MEMSCAPE_TRY(calibrated, fitHostCalibration(described, probes));
        calibrated.id = device.id;
        if (calibrated.calibration) { // the fit has no clock
            calibrated.calibration->time = programProvenance().value("time", std::string());
            calibrated.calibration->program = "memscape " + programVersion();
        }
        return calibrated;
    }

    std::vector<SelftestLine> selftest(const BackendDevice&, RunSink& sink) override
    {
        return host::selftestHost(sink);
    }

private:
    host::Instruments m_instruments;
};

} // namespace

std::unique_ptr<Backend> makeHostBackend()
{
    return host::makeHostBackend({});
}

std::unique_ptr<Backend> host::makeHostBackend(Instruments instruments)
{
    return std::make_unique<HostBackend>(std::move(instruments));
}

} // namespace memscape
