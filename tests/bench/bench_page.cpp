// SPDX-License-Identifier: GPL-3.0-or-later
// What a person feels: from a changed parameter to a repainted page (prediction, picture, plot,
// figures), over the real page; a frame is 16 ms. And from nothing to a page's first picture.
// Run offscreen: QT_QPA_PLATFORM=offscreen memscape_bench_page
#include "app/pages/fields/checkpoint_fields.h"
#include "app/pictures/checkpoint/checkpoint_picture.h"
#include "app/settings/theme.h"
#include "tests/support/page_fixture.h"

#include <QApplication>

#include <benchmark/benchmark.h>

using namespace memscape;

namespace {

/// Everything that is due, and the pixels.
void settle(ExperimentPage& page)
{
    QApplication::processEvents();
    while (!page.upToDate())
        QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    page.updateNow();
    page.repaint();
    QApplication::processEvents();
}

/// Frames as the window makes them: once the page has something else to show, events until its plot, where it is in
/// sight, has been drawn again, then what else is due to be painted, and nothing else.
class Frames
{
public:
    explicit Frames(ExperimentPage& page)
        : m_page(page)
    {
        QObject::connect(&page, &ExperimentPage::updated, &page, [this] { m_shown = drawn(); });
    }

    /// `arrived`: whether the answer is there.
    template <typename Arrived> void next(Arrived arrived)
    {
        while (!arrived() || (m_page.plot()->view()->isVisible() && drawn() == m_shown))
            QApplication::processEvents(QEventLoop::WaitForMoreEvents);
        QEvent update(QEvent::UpdateRequest);
        QApplication::sendEvent(&m_page, &update);
    }

private:
    int drawn() const { return m_page.plot()->view()->replotCount(); }

    ExperimentPage& m_page;
    int m_shown = 0; ///< replots when the page last changed
};

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
BENCHMARK_CAPTURE(changedParameter, stride_on_h200, "stride", "nvidia-h200", "stride", strides)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(changedParameter, stride_on_cpu, "stride", "cpu", "stride", strides)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(changedParameter, hierarchy_on_cpu, "hierarchy", "cpu", "working_set", sizes)
    ->Unit(benchmark::kMillisecond);

/// While a slider moves: from the edit to the page with its prediction on screen; what would help, and
/// cards below the fold, come when it rests. CPU is what the window's own thread computed, Time is until the pixels are
/// there: the prediction runs on another thread, and this one sleeps meanwhile.
void draggedParameter(benchmark::State& state, const char* experiment, const char* page, const char* model,
                      const char* key, const std::vector<QString>& values)
{
    PageFixture fixture;
    fixture.document.setDevice(experiment, "nvidia-h200");
    ExperimentPage shown(**findExperiment(experiment), fixture.services(), nullptr, page);
    shown.resize(1280, 800);
    shown.show();
    static_cast<void>(shown.setText("sequence", "1024")); // as long as GPT-2 takes it; others have none
    if (*model != '\0' && !shown.setText("model", model))
        state.SkipWithError("refused");
    settle(shown);
    if (shown.prediction() == nullptr)
        return state.SkipWithError("no prediction");
    Frames frames(shown);
    std::size_t next = 0;
    for (auto _ : state) {
        const auto before = shown.prediction()->parameters.values(); // a new answer may lie where the old one did
        if (!shown.setText(key, values[next++ % values.size()]))
            state.SkipWithError("refused");
        frames.next([&] { return shown.prediction() != nullptr && shown.prediction()->parameters.values() != before; });
    }
}

const std::vector<QString> batches{"1", "2", "3", "5", "8", "13", "21", "34", "55", "89"};
const std::vector<QString> contexts{"512", "1024", "2000", "4096", "8192", "16384", "32768"};
BENCHMARK_CAPTURE(draggedParameter, stride, "stride", "", "", "stride", strides)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, hierarchy, "hierarchy", "", "", "working_set", sizes)
    ->Unit(benchmark::kMillisecond);
const std::vector<QString> chunks{"64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "32MiB"};
BENCHMARK_CAPTURE(draggedParameter, transfer, "transfer", "", "", "chunk", chunks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, loading, "loading", "", "", "chunk", chunks)->Unit(benchmark::kMillisecond);
const std::vector<QString> limits{"64MiB", "96MiB", "128MiB", "256MiB", "512MiB", "1GiB"};
BENCHMARK_CAPTURE(draggedParameter, placement, "placement", "", "", "limit", limits)->Unit(benchmark::kMillisecond);
const std::vector<QString> rankCounts{"1", "2", "4", "8", "16", "64", "256", "1024"};
BENCHMARK_CAPTURE(draggedParameter, sharding, "sharding", "", "", "data_parallel", rankCounts)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, budget_of_llama_2_7b, "training-memory", "", "llama-2-7b", "batch", batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, budget_of_gpt2_xl, "training-memory", "", "gpt2-xl", "batch", batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, budget_of_gpt_3_175b, "training-memory", "", "gpt3-175b", "batch", batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, timeline_of_llama_2_7b, "training-memory", "step-timeline", "llama-2-7b", "batch",
                  batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, timeline_of_gpt2_xl, "training-memory", "step-timeline", "gpt2-xl", "batch",
                  batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, inference_of_llama_2_7b, "inference-memory", "", "llama-2-7b", "context", contexts)
    ->Unit(benchmark::kMillisecond);

const std::vector<QString> views{"narrow(1,4,16)",
                                 "transpose(0,1)",
                                 "transpose(0,1);narrow(0,8,32)",
                                 "flatten(0,1)",
                                 "transpose(0,1);narrow(0,16,32)",
                                 "slice(0,0,64,2)"};
const std::vector<QString> reads{"1", "2", "3", "5", "8", "13", "16"};
const std::vector<QString> shapes{"64,64", "96,64", "128,96", "256,128", "512,256", "1024,768", "2048,2048"};
BENCHMARK_CAPTURE(draggedParameter, batch_of_mlp, "batch-size", "", "", "batch", batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, batch_of_gpt2, "batch-size", "", "gpt2", "batch", batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, batch_of_llama_2_7b, "batch-size", "", "llama-2-7b", "batch", batches)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, layout_views, "layout", "", "", "views", views)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, layout_reads, "layout", "", "", "reads", reads)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedParameter, layout_shape, "layout", "", "", "shape", shapes)->Unit(benchmark::kMillisecond);

/// The budget of a checkpoint schedule while it is dragged: from the edit to the schedule on screen.
void draggedBudget(benchmark::State& state, const char* chain, std::vector<double> shares)
{
    PageFixture fixture;
    fixture.document.setDevice("checkpoint", "nvidia-h200");
    ExperimentPage shown(**findExperiment("checkpoint"), fixture.services());
    shown.resize(1280, 800);
    shown.show();
    if (!shown.setText("chain", chain))
        state.SkipWithError("refused");
    settle(shown);
    const auto* budget = qobject_cast<BudgetField*>(shown.inspector()->form()->field("budget"));
    Frames frames(shown);
    std::size_t next = 0;
    for (auto _ : state) {
        const double before = static_cast<CheckpointPicture*>(shown.picture())->state().budget;
        if (!shown.setText("budget", budget->textAt(shares[next++ % shares.size()])))
            state.SkipWithError("refused");
        frames.next([&] { return static_cast<CheckpointPicture*>(shown.picture())->state().budget != before; });
    }
}

const std::vector<double> shares{0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.6, 0.4, 0.15};
BENCHMARK_CAPTURE(draggedBudget, mlp_48, "mlp:48x4096", shares)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedBudget, mlp_100, "mlp:100x4096", shares)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draggedBudget, mlp_339, "mlp:339x4096", shares)->Unit(benchmark::kMillisecond);

void prediction(benchmark::State& state, const char* experiment, const char* device,
                const std::vector<std::string>& assignments)
{
    const Experiment& asked = **findExperiment(experiment);
    const Device on = *findDevice(device);
    const Parameters parameters = *resolve(asked.schema(), assignments);
    for (auto _ : state)
        benchmark::DoNotOptimize(asked.predict(on, parameters));
}
BENCHMARK_CAPTURE(prediction, stride_on_h200, "stride", "nvidia-h200", {})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, hierarchy_on_cpu, "hierarchy", "cpu", {})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, attention_of_16384, "attention", "nvidia-h200", {"sequence=16384"})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, loading_of_70_billion, "loading", "nvidia-h200", {"model=llama-2-70b", "chunk=4MiB"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prediction, transfer_of_65536_chunks, "transfer", "nvidia-h200", {"bytes=1GiB", "chunk=16KiB"})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, placement_of_llama_2_7b, "placement", "nvidia-h200",
                  {"graph=llama-2-7b", "strategy=cheapest", "limit=8GiB", "prefetch=0"})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, layout_without_period, "layout", "cpu", {"shape=4097,1023,31", "views=permute(2,1,0)"})
    ->Unit(benchmark::kMicrosecond);

BENCHMARK_CAPTURE(prediction, allocator_of_gpt2, "allocator", "nvidia-h200", {"trace=gpt2"})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(prediction, allocator_of_llama_2_7b, "allocator", "nvidia-h200", {"trace=llama-2-7b", "batch=1"})
    ->Unit(benchmark::kMicrosecond);

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
