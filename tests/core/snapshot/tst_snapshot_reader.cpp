// SPDX-License-Identifier: Apache-2.0
// Snapshots that CPython pickled, against the counts of whoever made them (tests/data/snapshots/manifest.json); and
// pickles that nobody should open.
#include "core/base/cancellation.h"
#include "core/snapshot/pickle_writer.h"
#include "snapshot_files.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <fmt/format.h>

using namespace memscape;
using namespace memscape::test;

namespace {

QJsonArray manifest()
{
    QFile file(QString::fromStdString(familyFile("manifest.json").string()));
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object()["files"].toArray()
                                          : QJsonArray();
}

std::string eventText(const Snapshot& snapshot, std::size_t i)
{
    const SnapshotEvent event = snapshot.events[i];
    std::string text = fmt::format("{} {} {} {} {} {}:", snapshotActionText(event.action), event.address, event.size,
                                   event.time, event.label, snapshot.streams[event.stream]);
    for (const FrameId frame : snapshot.stacks[event.stack])
        text += " " + snapshot.frameText(frame);
    return text;
}

/// A pickle of protocol 4 with these opcodes between its head and STOP.
std::string pickle(std::string_view body)
{
    return "\x80\x04" + std::string(body) + ".";
}

} // namespace

class TestSnapshotReader : public QObject
{
    Q_OBJECT

private slots:
    void familiesHaveWhatTheManifestCounts_data()
    {
        QTest::addColumn<QJsonObject>("entry");
        QCOMPARE(manifest().size(), 21);
        for (const QJsonValue& entry : manifest())
            QTest::newRow(qPrintable(entry["file"].toString())) << entry.toObject();
    }
    void familiesHaveWhatTheManifestCounts()
    {
        QFETCH(QJsonObject, entry);
        const auto snapshot = readSnapshot(familyFile(entry["file"].toString().toStdString()));
        QVERIFY2(snapshot, snapshot ? "" : snapshot.error().text().c_str());
        QCOMPARE(qint64(snapshot->segments.size()), entry["segments"].toInteger());
        QCOMPARE(qint64(snapshot->blocks.size()), entry["blocks"].toInteger());
        QCOMPARE(qint64(snapshot->events.size()), entry["trace_entries"].toInteger());
        QCOMPARE(snapshot->protocol, entry["protocol"].toInt());
        qint64 reserved = 0, allocated = 0, requested = 0;
        for (const SnapshotSegment& segment : snapshot->segments)
            reserved += segment.size;
        for (const SnapshotBlock& block : snapshot->blocks) {
            allocated += block.state == SnapshotBlockState::Active ? block.size : 0;
            requested += block.state == SnapshotBlockState::Free ? 0 : block.requested;
        }
        QCOMPARE(reserved, entry["reserved"].toInteger());
        QCOMPARE(allocated, entry["allocated"].toInteger());
        QCOMPARE(requested, entry["requested"].toInteger());
        QJsonObject actions;
        for (std::size_t i = 0; i < snapshot->events.size(); ++i) {
            const auto name = snapshotActionText(snapshot->events.action(i));
            const QString key = QString::fromUtf8(name.data(), qsizetype(name.size()));
            actions[key] = actions[key].toInt() + 1;
        }
        QCOMPARE(actions, entry["actions"].toObject());
    }

    void stacksAreStoredOnceInnermostFrameFirst()
    {
        const auto snapshot = readSnapshot(familyFile("gpt2_tiny_end.p4.pickle"));
        QVERIFY(snapshot);
        QCOMPARE(snapshot->stacks.size(), std::size_t(58)); // 57 and the empty one: the snapshot entry has no frames
        const auto frames = snapshot->stacks[snapshot->events.stack(1)];
        QCOMPARE(frames.size(), std::size_t(3));
        QCOMPARE(snapshot->frameText(frames[0]), std::string("<init>"));
        QCOMPARE(snapshot->frameText(frames[2]), std::string("train.py:44 <module>"));
        QCOMPARE(snapshot->events.stack(snapshot->events.size() - 1), noStack);
        QCOMPARE(snapshot->settings["max_split_size"].get<int>(), -1);
    }

    void oldFilesAreRead_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"old_list", "old_dict"})
            QTest::newRow(name) << QString(name);
    }
    /// PyTorch 1.13: segments alone, blocks without address, a history instead of frames.
    void oldFilesAreRead()
    {
        QFETCH(QString, name);
        const auto snapshot = readSnapshot(smallFile(name.toStdString()));
        QVERIFY2(snapshot, snapshot ? "" : snapshot.error().text().c_str());
        QCOMPARE(snapshot->blocks.size(), std::size_t(2));
        QCOMPARE(snapshot->blocks[1].address, std::uint64_t(0x7f0000000000 + 512));
        QCOMPARE(snapshot->blocks[0].requested, 12);
        QCOMPARE(snapshot->stacks[snapshot->blocks[0].stack].size(), std::size_t(3));
        QVERIFY(!snapshot->notes.empty());
        const auto device = analysed(smallFile(name.toStdString()));
        QCOMPARE(device->lifetimes().bytesAt(0).allocated, 512);
        QCOMPARE(device->lifetimes().bytesAt(0).reserved, 2 << 20);
    }

    void aRunFileHasLabelsAndSteps()
    {
        const auto snapshot = readSnapshot(smallFile("run"));
        QVERIFY2(snapshot, snapshot ? "" : snapshot.error().text().c_str());
        QVERIFY(snapshot->run);
        QCOMPARE(snapshot->run->device, std::string("cuda:0"));
        QCOMPARE(snapshot->run->labels.size(), std::size_t(4));
        QCOMPARE(snapshot->texts[snapshot->run->labels[1].module], std::string_view("h.0"));
        QCOMPARE(snapshot->run->labels[3].step, 2);
        QCOMPARE(snapshot->events.label(0), noLabel);
        QCOMPARE(snapshot->events.label(1), LabelId(1));
        QCOMPARE(snapshot->run->steps.size(), std::size_t(2));
        QCOMPARE(snapshot->run->steps[1].index, 8);
        QVERIFY(!snapshot->run->error);
    }

    void severalDevicesKeepTheirTraces()
    {
        const auto snapshot = readSnapshot(smallFile("devices"));
        QVERIFY2(snapshot, snapshot ? "" : snapshot.error().text().c_str());
        QCOMPARE(snapshot->devices(), (std::vector<std::uint32_t>{0, 1, 2}));
        QCOMPARE(snapshot->traces.size(), std::size_t(3));
        QCOMPARE(snapshot->traces[1].size(), std::size_t(0));
        QCOMPARE(snapshot->traces[2].size(), std::size_t(5)); // the same entries as the first device's, shared
        const std::size_t first = snapshot->traces[2].first;
        QCOMPARE(snapshot->events.time(first), snapshot->events.time(snapshot->traces[0].first));
    }

    /// Protocol 4 and 5 have events that are read at once, protocol 2 has each opcode on its own.
    void eventsReadAtOnceAreThoseReadByOpcodes_data() { addFamilies(); }
    void eventsReadAtOnceAreThoseReadByOpcodes()
    {
        QFETCH(QString, family);
        const auto slow = readSnapshot(familyFile(family.toStdString() + ".p2.pickle"));
        QVERIFY(slow);
        for (const char* protocol : {".p4.pickle", ".p5.pickle"}) {
            const auto quick = readSnapshot(familyFile(family.toStdString() + protocol));
            QVERIFY(quick);
            QCOMPARE(quick->events.size(), slow->events.size());
            QCOMPARE(quick->traces.size(), slow->traces.size());
            QCOMPARE(quick->stacks.size(), slow->stacks.size());
            for (std::size_t i = 0; i < slow->events.size(); ++i)
                QCOMPARE(eventText(*quick, i), eventText(*slow, i));
        }
    }

    /// The same bytes recall another stack once a slot of the memo is taken again, or a frame gets another name.
    void recallsThatMeanSomethingElseLater()
    {
        const auto frame = [](const char* name, int slot) {
            return std::string("}\x8c\x08"
                               "filename\x8c\x01"
                               "fs\x8c\x04"
                               "name\x8c\x01")
                + name + "sq" + char(slot) + "0";
        };
        const std::string texts = std::string("\x8c\x06"
                                              "actionq\x14"
                                              "0\x8c\x05"
                                              "allocq\x15"
                                              "0\x8c\x06"
                                              "framesq\x16"
                                              "0");
        // Padding: an event at once wants some bytes behind it.
        const std::string event = std::string("}\x94(h\x14h\x15h\x16]\x94(h\x1eh\x1f"
                                              "eu"),
                          pad(40, 'N');
        std::string taken; // the memo's taken 0 to 0x1f are taken, so that the next MEMOIZE takes 0x20
        for (int i = 0; i < 0x20; ++i)
            taken += std::string("Nq") + char(i) + "0";
        const auto snapshot = readSnapshotBytes(pickle(taken + texts + frame("a", 0x1e) + frame("b", 0x1f)
                                                       + "}\x8c\x0d"
                                                         "device_traces](]("
                                                       + event + event + frame("c", 0x1f) + event
                                                       + "h\x1e\x8c\x04"
                                                         "name\x8c\x01"
                                                         "ds0"
                                                       + event + "ee" + "s\x8c\x08segments]s(" + pad + "1"));
        QVERIFY2(snapshot, snapshot ? "" : snapshot.error().text().c_str());
        QCOMPARE(snapshot->events.size(), std::size_t(4));
        const auto names = [&](std::size_t row) {
            std::string text;
            for (const FrameId id : snapshot->stacks[snapshot->events.stack(row)])
                text += snapshot->frameName(id);
            return text;
        };
        QCOMPARE(names(0), std::string("ab"));
        QCOMPARE(names(1), std::string("ab"));
        QCOMPARE(names(2), std::string("ac"));
        QCOMPARE(names(3), std::string("dc"));
    }

    /// What a page draws while it waits: the highest sums of the allocations and frees so far.
    void theFirstPictureIsTheSumOfWhatWasRead()
    {
        std::string file;
        PickleWriter out([&](std::string_view piece) {
            file += piece;
            return true;
        });
        const std::size_t events = 200'000;
        out.beginDictionary();
        out.key("device_traces");
        out.beginList();
        out.beginList();
        for (std::size_t i = 0; i < events; ++i) { // pairs of 100 bytes, over one block that stays
            out.beginDictionary();
            out.key("action");
            out.text(i == 0 || i % 2 == 1 ? "alloc" : "free_completed");
            out.key("addr");
            out.integer(i == 0 ? 1 << 20 : 1 << 21);
            out.key("size");
            out.integer(i == 0 ? 1000 : 100);
            out.endDictionary();
        }
        out.endList();
        out.endList();
        out.key("segments");
        out.beginList();
        out.endList();
        out.endDictionary();
        QVERIFY(out.finish());
        QVERIFY(file.size() > 2u << 20);
        std::size_t seen = 0, calls = 0;
        SnapshotReadOptions options;
        options.preview = [&](const SnapshotPreview& preview) {
            const auto columns = preview.columns();
            QVERIFY(columns.size() <= SnapshotPreview::mostColumns);
            QVERIFY(preview.events() >= seen);
            seen = preview.events();
            calls += seen > 0;
            for (std::size_t i = 0; i < columns.size(); ++i) // the last one may have one event
                QVERIFY(columns[i] == 1100 || (i + 1 == columns.size() && columns[i] == 1000));
        };
        QVERIFY(readSnapshotBytes(file, options));
        QVERIFY(calls >= 2);
        QVERIFY(seen > events / 2 && seen < events);
    }

    void keysInAnyOrderAndOneByOne()
    {
        // {'device_traces': [[{'size': 5, 'action': 'alloc', 'addr': 1}]], 'segments': []}, each key by SETITEM
        const std::string event = "}\x8c\x04sizeK\x05s\x8c\x06"
                                  "action\x8c\x05"
                                  "allocs\x8c\x04"
                                  "addrK\x01s";
        const auto snapshot = readSnapshotBytes(pickle("}\x8c\x0d"
                                                       "device_traces]]"
                                                       + event + "aas\x8c\x08segments]s"));
        QVERIFY2(snapshot, snapshot ? "" : snapshot.error().text().c_str());
        QCOMPARE(snapshot->events.size(), std::size_t(1));
        QCOMPARE(snapshot->events[0].size, 5);
        QCOMPARE(snapshot->events[0].address, std::uint64_t(1));
        QCOMPARE(int(snapshot->events[0].action), int(SnapshotAction::Allocate));
    }

    void hostilePicklesAreRefused_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const std::string& bytes, const char* code, const char* says) {
            QTest::newRow(name) << QByteArray::fromStdString(bytes) << QString(code) << QString(says);
        };
        row("empty", "", "pickle.truncated", "byte 0");
        row("text", "hello", "pickle.protocol", "protocol 2 to 5");
        row("protocol 0", "(dp0\n.", "pickle.protocol", "byte 0");
        row("protocol 9", "\x80\x09}.", "pickle.protocol", "protocol 9");
        row("system", pickle("cos\nsystem\n(X\x02" + std::string("\0\0\0", 3) + "lstR"), "pickle.opcode", "GLOBAL");
        row("stack global", pickle("\x8c\x02os\x8c\x06system\x93"), "pickle.opcode", "STACK_GLOBAL");
        row("reduce", pickle("})R"), "pickle.opcode", "REDUCE");
        row("build", pickle("}}b"), "pickle.opcode", "BUILD");
        row("newobj", pickle("})\x81"), "pickle.opcode", "NEWOBJ");
        row("persistent", pickle("NQ"), "pickle.opcode", "BINPERSID");
        row("extension", pickle("\x82\x01"), "pickle.opcode", "EXT1");
        row("bytes", pickle("C\x01x"), "pickle.opcode", "SHORT_BINBYTES");
        row("no opcode", pickle("\xff"), "pickle.opcode", "0xff");
        row("no end", "\x80\x04}", "pickle.truncated", "byte 3");
        row("cut text", "\x80\x04X\xff\xff\0\0abc", "pickle.truncated", "byte 2");
        row("huge text", std::string("\x80\x04X\xff\xff\xff\x7f.", 8), "pickle.limit", "16 MiB");
        row("cut frame", std::string("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}.", 13), "pickle.truncated",
            "frame");
        row("memo of nothing", pickle("\x94"), "pickle.stack", "byte 2");
        row("recalls nothing", pickle("h\x05"), "pickle.memo", "value 5");
        row("memo bomb", pickle("}r\xff\xff\xff\x7f"), "pickle.memo", "out of order");
        row("pops too much", pickle("0"), "pickle.stack", "byte 2");
        row("pops below a mark", pickle("}(0"), "pickle.stack", "byte 4");
        row("no mark", pickle("}u"), "pickle.stack", "group");
        row("key without value", pickle("}(Nu"), "pickle.stack", "keys");
        row("appends to a number", pickle("K\x01Na"), "pickle.stack", "not a list");
        row("two values", pickle("}}"), "pickle.stack", "2 values");
        row("a list of numbers",
            pickle("](K\x01K\x02"
                   "e"),
            "snapshot.type", "segments[0]");
        row("a number", pickle("K\x01"), "snapshot.format", "a number");
        row("another dictionary", pickle("}(\x8c\x01xK\x01u"), "snapshot.format", "no segments");
        row("segments is a text", pickle("}\x8c\x08segments\x8c\x01xs"), "snapshot.type", "segments");
        row("size is a text",
            pickle("}\x8c\x0d"
                   "device_traces]](}(\x8c\x06"
                   "action\x8c\x05"
                   "alloc\x8c\x04size\x8c\x01xue"),
            "snapshot.type", "size");
        row("size is negative",
            pickle("}\x8c\x0d"
                   "device_traces]](}(\x8c\x06"
                   "action\x8c\x05"
                   "alloc\x8c\x04sizeJ\xff\xff\xff\xffue"),
            "snapshot.value", "size");
        row("frames are numbers",
            pickle("}\x8c\x0d"
                   "device_traces]](}(\x8c\x06"
                   "action\x8c\x05"
                   "alloc\x8c\x06"
                   "frames](K\x01"
                   "eue"),
            "snapshot.type", "frames");
        row("a size of 72 bits",
            pickle("}\x8c\x0d"
                   "device_traces]](}(\x8c\x06"
                   "action\x8c\x05"
                   "alloc\x8c\x04size\x8a\x09"
                   "123456789ue"),
            "snapshot.type", "more than 64 bits");
        row("no address",
            pickle("}\x8c\x08segments](}\x8c\x06"
                   "blocks]ses"),
            "snapshot.value", "segments[0]");
    }
    void hostilePicklesAreRefused()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(QString, code);
        QFETCH(QString, says);
        const auto snapshot = readSnapshotBytes(bytes.toStdString());
        QVERIFY(!snapshot);
        const QString text = QString::fromStdString(snapshot.error().text());
        QVERIFY2(QString::fromStdString(snapshot.error().code) == code, qPrintable(text));
        QVERIFY2(text.contains(says), qPrintable(text));
    }

    /// Cut anywhere, a snapshot is an error that names a byte: nothing is made up.
    void everyCutIsNoticed()
    {
        QFile file(QString::fromStdString(smallFile("loop4").string()));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const std::string whole = file.readAll().toStdString();
        QVERIFY(readSnapshotBytes(whole));
        for (std::size_t length = 0; length < whole.size(); length += 7) {
            const auto cut = readSnapshotBytes(std::string_view(whole).substr(0, length));
            QVERIFY(!cut);
            QVERIFY2(cut.error().place.starts_with("byte "), cut.error().text().c_str());
        }
    }

    /// Nesting costs the reader no stack; a bomb that takes more than its share of memory is refused.
    void depthAndMemoryAreBounded()
    {
        std::string deep(300'000, ']');
        deep += std::string(299'999, 'a');
        const auto nested = readSnapshotBytes(pickle(deep));
        QVERIFY(!nested);
        QCOMPARE(nested.error().code, std::string("snapshot.type"));
        SnapshotReadOptions strict;
        strict.memoryFactor = 0;
        strict.memoryBase = 8u << 20;
        const auto bomb = readSnapshotBytes(pickle("(" + std::string(9u << 20, '}')), strict);
        QVERIFY(!bomb);
        QCOMPARE(bomb.error().code, std::string("pickle.limit"));
    }

    void readingCanBeWatchedAndEnded()
    {
        std::vector<std::uint64_t> seen;
        SnapshotReadOptions options;
        options.progress = [&](std::uint64_t done, std::uint64_t) { seen.push_back(done); };
        const auto path = familyFile("gpt2_tiny_end.p4.pickle");
        QVERIFY(readSnapshot(path, options));
        QCOMPARE(seen.back(), std::uint64_t(std::filesystem::file_size(path)));
        QVERIFY(std::ranges::is_sorted(seen));
        const std::atomic<bool> stop = true;
        const CancelScope scope(stop);
        const auto ended = readSnapshot(path);
        QVERIFY(!ended);
        QCOMPARE(ended.error().code, std::string("predict.cancelled"));
    }

    void aMissingFileIsNamed()
    {
        const auto missing = readSnapshot("/nowhere/at/all.pickle");
        QVERIFY(!missing);
        QCOMPARE(missing.error().code, std::string("file.missing"));
        QVERIFY(missing.error().text().find("all.pickle") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestSnapshotReader)
#include "tst_snapshot_reader.moc"
