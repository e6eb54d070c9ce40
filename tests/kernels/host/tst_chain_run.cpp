// SPDX-License-Identifier: Apache-2.0
// The whole live run on this machine, with schedules written by hand: what is checked, profiled,
// counted and said. Times are only held against each other's order, never against a limit.
#include "kernels/host/checkpoint/checkpoint.h"

#include "core/base/json.h"
#include "kernels/host/checkpoint/mlp_device.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::host;

namespace {

/// √: segments of two of a chain of four.
Schedule inSegments()
{
    using enum OperationKind;
    return {{ForwardKeep, 0}, {ForwardDrop, 1}, {ForwardSave, 2}, {ForwardSave, 3}, {Loss, 4},    {Backward, 3},
            {Backward, 2},    {ForwardSave, 0}, {ForwardSave, 1}, {Backward, 1},    {Backward, 0}};
}

/// Says stop at the first step of this label.
class StopsAt : public test::Listener
{
public:
    explicit StopsAt(std::string label)
        : m_label(std::move(label))
    { }
    void progress(int done, int total, const std::string& label) override
    {
        Listener::progress(done, total, label);
        if (label.starts_with(m_label))
            stop = true;
    }

private:
    std::string m_label;
};

} // namespace

class TestChainRun : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_listener = std::make_unique<test::Listener>();
        m_session = std::make_unique<HostSession>(m_device, *m_listener);
    }

    void theRunCountsWhatTheReplayCounts()
    {
        const ChainTask task{{4, 96, 33}, inSegments()};
        const auto run = runChainOnHost(*m_session, task);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto predicted = replay(*mlpChain(task.shape), task.schedule);
        const Figures figures = chainFigures(*run);
        QCOMPARE(findFigure(figures, "peak")->number(), double(predicted->peak));
        QCOMPARE(findFigure(figures, "recomputed_forwards")->number(), 2.0);
        QCOMPARE(findFigure(figures, "forward_evaluations")->number(), 6.0);
        QVERIFY(findFigure(figures, "makespan")->number() > 0);
        QVERIFY(run->isCompared);
        QVERIFY(run->complete);
        QCOMPARE(int(run->steps.passes().size()), chainPasses);
        QVERIFY(run->steps.merged().size() >= 6);
        QVERIFY(run->quality.grade >= 'A' && run->quality.grade <= 'D' && !run->quality.reason.empty());

        const Series memory = chainMemorySeries(*run);
        QCOMPARE(memory.y.size(), 2 * task.schedule.size());
        QCOMPARE(*std::ranges::max_element(memory.y), double(predicted->peak));
        QVERIFY(std::ranges::is_sorted(memory.x.values));
        QCOMPARE(m_listener->count("run.length"), 1);
        QCOMPARE(m_listener->lastDone, m_listener->lastTotal);
    }

    void everyFormHasATimeInTheMeasuredChain()
    {
        const auto run = runChainOnHost(*m_session, {{3, 64, 16}, saveEverything(3)});
        QVERIFY(run.has_value());
        QVERIFY(run->chain.lossTime > 0);
        for (const Stage& stage : run->chain.stages) {
            QVERIFY(stage.forward > 0);
            QCOMPARE(int(stage.options.size()), 2);
            for (const SaveOption& option : stage.options)
                QVERIFY(option.forward > 0 && option.backward > 0);
        }
        QCOMPARE(run->chain.values, mlpChain({3, 64, 16})->values);
    }

    void theMeasuredChainIsADocument()
    {
        const auto run = runChainOnHost(*m_session, {{2, 64, 16}, saveEverything(2)});
        QVERIFY(run.has_value());
        const Json detail = chainRunDetail(*run);
        const auto read = chainFromJson(JsonReader(detail.at("measured_chain")));
        QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
        QCOMPARE(read->length(), 2);
        QCOMPARE(read->stages[1].options[1].backward, run->chain.stages[1].options[1].backward);
        QVERIFY(detail.at("gradients").at("identical").get<bool>());
        QCOMPARE(int(detail.at("schedule").size()), 5);
        QCOMPARE(detail.at("schedule").at(2).at("operation").get<std::string>(), std::string("loss"));
        QCOMPARE(detail.at("profile_without_recomputation").get<double>(), run->chain.timeWithoutRecomputation());
    }

    void theProfileAddsUpToItsMakespan()
    {
        const auto run = runChainOnHost(*m_session, {{4, 64, 16}, inSegments()});
        QVERIFY(run.has_value());
        const Stage& stage = run->chain.stages.front();
        const double sum =
            2 * stage.forward + 4 * (stage.options[0].forward + stage.options[0].backward) + run->chain.lossTime;
        QVERIFY(std::abs(run->profileMakespan - sum) < 1e-9 * sum);
    }

    void aBrokenScheduleIsRefusedBeforeItRuns()
    {
        Schedule broken = inSegments();
        broken.pop_back();
        const auto run = runChainOnHost(*m_session, {{4, 64, 16}, broken});
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("schedule.invalid"));
        QCOMPARE(m_session->memory().highWater(), std::int64_t(0));
    }

    void aChainThatDoesNotFitSaysWhatItNeeds()
    {
        const auto run = runChainOnHost(*m_session, {{500, 65'536, 16}, saveEverything(500)});
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.memory"));
        QVERIFY2(run.error().text().find("available") != std::string::npos, run.error().text().c_str());
    }

    void withoutMemoryForEverythingTheScheduleStillRuns()
    {
        const ChainTask task{{4, 64, 16}, inSegments()};
        const std::int64_t room = 9 * mlpArrayBytes(task.shape); // everything takes 11 arrays, the segments 7
        const ProductKernel product = fastestProduct(*m_session).kernel;
        const SteadyClock clock;
        const ChainRunner runner{
            [&](const MlpShape& shape, std::int64_t arenaBytes) -> Result<std::unique_ptr<MlpDevice>> {
                if (shape == task.shape && arenaBytes > room)
                    return fail("run.memory", "the test allows no more");
                return makeMlpDevice(*m_session, shape, arenaBytes, product);
            },
            clock, *m_listener, [] {}, [](std::size_t) { return RunConditions(); }};
        const auto run = runChain(task, runner);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(!run->isCompared);
        QCOMPARE(m_listener->count("check.skipped"), 1);
        QCOMPARE(run->step.peak, replay(*mlpChain(task.shape), task.schedule)->peak);
        QVERIFY(run->profile.median("backward result") > 0);
    }

    void stoppedLateThereIsAResult()
    {
        StopsAt listener("step 3");
        HostSession session(m_device, listener);
        const auto run = runChainOnHost(session, {{4, 64, 16}, inSegments()});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(!run->complete);
        QCOMPARE(run->steps.merged().size(), std::size_t(2));
        QCOMPARE(run->quality.grade, 'D');
    }

    void stoppedBeforeTheFirstStepItsBytesAreKept()
    {
        for (const char* label : {"gradients, everything kept", "profile", "step 1"}) {
            StopsAt listener(label);
            HostSession session(m_device, listener);
            const ChainTask task{{4, 64, 16}, inSegments()};
            const auto run = runChainOnHost(session, task);
            QVERIFY2(run.has_value(), label);
            QVERIFY(!run->complete);
            QCOMPARE(run->step.peak, replay(*mlpChain(task.shape), task.schedule)->peak);
            const Figures figures = chainFigures(*run);
            QCOMPARE(findFigure(figures, "recomputed_forwards")->number(), 2.0);
            QVERIFY2(!findFigure(figures, "makespan"), "no step was timed");
            QCOMPARE(findFigure(figures, "profile_makespan") != nullptr, std::string(label) == "step 1");
            QCOMPARE(chainRunDetail(*run).contains("measured_chain"), std::string(label) == "step 1");
            QVERIFY(!chainMemorySeries(*run).y.empty());
            QCOMPARE(run->quality.grade, 'D');
            QVERIFY2(run->quality.reason.find("stopped") != std::string::npos, run->quality.reason.c_str());
        }
    }

    void stoppedEarlyThereIsNone()
    {
        m_listener->stop = true;
        const auto run = runChainOnHost(*m_session, {{4, 64, 16}, inSegments()});
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.cancelled"));
    }

    void theFastestProductIsOneOfOurs()
    {
        const ProductChoice choice = fastestProduct(*m_session);
        QVERIFY(choice.tried.contains(choice.kernel.name));
        double best = 0;
        for (const auto& rate : choice.tried)
            best = std::max(best, rate.get<double>());
        QCOMPARE(choice.tried.at(choice.kernel.name).get<double>(), best);
        QVERIFY(checkProduct(choice.kernel).passed());
    }

private:
    Device m_device;
    std::unique_ptr<test::Listener> m_listener;
    std::unique_ptr<HostSession> m_session;
};

QTEST_APPLESS_MAIN(TestChainRun)
#include "tst_chain_run.moc"
