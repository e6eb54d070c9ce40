// SPDX-License-Identifier: GPL-3.0-or-later
// A page with measurements: compared with the prediction, refused where their settings are others, pinned beside, taken
// as the baseline.
#include "tests/support/page_fixture.h"

#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestPageMeasurements : public QObject
{
    Q_OBJECT

private slots:
    void init() { m_fixture = std::make_unique<PageFixture>(); }

    void headlinesTellWhatWasMeasured()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {}, 2));
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        const QString bandwidth = page->inspector()->headlines()->texts().at(1);
        QVERIFY2(bandwidth.startsWith("useful bandwidth: predicted 1.11 TB/s, measured 2.21 TB/s"),
                 qPrintable(bandwidth));
    }

    void aMeasurementIsComparedAndItsErrorShown()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {"stride=4"}, 1.25));
        auto page = open("stride", "nvidia-h200");
        QVERIFY(page->setText("stride", "4"));
        QTRY_VERIFY(page->upToDate());
        const auto& rows = page->inspector()->figures()->figures()->rows();
        const auto row = std::ranges::find_if(
            rows, [](const FigureRow& one) { return one.key == QLatin1String("useful_bandwidth"); });
        QVERIFY(row != rows.end() && row->measured);
        QVERIFY(std::abs(row->error + 0.2) < 1e-9); // 1 / 1.25 − 1
        QVERIFY(page->shownRecord()->measured);
        for (const QLabel* line : page->inspector()->findChildren<QLabel*>()) // once is enough
            QVERIFY2(!line->text().contains(QStringLiteral("20 % off")), qPrintable(line->text()));
    }

    void claimsAreJudgedByTheMeasurementOnceThereIsOne()
    {
        auto page = open("stride", "nvidia-h200");
        const auto verdicts = [&page] {
            page->updateNow();
            QStringList lines;
            for (const QLabel* label : page->inspector()->claims()->findChildren<QLabel*>())
                lines << label->text();
            return lines.join(u'\n');
        };
        QVERIFY2(verdicts().contains(QLatin1String(", predicted ")), qPrintable(verdicts()));
        m_fixture->document.addRecord(sampleRecord("stride", {}, 1.25));
        QVERIFY2(verdicts().contains(QLatin1String(", measured ")), qPrintable(verdicts()));
        QVERIFY(page->setText("stride", "8")); // the measurement is of another stride
        QTRY_VERIFY(page->upToDate());
        QVERIFY2(verdicts().contains(QLatin1String(", predicted ")), qPrintable(verdicts()));
    }

    void aMeasurementWithOtherParametersIsNotCompared()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {"element=float64"}));
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!page->inspector()->figures()->figures()->rows().front().measured);
        QVERIFY2(page->inspector()->noteText().contains("float64"), qPrintable(page->inspector()->noteText()));
        page->inspector()->findChild<QPushButton*>("noteAction")->click(); // use these settings
        QTRY_VERIFY(page->upToDate());
        QCOMPARE(page->parameters().choice("element"), "float64");
        QVERIFY(page->inspector()->figures()->figures()->rows().front().measured);
    }

    void pinnedRecordsAreDrawnBeside()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {}, 1.5));
        m_fixture->document.addRecord(sampleRecord("stride", {}));
        auto page = open("stride", "nvidia-h200");
        const auto pinned = [&] {
            page->updateNow();
            const auto& curves = page->plot()->view()->curves();
            return std::ranges::count_if(curves, [](const Curve& curve) { return curve.role == CurveRole::Pinned; });
        };
        QCOMPARE(pinned(), 0);
        m_fixture->document.setRecordPinned(0, true);
        QCOMPARE(pinned(), 1);
        QCOMPARE(page->exportRecords().size(), std::size_t(2));
    }

    void theBaselineStandsInFiguresAndCurves()
    {
        StudyDocument& document = m_fixture->document;
        document.addRecord(sampleRecord("stride", {}, 1.5));
        document.addRecord(sampleRecord("stride", {}, 1.2));
        auto page = open("stride", "nvidia-h200");
        const FiguresTable& table = *page->inspector()->figures();
        QVERIFY(table.isColumnHidden(FiguresModel::BaselineColumn));
        document.setBaseline(0, true);
        page->updateNow();
        QVERIFY(!table.isColumnHidden(FiguresModel::BaselineColumn));
        QTRY_VERIFY(table.horizontalHeader()->length() <= table.viewport()->width()); // nothing is cut
        const FigureRow& row = table.figures()->rows().front();
        QVERIFY(row.isMeasuredAgainst);
        QVERIFY(std::abs(row.difference + 0.2) < 1e-9); // 1.2 against 1.5
        const auto& curves = page->plot()->view()->curves();
        QVERIFY(std::ranges::any_of(curves, [](const Curve& curve) {
            return curve.role == CurveRole::Pinned && curve.name.endsWith("(baseline)");
        }));
        document.undoStack()->undo();
        page->updateNow();
        QVERIFY(table.isColumnHidden(FiguresModel::BaselineColumn));
    }

    void aPinnedPredictionIsCalledByWhatItDiffersIn()
    {
        auto page = open("stride", "nvidia-h200");
        page->pinPrediction();
        QVERIFY(page->setText("element", "float64"));
        QTRY_VERIFY(page->upToDate());
        page->updateNow();
        QStringList names;
        for (const Curve& curve : page->plot()->view()->curves())
            names << curve.name;
        QVERIFY2(names.contains("predicted: element float32 (4 B)"), qPrintable(names.join(u';')));
    }

    void predictionsOfTwoDevicesStandOnOnePlot()
    {
        auto page = open("stride", "nvidia-h200");
        page->pinPrediction();
        const StudyDocument& document = m_fixture->document;
        QCOMPARE(document.records().size(), std::size_t(1));
        QVERIFY(document.records()[0].pinned && !document.records()[0].measured);
        QCOMPARE(document.undoStack()->undoText(), QString("Pin this prediction"));
        QVERIFY(!page->strip()->isHidden());
        m_fixture->document.setDevice("stride", "nvidia-a100-80gb");
        page->updateNow();
        QTRY_VERIFY(page->upToDate() && page->prediction()->device.id == "nvidia-a100-80gb");
        page->updateNow();
        QStringList names;
        for (const Curve& curve : page->plot()->view()->curves())
            names << curve.name;
        const QString all = names.join(u';');
        QVERIFY2(names.front().startsWith("predicted, H200"), qPrintable(all));
        QVERIFY2(all.contains("predicted (A100"), qPrintable(all));
        m_fixture->document.setBaseline(0, true); // predicted against predicted
        page->updateNow();
        const auto& rows = page->inspector()->figures()->figures()->rows();
        QVERIFY(std::ranges::none_of(rows, [](const auto& row) { return row.isMeasuredAgainst; }));
        const auto bandwidth =
            std::ranges::find_if(rows, [](const auto& row) { return row.predicted->unit == Unit::BytePerSecond; });
        QVERIFY(bandwidth != rows.end() && bandwidth->baseline);
        QVERIFY2(bandwidth->difference < -0.3, qPrintable(QString::number(bandwidth->difference))); // A100 against H200
        emit page->strip()->chosen(0); // what only predicts is put on the page
        QCOMPARE(page->deviceId(), std::string("nvidia-h200"));
    }

    void noLabelOfTheFiguresIsCut_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<int>("width");
        QTest::newRow("stride") << "stride" << 1000;
        QTest::newRow("words among the values") << "loading" << 1280;
    }
    void noLabelOfTheFiguresIsCut()
    {
        QFETCH(QString, id);
        QFETCH(int, width);
        m_fixture->document.addRecord(sampleRecord(id.toStdString(), {}));
        auto page = open(id.toStdString(), "nvidia-h200");
        page->resize(width, 800);
        QTRY_VERIFY(page->upToDate());
        const FiguresTable& table = *page->inspector()->figures();
        const QFontMetrics metrics(relativeFont(0.92));
        for (int row = 0; row < table.model()->rowCount(); ++row) {
            const QString label = table.model()->index(row, 0).data().toString();
            const QRect room(0, 0, table.columnWidth(0) - 6, 1000);
            const QSize needed = metrics.boundingRect(room, Qt::TextWordWrap, label).size();
            QVERIFY2(needed.height() <= table.rowHeight(row), qPrintable(label));
            QVERIFY2(needed.width() <= room.width(), qPrintable(label));
        }
    }

    /// Rates with long units, predicted and measured, beside an error: the page's own width decides.
    void nothingOfAComparisonIsCut_data()
    {
        QTest::addColumn<QString>("id");
        for (const Experiment* experiment : experiments())
            QTest::newRow(experiment->id().data()) << QString::fromUtf8(experiment->id().data());
    }
    void nothingOfAComparisonIsCut()
    {
        QFETCH(QString, id);
        m_fixture->document.addRecord(sampleRecord(id.toStdString(), {}, 1.7));
        auto page = open(id.toStdString(), "nvidia-h200");
        page->resize(1088, 760); // a window of 1280 × 800
        QTRY_VERIFY(page->upToDate());
        const FiguresTable& table = *page->inspector()->figures();
        QVERIFY(!table.isColumnHidden(FiguresModel::MeasuredColumn));
        QTRY_VERIFY2(
            table.horizontalHeader()->length() <= table.viewport()->width(),
            qPrintable(
                QStringLiteral("%1 of %2").arg(table.horizontalHeader()->length()).arg(table.viewport()->width())));
        const QFontMetrics metrics(relativeFont(table.valueSize(), true));
        for (int row = 0; row < table.model()->rowCount(); ++row) {
            for (const int column : {FiguresModel::PredictedColumn, FiguresModel::MeasuredColumn}) {
                const QString value = table.model()->index(row, column).data().toString();
                const QRect room(0, 0, table.columnWidth(column) - 8, 1000);
                const QSize needed = metrics.boundingRect(room, Qt::TextWordWrap, value).size();
                QVERIFY2(needed.width() <= room.width() && needed.height() <= table.rowHeight(row), qPrintable(value));
            }
        }
    }

    void pinnedRecordsBringTheCurvesBack()
    {
        auto page = open("batch-size", "nvidia-h200");
        QTRY_VERIFY(page->upToDate() && page->plot()->isFolded());
        Record record = sampleRecord("batch-size", {"optimizer=adamw"});
        record.pinned = true;
        m_fixture->document.addRecord(record);
        QTRY_VERIFY(!page->plot()->isFolded());
    }

private:
    std::unique_ptr<ExperimentPage> open(const std::string& id, const std::string& device)
    {
        return m_fixture->open(id, device);
    }

    std::unique_ptr<PageFixture> m_fixture;
};

QTEST_MAIN(TestPageMeasurements)
#include "tst_page_measurements.moc"
