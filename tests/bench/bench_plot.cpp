// SPDX-License-Identifier: GPL-3.0-or-later
// How long one frame of a plot takes: panning a million points, dragging a marker over ordinary
// curves. A frame must fit in 16 ms. Run offscreen: QT_QPA_PLATFORM=offscreen memscape_bench_plot
#include "app/plots/plot_view.h"

#include <QApplication>

#include <benchmark/benchmark.h>

#include <cmath>

using namespace memscape;

namespace {

std::vector<Curve> curvesOf(int points)
{
    Curve predicted, measured;
    predicted.key = predicted.name = QStringLiteral("predicted");
    measured.key = measured.name = QStringLiteral("measured");
    measured.role = CurveRole::Measured;
    for (int i = 0; i < points; ++i) {
        const double noise = (i % 1000) * 7919 % 1000 / 1000.0;
        const double y = 2e12 + 1e12 * std::sin(6.3 * i / points) + 1e11 * noise;
        predicted.x.push_back(1 + i);
        predicted.y.push_back(y);
        measured.x.push_back(1 + i);
        measured.y.push_back(1.1 * y);
    }
    return {predicted, measured};
}

void drawFrame(PlotView& view)
{
    const int before = view.replotCount();
    while (view.replotCount() == before)
        QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    QApplication::processEvents();
}

// Time includes the frame pacing: at best 16 ms a frame.
void panning(benchmark::State& state)
{
    PlotView view;
    view.resize(1100, 500);
    view.setCurves(curvesOf(static_cast<int>(state.range(0))));
    view.show();
    drawFrame(view);
    double direction = 0.01;
    for (auto _ : state) {
        view.pan(direction, 0);
        direction = -direction;
        drawFrame(view);
    }
}
BENCHMARK(panning)->Arg(50)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void newCurves(benchmark::State& state)
{
    PlotView view;
    view.resize(1100, 500);
    const auto one = curvesOf(50);
    auto two = one;
    two[0].y[7] *= 1.01;
    view.setCurves(one);
    view.show();
    drawFrame(view);
    bool flip = false;
    for (auto _ : state) {
        view.setCurves(flip ? one : two);
        flip = !flip;
        drawFrame(view);
    }
}
BENCHMARK(newCurves)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    applyTheme(application, QStringLiteral("dark"));
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
