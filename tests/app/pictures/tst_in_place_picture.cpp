// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `in-place`: blocks as wide as their bytes, what autograd keeps and says as PyTorch did itself
// (tests/data/pytorch/in_place.json), what pointer and keys read; both themes and sizes are kept to look at (samples/).
#include "app/pictures/in-place/in_place_picture.h"
#include "app/plots/plot_style.h"
#include "app/settings/theme.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"
#include "tests/support/pytorch_data.h"

#include <QImage>
#include <QSignalSpy>
#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

struct InPlaceValues : PictureCase
{
    explicit InPlaceValues(const std::vector<std::string>& assignments, const char* on = "amd-epyc-9654")
        : PictureCase("in-place", assignments, on)
    { }
    InPlaceState state() const { return readInPlace(*experiment, parameters, &prediction, nullptr, ByteStyle::Binary); }
};

/// Every kind of picture: plain, with a factor and a copy, refused at the call and in backward, no gradients.
const std::vector<std::vector<std::string>> inPlaceKinds{{"operation=relu"},
                                                         {"operation=mul-gate"},
                                                         {"operation=silu", "input=sum"},
                                                         {"input=leaf"},
                                                         {"input=sigmoid"},
                                                         {"operation=gelu"},
                                                         {"operation=mul-mask", "gradients=false"},
                                                         {"bytes=100000000"},
                                                         {"input=read", "operation=leaky-relu"}};

const std::vector<QSizeF> inPlaceSizes{{400, 228}, {417, 230}, {738, 280}, {990, 280}, {1500, 500}};

QRectF inPlaceArea(QSizeF size)
{
    return {QPointF(0, 0), size};
}

std::string inPlaceWord(const QJsonObject& row, const char* key)
{
    return std::string(key) + "=" + row[QLatin1String(key)].toVariant().toString().toStdString();
}

} // namespace

class TestInPlacePicture : public QObject
{
    Q_OBJECT

private slots:
    void blocksAreAsWideAsTheirBytes()
    {
        for (const auto& assignments : inPlaceKinds) {
            for (const char* device : {"amd-epyc-9654", "nvidia-h200"}) {
                const InPlaceValues values(assignments, device);
                const InPlaceState state = values.state();
                const InPlaceLayout layout = layoutInPlace(state, inPlaceArea({738, 280}), 1);
                std::array<std::array<double, inPlaceRows>, 2> width{};
                for (const InPlaceBlock& block : layout.blocks) {
                    const InPlaceWay& way = state.ways[std::size_t(block.way)];
                    const bool isAlive = block.isMoved() || way.tensors[block.index].isThere(block.moment());
                    width[std::size_t(block.way)][std::size_t(block.row)] += isAlive ? block.rect.width() : 0;
                }
                // One scale for both ways and all rows: the prediction's figures in the same pixels.
                const double wide = width[0][1] / values.figure("out_peak");
                for (const auto& [way, name] : {std::pair{0, std::string("out")}, std::pair{1, std::string("in")}}) {
                    const auto& rows = width[std::size_t(way)];
                    QVERIFY(std::fabs(rows[1] - wide * values.figure(name + "_peak")) < 1e-6);
                    QVERIFY(std::fabs(rows[2] - wide * values.figure(name + "_kept")) < 1e-6);
                    QVERIFY(std::fabs(rows[3] - wide * values.figure(name + "_moved")) < 1e-6);
                }
            }
        }
    }

    void nothingIsOutsideOrOverAnother()
    {
        for (const auto& assignments : inPlaceKinds) {
            const InPlaceState state = InPlaceValues(assignments).state();
            for (const QSizeF size : inPlaceSizes) {
                const QRectF whole = inPlaceArea(size);
                const InPlaceLayout layout = layoutInPlace(state, whole, plotUnit());
                std::vector<QRectF> parts{layout.title, layout.verdict, layout.backward};
                if (!layout.legend.isEmpty())
                    parts.push_back(layout.legend);
                parts.insert(parts.end(), layout.labels.begin(), layout.labels.end());
                for (const InPlaceLane& lane : layout.lanes) {
                    parts.push_back(lane.head);
                    parts.insert(parts.end(), lane.totals.begin(), lane.totals.end());
                    if (!lane.saving.isEmpty())
                        parts.push_back(lane.saving);
                }
                for (const InPlaceBlock& block : layout.blocks)
                    parts.push_back(block.rect);
                const QString where = QString("%1 at %2").arg(state.subject).arg(size.width());
                for (std::size_t a = 0; a < parts.size(); ++a) {
                    QVERIFY2(whole.contains(parts[a]) && parts[a].height() >= 10 && parts[a].width() > 4,
                             qPrintable(where));
                    for (std::size_t b = a + 1; b < parts.size(); ++b) {
                        const QRectF both = parts[a] & parts[b];
                        QVERIFY2(both.width() < 1e-6 || both.height() < 1e-6, qPrintable(where));
                    }
                }
            }
        }
    }

    void inPlaceHasOneBufferForBoth()
    {
        const InPlaceState state = InPlaceValues({"operation=relu", "input=sum"}).state();
        const InPlaceLayout layout = layoutInPlace(state, inPlaceArea({738, 280}), 1);
        std::vector<QRectF> rects;
        QStringList symbols;
        for (const InPlaceBlock& block : layout.blocks) {
            if (block.way == 1 && !block.isMoved()) {
                rects.push_back(block.rect);
                symbols << state.ways[1].tensors[block.index].symbol(block.moment());
            }
        }
        QCOMPARE(symbols, QStringList({"x", "y", "y"}));
        for (const QRectF& rect : rects) { // it stays where it is
            QCOMPARE(rect.left(), rects.front().left());
            QCOMPARE(rect.width(), rects.front().width());
        }
    }

    void pytorchKeepsAndSaysTheSame()
    {
        int compared = 0, refused = 0;
        for (const QJsonValue value : pytorchData("in_place.json")["rows"].toArray()) {
            const QJsonObject row = value.toObject();
            const InPlaceValues values({inPlaceWord(row, "operation"), inPlaceWord(row, "input"),
                                        inPlaceWord(row, "gradients"), "bytes=1MiB"});
            const InPlaceState state = values.state();
            const std::string input = row["input"].toString().toStdString();
            const bool isInPlace = row["in_place"].toBool();
            const QString error = row["error"].toString();
            if (!error.isEmpty()) {
                const QString said = state.verdict().section(u'“', 1).section(u'”', 0, 0);
                QVERIFY2(!said.isEmpty() && error.startsWith(said), qPrintable(state.verdict()));
                ++refused;
            } else if (input == "linear" || input == "sum" || input == "leaf") { // nothing was saved before
                QCOMPARE(state.ways[std::size_t(isInPlace)].keptForBackward(),
                         0x1p20 * double(row["saved"].toArray().size()));
                ++compared;
            }
        }
        QVERIFY(compared > 80 && refused > 50);
    }

    void aHostFetchesAndAGpuDoesNot()
    {
        const auto fetched = [](const char* device, std::size_t way) {
            double bytes = 0;
            for (const MovedPart& part : InPlaceValues({"bytes=64MiB"}, device).state().ways[way].parts)
                bytes += part.move == Move::Fetched ? part.bytes : 0;
            return bytes;
        };
        QCOMPARE(fetched("amd-epyc-9654", 0), 0x1p26); // write-allocate
        QCOMPARE(fetched("amd-epyc-9654", 1), 0.0);    // the line is there already
        QCOMPARE(fetched("nvidia-h200", 0), 0.0);
    }

    void theVerdictSaysWhatTheFiguresSay()
    {
        const auto verdict = [](const std::vector<std::string>& assignments) {
            return InPlaceValues(assignments).state().verdict();
        };
        const QString plain = verdict({"bytes=64MiB"});
        QVERIFY2(plain.contains("64 MiB less at the peak, as much afterwards and moves 64 MiB less"),
                 qPrintable(plain));
        const QString copied =
            verdict({"operation=silu", "bytes=64MiB"}); // read, fetched and written once more, less fetched
        QVERIFY2(copied.contains("as much at the peak and afterwards and moves 128 MiB more: autograd copies x"),
                 qPrintable(copied));
        QVERIFY(verdict({"input=leaf"}).contains("It would destroy the values of the parameter."));
        QVERIFY(verdict({"input=sigmoid"}).contains("It destroys the input, saved by the sigmoid that made it."));
        QVERIFY(InPlaceValues({"gradients=false"}).state().backward().contains("nothing is kept for backward"));
    }

    void whatIsRefusedAtTheCallIsNotMade()
    {
        const auto results = [](const std::vector<std::string>& assignments) {
            InPlacePicture picture;
            InPlaceValues(assignments).show(picture);
            const QSize size(738, 280);
            const QImage image = exported(picture, size, lightTheme());
            const QRectF lane = layoutInPlace(picture.state(), inPlaceArea(size), plotUnit()).lanes[1].bars;
            return pixelsOf(image.copy(lane.toRect()), lightTheme().series(1));
        };
        QVERIFY(results({"input=sum"}) > 1000);
        QVERIFY(results({"input=sigmoid"}) > 1000); // it is made, and backward notices
        QCOMPARE(results({"input=leaf"}), 0);
        QCOMPARE(results({"operation=gelu"}), 0);
    }

    void thePointerReadsBytesAndReasons()
    {
        InPlacePicture picture;
        picture.resize(738, 280);
        InPlaceValues({"operation=silu", "bytes=64MiB"}).show(picture);
        QSignalSpy hover(&picture, &Picture::hoverText);
        const InPlaceLayout layout = picture.layoutNow();
        QStringList said;
        for (const InPlaceBlock& block : layout.blocks) {
            mouse(picture, QEvent::MouseMove, block.rect.center(), Qt::NoButton);
            QCOMPARE(hover.last()[0].toString(), picture.wordsOf(block));
            said << hover.last()[0].toString();
        }
        QCOMPARE(hover.count(), qsizetype(layout.blocks.size()));
        for (const QString& text : said)
            QVERIFY2(text.contains(" B)"), qPrintable(text));
        const QString all = said.join(u'\n');
        const QString bytes = QString::fromUtf8("67\u202f108\u202f864 B");
        QVERIFY2(all.contains(bytes), qPrintable(all));
        QVERIFY(all.contains("made before the input is overwritten; backward of SiLU reads it"));
        QVERIFY(all.contains("only to be overwritten"));
        mouse(picture, QEvent::MouseMove, layout.title.center(), Qt::NoButton);
        QCOMPARE(hover.last()[0].toString(), QString());
    }

    void keysReadTheSame()
    {
        InPlacePicture picture;
        picture.resize(738, 280);
        InPlaceValues({"operation=mul-gate"}).show(picture);
        QCOMPARE(picture.accessibleDescription(), picture.summary());
        QSignalSpy hover(&picture, &Picture::hoverText);
        QTest::keyClick(&picture, Qt::Key_Right);
        QVERIFY(picture.accessibleDescription().startsWith("out of place, before: x, "));
        QTest::keyClick(&picture, Qt::Key_Down);
        QVERIFY(picture.accessibleDescription().startsWith("out of place, while it runs: x, "));
        for (const char* next : {"out of place, while it runs: y, ", "out of place, while it runs: factor, ",
                                 "in place, while it runs: y, ", "in place, while it runs: copy of x, "}) {
            QTest::keyClick(&picture, Qt::Key_Right);
            QVERIFY2(picture.accessibleDescription().startsWith(next), qPrintable(picture.accessibleDescription()));
            QCOMPARE(hover.last()[0].toString(), picture.accessibleDescription());
        }
        const QString copy = picture.accessibleDescription();
        const QImage marked = picture.grab().toImage();
        QVERIFY(pixelsOf(marked, currentTheme().highlight) > 50); // the rim around it
        QVERIFY(marked.save(QStringLiteral(SAMPLES "/in-place-marked.png")));
        QTest::keyClick(&picture, Qt::Key_Left);
        QTest::keyClick(&picture, Qt::Key_Right);
        QCOMPARE(picture.accessibleDescription(), copy);
        QVERIFY(!InPlacePicture::shortcuts().isEmpty());
    }

    void onlyWhatWasMeasuredAtThisSizeIsShown()
    {
        Outcome measured;
        Series peak;
        peak.key = "in_peak";
        peak.x.key = "bytes";
        peak.x.values = {0x1p20, 0x1p21};
        peak.y = {0x1.1p20, 0x1.2p21};
        measured.series = {peak};
        const auto show = [&](InPlacePicture& picture, const char* bytes) {
            InPlaceValues({std::string("bytes=") + bytes}).show(picture, &measured);
            picture.resize(738, 280);
            return picture.grab().toImage();
        };
        const auto summaryAt = [&](const char* bytes) {
            InPlacePicture picture;
            show(picture, bytes);
            return picture.summary();
        };
        QVERIFY2(summaryAt("2MiB").contains("measured peak 2.25 MiB"), qPrintable(summaryAt("2MiB")));
        QVERIFY(!summaryAt("3MiB").contains("measured"));
        InPlacePicture picture;
        const QImage with = show(picture, "2MiB");
        QVERIFY(pixelsOf(with, currentTheme().measuredText) > 10);
        QCOMPARE(pixelsOf(show(picture, "3MiB"), currentTheme().measuredText), 0);
        QVERIFY(with.save(QStringLiteral(SAMPLES "/in-place-measured.png")));
    }

    void foreignDetailDrawsNothing()
    {
        InPlaceValues values({});
        InPlacePicture picture;
        picture.resize(738, 280);
        for (const char* text :
             {"{}", "7", R"({"out": 3, "in": [1]})", R"({"allowed": "no", "out": {"tensors": 4}})",
              R"({"out": {"tensors": [{"name": "input", "bytes": -3}, 8]}, "in": {"tensors": [{"name": "z"}]}})"}) {
            values.prediction.detail = Json::parse(text);
            values.show(picture);
            QVERIFY(picture.state().empty());
            QVERIFY(!picture.grab().isNull());
            QTest::keyClick(&picture, Qt::Key_Right);
            mouse(picture, QEvent::MouseMove, {200, 100}, Qt::NoButton);
        }
        values.prediction.detail = Json::parse(R"({"out": {"tensors": [{"name": "input", "bytes": 1e300}]}})");
        values.show(picture);
        QVERIFY(picture.state().empty());
    }

    void bothThemesAndSizes_data() { bothThemesIn({QSize(400, 228), QSize(738, 280), QSize(1380, 460)}); }
    void bothThemesAndSizes()
    {
        QFETCH(bool, isDark);
        QFETCH(QSize, size);
        const Theme& theme = isDark ? darkTheme() : lightTheme();
        int number = 0;
        for (const auto& assignments : inPlaceKinds) {
            InPlacePicture picture;
            InPlaceValues(assignments).show(picture);
            const QImage image = exported(picture, size, theme);
            QVERIFY(image.save(
                QStringLiteral(SAMPLES "/in-place-%1-%2-%3.png").arg(theme.name).arg(size.width()).arg(number++)));
            QVERIFY(pixelsOf(image, theme.series(0)) > 500); // x in its own colour, out of place and before
        }
    }
};

QTEST_MAIN(TestInPlacePicture)
#include "tst_in_place_picture.moc"
