// SPDX-License-Identifier: Apache-2.0
#include "core/protocol/message.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::protocol;

class TestMessage : public QObject
{
    Q_OBJECT

private slots:
    void everyEventReadsBack();
    void everyCommandReadsBack();
    void refusesWhatIsNoMessage_data();
    void refusesWhatIsNoMessage();
    void unknownTypesAndFieldsAreTolerated();
    void anotherVersionIsReadFarEnough();
    void linesComeWholeHoweverTheyAreCut();
    void anEndlessLineIsRefused();
    void tooManyKeysAreRefusedInTheirPlace();
};

void TestMessage::everyEventReadsBack()
{
    const Figure figure{"time", "time", Unit::Second, 1e-3, 0.9e-3, 1.1e-3, {}};
    const std::vector<Event> events{
        Hello{1, "0.1.0", 42, {{"cpu", "CPU", "", Json{{"id", "cpu"}}}, {"cuda:0", "", "no driver", Json()}}},
        Started{7},
        Progress{7, 3, 12, "stride 32"},
        Sample{7, "stride", Point{32, "32", {figure}, Json{{"grade", "B"}}}},
        Note{7, "warning", "clock.throttled", "the clock fell\nby half"},
        Done{7, "failed", 1.5, Error{"run.memory", "too little memory", "", "take less"},
             Json{{"figures", Json::object()}}, Json()},
        Done{8, "ok", 2, {}, Json(), Json{{"backend", "host"}}},
    };
    for (const Event& event : events) {
        const std::string line = encode(event);
        QCOMPARE(line.find('\n'), line.size() - 1); // one line, whatever is in it
        const auto back = decodeEvent(line);
        QVERIFY2(back.has_value(), back ? "" : back.error().text().c_str());
        QCOMPARE(back->index(), event.index());
        QCOMPARE(encode(*back), line);
    }
}

void TestMessage::everyCommandReadsBack()
{
    for (const Command& command :
         {Command(Run{1, "stride", "cpu", Json{{"stride", 4}}}), Command(Cancel{1}), Command(Quit{})}) {
        const auto back = decodeCommand(encode(command));
        QVERIFY(back.has_value());
        QCOMPARE(encode(*back), encode(command));
    }
    // Sizes that do not fit are forced by a word of its own, and only then.
    const auto isForced = [](const char* line) { return std::get<Run>(*decodeCommand(line)).isForced; };
    QVERIFY(!isForced(R"({"cmd": "run", "id": 1, "experiment": "stride", "device": "cpu"})"));
    QVERIFY(isForced(R"({"cmd": "run", "id": 1, "experiment": "stride", "device": "cpu", "force": true})"));
    QVERIFY(!decodeCommand(R"({"cmd": "run", "id": 1, "experiment": "stride", "device": "cpu", "force": 1})"));
    QVERIFY(std::get<Run>(*decodeCommand(encode(Run{1, "stride", "cpu", Json::object(), true}))).isForced);
}

void TestMessage::refusesWhatIsNoMessage_data()
{
    QTest::addColumn<QByteArray>("line");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("text") << QByteArray("Segmentation fault");
    QTest::newRow("half") << QByteArray(R"({"type": "done", "id": 7, "sta)");
    QTest::newRow("array") << QByteArray("[1,2]");
    QTest::newRow("no type") << QByteArray(R"({"id": 7})");
    QTest::newRow("type is a number") << QByteArray(R"({"type": 7})");
    QTest::newRow("id is text") << QByteArray(R"({"type": "started", "id": "seven"})");
    QTest::newRow("no figures") << QByteArray(R"({"type": "sample", "id": 7, "key": "x", "x": 1})");
    QTest::newRow("x is not finite") << QByteArray(
        R"({"type": "sample", "id": 7, "key": "x", "x": null, "figures": {}})");
    QTest::newRow("deep") << QByteArray(100'000, '[');
    QTest::newRow("bytes") << QByteArray("\x00\xff\xfe\x01", 4);
}

void TestMessage::refusesWhatIsNoMessage()
{
    QFETCH(QByteArray, line);
    const auto event = decodeEvent(line.toStdString());
    QVERIFY(!event.has_value());
    QVERIFY(!event.error().message.empty());
    QVERIFY(!decodeCommand(line.toStdString()).has_value());
}

void TestMessage::unknownTypesAndFieldsAreTolerated()
{
    QVERIFY(std::holds_alternative<UnknownMessage>(*decodeEvent(R"({"type": "sparkle", "id": 1})")));
    QVERIFY(std::holds_alternative<Started>(*decodeEvent(R"({"type": "started", "id": 1, "mood": "good"})")));
    QVERIFY(decodeCommand(R"({"cmd": "rnu"})").error().hint.find("run") != std::string::npos);
}

void TestMessage::anotherVersionIsReadFarEnough()
{
    const auto hello = decodeEvent(R"({"type": "hello", "protocol": 9, "devices": "elsewhere"})");
    QVERIFY(hello.has_value());
    QCOMPARE(std::get<Hello>(*hello).protocol, 9);
}

void TestMessage::linesComeWholeHoweverTheyAreCut()
{
    const std::string text = "{\"a\":1}\r\n{\"b\":2}\n\n{\"c\":3}";
    for (std::size_t cut = 1; cut <= text.size(); ++cut) {
        LineReader reader;
        std::vector<std::string> lines;
        for (std::size_t at = 0; at < text.size(); at += cut) {
            const auto some = reader.feed(text.substr(at, cut));
            QVERIFY(some.has_value());
            lines.insert(lines.end(), some->begin(), some->end());
        }
        QCOMPARE(lines, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"}));
        QCOMPARE(reader.finish(), std::string("{\"c\":3}"));
        QVERIFY(reader.finish().empty());
    }
}

void TestMessage::anEndlessLineIsRefused()
{
    LineReader reader;
    const std::string block(1 << 20, 'x');
    bool refused = false;
    for (std::size_t sent = 0; sent <= lineLimit && !refused; sent += block.size())
        refused = !reader.feed(block).has_value();
    QVERIFY(refused);
    QVERIFY(reader.feed("rest of it\n").has_value());
    const std::string good = "{\"a\":1}\n";
    QVERIFY(!reader.feed(good + std::string(lineLimit + 1, 'x')).has_value());
    QCOMPARE(reader.feed("\n").value().size(), std::size_t(1));          // the good line before it is not lost
    QCOMPARE(reader.feed("{\"a\":1}\n").value().size(), std::size_t(1)); // the next line is whole again
}

void TestMessage::tooManyKeysAreRefusedInTheirPlace()
{
    std::string keys = "\"figure 0\": {}";
    for (std::size_t i = 1; i < JsonLimits{}.keys + 1; ++i)
        keys += ", \"figure " + std::to_string(i) + "\": {}";
    const auto event = decodeEvent(R"({"type": "sample", "id": 7, "key": "x", "x": 1, "figures": {)" + keys + "}}");
    QCOMPARE(event.error().code, std::string("protocol.limit"));
    QVERIFY2(event.error().place.starts_with("line 1, column "), event.error().text().c_str());
    QVERIFY(!event.error().hint.empty());
}

QTEST_GUILESS_MAIN(TestMessage)
#include "tst_message.moc"
