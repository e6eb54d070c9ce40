// SPDX-License-Identifier: Apache-2.0
// Attention on this machine's threads: every version in every format, with vectors of every width
// that runs here, within the bounds of the reference; memory what the prediction says; the same
// bits with one thread and with all; and what it answers when it can't.
#include "kernels/host/attention/attention_device.h"
#include "kernels/host/attention/softmax.h"
#include "kernels/host/precision/convert.h"
#include "kernels/programs/attention/attention_reference.h"

#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::host;

class TestAttentionDevice : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_listener = std::make_unique<test::Listener>();
        m_session = std::make_unique<HostSession>(m_device, *m_listener);
    }

    void halvesAreConvertedBitForBit()
    {
        for (const DType dtype : {DType::Float16, DType::BFloat16}) {
            const Check check = checkConversions(dtype == DType::Float16 ? Format::Fp16 : Format::Bf16);
            QVERIFY2(check.passed(), check.text().c_str());
        }
    }

    void softmaxOfOddRows()
    {
        for (const std::size_t count : {1u, 2u, 15u, 16u, 17u, 333u}) {
            std::vector<float> s(count), dp(count);
            std::vector<double> expected(count);
            double sum = 0, most = -INFINITY;
            for (std::size_t i = 0; i < count; ++i) {
                s[i] = 40 * std::sin(float(7 * i)) - 300;
                dp[i] = std::cos(float(i));
                most = std::max(most, double(s[i]) * 0.5);
            }
            for (std::size_t i = 0; i < count; ++i)
                sum += expected[i] = std::exp(double(s[i]) * 0.5 - most);
            softmaxRow(s.data(), count, 0.5F);
            double slope = 0;
            for (std::size_t i = 0; i < count; ++i) {
                expected[i] /= sum;
                slope += expected[i] * double(dp[i]);
                QVERIFY(std::abs(double(s[i]) - expected[i]) <= 1e-5 * expected[i] + 1e-37);
            }
            const std::vector<float> before = dp;
            softmaxSlopeRow(s.data(), dp.data(), count, 0.25F);
            for (std::size_t i = 0; i < count; ++i)
                QVERIFY(std::abs(double(dp[i]) - expected[i] * (double(before[i]) - slope) * 0.25) < 1e-6);
        }
    }

    void everyVersionIsWithinTheBounds_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("version");
        QTest::addColumn<int>("dtype");
        QTest::addColumn<int>("isa");
        for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
            for (const AttentionVersion& version : attentionVersions(kind, false)) {
                for (const DType dtype : version.dtypes) {
                    const auto row = [&](Isa isa) {
                        QTest::addRow("%s v%d %s %s", attentionKindText(kind).data(), version.number,
                                      dtypeText(dtype).data(), isaText(isa).c_str())
                            << int(kind) << version.number << int(dtype) << int(isa);
                    };
                    row(widestIsa());
                    if (kind == AttentionKind::Flash && version.number == 2) {
                        for (const Isa isa : {Isa::Bytes16, Isa::Bytes32}) {
                            if (hasIsa(isa) && isa != widestIsa())
                                row(isa);
                        }
                    }
                }
            }
        }
    }
    void everyVersionIsWithinTheBounds()
    {
        QFETCH(int, kind);
        QFETCH(int, version);
        QFETCH(int, dtype);
        QFETCH(int, isa);
        const auto check = checkAttentionDevice(factory(*m_session, Isa(isa)),
                                                attentionVersions(AttentionKind(kind), false)[std::size_t(version - 1)],
                                                DType(dtype), m_session->team().size());
        QVERIFY2(check.has_value(), check ? "" : check.error().text().c_str());
        QVERIFY2(check->passed(), check->text().c_str());
    }

    void theNumberOfThreadsChangesOnlyRangesOfKeys()
    {
        // Two heads: one range each for one thread and for two, so that all bits are the same.
        Instruments one;
        one.processors = {physicalCores().front()};
        HostSession alone(m_device, *m_listener, one);
        const AttentionTask work = task(AttentionKind::Flash, {1, 4, 2, 150, 150, 64, true});
        std::vector<std::vector<float>> found[2];
        HostSession* sessions[2] = {&alone, m_session.get()};
        for (int i = 0; i < 2; ++i) {
            const auto device = factory(*sessions[i])(work);
            QVERIFY((*device)->fill(AttentionInputs::Normal).has_value());
            QVERIFY((*device)->forward().has_value());
            QVERIFY((*device)->backward().has_value());
            for (const AttentionTensor tensor : {AttentionTensor::Output, AttentionTensor::QueryGradient,
                                                 AttentionTensor::KeyGradient, AttentionTensor::ValueGradient})
                found[i].push_back(*(*device)->read(tensor));
        }
        if (m_session->team().size() <= 2)
            QVERIFY(found[0] == found[1]);
        else // dQ is added up range by range
            QVERIFY(found[0][0] == found[1][0] && found[0][2] == found[1][2]);
    }

    void standardForwardHoldsTwoMatricesFlashNone()
    {
        const AttentionShape shape{2, 4, 4, 256, 256, 64, false};
        const std::int64_t matrix = 2 * 4 * 256 * 256 * 2, row = 2 * 4 * 256 * 4;
        const auto standard = *factory(*m_session)(task(AttentionKind::Standard, shape, DType::BFloat16, 1));
        const auto flash = *factory(*m_session)(task(AttentionKind::Flash, shape, DType::BFloat16));
        for (AttentionDevice* device : {standard.get(), flash.get()})
            QVERIFY(device->fill(AttentionInputs::Normal) && device->forward());
        QCOMPARE(standard->bytes().peak, 2 * matrix);
        QCOMPARE(standard->bytes().saved, matrix);
        QCOMPARE(flash->bytes().peak, row);
        QCOMPARE(flash->bytes().saved, row);
        // The same answer, within the rounding of the format.
        const auto a = *standard->read(AttentionTensor::Output), b = *flash->read(AttentionTensor::Output);
        for (std::size_t i = 0; i < a.size(); ++i)
            QVERIFY(std::abs(a[i] - b[i]) < 0.02F);
        standard->resetPeak();
        QVERIFY(standard->backward().has_value());
        QCOMPARE(standard->bytes().peak, 3 * matrix);
    }

    void aBackwardMayRunAgain()
    {
        for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
            const auto device = *factory(*m_session)(task(kind, {1, 2, 1, 70, 70, 32, true}));
            QVERIFY(device->fill(AttentionInputs::Normal) && device->forward() && device->backward());
            const auto first = *device->read(AttentionTensor::KeyGradient);
            QVERIFY(device->backward().has_value());
            QVERIFY(first == *device->read(AttentionTensor::KeyGradient));
            const auto seconds = device->sample(AttentionPass::Backward);
            QVERIFY(seconds && *seconds > 0);
        }
    }

    void moreThanTheMachineHasIsRefused()
    {
        const auto device =
            factory(*m_session)(task(AttentionKind::Standard, {1, 64, 64, 1 << 20, 1 << 20, 64, false}));
        QVERIFY(!device);
        QCOMPARE(device.error().code, std::string("run.memory"));
        QVERIFY(device.error().hint.find("implementation=flash") != std::string::npos);
        QCOMPARE(m_session->memory().used(), std::int64_t(0));
    }

    void stopIsHeard()
    {
        const auto device = *factory(*m_session)(task(AttentionKind::Flash, {1, 4, 4, 512, 512, 64, false}));
        QVERIFY(device->fill(AttentionInputs::Normal).has_value());
        m_listener->stop = true;
        const auto seconds = device->sample(AttentionPass::Both);
        QVERIFY(!seconds);
        QCOMPARE(seconds.error().code, std::string("run.cancelled"));
    }

private:
    AttentionDeviceFactory factory(HostSession& session, Isa isa = widestIsa()) const
    {
        return [&session, isa](const AttentionTask& task) {
            return makeAttentionDevice(session, task, bestProduct(), isa);
        };
    }

    AttentionTask task(AttentionKind kind, AttentionShape shape, DType dtype = DType::Float32, int version = 0) const
    {
        const AttentionProblem problem{shape, dtype, kind, AttentionPass::Both};
        return {problem, *attentionVersion(version, problem, false)};
    }

    Device m_device;
    std::unique_ptr<test::Listener> m_listener;
    std::unique_ptr<HostSession> m_session;
};

QTEST_APPLESS_MAIN(TestAttentionDevice)
#include "tst_attention_device.moc"
