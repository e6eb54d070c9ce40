// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `layout`: addresses and lines of what is shown, what clicks, drags, keys and the field do to the
// operations, the walk with its small cache, and that nothing is drawn outside.
#include "app/pictures/layout/layout_picture.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <QSignalSpy>
#include <QtTest>

using namespace memscape;

namespace {

LayoutPicture* shownLayout(QWidget& parent, const std::vector<std::string>& assignments, const char* device = "cpu",
                           QSize size = {760, 370})
{
    const Experiment* experiment = *findExperiment("layout");
    const Device found = *findDevice(device);
    const Parameters parameters = *resolve(experiment->schema(), assignments);
    auto* picture = new LayoutPicture(&parent);
    picture->resize(size);
    picture->setState({*experiment, found, parameters});
    return picture;
}

std::string viewsOf(const QSignalSpy& spy)
{
    return spy.isEmpty() ? "nothing" : spy.last().at(0).value<ParameterChanges>().front().second;
}

} // namespace

class TestLayoutPicture : public QObject
{
    Q_OBJECT

private slots:
    void elementsKnowTheirAddressAndTheirNeighbours()
    {
        QWidget window;
        const LayoutState& state = shownLayout(window, {"shape=4,6", "views=t()"})->state();
        QVERIFY(state.isWhole);
        QCOMPARE(state.rows, 6);
        QCOMPARE(state.columns, 4);
        const int cell = 2 * state.columns + 1; // x[2, 1] of the transpose is element 1 · 6 + 2
        QCOMPARE(state.cells[std::size_t(cell)].element, std::int64_t(8));
        QVERIFY(state.cellWords(cell).contains(QStringLiteral("element 8 of the storage, byte 32, line 0")));
        QCOMPARE(state.lines.size(), std::size_t(2)); // 96 bytes
        for (std::size_t i = 0; i < state.cells.size(); ++i)
            QCOMPARE(state.cellOf(state.cells[i].line, state.cells[i].slot), int(i));
    }

    void theWalkFetchesWhatItsCacheEvicts()
    {
        QWidget window;
        // A corner of 16 columns, each in a line of its own: more than the cache has room for.
        const LayoutState& view = shownLayout(window, {"shape=2048,2048", "views=t()"})->state();
        QCOMPARE(view.steps.back().fetched, int(view.steps.size()));
        const LayoutState& dense = shownLayout(window, {"shape=2048,2048", "views="})->state();
        QCOMPARE(dense.steps.back().fetched, int(dense.lines.size()));
        const LayoutState& first = shownLayout(window, {"shape=2048,2048", "views=t()", "walk=first-fastest"})->state();
        QCOMPARE(first.steps.back().fetched, int(first.lines.size()));
        QCOMPARE(first.cells[std::size_t(first.steps[1].cell)].row, 1);
        QVERIFY(view.cachedAfter(40).size() <= LayoutState::cacheRoom);
    }

    void chipsSayWhatPyTorchSays()
    {
        QWidget window;
        const LayoutState& state = shownLayout(window, {"shape=6,8", "views=t();view(48);reshape(48)"})->state();
        QCOMPARE(state.chips.size(), std::size_t(3));
        QCOMPARE(state.chips[0].strides, QStringLiteral("[1, 8]"));
        QCOMPARE(state.chips[0].verdict, QStringLiteral("view"));
        QVERIFY(state.chips[1].isRefused && state.chips[1].tip.contains(QStringLiteral("not compatible")));
        QVERIFY(state.refusal().contains(QStringLiteral("not compatible"))); // in words, not only by its edge
        QVERIFY(shownLayout(window, {"shape=6,8", "views=t()"})->state().refusal().isEmpty());
        QVERIFY(state.chips[2].isCopy);
        QVERIFY(state.pytorch.startsWith(QStringLiteral("x.t().reshape(48)")));
    }

    void operationsAreRemovedMovedAndEdited()
    {
        QWidget window;
        auto* picture = shownLayout(window, {"shape=4,6", "views=t();unsqueeze(0);flatten()"});
        QSignalSpy changes(picture, &Picture::changesWanted);
        const LayoutGeometry layout = picture->layoutNow();
        test::mouse(*picture, QEvent::MouseButtonPress, layout.removeOf(1).center(), Qt::LeftButton);
        QCOMPARE(viewsOf(changes), std::string("t();flatten()"));
        QCOMPARE(changes.last().at(1).toString(), QStringLiteral("Remove unsqueeze(0)"));
        test::drag(*picture, layout.chips[0].center(),
                   layout.chips[2].center() + QPointF(layout.chips[2].width() / 3, 0));
        QCOMPARE(viewsOf(changes), std::string("unsqueeze(0);flatten();t()"));
        test::drag(*picture, layout.chips[2].center(),
                   layout.chips[0].center() - QPointF(layout.chips[0].width() / 3, 0));
        QCOMPARE(viewsOf(changes), std::string("flatten();t();unsqueeze(0)"));
        QTest::keyClick(picture, Qt::Key_Delete);
        QCOMPARE(viewsOf(changes), std::string("t();unsqueeze(0)"));
        picture->editChip(1);
        picture->editor()->setText(QStringLiteral("narrow(0,1,2)"));
        QTest::keyClick(picture->editor(), Qt::Key_Return);
        QCOMPARE(viewsOf(changes), std::string("t();narrow(0,1,2);flatten()"));
        picture->editChip(3);
        picture->editor()->setText(QStringLiteral("clone()"));
        QTest::keyClick(picture->editor(), Qt::Key_Return);
        QCOMPARE(viewsOf(changes), std::string("t();unsqueeze(0);flatten();clone()"));
        const qsizetype count = changes.size();
        picture->editChip(0);
        picture->editor()->setText(QStringLiteral("transpoze(0"));
        QTest::keyClick(picture->editor(), Qt::Key_Return);
        QCOMPARE(changes.size(), count); // what cannot be read stays in the field
    }

    void offersAreTaken()
    {
        for (const Sizes& shape : {Sizes{}, Sizes{7}, Sizes{4, 6}, Sizes{2, 3, 4, 5}}) {
            const TensorView view = *freshTensor(shape);
            for (const OperationOffer& offer : offersFor(view)) {
                const auto operations = parseViews(offer.text.toStdString());
                QVERIFY2(operations && !offer.help.isEmpty(), qPrintable(offer.text));
                const auto step = apply(view, operations->front());
                QVERIFY2(step && step->ok, qPrintable(offer.text));
            }
        }
    }

    void nothingIsOutside_data()
    {
        QTest::addColumn<QString>("given");
        QTest::addColumn<QString>("device");
        for (const char* device : {"cpu", "nvidia-h200"}) {
            for (const char* given :
                 {"shape=2048,2048", "shape= views=", "shape=0,4",
                  "shape=3 views=", "shape=32,64,56,56 views=permute(0,2,3,1)",
                  "shape=4096 dtype=int8 views=unfold(0,8,4)", "shape=1,1,1,2,2,2,3,3 views=neg()",
                  "shape=6,8 "
                  "views=t();view(48);reshape(48);unsqueeze(0);expand(7,-1);t();clone();flatten();view(6,56);t()"})
                QTest::newRow(qPrintable(QString::fromUtf8(device) + u' ' + QString::fromUtf8(given)))
                    << QString::fromUtf8(given) << QString::fromUtf8(device);
        }
    }

    void nothingIsOutside()
    {
        QFETCH(QString, given);
        QFETCH(QString, device);
        std::vector<std::string> assignments;
        for (const QString& one : given.split(u' '))
            assignments.push_back(one.toStdString());
        QWidget window;
        for (const QSize size : {QSize(480, 300), QSize(760, 370), QSize(1300, 620)}) {
            auto* picture = shownLayout(window, assignments, device.toUtf8().constData(), size);
            const QRectF all(QPointF(0, 0), QSizeF(size));
            const LayoutGeometry layout = picture->layoutNow();
            for (const QRectF& chip : layout.chips)
                QVERIFY(all.contains(chip));
            QVERIFY(all.contains(layout.plus) && all.contains(layout.numpy));
            const LayoutState& state = picture->state();
            QVERIFY(state.lines.size() <= 32 && state.cells.size() <= 256);
            for (const TensorCell& cell : state.cells)
                QVERIFY(all.contains(layout.cellRect(cell.panel, cell.row, cell.column)));
            for (const QRectF& line : layout.lines)
                QVERIFY(all.contains(line));
            exported(*picture, size, lightTheme());
            exported(*picture, size, darkTheme());
        }
    }

    /// Grid and lines reach down to the words, or across to each other.
    void theRoomIsUsed()
    {
        QWidget window;
        for (const QSize size : {QSize(756, 400), QSize(1396, 700)}) { // of windows of 1280 × 800 and 1920 × 1200
            const LayoutGeometry layout =
                shownLayout(window, {"shape=2048,2048", "views=transpose(0,1)"}, "nvidia-h200", size)->layoutNow();
            const double bottom = layout.playButton.top(), height = bottom - layout.gridTitle.bottom();
            QVERIFY2(bottom - layout.grid.bottom() < 0.25 * height,
                     qPrintable(QString::number(bottom - layout.grid.bottom())));
            QVERIFY2(bottom - layout.lines.back().bottom() < 0.2 * height,
                     qPrintable(QString::number(bottom - layout.lines.back().bottom())));
            QVERIFY(layout.grid.right() < layout.stripTitle.left());
        }
    }

    void whatCannotBeReadIsAProblem()
    {
        QWidget window;
        auto* picture = shownLayout(window, {"views=transpoze(0"});
        picture->setProblem(QStringLiteral("no operation is called transpoze"));
        QVERIFY(!picture->state().isValid);
        QCOMPARE(picture->summary(), QStringLiteral("no operation is called transpoze"));
        QTest::keyClick(picture, Qt::Key_Delete);
        QTest::keyClick(picture, Qt::Key_Return);
        picture->grab();
    }
};

QTEST_MAIN(TestLayoutPicture)
#include "tst_layout_picture.moc"
