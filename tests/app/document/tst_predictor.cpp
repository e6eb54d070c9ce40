// SPDX-License-Identifier: GPL-3.0-or-later
// The newest request wins, light ones are answered at once, and nothing blocks.
#include "app/document/predictor.h"
#include "core/device/catalogue.h"
#include "tests/support/sample_study.h"
#include "tests/support/waiting.h"

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>

#include <thread>

using namespace memscape;
using namespace std::chrono_literals;

namespace {

/// A sweep so long that a prediction takes its time.
Parameters heavy()
{
    Parameters parameters = sample::parameters();
    Sweep sweep{"stride", {}};
    for (int i = 0; i < 512; ++i)
        sweep.values.push_back(1.0 + i % 64);
    parameters.setSweep(std::move(sweep));
    return parameters;
}

/// 150 stages, solved a hundred times: some seconds, and it is asked now and then whether it is wanted.
Parameters longSolve()
{
    return *resolve((*findExperiment("checkpoint"))->schema(),
                    std::vector<std::string>{"chain=mlp:150x4096", "slots=400:499:1"});
}

} // namespace

class TestPredictor : public QObject
{
    Q_OBJECT
private slots:
    void aLightPredictionIsThereWhenRequestReturns()
    {
        Predictor predictor(nullptr, 5s);
        QSignalSpy predicted(&predictor, &Predictor::predicted);
        QSignalSpy busy(&predictor, &Predictor::busyChanged);
        predictor.request("stride", sample::device(), sample::parameters());
        QCOMPARE(predicted.size(), 1);
        QVERIFY(!predictor.isBusy());
        QVERIFY(busy.isEmpty());
        const auto record = predicted[0].at(0).value<std::shared_ptr<const Record>>();
        const auto direct = predictRecord(**findExperiment("stride"), sample::device(), sample::parameters());
        QVERIFY(direct.has_value());
        QVERIFY(outcomeToJson(*record->predicted) == outcomeToJson(*direct->predicted));
        QTest::qWait(20);
        QCOMPARE(predicted.size(), 1); // not delivered twice
    }

    void aHeavyOneComesLaterAndTheNewestLast()
    {
        Predictor predictor(nullptr, 0ms);
        std::vector<Parameters> answers;
        connect(&predictor, &Predictor::predicted, this,
                [&](const std::shared_ptr<const Record>& record) { answers.push_back(record->parameters); });
        predictor.request("stride", sample::device(), heavy());
        QVERIFY(predictor.isBusy());
        for (int offset = 1; offset <= 50; ++offset)
            predictor.request("stride", sample::device(), sample::parameters({"offset=" + std::to_string(offset)}));
        QTRY_VERIFY_WITH_TIMEOUT(!predictor.isBusy(), 30000);
        QCOMPARE(answers.back().integer("offset"), 50);
        QVERIFY(answers.size() <= 3); // the others were dropped, not worked through
    }

    void aRequestFromASlotIsAnsweredToo()
    {
        Predictor predictor(nullptr, 5s);
        int answers = 0;
        connect(&predictor, &Predictor::predicted, this, [&] {
            if (++answers == 1)
                predictor.request("stride", sample::device(), sample::parameters({"offset=1"}));
        });
        predictor.request("stride", sample::device(), sample::parameters());
        QTRY_COMPARE(answers, 2);
    }

    void whatCannotBePredictedFails()
    {
        Predictor predictor(nullptr, 5s);
        QSignalSpy failed(&predictor, &Predictor::failed);
        predictor.request("telepathy", sample::device(), {});
        QCOMPARE(failed.size(), 1);
        QCOMPARE(failed[0].at(0).value<Error>().code, std::string("experiment.unknown"));
        predictor.request("stride", Device{}, sample::parameters()); // a device without levels
        QTRY_COMPARE(failed.size(), 2);
    }

    void aRefinementGivesWayAtOnce()
    {
        Predictor predictor(nullptr, 0ms);
        QSignalSpy predicted(&predictor, &Predictor::predicted);
        predictor.request("checkpoint", sample::device(), longSolve(), Predictor::Kind::Refinement);
        predictor.request("stride", sample::device(), sample::parameters());
        QTRY_COMPARE_WITH_TIMEOUT(predicted.size(), 1, 20000);
        QCOMPARE(predicted[0].at(0).value<std::shared_ptr<const Record>>()->experiment, "stride");
        QTRY_VERIFY(!predictor.isBusy());
        QCOMPARE(predicted.size(), 1); // a stopped prediction is not reported
    }

    void aRefinementTellsWhatItHasFound()
    {
        Predictor predictor(nullptr, 0ms);
        std::vector<std::string> told;
        connect(&predictor, &Predictor::found, this,
                [&](const Json& lever) { told.push_back(lever["key"].get<std::string>()); });
        QSignalSpy predicted(&predictor, &Predictor::predicted);
        const auto parameters = resolve((*findExperiment("training-memory"))->schema(),
                                        std::vector<std::string>{"model=gpt2", "batch=2", "sequence=64"});
        predictor.request("training-memory", *findDevice("nvidia-h200"), *parameters, Predictor::Kind::Refinement);
        QVERIFY(QTest::qWaitFor([&] { return predicted.size() == 1; }, 60000));
        const auto record = predicted[0].at(0).value<std::shared_ptr<const Record>>();
        std::vector<std::string> all;
        for (const Json& lever : record->predicted->detail["levers"])
            all.push_back(lever["key"].get<std::string>());
        std::ranges::sort(all);
        std::ranges::sort(told);
        QVERIFY(told.size() > 5);
        QVERIFY(told == all);
        told.clear();
        predictor.request("training-memory", *findDevice("nvidia-h200"), *parameters); // an answer comes as a whole
        QVERIFY(QTest::qWaitFor([&] { return predicted.size() == 2; }, 60000));
        QVERIFY(told.empty());
    }

    void whatIsStoppedLeavesTheOldAnswer()
    {
        Predictor predictor(nullptr, 0ms);
        QSignalSpy predicted(&predictor, &Predictor::predicted);
        QSignalSpy cancelled(&predictor, &Predictor::cancelled);
        predictor.cancel(); // nothing runs
        predictor.request("checkpoint", sample::device(), longSolve());
        QVERIFY(predictor.isBusy());
        predictor.cancel();
        QTRY_VERIFY_WITH_TIMEOUT(!predictor.isBusy(), 20000);
        QCOMPARE(cancelled.size(), 1);
        QVERIFY(predicted.isEmpty());
        predictor.request("stride", sample::device(), sample::parameters());
        QTRY_COMPARE(predicted.size(), 1);
    }

    void whatAPageDrawsIsPreparedBeside()
    {
        struct Length : Prepared
        {
            std::size_t figures = 0;
            std::thread::id thread;
        };
        Predictor predictor(nullptr, 5s);
        predictor.setPreparation([](const Record& record) {
            auto length = std::make_shared<Length>();
            length->figures = record.predicted->figures.size();
            length->thread = std::this_thread::get_id();
            return length;
        });
        QSignalSpy predicted(&predictor, &Predictor::predicted);
        predictor.request("stride", sample::device(), sample::parameters());
        QCOMPARE(predicted.size(), 1);
        const auto length = std::dynamic_pointer_cast<const Length>(predictor.prepared());
        QVERIFY(length);
        QVERIFY(length->figures > 0);
        QVERIFY(length->thread != std::this_thread::get_id());
    }

    void endingWhileItRunsIsSafe()
    {
        auto predictor = std::make_unique<Predictor>(nullptr, 0ms);
        predictor->request("stride", sample::device(), heavy());
        predictor.reset();
        QTest::qWait(10);
        QElapsedTimer time;
        time.start();
        predictor = std::make_unique<Predictor>(nullptr, 0ms);
        predictor->request("checkpoint", sample::device(), longSolve());
        predictor.reset(); // a window that is closed does not wait for it
        QVERIFY2(time.elapsed() < test::notStuck, qPrintable(QString::number(time.elapsed())));
    }
};

QTEST_GUILESS_MAIN(TestPredictor)
#include "tst_predictor.moc"
