// SPDX-License-Identifier: Apache-2.0
// Verdicts on the claims of the notes: every entry is judged on a processor and on GPUs, and those that mislead are
// checked against arithmetic that is done here, from data sheets and papers.
#include "core/claims/claim_quotes.h"
#include "core/claims/claim_verdicts.h"
#include "core/device/catalogue.h"

#include <QtTest>

#include <map>

using namespace memscape;

namespace {

const std::vector<ClaimEntry>& judgedTable()
{
    static const auto table = readClaimTable(claimsFolder());
    if (!table)
        qFatal("%s", table.error().text().c_str());
    return *table;
}

using Verdicts = std::map<std::string, JudgedClaim>;

/// All claims for one device, judged once.
const Verdicts& verdictsOn(const std::string& device)
{
    static std::map<std::string, Verdicts> known;
    const auto found = known.find(device);
    if (found != known.end())
        return found->second;
    std::vector<const ClaimEntry*> entries;
    for (const ClaimEntry& entry : judgedTable())
        entries.push_back(&entry);
    const auto judged = judgeClaims(entries, *findDevice(device));
    if (!judged)
        qFatal("%s: %s", device.c_str(), judged.error().text().c_str());
    Verdicts verdicts;
    for (const JudgedClaim& claim : *judged)
        verdicts[claim.entry->id] = claim;
    return known[device] = verdicts;
}

std::string decimal(double bytes)
{
    return quantityText(bytes, Unit::Byte, ByteStyle::Decimal);
}

std::string factor(double ratio)
{
    return quantityText(ratio, Unit::One) + "×";
}

std::string plain(double number)
{
    return quantityText(number, Unit::One);
}

struct Expected
{
    const char* id;
    const char* verdict;            ///< how it begins
    std::vector<std::string> words; ///< in our number, in this order or another
    const char* device = "nvidia-h200";
};

std::vector<Expected> expectations()
{
    const double llama = 6738415616; // parameters of Llama 2 7B
    const double zero1 = 16 / (4 + 12.0 / 8), zero2 = 16 / (2 + 14.0 / 8), zero2Many = 16 / (2 + 14.0 / 64);
    const double scores = 8.0 * 16 * 4096 * 4096;
    return {
        // Peak rate by bandwidth of the vendors' data sheets: 19.5 TFLOP/s and 2039 GB/s, 15.7 and 900, 66.9 and 3350;
        // tensor cores 312 TFLOP/s.
        {"ridge-points",
         "holds when products run in plain FP32",
         {plain(19.5e12 / 2.039e12), plain(15.7e12 / 900e9), plain(66.9e12 / 3.35e12), plain(312e12 / 2.039e12)}},
        {"hbm-against-ddr", "does not hold", {"3.35 TB/s", "4.8 TB/s", quantityText(12 * 38.4e9, Unit::BytePerSecond)}},
        {"four-m", "holds when the optimizer is fused", {}},
        {"seven-billion-single", "does not hold for this step", {decimal(llama * 4 * 4)}},
        {"seven-billion-half", "holds when weights, gradients and moments are all in FP16", {}},
        {"bert-activations", "does not hold", {}},
        {"llama-70b-half", "holds for the bytes", {decimal(2 * 68976648192.0)}},
        {"llama-70b-half", "holds", {decimal(2 * 68976648192.0)}, "nvidia-a100-80gb"},
        {"two-gigabytes", "does not hold", {decimal(2 * scores), decimal(4 * scores)}},
        {"sqrt-recomputation", "does not hold", {"12, 56 and 240"}},   // n − √n
        {"optimal-computation", "does not hold", {"28, 120 and 496"}}, // 2 L − √L
        {"question-interval", "holds", {}},
        {"dp-recurrence", "does not hold", {}},
        {"checkpoint-stores-sqrt", "does not hold: the code stores", {}},
        {"checkpoint-fourth", "does not hold as a balance", {}},
        {"exercise-linear", "does not hold for checkpoint() around each layer", {"51 units"}},
        {"zero-1-reduction", "holds when GPUs are many", {decimal(16 * 7.5e9), factor(zero1)}},
        {"zero-2-config", "holds when GPUs are many", {factor(zero2), factor(zero2Many)}},
        {"zero-3-linear", "holds for weights, gradients and states", {factor(8), factor(64)}},
        {"zero-1-n-times", "holds for the optimizer states", {factor(8), factor(zero1)}},
        {"all-reduce-volume", "does not hold: it is 2 P elements", {plain(2 * 2 * 7 / 8.0) + " B a parameter"}},
        {"zero-1-communication", "holds", {}},
        {"zero-2-communication", "does not hold", {decimal(2 * 7.5e9 / 8)}},
        {"zero-3-communication", "does not hold: 1.5× as much", {}},
        {"adam-eight-bytes", "holds for the moments", {"8 B a parameter", "copy 4 B"}},
        {"state-bytes", "holds", {"weights 2 B", "gradients 2 B", "moments 12 B"}},
        {"one-billion-static", "holds", {"16 GB"}},
        {"activations-blh", "does not hold", {decimal(8.0 * 2048 * 4096 * 2)}},
        {"activations-proportional", "holds for the batch", {"batch 2: 2×"}},
        {"eight-bit-bytes", "holds", {plain(2 + 2 * 4 / 256.0) + " B a parameter"}},
        {"eight-bit-saves", "holds", {decimal((8 - 2 - 2 * 4 / 256.0) * 1e9)}},
        {"optimizer-multiples", "holds for Adam; not for SGD", {"Adam 2×", "SGD 0×", "momentum 1×"}},
        {"int8-activations", "holds when the scales are not counted", {factor(256.0 / 68)}},
        {"top-k-activations", "does not hold", {factor(5), factor(32 / 4.2)}},
        {"separable-ratio", "does not hold", {factor(9.0 * 256 / (9 + 256)), factor(25.6)}},
        {"mobilenet-vgg", "does not hold", {factor(138357544.0 / 4231976)}},
        {"convolution-memory", "holds", {}},
        {"width-parameters", "holds for the pointwise convolutions alone", {"0.25"}},
        {"width-memory", "holds for the activations", {"0.5"}},
        {"in-place-constant", "holds when the backward does not need", {"ReLU takes 0 B", "SiLU 64 MiB"}},
        {"exponential-growth", "does not hold", {}},
        {"accumulation-buffer", "holds when each half gradient is freed", {factor(2)}},
        {"several-forwards", "does not hold: one backward", {"forward, backward, forward, backward"}},
        {"reduce-precision", "holds for the first step alone", {}},
        {"amp-two-times", "does not hold", {}},
        {"amp-halves-parameters", "does not hold", {"4 B under autocast"}},
        {"oom-halve", "holds when the batch is most of the memory", {}},
        {"activations-exceed", "holds when the batch is large", {}},
        {"channels-last", "cannot be tested here", {}},
        {"graph-default", "cannot be tested here", {}},
        {"utilization-thresholds", "cannot be tested here", {}},
        // 68.98e9 parameters of 2 bytes: 19.7 s at 7 GB/s, and 8,223 requests of four threads wait 80 µs; 2.6 s at 53
        // GB/s
        // and 9 µs each.
        {"disk-no-bottleneck", "does not hold: the disk is", {"138 GB", "19.9 s", "2.68 s"}},
        {"loading-by-bandwidth", "does not hold: the disk does", {"19.9 s", "2.68 s"}},
        {"stride-bytes", "does not hold in PyTorch", {"[4, 8192]"}},
        {"view-noncontiguous", "does not hold for view()", {}},
        {"tensors-contiguous", "holds when the tensor is no view", {}},
        {"target-coalescing", "holds when neighbours are read", {"100 %, 50 %, 25 %"}},
        {"prefers-soa", "holds when one field is read", {}},
        {"offload-13b", "holds when gradients leave the GPU", {}, "nvidia-a100-40gb"},
        // A multiprocessor has 65536 registers of 4 bytes; the L2 of an H200 has 50 MiB, that of a V100 6 MiB.
        {"register-file", "holds at the lower end alone", {"256 KiB"}},
        {"gpu-l2-size", "does not hold", {"50 MiB"}},
        {"gpu-l2-size", "holds", {"6 MiB"}, "nvidia-v100-sxm2"},
        {"gpu-l1-cycles", "does not hold", {}},
        {"gpu-l2-cycles", "does not hold", {}},
        {"gpu-memory-cycles", "holds", {}},
        {"gpu-memory-bandwidth", "does not hold", {"4.8 TB/s"}},
        {"gpu-memory-bandwidth", "holds", {}, "nvidia-v100-sxm2"},
        {"pcie-bandwidth", "does not hold", {"53 GB/s"}},
        {"pcie-bandwidth", "holds", {"12.3 GB/s"}, "nvidia-v100-sxm2"},
        {"nvlink-bandwidth", "holds for one direction", {}},
        {"nvlink-bandwidth", "holds for both directions", {}, "nvidia-v100-sxm2"},
        {"cpu-cpu-bandwidth", "cannot be tested here: the claim is about processors", {}},
        {"host-l1", "holds", {"4 cycles, 32 KiB"}, "amd-epyc-9654"},
        {"host-l2", "does not hold", {"1 MiB"}, "amd-epyc-9654"},
        {"host-ssd", "does not hold for the cycles", {}, "amd-epyc-9654"},
        {"gpu-l1-cycles", "cannot be tested here: the claim is about GPUs", {}, "amd-epyc-9654"},
        {"eight-times", "holds", {}, "nvidia-v100-sxm2"},
        {"eight-times", "does not hold for this device: more", {}, "nvidia-a100-80gb"},
    };
}

} // namespace

class TestClaimVerdicts : public QObject
{
    Q_OBJECT

private slots:
    void everyEntryIsJudged_data()
    {
        QTest::addColumn<QByteArray>("device");
        for (const char* device : {"cpu", "amd-epyc-9654", "nvidia-a100-80gb", "nvidia-h200"})
            QTest::newRow(device) << QByteArray(device);
    }
    void everyEntryIsJudged()
    {
        QFETCH(QByteArray, device);
        const Verdicts& verdicts = verdictsOn(device.toStdString());
        QCOMPARE(verdicts.size(), judgedTable().size());
        for (const auto& [id, claim] : verdicts) {
            const bool isVerdict = claim.verdict.starts_with("holds") || claim.verdict.starts_with("does not hold")
                || claim.verdict.starts_with("cannot be tested here: ");
            QVERIFY2(isVerdict, (id + ": " + claim.verdict).c_str());
            const bool isTested = !claim.verdict.starts_with("cannot");
            QVERIFY2(!isTested || claim.ours.find_first_of("0123456789") != std::string::npos,
                     (id + claim.ours).c_str());
            QVERIFY2(!isTested || !claim.right.empty(), id.c_str());
            for (const std::string& text : {claim.verdict, claim.ours, claim.right}) {
                QVERIFY2(text.find('{') == std::string::npos, (id + ": " + text).c_str());
                QVERIFY2(!isTested || text.find("–") == std::string::npos, (id + ": " + text).c_str()); // not known
            }
        }
    }

    /// "cannot be tested" is the answer on every device only where the table says so.
    void everyEntryIsTestedSomewhere()
    {
        int untested = 0;
        for (const ClaimEntry& entry : judgedTable()) {
            bool isTested = false;
            for (const char* device : {"amd-epyc-9654", "nvidia-a100-80gb", "nvidia-h200"})
                isTested |= !verdictsOn(device).at(entry.id).verdict.starts_with("cannot");
            QVERIFY2(isTested == entry.cannot.empty(), entry.id.c_str());
            untested += !isTested;
        }
        QVERIFY(untested > 0 && untested < 20);
    }

    void independentArithmeticAgrees_data()
    {
        QTest::addColumn<int>("index");
        const auto all = expectations();
        for (int i = 0; i < int(all.size()); ++i)
            QTest::addRow("%s %s", all[std::size_t(i)].id, all[std::size_t(i)].device) << i;
    }
    void independentArithmeticAgrees()
    {
        QFETCH(int, index);
        const Expected expected = expectations()[std::size_t(index)];
        const JudgedClaim& claim = verdictsOn(expected.device).at(expected.id);
        const std::string all = claim.verdict + " | " + claim.ours;
        QVERIFY2(claim.verdict.starts_with(expected.verdict), all.c_str());
        for (const std::string& word : expected.words)
            QVERIFY2(claim.ours.find(word) != std::string::npos, (word + " not in " + all).c_str());
    }

    void numbersFollowTheDevice()
    {
        int differ = 0;
        for (const auto& [id, claim] : verdictsOn("nvidia-h200"))
            differ += claim.ours != verdictsOn("nvidia-a100-80gb").at(id).ours;
        QVERIFY2(differ > 40, qPrintable(QString::number(differ)));
        // A case of its own device does not.
        QCOMPARE(verdictsOn("nvidia-h200").at("ridge-points").ours,
                 verdictsOn("amd-epyc-9654").at("ridge-points").ours);
    }

    void theDocumentHasEveryKey()
    {
        const Json json = judgedJson(verdictsOn("nvidia-h200").at("zero-stage-1"));
        for (const char* key : {"source", "place", "quote", "ours", "verdict", "right", "experiment", "parameters"})
            QVERIFY2(json.contains(key), key);
        QCOMPARE(json["source"].get<std::string>(), std::string("vram-bottleneck"));
        QCOMPARE(json["place"].get<std::string>(), std::string("2. ZeRO (Zero Redundancy Optimizer), line 33"));
        QCOMPARE(json["experiment"].get<std::string>(), std::string("sharding"));
        QCOMPARE(json["device"].get<std::string>(), std::string("nvidia-h200"));
        QVERIFY(json["parameters"].is_array() && !json["parameters"].empty());
        QCOMPARE(json["cases"].size(), std::size_t(4));
        QCOMPARE(judgedJson(verdictsOn("nvidia-h200").at("ridge-points"))["device"].get<std::string>(),
                 std::string("nvidia-a100-80gb"));
    }

    /// A T4 has no BF16: the product is refused, and the claim says so.
    void whatADeviceLacksIsAVerdict()
    {
        const JudgedClaim& claim = verdictsOn("nvidia-t4").at("not-small");
        QVERIFY2(claim.verdict.starts_with("cannot be tested here: ")
                     && claim.verdict.find("BF16") != std::string::npos,
                 claim.verdict.c_str());
        QVERIFY(verdictsOn("amd-epyc-9654").at("host-ram").ours.find("cycles") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestClaimVerdicts)
#include "tst_claim_verdicts.moc"
