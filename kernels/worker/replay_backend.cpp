// SPDX-License-Identifier: Apache-2.0
// A recorded run as a device: its points arrive as if they were measured now, its provenance says that
// they were not and from which file they come. For classes without a GPU, and for tests.
//
// Only what was recorded can be asked: other parameters are refused with the recorded ones named.
#include "kernels/measure/backend.h"

#include "core/experiment/document.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr auto betweenPoints = std::chrono::milliseconds(40);

/// The figures of the i-th point of the recorded curves, under their recorded labels and bands.
Point pointAt(const Measurement& measured, std::size_t index)
{
    Point point;
    const SeriesAxis& axis = measured.series.front().x;
    point.x = axis.values[index];
    if (index < axis.names.size())
        point.name = axis.names[index];
    for (const Series& series : measured.series) {
        if (index >= series.y.size())
            continue;
        Figure figure{series.key, series.yLabel.empty() ? series.label : series.yLabel, series.yUnit};
        figure.value = series.y[index];
        if (index < series.low.size())
            figure.low = series.low[index];
        if (index < series.high.size())
            figure.high = series.high[index];
        point.figures.push_back(std::move(figure));
    }
    point.detail = {{"grade", "replayed"}, {"reason", "a recorded point"}};
    return point;
}

std::string describe(const Parameters& parameters)
{
    std::string text;
    for (const auto& [key, value] : parameters.values())
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, valueText(value));
    if (const auto& sweep = parameters.sweep())
        text += fmt::format(" (sweep over {})", sweep->key);
    return text;
}

class ReplayBackend final : public Backend
{
public:
    ReplayBackend(std::string path, std::vector<Record> records)
        : m_path(std::move(path))
        , m_records(std::move(records))
    { }

    std::string id() const override { return "replay"; }

    std::vector<BackendDevice> devices() override
    {
        std::vector<BackendDevice> devices;
        for (const Record& record : m_records) {
            const std::string id = "replay:" + record.device.id;
            const bool known =
                std::ranges::any_of(devices, [&](const BackendDevice& device) { return device.id == id; });
            if (!known)
                devices.push_back({id, record.device.name + " (recorded)", {}, record.device});
        }
        return devices;
    }

    Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device, const Parameters& parameters,
                                RunSink& sink) override
    {
        MEMSCAPE_TRY(record, recordFor(experiment, device, parameters));
        return play(*record, experiment, sink);
    }

    Result<Device> calibrate(const BackendDevice&, RunSink&) override
    {
        return fail("run.skipped", "a recorded device cannot be calibrated", "calibrate the machine itself");
    }

    std::vector<SelftestLine> selftest(const BackendDevice&, RunSink&) override
    {
        return {{"replay", true, true, "a recorded device has no kernels"}};
    }

private:
    Result<const Record*> recordFor(const Experiment& experiment, const BackendDevice& device,
                                    const Parameters& parameters) const
    {
        std::string recorded;
        for (const Record& record : m_records) {
            if (record.experiment != experiment.id() || "replay:" + record.device.id != device.id)
                continue;
            if (record.parameters == parameters)
                return &record;
            recorded += (recorded.empty() ? "" : "; ") + describe(record.parameters);
        }
        if (recorded.empty())
            return fail("run.skipped", fmt::format("{} holds no run of {}", m_path, experiment.id()),
                        "choose another experiment, or measure it on a live device");
        return fail("run.skipped", fmt::format("{} was recorded with other parameters", m_path),
                    "recorded: " + recorded);
    }

    Result<MeasuredRun> play(const Record& record, const Experiment& experiment, RunSink& sink) const
    {
        const Measurement& measured = *record.measured;
        MeasuredRun run;
        Json& told = run.provenance.machine;
        if (record.provenance.is_object())
            told = record.provenance;
        told["replayed"] = true;
        told["replayed_from"] = m_path;
        told["backend"] = "replay";
        const std::size_t count = measured.series.empty() ? 0 : measured.series.front().x.values.size();
        std::vector<Point> points;
        for (std::size_t i = 0; i < count; ++i) {
            sink.progress(static_cast<int>(i), static_cast<int>(count), "replaying " + m_path);
            std::this_thread::sleep_for(betweenPoints);
            if (sink.cancelled()) {
                run.complete = false;
                run.measurement = outcomeFromPoints(experiment, record.device, record.parameters, std::move(points));
                return run;
            }
            points.push_back(pointAt(measured, i));
            sink.point(measured.series.front().x.key, points.back());
        }
        run.measurement = measured;
        return run;
    }

    std::string m_path;
    std::vector<Record> m_records;
};

} // namespace

Result<std::unique_ptr<Backend>> makeReplayBackend(const std::string& path)
{
    MEMSCAPE_TRY(study, readStudy(path)); // a record file opens as a study of one
    std::vector<Record> measured;
    for (Record& record : study.records) {
        if (record.measured)
            measured.push_back(std::move(record));
    }
    if (measured.empty())
        return fail("document.format", fmt::format("{} holds no measured run to replay", path),
                    "save a study after measuring, or choose a record with measured values");
    return std::make_unique<ReplayBackend>(path, std::move(measured));
}

} // namespace memscape
