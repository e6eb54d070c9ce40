// SPDX-License-Identifier: Apache-2.0
// layout: the contract of the command line, figures against numbers counted by hand, the crossing of the
// two lines, and the errors of wrong input.
#include "core/device/catalogue.h"
#include "core/experiments/layout/layout.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment layout{"layout"};

Prediction predicted(const Device& device, const std::vector<std::string>& assignments)
{
    return layout->predict(device, layout.with(assignments)).value();
}

} // namespace

class TestLayout : public QObject
{
    Q_OBJECT

private slots:
    void theContract()
    {
        const Prediction p =
            predicted(test::twoCores(),
                      {"shape=2,3,4", "dtype=float32", "views=transpose(0,1);narrow(2,1,2)", "walk=last-fastest"});
        const Json& steps = p.detail["steps"];
        QCOMPARE(steps.size(), std::size_t(2));
        QCOMPARE(steps[0]["op"], Json("transpose"));
        QCOMPARE(steps[1]["size"], Json({3, 2, 2}));
        QCOMPARE(steps[1]["stride"], Json({4, 12, 1}));
        QCOMPARE(steps[1]["offset"], Json(1));
        QCOMPARE(steps[1]["ok"], Json(true));
        QVERIFY(steps[1]["error"].is_null() && steps[1]["channels_last"].is_null());
        QCOMPARE(steps[1]["contiguous"], Json(false));
        QCOMPARE(steps[1]["copied"], Json(false));
        QCOMPARE(numberIn(p, "elements"), 12.0);
        QCOMPARE(numberIn(p, "storage_bytes"), 96.0);
        QCOMPARE(numberIn(p, "copied_bytes"), 0.0);
        // Bytes 4-12, 20-28, 36-44, 52-60, 68-76, 84-92 of the storage: all three of its sectors.
        QCOMPARE(numberIn(p, "sectors_per_request"), 3.0);
        QCOMPARE(numberIn(p, "efficiency"), 0.5);
        QCOMPARE(p.detail["code"]["numpy_strides"], Json("(16, 48, 4)"));
        QCOMPARE(p.series.size(), std::size_t(2));
    }

    void refusedStepsAreAnswers()
    {
        const Prediction p =
            predicted(test::twoCores(), {"shape=6,8", "views=t();view(48);reshape(48)", "dtype=float64"});
        const Json& steps = p.detail["steps"];
        QCOMPARE(steps[1]["ok"], Json(false));
        QCOMPARE(steps[1]["error"], Json("view_incompatible"));
        QVERIFY(steps[1]["message"].get<std::string>().starts_with("view size is not compatible"));
        QCOMPARE(steps[2]["copied"], Json(true));
        QCOMPARE(numberIn(p, "copied_bytes"), 48.0 * 8);
    }

    void transposedMatrix()
    {
        const Prediction p = predicted(test::twoCores(), {"shape=1024,1024"});
        QCOMPARE(numberIn(p, "sectors_per_request"), 32.0);
        QCOMPARE(numberIn(p, "efficiency"), 0.125);
        QCOMPARE(numberIn(p, "lines"), 1024.0 * 1024 * 4 / 64);
        QCOMPARE(numberIn(p, "pages"), 1024.0);
        // A column is 1024 lines, 4 KiB apart: all in one set of L1, which has 8 ways.
        QCOMPARE(numberIn(p, "l1_misses"), 1024.0 * 1024);
        const Prediction plain = predicted(test::twoCores(), {"shape=1024,1024", "views="});
        QCOMPARE(numberIn(plain, "sectors_per_request"), 4.0);
        QCOMPARE(numberIn(plain, "efficiency"), 1.0);
        QCOMPARE(numberIn(plain, "l1_misses"), 1024.0 * 1024 * 4 / 64);
        QVERIFY(numberIn(plain, "view_time") < numberIn(p, "view_time"));
        // The same in memory, stored by columns and transposed.
        const Prediction columns = predicted(test::twoCores(), {"shape=1024,1024", "order=column-major"});
        QCOMPARE(numberIn(columns, "sectors_per_request"), 4.0);
        QCOMPARE(columns.detail["view"]["contiguous"], Json(true));
    }

    void channels()
    {
        // The channels of a pixel of NCHW lie 56 × 56 × 4 B apart: 32 of them are 32 sectors; NHWC's are four.
        const std::vector<std::string> pixels{"shape=32,64,56,56", "views=permute(0,2,3,1)"};
        QCOMPARE(numberIn(predicted(test::twoCores(), pixels), "sectors_per_request"), 32.0);
        QCOMPARE(
            numberIn(predicted(test::twoCores(), {pixels[0], pixels[1], "order=channels-last"}), "sectors_per_request"),
            4.0);
        const Prediction converted = predicted(test::twoCores(), {pixels[0], "views=contiguous(channels_last)"});
        QCOMPARE(converted.detail["steps"][0]["channels_last"], Json(true));
        QCOMPARE(numberIn(converted, "copied_bytes"), 32.0 * 64 * 56 * 56 * 4);
    }

    void contiguousResultsCopyNothing()
    {
        const Prediction p = predicted(test::twoCores(), {"shape=64,64", "views=narrow(0,8,16)"});
        QCOMPARE(numberIn(p, "copy_time"), 0.0);
        QCOMPARE(numberIn(p, "pays_after"), 0.0);
        QCOMPARE(numberIn(p, "view_time"), numberIn(p, "contiguous_time"));
        QVERIFY(!findFigure(p.figures, "copy_bandwidth"));
    }

    void theCopyPaysOffWhereTheLinesCross()
    {
        QCOMPARE(paysAfter(3, 1, 5), 3.0); // 9 against 5 + 3; after two reads 6 against 7
        QCOMPARE(paysAfter(3, 1, 0), 0.0);
        QVERIFY(std::isinf(paysAfter(1, 1, 5)));
        const Prediction p = predicted(test::twoCores(), {"shape=500,600", "reads=1:64"});
        const Series* view = p.findSeries("view_total");
        const Series* dense = p.findSeries("contiguous_total");
        QVERIFY(view && dense);
        QCOMPARE(view->x.values.size(), std::size_t(64));
        const double pays = numberIn(p, "pays_after");
        QVERIFY(pays >= 1 && pays < 64);
        for (std::size_t i = 0; i < view->y.size(); ++i)
            QCOMPARE(view->y[i] >= dense->y[i], double(i + 1) >= pays);
    }

    void firstFastestIsNotHelpedByTheCopy()
    {
        const Prediction p = predicted(test::twoCores(), {"shape=300,500", "views=", "walk=first-fastest"});
        QCOMPARE(numberIn(p, "copy_time"), 0.0); // it is contiguous, and still read against its order
        QVERIFY(numberIn(p, "sectors_per_request") > 31);
        const Prediction t = predicted(test::twoCores(), {"shape=300,500", "views=t()", "walk=first-fastest"});
        QCOMPARE(numberIn(t, "efficiency"), 1.0);
        QVERIFY(std::isinf(numberIn(t, "pays_after")));
    }

    void gpuTransposition()
    {
        const Device h200 = *findDevice("nvidia-h200");
        const std::vector<std::string> matrix{"shape=16384,16384"};
        const Prediction best = predicted(h200, matrix);
        const double bytes = 2.0 * 16384 * 16384 * 4;
        // A tiled transposition is a copy: 2 GiB at what copies reach, and a launch.
        const double copy = levelBandwidth(h200, *h200.dram(), Operation::Copy).value;
        QVERIFY(std::fabs(numberIn(best, "copy_bandwidth") / copy - 1) < 0.05);
        QVERIFY(std::fabs(numberIn(best, "copy_time") / (bytes / copy) - 1) < 0.05);
        const auto timeOf = [&](int version) {
            return numberIn(predicted(h200, {matrix[0], "version=" + std::to_string(version)}), "copy_time");
        };
        // Strided sectors, then bank conflicts, hold the first two; what is left is a copy.
        QVERIFY(timeOf(1) > 1.3 * timeOf(4) && timeOf(2) > 1.3 * timeOf(4));
        QCOMPARE(timeOf(3), timeOf(4));
    }

    void emptyAndScalar()
    {
        const Prediction empty = predicted(test::twoCores(), {"shape=0,3"});
        QCOMPARE(numberIn(empty, "elements"), 0.0);
        QCOMPARE(numberIn(empty, "view_time"), 0.0);
        QCOMPARE(numberIn(empty, "lines"), 0.0);
        QVERIFY(std::isnan(numberIn(empty, "efficiency")));
        const Prediction scalar = predicted(test::twoCores(), {"shape=", "views="});
        QCOMPARE(numberIn(scalar, "elements"), 1.0);
        QCOMPARE(numberIn(scalar, "sectors_per_request"), 1.0);
    }

    void wrongInput_data()
    {
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<QString>("place");
        QTest::newRow("not a shape") << "shape=2,x"
                                     << "shape, character 3";
        QTest::newRow("nine dimensions") << "shape=1,1,1,1,1,1,1,1,1"
                                         << "shape";
        QTest::newRow("huge") << "shape=99999999999,99999999999"
                              << "shape";
        QTest::newRow("negative") << "shape=-2"
                                  << "shape";
        QTest::newRow("unknown operation") << "views=transpoze(0,1)"
                                           << "views, character 1";
        QTest::newRow("open bracket") << "views=t();view(2"
                                      << "views, character 11";
        QTest::newRow("too many dimensions on the way") << "views=t();view(1,1,1,1,1,1,1,2048,2048)"
                                                        << "views, character 5";
        QTest::newRow("channels of a matrix") << "order=channels-last"
                                              << "order";
    }
    void wrongInput()
    {
        QFETCH(QString, assignment);
        QFETCH(QString, place);
        const auto answer = layout->predict(test::twoCores(), layout.with({assignment.toStdString()}));
        QVERIFY(!answer);
        QCOMPARE(QString::fromStdString(answer.error().place), place);
        QVERIFY(!answer.error().hint.empty());
        QCOMPARE(exitCodeFor(answer.error()), ExitCode::BadInput);
    }

    void presets()
    {
        std::set<std::string> labels;
        for (const LayoutPreset& preset : layoutPresets()) {
            const Prediction p =
                predicted(test::twoCores(), {"shape=" + preset.shape, "views=" + preset.views, "walk=" + preset.walk});
            QVERIFY2(numberIn(p, "elements") > 0, preset.label.c_str());
            QVERIFY(labels.insert(preset.label).second);
            for (const Json& step : p.detail["steps"])
                QVERIFY2(step["ok"].get<bool>() || preset.label == "Why view() is refused", preset.label.c_str());
        }
    }

    void claims()
    {
        const auto claims = layout->claims(test::twoCores(), layout.with({"shape=8,16,32,32"}));
        std::set<std::string> quotes;
        for (const Claim& claim : claims) {
            QVERIFY(!claim.ours.empty() && !claim.verdict.empty());
            quotes.insert(claim.quote.substr(0, 9));
        }
        QCOMPARE(quotes.size(), std::size_t(5));
        // "narrow breaks contiguity": narrow(0,0,1) of a contiguous tensor stays so.
        QVERIFY(claims.front().ours.find("narrow(0,0,1)") < claims.front().ours.find("stay contiguous"));
    }
};

QTEST_APPLESS_MAIN(TestLayout)
#include "tst_layout.moc"
