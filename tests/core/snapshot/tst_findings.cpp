// SPDX-License-Identifier: Apache-2.0
// What is said about a run: something where something is wrong, nothing where nothing is; and what is written from it.
#include "made_run.h"
#include "snapshot_files.h"

#include "core/device/catalogue.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/report/report.h"
#include "core/report/snapshot_record.h"
#include "core/snapshot/snapshot_comparison.h"

using namespace memscape;
using namespace memscape::test;

namespace {

std::vector<SnapshotFinding> findingsOf(const SnapshotDevice& device)
{
    return memscape::findingsOf(device, 0, device.lifetimes().events());
}

const SnapshotFinding* find(const std::vector<SnapshotFinding>& findings, std::string_view id)
{
    const auto it = std::ranges::find(findings, id, &SnapshotFinding::id);
    return it == findings.end() ? nullptr : &*it;
}

double numberOf(const SnapshotFinding& finding, std::string_view key)
{
    return findFigure(finding.figures, key)->number();
}

/// Steps that each make and free `perStep` blocks and keep `kept` bytes, without any stack.
std::shared_ptr<const SnapshotDevice> madeLoop(int steps, int perStep, std::int64_t kept)
{
    Snapshot snapshot;
    snapshot.streams.push_back(0);
    constexpr std::uint64_t base = 1ull << 40;
    const auto event = [&](SnapshotAction action, std::uint64_t address, std::int64_t size) {
        snapshot.events.append({action, address, size, std::int64_t(snapshot.events.size()), noStack, noLabel, 0});
    };
    const auto size = [](int i) { return std::int64_t(4096) * (1 + i * i % 11); };
    std::vector<std::uint64_t> keptAt;
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < perStep; ++i)
            event(SnapshotAction::Allocate, base + std::uint64_t(i) * 65536, size(i));
        if (kept > 0) {
            keptAt.push_back(base + (1 << 24) + std::uint64_t(step) * std::uint64_t(kept));
            event(SnapshotAction::Allocate, keptAt.back(), kept);
        }
        for (int i = 0; i < perStep; ++i)
            event(SnapshotAction::FreeCompleted, base + std::uint64_t(i) * 65536, size(i));
    }
    snapshot.traces.push_back({0, snapshot.events.size()});
    snapshot.segments.push_back({base, 1 << 26, 0, keptAt.size(), noStack, 0, 0, false, true, {0, 0}});
    for (const std::uint64_t address : keptAt)
        snapshot.blocks.push_back({address, kept, kept, noStack, SnapshotBlockState::Active});
    return SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(snapshot)), 0).value();
}

/// When a training loop frees its gradients.
enum class ZeroGrad { AfterTheStep, BeforeTheBackward, Never };

/// Five steps: weights of 64 MiB, activations of 40 MiB, gradients of `gradients`.
std::shared_ptr<const SnapshotDevice> trainingLoop(ZeroGrad zeroGrad, std::int64_t gradients = 64 * mib)
{
    MadeRun run;
    run.alloc(64 * mib, "init");
    BlockIndex gradient = 0;
    const auto drop = [&] {
        if (gradient != 0)
            run.free(std::exchange(gradient, 0), "zero_grad");
    };
    for (int step = 0; step < 5; ++step) {
        const BlockIndex activation = run.alloc(40 * mib, "forward");
        if (zeroGrad == ZeroGrad::BeforeTheBackward)
            drop();
        if (gradient == 0)
            gradient = run.alloc(gradients, "backward");
        else
            run.free(run.alloc(2 * mib, "backward"), "backward"); // added into what is there
        run.free(activation, "backward");
        run.free(run.alloc(3 * mib, "optimizer"), "optimizer");
        if (zeroGrad == ZeroGrad::AfterTheStep)
            drop();
    }
    return run.device();
}

/// Something of `pieces` segments of 20 MiB is loaded and let go; then four training steps of 36 MiB at most.
std::shared_ptr<const SnapshotDevice> loadedAndTrained(int pieces, bool emptiesCache)
{
    MadeRun run;
    std::vector<BlockIndex> loaded;
    for (int i = 0; i < pieces; ++i)
        loaded.push_back(run.alloc(20 * mib, "init"));
    for (const BlockIndex piece : loaded)
        run.free(piece, "init");
    if (emptiesCache)
        run.emptyCache();
    run.alloc(12 * mib, "init");
    for (int step = 0; step < 4; ++step) {
        const BlockIndex activation = run.alloc(12 * mib, "forward");
        const BlockIndex gradient = run.alloc(12 * mib, "backward");
        run.free(activation, "backward");
        run.free(run.alloc(2 * mib, "optimizer"), "optimizer");
        run.free(gradient, "zero_grad");
    }
    return run.device();
}

std::shared_ptr<const SnapshotDevice> blocksOf(std::int64_t bytes, int count, bool freesSome = false)
{
    MadeRun run;
    std::vector<BlockIndex> blocks;
    for (int i = 0; i < count; ++i)
        blocks.push_back(run.alloc(bytes, "forward"));
    if (freesSome) // all of them at the peak, whole segments behind it
        for (int i = 0; i < count; i += 2)
            run.free(blocks[std::size_t(i)], "backward");
    return run.device();
}

} // namespace

class TestFindings : public QObject
{
    Q_OBJECT

private slots:
    void aHealthyRunHasNoProblem_data() { addFamilies(); }
    void aHealthyRunHasNoProblem()
    {
        QFETCH(QString, family);
        if (family == "random_oom_pending")
            QSKIP("not healthy");
        for (const SnapshotFinding& finding : findingsOf(*analysed(familyFile(family.toStdString() + ".p4.pickle"))))
            QVERIFY2(finding.level != FindingLevel::Problem, finding.evidence.c_str());
    }

    void outOfMemoryNamesRequestAndHole()
    {
        const auto device = analysed(familyFile("random_oom_pending.p4.pickle"));
        const auto findings = findingsOf(*device);
        const SnapshotFinding* finding = find(findings, "out-of-memory");
        QVERIFY(finding);
        QCOMPARE(int(finding->level), int(FindingLevel::Problem));
        QCOMPARE(numberOf(*finding, "wanted"), 63520768.0); // from the file's own entry
        QCOMPARE(numberOf(*finding, "device_free"), 57252249.0);
        QVERIFY(numberOf(*finding, "largest_free") < numberOf(*finding, "wanted"));
        QCOMPARE(finding->firstEvent, std::size_t(433));
        QVERIFY(finding->remedy.find("expandable_segments") != std::string::npos);
        QVERIFY(find(findings, "retries")); // the cache was emptied before it gave up
    }

    /// A loop that keeps 64 KiB a step: found from the optimizer's stacks, and blamed on the forward that makes them.
    void aLeakIsFoundWithItsLine()
    {
        const auto device = analysed(smallFile("leak"));
        QCOMPARE(int(device->steps().source), int(StepSource::Optimizer));
        const auto findings = findingsOf(*device);
        const SnapshotFinding* finding = find(findings, "growth");
        QVERIFY(finding);
        QCOMPARE(int(finding->level), int(FindingLevel::Problem));
        QCOMPARE(numberOf(*finding, "growth_per_step"), 65536.0);
        QVERIFY(numberOf(*finding, "r2") > 0.9999);
        QVERIFY2(finding->groups.front().label.find("train.py:12 forward") != std::string::npos,
                 finding->groups.front().label.c_str());
        QVERIFY(find(findings, "retained-graph")); // what it keeps are activations
    }

    void withoutStacksStepsAreAPeriod()
    {
        const auto device = madeLoop(12, 20, 1 << 16);
        QCOMPARE(int(device->steps().source), int(StepSource::Period));
        QVERIFY2(device->steps().how.find("every 21 allocations") != std::string::npos, device->steps().how.c_str());
        QVERIFY(device->steps().steadyCount() >= 10);
        const auto findings = findingsOf(*device);
        const SnapshotFinding* finding = find(findings, "growth");
        QVERIFY(finding);
        QCOMPARE(numberOf(*finding, "growth_per_step"), double(1 << 16));
        QVERIFY(!find(findingsOf(*madeLoop(12, 20, 0)), "growth"));
    }

    void gradientsThatStayThroughTheForward()
    {
        const auto gradients = [](const std::shared_ptr<const SnapshotDevice>& device) {
            const auto findings = findingsOf(*device);
            const SnapshotFinding* finding = find(findings, "gradients-kept");
            return finding ? numberOf(*finding, "gradients") : 0.0;
        };
        QCOMPARE(gradients(trainingLoop(ZeroGrad::Never)), double(64 * mib)); // set_to_none=False
        QCOMPARE(gradients(trainingLoop(ZeroGrad::BeforeTheBackward)), double(64 * mib));
        QCOMPARE(gradients(trainingLoop(ZeroGrad::AfterTheStep)), 0.0);
        QCOMPARE(gradients(trainingLoop(ZeroGrad::Never, 12 * mib)), double(12 * mib));
        QCOMPARE(gradients(trainingLoop(ZeroGrad::Never, 5 * mib)), 0.0); // less than 5 % of the peak
    }

    void aCacheThatIsHeld()
    {
        const auto findings = findingsOf(*loadedAndTrained(10, false));
        const SnapshotFinding* finding = find(findings, "cache-held");
        QVERIFY(finding);
        QCOMPARE(numberOf(*finding, "free_whole"), double(7 * 20 * mib)); // three are in use
        QCOMPARE(numberOf(*finding, "allocated"), double(36 * mib));
        QCOMPARE(numberOf(*finding, "reserved"), double(200 * mib));
        QVERIFY(finding->remedy.find("empty_cache") != std::string::npos);
        QVERIFY(!find(findingsOf(*loadedAndTrained(10, true)), "cache-held"));
        QVERIFY(!find(findingsOf(*loadedAndTrained(6, false)), "cache-held")); // 60 MiB: not worth a word
    }

    /// Two blocks of 8 MiB in a segment of 20 MiB: 4 MiB between them that nothing fits.
    void holesInSegmentsThatAreInUse()
    {
        const auto findings = findingsOf(*blocksOf(8 * mib, 16));
        const SnapshotFinding* finding = find(findings, "fragmentation");
        QVERIFY(finding);
        QCOMPARE(numberOf(*finding, "holes"), double(8 * 4 * mib));
        QCOMPARE(numberOf(*finding, "largest_free"), double(4 * mib));
        QCOMPARE(numberOf(*finding, "reserved"), double(160 * mib));
        QVERIFY(!find(findingsOf(*blocksOf(8 * mib, 14)), "fragmentation"));        // 28 MiB
        QVERIFY(!find(findingsOf(*blocksOf(10 * mib, 16)), "fragmentation"));       // a segment each
        QVERIFY(!find(findingsOf(*blocksOf(10 * mib, 16, true)), "fragmentation")); // and free ones are whole
    }

    void simulatedFixesTakeThePlaceOfGeneralRemedies()
    {
        const auto device = analysed(familyFile("random_oom_pending.p4.pickle"));
        const auto general = findingsOf(*device);
        auto findings = general;
        offerFixes(findings, {}, "gpt2", {});
        QCOMPARE(find(findings, "out-of-memory")->remedy, find(general, "out-of-memory")->remedy);
        offerFixes(findings, {{"Checkpoint every block", 3 * mib}, {"8-bit AdamW", mib}}, "gpt2", Phase::Backward);
        const SnapshotFinding& finding = *find(findings, "out-of-memory");
        QVERIFY2(finding.remedy.ends_with("simulated for gpt2, in the backward: Checkpoint every block: 3 MiB less; "
                                          "8-bit AdamW: 1 MiB less"),
                 finding.remedy.c_str());
        QVERIFY(finding.remedy.starts_with("PYTORCH_CUDA_ALLOC_CONF")); // packing would have served it
        QCOMPARE(findingToJson(finding)["fixes"][0]["saving"].get<std::int64_t>(), 3 * mib);
        QCOMPARE(find(findings, "retries")->remedy, find(general, "retries")->remedy);
    }

    /// What a lever saves in a phase is the difference of two steps that are simulated whole.
    void fixesSaveWhatTheStepsDiffer()
    {
        const Device gpu = *findDevice("nvidia-h100-sxm");
        const Experiment& memory = **findExperiment("training-memory");
        const auto parameters =
            resolve(memory.schema(),
                    std::vector<std::string>{"model=mlp:512,512,512,10", "batch=4096", "precision=fp32"})
                .value();
        const auto plain = answerTraining(gpu, parameters);
        for (const Phase phase : {Phase::Forward, Phase::Backward, Phase::Optimizer}) {
            const auto levers = leversAt(gpu, parameters, phase);
            QVERIFY2(levers, levers ? "" : levers.error().text().c_str());
            std::int64_t last = std::numeric_limits<std::int64_t>::max();
            for (const LeverOutcome& one : *levers) {
                const auto then = answerTraining(gpu, changed(parameters, one.lever.changes).value());
                const std::int64_t saving = one.phaseSaving[std::size_t(phase)];
                QCOMPARE(saving, plain->simulation.trace.peakBytes(phase) - then->simulation.trace.peakBytes(phase));
                QVERIFY(saving > 0 && saving <= last);
                last = saving;
            }
            QVERIFY(!levers->empty());
        }
    }

    void ofARangeOnlyItsStepsCount()
    {
        const auto device = madeLoop(12, 20, 1 << 16);
        QVERIFY(find(memscape::findingsOf(*device, 0, device->lifetimes().events()), "growth"));
        QVERIFY(!find(memscape::findingsOf(*device, 0, 60), "growth")); // one step and a half
    }

    void labelsDecideWhatABlockIs()
    {
        const auto device = analysed(smallFile("run"));
        QCOMPARE(int(device->steps().source), int(StepSource::Run));
        const LifetimeId first = device->lifetimes().lifetimeOf(1);
        QCOMPARE(device->categories().of(first), Category::Activations);
        QCOMPARE(int(device->categories().sourceOf(first)), int(CategorySource::Label));
        const LifetimeId one[] = {first};
        QCOMPARE(device->groups(one, SnapshotGrouping::Module).front().label, std::string("h.*"));
        QCOMPARE(device->groups(one, SnapshotGrouping::Step).front().label, std::string("step 7"));
    }

    void stacksDecideWhereThereAreNoLabels()
    {
        const auto device = analysed(familyFile("gpt2_tiny_mid_backward.p4.pickle"));
        const auto at = [&](Category category) {
            return device->timeline().categoriesAt(device->lifetimes().events())[std::size_t(category)];
        };
        QVERIFY(at(Category::Weights) > 6'000'000);
        QVERIFY(at(Category::Gradients) > 0);
        QCOMPARE(at(Category::OptimizerState), 0);
        QVERIFY(device->categories().shares()[std::size_t(CategorySource::Stack)] > 0.99);
    }

    void theFlameTreeAddsUp()
    {
        const auto device = analysed(familyFile("llama_tiny_old_format.p4.pickle"));
        const auto blocks = device->lifetimes().aliveAt(device->lifetimes().events());
        const auto nodes = flameTree(device->snapshot(), device->lifetimes(), blocks);
        QCOMPARE(nodes[0].bytes, device->lifetimes().bytesAt(device->lifetimes().events()).active);
        QCOMPARE(nodes[0].children.size(), std::size_t(3)); // <module> of lines 44, 48 and 49
        for (const FlameNode& node : nodes) {
            std::int64_t bytes = node.own;
            for (const std::uint32_t child : node.children)
                bytes += nodes[child].bytes;
            QCOMPARE(bytes, node.bytes);
        }
    }

    void ranges_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("first");
        QTest::addColumn<int>("last");
        QTest::newRow("all") << "" << 0 << 1000;
        QTest::newRow("events") << "10:20" << 10 << 20;
        QTest::newRow("percent") << "25%:75%" << 250 << 750;
        QTest::newRow("shares") << "0.5:1.0" << 500 << 1000;
        QTest::newRow("open") << "900:" << 900 << 1000;
        QTest::newRow("until") << ":0.1" << 0 << 100;
        for (const char* bad : {"5", "1:2:3", "20:10", "5:5", "a:b", "-1:5", "0:1001", "1.5:2.0", "nan:1"})
            QTest::newRow(bad) << bad << -1 << -1;
    }
    void ranges()
    {
        QFETCH(QString, text);
        QFETCH(int, first);
        QFETCH(int, last);
        const auto range = parseEventRange(text.toStdString(), 1000);
        QCOMPARE(range.has_value(), first >= 0);
        if (!range) {
            QCOMPARE(range.error().code, std::string("snapshot.range"));
            return;
        }
        QCOMPARE(int(range->first), first);
        QCOMPARE(int(range->last), last);
    }

    void memoryVizReadsBackAsTheSame_data() { addFamilies(); }
    void memoryVizReadsBackAsTheSame()
    {
        QFETCH(QString, family);
        const auto device = analysed(familyFile(family.toStdString() + ".p5.pickle"));
        const std::size_t events = device->lifetimes().events();
        const auto again = writtenAndRead(*device, {0, events});
        QCOMPARE(again->snapshot().protocol, 4);
        QCOMPARE(again->lifetimes().events(), events);
        QCOMPARE(again->snapshot().stacks.size(), device->snapshot().stacks.size());
        if (device->snapshot().settings.is_object()) // since PyTorch 2.1
            QCOMPARE(again->snapshot().settings, device->snapshot().settings);
        for (std::size_t event = 0; event < events; ++event) {
            const SnapshotEvent a = device->lifetimes().event(event), b = again->lifetimes().event(event);
            QCOMPARE(a.action, b.action);
            QCOMPARE(a.address, b.address);
            QCOMPARE(a.size, b.size);
            QCOMPARE(a.time, b.time);
        }
        const SnapshotComparison comparison = compareSnapshots(*device, *again);
        for (const Figure& figure : comparison.a)
            QCOMPARE(findFigure(comparison.b, figure.key)->number(), figure.number());
        for (const SnapshotDifference& difference : comparison.stacks)
            QCOMPARE(difference.change(), 0);
    }

    void aComparisonNamesWhatDiffers()
    {
        const auto a = analysed(familyFile("gpt2_tiny_mid_backward.p4.pickle"));
        const auto b = analysed(familyFile("llama_tiny_old_format.p4.pickle"));
        const SnapshotComparison comparison = compareSnapshots(*a, *b);
        QCOMPARE(comparison.categories.front().label, std::string("weights"));
        std::int64_t change = 0;
        for (const SnapshotDifference& difference : comparison.categories)
            change += difference.change();
        QCOMPARE(double(change),
                 findFigure(comparison.b, "peak_allocated")->number()
                     - findFigure(comparison.a, "peak_allocated")->number());
    }

    void theRecordReadsBack_data() { addFamilies(); }
    void theRecordReadsBack()
    {
        QFETCH(QString, family);
        const auto device = analysed(familyFile(family.toStdString() + ".p4.pickle"));
        const Record record = snapshotRecord(*device, {0, device->lifetimes().events()}, family.toStdString());
        const auto again = recordFromJson(recordToJson(record));
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        QCOMPARE(again->experiment, std::string("snapshot"));
        QVERIFY(again->measured && !again->predicted);
        for (const char* key : {"peak_allocated", "peak_reserved", "fragmentation", "largest_free"}) {
            QVERIFY(findFigure(again->measured->figures, key)->why);
            QCOMPARE(findFigure(again->measured->figures, key)->number(),
                     findFigure(record.measured->figures, key)->number());
        }
        const Series* allocated = again->measured->findSeries("allocated");
        QCOMPARE(*std::ranges::max_element(allocated->y),
                 findFigure(record.measured->figures, "peak_allocated")->number());
        QVERIFY(reportHtml({*again}, "a snapshot").find("At the peak, by category") != std::string::npos);
    }

    void theTableHasALineForEveryBlock()
    {
        const auto device = analysed(familyFile("vgg_small_mid.p4.pickle"));
        std::string text;
        QVERIFY(writeBlocksCsv(*device, {0, device->lifetimes().events()}, [&](std::string_view piece) {
            text += piece;
            return true;
        }));
        QCOMPARE(std::size_t(std::ranges::count(text, '\n')), device->lifetimes().all().size() + 1);
    }
};

QTEST_APPLESS_MAIN(TestFindings)
#include "tst_findings.moc"
