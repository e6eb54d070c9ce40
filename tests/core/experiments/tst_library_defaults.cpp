// SPDX-License-Identifier: Apache-2.0
// What a library does where its user says nothing: against the libraries' own configuration files, read by us
// (torchtune's llama3/8B_lora_single_device.yaml, litgpt/finetune/lora.py, transformers' TrainingArguments, PEFT's
// LoraConfig), and against what Unsloth publishes of its memory.
#include "core/device/catalogue.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_parameters.h"
#include "tests/support/training_case.h"

#include <QtTest>

#include <algorithm>

using namespace memscape;
using namespace memscape::test;

namespace {

Parameters asked(std::vector<std::string> assignments)
{
    auto parameters = askedParameters(trainingMemory(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    return *parameters;
}

} // namespace

class TestLibraryDefaults : public QObject
{
    Q_OBJECT

private slots:
    /// dtype: bf16, lora_rank: 8, lora_attn_modules: [q_proj, v_proj, output_proj], apply_lora_to_mlp: True, fused:
    /// True, CEWithChunkedOutputLoss, enable_activation_checkpointing: True.
    void torchtuneTrainsAdaptersInBf16()
    {
        const Parameters parameters = asked({"model=llama-3-8b", "adapter=lora", "library=torchtune"});
        QCOMPARE(parameters.choice("precision"), std::string("bf16"));
        QCOMPARE(parameters.choice("attention"), std::string("auto"));
        QCOMPARE(parameters.integer("adapter_rank"), std::int64_t(8));
        QCOMPARE(parameters.text("adapter_targets"), std::string("q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"));
        QCOMPARE(parameters.choice("adapter_precision"), std::string("base"));
        QCOMPARE(parameters.choice("optimizer_implementation"), std::string("fused"));
        QCOMPARE(parameters.choice("loss"), std::string("chunked:8"));
        QCOMPARE(parameters.choice("checkpointing"), std::string("block"));
        QCOMPARE(parameters.choice("optimizer"), std::string("adamw")); // in 8 bits where all weights are trained
        QVERIFY(!keepsLogitsOf(parameters));
    }

    void whatIsSaidWins()
    {
        const Parameters parameters =
            asked({"model=llama-3-8b", "library=torchtune", "precision=fp32", "optimizer=sgd", "checkpointing=none"});
        QCOMPARE(parameters.choice("precision"), std::string("fp32"));
        QCOMPARE(parameters.choice("optimizer"), std::string("sgd"));
        QCOMPARE(parameters.choice("checkpointing"), std::string("none"));
        QCOMPARE(parameters.choice("loss"), std::string("chunked:8")); // not given
    }

    void noLibraryImpliesNothing()
    {
        QVERIFY(libraryDefaults(asked({"model=llama-3-8b", "adapter=qlora"})).empty());
        QCOMPARE(libraryNote(asked({"model=llama-3-8b"})), std::string());
    }

    /// TrainingArguments: bf16=False, fp16=False, max_grad_norm=1.0; LoraConfig: r=8; sdpa has no FlashAttention in
    /// fp32.
    void aTrainerIsInFp32UnlessItIsTold()
    {
        const Parameters whole = asked({"model=opt-350m", "library=transformers"});
        QCOMPARE(whole.choice("precision"), std::string("fp32"));
        QVERIFY(whole.flag("clipping"));
        const Parameters adapters = asked({"model=opt-350m", "library=transformers", "adapter=lora"});
        QCOMPARE(adapters.integer("adapter_rank"), std::int64_t(8));
        QCOMPARE(adapters.choice("base_precision"), std::string("bf16"));
        QVERIFY(!keepsLogitsOf(adapters));
        QCOMPARE(asked({"model=opt-350m", "library=transformers", "adapter=lora", "precision=fp16-autocast"})
                     .choice("base_precision"),
                 std::string("fp16"));
    }

    /// _supports_sdpa of modeling_opt.py and modeling_llama.py in 4.43.4, of modeling_bloom.py in 5.24; PyTorch 1 has
    /// none.
    void attentionIsEagerWhereAModelHasNoSdpa()
    {
        const auto isEager = [](std::vector<std::string> assignments) {
            assignments.insert(assignments.end(), {"library=transformers", "optimizer=sgd", "batch=8", "advice=none"});
            const auto peak = [&](std::vector<std::string> more) {
                more.insert(more.end(), assignments.begin(), assignments.end());
                const auto prediction = trainingMemory().predict(*findDevice("nvidia-h200"), asked(more));
                return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
            };
            return peak({}) == peak({"attention=eager"});
        };
        QVERIFY(isEager({"model=opt-350m", "transformers=4.38"}));
        QVERIFY(!isEager({"model=opt-350m"}));
        QVERIFY(!isEager({"model=llama-3.2-1b", "transformers=4.38"}));
        QVERIFY(isEager({"model=llama-3.2-1b", "pytorch=1.13"}));
        QVERIFY(isEager({"model=bloom-560m"}));
    }

    /// TRL's SFTTrainer prepares no base for k-bit training that is sharded; accelerate's fsdp_version is 1.
    void shardedBasesStayAsTheyWereLoaded()
    {
        const Parameters sharded =
            asked({"model=llama-2-7b", "adapter=qlora", "zero=3", "data_parallel=2", "library=trl"});
        QCOMPARE(sharded.choice("sharding_implementation"), std::string("fsdp1"));
        QCOMPARE(sharded.choice("kbit_preparation"), std::string("none"));
        QCOMPARE(sharded.choice("precision"), std::string("bf16"));
        QVERIFY(sharded.flag("no_sync"));
        QCOMPARE(asked({"model=llama-2-7b", "adapter=qlora", "library=trl"}).choice("kbit_preparation"),
                 std::string("peft"));
    }

    /// Releases on PyPI: bitsandbytes 0.43 of 8 March 2024, 0.44 of 24 September, transformers 4.45 of 25 September.
    void versionsAreOfOneTime()
    {
        const auto versionBeside = [](const char* transformers, const char* adapter) {
            return asked({"model=llama-2-7b", "library=trl", transformers, adapter}).choice("bitsandbytes");
        };
        QCOMPARE(versionBeside("transformers=4.38", "adapter=qlora"), std::string("0.43"));
        QCOMPARE(versionBeside("transformers=4.46", "adapter=qlora"), std::string("0.44"));
        QCOMPARE(versionBeside("transformers=4.38", "adapter=lora"), std::string("0.44")); // which nothing reads
    }

    void onlyLanguageModelsHaveALossToChoose()
    {
        for (const char* model : {"model=bert-base-uncased", "model=vit-b-16", "model=resnet50", "model=mlp:64,64",
                                  "model=from-scratch:hidden=64,layers=2,heads=2,ffn=128,vocab=100"})
            QCOMPARE(asked({model, "sequence=64", "library=megatron"}).choice("loss"), std::string("library"));
        QCOMPARE(asked({"model=gpt2", "sequence=64", "library=megatron"}).choice("loss"), std::string("in-place"));
    }

    /// arguments.py: params of bf16 set accumulate_allreduce_grads_in_fp32; those of fp16 do not.
    void megatronSumsHalfGradientsAsTheyAre()
    {
        for (const auto& [precision, isWide] :
             {std::pair{"precision=bf16-mixed", true}, {"precision=fp8", true}, {"precision=fp16-mixed", false}})
            QCOMPARE(asked({"model=gpt2", "sequence=64", "library=megatron", precision}).flag("fp32_gradients"),
                     isWide);
    }

    /// resid_pdrop, hidden_dropout_prob and dropout_rate are 0.1 in transformers' configurations; nanoGPT has 0.
    void transformersTrainsGpt2WithDropout()
    {
        QCOMPARE(asked({"model=gpt2", "sequence=64", "library=transformers"}).number("dropout"), 0.1);
        QCOMPARE(asked({"model=bert-base-uncased", "sequence=64", "library=lightning"}).number("dropout"), 0.1);
        QCOMPARE(asked({"model=gpt2", "sequence=64", "library=nanogpt"}).number("dropout"), 0.0);
        QCOMPARE(asked({"model=llama-2-7b", "library=transformers"}).number("dropout"), 0.0);
    }

    /// FSDPStrategy(activation_checkpointing_policy={Block}) with several GPUs, lora_r=8, lora_dropout=0.05.
    void litGptChecksBlocksWhereItShards()
    {
        const Parameters one = asked({"model=llama-2-7b", "library=litgpt", "adapter=lora"});
        QCOMPARE(one.choice("checkpointing"), std::string("none"));
        QCOMPARE(one.number("adapter_dropout"), 0.05);
        const Parameters four = asked({"model=llama-2-7b", "library=litgpt", "zero=3", "data_parallel=4"});
        QCOMPARE(four.choice("checkpointing"), std::string("block"));
        QCOMPARE(four.choice("sharding_implementation"), std::string("fsdp1"));
    }

    void theAnswerSaysWhatWasImplied()
    {
        const auto prediction = trainingMemory().predict(*findDevice("nvidia-a100-80gb"),
                                                         asked({"model=tinyllama-1.1b", "batch=1", "sequence=256",
                                                                "library=torchtune", "precision=fp32", "advice=none"}));
        QVERIFY(prediction);
        const QString source = QString::fromStdString(findFigure(prediction->figures, "peak_allocated")->why->source);
        QVERIFY2(source.contains("library=torchtune implies"), qPrintable(source));
        QVERIFY(source.contains("loss=chunked:8") && source.contains("recipes/configs/llama3"));
        QVERIFY(!source.contains("precision=bf16")); // fp32 was said
    }

    /// EngineArgs: block_size=16; common/common.h: cache_type_k and cache_type_v are F16.
    void enginesImplyTheirCaches()
    {
        const Experiment& serving = **findExperiment("inference-memory");
        const auto vllm = askedParameters(serving, {"model=llama-3-8b", "library=vllm"});
        QVERIFY(vllm);
        QCOMPARE(vllm->integer("cache_page"), std::int64_t(16));
        QCOMPARE(vllm->choice("logits"), std::string("last"));
        const auto llamaCpp = askedParameters(serving, {"model=llama-3-8b", "library=llama.cpp", "logits=all"});
        QVERIFY(llamaCpp);
        QCOMPARE(llamaCpp->choice("kv_precision"), std::string("fp16"));
        QCOMPARE(llamaCpp->choice("logits"), std::string("all")); // which was said
        QVERIFY(servingDefaults(*askedParameters(serving, {"model=llama-3-8b"})).empty());
    }

    /// README.md: Llama 3.1 8B, QLoRA of all linear layers with rank 32, one text: 78,475 tokens on 24 GB.
    void unslothsLongestTextOn24Gb()
    {
        const auto prediction =
            trainingMemory().predict(*findDevice("nvidia-rtx-4090"),
                                     asked({"model=llama-3.1-8b", "batch=1", "sequence=78475", "adapter=qlora",
                                            "adapter_rank=32", "library=unsloth", "attention=flash", "advice=none"}));
        QVERIFY(prediction);
        const double error = predictedValue(*prediction, "peak_allocated") / 24e9 - 1;
        QVERIFY2(std::abs(error) < 0.05, qPrintable(QString::number(error)));
    }
};

QTEST_APPLESS_MAIN(TestLibraryDefaults)
#include "tst_library_defaults.moc"
