// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline of a snapshot with a million events: a frame of a zoom, of a moved pointer, of a dragged selection. A
// frame is 16 ms. Run offscreen: QT_QPA_PLATFORM=offscreen memscape_bench_snapshot_page
#include "app/pages/snapshot/timeline_view.h"
#include "app/settings/theme.h"

#include <QApplication>
#include <QImage>
#include <QPainter>

#include <benchmark/benchmark.h>

using namespace memscape;

namespace {

/// Steps of 400 allocations each, freed in the order of their making, in one segment of 80 GiB.
std::shared_ptr<const SnapshotDevice> million()
{
    static const std::shared_ptr<const SnapshotDevice> device = [] {
        auto snapshot = std::make_shared<Snapshot>();
        constexpr std::int64_t unit = 1 << 20;
        std::int64_t time = 1;
        const auto add = [&](SnapshotAction action, std::uint64_t address, std::int64_t size) {
            snapshot->events.append({action, address, size, time += 3, noStack, noLabel, 0});
        };
        while (snapshot->events.size() < 1'000'000) {
            for (const bool frees : {false, true}) {
                for (std::uint64_t i = 0; i < 400; ++i) {
                    const std::int64_t size = std::int64_t(1 + i * 7 % 23) * unit;
                    const std::uint64_t address = 0x100000000ULL + i * 64 * std::uint64_t(unit);
                    if (!frees)
                        add(SnapshotAction::Allocate, address, size);
                    else
                        add(SnapshotAction::FreeRequested, address, size),
                            add(SnapshotAction::FreeCompleted, address, size);
                }
            }
        }
        SnapshotSegment segment;
        segment.address = 0x100000000ULL;
        segment.size = 80LL << 30;
        segment.blockCount = 1;
        snapshot->blocks.push_back({segment.address, segment.size, 0, noStack, SnapshotBlockState::Free});
        snapshot->segments.push_back(segment);
        snapshot->streams = {0};
        snapshot->traces.push_back({0, snapshot->events.size()});
        return *SnapshotDevice::analyse(std::move(snapshot), 0);
    }();
    return device;
}

std::unique_ptr<TimelineView> viewOf(const QSize& size)
{
    auto view = std::make_unique<TimelineView>();
    view->resize(size);
    SnapshotShown shown;
    shown.device = million();
    shown.range = {0, shown.device->lifetimes().events()};
    view->setShown(shown);
    return view;
}

void zoom(benchmark::State& state)
{
    auto view = viewOf({int(state.range(0)), 500});
    QImage image(view->size(), QImage::Format_ARGB32_Premultiplied);
    const TimelineSight whole = view->whole();
    int step = 0;
    for (auto _ : state) {
        if (step++ % 60 == 0)
            view->setSight(whole);
        view->setSight(zoomedSight(*million(), view->sight(), false, 0.37, 0.8));
        QPainter painter(&image);
        view->paintTo(painter, QRectF(view->rect()), currentTheme());
    }
}

void wholeTrace(benchmark::State& state)
{
    auto view = viewOf({int(state.range(0)), 500});
    QImage image(view->size(), QImage::Format_ARGB32_Premultiplied);
    for (auto _ : state) {
        view->setSight(view->whole());
        QPainter painter(&image);
        view->paintTo(painter, QRectF(view->rect()), currentTheme());
    }
}

void movedMoment(benchmark::State& state)
{
    auto view = viewOf({1200, 500});
    view->show();
    QApplication::processEvents();
    std::size_t moment = 0;
    for (auto _ : state) {
        SnapshotShown shown = view->shown();
        shown.moment = moment += 997;
        view->setShown(shown);
        view->repaint();
    }
}

void blocksAtAMoment(benchmark::State& state)
{
    std::size_t moment = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(million()->lifetimes().layoutAt((moment += 99'991) % 1'000'000));
}

} // namespace

BENCHMARK(wholeTrace)->Arg(1200)->Arg(1900)->Unit(benchmark::kMillisecond);
BENCHMARK(zoom)->Arg(1200)->Arg(1900)->Unit(benchmark::kMillisecond);
BENCHMARK(movedMoment)->Unit(benchmark::kMillisecond);
BENCHMARK(blocksAtAMoment)->Unit(benchmark::kMillisecond);

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    applyTheme(application, QStringLiteral("dark"));
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
