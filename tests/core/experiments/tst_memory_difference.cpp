// SPDX-License-Identifier: Apache-2.0
// Two steps compared phase by phase: hand-made peaks, and two real plans of which the difference is known.
#include "core/device/catalogue.h"
#include "core/experiments/memory/memory_difference.h"
#include "core/report/memory_tables.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <algorithm>

using namespace memscape;
using namespace memscape::test;

namespace {

Json live(const char* category, const char* module, const char* name, double bytes)
{
    return {{"category", category}, {"module", module}, {"name", name}, {"bytes", bytes}, {"count", 1}};
}

Json detailOf(const char* phase, double allocated, const Json& tensors)
{
    Json peak{{"phase", phase}, {"allocated", allocated}, {"live", tensors}};
    return {{"phase_peaks", Json::array({peak})}};
}

Record stepWith(const std::vector<std::string>& assignments)
{
    const Experiment& training = **findExperiment("training-memory");
    const auto parameters = resolve(training.schema(), assignments);
    return predictRecord(training, h200(), parameters.value()).value();
}

constexpr double mebi = 1 << 20;

} // namespace

class TestMemoryDifference : public QObject
{
    Q_OBJECT

private slots:
    void equalStepsAreAsPredicted()
    {
        const Json detail = detailOf("forward", 5, Json::array({live("weights", "h.0", "weight", 5)}));
        const auto phases = phaseDifferences(detail, detail);
        QCOMPARE(phases.size(), std::size_t(1));
        QCOMPARE(phases[0].difference(), 0.0);
        QVERIFY(phases[0].modules.empty());
        QCOMPARE(differenceText(phases[0]), std::string("as predicted"));
    }

    void theTensorThatIsMostOfTheDifferenceIsNamed()
    {
        const Json expected =
            detailOf("optimizer", 100 * mebi, Json::array({live("weights", "h.0", "weight", 100 * mebi)}));
        const Json run =
            detailOf("optimizer", 113 * mebi,
                     Json::array({live("weights", "h.1", "weight", 100 * mebi), // a module of the same kind
                                  live("temporary", "", "sqrt", 12 * mebi), live("temporary", "", "add", 1 * mebi)}));
        const auto phases = phaseDifferences(expected, run);
        QCOMPARE(phases[0].modules.size(), std::size_t(1));
        QCOMPARE(phases[0].modules[0].difference(), 13 * mebi);
        QCOMPARE(differenceText(phases[0]),
                 std::string("13 MiB more than predicted, most of it in no module: temporary "
                             "sqrt, 13 MiB more"));
    }

    void whatWasExpectedAndIsMissingIsNamed()
    {
        const Json expected = detailOf(
            "backward", 30, Json::array({live("activations", "h.3.mlp", "gelu", 20), live("weights", "", "w", 10)}));
        const Json run = detailOf(
            "backward", 12, Json::array({live("activations", "h.3.mlp", "mul", 2), live("weights", "", "w", 10)}));
        const auto phases = phaseDifferences(expected, run);
        QCOMPARE(phases[0].modules.size(), std::size_t(1));
        QCOMPARE(phases[0].modules[0].module, std::string("h.*.mlp"));
        QCOMPARE(phases[0].modules[0].tensor, std::string("activations gelu"));
        QCOMPARE(differenceText(phases[0]),
                 std::string("18 B less than predicted, most of it in h.*.mlp: activations gelu, 18 B less"));
    }

    void ofSeveralMicroBatchesTheHighestCounts()
    {
        Json run = detailOf("forward", 4, Json::array());
        run["phase_peaks"].push_back({{"phase", "forward"}, {"allocated", 9}, {"live", Json::array()}});
        const auto phases = phaseDifferences(detailOf("forward", 9, Json::array()), run);
        QCOMPARE(phases.size(), std::size_t(1));
        QCOMPARE(phases[0].difference(), 0.0);
    }

    void detailsWithoutPeaksSayNothing_data()
    {
        QTest::addColumn<QString>("detail");
        QTest::newRow("nothing") << "null";
        QTest::newRow("another experiment's") << R"({"steps": []})";
        QTest::newRow("wrong types") << R"({"phase_peaks": {"phase": "forward"}})";
        QTest::newRow("peaks that are numbers") << R"({"phase_peaks": [1, "x", null]})";
        QTest::newRow("other phases") << R"({"phase_peaks": [{"phase": "coffee", "allocated": "much", "live": 3}]})";
    }
    void detailsWithoutPeaksSayNothing()
    {
        QFETCH(QString, detail);
        const Json json = Json::parse(detail.toStdString());
        const Json known = detailOf("forward", 5, Json::array());
        QVERIFY(phaseDifferences(known, json).empty());
        QVERIFY(phaseDifferences(json, known).empty());
    }

    void aLoopAndAForeachOptimizerDifferInTheOptimizersTemporaries()
    {
        const Record loop = stepWith({"model=gpt2", "sequence=256", "advice=none", "optimizer_implementation=loop"});
        const Record foreach =
            stepWith({"model=gpt2", "sequence=256", "advice=none", "optimizer_implementation=foreach"});
        const auto phases = phaseDifferences(loop.predicted->detail, foreach.predicted->detail);
        QCOMPARE(phases.size(), std::size_t(3));
        for (const PhaseDifference& phase : phases) {
            if (phase.phase != "optimizer") {
                QCOMPARE(phase.difference(), 0.0);
                continue;
            }
            QVERIFY(phase.difference() > 0);
            QVERIFY(differenceText(phase).find("temporary") != std::string::npos);
            double sum = 0;
            for (const ModuleDifference& module : phase.modules)
                sum += module.difference();
            QCOMPARE(sum, phase.difference());
        }
    }

    void theReportHasARowForEachPhase()
    {
        Record record = stepWith({"model=gpt2", "sequence=256", "advice=none"});
        const auto phaseTable = [&record] {
            const auto tables = memoryTables(record);
            const auto found = std::find_if(tables.begin(), tables.end(), [](const NamedTable& one) {
                return one.title == "The highest moment of each phase";
            });
            return found == tables.end() ? TextTable{} : found->table;
        };
        QVERIFY(phaseTable().rows.empty()); // nothing was measured
        record.measured = *record.predicted;
        QCOMPARE(phaseTable().rows.size(), std::size_t(3));
        QCOMPARE(phaseTable().rows[0].back(), std::string("as predicted"));
    }
};

QTEST_GUILESS_MAIN(TestMemoryDifference)
#include "tst_memory_difference.moc"
