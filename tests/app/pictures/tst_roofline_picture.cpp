// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `roofline`: every kernel is a mark inside the picture, a click opens its experiment
// at parameters that parse, the intensity can be dragged, foreign records are survived; both themes
// and sizes are kept to look at (samples/).
#include "app/pictures/roofline/roofline_picture.h"
#include "app/plots/plot_style.h"
#include "app/settings/theme.h"
#include "core/experiments/roofline/roofline.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <QImage>
#include <QSignalSpy>
#include <QTest>

#include <cmath>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

const Experiment& roofline()
{
    return **findExperiment("roofline");
}

Prediction show(RooflinePicture& picture, const QString& device, const Measurement* measured = nullptr)
{
    const Device known = *findDevice(device.toStdString());
    const Parameters parameters = resolve(roofline().schema(), std::vector<std::string>{}).value();
    Prediction prediction = roofline().predict(known, parameters).value();
    picture.setState({roofline(), known, parameters, &prediction, measured});
    return prediction;
}

} // namespace

class TestRooflinePicture : public QObject
{
    Q_OBJECT

private slots:
    void everyKernelIsInsideThePicture_data()
    {
        QTest::addColumn<QString>("device");
        for (const char* id : {"nvidia-h200", "nvidia-v100-sxm2", "amd-epyc-zen4-vm", "cpu"})
            QTest::newRow(id) << id;
    }
    void everyKernelIsInsideThePicture()
    {
        QFETCH(QString, device);
        RooflinePicture picture;
        const Prediction prediction = show(picture, device);
        QCOMPARE(picture.marks().size(), prediction.detail["points"].size());
        for (const QSizeF size : {QSizeF(500, 240), QSizeF(1400, 600)}) {
            const QRectF whole(QPointF(0, 0), size);
            for (const RooflineMark& mark : picture.marks())
                QVERIFY2(whole.contains(picture.placeOf(mark, whole)), qPrintable(mark.id));
        }
        // More operations a byte is further right, more a second is higher.
        const QRectF whole(0, 0, 900, 400);
        for (const RooflineMark& a : picture.marks()) {
            for (const RooflineMark& b : picture.marks()) {
                if (1.01 * a.intensity < b.intensity)
                    QVERIFY(picture.placeOf(a, whole).x() < picture.placeOf(b, whole).x());
                if (1.01 * a.rate < b.rate)
                    QVERIFY(picture.placeOf(a, whole).y() > picture.placeOf(b, whole).y());
            }
        }
        QVERIFY(picture.summary().contains("memory-bound"));
    }

    void wordsTouchNothing_data() { everyKernelIsInsideThePicture_data(); }
    void wordsTouchNothing()
    {
        QFETCH(QString, device);
        RooflinePicture picture;
        show(picture, device);
        const RooflineState& state = picture.state();
        for (const QSizeF size : {QSizeF(500, 240), QSizeF(756, 300), QSizeF(1396, 460)}) {
            const RooflineScales scales = rooflineScales(state, QRectF(QPointF(0, 0), size));
            const std::vector<RooflineText> texts = rooflineTexts(state, scales, {});
            int levels = 0, chosen = 0, formats = 0;
            std::set<double> rates;
            for (const RooflineRoof& format : state.formats)
                rates.insert(format.value);
            for (std::size_t i = 0; i < texts.size(); ++i) {
                levels += texts[i].kind == RooflineTextKind::Level;
                formats += texts[i].kind == RooflineTextKind::Format;
                chosen += texts[i].kind == RooflineTextKind::Format && state.formats[texts[i].index].isChosen;
                for (std::size_t j = 0; j < i; ++j)
                    QVERIFY2(!texts[i].box.intersects(texts[j].box),
                             qPrintable(texts[i].text + " on " + texts[j].text));
                if (size.width() < 600 && texts[i].kind == RooflineTextKind::Format)
                    continue; // the chosen one is named even where there is no room
                for (const RooflineMark& mark : state.marks)
                    QVERIFY2(!texts[i].box.containsPoint(scales.at(mark.intensity, mark.rate), Qt::OddEvenFill),
                             qPrintable(texts[i].text + " on " + mark.label));
            }
            QCOMPARE(chosen, 1);
            if (size.width() > 600)
                QCOMPARE(levels, int(state.levels.size()));
            if (size.width() > 600)
                QCOMPARE(formats, int(rates.size())); // formats of one rate share a name
        }
        for (const double width : {320.0, 420.0, 500.0, 756.0, 1396.0}) { // half a screen at twice the scale
            const std::vector<RooflineTick> ticks = rooflineTicks(rooflineScales(state, QRectF(0, 0, width, 240)));
            QVERIFY(ticks.size() >= 2);
            for (std::size_t i = 1; i < ticks.size(); ++i)
                QVERIFY2(ticks[i - 1].box.right() + 3 < ticks[i].box.left(),
                         qPrintable(ticks[i - 1].text + " on " + ticks[i].text));
            QVERIFY(ticks.back().box.right() <= width);
        }
        // The kernel under the pointer always has its name.
        const RooflineScales scales = rooflineScales(state, QRectF(0, 0, 500, 240));
        for (const RooflineMark& mark : state.marks) {
            const std::vector<RooflineText> texts = rooflineTexts(state, scales, mark.id);
            QVERIFY(std::ranges::any_of(texts, [&](const RooflineText& text) {
                return text.kind == RooflineTextKind::Mark && state.marks[text.index].id == mark.id;
            }));
        }
    }

    void noTwoWordsOverlapOnAnyDevice_data()
    {
        QTest::addColumn<QString>("device");
        QTest::newRow("cpu") << "cpu";
        for (const Device& device : catalogue())
            QTest::newRow(device.id.c_str()) << QString::fromStdString(device.id);
    }
    void noTwoWordsOverlapOnAnyDevice()
    {
        QFETCH(QString, device);
        RooflinePicture picture;
        const Prediction prediction = show(picture, device);
        Measurement measured; // a third slower
        measured.detail = {{"points", prediction.detail["points"]}};
        for (Json& point : measured.detail["points"])
            point["rate"] = point["rate"].get<double>() / 1.5;
        for (const bool isMeasured : {false, true}) {
            show(picture, device, isMeasured ? &measured : nullptr);
            const RooflineState& state = picture.state();
            for (const QSizeF size :
                 {QSizeF(330, 220), QSizeF(420, 400), QSizeF(586, 430), QSizeF(756, 660), QSizeF(1396, 1060)}) {
                const RooflineScales scales = rooflineScales(state, QRectF(QPointF(0, 0), size));
                QStringList lit{QString()}; // each kernel's name is forced to be there while it is pointed at
                for (const RooflineMark& mark : state.marks) {
                    if (size.width() < 600 && !isMeasured)
                        lit << mark.id;
                }
                for (const QString& id : std::as_const(lit)) {
                    const std::vector<RooflineText> texts = rooflineTexts(state, scales, id);
                    for (std::size_t i = 0; i < texts.size(); ++i) {
                        for (std::size_t j = 0; j < i; ++j)
                            QVERIFY2(!texts[i].box.intersects(texts[j].box),
                                     qPrintable(QStringLiteral("%1 on %2, %3 wide")
                                                    .arg(texts[i].text, texts[j].text)
                                                    .arg(size.width())));
                    }
                }
            }
        }
    }

    /// Kernels at one place have one name; each of them is found in it.
    void kernelsAtOnePlaceShareTheirName()
    {
        RooflineState state{"a device", 16, {{"DRAM", 1e12, false}}, {{"FP16", 1e15, true}}, {}};
        for (const char* name :
             {"FP16 product 8192³", "BF16 product 8192³", "TF32 product 8192³", "triad in L2", "triad in L2 far"}) {
            RooflineMark mark;
            mark.id = mark.label = QString::fromUtf8(name);
            mark.intensity = mark.label.startsWith("triad") ? 0.1 : 700;
            mark.rate = mark.label.startsWith("triad") ? 9e10 : mark.label.startsWith("TF32") ? 2e14 : 6e14;
            state.marks.push_back(mark);
        }
        const RooflineScales scales = rooflineScales(state, QRectF(0, 0, 1000, 600));
        QStringList names;
        for (const RooflineText& text : rooflineTexts(state, scales, {})) {
            if (text.kind == RooflineTextKind::Mark)
                names << text.text;
        }
        names.sort();
        QCOMPARE(names.join(u'|'),
                 QString::fromUtf8("FP16, BF16 product 8192³|TF32 product 8192³|triad in L2, L2 far"));
        const auto lit = rooflineTexts(state, scales, QString::fromUtf8("BF16 product 8192³"));
        QVERIFY(std::ranges::any_of(
            lit, [&](const RooflineText& text) { return text.kind == RooflineTextKind::Mark && text.index == 1; }));
    }

    /// A ridge of 1033 FLOP/B is no 1.03e+03.
    void numbersHaveNoExponents()
    {
        for (const Device& device : catalogue()) {
            RooflinePicture picture;
            show(picture, QString::fromStdString(device.id));
            const RooflineScales scales = rooflineScales(picture.state(), QRectF(0, 0, 1396, 1060));
            for (const RooflineText& text : rooflineTexts(picture.state(), scales, {}))
                QVERIFY2(!text.text.contains("e+"), qPrintable(text.text));
            QVERIFY2(!picture.summary().contains("e+"), qPrintable(picture.summary()));
        }
        RooflineState state{"a device", 16, {{"DRAM", 1e9, false}}, {{"INT8", 1033e9, true}}, {}};
        const auto texts = rooflineTexts(state, rooflineScales(state, QRectF(0, 0, 800, 400)), {});
        QVERIFY(std::ranges::any_of(texts, [](const auto& text) { return text.text.endsWith("ridge 1033"); }));
    }

    void aClickOpensTheExperiment()
    {
        RooflinePicture picture;
        picture.resize(900, 400);
        show(picture, "nvidia-h200");
        QSignalSpy wanted(&picture, &RooflinePicture::experimentWanted);
        for (const RooflineMark& mark : picture.marks()) {
            mouse(picture, QEvent::MouseButtonPress, picture.placeOf(mark, QRectF(picture.rect())), Qt::LeftButton);
            mouse(picture, QEvent::MouseButtonRelease, picture.placeOf(mark, QRectF(picture.rect())), Qt::NoButton);
        }
        QCOMPARE(wanted.count(), int(picture.marks().size()));
        for (const QList<QVariant>& click : wanted) {
            const auto experiment = findExperiment(click[0].toString().toStdString());
            QVERIFY2(experiment.has_value(), qPrintable(click[0].toString()));
            for (const auto& [key, text] : click[1].value<ParameterChanges>()) {
                const ParameterSpec* spec = findParameter((*experiment)->schema(), key);
                QVERIFY2(spec, key.c_str());
                QVERIFY2(parseValue(*spec, text).has_value(), (key + "=" + text).c_str());
            }
        }
    }

    void theIntensityIsDragged()
    {
        RooflinePicture picture;
        picture.resize(900, 400);
        show(picture, "nvidia-h200");
        QSignalSpy edits(&picture, &Picture::parameterEdited), editing(&picture, &Picture::editing);
        drag(picture, {300, 60}, {600, 60});
        QCOMPARE(edits.count(), 2);
        QCOMPARE(edits[1][0].toString(), QString("intensity"));
        QVERIFY(edits[1][1].toString().toDouble() > 4 * edits[0][1].toString().toDouble());
        QCOMPARE(editing.count(), 2);
    }

    void measuredMarksStandBesideThePredictedOnes()
    {
        RooflinePicture picture;
        const Prediction prediction = show(picture, "amd-epyc-zen4-vm");
        Measurement measured;
        measured.detail = {{"points", prediction.detail["points"]}};
        const std::size_t before = picture.marks().size();
        show(picture, "amd-epyc-zen4-vm", &measured);
        QCOMPARE(picture.marks().size(), 2 * before);
        QVERIFY(picture.marks().back().isMeasured && !picture.marks().front().isMeasured);
        QVERIFY(picture.summary().contains("measured"));
    }

    void hostileRecordsAreLeftOut()
    {
        RooflinePicture picture;
        picture.resize(700, 300);
        for (const Json& points :
             {Json("many"), Json::array({1, nullptr, Json{{"intensity", -1}, {"rate", 1e9}}}),
              Json::array({Json{{"intensity", 1e-300}, {"rate", 1e300}, {"assignments", {1, "x"}}}})}) {
            Measurement measured;
            measured.detail = {{"points", points}};
            show(picture, "cpu", &measured);
            QVERIFY(!picture.grab().isNull());
        }
    }

    void bothThemesAndSizes_data()
    {
        QTest::addColumn<bool>("dark");
        QTest::addColumn<QSize>("size");
        QTest::addColumn<QString>("device");
        for (const bool dark : {false, true}) {
            for (const char* device : {"nvidia-h200", "amd-epyc-zen4-vm"}) {
                QTest::addRow("%s small %s", dark ? "dark" : "light", device) << dark << QSize(760, 300) << device;
                QTest::addRow("%s large %s", dark ? "dark" : "light", device) << dark << QSize(1380, 460) << device;
            }
        }
    }
    void bothThemesAndSizes()
    {
        QFETCH(bool, dark);
        QFETCH(QSize, size);
        QFETCH(QString, device);
        RooflinePicture picture;
        show(picture, device);
        const Theme& theme = dark ? darkTheme() : lightTheme();
        const QImage image = exported(picture, size, theme);
        QVERIFY(image.save(QStringLiteral(SAMPLES "/roofline-%1-%2-%3.png")
                               .arg(dark ? "dark" : "light")
                               .arg(size.width())
                               .arg(device)));
        // Each ring is drawn where placeOf() says: some of its rim shows, though others lie over it.
        int rings = 0;
        for (const RooflineMark& mark : picture.marks()) {
            const QPointF at = picture.placeOf(mark, QRectF(QPointF(0, 0), QSizeF(size)));
            bool isSeen = false;
            for (int i = 0; i < 16; ++i) {
                const double angle = i * M_PI / 8, radius = 4 * plotUnit();
                const QPoint rim = (at + radius * QPointF(std::cos(angle), std::sin(angle))).toPoint();
                isSeen |= image.rect().contains(rim) && image.pixelColor(rim) != theme.background;
            }
            rings += isSeen;
        }
        QCOMPARE(rings, int(picture.marks().size()));
    }
};

QTEST_MAIN(TestRooflinePicture)
#include "tst_roofline_picture.moc"
