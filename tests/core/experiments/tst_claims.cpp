// SPDX-License-Identifier: Apache-2.0
// What textbooks say, judged: every claim of every experiment meets a case where its verdict is
// another, and verdicts follow a measurement where one is there. Checkpointing's claims have cases of
// their own (tst_checkpoint_optimal).
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/report/summary.h"

#include <QtTest>

#include <map>
#include <set>

using namespace memscape;

namespace {

struct Case
{
    const char* experiment;
    const char* quote; ///< its id in the table of claims, or a part of it
    const char* device;
    std::vector<std::string> assignments;
    const char* verdict; ///< how it begins
};

const std::vector<Case>& cases()
{
    static const std::vector<Case> all{
        {"precision",
         "tensor-core-speedup",
         "nvidia-h200",
         {"operation=train", "format=fp16", "m=4096"},
         "does not hold here: it gains more"},
        {"precision",
         "tensor-core-speedup",
         "nvidia-h200",
         {"operation=train", "format=fp16", "m=64"},
         "does not hold here: it gains less"},
        {"precision", "eight-times", "nvidia-v100-sxm2", {}, "holds"},
        {"precision", "eight-times", "nvidia-h200", {}, "does not hold for this device: more"},
        {"precision", "half-memory", "nvidia-a100-80gb", {"operation=train", "m=65536", "n=512", "k=16"}, "holds"},
        {"precision",
         "half-memory",
         "nvidia-a100-80gb",
         {"operation=train", "m=512", "n=4096", "k=4096"},
         "does not hold"},
        {"precision",
         "halves-activations",
         "nvidia-a100-80gb",
         {"operation=train", "m=65536", "n=512", "k=16"},
         "holds for the activations, not for the gradients"},
        {"precision",
         "halves-activations",
         "nvidia-a100-80gb",
         {"operation=train", "m=512", "n=4096", "k=4096"},
         "does not hold for this step: neither"},
        {"precision", "bf16-saves-all", "nvidia-a100-80gb", {"operation=train", "value=0.1"}, "does not hold: "},
        {"precision",
         "bf16-saves-all",
         "nvidia-a100-80gb",
         {"operation=train", "value=0.5"},
         "holds for this step all in BF16"},
        {"precision", "loss-scaling", "nvidia-a100-80gb", {"operation=train", "gradient_median=1e-7"}, "holds"},
        {"precision",
         "loss-scaling",
         "nvidia-a100-80gb",
         {"operation=train", "gradient_median=0.001", "loss_scale=1"},
         "not needed here"},
        {"precision", "bf16-better", "nvidia-a100-80gb", {"value=0.1"}, "does not hold for this value"},
        {"precision", "bf16-better", "nvidia-a100-80gb", {"value=1e6"}, "holds for this value"},

        {"sharding", "zero-1-reduction", "nvidia-h200", {"data_parallel=8"}, "does not hold here: 2.91 instead of 4"},
        {"sharding", "zero-1-reduction", "nvidia-h200", {"data_parallel=1024"}, "holds here"},
        {"sharding", "zero-2-reduction", "nvidia-h200", {"zero=2", "data_parallel=8"}, "does not hold here"},
        {"sharding", "zero-2-reduction", "nvidia-h200", {"zero=2", "data_parallel=1024"}, "holds here"},
        {"sharding", "zero-3-linear", "nvidia-h200", {"zero=3", "data_parallel=8"}, "holds here"},
        {"sharding",
         "zero-3-linear",
         "nvidia-h200",
         {"model=mlp:16,8", "zero=3", "data_parallel=1024"},
         "does not hold here"},
        {"transfer", "total-time", "nvidia-h200", {"work=512"}, "does not hold here"},
        {"transfer", "total-time", "nvidia-h200", {"chunk=0"}, "holds here: next to nothing overlaps"},
        {"transfer", "total-time", "nvidia-h200", {"kind=pageable"}, "holds here: next to nothing overlaps"},
        {"transfer", "total-time", "amd-epyc-9654", {"work=0"}, "holds here: nothing is computed"},
        {"transfer", "pcie-bandwidth", "nvidia-h200", {"chunk=0"}, "does not hold here: more"},
        {"transfer", "pcie-bandwidth", "nvidia-a100-80gb", {"chunk=0"}, "holds here"},
        {"transfer", "pcie-bandwidth", "nvidia-a100-80gb", {"chunk=64KiB"}, "does not hold here: less"},

        {"loading",
         "disk-no-bottleneck",
         "nvidia-h200",
         {"medium=nvme4"},
         "does not hold here: the disk is the bottleneck"},
        {"loading", "disk-no-bottleneck", "nvidia-h200", {"medium=nvme5", "dtype=int4", "convert=bf16"}, "holds here"},
        {"loading", "disk-no-bottleneck", "nvidia-h200", {"cache=warm"}, "does not arise here"},
        {"loading", "disk-no-bottleneck", "amd-epyc-9654", {}, "does not hold here: the disk is all that there is"},

        {"in-place", "in-place-constant", "nvidia-h200", {}, "holds here"},
        {"in-place", "in-place-constant", "nvidia-h200", {"operation=silu"}, "does not hold here: autograd copies"},
        {"in-place", "in-place-saved", "nvidia-h200", {}, "holds at the peak only"},
        {"in-place", "in-place-saved", "nvidia-h200", {"operation=leaky-relu"}, "holds here"},
        {"in-place", "in-place-saved", "nvidia-h200", {"operation=silu"}, "does not hold here: nothing is saved"},
        {"in-place", "in-place-breakage", "nvidia-h200", {}, "does not hold here: PyTorch allows it"},
        {"in-place", "in-place-breakage", "nvidia-h200", {"input=sigmoid"}, "holds here"},
        {"in-place", "in-place-breakage", "nvidia-h200", {"operation=gelu"}, "does not arise"},

        {"allocator",
         "notes-fragmentation",
         "nvidia-h200",
         {"trace=alloc a 900MiB; alloc b 100MiB; free a"},
         "does not hold here"},
        {"allocator", "notes-fragmentation", "nvidia-h200", {"trace=alloc a 900MiB; alloc b 100MiB"}, "holds here"},
        {"allocator",
         "fragment-ratio",
         "nvidia-h200",
         {"trace=alloc a 40MiB; alloc b 20MiB; alloc c 30MiB; free b; alloc d 25MiB"},
         "does not hold here"},
        {"allocator", "fragment-ratio", "nvidia-h200", {"trace=alloc a 100; alloc b 200"}, "holds here"},
        {"allocator", "lazy-allocation", "amd-epyc-9654", {"trace=alloc a 3MiB"}, "holds here"},
        {"allocator", "lazy-allocation", "amd-epyc-9654", {"trace=alloc a 40MiB"}, "makes no difference"},
        {"allocator",
         "pools-fragment-less",
         "nvidia-h200",
         {"trace=alloc a 3MiB; alloc b 300MiB"},
         "does not hold here"},
        {"allocator",
         "pools-fragment-less",
         "nvidia-h200",
         {"trace=alloc a 20MiB; alloc b 40MiB"},
         "makes no difference"},
        {"allocator",
         "pools-call-less",
         "nvidia-h200",
         {"trace=alloc a 20MiB; free a; alloc b 20MiB; free b"},
         "holds here"},
        {"allocator", "pools-call-less", "nvidia-h200", {"trace=alloc a 20MiB; alloc b 40MiB"}, "does not hold here"},
        {"allocator", "pool-reuse", "nvidia-h200", {"trace=alloc a 20MiB; free a; alloc b 20MiB"}, "holds here"},
        {"allocator", "pool-reuse", "nvidia-h200", {"trace=alloc a 20MiB; alloc b 20MiB"}, "does not hold here"},
        {"allocator", "largest-first", "nvidia-h200", {"trace=alloc a 20MiB; alloc b 20MiB"}, "holds here"},
        {"allocator",
         "largest-first",
         "nvidia-h200",
         {"trace=alloc a 3MiB; alloc b 2MiB; free a; alloc c 2MiB; free b; alloc d 3MiB; free c; alloc e 2MiB"},
         "holds when"},
        {"allocator", "graph-colouring", "nvidia-h200", {"trace=alloc a 20MiB; free a; alloc b 20MiB"}, "holds here"},
        {"allocator",
         "graph-colouring",
         "nvidia-h200",
         {"trace=alloc a 40MiB; free a; alloc b 20MiB; alloc c 20MiB"},
         "does not hold here"},

        {"attention", "flash-less", "nvidia-h200", {"sequence=512"}, "does not hold here: inputs and outputs"},
        {"attention", "flash-less", "nvidia-h200", {"sequence=32768"}, "does not hold here: it takes less still"},
        {"attention",
         "flash-faster",
         "nvidia-h200",
         {"sequence=64", "implementation=both"},
         "does not hold here: it gains less"},
        {"attention",
         "flash-faster",
         "nvidia-h200",
         {"sequence=16384", "head_dim=32", "pass=forward"},
         "does not hold here: it is faster still"},
        {"attention", "flash-linear", "nvidia-h200", {"sequence=2048"}, "holds for what it takes"},
        {"attention", "flash-linear", "nvidia-h200", {"sequence=1", "heads=1"}, "does not hold at this length"},
        {"attention",
         "two-gigabytes",
         "nvidia-h200",
         {"dtype=float32", "implementation=standard"},
         "does not hold: in float32 one of the two arrays takes 8.59 GB"},
        {"attention",
         "two-gigabytes",
         "nvidia-h200",
         {"dtype=float16"},
         "does not hold: in float16 one of the two arrays takes 4.29 GB"},
        {"attention", "xformers-efficient", "nvidia-h200", {"sequence=2048"}, "holds, as for flash"},
        {"attention", "xformers-efficient", "nvidia-h200", {"sequence=4"}, "does not hold at this length"},
        {"attention", "attention-sparse", "nvidia-h200", {"sequence=2048"}, "holds for the scores"},
        {"attention", "attention-sparse", "nvidia-h200", {"sequence=2"}, "holds at this length, and saves less"},
        {"attention", "attention-linear", "nvidia-h200", {"sequence=2048"}, "holds, with another"},
        {"attention", "attention-linear", "nvidia-h200", {"sequence=64"}, "holds, but"},
        {"attention", "attention-complexity", "nvidia-h200", {}, "does not hold"},
        {"attention", "attention-complexity", "amd-epyc-9654", {"head_dim=1", "dtype=float32"}, "holds here"},
        {"attention", "Θ(N d", "nvidia-h200", {"head_dim=64", "sequence=8192"}, "holds"},
        {"attention", "Θ(N d", "nvidia-h200", {"sequence=64"}, "does not hold here"},

        {"bank-conflicts", "shared-cycles", "nvidia-h200", {"stride=1", "pattern=strided"}, "holds"},
        {"bank-conflicts",
         "shared-cycles",
         "nvidia-h200",
         {"stride=32", "pattern=strided"},
         "holds for the banks; a lone"},
        {"bank-conflicts", "n times slower", "nvidia-h200", {"stride=1", "pattern=strided"}, "does not apply here"},
        {"bank-conflicts", "n times slower", "nvidia-h200", {"stride=32", "pattern=strided"}, "holds while many"},
        {"bank-conflicts", "gcd", "nvidia-h200", {"stride=12", "pattern=strided"}, "holds here"},
        {"bank-conflicts", "gcd", "nvidia-h200", {"stride=0", "pattern=strided"}, "does not hold for stride 0"},
        {"bank-conflicts", "padded by one", "nvidia-h200", {"pattern=column"}, "holds here"},
        {"bank-conflicts", "padded by one", "nvidia-h200", {"pattern=column", "columns=31"}, "does not hold"},
        {"bank-conflicts", "swizzle", "nvidia-h200", {"pattern=column"}, "holds here"},
        {"bank-conflicts", "swizzle", "nvidia-h200", {"pattern=column", "columns=31"}, "not for this row"},

        {"batch-size", "critical-batch", "nvidia-h200", {}, "does not hold"},
        {"batch-size", "critical-batch", "nvidia-h200", {"model=gpt2", "sequence=64"}, "open"},
        {"batch-size", "beyond-critical", "nvidia-h200", {"batch=1"}, "not reached"},
        {"batch-size", "beyond-critical", "nvidia-h200", {"batch=65536"}, "holds: this update is beyond"},
        {"batch-size", "oom-halve", "nvidia-h200", {"model=gpt2", "sequence=1024", "batch=64"}, "holds here"},
        {"batch-size", "oom-halve", "nvidia-h200", {"model=gpt2", "sequence=64", "batch=2"}, "does not hold"},
        {"batch-size", "accumulation-overhead", "nvidia-h200", {"model=gpt2", "sequence=1024", "batch=64"}, "holds"},
        {"batch-size",
         "accumulation-overhead",
         "nvidia-h200",
         {"model=gpt2", "sequence=64", "batch=2"},
         "does not hold here"},
        {"batch-size", "accumulation-factor", "nvidia-h200", {"model=gpt2", "sequence=64", "batch=2"}, "does not hold"},
        {"batch-size",
         "accumulation-factor",
         "nvidia-h200",
         {"model=from-scratch:hidden=64,layers=2", "sequence=8192", "attention=eager", "batch=2"},
         "holds here"},
        {"batch-size", "adabatch", "nvidia-h200", {}, "open"},
        {"batch-size", "adabatch", "nvidia-h200", {"schedule=adaptive"}, "holds with"},

        {"layout", "contiguity-breaking", "nvidia-h200", {"shape=8,16", "views=t()"}, "does not hold for all"},
        {"layout", "contiguity-breaking", "nvidia-h200", {"shape=1,1", "views=t()"}, "does not hold for this tensor"},
        {"layout", "contiguity-restoring", "nvidia-h200", {"shape=8,16", "views=t()"}, "does not hold for clone()"},
        {"layout", "contiguity-restoring", "nvidia-h200", {"shape=8,16", "views=narrow(1,0,3)"}, "holds"},
        {"layout", "stride-bytes", "nvidia-h200", {"dtype=float32"}, "does not hold in PyTorch"},
        {"layout", "stride-bytes", "nvidia-h200", {"dtype=uint8"}, "holds for elements of one byte"},
        {"layout",
         "contiguous-faster",
         "nvidia-h200",
         {"shape=4096,4096", "views=transpose(0,1)", "reads=1000"},
         "holds for this walk and its reads"},
        {"layout",
         "contiguous-faster",
         "nvidia-h200",
         {"shape=4096,4096", "views=narrow(1,0,4032)"},
         "does not hold for this walk"},
        {"layout", "channels-last", "nvidia-h200", {"shape=8,64,56,56"}, "holds for reading"},
        {"layout", "channels-last", "nvidia-h200", {"shape=8,64,1,1"}, "does not hold"},

        {"roofline", "ridge-points", "nvidia-l4", {}, "does not hold for this device"},
        {"roofline", "ridge-points", "nvidia-h200", {}, "holds for this device too"},
        {"stride", "effective-bandwidth", "nvidia-h200", {"stride=1"}, "holds here"},
        {"stride", "effective-bandwidth", "nvidia-h200", {"pattern=random"}, "does not hold here"},
        {"hierarchy", "host-l1", "amd-epyc-9654", {}, "holds"},
        {"hierarchy", "host-l2", "amd-epyc-9654", {}, "does not hold"},

        {"training-memory",
         "oom-halve",
         "nvidia-h200",
         {"model=gpt2", "sequence=1024", "batch=64", "advice=none"},
         "holds"},
        {"training-memory",
         "oom-halve",
         "nvidia-h200",
         {"model=gpt2", "sequence=64", "batch=2", "advice=none"},
         "does not hold"},
        {"training-memory",
         "seven-billion-single",
         "nvidia-h200",
         {"model=llama-2-7b", "batch=3", "sequence=1024", "precision=fp32", "optimizer_implementation=fused"},
         "holds"},
        {"training-memory",
         "seven-billion-single",
         "nvidia-h200",
         {"model=llama-2-7b", "batch=8", "sequence=2048", "precision=fp32"},
         "does not hold for this step: it needs more"},
        {"training-memory",
         "bert-activations",
         "nvidia-h200",
         {"model=bert-base-uncased", "batch=32", "sequence=512", "precision=fp32", "attention=eager"},
         "does not hold with this attention, precision and dropout: it is more"},
        {"training-memory",
         "bert-activations",
         "nvidia-h200",
         {"model=bert-base-uncased", "batch=32", "sequence=512", "precision=bf16", "attention=flash", "dropout=0"},
         "does not hold with this attention, precision and dropout: it is less"},
        {"training-memory",
         "amp-halves-parameters",
         "nvidia-h200",
         {"model=gpt2", "sequence=64", "precision=bf16"},
         "holds"},
        {"training-memory",
         "amp-halves-parameters",
         "nvidia-h200",
         {"model=gpt2", "sequence=64", "precision=bf16-mixed"},
         "does not hold: the master copy"},
        {"training-memory",
         "amp-halves-parameters",
         "nvidia-h200",
         {"model=gpt2", "sequence=64", "precision=bf16-autocast"},
         "does not hold: autocast"},
        {"inference-memory", "KV cache", "nvidia-h200", {"model=gpt2", "context=512"}, "holds"},
        {"inference-memory", "KV cache", "nvidia-h200", {"model=qwen2-7b"}, "does not hold"},
    };
    return all;
}

const Experiment& experimentOf(const char* id)
{
    return **findExperiment(id);
}

std::vector<Claim> claimsOf(const char* id, const char* device, const std::vector<std::string>& assignments,
                            const Measurement& measured = {})
{
    const auto parameters = resolve(experimentOf(id).schema(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    return experimentOf(id).claims(*findDevice(device), *parameters, measured);
}

Claim claimAbout(const std::vector<Claim>& claims, const char* quote)
{
    for (const Claim& claim : claims) {
        if (claim.id == quote || claim.quote.find(quote) != std::string::npos)
            return claim;
    }
    return {};
}

/// A measurement of the figures alone.
Measurement measuredAs(const std::vector<std::pair<const char*, double>>& figures)
{
    Measurement measured;
    for (const auto& [key, value] : figures)
        measured.figures.push_back({key, key, Unit::One, value});
    return measured;
}

} // namespace

class TestClaims : public QObject
{
    Q_OBJECT

private slots:
    void aVerdictIsComputed_data()
    {
        QTest::addColumn<int>("index");
        for (int i = 0; i < int(cases().size()); ++i) {
            const Case& one = cases()[std::size_t(i)];
            QTest::addRow("%s %s %d", one.experiment, one.quote, i) << i;
        }
    }
    void aVerdictIsComputed()
    {
        QFETCH(int, index);
        const Case& one = cases()[std::size_t(index)];
        const Claim claim = claimAbout(claimsOf(one.experiment, one.device, one.assignments), one.quote);
        QVERIFY2(claim.verdict.starts_with(one.verdict), (claim.verdict + " | " + claim.ours).c_str());
        QVERIFY2(claim.ours.find_first_of("0123456789") != std::string::npos || claim.verdict.starts_with("open"),
                 claim.ours.c_str());
    }

    /// Of what the defaults show on a GPU and on a processor.
    void everyClaimHasACaseEachWay()
    {
        // Judged by numbers that no parameter moves: the guide's own kernel, and the devices that are named.
        const std::set<std::string> fixed{"Bank conflicts can slow a kernel down 32 times"};
        for (const Experiment* experiment : experiments()) {
            if (experiment->id() == "checkpoint" || experiment->id() == "hierarchy")
                continue; // each level of the hierarchy is the same code
            for (const char* device : {"nvidia-h200", "amd-epyc-9654"}) {
                for (const Claim& claim : claimsOf(experiment->id().c_str(), device, {})) {
                    std::set<std::string> verdicts;
                    for (const Case& one : cases()) {
                        if (experiment->id() == one.experiment
                            && (claim.id == one.quote || claim.quote.find(one.quote) != std::string::npos))
                            verdicts.insert(one.verdict);
                    }
                    QVERIFY2(verdicts.size() > 1 || fixed.contains(claim.quote), claim.quote.c_str());
                }
            }
        }
    }

    void aMeasurementIsPreferred_data()
    {
        QTest::addColumn<QByteArray>("experiment");
        QTest::addColumn<QByteArray>("assignment");
        QTest::addColumn<QByteArray>("quote");
        QTest::addColumn<QByteArray>("key");
        QTest::addColumn<double>("value");
        QTest::addColumn<QByteArray>("verdict");
        const auto row = [](const char* experiment, const char* assignment, const char* quote, const char* key,
                            double value, const char* verdict) {
            QTest::addRow("%s: %s = %g", quote, key, value)
                << QByteArray(experiment) << QByteArray(assignment) << QByteArray(quote) << QByteArray(key) << value
                << QByteArray(verdict);
        };
        const char* train = "operation=train";
        row("precision", train, "tensor-core-speedup", "speedup", 2.5, "holds here");
        row("precision", train, "tensor-core-speedup", "speedup", 1.1, "does not hold here: it gains less");
        row("precision", "operation=matmul", "tensor-core-speedup", "speedup", 10.1,
            "does not hold here: it gains more");
        row("precision", train, "half-memory", "memory_ratio", 0.5, "holds");
        row("precision", train, "half-memory", "memory_ratio", 0.909, "does not hold: it saves less");
        row("attention", "sequence=4096", "flash-faster", "speedup", 3.4, "holds here");
        row("attention", "sequence=4096", "flash-faster", "speedup", 0.8, "does not hold here: it is slower");
        row("in-place", "bytes=64MiB", "in-place-constant", "in_peak", 0x1p27, "does not hold here");
        row("in-place", "operation=silu", "in-place-constant", "in_peak", 0x1p26, "holds here");
        row("stride", "stride=1", "effective-bandwidth", "useful_bandwidth", 1e12, "does not hold here: the core");
        row("stride", "stride=1", "effective-bandwidth", "useful_bandwidth", 4.8e12, "holds here");
        row("bank-conflicts", "stride=32", "shared-cycles", "latency_cycles", 30, "holds");
        row("bank-conflicts", "stride=32", "shared-cycles", "latency_cycles", 60, "holds for the banks; a lone");
        row("batch-size", "batch=1024", "beyond-critical", "critical_batch", 100, "holds: this update is beyond");
        row("batch-size", "batch=1024", "beyond-critical", "critical_batch", 1e6, "not reached");
    }
    void aMeasurementIsPreferred()
    {
        QFETCH(QByteArray, experiment);
        QFETCH(QByteArray, assignment);
        QFETCH(QByteArray, quote);
        QFETCH(QByteArray, key);
        QFETCH(double, value);
        QFETCH(QByteArray, verdict);
        const Claim claim = claimAbout(claimsOf(experiment.constData(), "nvidia-h200", {assignment.toStdString()},
                                                measuredAs({{key.constData(), value}})),
                                       quote.constData());
        QVERIFY2(claim.verdict.starts_with(verdict.constData()), (claim.verdict + " | " + claim.ours).c_str());
    }

    /// L1 is judged by what was measured well inside of it, not by the catalogue.
    void aMeasuredCurveJudgesTheLevels()
    {
        const Device device = *findDevice("amd-epyc-9654");
        Measurement measured;
        measured.series.push_back({"latency",
                                   "latency",
                                   {"working_set", "working set", Unit::Byte, AxisScale::Log2, {8192, 1 << 30}, {}},
                                   "latency",
                                   Unit::Second,
                                   {9 / device.clock.value, 100 / device.clock.value},
                                   {},
                                   {}});
        const auto claims = claimsOf("hierarchy", "amd-epyc-9654", {}, measured);
        const Claim first = claimAbout(claims, "host-l1"), memory = claimAbout(claims, "host-ram");
        QCOMPARE(first.verdict, std::string("does not hold"));
        QVERIFY2(first.ours.find("9 cycles") != std::string::npos && first.ours.find("measured") != std::string::npos,
                 first.ours.c_str());
        QCOMPARE(memory.verdict, std::string("holds"));
        QVERIFY(claimAbout(claims, "host-l2").ours.find("measured") == std::string::npos); // no point is inside of it
    }

    /// A measured run found 0.0027 % of the gradients lost where 10.3 % were assumed.
    void aRecordIsJudgedByItsMeasurement()
    {
        Record record;
        record.experiment = "precision";
        record.device = *findDevice("nvidia-a100-80gb");
        record.parameters =
            *resolve(experimentOf("precision").schema(),
                     std::vector<std::string>{"operation=train", "format=fp16", "gradient_median=1e-7"});
        QCOMPARE(claimAbout(memscape::claimsOf(record), "loss-scaling").verdict, std::string("holds"));
        record.measured =
            measuredAs({{"unscaled_underflow_share", 2.7e-5}, {"underflow_share", 0}, {"overflow_share", 0}});
        const Claim judged = claimAbout(memscape::claimsOf(record), "loss-scaling");
        QVERIFY2(judged.verdict.starts_with("not needed here"), judged.verdict.c_str());
        QVERIFY2(judged.ours.find("the measured gradients 0.0027 %") != std::string::npos, judged.ours.c_str());
    }

    void aQuoteStandsOnlyWhereItIsMeant()
    {
        const auto claims =
            claimsOf("training-memory", "nvidia-h200", {"model=llama-2-7b", "sequence=512", "precision=bf16-mixed"});
        QVERIFY(claimAbout(claims, "seven-billion-single").quote.empty());
    }

    void withoutAFormulaThereIsNoTotal()
    {
        const Experiment& memory = experimentOf("training-memory");
        const auto figures = [&](const char* model) {
            return memory
                .predictPoint(*findDevice("nvidia-h200"),
                              *resolve(memory.schema(), std::vector<std::string>{model, "sequence=64"}))
                .value();
        };
        QVERIFY(std::isnan(findFigure(figures("model=mobilenet-v1"), "textbook_total")->number()));
        QVERIFY(findFigure(figures("model=gpt2"), "textbook_total")->number() > 0);
    }
};

QTEST_APPLESS_MAIN(TestClaims)
#include "tst_claims.moc"
