// SPDX-License-Identifier: GPL-3.0-or-later
// Records and services for tests of pages: real predictions, and "measurements" that are the
// prediction with every value scaled, so that errors are known.
#pragma once

#include "app/pages/experiment_page.h"
#include "core/device/catalogue.h"
#include "core/experiment/record.h"

#include <QTest>

#include <nlohmann/json.hpp>

namespace memscape {

inline Record sampleRecord(const std::string& experiment, const std::vector<std::string>& values, double scale = 1.1,
                           const std::string& device = "nvidia-h200")
{
    const Experiment& known = **findExperiment(experiment);
    const Parameters parameters = *resolve(known.schema(), values);
    Record record = *predictRecord(known, *findDevice(device), parameters);
    Measurement measured = *record.predicted;
    for (Figure& figure : measured.figures) {
        figure.why.reset();
        if (figure.isNumber())
            figure.value = figure.number() * scale;
    }
    for (Series& series : measured.series) {
        for (double& y : series.y)
            y *= scale;
    }
    record.measured = measured;
    record.provenance["time"] = "2026-01-02T03:04:05Z";
    record.provenance["grade"] = "A";
    return record;
}

/// Everything that a page needs; the worker command is what a test gives.
struct PageFixture
{
    explicit PageFixture(const QStringList& worker = {})
        : devices(options(worker))
        , runs(document, devices)
    { }

    static WorkerOptions options(const QStringList& worker)
    {
        WorkerOptions result;
        result.command = worker;
        result.restarts = 1;
        return result;
    }

    PageServices services() { return {document, devices, settings, runs}; }

    /// A page, or the `further` one of its experiment, shown and predicted; an empty device leaves the study's own.
    std::unique_ptr<ExperimentPage> open(const std::string& id, const std::string& device,
                                         const std::string& further = {})
    {
        if (!device.empty())
            document.setDevice(id, device);
        auto page = std::make_unique<ExperimentPage>(**findExperiment(id), services(), nullptr, further);
        page->resize(1280, 800);
        page->show();
        if (!QTest::qWaitForWindowExposed(page.get()))
            qWarning("the page was not exposed");
        page->updateNow();
        QTest::qWait(1);
        if (!QTest::qWaitFor([&page] { return page->upToDate(); }, 2000))
            qWarning("the page is not up to date");
        return page;
    }

    /// Memory budget, or its `further` page, with a step of GPT-2 on a T4; a batch of 64 is too much for it.
    std::unique_ptr<ExperimentPage> openStepOfGpt2(const std::string& further, const std::string& batch)
    {
        const std::string memory = "training-memory";
        const Experiment& experiment = **findExperiment(memory);
        document.setDevice(memory, "nvidia-t4");
        document.setParameters(
            memory,
            *resolve(experiment.schema(), std::vector<std::string>{"model=gpt2", "batch=" + batch, "sequence=512"}),
            {});
        auto page = std::make_unique<ExperimentPage>(experiment, services(), nullptr, further);
        page->resize(1280, 900);
        page->show();
        return page;
    }

    Settings settings;
    StudyDocument document;
    DeviceDirectory devices;
    RunController runs;
};

} // namespace memscape
