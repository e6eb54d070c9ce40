// SPDX-License-Identifier: Apache-2.0
// Media: what is shipped can be read and says where its rates come from; what a file of one's own lacks is said with
// its place.
#include "core/device/media.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

const char* const aMedium = R"({"id": "nas", "name": "our file server", "network": true,
    "bandwidth": {"value": 110e6, "kind": "measured", "source": "dd"}})";

std::string mediaText(const std::string& media)
{
    return R"({"format": "memscape-media", "version": 1, "media": [)" + media + "]}";
}

Result<Medium> ownMedium(const std::string& text)
{
    QTemporaryDir folder;
    QFile file(folder.filePath(QStringLiteral("own.json")));
    if (!file.open(QIODevice::WriteOnly))
        return fail("test", "no file", "");
    file.write(text.c_str());
    file.close();
    return readOwnMedium(file.fileName().toStdString());
}

} // namespace

class TestMedia : public QObject
{
    Q_OBJECT

private slots:
    /// Rates of data sheets: 7 GB/s of PCIe 4.0 and 12.4 GB/s of PCIe 5.0.
    void whatIsShipped()
    {
        const auto media = readMedia(std::string(TEST_DATA) + "/../../resources/media/media.json");
        QVERIFY2(media, media ? "" : media.error().text().c_str());
        QCOMPARE(media->size(), shippedMedia().size());
        for (const Medium& one : *media) {
            QVERIFY2(!one.bandwidth.source.empty() && !one.latency.source.empty(), one.id.c_str());
            QVERIFY2(one.bandwidth.value > 1e8 && one.bandwidth.value < 2e10, one.id.c_str());
            QVERIFY2(one.latency.value > 1e-5 && one.latency.value < 1e-2, one.id.c_str());
            // A drive's rate is stated by its maker; a network's follows from its frames.
            QVERIFY(one.bandwidth.evidence == (one.isNetwork ? Evidence::Derived : Evidence::Specified));
        }
        QCOMPARE(shippedMedium("nvme4")->bandwidth.value, 7e9);
        QCOMPARE(shippedMedium("nvme5")->bandwidth.value, 12.4e9);
        QVERIFY(std::abs(shippedMedium("network-10g")->bandwidth.value / (1.25e9 * 1460 / 1538) - 1) < 1e-9);
        QVERIFY(!shippedMedium("floppy"));
    }

    void oneOfOnesOwn()
    {
        const auto medium = ownMedium(mediaText(aMedium));
        QVERIFY2(medium, medium ? "" : medium.error().text().c_str());
        QCOMPARE(medium->name, std::string("our file server"));
        QVERIFY(medium->isNetwork);
        QCOMPARE(medium->bandwidth.value, 110e6);
        QVERIFY(!medium->latency.known());
    }

    void whatIsWrongIsSaidWithItsPlace_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* name, const std::string& text, const char* code, const char* words) {
            QTest::newRow(name) << QByteArray(text.c_str()) << QByteArray(code) << QByteArray(words);
        };
        const auto rate = [](const std::string& bandwidth) {
            return mediaText(R"({"id": "x", "name": "x", "bandwidth": )" + bandwidth + "}");
        };
        row("not JSON", "{", "json.syntax", "own.json");
        row("a list", "[]", "json.type", "own.json");
        row("another document", R"({"format": "memscape-device"})", "json.format", "memscape-media");
        row("of tomorrow", R"({"format": "memscape-media", "version": 2})", "json.version", "update");
        row("no media", mediaText(""), "json.range", "media");
        row("no rate", mediaText(R"({"id": "x", "name": "x"})"), "json.range", "bandwidth");
        row("no name", mediaText(R"({"id": "x"})"), "json.missing", "name");
        row("a rate in words", rate(R"("7 GB/s")"), "json.type", "bandwidth");
        row("no rate at all", rate(R"({"value": 0, "kind": "measured", "source": "s"})"), "json.range", "bandwidth");
        row("below nothing", rate(R"({"value": -7e9, "kind": "measured", "source": "s"})"), "json.range", "bandwidth");
        row("no number", rate(R"({"value": "nan", "kind": "measured", "source": "s"})"), "json.type", "value");
        row("faster than light", rate(R"({"value": 1e300, "kind": "measured", "source": "s"})"), "json.range", "value");
        row("several", mediaText(std::string(aMedium) + R"(, {"id": "b", "name": "b",
            "bandwidth": {"value": 1e9, "kind": "measured", "source": "s"}})"),
            "media.several", "keep one");
        row("twice", mediaText(std::string(aMedium) + "," + aMedium), "media.twice", "media[1].id");
    }

    void whatIsWrongIsSaidWithItsPlace()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, code);
        QFETCH(QByteArray, words);
        const auto medium = ownMedium(text.toStdString());
        QVERIFY(!medium);
        QCOMPARE(medium.error().code, code.toStdString());
        QVERIFY2(medium.error().text().find(words.toStdString()) != std::string::npos, medium.error().text().c_str());
    }

    void aMissingFileIsNamed()
    {
        const auto medium = readOwnMedium("/no/such/medium.json");
        QVERIFY(!medium);
        QCOMPARE(medium.error().code, std::string("file.missing"));
    }
};

QTEST_APPLESS_MAIN(TestMedia)
#include "tst_media.moc"
