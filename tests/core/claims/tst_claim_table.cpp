// SPDX-License-Identifier: Apache-2.0
// The table of claims: every claim of the notes has an entry (tests/data/claims/notes.json, made from the notes and not
// from the table), and a broken table says which file, which entry and what to do.
#include "core/base/file.h"
#include "core/claims/claim_quotes.h"
#include "core/claims/claim_verdicts.h"
#include "core/device/catalogue.h"

#include <QRegularExpression>
#include <QTemporaryDir>
#include <QtTest>

#include <map>
#include <set>

using namespace memscape;

namespace {

/// Words without the marks of Markdown and LaTeX, one space between them.
QString plainWords(const std::string& text)
{
    QString words = QString::fromStdString(text);
    words.remove(QRegularExpression("[*`$#\\\\⚠\"]"));
    return words.simplified();
}

const std::vector<ClaimEntry>& shippedClaims()
{
    static const auto table = readClaimTable(claimsFolder());
    if (!table)
        qFatal("%s", table.error().text().c_str());
    return *table;
}

/// A table of these entries, in a folder of its own.
class ClaimFolder
{
public:
    explicit ClaimFolder(const Json& claims)
    {
        write({{"format", "memscape-claims"},
               {"version", 1},
               {"source", "broken"},
               {"title", "Broken"},
               {"claims", claims}});
    }
    explicit ClaimFolder(const std::string& text) { writeText(text); }

    void write(const Json& json) const { writeText(jsonText(json)); }
    Result<std::vector<ClaimEntry>> read() const { return readClaimTable(m_folder.path().toStdString()); }

private:
    void writeText(const std::string& text) const
    {
        QVERIFY(writeFileAtomically(m_folder.filePath("broken.json").toStdString(), text));
    }
    QTemporaryDir m_folder;
};

Json goodEntry()
{
    return {{"id", "good"},
            {"line", 1},
            {"heading", "Heading"},
            {"quote", "A page holds 4 KiB"},
            {"topic", "pages"},
            {"experiment", "stride"},
            {"parameters", Json::array({"stride=2"})},
            {"ours", "{{efficiency | percent 3}}"},
            {"verdict",
             Json::array({Json::array({"efficiency > 0.9", "holds"}),
                          Json::array({"", "does not hold: {{efficiency | percent 3}}"})})},
            {"right", "It depends."}};
}

Json changedEntry(const char* key, const Json& value)
{
    Json entry = goodEntry();
    if (value.is_null())
        entry.erase(key);
    else
        entry[key] = value;
    return Json::array({entry});
}

} // namespace

class TestClaimTable : public QObject
{
    Q_OBJECT

private slots:
    void everyClaimOfTheNotesHasAnEntry()
    {
        const Json notes = *parseJson(*readFile(TEST_DATA "/claims/notes.json"));
        std::set<std::string> used;
        for (const Json& claim : notes["claims"]) {
            const ClaimEntry* found = nullptr;
            for (const ClaimEntry& entry : shippedClaims()) {
                const bool isThis = entry.source == claim["note"].get<std::string>()
                    && entry.line == claim["line"].get<int>()
                    && plainWords(entry.quote).contains(plainWords(claim["words"].get<std::string>()));
                if (isThis && !used.contains(entry.id))
                    found = found ? found : &entry;
            }
            QVERIFY2(found, jsonLine(claim).c_str());
            used.insert(found->id);
        }
        QCOMPARE(used.size(), std::size_t(163));
    }

    /// The audit of the notes counts 28, 46, 31, 37 and 21 of them.
    void everyClaimOfTheNotesIsListed()
    {
        const Json notes = *parseJson(*readFile(TEST_DATA "/claims/notes.json"));
        std::map<std::string, int> counts;
        for (const Json& claim : notes["claims"])
            ++counts[claim["note"].get<std::string>()];
        QCOMPARE(counts,
                 (std::map<std::string, int>{{"memory-and-execution", 28},
                                             {"device-and-memory-theory", 46},
                                             {"gpu-memory-management", 31},
                                             {"batch-size-optimization", 37},
                                             {"vram-bottleneck", 21}}));
    }

    void entriesSayWhatIsNeeded()
    {
        for (const ClaimEntry& entry : shippedClaims()) {
            QVERIFY2(entry.line > 0 && entry.line < 720, entry.id.c_str());
            QVERIFY2(!entry.quote.empty() && entry.quote.size() < 320 && !entry.heading.empty(), entry.id.c_str());
            QVERIFY2(!entry.topic.empty() && !entry.right.empty(), entry.id.c_str());
            QVERIFY2(entry.experiment || !entry.cannot.empty() || entry.ours.hasValues(), entry.id.c_str());
        }
    }

    void everyJudgedEntryIsKnownToItsExperiment()
    {
        std::set<std::string> ids;
        for (const ClaimEntry& entry : shippedClaims())
            ids.insert(entry.id);
        for (const ClaimEntry& entry : shippedClaims())
            QVERIFY2(entry.judge.empty() || ids.contains(entry.judge), entry.id.c_str());
    }

    void brokenTables_data()
    {
        QTest::addColumn<QByteArray>("claims");
        QTest::addColumn<QByteArray>("word");
        const auto row = [](const char* name, const Json& claims, const char* word) {
            QTest::newRow(name) << QByteArray::fromStdString(jsonLine(claims)) << QByteArray(word);
        };
        for (const char* key : {"line", "heading", "quote", "topic", "verdict", "right"})
            row(key, changedEntry(key, {}), key);
        row("no id", changedEntry("id", {}), "id");
        row("no claims", Json::array(), "the table has no claims");
        row("foreign key", changedEntry("verdickt", "holds"), "did you mean verdict");
        row("experiment", changedEntry("experiment", "strid"), "did you mean stride");
        row("parameter", changedEntry("parameters", Json::array({"strde=2"})), "stride");
        row("value", changedEntry("parameters", Json::array({"stride=many"})), "stride");
        row("sweep", changedEntry("parameters", Json::array({"stride=1:8:x2"})), "sweeps");
        row("type", changedEntry("line", "one"), "expected");
        row("case of a device", changedEntry("devices", {{"there", "nvidia-h200"}}), "\"there\"");
        row("verdict", changedEntry("verdict", Json::array({Json::array({"", "perhaps"})})), "\"perhaps\"");
        row("rule", changedEntry("verdict", Json::array({Json::array({"efficiency > 1"})})),
            "a condition and a verdict");
        row("no last rule", changedEntry("verdict", Json::array({Json::array({"efficiency > 1", "holds"})})),
            "every condition is false");
        row("no rules", changedEntry("verdict", Json::array()), "no rule is left");
        row("word", changedEntry("verdict", "expriment"), "neither rules");
        row("condition",
            changedEntry("verdict",
                         Json::array({Json::array({"efficiency >", "holds"}), Json::array({"", "does not hold"})})),
            "expected a value");
        row("place", changedEntry("ours", "{{efficiency"), "has no }}");
        row("lone brace", changedEntry("ours", "{efficiency} {{efficiency}}"), "a lone brace");
        row("no number", changedEntry("ours", "much"), "ours has no number");
        row("kind", changedEntry("on", "tpu"), "gpu or host");
        row("as", changedEntry("as", "nothing"), "\"nothing\"");
        row("twice", Json::array({goodEntry(), goodEntry()}), "two claims have this id");
    }
    void brokenTables()
    {
        QFETCH(QByteArray, claims);
        QFETCH(QByteArray, word);
        const ClaimFolder folder(*parseJson(claims.toStdString()));
        const auto table = folder.read();
        QVERIFY(!table);
        const std::string text = table.error().text();
        QVERIFY2(text.find(word.constData()) != std::string::npos, text.c_str());
        QVERIFY2(text.find("broken.json") != std::string::npos, text.c_str());
        const bool hasEntry = claims.contains("\"good\"");
        QVERIFY2(!hasEntry || text.find("\"good\"") != std::string::npos, text.c_str());
    }

    void brokenFiles()
    {
        QCOMPARE(ClaimFolder(std::string("{")).read().error().code, std::string("json.syntax"));
        QCOMPARE(ClaimFolder(std::string("[]")).read().error().code, std::string("json.format"));
        QCOMPARE(ClaimFolder(std::string(R"({"format": "memscape-claims", "version": 2})")).read().error().code,
                 std::string("json.version"));
        QTemporaryDir empty;
        QCOMPARE(readClaimTable(empty.path().toStdString()).error().code, std::string("file.missing"));
    }

    void anUnknownFigureIsAnErrorOfTheTable()
    {
        const std::pair<const char*, const char*> cases[] = {
            {"{{eficiency}}", "did you mean efficiency"},
            {"{{device.L9.capacity}}", "L9"},
            {"{{there.efficiency}}", "no figure \"there.efficiency\""}};
        for (const auto& [ours, word] : cases) {
            const auto table = ClaimFolder(changedEntry("ours", ours)).read();
            QVERIFY2(table, table ? "" : table.error().text().c_str());
            const auto judged = judgeClaims({&table->front()}, *findDevice("nvidia-h200"));
            QVERIFY(!judged);
            const std::string text = judged.error().text();
            QVERIFY2(text.find(word) != std::string::npos, text.c_str());
            QVERIFY2(text.find("broken.json, \"good\"") != std::string::npos, text.c_str());
        }
    }

    void entriesShareWhatTheySay()
    {
        Json other{{"id", "other"}, {"line", 9}, {"heading", "Elsewhere"}, {"quote", "The same"}, {"as", "good"}};
        const auto table = ClaimFolder(Json::array({goodEntry(), other})).read();
        QVERIFY2(table, table ? "" : table.error().text().c_str());
        const auto judged = judgeClaims({&(*table)[0], &(*table)[1]}, *findDevice("nvidia-h200"));
        QVERIFY(judged);
        QCOMPARE((*judged)[1].verdict, (*judged)[0].verdict);
        QCOMPARE((*judged)[1].verdict, std::string("does not hold: 50 %")); // every other element of a sector
        QCOMPARE((*table)[1].place(), std::string("Elsewhere, line 9"));
    }

    /// The words of the notes are in no source: an experiment takes them from the table.
    void quotesStandOnce()
    {
        const Claim claim = quotedClaim("eight-times", "holds", "8×");
        QCOMPARE(claim.quote, std::string("Speed: Uses Tensor Cores (up to 8x faster)"));
        QCOMPARE(claim.source, std::string("course notes, Day 19: memory optimization, line 50"));
        std::set<std::string> ids;
        for (const ClaimEntry& entry : shippedClaims())
            ids.insert(entry.id);
        int judged = 0;
        for (const Experiment* experiment : experiments()) {
            for (const char* device : {"nvidia-h200", "amd-epyc-9654"}) {
                const auto parameters = resolve(experiment->schema(), std::vector<std::string>());
                for (const Claim& one : experiment->claims(*findDevice(device), *parameters)) {
                    QVERIFY2(one.id.empty() || ids.contains(one.id), one.id.c_str());
                    QVERIFY2(one.id.empty() == !one.source.starts_with("course notes,"), one.source.c_str());
                    judged += !one.id.empty();
                }
            }
        }
        QVERIFY2(judged > 60, qPrintable(QString::number(judged)));
    }
};

QTEST_APPLESS_MAIN(TestClaimTable)
#include "tst_claim_table.moc"
