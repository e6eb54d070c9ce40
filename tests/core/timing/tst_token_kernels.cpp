// SPDX-License-Identifier: Apache-2.0
// The kernels of a decoding step against the engines' own code and others' measurements of single kernels.
#include "core/device/catalogue.h"
#include "core/network/model_names.h"
#include "core/timing/device_kernels.h"
#include "core/timing/token_kernels.h"

#include <QtTest>

#include <cmath>
#include <utility>

using namespace memscape;

class TestTokenKernels : public QObject
{
    Q_OBJECT

private slots:
    // vLLM's llama.py: two norms, joined qkv, rotary and cache, attention in two, o, gate and up, activation, down.
    void aLayerHasTenKernels()
    {
        QCOMPARE(engineKernels(*readModel("llama-2-7b")), 32 * 10 + 5.0);
        QCOMPARE(engineKernels(*readModel("phi-2")), 32 * 9 + 5.0); // one norm
    }

    // Gemma's layers have a norm behind attention and one behind the feed-forward (gemma2.py of vLLM and of SGLang).
    void aLayerBetweenNormsHasFour()
    {
        ModelDescription plain = *readModel("gemma-2-2b");
        const double sandwiched = engineKernels(plain);
        plain.normPlacement = NormPlacement::Before;
        QCOMPARE(sandwiched - engineKernels(plain), 2.0 * double(plain.layers));
    }

    // DeepSeek-V3 in 4 bits by vLLM 0.8 (deepseek_v2.py, v1/attention/backends/mla/common.py, rotary_embedding.py,
    // fused_moe.py), a layer with experts. Attention: norm, two products down, queries' norm and product up, a copy and
    // norm of the keys' latent, sixteen of positions, cache, queries into the keys' space, their two parts joined,
    // attention and the sum of its parts, out of the values' space, two copies, product. Experts: norm, gate, ten of
    // the choice, order and its filling, two products with an activation, sum; three of the shared one, factor and sum.
    void latentsOfVllmAreManyKernels()
    {
        const ModelDescription deepSeek = *readModel("deepseek-v3");
        const double attention = 1 + 2 + 2 + 2 + 16 + 1 + 1 + 1 + 2 + 1 + 2 + 1;
        const double experts = 1 + 1 + 10 + 2 + 3 + 1 + 3 + 2, dense = 1 + 3;
        const double kernels = engineKernels(deepSeek, {.isVllm = true, .isBefore09 = true});
        QCOMPARE(kernels, 61 * attention + 58 * experts + 3 * dense + 5);
        QVERIFY(engineKernels(deepSeek, {.isVllm = true}) < 0.7 * kernels); // joined since
        // Published: 16.3 ms a token on eight H100 (QuixiAI's card of the 4 bits), of which 1.3 ms are weights.
        const Device h100 = findDevice("nvidia-h100-sxm").value();
        QVERIFY(kernels * engineKernelSeconds(h100) > 0.6 * 16.3e-3);
        QVERIFY(kernels * engineKernelSeconds(h100) < 16.3e-3);
    }

    // An input of products in FP8 is quantized by a kernel of its own: four a layer (vLLM's per_token_group_quant_fp8).
    void inputsInFp8AreQuantizedFirst()
    {
        const ModelDescription qwen = *readModel("qwen3-8b");
        QCOMPARE(engineKernels(qwen, {.isVllm = true, .quantizesInputs = true}) - engineKernels(qwen),
                 4.0 * double(qwen.layers));
    }

    // All experts run in one grouped product: eight of them start no more kernels than two.
    void expertsAreGrouped()
    {
        ModelDescription mixtral = *readModel("mixtral-8x7b");
        const double eight = engineKernels(mixtral);
        mixtral.experts.count = 2;
        QCOMPARE(engineKernels(mixtral), eight);
        QCOMPARE(eight, 32 * 15 + 5.0);
    }

    // llama.cpp's ggml-cuda.cu @0010882, a layer of LLaMA: two norms, two sums, queries' positions, keys and values
    // into the cache, attention in two, six products of which one is gate and up with their activation, and the
    // quantized input of each. Its graph saved 0.80 ms of a token on an RTX 3090 (8.60 to 7.80; pull request 6766).
    void aGraphOfLlamaCppHasFewerKernels()
    {
        const ModelDescription llama = *readModel("llama-2-7b");
        QCOMPARE(llamaCppKernels(llama, true), 32 * 21 + 5.0);
        QCOMPARE(llamaCppKernels(llama, false), 32 * 15 + 5.0);
        QCOMPARE(llamaCppKernels(llama, false, true), 32 * 17 + 5.0);          // scores: two products, softmax, a copy
        QVERIFY(llamaCppKernels(*readModel("gpt-oss-20b"), true) < 24 * 30.0); // no kernel for each of 32 experts
        const Device geforce = findDevice("nvidia-rtx-3090").value();
        const double saved = 32 * 21 * (geforce.launch.valueOr(0) - llamaCppKernelSeconds(geforce));
        QVERIFY2(std::fabs(saved / 0.80e-3 - 1) < 0.15, qPrintable(QString::number(saved)));
    }

    // AutoAWQ's block.py, attn.py and mlp.py: two norms, attention, two sums, activation and its product, five products
    // with a sum of parts each. Its own benchmark on an A100 has 10.6 ms a token (issue 276: 94.6 tokens/s).
    void aLoopOfFusedModulesIsItsHosts()
    {
        const LoopedKernels llama = fusedLoop(*readModel("llama-2-7b"), true);
        QCOMPARE(llama.calls, 32 * 12 + 5.0);
        QCOMPARE(llama.sums, 32 * 5.0);
        const LoopedKernels half = fusedLoop(*readModel("llama-2-7b"), false); // TinyChat's llama.py: q, k and v apart
        QCOMPARE(half.calls, 32 * 14 + 5.0);
        QCOMPARE(half.sums, 0.0);
        const Device a100 = findDevice("nvidia-a100-80gb").value();
        const double host = llama.hostSeconds(decodeDispatchOfGpu(a100), a100.launch.valueOr(0));
        QVERIFY2(std::fabs(host * 94.6 - 1) < 0.1, qPrintable(QString::number(host)));
    }

    // Marlin, bench.py on Llama 13B's four products: 1,158 GB/s of an A100 (vllm-project/vllm, pull request 2497).
    void fewRowsReachAShareOfHbm()
    {
        const Device a100 = findDevice("nvidia-a100-80gb").value(), geforce = findDevice("nvidia-rtx-4090").value();
        QVERIFY(std::fabs(decodingBandwidth(a100, WeightBits::Four) / 1158e9 - 1) < 0.02);
        QVERIFY(decodingBandwidth(a100, WeightBits::Sixteen) > decodingBandwidth(a100, WeightBits::Eight));
        QCOMPARE(decodingBandwidth(geforce, WeightBits::Four), decodingBandwidth(geforce, WeightBits::Sixteen));
    }

    // vllm-project/vllm, gptq_marlin.cu: stripes of ⌈k tiles × n tiles / blocks⌉ tiles. DeepSeek V3's keys and values,
    // k = 7,168 and n = 576, are what its pull request 14138 names slow; few of Llama 70B's large ones wait.
    void blocksOfMarlinHandSumsOn()
    {
        QCOMPARE(marlinHandovers(1, 4096, 4096), 0.0);   // one block adds up all
        QCOMPARE(marlinHandovers(132, 896, 896), 6.0);   // a block for each of 7 tiles
        QCOMPARE(marlinHandovers(108, 4096, 4096), 3.0); // stripes of ten tiles, columns of 32
        QVERIFY(marlinHandovers(132, 7168, 576) > 15);   // 56 tiles, stripes of three
        QVERIFY(marlinHandovers(132, 8192, 57344) <= 1);
        const Device a100 = findDevice("nvidia-a100-80gb").value();
        const double small = marlinSeconds(a100, *readModel("qwen2.5-0.5b"), 1);
        QVERIFY(small > 0.2e-3 && small < 1e-3); // QwenLM/Qwen2.5: 3.8 ms a token in 4 bits, 3.3 in BF16
    }

    // An H100's all-reduce of a few KB in a graph: 6 µs for two ranks (NVIDIA/nccl, issue 1259).
    void smallReductionsTakeMicroseconds()
    {
        const Device h100 = findDevice("nvidia-h100-sxm").value();
        QVERIFY(std::fabs(ownReduceStart(h100) / 6e-6 - 1) < 0.3);
    }
};

QTEST_GUILESS_MAIN(TestTokenKernels)
#include "tst_token_kernels.moc"
