// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `precision`: every format has its bits and they do not touch, a drag and a click
// come out as edits, words say what is lost; both themes and sizes are kept to look at (samples/).
#include "app/pictures/precision/precision_picture.h"
#include "app/plots/plot_style.h"
#include "app/settings/theme.h"
#include "core/experiment/outcome.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <QSignalSpy>
#include <QTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

const Experiment& precision()
{
    return **findExperiment("precision");
}

void show(PrecisionPicture& picture, const std::vector<std::string>& assignments, const Measurement* measured = nullptr)
{
    const Device device = *findDevice("nvidia-h200");
    const auto parameters = resolve(precision().schema(), assignments);
    picture.setState({precision(), device, *parameters, nullptr, measured});
}

} // namespace

class TestPrecisionPicture : public QObject
{
    Q_OBJECT

private slots:
    void everyFormatHasItsBits()
    {
        for (const QSizeF size : {QSizeF(420, 230), QSizeF(820, 310), QSizeF(1500, 600)}) {
            const QRectF whole(QPointF(0, 0), size);
            const PrecisionLayout layout = layoutPrecision(whole, 1);
            QCOMPARE(layout.rows.size(), numberFormats().size());
            double bottom = layout.line.bottom();
            for (const FormatRow& row : layout.rows) {
                const NumberFormat& format = numberFormat(row.format);
                const auto used = std::ranges::count_if(row.cells, [](const BitCell& cell) { return cell.bit >= 0; });
                QCOMPARE(int(used), format.bits());
                QCOMPARE(row.cells.front().part, BitPart::Sign);
                QVERIFY(row.area.top() >= bottom);
                bottom = row.area.bottom();
                QVERIFY(row.cells.back().rect.right() <= row.text.left() + 0.5);
                QVERIFY(row.cells.front().rect.left() >= row.label.right());
            }
            QVERIFY(layout.caption.top() >= bottom);
            QVERIFY(layout.bars.top() >= layout.caption.bottom());
            QVERIFY(layout.axis.bottom() <= whole.bottom());
            QVERIFY(layout.bars.height() > 30);
        }
    }

    void draggingTheLineChangesTheValue()
    {
        PrecisionPicture picture;
        picture.resize(800, 320);
        show(picture, {"value=-1"});
        QSignalSpy edits(&picture, &Picture::parameterEdited), editing(&picture, &Picture::editing);
        const PrecisionLayout layout = layoutPrecision(QRectF(picture.rect()), plotUnit());
        drag(picture, {layout.lineX(-10), layout.line.center().y()}, {layout.lineX(10), layout.line.center().y()});
        QCOMPARE(edits.count(), 2);
        QCOMPARE(edits[0][0].toString(), QString("value"));
        const double dragged = edits[1][1].toString().toDouble();
        QVERIFY2(dragged < 0 && std::fabs(dragged / -1024 - 1) < 0.05, qPrintable(edits[1][1].toString()));
        QCOMPARE(editing.count(), 2);
        QCOMPARE(editing[1][0].toBool(), false);
    }

    void aClickTurnsABit()
    {
        PrecisionPicture picture;
        picture.resize(800, 320);
        show(picture, {"value=1", "format=fp16"});
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        const PrecisionLayout layout = layoutPrecision(QRectF(picture.rect()), plotUnit());
        const FormatRow& row = layout.rows[std::size_t(Format::Fp16)];
        mouse(picture, QEvent::MouseButtonPress, row.cells.front().rect.center(), Qt::LeftButton);
        QCOMPARE(edits.last()[1].toString().toDouble(), -1.0); // the sign
        mouse(picture, QEvent::MouseButtonPress, row.cells[6].rect.center(), Qt::LeftButton);
        QCOMPARE(edits.last()[1].toString().toDouble(), 1.5); // the first bit of the mantissa
        mouse(picture, QEvent::MouseButtonPress, layout.rows[std::size_t(Format::Bf16)].label.center(), Qt::LeftButton);
        QCOMPARE(edits.last()[0].toString(), QString("format"));
        QCOMPARE(edits.last()[1].toString(), QString("bf16"));
    }

    void draggingTheBarsMovesTheScale()
    {
        PrecisionPicture picture;
        picture.resize(800, 320);
        show(picture, {"loss_scale=1024"});
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        const PrecisionLayout layout = layoutPrecision(QRectF(picture.rect()), plotUnit());
        const double y = layout.bars.center().y();
        drag(picture, {layout.barsX(-10), y}, {layout.barsX(-4), y});
        QCOMPARE(edits.count(), 1); // pressing alone moves nothing
        QCOMPARE(edits[0][0].toString(), QString("loss_scale"));
        QCOMPARE(edits[0][1].toString(), QString("65536")); // six octaves up
    }

    void keysStepToTheNextNumber()
    {
        PrecisionPicture picture;
        show(picture, {"value=1", "format=bf16", "loss_scale=4"});
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_Right);
        QCOMPARE(edits.last()[1].toString().toDouble(), 1.0078125);
        QTest::keyClick(&picture, Qt::Key_Up);
        QCOMPARE(edits.last()[1].toString(), QString("8"));
        QTest::keyClick(&picture, Qt::Key_Down);
        QCOMPARE(edits.last()[1].toString(), QString("2"));
    }

    void wordsSayWhatIsLost()
    {
        PrecisionPicture picture;
        show(picture, {"value=0.1", "format=bf16"});
        QVERIFY2(picture.summary().contains("0.10009765625"), qPrintable(picture.summary()));
        QVERIFY(picture.summary().contains("Assumed"));
        QVERIFY(picture.accessibleDescription() == picture.summary());
    }

    void measuredGradientsStandForAssumedOnes()
    {
        PrecisionPicture picture;
        Measurement measured;
        MagnitudeHistogram tiny{histogramFirst, std::vector<double>(histogramBars, 0.0), 0};
        tiny.shares[2] = 1; // all of 2^-48: lost in FP16 at any scale below 2^23
        measured.detail = {{"histogram", histogramJson(tiny)}};
        show(picture, {"format=fp16", "loss_scale=65536"}, &measured);
        QVERIFY2(picture.summary().contains("Measured"), qPrintable(picture.summary()));
        QVERIFY2(picture.summary().contains("100 % become zero"), qPrintable(picture.summary()));
    }

    void hostileRecordsAreLeftOut()
    {
        PrecisionPicture picture;
        picture.resize(600, 300);
        for (const Json& histogram :
             {Json(7), Json{{"shares", "many"}}, Json{{"shares", {1, "x", nullptr}}, {"first", 1e300}}}) {
            Measurement measured;
            measured.detail = {{"histogram", histogram}};
            show(picture, {"value=1e38", "format=int8"}, &measured);
            QVERIFY(!picture.grab().isNull());
        }
    }

    void bothThemesAndSizes_data() { bothThemesIn({QSize(760, 300), QSize(1380, 460)}); }
    void bothThemesAndSizes()
    {
        QFETCH(bool, isDark);
        QFETCH(QSize, size);
        const Theme& theme = isDark ? darkTheme() : lightTheme();
        PrecisionPicture picture;
        show(picture, {"operation=train", "format=fp16", "value=0.1", "gradient_median=1e-7"});
        const QImage image = exported(picture, size, theme);
        QVERIFY(image.save(QStringLiteral(SAMPLES "/precision-%1-%2.png").arg(theme.name).arg(size.width())));
        QVERIFY(pixelsOf(image, mix(theme.background, theme.predicted, 0.92)) > 200); // what is stored
    }
};

QTEST_MAIN(TestPrecisionPicture)
#include "tst_precision_picture.moc"
