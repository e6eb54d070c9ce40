// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/pytorch_backend.h"

#include "core/base/number.h"
#include "core/device/catalogue.h"
#include "core/experiment/probed_host.h"
#include "core/experiment/record.h"
#include "kernels/measure/kept_samples.h"
#include "kernels/measure/memory.h"
#include "kernels/pytorch/calibrate_pytorch.h"
#include "kernels/pytorch/described_model.h"
#include "kernels/pytorch/measured_allocator.h"
#include "kernels/pytorch/measured_memory.h"
#include "kernels/pytorch/probe.h"
#include "kernels/pytorch/sampled_run.h"

#include <cmath>
#include <future>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// A step that is predicted to need more memory than is free is not begun, unless it is to be.
Result<void> checkRoom(const Experiment& experiment, const Device& device, const Parameters& point, RunSink& sink)
{
    if (device.isGpu())
        return {};
    const auto predicted = experiment.predictPoint(device, point);
    if (!predicted)
        return {}; // a model that only the libraries know
    for (const Figure& figure : *predicted) {
        if (figure.key != "device_total" || !std::isfinite(figure.number()))
            continue;
        const auto available = availableMemory();
        if (!available || figure.number() <= double(*available))
            return {};
        const std::string message =
            fmt::format("it is predicted to take {} and {} of memory are available",
                        quantityText(figure.number(), Unit::Byte), quantityText(double(*available), Unit::Byte));
        if (!sink.isForced())
            return fail("run.memory", message, "choose a smaller model, batch or sequence, or close other programs");
        sink.note("warning", "run.forced", message + "; it is tried anyway");
    }
    return {};
}

/// Points of one measurement of a step's bytes, one run of the probe after the other.
class Measuring
{
public:
    Measuring(PytorchProbe& probe, const Experiment& experiment, const Parameters& parameters)
        : m_probe(probe)
        , m_experiment(experiment)
        , m_device(probe.device())
        , m_parameters(parameters)
        , m_sink(probe.sink())
    { }

    Result<MeasuredRun> measured()
    {
        MEMSCAPE_CHECK(m_probe.start());
        const Sweep sweep = swept();
        for (std::size_t i = 0; i < sweep.values.size(); ++i) {
            if (m_sink.cancelled())
                break;
            if (auto done = measurePoint(sweep, i); !done) {
                if (m_points.empty() || done.error().code != "run.cancelled")
                    return fail(done.error());
                return run(false);
            }
        }
        return run(m_points.size() == sweep.values.size());
    }

private:
    /// The user's sweep, or the one point: a page's own axis is not run through.
    Sweep swept() const
    {
        if (m_parameters.sweep())
            return *m_parameters.sweep();
        const std::string key = m_experiment.axis(m_device.device, m_parameters).key;
        return {key, {m_parameters.number(key)}};
    }

    Result<void> measurePoint(const Sweep& sweep, std::size_t index)
    {
        const ParameterValue& value = sweep.values[index];
        Parameters there = m_parameters.sweep() ? m_parameters.at(sweep.key, value) : m_parameters;
        there.setSweep({});
        MEMSCAPE_CHECK(checkRoom(m_experiment, m_device.device, there, m_sink));
        Json words = parametersToJson(there);
        std::optional<AllocatorCase> played;
        if (m_experiment.id() == "allocator") {
            MEMSCAPE_TRY(asked, allocatorCase(m_device.device, there, m_context));
            MEMSCAPE_TRY(trace, playedByProbe(m_device.device, asked));
            words["played"] = std::move(trace);
            played = std::move(asked);
        } else {
            words["described"] = describedModel(there.text("model"));
        }
        MEMSCAPE_TRY(done, m_probe.run(m_experiment.id(), std::move(words)));
        if (done.result.is_object()) {
            MEMSCAPE_TRY(memory,
                         played ? measuredAllocator(m_device.device, *played, done.result)
                                : measuredMemory(m_device.device, there, done.result));
            const double* const number = std::get_if<double>(&value);
            keep({number ? *number : double(index), valueText(value), memory.figures, {}}, sweep.key, memory);
            m_provenance = done.provenance;
        }
        if (done.error)
            return fail(*done.error);
        return {};
    }

    void keep(Point point, const std::string& key, MeasuredMemory& memory)
    {
        const Quality quality = gradeOf(summarize(memory.seconds));
        point.detail = {{"grade", std::string(1, quality.grade)}, {"reason", quality.reason}};
        m_quality = m_points.empty() ? quality : worse(m_quality, quality);
        m_samples.push_back(keptSamples(point.name, memory.seconds, keptPerSet(1)));
        m_sink.point(key, point);
        if (m_points.empty())
            m_first = std::move(memory);
        m_points.push_back(std::move(point));
    }

    MeasuredRun run(bool isComplete)
    {
        MeasuredRun run;
        run.complete = isComplete;
        run.measurement = outcomeFromPoints(m_experiment, m_device.device, m_parameters, m_points);
        run.measurement.figures = m_first.figures;
        if (m_first.timeline)
            run.measurement.series.insert(run.measurement.series.begin(), *m_first.timeline);
        run.measurement.series.insert(run.measurement.series.begin(), m_first.curves.begin(), m_first.curves.end());
        run.measurement.detail = m_first.detail;
        addProbedHost(run.measurement, m_experiment, m_device.device, m_parameters, m_first.hostState);
        run.provenance.machine = m_provenance.is_object() ? m_provenance : Json::object();
        run.provenance.time = utcNow();
        run.provenance.isForced = m_sink.isForced();
        run.provenance.quality = m_quality;
        run.provenance.samples = m_samples;
        return run;
    }

    PytorchProbe& m_probe;
    const Experiment& m_experiment;
    const BackendDevice& m_device;
    const Parameters& m_parameters;
    RunSink& m_sink;
    std::vector<Point> m_points;
    MeasuredMemory m_first;
    PredictionContext m_context;
    Quality m_quality;
    Json m_samples = Json::array(), m_provenance;
};

class PytorchBackend final : public Backend
{
public:
    PytorchBackend(std::string python, double seconds)
        : m_asked(std::async(std::launch::async,
                             [python = std::move(python), seconds] { return findTorch(python, seconds); }))
    { }

    std::string id() const override { return "pytorch"; }

    std::vector<BackendDevice> devices() override
    {
        const Result<PythonTorch>& torch = found();
        if (!torch)
            return {{"pytorch:cpu", "PyTorch on this CPU", torch.error().text(), {}}};
        if (m_devices.empty())
            m_devices = devicesOf(*torch);
        return m_devices;
    }

    Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device, const Parameters& parameters,
                                RunSink& sink) override
    {
        const Result<PythonTorch>& torch = found();
        if (!torch)
            return fail(torch.error());
        if (const std::string reason = experiment.notMeasuredOn(device.device); !reason.empty())
            return fail("run.skipped", reason, "look at the prediction, or choose another device");
        PytorchProbe probe(*torch, device, sink);
        if (const MeasureInPytorch measure = sampledInPytorch(experiment.id()))
            return measure(probe, experiment, parameters);
        return Measuring(probe, experiment, parameters).measured();
    }

    Result<Device> calibrate(const BackendDevice& device, RunSink& sink) override
    {
        if (device.device.isGpu())
            return fail(
                "run.skipped", fmt::format("{} has no rates of its own", device.name),
                fmt::format("calibrate {}: its rates are used here", device.id.substr(device.id.find(':') + 1)));
        const Result<PythonTorch>& torch = found();
        if (!torch)
            return fail(torch.error());
        PytorchProbe probe(*torch, device, sink);
        return calibratePytorch(probe);
    }

    /// One training step of a small network: that its events add up is checked where they become a trace.
    std::vector<SelftestLine> selftest(const BackendDevice& device, RunSink& sink) override
    {
        SelftestLine line{"training step, memscape_probe", false, false, {}};
        const auto experiment = findExperiment("training-memory");
        const auto parameters = resolve((*experiment)->schema(),
                                        std::vector<std::string>{"model=mlp:64,64,8", "batch=4", "precision=fp32"});
        const auto run = measure(**experiment, device, *parameters, sink);
        line.passed = run.has_value();
        line.skipped = !run && run.error().code == "run.skipped";
        line.detail = run ? "ran" : run.error().text();
        return {line};
    }

private:
    const Result<PythonTorch>& found()
    {
        if (!m_found)
            m_found = m_asked.get();
        return *m_found;
    }

    static std::vector<BackendDevice> devicesOf(const PythonTorch& torch)
    {
        std::vector<BackendDevice> devices;
        const std::string title = "PyTorch " + torch.torch;
        const auto add = [&](const std::string& id, const std::string& place, Device device) {
            device.id = "pytorch:" + id;
            device.name = title + " on " + place;
            device.framework = Framework{"pytorch", torch.torch};
            if (!device.isGpu())
                device = withCalibration(std::move(device));
            devices.push_back({device.id, device.name, {}, device});
        };
        auto host = findDevice("cpu");
        add("cpu", "this CPU", host ? *host : describeHost());
        if (torch.hasCuda) {
            for (BackendDevice& gpu : makeCudaBackend()->devices()) {
                if (gpu.missing.empty())
                    add(gpu.id, gpu.name, withCalibration(std::move(gpu.device)));
            }
        }
        return devices;
    }

    std::future<Result<PythonTorch>> m_asked;
    std::optional<Result<PythonTorch>> m_found;
    std::vector<BackendDevice> m_devices;
};

} // namespace

std::unique_ptr<Backend> makePytorchBackend(const std::string& python, double seconds)
{
    return std::make_unique<PytorchBackend>(python.empty() ? chosenPython() : python, seconds);
}

bool isPytorchId(const std::string& id)
{
    return id.starts_with("pytorch:");
}

} // namespace memscape
