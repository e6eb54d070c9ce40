// SPDX-License-Identifier: Apache-2.0
// Placed programs for real, small: every strategy gives the bits of a run without limit, moves the bytes and reaches
// the peak that were predicted; Adam is that of PyTorch's documentation.
#include "core/experiments/placement/placement.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/placement/host_machine.h"
#include "kernels/programs/placement/placed_run.h"
#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"

#include <QTest>

#include <cmath>

using namespace memscape;
using namespace memscape::host;

namespace {

Device placedHost(int cores)
{
    Device device = test::twoCores("host");
    device.units = device.threads = cores;
    device.clock.value = 2e9;
    device.rates["fp32"].flops.value = 128e9;
    return device;
}

Parameters placedParameters(const std::vector<std::string>& assignments)
{
    return resolve((*findExperiment("placement"))->schema(), assignments).value();
}

struct Ran
{
    std::string error;
    double peak = 0, predictedPeak = 0, copied = 0, predictedCopied = 0;
};

Ran ranWith(const std::vector<std::string>& assignments, int cores)
{
    const Device device = placedHost(cores);
    test::Listener listener;
    HostSession session(device, listener);
    const Parameters parameters = placedParameters(assignments);
    Ran ran;
    const auto asked = placementCase(device, parameters);
    if (!asked)
        return {asked.error().text()};
    const auto rates = placementSeconds(device, parameters, *asked);
    const auto placement = rates ? chosenPlacement(*asked, *rates) : tl::unexpected<Error>(rates.error());
    if (!placement)
        return {placement.error().text()};
    const auto machine = makePlacedMachine(session, asked->sharing, productKernels().front());
    PlacedRun run(*machine, *asked, *placement);
    const auto opened = run.open();
    if (!opened)
        return {opened.error().text()};
    for (int i = 0; i < 2; ++i) { // the second finds what the first has left
        if (const auto checked = run.check(); !checked)
            return {checked.error().text()};
    }
    const auto sums = run.inTurn();
    if (!sums)
        return {sums.error().text()};
    return {{}, run.highWater(), double(placement->peak), sums->copied, placement->program.copied()};
}

} // namespace

class TestPlacedRun : public QObject
{
    Q_OBJECT

private slots:
    void everyStrategyGivesTheSameBits_data()
    {
        QTest::addColumn<QStringList>("assignments");
        const auto row = [](const char* name, const QStringList& assignments) { QTest::newRow(name) << assignments; };
        const QString chain = "graph=mlp:5x32",
                      own = "graph=x: input 8 32; m@host: input 8 32; a: matmul 8 32 32 <- x; "
                            "b: mul <- a m; c: cpu <- b; d: gelu <- c; e: gpu <- d; f: add <- e x; "
                            "n: item <- f; g: matmul 8 8 32 <- f w; w@host: input 32 8; h: relu <- g";
        row("layers", {chain, "strategy=layers", "limit=16KiB"});
        row("layers, no prefetch", {chain, "strategy=layers", "limit=16KiB", "prefetch=0"});
        row("layers, three ahead", {chain, "strategy=layers", "limit=40KiB", "prefetch=3"});
        row("cheapest", {chain, "strategy=cheapest", "limit=16KiB"});
        row("device", {chain, "strategy=device"});
        row("host", {chain, "strategy=host"});
        row("by hand", {chain, "strategy=device", "place=layer2@host,gelu3@host"});
        row("ZeRO-Offload", {chain, "strategy=zero-offload"});
        row("ZeRO-Offload, in turn", {chain, "strategy=zero-offload", "overlap=false"});
        row("ZeRO-Infinity", {chain, "strategy=zero-infinity", "prefetch=2"});
        row("ZeRO-Infinity, in turn", {chain, "strategy=zero-infinity", "overlap=false"});
        row("a graph, implicit", {own, "strategy=implicit"});
        row("a graph, host", {own, "strategy=host"});
        row("a graph, cheapest", {own, "strategy=cheapest", "limit=12KiB"});
    }
    void everyStrategyGivesTheSameBits()
    {
        QFETCH(QStringList, assignments);
        std::vector<std::string> all{"batch=8", "limit=1MiB"};
        for (const QString& one : assignments) {
            if (one.startsWith("limit="))
                all.erase(all.begin() + 1);
            all.push_back(one.toStdString());
        }
        for (const int cores : {1, 2}) {
            const Ran ran = ranWith(all, cores);
            QCOMPARE(ran.error, std::string());
            QCOMPARE(ran.peak, ran.predictedPeak); // to the byte
            QCOMPARE(ran.copied, ran.predictedCopied);
        }
    }

    void whatDoesNotFitIsNotRun()
    {
        const Ran ran = ranWith({"graph=mlp:5x32", "batch=8", "strategy=device", "limit=4KiB"}, 2);
        QVERIFY2(ran.error.find("needs 22 KiB and the limit is 4 KiB") != std::string::npos, ran.error.c_str());
    }

    void modelsAreNotRun()
    {
        const Ran ran = ranWith({"graph=gpt2", "batch=1", "sequence=8", "strategy=host"}, 2);
        QVERIFY2(ran.error.find("predicted") != std::string::npos, ran.error.c_str());
    }

    /// m/(1 − β₁) = g and √(v/(1 − β₂)) = |g|: whatever the gradient, the weight moves by the rate.
    void theFirstStepOfAdamIsTheRate()
    {
        for (const float gradient : {-7.0F, 1e-3F, 250.0F}) {
            float p = 1, m = 0, v = 0;
            adamUpdate({&p, &m, &v, &gradient}, 1, {0.25F});
            QVERIFY(std::fabs(double(p) - (gradient > 0 ? 0.75 : 1.25)) < 1e-5);
        }
    }

    /// torch.optim.Adam's algorithm, line by line: m̂ and v̂ are corrected first, then the quotient is taken.
    void adamIsThatOfPytorch()
    {
        QVERIFY2(checkAdam().passed(), checkAdam().text().c_str());
        const double lr = 1e-2, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
        double exact = 0.5, first = 0, second = 0;
        float p = 0.5F, m = 0, v = 0;
        for (int t = 1; t <= 20; ++t) {
            const auto g = float(std::sin(double(t)));
            first = beta1 * first + (1 - beta1) * double(g);
            second = beta2 * second + (1 - beta2) * double(g) * double(g);
            const double firstHat = first / (1 - std::pow(beta1, t)), secondHat = second / (1 - std::pow(beta2, t));
            exact -= lr * firstHat / (std::sqrt(secondHat) + eps);
            AdamStep step;
            step.rate = float(lr);
            step.step = t;
            adamUpdate({&p, &m, &v, &g}, 1, step);
        }
        QVERIFY2(std::fabs(double(p) - exact) < 2e-6, qPrintable(QString::number(double(p) - exact)));
    }
};

QTEST_GUILESS_MAIN(TestPlacedRun)
#include "tst_placed_run.moc"
