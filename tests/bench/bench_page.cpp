// SPDX-License-Identifier: GPL-3.0-or-later
// What a person feels: from a changed parameter to a repainted page (prediction, picture, plot,
// figures), over the real page; a frame is 16 ms. And from nothing to a page's first picture.
// Run offscreen: QT_QPA_PLATFORM=offscreen memscape_bench_page
#include "app/settings/theme.h"
#include "tests/support/page_fixture.h"

#include <QApplication>

#include <benchmark/benchmark.h>

using namespace memscape;

namespace {

/// Everything that is due, and the pixels.
void settle(ExperimentPage& page)
{
    do {
        QApplication::processEvents();
    } while (!page.upToDate());
    page.updateNow();
    page.repaint();
    QApplication::processEvents();
}

void changedParameter(benchmark::State& state, const char* experiment, const char* device, const char* key,
                      std::vector<QString> values)
{
    PageFixture fixture;
    fixture.document.setDevice(experiment, device);
    ExperimentPage page(**findExperiment(experiment), fixture.services());
    page.resize(1280, 800);
    page.show();
    settle(page);
    std::size_t next = 0;
    for (auto _ : state) {
        if (!page.setText(key, values[next++ % values.size()]))
            state.SkipWithError("refused");
        settle(page);
    }
}

const std::vector<QString> strides{"1", "2", "3", "5", "8", "13", "21", "34", "55", "89"};
const std::vector<QString> sizes{"16KiB", "100KiB", "1MiB", "7MiB", "24MiB", "100MiB", "1GiB"};
BENCHMARK_CAPTURE(changedParameter, stride_on_h200, "stride", "nvidia-h200", "stride", strides)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(changedParameter, stride_on_cpu, "stride", "cpu", "stride", strides)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(changedParameter, hierarchy_on_cpu, "hierarchy", "cpu", "working_set", sizes)->Unit(benchmark::kMillisecond);

/// While a slider moves: from the edit to the page with its prediction on screen; what would help comes
/// when it rests.
void draggedParameter(benchmark::State& state, const char* page, const char* model, std::vector<QString> values)
{
    PageFixture fixture;
    fixture.document.setDevice("training-memory", "nvidia-h200");
    ExperimentPage shown(**findExperiment("training-memory"), fixture.services(), nullptr, page);
    shown.resize(1280, 800);
    shown.show();
    if (!shown.setText("model", model))
        state.SkipWithError("refused");
    settle(shown);
    std::size_t next = 0;
    for (auto _ : state) {
        const Record* before = shown.prediction();
        if (!shown.setText("batch", values[next++ % values.size()]))
            state.SkipWithError("refused");
        shown.updateNow();
        while (shown.prediction() == before)
            QApplication::processEvents();
        shown.updateNow();
        shown.repaint();
    }
}

const std::vector<QString> batches{"1", "2", "3", "5", "8", "13", "21", "34", "55", "89"};
BENCHMARK_CAPTURE(draggedParameter, llama_2_7b, "", "llama-2-7b", batches)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, gpt_3_175b, "", "gpt3-175b", batches)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, timeline_of_llama_2_7b, "step-timeline", "llama-2-7b", batches)->Unit(benchmark::kMillisecond);

void prediction(benchmark::State& state, const char* experiment, const char* device)
{
    const Experiment& asked = **findExperiment(experiment);
    const Device on = *findDevice(device);
    const Parameters parameters = *resolve(asked.schema(), std::vector<std::string>{});
    for (auto _ : state)
        benchmark::DoNotOptimize(asked.predict(on, parameters));
}
BENCHMARK_CAPTURE(prediction, stride_on_h200, "stride", "nvidia-h200")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, hierarchy_on_cpu, "hierarchy", "cpu")->Unit(benchmark::kMicrosecond);

void firstPicture(benchmark::State& state)
{
    for (auto _ : state) {
        PageFixture fixture;
        ExperimentPage page(**findExperiment("hierarchy"), fixture.services());
        page.resize(1280, 800);
        page.show();
        settle(page);
    }
}
BENCHMARK(firstPicture)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    applyTheme(application, "dark");
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
