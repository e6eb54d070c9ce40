// SPDX-License-Identifier: GPL-3.0-or-later
// The page of the allocator as a person uses it: put empty_cache() somewhere and take it back, click another allocator,
// follow the request that the picture shows, mistype a setting.
#include "app/pages/fields/allocator_fields.h"
#include "app/pictures/allocator/allocator_picture.h"
#include "app/settings/theme.h"
#include "tests/support/page_fixture.h"

#include <QApplication>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

namespace {

constexpr auto fiveRequests = "trace=alloc a 40MiB; free a; alloc b 60MiB; free b; alloc c 10MiB";

} // namespace

class TestAllocatorPage : public QObject
{
    Q_OBJECT

    std::unique_ptr<PageFixture> m_fixture;

    std::unique_ptr<ExperimentPage> open(const std::vector<std::string>& values)
    {
        const Experiment& experiment = **findExperiment("allocator");
        m_fixture->document.setDevice("allocator", "nvidia-h200");
        m_fixture->document.setParameters("allocator", *resolve(experiment.schema(), values), {});
        auto page = std::make_unique<ExperimentPage>(experiment, m_fixture->services());
        page->resize(1200, 900);
        page->show();
        wait(*page);
        return page;
    }
    static void wait(ExperimentPage& page)
    {
        QTRY_VERIFY(page.upToDate());
        page.updateNow();
    }
    static AllocatorPicture& picture(ExperimentPage& page) { return *page.findChild<AllocatorPicture*>(); }
    static double reserved(const ExperimentPage& page)
    {
        return findFigure(page.prediction()->predicted->figures, "peak_reserved")->number() / (1 << 20);
    }
    static const Marker* marker(const ExperimentPage& page, const char* key)
    {
        for (const Marker& one : page.plot()->view()->markers())
            if (one.key == QLatin1String(key))
                return &one;
        return nullptr;
    }

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }
    void init() { m_fixture = std::make_unique<PageFixture>(); }

    void emptyCacheIsDraggedAndTakenBack()
    {
        auto page = open({fiveRequests});
        QCOMPARE(reserved(*page), 100.0);
        PlotView& view = *page->plot()->view();
        QVERIFY(marker(*page, "empty_cache") && marker(*page, "empty_cache")->x == 1);
        emit view.markerDragged("empty_cache", 2.8);
        emit view.markerReleased("empty_cache", 2.8);
        QCOMPARE(page->parameters().integer("empty_cache"), std::int64_t(3));
        wait(*page);
        QCOMPARE(reserved(*page), 60.0);
        QCOMPARE(marker(*page, "empty_cache")->x, 3.0);
        emit view.markerDragged("empty_cache", -4); // beside the plot: it is not called
        emit view.markerReleased("empty_cache", -4);
        QCOMPARE(page->parameters().integer("empty_cache"), std::int64_t(0));
        m_fixture->document.undoStack()->undo();
        wait(*page);
        QCOMPARE(reserved(*page), 60.0);
        m_fixture->document.undoStack()->undo();
        wait(*page);
        QCOMPARE(reserved(*page), 100.0);
    }

    void theCursorOfThePictureIsOnTheCurve()
    {
        auto page = open({fiveRequests});
        picture(*page).setCursor(1);
        QCOMPARE(marker(*page, "request")->x, 2.0);
        emit page->plot()->view()->markerDragged("request", 4.2);
        QCOMPARE(picture(*page).cursor(), 3);
        QCOMPARE(page->parameters().integer("empty_cache"), std::int64_t(0)); // looking changes no parameter
    }

    void aCardChoosesAndUndoReturns()
    {
        auto page = open({fiveRequests});
        emit picture(*page).parameterEdited(QStringLiteral("setting"), QStringLiteral("first-fit"));
        wait(*page);
        QCOMPARE(reserved(*page), 60.0);
        QVERIFY(picture(*page).title().contains("first fit"));
        m_fixture->document.undoStack()->undo();
        wait(*page);
        QCOMPARE(reserved(*page), 100.0);
    }

    void theBytesStandOnALinearAxis()
    {
        auto page = open({fiveRequests});
        const PlotView& view = *page->plot()->view();
        QCOMPARE(view.yAxis().log, 0);
        QVERIFY(std::ranges::any_of(view.curves(), [](const Curve& curve) { return curve.role == CurveRole::Area; }));
    }

    void aSlipInASettingIsSaidUnderTheField()
    {
        auto page = open({fiveRequests});
        auto* field = qobject_cast<SettingField*>(page->inspector()->form()->field(QStringLiteral("setting")));
        QVERIFY(field && qobject_cast<TraceField*>(page->inspector()->form()->field(QStringLiteral("trace"))));
        field->propose(QStringLiteral("max_split_size_mb:1"));
        QCOMPARE(page->parameters().text("setting"), std::string("default"));
        field->propose(QStringLiteral("expandable_segments:True"));
        QCOMPARE(page->parameters().text("setting"), std::string("expandable_segments:True"));
    }
};

QTEST_MAIN(TestAllocatorPage)
#include "tst_allocator_page.moc"
