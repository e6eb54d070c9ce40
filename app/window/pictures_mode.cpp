// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/pictures_mode.h"

#include "app/document/pages.h"
#include "app/pages/basis_predictions.h"
#include "app/pages/curves.h"
#include "app/pages/records/record_text.h"
#include "app/plots/plot_view.h"
#include "app/settings/theme.h"
#include "app/settings/words.h"
#include "app/window/main_window.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"

#include <QApplication>
#include <QBuffer>
#include <QElapsedTimer>

#include <algorithm>

namespace memscape {

namespace {

constexpr int workerPatience = 3000; ///< ms to wait for a worker's hello
constexpr int patience = 20000;      ///< ms for the slowest prediction

CurveInput inputOf(const Record& record, const std::vector<Record>& others)
{
    CurveInput input;
    input.predicted = record.predicted ? &*record.predicted : nullptr;
    input.measured = record.measured ? &*record.measured : nullptr;
    input.measuredOn = QObject::tr("measured on %1").arg(shortDeviceName(record.device));
    int palette = 0;
    for (const Record& other : others) {
        if (&other == &record || other.experiment != record.experiment)
            continue;
        const bool isBaseline = &other == baselineFor(record, others);
        input.pinned.push_back({isBaseline ? QObject::tr("%1 (baseline)").arg(recordName(other)) : recordName(other),
                                palette++, other.predicted ? &*other.predicted : nullptr,
                                other.measured ? &*other.measured : nullptr, isBaseline});
    }
    return input;
}

Result<void> fillPlot(PlotView& plot, const Record& record, const std::vector<Record>& all)
{
    const Outcome* lead = record.predicted ? &*record.predicted : record.measured ? &*record.measured : nullptr;
    const std::vector<SeriesGroup> groups = lead ? seriesGroups(*lead) : std::vector<SeriesGroup>();
    if (groups.empty())
        return fail("render.empty", "the record holds no series, so there is nothing to draw",
                    "measure or predict with a sweep");
    CurveInput input = inputOf(record, all);
    const auto probed = record.measured ? probedRun(*record.measured) : std::nullopt;
    if (probed)
        input.others.push_back({probedName(*probed), CurveRole::Probed, &probed->predicted});
    const SeriesGroup& group = groups.front();
    const auto experiment = findExperiment(record.experiment);
    const AxisSpec x = xAxisOf(*lead, group, ByteStyle::Binary, experiment ? (*experiment)->schema() : Schema());
    plot.setAxes(x, yAxisOf(group, input, ByteStyle::Binary));
    plot.setTitle(capitalized(QObject::tr("%1 by %2").arg(group.label, x.label)));
    plot.setCurves(makeCurves(group, input));
    if (experiment && !(*experiment)->isThroughMemory(record.device))
        return {};
    plot.setBands(capacityBands(record.device, lead->series.front().x));
    plot.setLines(datasheetLines(record.device, group.unit, ByteStyle::Binary));
    return {};
}

/// A live device is shown as it is, so its worker is asked for a moment; without one the page says
/// that it can only predict.
void awaitWorker(MainWindow& window)
{
    const WorkerClient* worker = window.devices().workerFor(window.page()->deviceId());
    if (worker == nullptr || worker->command().isEmpty())
        return;
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < workerPatience && worker->state() != WorkerClient::State::Ready
           && worker->state() != WorkerClient::State::Failed)
        QApplication::processEvents(QEventLoop::AllEvents, 20);
}

/// Lets the event loop turn until the page has drawn what it was asked.
bool settle(MainWindow& window)
{
    const auto isDone = [&window] {
        return window.tool() ? window.tool()->isSettled()
                             : window.page() && window.page()->upToDate() && !window.page()->isSeeking();
    };
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < patience) {
        QApplication::processEvents(QEventLoop::AllEvents, 20);
        if (!isDone())
            continue;
        // A text whose width changed asks for another height, which its card then asks for, too.
        for (int level = 0; level < 4; ++level) {
            QApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
            QApplication::processEvents(QEventLoop::AllEvents, 20);
        }
        if (isDone()) // a device that came meanwhile is asked about again
            return true;
    }
    return false;
}

/// The device of --device as the window lists it; a file joins the list.
Result<std::string> listedDevice(MainWindow& window, const QString& device)
{
    if (!device.isEmpty() && window.devices().find(device.toStdString()) == nullptr) {
        MEMSCAPE_CHECK(findDevice(device.toStdString()));
        window.devices().setDeviceFiles({device});
    }
    return device.toStdString();
}

Result<void> applyTool(MainWindow& window, const LaunchOptions& options, const std::string& device)
{
    window.showPage(options.page);
    window.show(); // a page that is not seen reads nothing
    return window.tool()->apply({options.values, device,
                                 [&](const QString& path) { return window.files().openPath(path); },
                                 [&]() -> Result<void> {
                                     if (settle(window))
                                         return {};
                                     return fail("run.timeout", "the page takes too long to be made");
                                 }});
}

Result<void> applyPage(MainWindow& window, const LaunchOptions& options, const std::string& device)
{
    const auto experiment = findExperiment(experimentOfPage(options.page.toStdString()));
    if (!experiment)
        return fail(experiment.error());
    std::vector<std::string> assignments;
    for (const QString& value : options.values)
        assignments.push_back(value.toStdString());
    const std::string id = (*experiment)->id();
    if (!device.empty())
        window.document().setDevice(id, device);
    MEMSCAPE_TRY(parameters, window.standardParameters(**experiment, assignments));
    window.document().setParameters(id, parameters, QStringLiteral("parameters"));
    window.showPage(options.page);
    return {};
}

} // namespace

Result<void> renderRecord(const LaunchOptions& options)
{
    MEMSCAPE_TRY(study, readStudy(std::filesystem::path(options.record.toStdString())));
    if (study.records.empty())
        return fail("render.empty", "the study holds no records", "measure something and save it first");
    applyTheme(*qApp, options.theme.isEmpty() ? QStringLiteral("light") : options.theme);
    const QSize size = options.size.isValid() ? options.size : QSize(1600, 1000);
    // What is compared with a baseline is drawn, and the baseline beside it.
    const auto compared = std::ranges::find_if(
        study.records, [&](const Record& one) { return baselineFor(one, study.records) != nullptr; });
    const Record& record = compared != study.records.end() ? *compared : study.records.front();
    PlotView plot;
    plot.resize(size);
    MEMSCAPE_CHECK(fillPlot(plot, record, study.records));
    PlotExport out;
    const bool pixels = options.output.toLower().endsWith(QStringLiteral(".png"));
    const double scale = pixels && size.width() >= 1200 ? 2 : 1; // large pictures: larger letters
    out.scale = scale;
    out.size = QSize(int(size.width() / scale), int(size.height() / scale));
    out.theme = ExportTheme::AsOnScreen;
    out.title = recordName(record) + QStringLiteral(": ") + plot.title();
    out.description = recordToolTip(record);
    return plot.exportTo(options.output, out);
}

Result<void> screenshotPage(const LaunchOptions& options)
{
    WindowOptions quiet;
    quiet.autosave = false;
    quiet.remember = false;
    quiet.firstSteps = false;
    quiet.theme = options.theme.isEmpty() ? QStringLiteral("dark") : options.theme;
    MainWindow window(quiet);
    const bool isTool = findToolPage(options.page.toStdString()) != nullptr;
    window.resize(options.size.isValid() ? options.size : QSize(1440, 900));
    MEMSCAPE_TRY(device, listedDevice(window, options.device));
    MEMSCAPE_CHECK(isTool ? applyTool(window, options, device) : applyPage(window, options, device));
    window.show();
    if (window.page()) {
        window.page()->stage()->setFocus();
        awaitWorker(window);
    }
    if (!settle(window))
        return fail("run.timeout", "the prediction took too long", "choose a smaller sweep");
    if (window.tool())
        window.tool()->stage()->setFocus();
    if (window.page() && window.page()->prediction() == nullptr)
        return fail("predict.failed", window.page()->inspector()->noteText().toStdString());
    QByteArray bytes;
    QBuffer buffer(&bytes);
    if (!buffer.open(QIODevice::WriteOnly) || !window.grab().save(&buffer, "PNG"))
        return fail("export.write", "the picture could not be encoded");
    return writeFileAtomically(options.output.toStdString(), bytes.toStdString());
}

} // namespace memscape
