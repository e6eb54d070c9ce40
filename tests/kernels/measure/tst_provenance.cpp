// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/provenance.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;

class TestProvenance : public QObject
{
    Q_OBJECT

private slots:
    /// The members that records of version 0.1.0 have; their order is the order in the file.
    void aRunSaysWhereItComesFrom()
    {
        Provenance run;
        run.machine = {{"backend", "cuda"}, {"driver", "580.65"}};
        run.time = "2026-01-02T03:04:05Z";
        run.isForced = false;
        run.passes = 3;
        run.budget = 30;
        run.quality = {'B', "relative IQR 2.1 %"};
        run.method = {{"kernels", "read v2"}};
        run.samples = Json::array({{{"key", "time"}}});
        QCOMPARE(provenanceToJson(run, true).dump(),
                 std::string(R"({"backend":"cuda","driver":"580.65","time":"2026-01-02T03:04:05Z","forced":false,)"
                             R"("passes":3,"budget_s":30.0,"grade":"B","reason":"relative IQR 2.1 %",)"
                             R"("method":{"kernels":"read v2"},"samples":[{"key":"time"}],"complete":true})"));
    }

    void whatIsNotKnownIsLeftOut()
    {
        Provenance run;
        run.machine = {{"backend", "host"}};
        QCOMPARE(provenanceToJson(run, false).dump(), std::string(R"({"backend":"host","complete":false})"));
    }

    /// A run that was read from a file, or came from another process, has all of it already.
    void whatARecordedRunSaysIsKept()
    {
        Provenance run;
        run.machine = {{"backend", "cuda"}, {"grade", "A"}, {"samples", Json::array()}};
        QCOMPARE(provenanceToJson(run, true)["grade"], Json("A"));
        QVERIFY(provenanceToJson(run, true)["samples"].is_array());
    }
};

QTEST_APPLESS_MAIN(TestProvenance)
#include "tst_provenance.moc"
