// SPDX-License-Identifier: Apache-2.0
// in-place: what PyTorch itself allowed, refused, kept and had alive (tests/data/pytorch/in_place.json), case by case;
// bytes and times of both ways.
#include "core/device/catalogue.h"
#include "core/experiments/in-place/in_place.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/pytorch_data.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <QJsonArray>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment inPlace{"in-place"};

std::string valueOf(const QJsonObject& row, const char* key)
{
    const QJsonValue value = row[QLatin1String(key)];
    return value.isBool() ? (value.toBool() ? "true" : "false") : value.toString().toStdString();
}

InPlaceCase caseOf(const QJsonObject& row)
{
    return inPlaceCase(inPlace.with({"operation=" + valueOf(row, "operation"), "input=" + valueOf(row, "input"),
                                     "gradients=" + valueOf(row, "gradients")}));
}

/// What the operation keeps for its backward, in the words of the data.
QStringList savedNames(const InPlaceCase& asked, bool isInPlace)
{
    QStringList names;
    for (const InPlaceTensor& tensor : inPlaceTensors(asked, isInPlace)) {
        if (tensor.isSaved)
            names << (tensor.name == "factor" ? QString("other") : QString::fromStdString(tensor.name));
    }
    names.sort();
    return names;
}

/// Bytes of the tensors of one way that are so.
double bytesOf(const Json& way, const char* what)
{
    double bytes = 0;
    for (const Json& tensor : way.at("tensors"))
        bytes += *what == '\0' || tensor.at(what) == true ? tensor.at("bytes").get<double>() : 0;
    return bytes;
}

} // namespace

class TestInPlace : public QObject
{
    Q_OBJECT

private slots:
    void pytorchAgrees_data()
    {
        QTest::addColumn<QJsonObject>("row");
        for (const QJsonValue value : pytorchData("in_place.json")["rows"].toArray()) {
            const QJsonObject row = value.toObject();
            QTest::addRow("%s of %s, %s gradients, %s", valueOf(row, "operation").c_str(),
                          valueOf(row, "input").c_str(), row["gradients"].toBool() ? "with" : "without",
                          row["in_place"].toBool() ? "in place" : "plain")
                << row;
        }
    }
    void pytorchAgrees()
    {
        QFETCH(QJsonObject, row);
        const Overwriting rules = overwriting(caseOf(row));
        const bool isInPlace = row["in_place"].toBool();
        const QString error = row["error"].toString();
        if (isInPlace) {
            QCOMPARE(rules.isAllowed(), error.isEmpty());
            QVERIFY2(error.toStdString().starts_with(rules.error), qPrintable(error));
            const bool isCalled = row["at"].toString() == "call";
            QCOMPARE(rules.at, error.isEmpty() ? std::string() : isCalled ? "at the call" : "in backward");
            if (rules.isAllowed())
                QVERIFY(row["same_numbers"].toBool()); // the gradients', or without gradients the result's
        } else {
            QVERIFY(error.isEmpty());
        }
        if (!row.contains("peak"))
            return; // refused before anything was made
        QCOMPARE(isInPlace ? rules.inPeak : rules.outPeak, row["peak"].toInt());
        QCOMPARE(isInPlace ? rules.inAfter : rules.outAfter, row["after"].toInt());
        QCOMPARE(savedNames(caseOf(row), isInPlace), row["saved"].toVariant().toStringList());
    }

    void everyCaseWasRun()
    {
        std::size_t cases = 2 * 2; // gradients, in place
        for (const char* key : {"operation", "input"})
            cases *= findParameter(inPlace->schema(), key)->choices.size();
        QCOMPARE(std::size_t(pytorchData("in_place.json")["rows"].toArray().size()), cases);
    }

    void aHostFetchesWhatItOverwrites()
    {
        const std::vector<std::string> given{"bytes=1GiB"};
        QCOMPARE(inPlace.number("amd-epyc-9654", given, "out_moved"), 3 * 0x1p30);
        QCOMPARE(inPlace.number("amd-epyc-9654", given, "in_moved"), 2 * 0x1p30);
        QCOMPARE(inPlace.number("amd-epyc-9654", given, "out_peak"), 2 * 0x1p30);
        QCOMPARE(inPlace.number("amd-epyc-9654", given, "in_peak"), 0x1p30);
        QVERIFY(inPlace.number("amd-epyc-9654", given, "speedup") > 1);
    }

    void inPlaceStaysInACacheTwiceAsLong()
    {
        // Two thirds of L2: one array of it stays there, two do not.
        const Device gpu = *findDevice("nvidia-h200");
        const double bytes = gpu.lastCache()->capacity.value * 2 / 3;
        const auto speedup = [](double size) {
            return inPlace.number("nvidia-h200", {"bytes=" + std::to_string(std::int64_t(size))}, "speedup");
        };
        QVERIFY(speedup(bytes) > 1.1);
        QVERIFY(speedup(bytes) > speedup(64 * bytes));
    }

    void aGpuMovesTheSameBothWays()
    {
        QCOMPARE(inPlace.number("nvidia-h200", {"bytes=4GiB"}, "out_moved"), 8 * 0x1p30);
        QCOMPARE(inPlace.number("nvidia-h200", {"bytes=4GiB"}, "in_moved"), 8 * 0x1p30);
        QVERIFY(std::fabs(inPlace.number("nvidia-h200", {"bytes=4GiB"}, "speedup") - 1) < 0.05);
    }

    void aCopyForBackwardCostsTime()
    {
        const std::vector<std::string> silu{"operation=silu", "bytes=1GiB"};
        for (const char* device : {"nvidia-h200", "amd-epyc-9654"}) {
            QVERIFY(inPlace.number(device, silu, "speedup") < 1);
            QCOMPARE(inPlace.number(device, silu, "in_peak"), inPlace.number(device, silu, "out_peak"));
        }
    }

    void anUnknownBandwidthIsSaid()
    {
        Device device = *findDevice("nvidia-h200");
        for (MemoryLevel& level : device.levels)
            level.bandwidth = level.latency = {};
        for (MemoryLevel& level : device.levels)
            level.copyBandwidth = level.writeBandwidth = {};
        const auto figures = inPlace->predictPoint(device, inPlace.with({}));
        QVERIFY(!figures);
        QCOMPARE(figures.error().code, std::string("predict.device"));
    }

    void theDetailAddsUpToTheFigures_data()
    {
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("operation");
        QTest::addColumn<QString>("input");
        for (const char* device : {"nvidia-h200", "amd-epyc-9654"}) {
            for (const char* operation : {"relu", "leaky-relu", "mul-gate", "silu"}) {
                for (const char* input : {"linear", "sigmoid", "leaf"})
                    QTest::addRow("%s of %s on %s", operation, input, device) << device << operation << input;
            }
        }
    }
    void theDetailAddsUpToTheFigures()
    {
        QFETCH(QString, device);
        QFETCH(QString, operation);
        QFETCH(QString, input);
        const auto predicted = inPlace->predict(
            *findDevice(device.toStdString()),
            inPlace.with({"operation=" + operation.toStdString(), "input=" + input.toStdString(), "bytes=3MiB"}));
        QVERIFY(predicted);
        const auto figure = [&](const std::string& key) { return findFigure(predicted->figures, key)->number(); };
        for (const std::string way : {"out", "in"}) {
            const Json& detail = predicted->detail.at(way);
            QCOMPARE(bytesOf(detail, ""), figure(way + "_peak"));
            QCOMPARE(bytesOf(detail, "after"), figure(way + "_kept"));
            double moved = 0;
            for (const Json& part : detail.at("moved"))
                moved += part.get<double>();
            QCOMPARE(moved, figure(way + "_moved"));
        }
    }

    void whatIsRefusedNamesWhatItDestroys()
    {
        const auto destroyed = [](const std::vector<std::string>& assignments) {
            return inPlace->predict(*findDevice("nvidia-h200"), inPlace.with(assignments))->detail.at("destroys");
        };
        QCOMPARE(destroyed({"input=sigmoid"}), Json("the input, saved by the sigmoid that made it"));
        QCOMPARE(destroyed({"input=leaf"}), Json("the values of the parameter"));
        QCOMPARE(destroyed({"input=leaf", "gradients=false"}), Json("")); // an optimizer does that
        QCOMPARE(destroyed({"input=linear"}), Json(""));
        QCOMPARE(destroyed({"operation=gelu", "input=leaf"}), Json("")); // nothing runs that could
    }

    /// What is measured again and again neither overflows nor becomes so small that processors slow down.
    void repetitionsStayBounded()
    {
        for (int i = 0; i <= int(InPlaceOperation::Gelu); ++i) {
            const auto operation = InPlaceOperation(i);
            for (const double start : {-1.0, -0.25, 1e-3, 1.0}) {
                auto x = float(start);
                for (unsigned turn = 0; turn < 100'000; ++turn)
                    x = float(inPlaceReference(operation, inPlaceStep(operation, turn), double(x), turn % 3 ? 1 : -1));
                QVERIFY2(std::fabs(x) < 4 && (x == 0.0F || std::fabs(x) > 1e-6F),
                         qPrintable(QString("%1: %2").arg(i).arg(double(x))));
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestInPlace)
#include "tst_in_place.moc"
