// SPDX-License-Identifier: Apache-2.0
// What the library that shards a training changes of its peak: DeepSpeed on one GPU and on many, Megatron.
#include "core/base/file.h"
#include "core/experiments/training-memory/training_memory.h"
#include "tests/support/devices.h"
#include "tests/support/training_case.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

/// B of ZeRO 3 on an H200; -1 where it is refused.
double peakOfStage3(std::vector<std::string> assignments)
{
    assignments.insert(assignments.end(), {"batch=1", "zero=3", "advice=none"});
    const auto predicted = trainingMemory().predict(h200(), trainingWith(assignments));
    return predicted ? predictedValue(*predicted, "peak_allocated") : -1;
}

} // namespace

class TestShardingLibraries : public QObject
{
    Q_OBJECT

private slots:
    /// DeepSpeed builds its FusedAdam for one GPU, too (DeepSpeedEngine::_configure_basic_optimizer); FSDP leaves
    /// torch.optim's own choice.
    void deepspeedFusesAdamOnOneGpu()
    {
        const auto peak = [](const std::string& by, const std::string& style) {
            return peakOfStage3({"model=gpt2", "sequence=16", "precision=bf16-mixed", "optimizer=adamw",
                                 "sharding_implementation=" + by, "optimizer_implementation=" + style});
        };
        QVERIFY(peak("deepspeed", "fused") > 0);
        QCOMPARE(peak("deepspeed", "auto"), peak("deepspeed", "fused"));
        QVERIFY(peak("deepspeed", "auto") < peak("deepspeed", "foreach"));
        QCOMPARE(peak("fsdp2", "auto"), peak("fsdp2", "foreach"));
    }

    /// gpjt/fine-tune-2024-04 @179f7ac: 128 tokens through Qwen1.5 0.5B on an RTX 3090, ZeRO 3 of DeepSpeed. The peak
    /// is that of the update: buckets, flat gradients and their fp32 copy are those of many GPUs.
    void oneGpuHasDeepSpeedsBuckets()
    {
        const QTemporaryDir folder;
        const std::string config = folder.filePath("config.json").toStdString();
        QVERIFY(writeFileAtomically(config, R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
            "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
            "intermediate_size": 2816, "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": true,
            "hidden_act": "silu"})"));
        const double peak =
            peakOfStage3({"model=" + config, "sequence=128", "precision=fp16-mixed", "optimizer=adamw",
                          "sharding_implementation=deepspeed", "library=transformers", "transformers=4.38"});
        QVERIFY(std::abs(peak / (10896.0 * 1024 * 1024) - 1) < 0.01); // H200: more of cuBLAS
    }

    /// Llama 2 7B has 6.74 billion parameters, 0.13 billion of them in its embedding, which is no product. Within
    /// zero.Init a billion of them may be whole at once.
    void aModelThatWasMadeWholeKeepsWhatDeepSpeedGathers()
    {
        const auto peak = [](const std::string& by, const std::string& checkpointing) {
            return peakOfStage3({"model=llama-2-7b", "sequence=16", "precision=bf16-mixed", "optimizer=none",
                                 "data_parallel=64", "sharding_implementation=" + by,
                                 "checkpointing=" + checkpointing});
        };
        const double more = peak("deepspeed-late", "none") - peak("deepspeed", "none");
        QVERIFY2(more > 2 * (6.6e9 - 1e9 - 0.2e9) && more < 2 * 6.6e9, std::to_string(more).c_str());
        QCOMPARE(peak("deepspeed-late", "block"), peak("deepspeed", "block"));
    }

    /// transformers/integrations/deepspeed.py: GPT-2's width is 768, so that its bucket has 768² gradients. (The peaks
    /// are of different moments.)
    void automaticSizesFollowTheWidth()
    {
        const auto peak = [](const std::string& sizes) {
            return peakOfStage3({"model=gpt2", "sequence=16", "precision=bf16-mixed", "data_parallel=8",
                                 "sharding_implementation=deepspeed", "deepspeed_sizes=" + sizes});
        };
        const double less = peak("default") - peak("auto"), bucket = 2 * (5e8 - 768.0 * 768);
        QVERIFY2(std::abs(less / bucket - 1) < 0.01, std::to_string(less).c_str());
    }

    /// Its settings are asked for on one GPU, however the model was made.
    void aModelThatWasMadeWholeIsDeepSpeedsToo()
    {
        const auto idle = [](const std::string& by) {
            return trainingMemory().idleParameters(
                h200(), trainingWith({"model=gpt2", "zero=3", "sharding_implementation=" + by}));
        };
        QCOMPARE(idle("deepspeed-late"), idle("deepspeed"));
    }

    /// stage_1_and_2.py, temp_grad_buffer_for_gpu_offload: GPT-2's embedding of 50,257 × 768 is its largest parameter.
    void anOffloadedGradientHasABufferOfTheLargest()
    {
        const auto hostMemory = [](const std::string& by) {
            const auto predicted = trainingMemory().predict(
                h200(),
                trainingWith({"model=gpt2", "batch=1", "sequence=16", "precision=bf16-mixed", "zero=2",
                              "data_parallel=8", "offload=optimizer", "advice=none", "sharding_implementation=" + by}));
            return predicted ? predictedValue(*predicted, "host_memory") : -1;
        };
        QCOMPARE(hostMemory("deepspeed") - hostMemory("ideal"), 2.0 * 50257 * 768);
    }

    /// Megatron-LM, tests/functional_tests/test_cases/gpt/gpt3_7b_tp4_pp1_memory_speed, golden_values_dev_dgx_h100.json
    /// @09eb91e: mem-max-allocated-bytes. Learned positions, which a configuration of rotary ones lacks, are 0.4 GB.
    void megatronDropsBehindEachBranch()
    {
        const QTemporaryDir folder;
        const std::string config = folder.filePath("config.json").toStdString();
        QVERIFY(writeFileAtomically(config, R"({"model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"],
            "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 131584, "max_position_embeddings": 8192, "hidden_act": "gelu",
            "use_bias": true, "tie_word_embeddings": false})"));
        const auto peak = [&config](const char* dropout) {
            const auto predicted = trainingMemory().predict(h200(),
                                                            trainingWith({"model=" + config,
                                                                          "library=megatron",
                                                                          "precision=bf16-mixed",
                                                                          "operators=all-fused",
                                                                          "loss=in-place",
                                                                          "fp32_gradients=true",
                                                                          "optimizer_implementation=fused",
                                                                          "sharding_implementation=ideal",
                                                                          "gradient_as_bucket_view=true",
                                                                          "zero_grad_frees=false",
                                                                          "clipping=true",
                                                                          "batch=2",
                                                                          "accumulation=2",
                                                                          "sequence=8192",
                                                                          "optimizer=adam",
                                                                          "zero=1",
                                                                          "data_parallel=2",
                                                                          "tensor_parallel=4",
                                                                          "advice=none",
                                                                          std::string("dropout=") + dropout}));
            return predicted ? predictedValue(*predicted, "peak_allocated") : -1;
        };
        QVERIFY(std::abs(peak("0.1") / 57143791616.0 - 1) < 0.015);
        const double masks = 2.0 * 32 * 2 * 8192 * 4096; // of a byte: two in each of 32 layers
        QVERIFY(peak("0.1") - peak("0") >= masks);
    }
};

QTEST_APPLESS_MAIN(TestShardingLibraries)
#include "tst_sharding_libraries.moc"
