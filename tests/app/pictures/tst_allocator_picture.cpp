// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `allocator`: what it plays is what the prediction counted, pieces are as wide as their bytes, nothing
// lies over anything else, pointer, wheel and keys do what they say; both themes and sizes are kept to look at
// (samples/).
#include "app/pictures/allocator/allocator_picture.h"
#include "app/plots/plot_style.h"
#include "app/settings/theme.h"
#include "tests/support/mouse.h"
#include "tests/support/picture_case.h"

#include <QImage>
#include <QSignalSpy>
#include <QWheelEvent>
#include <QtTest>

#include <nlohmann/json.hpp>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

struct AllocatorValues : PictureCase
{
    explicit AllocatorValues(const std::vector<std::string>& assignments)
        : PictureCase("allocator", assignments)
    { }
};

const std::vector<std::string> smallTrace{"trace=alloc a 118MiB as weights; alloc b 30MiB; free a; alloc c 96MiB as "
                                          "activations; free b; empty_cache; free c"};
const std::vector<std::string> gpt{"trace=gpt2", "batch=2", "sequence=256"};

AllocatorLayout layoutAt(const AllocatorState& state, int request, TapeWindow window = {}, QSizeF size = {900, 430})
{
    return layoutAllocator(state, &state.walk->at(request), window, QRectF(QPointF(0, 0), size), 1);
}

} // namespace

class TestAllocatorPicture : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }

    void whatIsPlayedIsWhatWasCounted_data()
    {
        QTest::addColumn<QString>("setting");
        for (const char* setting : {"default", "expandable_segments", "max_split_size_mb:64", "first-fit", "best-fit",
                                    "powers-of-two", "malloc", "largest-first", "lifetime-colouring"})
            QTest::newRow(setting) << setting;
    }
    void whatIsPlayedIsWhatWasCounted()
    {
        QFETCH(QString, setting);
        std::vector<std::string> given = gpt;
        given.push_back("setting=" + setting.toStdString());
        const AllocatorValues values(given);
        const AllocatorState state = readAllocator(&values.prediction, ByteStyle::Binary);
        QVERIFY2(!state.empty(), qPrintable(state.missing));
        std::int64_t reserved = 0, allocated = 0;
        for (int i = 0; i <= state.last; ++i) {
            const AllocatorMoment& moment = state.walk->at(i);
            reserved = std::max(reserved, moment.counts.reserved);
            allocated = std::max(allocated, moment.counts.allocated);
        }
        QCOMPARE(double(reserved), values.figure("peak_reserved"));
        QCOMPARE(double(allocated), values.figure("peak_allocated"));
        QCOMPARE(double(state.walk->at(state.peak).counts.reserved), values.figure("peak_reserved"));
        const auto chosen = std::ranges::find_if(state.cards, [](const auto& card) { return card.isChosen; });
        QVERIFY(chosen != state.cards.end());
        QCOMPARE(chosen->reserved, values.figure("peak_reserved"));
    }

    void backwardIsAsForward()
    {
        const AllocatorValues values(gpt);
        const AllocatorState state = readAllocator(&values.prediction, ByteStyle::Binary);
        std::vector<std::int64_t> reserved;
        std::vector<QStringList> words;
        for (int i = 0; i <= state.last; ++i) {
            reserved.push_back(state.walk->at(i).counts.reserved);
            words.push_back(state.walk->at(i).words);
        }
        for (int i = state.last; i >= 0; i -= 17) {
            QCOMPARE(state.walk->at(i).counts.reserved, reserved[std::size_t(i)]);
            QCOMPARE(state.walk->at(i).words, words[std::size_t(i)]);
        }
    }

    void piecesAreAsWideAsTheirBytes_data()
    {
        QTest::addColumn<QStringList>("given");
        QTest::newRow("a row each") << QStringList{QString::fromStdString(smallTrace[0])};
        QTest::newRow("flowing") << QStringList{"trace=gpt2", "batch=2", "sequence=256"};
        QTest::newRow("one arena") << QStringList{"trace=gpt2", "batch=2", "sequence=256", "setting=best-fit"};
    }
    void piecesAreAsWideAsTheirBytes()
    {
        QFETCH(QStringList, given);
        std::vector<std::string> texts;
        for (const QString& one : given)
            texts.push_back(one.toStdString());
        const AllocatorValues values(texts);
        const AllocatorState state = readAllocator(&values.prediction, ByteStyle::Binary);
        const AllocatorMoment& moment = state.walk->at(state.peak);
        const AllocatorLayout layout = layoutAt(state, state.peak);
        const double rowBytes = layout.isFlow ? layout.bytesOnTape / double(layout.rows.size()) : layout.bytesOnTape;
        const double perByte = layout.rows.front().width() / rowBytes;
        std::map<std::pair<std::size_t, std::size_t>, double> width;
        for (const AllocatorPiece& piece : layout.pieces)
            width[{piece.segment, piece.block}] += piece.rect.width();
        QVERIFY(!width.empty());
        for (const auto& [key, pixels] : width) {
            const PolicyBlock& block = moment.segments[key.first].blocks[key.second];
            QVERIFY(std::fabs(pixels - double(block.size) * perByte)
                    < 1); // what is narrower than a third of one is left out
        }
        double frames = 0;
        for (const AllocatorFrame& frame : layout.frames)
            frames += frame.rect.width();
        QVERIFY(std::fabs(frames - double(moment.counts.reserved) * perByte) < 1e-3 * frames + 1);
    }

    void nothingLiesOverAnother()
    {
        for (const auto& given : {smallTrace, gpt}) {
            const AllocatorValues values(given);
            const AllocatorState state = readAllocator(&values.prediction, ByteStyle::Binary);
            for (const QSizeF size : {QSizeF(460, 300), QSizeF(740, 330), QSizeF(990, 430), QSizeF(1500, 700)}) {
                const AllocatorLayout layout = layoutAt(state, state.peak, {}, size);
                std::vector<QRectF> parts{layout.title,   layout.button, layout.scrub,
                                          layout.caption, layout.words,  layout.cardsTitle};
                const auto chosen = std::ranges::find_if(state.cards, &ElsewhereCard::isChosen) - state.cards.begin();
                QVERIFY(!layout.cards.at(std::size_t(chosen)).isEmpty());
                for (const QRectF& card : layout.cards) {
                    if (card.isEmpty())
                        continue;
                    QVERIFY2(card.width() >= 100, qPrintable(QString::number(card.width()))); // name and bytes
                    parts.push_back(card);
                }
                parts.insert(parts.end(), layout.labels.begin(), layout.labels.end());
                parts.insert(parts.end(), layout.rows.begin(), layout.rows.end());
                for (std::size_t a = 0; a < parts.size(); ++a) {
                    QVERIFY2(QRectF(QPointF(0, 0), size).contains(parts[a]), qPrintable(QString::number(a)));
                    for (std::size_t b = a + 1; b < parts.size(); ++b) {
                        const QRectF both = parts[a] & parts[b];
                        QVERIFY2(both.width() < 1e-6 || both.height() < 1e-6,
                                 qPrintable(QStringLiteral("%1 and %2 at %3").arg(a).arg(b).arg(size.width())));
                    }
                }
                for (const AllocatorPiece& piece : layout.pieces)
                    QVERIFY(layout.tape.adjusted(0, 0, 1e-6, 1e-6).contains(piece.rect));
            }
        }
    }

    void theSplitIsSaid()
    {
        const AllocatorValues values(smallTrace);
        AllocatorPicture picture;
        picture.resize(900, 430);
        values.show(picture);
        picture.setCursor(3); // 96 MiB where 118 were freed
        QVERIFY2(picture.cursorText().contains("118 MiB block, rest 22 MiB > 1 MiB: split"),
                 qPrintable(picture.cursorText()));
        QVERIFY(picture.cursorText().contains("allocate 96 MiB · c"));
        picture.setCursor(5);
        QVERIFY2(picture.cursorText().contains("empty_cache()"), qPrintable(picture.cursorText()));
        QVERIFY(picture.cursorText().contains("30 MiB went back to the driver"));
    }

    void aZoomKeepsWhatIsUnderThePointer()
    {
        const AllocatorValues values(gpt);
        AllocatorPicture picture;
        picture.resize(900, 430);
        values.show(picture);
        const AllocatorLayout before = picture.layoutNow();
        const QPointF at(before.rows[2].center());
        const double place = before.tapeAt(at, picture.window());
        QWheelEvent notch(at, picture.mapToGlobal(at), {}, QPoint(0, 120), Qt::NoButton, Qt::NoModifier,
                          Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(&picture, &notch);
        QVERIFY(picture.window().length < 1);
        QVERIFY(std::fabs(picture.layoutNow().tapeAt(at, picture.window()) - place) < 1e-9);
        for (int i = 0; i < 200; ++i) {
            QWheelEvent more(at, picture.mapToGlobal(at), {}, QPoint(0, 120), Qt::NoButton, Qt::NoModifier,
                             Qt::NoScrollPhase, false);
            QCoreApplication::sendEvent(&picture, &more);
        }
        QVERIFY(picture.window().length > 0 && picture.window().begin + picture.window().length <= 1 + 1e-12);
        QTest::mouseDClick(&picture, Qt::LeftButton, {}, at.toPoint());
        QCOMPARE(picture.window(), TapeWindow());
        QTest::keyClick(&picture, Qt::Key_Plus);
        QVERIFY(picture.window().length < 1);
        QTest::keyClick(&picture, Qt::Key_Escape);
        QCOMPARE(picture.window(), TapeWindow());
    }

    void aCardChoosesItsAllocator()
    {
        const AllocatorValues values(smallTrace);
        AllocatorPicture picture;
        picture.resize(900, 430);
        values.show(picture);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        const AllocatorLayout layout = picture.layoutNow();
        for (std::size_t i = 0; i < layout.cards.size(); ++i) {
            const ElsewhereCard& card = picture.state().cards[i];
            edits.clear();
            QTest::mouseClick(&picture, Qt::LeftButton, {}, layout.cards[i].center().toPoint());
            if (card.isChosen || card.key.isEmpty()) {
                QVERIFY(edits.isEmpty());
                continue;
            }
            QCOMPARE(edits.size(), 1);
            QCOMPARE(edits[0][0].toString(), QString("setting"));
            QVERIFY(readSetting(edits[0][1].toString().toStdString()));
        }
    }

    void keysStepAndPutEmptyCache()
    {
        const AllocatorValues values(smallTrace);
        AllocatorPicture picture;
        picture.resize(900, 430);
        values.show(picture);
        QTest::keyClick(&picture, Qt::Key_Home);
        QCOMPARE(picture.cursor(), 0);
        QTest::keyClick(&picture, Qt::Key_Right);
        QCOMPARE(picture.cursor(), 1);
        QSignalSpy edits(&picture, &Picture::parameterEdited);
        QTest::keyClick(&picture, Qt::Key_E);
        QCOMPARE(edits.size(), 1);
        QCOMPARE(edits[0][0].toString(), QString("empty_cache"));
        QCOMPARE(edits[0][1].toString(), QString("2")); // before the request that is shown
        QTest::keyClick(&picture, Qt::Key_P);
        QCOMPARE(picture.cursor(), picture.state().peak);
    }

    void thePointerNamesTheBlock()
    {
        const AllocatorValues values(smallTrace);
        AllocatorPicture picture;
        picture.resize(900, 430);
        values.show(picture);
        picture.setCursor(3);
        QSignalSpy hover(&picture, &Picture::hoverText);
        QStringList all;
        const AllocatorLayout layout = picture.layoutNow();
        for (const AllocatorPiece& piece : layout.pieces) {
            mouse(picture, QEvent::MouseMove, piece.rect.center(), Qt::NoButton);
            all << hover.last()[0].toString();
        }
        QVERIFY2(all.contains(
                     "c, activations: 96 MiB; made now; between the segment's end and 22 MiB free; segment of 118 MiB, "
                     "large pool"),
                 qPrintable(all.join('\n')));
        QVERIFY(all.contains("22 MiB free, between c and the segment's end; segment of 118 MiB, large pool"));
    }

    void foreignDetailDrawsNothing()
    {
        AllocatorValues values(smallTrace);
        for (const char* broken :
             {R"({})", R"({"requests": [1, 1]})", R"({"requests": "x"})", R"([1, 2])", R"({"count": 1e9})"}) {
            values.prediction.detail["trace"] = Json::parse(broken);
            const AllocatorState state = readAllocator(&values.prediction, ByteStyle::Binary);
            QVERIFY(state.empty());
            QVERIFY(!state.missing.isEmpty());
            AllocatorPicture picture;
            picture.resize(600, 320);
            values.show(picture);
            picture.grab();
        }
    }

    void aTraceThatRunsOutOfMemoryEndsThere()
    {
        std::vector<std::string> given = smallTrace;
        given.emplace_back("limit=120MiB");
        const AllocatorValues values(given);
        const AllocatorState state = readAllocator(&values.prediction, ByteStyle::Binary);
        QCOMPARE(state.last, 1); // the second does not fit beside 118 MiB
        QCOMPARE(int(state.walk->at(1).act.kind), int(ActKind::Refused));
        AllocatorPicture picture;
        picture.resize(900, 430);
        values.show(picture);
        picture.setCursor(99);
        QVERIFY2(picture.cursorText().contains("out of memory"), qPrintable(picture.cursorText()));
    }

    void bothThemesAndSizes()
    {
        for (const auto& [name, given] : {std::pair{"small", smallTrace}, std::pair{"gpt2", gpt}}) {
            const AllocatorValues values(given);
            for (const Theme* theme : {&lightTheme(), &darkTheme()}) {
                for (const QSize size : {QSize(740, 330), QSize(1400, 640)}) {
                    AllocatorPicture picture;
                    values.show(picture);
                    const QImage image = exported(picture, size, *theme);
                    QVERIFY(image.save(
                        QStringLiteral(SAMPLES "/allocator-%1-%2-%3.png").arg(name, theme->name).arg(size.width())));
                    QVERIFY(image.pixelColor(2, 2) == theme->background);
                }
            }
        }
    }
};

QTEST_MAIN(TestAllocatorPicture)
#include "tst_allocator_picture.moc"
