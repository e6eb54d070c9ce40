// SPDX-License-Identifier: GPL-3.0-or-later
// The pictures on every device of the catalogue: labels that never touch, edits that come out,
// motion that stops. Pictures to look at stay in the build folder (samples/).
#include "app/pictures/hierarchy/hierarchy_picture.h"
#include "app/pictures/stride/stride_picture.h"
#include "core/timing/working_set.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <QApplication>
#include <QBuffer>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalSpy>
#include <QSvgGenerator>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <memory>

using namespace memscape;
using namespace memscape::test;

namespace {

const Experiment& experiment(const char* id)
{
    return **findExperiment(id);
}

Parameters parameters(const char* id, const std::vector<std::string>& assignments)
{
    return *resolve(experiment(id).schema(), assignments);
}

const Device* findIf(bool (*wanted)(const Device&))
{
    static const std::vector<Device> known = catalogue();
    const auto found = std::ranges::find_if(known, wanted);
    return found == known.end() ? nullptr : &*found;
}

} // namespace

class TestPictures : public QObject
{
    Q_OBJECT

    static void save(Picture& picture, const Theme& theme, QSize size, const QString& name)
    {
        QImage image(size * 2, QImage::Format_ARGB32_Premultiplied);
        QPainter painter(&image);
        painter.scale(2, 2);
        picture.paintTo(painter, QRectF(QPointF(0, 0), QSizeF(size)), theme);
        painter.end();
        QVERIFY(image.save(QStringLiteral(SAMPLES "/") + name));
    }

private slots:
    void initTestCase()
    {
        applyTheme(*qApp, QStringLiteral("dark"));
        QVERIFY(!catalogue().empty());
    }

    void factory()
    {
        QVERIFY(qobject_cast<StridePicture*>(makePicture("stride")));
        QVERIFY(qobject_cast<HierarchyPicture*>(makePicture("hierarchy")));
        QVERIFY(!makePicture("nothing"));
    }

    // On an exported page its title and its curves are next to it.
    void nothingIsPaintedOutside()
    {
        const Device device = *findDevice("nvidia-h200");
        for (const Experiment* one : experiments()) {
            const std::unique_ptr<Picture> picture(makePicture(one->id()));
            const Parameters standard = standardParameters(*one, device);
            const auto predicted = one->predict(device, standard);
            if (!picture || !predicted)
                continue;
            picture->setState({*one, device, standard, &*predicted});
            QImage image(800, 600, QImage::Format_ARGB32_Premultiplied);
            image.fill(Qt::magenta);
            QPainter painter(&image);
            picture->paintTo(painter, QRectF(60, 60, 680, 480), lightTheme());
            painter.end();
            for (int y = 0; y < image.height(); ++y) {
                for (int x = 0; x < image.width(); ++x) {
                    if (!QRect(58, 58, 684, 484).contains(x, y) && image.pixelColor(x, y) != QColor(Qt::magenta))
                        QFAIL(qPrintable(QStringLiteral("%1 at %2, %3").arg(one->id().c_str()).arg(x).arg(y)));
                }
            }
        }
    }

    void roadsAreAsWideAsTheOperationAllows()
    {
        const Device* device = findIf([](const Device& one) {
            const MemoryLevel* dram = one.dram();
            return dram && !one.isGpu()
                && levelRate(one, *dram, Operation::Read, one.threads)
                != levelRate(one, *dram, Operation::Copy, one.threads);
        });
        QVERIFY(device);
        const auto drawn = [&](const char* operation) {
            HierarchyPicture picture;
            picture.setState(
                {experiment("hierarchy"), *device, parameters("hierarchy", {std::string("operation=") + operation})});
            return exported(picture, {900, 236}, lightTheme());
        };
        QVERIFY(drawn("read") != drawn("copy"));
        QCOMPARE(drawn("triad"), drawn("copy")); // two streams read, one written
    }

    void onlyWhatWasMeasuredAtThisWorkingSetIsShown()
    {
        Outcome measured;
        Series latency;
        latency.key = "latency";
        latency.x.key = "working_set";
        latency.x.values = {1048576, 2097152};
        latency.y = {11e-9, 22e-9};
        measured.series = {latency};
        const auto summaryAt = [&](const char* bytes) {
            HierarchyPicture picture;
            picture.setState({experiment("hierarchy"), *findDevice("nvidia-h200"),
                              parameters("hierarchy", {std::string("working_set=") + bytes}), nullptr, &measured});
            return picture.summary();
        };
        QVERIFY2(summaryAt("2MiB").contains("measured 22 ns"), qPrintable(summaryAt("2MiB")));
        QVERIFY(!summaryAt("3MiB").contains("measured"));
    }

    void labelsNeverTouch_data()
    {
        QTest::addColumn<int>("width");
        for (const int width : {640, 800, 1000, 1280, 1600})
            QTest::newRow(qPrintable(QString::number(width))) << width;
    }

    void labelsNeverTouch()
    {
        QFETCH(int, width);
        const QRectF area(0, 0, width, 236);
        for (const Device& device : catalogue()) {
            for (const double set : {1024.0, 3e5, 24e6, 5e9, 0x1p43}) {
                const HierarchyState state = hierarchyState(device, set, Operation::Read, 1);
                const HierarchyLayout layout =
                    layoutHierarchy(state, area, QStringLiteral("Distance of each level on this CPU"));
                const auto labels = layout.labels();
                for (std::size_t a = 0; a < labels.size(); ++a) {
                    QVERIFY2(area.adjusted(0, 0, 0.01, 0.01).contains(labels[a]), device.id.c_str());
                    for (std::size_t b = a + 1; b < labels.size(); ++b)
                        QVERIFY2(!labels[a].intersects(labels[b]), device.id.c_str());
                }
                for (std::size_t i = 1; i < layout.boxes.size(); ++i)
                    QVERIFY2(!layout.boxes[i].box.intersects(layout.boxes[i - 1].box), device.id.c_str());
                QVERIFY(state.levels.empty() || area.contains(layout.handle.center()));
            }
        }
    }

    // Where the handle is drawn is where it would be taken from.
    void handleAndWorkingSetAgree()
    {
        for (const Device& device : catalogue()) {
            for (double set = 4096; set < 1e12; set *= 3.7) {
                const HierarchyState state = hierarchyState(device, set, Operation::Read, 1);
                const HierarchyLayout layout = layoutHierarchy(state, QRectF(0, 0, 1000, 236), QString());
                const double back = workingSetAt(state, layout, layout.handle.center().x());
                // A level may be home before the one nearer to it is full, or after it is itself:
                // then the handle waits at that edge of the box.
                const QRectF box = layout.boxes[state.home].box;
                const bool atEdge = std::fabs(layout.handle.center().x() - box.left()) < 1e-6
                    || std::fabs(layout.handle.center().x() - box.right()) < 1e-6;
                QVERIFY2(atEdge || std::fabs(back / set - 1) < 0.02, device.id.c_str());
            }
        }
    }

    void cyclesAsSeconds()
    {
        QCOMPARE(humanDuration(4), QStringLiteral("4 s"));
        QCOMPARE(humanDuration(43.4), QStringLiteral("43 s"));
        QCOMPARE(humanDuration(357), QStringLiteral("6 min"));
        QCOMPARE(humanDuration(3600 * 5), QStringLiteral("5 h"));
        QCOMPARE(humanDuration(306000), QStringLiteral("4 days"));
        QCOMPARE(humanDuration(1e9), QStringLiteral("32 years"));
    }

    void unknownValuesAreSaidToBe()
    {
        Device device = *findDevice("nvidia-h200");
        for (MemoryLevel& level : device.levels) {
            level.latency = {};
            level.bandwidth = {};
        }
        device.levels.front().capacity = {};
        const HierarchyState state = hierarchyState(device, 1e6, Operation::Read, 1);
        const HierarchyLayout layout = layoutHierarchy(state, QRectF(0, 0, 900, 236), QString());
        for (const LevelBox& box : layout.boxes) {
            QVERIFY(box.unknown);
            QCOMPARE(box.latencyText, QStringLiteral("unknown"));
            QVERIFY(std::isfinite(box.box.left()) && box.box.height() > 0);
        }
        device.levels.clear();
        HierarchyPicture picture;
        picture.setState({experiment("hierarchy"), device, parameters("hierarchy", {})});
        picture.grab();
    }

    void draggingTheWorkingSet()
    {
        HierarchyPicture picture;
        picture.resize(1000, 236);
        const Device device = *findDevice("nvidia-h200");
        picture.setState({experiment("hierarchy"), device, parameters("hierarchy", {"working_set=24MiB"})});
        const HierarchyState state = hierarchyState(device, 24 * 0x1p20, Operation::Read, device.units);
        const HierarchyLayout layout = layoutHierarchy(state, QRectF(picture.rect()), picture.title());
        QSignalSpy edited(&picture, &Picture::parameterEdited);
        QSignalSpy editing(&picture, &Picture::editing);
        const QPointF from = layout.handle.center();
        mouse(picture, QEvent::MouseButtonPress, from, Qt::LeftButton);
        mouse(picture, QEvent::MouseMove, QPointF(layout.boxes.back().box.center().x(), from.y()), Qt::LeftButton);
        mouse(picture, QEvent::MouseButtonRelease, from, Qt::NoButton);
        QVERIFY(edited.count() >= 1);
        QCOMPARE(edited.last()[0].toString(), QStringLiteral("working_set"));
        // What comes out is a value of the schema.
        const auto value = parseValue(*findParameter(experiment("hierarchy").schema(), "working_set"),
                                      edited.last()[1].toString().toStdString());
        QVERIFY(value);
        QVERIFY(std::get<double>(*value) > 24 * 0x1p20);
        QCOMPARE(editing.count(), 2);
        QCOMPARE(editing[0][0].toBool(), true);
        QCOMPARE(editing[1][0].toBool(), false);
    }

    void motionStops()
    {
        HierarchyPicture picture;
        picture.resize(900, 236);
        picture.setState({experiment("hierarchy"), *findDevice("nvidia-h200"), parameters("hierarchy", {})});
        QVERIFY(!picture.moving());
        picture.show();
        QVERIFY(QTest::qWaitForWindowExposed(&picture));
        QVERIFY(picture.moving());
        QTest::qWait(120);
        QTest::keyClick(&picture, Qt::Key_Space);
        QVERIFY(!picture.moving());
        QTest::keyClick(&picture, Qt::Key_Space);
        QVERIFY(picture.moving());
        picture.hide();
        QVERIFY(!picture.moving());
        setMotionAllowed(false);
        picture.show();
        QVERIFY(!picture.moving());
        setMotionAllowed(true);
    }

    void warpCounts_data()
    {
        QTest::addColumn<QString>("assignments");
        QTest::addColumn<QString>("expected");
        QTest::newRow("contiguous")
            << "stride=1"
            << "128 bytes fetched, 128 bytes used, 0 bytes wasted, efficiency 100 %, in 4 pieces";
        QTest::newRow("stride 4")
            << "stride=4"
            << "512 bytes fetched, 128 bytes used, 384 bytes wasted, efficiency 25 %, in 16 pieces";
        QTest::newRow("far apart") << "stride=1024"
                                   << "1024 bytes fetched, 128 bytes used, 896 bytes wasted, "
                                      "efficiency 12.5 %, in 32 pieces";
        QTest::newRow("broadcast") << "stride=0"
                                   << "32 bytes fetched, 4 bytes used, 28 bytes wasted, efficiency 12.5 %, in 1 pieces";
        QTest::newRow("misaligned")
            << "pattern=misaligned offset=4"
            << "160 bytes fetched, 128 bytes used, 32 bytes wasted, efficiency 80 %, in 5 pieces";
    }

    void warpCounts()
    {
        QFETCH(QString, assignments);
        QFETCH(QString, expected);
        std::vector<std::string> list;
        for (const QString& one : assignments.split(QLatin1Char(' ')))
            list.push_back(one.toStdString());
        StridePicture picture;
        picture.setState({experiment("stride"), *findDevice("nvidia-h200"), parameters("stride", list)});
        QString said = picture.summary();
        said = said.mid(said.indexOf(QStringLiteral(": ")) + 2);
        expected.replace(QStringLiteral(" fetched"), QStringLiteral(" fetched"));
        QVERIFY2(said.startsWith(expected), qPrintable(said));
    }

    // Every lane's line ends inside the cell that holds its element, for every pattern.
    void linesEndWhereTheElementsAre()
    {
        for (const char* pattern : {"strided", "random", "misaligned", "aos", "soa", "contiguous"}) {
            for (const char* stride : {"0", "1", "3", "17", "1000", "1048576"}) {
                const auto walk = completed([&] {
                    StrideCase made;
                    made.stride = std::stoull(stride);
                    made.pattern = std::string_view(pattern) == "random" ? Pattern::Random : Pattern::Strided;
                    made.arrayBytes = std::uint64_t{1} << 33;
                    return made;
                }());
                QVERIFY(walk);
                const auto access = firstRequest(*walk, {});
                QVERIFY(access);
                const StrideStrip strip = layoutStrip(*access, QRectF(0, 0, 800, 40));
                QCOMPARE(strip.targets.size(), access->lanes.size());
                for (std::size_t lane = 0; lane < access->lanes.size(); ++lane) {
                    const std::uint64_t sector = access->lanes[lane].address / 32 * 32;
                    bool found = false;
                    for (const StrideCell& cell : strip.cells)
                        found |= cell.kind == StrideCell::Kind::Touched && cell.address == sector
                            && strip.targets[lane] >= cell.rect.left() && strip.targets[lane] <= cell.rect.right();
                    QVERIFY(found);
                }
                for (const StrideCell& cell : strip.cells)
                    QVERIFY(cell.rect.left() >= -1e-6 && cell.rect.right() <= 800 + 1e-6);
            }
        }
    }

    void chipsChooseTheOperation()
    {
        StridePicture picture;
        picture.resize(900, 206);
        picture.setState({experiment("stride"), *findDevice("nvidia-h200"), parameters("stride", {})});
        QSignalSpy edited(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_Right);
        QCOMPARE(edited.count(), 1);
        QCOMPARE(edited[0][0].toString(), QStringLiteral("operation"));
        QCOMPARE(edited[0][1].toString(), QStringLiteral("write"));
        for (int x = 890; x > 600; x -= 10)
            mouse(picture, QEvent::MouseButtonPress, QPointF(x, 206 - 20), Qt::LeftButton);
        QStringList chosen;
        for (const auto& arguments : edited)
            chosen << arguments[1].toString();
        QVERIFY(chosen.contains(QStringLiteral("copy")));
    }

    void hoveringTells()
    {
        StridePicture picture;
        picture.resize(900, 206);
        picture.setState({experiment("stride"), *findDevice("nvidia-h200"), parameters("stride", {"stride=4"})});
        QSignalSpy hover(&picture, &Picture::hoverText);
        for (int y = 30; y < 150; y += 6)
            mouse(picture, QEvent::MouseMove, QPointF(440, y), Qt::NoButton);
        QStringList said;
        for (const auto& arguments : hover)
            said << arguments[0].toString();
        const QString all = said.join(QLatin1Char('\n'));
        QVERIFY2(all.contains(QStringLiteral("bytes used")), qPrintable(all));
    }

    void exportsCarryNothingToPress_data()
    {
        QTest::addColumn<QString>("of");
        QTest::addColumn<QString>("assignment");
        for (const char* id : {"training-memory", "inference-memory", "checkpoint", "attention", "batch-size",
                               "precision", "roofline", "bank-conflicts", "transfer", "loading", "placement",
                               "sharding", "layout", "in-place", "stride", "hierarchy", "allocator"})
            QTest::newRow(id) << id << QString();
        QTest::newRow("step-timeline") << "training-memory" << QString();
        QTest::newRow("too large") << "training-memory"
                                   << "model=llama-2-70b";
    }
    void exportsCarryNothingToPress()
    {
        QFETCH(QString, of);
        QFETCH(QString, assignment);
        const std::string id = of.toStdString();
        const QByteArray page = assignment.isEmpty() ? QByteArray(QTest::currentDataTag()) : of.toUtf8();
        std::unique_ptr<Picture> picture(makePicture(page.toStdString()));
        std::vector<std::string> assignments;
        if (!assignment.isEmpty())
            assignments.push_back(assignment.toStdString());
        const Device device = *findDevice("nvidia-h200");
        const Parameters given = *resolve(experiment(id.c_str()).schema(), assignments);
        const auto predicted = experiment(id.c_str()).predict(device, given);
        QVERIFY2(predicted, predicted ? "" : predicted.error().message.c_str());
        picture->setState({experiment(id.c_str()), device, given, &*predicted});
        QBuffer drawing;
        QSvgGenerator generator;
        generator.setOutputDevice(&drawing);
        generator.setSize({1000, 420});
        QPainter painter(&generator);
        picture->paintTo(painter, QRectF(0, 0, 1000, 420), lightTheme());
        painter.end();
        const QString written = QString::fromUtf8(drawing.data());
        QVERIFY(written.contains("<text"));
        for (const char* word :
             {"space plays", "▶", "❚❚", "click", "drag", "⇄", "Make it fit", " more ›", "how large a batch?"})
            QVERIFY2(!written.contains(QString::fromUtf8(word)), word);
    }

    void looks()
    {
        const Device gpu = *findDevice("nvidia-h200");
        const Device host = *findDevice("amd-epyc-9654");
        for (const Theme* theme : {&darkTheme(), &lightTheme()}) {
            StridePicture warp;
            int n = 0;
            for (const std::vector<std::string>& assignments :
                 std::vector<std::vector<std::string>>{{"stride=1"},
                                                       {"stride=4"},
                                                       {"stride=8", "operation=write"},
                                                       {"stride=100"},
                                                       {"stride=2", "operation=copy"},
                                                       {"pattern=random"},
                                                       {"pattern=misaligned", "offset=20"},
                                                       {"pattern=aos", "stride=5"},
                                                       {"pattern=soa", "stride=5"},
                                                       {"stride=0"},
                                                       {"stride=3", "element=float4"}}) {
                warp.setState({experiment("stride"), gpu, parameters("stride", assignments)});
                save(warp, *theme, {840, 206}, QStringLiteral("warp-%1-%2.png").arg(theme->name).arg(n++));
            }
            warp.setState({experiment("stride"), host, parameters("stride", {"stride=4"})});
            save(warp, *theme, {640, 206}, QStringLiteral("warp-%1-host.png").arg(theme->name));
            HierarchyPicture levels;
            for (const char* id : {"nvidia-h200", "amd-mi300x", "amd-epyc-9654"}) {
                const Device device = *findDevice(id);
                levels.setState({experiment("hierarchy"), device, parameters("hierarchy", {"working_set=24MiB"})});
                for (const int width : {640, 840, 1300})
                    save(levels, *theme, {width, 236},
                         QStringLiteral("levels-%1-%2-%3.png")
                             .arg(theme->name, QString::fromStdString(device.id))
                             .arg(width));
            }
        }
    }
};

QTEST_MAIN(TestPictures)
#include "tst_pictures.moc"
