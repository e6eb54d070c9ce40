// SPDX-License-Identifier: Apache-2.0
// What options of a training step change of its memory and time: updates in backward, optimizers without gradients, an
// NVMe, torch.compile, activations on the host.
#include "core/base/file.h"
#include "core/device/catalogue.h"
#include "core/experiments/training-memory/training_memory.h"
#include "tests/support/devices.h"
#include "tests/support/training_case.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

class TestTrainingOptions : public QObject
{
    Q_OBJECT

private slots:
    void maskedTokensAloneMakeLogits()
    {
        const QTemporaryDir folder; // the published models are without a head
        const std::string config = folder.filePath("config.json").toStdString();
        QVERIFY(writeFileAtomically(config, R"({"model_type": "bert", "architectures": ["BertForMaskedLM"],
            "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12})"));
        const auto predicted = [&config](const char* share) {
            return *trainingMemory().predict(
                h200(),
                trainingWith({"model=" + config, "batch=8", "sequence=512", "precision=fp32", "advice=none",
                              std::string("masked_share=") + share}));
        };
        const Prediction all = predicted("0"), masked = predicted("0.15");
        // The peak of either step is in its loss: logits of 30,522 words in fp32, their log-probabilities and the
        // gradients of both, of 4,096 tokens and of 614 of them. The rest of the head is of 768 columns.
        const double logits = 4.0 * 30522 * (4096 - 614);
        const double less = predictedValue(all, "peak_allocated") - predictedValue(masked, "peak_allocated");
        QVERIFY2(less > 4 * logits && less < 4.2 * logits, std::to_string(less / logits).c_str());
        // Forward and backward of two matrices.
        const double products = 3 * 2.0 * (4096 - 614) * 768 * (30522 + 768);
        const double sooner = predictedValue(all, "step_time") - predictedValue(masked, "step_time");
        QVERIFY2(sooner > products / h200().flopRate("fp32"), std::to_string(sooner).c_str());
        const double counted = predictedValue(all, "parameter_count");
        QCOMPARE(predictedValue(masked, "parameter_count"), counted);
    }

    /// Lv et al. 2023: weights alone are between steps, and a gradient of one parameter at a time.
    void lomoKeepsNoGradients()
    {
        const auto predicted = [](const char* optimizer) {
            return *trainingMemory().predict(h200(),
                                             trainingWith({"model=gpt2", "batch=1", "sequence=16", "precision=bf16",
                                                           "advice=none", std::string("optimizer=") + optimizer}));
        };
        const Prediction lomo = predicted("lomo"), sgd = predicted("sgd");
        QCOMPARE(predictedValue(lomo, "gradients"), 0.0);
        QCOMPARE(predictedValue(lomo, "optimizer_state"), 0.0);
        QVERIFY(predictedValue(sgd, "gradients") > 2.0 * 124e6);
        const double largest = 50257.0 * 768; // the embedding, and fp32 copies of it and its gradient
        QVERIFY(predictedValue(lomo, "peak_allocated") < predictedValue(sgd, "peak_allocated") + 8 * largest);
    }

    /// What bitsandbytes pages is no tensor of the device: GPT-2's matrices; its vectors have 99,999 elements at most.
    void pagedStateIsSaidToBeElsewhere()
    {
        const auto predicted = [](const char* optimizer) {
            return *trainingMemory().predict(h200(),
                                             trainingWith({"model=gpt2", "batch=1", "sequence=128", "precision=bf16",
                                                           "advice=none", std::string("optimizer=") + optimizer}));
        };
        const Prediction paged = predicted("paged-adamw"), eight = predicted("adam-8bit");
        QVERIFY(!findFigure(eight.figures, "host_memory"));
        const double vectors = 12 * (2 * 768 + 2304 + 768 + 2 * 768 + 3072 + 768) + 2 * 768; // Hugging Face: gpt2
        QCOMPARE(predictedValue(paged, "optimizer_state"), 8 * vectors);
        QCOMPARE(predictedValue(paged, "host_memory"), 8 * (124439808 - vectors));
        QVERIFY(predictedValue(paged, "peak_allocated") < predictedValue(eight, "peak_allocated") - 1.9 * 124e6);
    }

    /// ZeRO-Infinity: 12 bytes a parameter of master weights and moments, and 4 of the gradient, are swapped through
    /// four buffers; the update waits for 2 · 12 + 4 bytes.
    void stateOnAnNvmeLeavesTheHost()
    {
        const auto predicted = [](const char* nvme) {
            return trainingMemory().predict(
                h200(),
                trainingWith({"model=gpt2", "batch=1", "sequence=16", "precision=bf16-mixed", "zero=3",
                              "sharding_implementation=deepspeed", "offload=gradients", "advice=none",
                              std::string("nvme_bandwidth=") + nvme}));
        };
        const auto host = predicted("0"), slow = predicted("1e9"), fast = predicted("1e12");
        QVERIFY(host && slow && fast);
        const double parameters = 124439808;                             // Hugging Face: gpt2
        QCOMPARE(predictedValue(*host, "host_memory"), 14 * parameters); // with half gradients
        QVERIFY(!findFigure(host->figures, "nvme"));
        QCOMPARE(predictedValue(*slow, "nvme"), 16 * parameters);
        QCOMPARE(predictedValue(*slow, "host_memory"), 4 * 4 * parameters); // one sub-group: four buffers of all
        QCOMPARE(predictedValue(*slow, "peak_allocated"), predictedValue(*host, "peak_allocated"));
        QCOMPARE(predictedValue(*fast, "step_time"), predictedValue(*host, "step_time"));
        const double waited = predictedValue(*slow, "step_time") - predictedValue(*host, "step_time"),
                     read = 28 * parameters / 1e9;
        QVERIFY2(waited > 0.95 * read && waited <= read, qPrintable(QString::number(waited / read)));
        const auto wrong =
            trainingMemory().predict(h200(), trainingWith({"model=gpt2", "offload=optimizer", "nvme_bandwidth=1e9"}));
        QVERIFY(!wrong);
        QCOMPARE(wrong.error().place, std::string("nvme_bandwidth"));
    }

    /// Real steps of nine networks allocate what is predicted (tst_pytorch_networks). No two gradients lie side by
    /// side, under FSDP 2 no two units' pieces, and weights are updated once all the same.
    void anUpdateInBackwardLeavesNoGradients()
    {
        const auto predicted = [](std::vector<std::string> more, const char* key) {
            more.insert(more.end(),
                        {"model=llama-3.2-1b", "batch=1", "sequence=256", "precision=bf16", "attention=flash",
                         "optimizer=adamw", "checkpointing=block", "advice=none"});
            const auto prediction = trainingMemory().predict(h200(), trainingWith(more));
            return prediction ? predictedValue(*prediction, key) : memscape::nan;
        };
        for (const char* ranks : {"data_parallel=1", "data_parallel=4"}) {
            const char* const zero = ranks == std::string_view("data_parallel=1") ? "zero=0" : "zero=3";
            const double gradients = predicted({ranks, zero}, "gradients");
            const double saved = predicted({ranks, zero}, "peak_allocated")
                - predicted({ranks, zero, "optimizer_in_backward=true"}, "peak_allocated");
            QVERIFY2(saved > 0.5 * gradients, qPrintable(QString::number(saved / gradients)));
            QCOMPARE(predicted({ranks, zero, "optimizer_in_backward=true"}, "optimizer_state"),
                     predicted({ranks, zero}, "optimizer_state"));
        }
    }

    void compilingKeepsLessAndRunsFewerKernels()
    {
        const auto predicted = [](const char* compile, const char* more, const char* key) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=llama-3.2-1b", "batch=2", "sequence=256", "precision=bf16", "attention=flash",
                              "advice=none", std::string("compile=") + compile, *more ? more : "accumulation=1"}));
            return prediction ? predictedValue(*prediction, key) : memscape::nan;
        };
        QVERIFY(predicted("inductor", "", "activations") < 0.8 * predicted("none", "", "activations"));
        QVERIFY(predicted("inductor", "", "step_time") < predicted("none", "", "step_time"));
        // Backward returns all gradients at its end: a second micro-batch has them twice.
        const auto more = [&](const char* compile) {
            return predicted(compile, "accumulation=2", "peak_allocated") - predicted(compile, "", "peak_allocated");
        };
        QVERIFY(more("inductor") > more("none"));
    }

    /// Eager cross_entropy of bf16 logits: log_softmax, then two gradients as large beside it, and the logits
    /// themselves where they are named. GPT-2 of 50,257 words, 8 × 1024 tokens, PyTorch 2.6 on an A100: 5.90 GiB
    /// reserved eagerly, 6.19 compiled (rasbt/LLMs-from-scratch, ch05/10_llm-training-speed).
    void aLossApartFromTheCompiledNetworkIsEager()
    {
        const auto peak = [](const char* compile) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=gpt2", "batch=8", "sequence=1024", "precision=bf16", "attention=flash",
                              "logits_fp32=false", "optimizer_implementation=fused", "advice=none", compile}));
            return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
        };
        const double logits = 2.0 * 8 * 1024 * 50257;
        const double apart = peak("compile=logits"), within = peak("compile=inductor");
        QVERIFY2(apart > within + logits && apart < within + 3 * logits,
                 qPrintable(QString::number((apart - within) / logits)));
    }

    /// tools/autograd/derivatives.yaml until PyTorch 1.10: _softmax_backward_data(grad, result, dim, self). BERT base
    /// has 12 layers of 12 heads.
    void olderPyTorchKeepsInputsOfSoftmaxAndGradients()
    {
        const auto predicted = [](const char* version, const char* key, const char* more) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=bert-base-uncased", "batch=4", "sequence=512", "precision=fp32", "attention=eager",
                              "optimizer=adam", "advice=none", version, more}));
            return prediction ? predictedValue(*prediction, key) : memscape::nan;
        };
        const double scores = 12.0 * 12 * 4 * 512 * 512 * 4;
        QCOMPARE(predicted("pytorch=1.10", "activations", "accumulation=1")
                     - predicted("pytorch=1.13", "activations", "accumulation=1"),
                 scores);
        // zero_grad() keeps gradients by default until 2.0: they lie through forward, at whose end the peak is.
        const double kept = predicted("pytorch=1.13", "peak_allocated", "zero_grad_frees=auto");
        QCOMPARE(kept, predicted("pytorch=1.13", "peak_allocated", "zero_grad_frees=false"));
        QVERIFY(kept > predicted("pytorch=2.1", "peak_allocated", "zero_grad_frees=auto"));
    }

    /// NewGELUActivation (transformers/activations.py) keeps x, 0.5 x, tanh's result and that plus 1, where the fused
    /// kernel keeps x: three times 4 × 768 numbers a token and layer. GPT-2 large so, 4 × 512 tokens, fp16: 8,103 MB
    /// (docs, model_doc/gpt2.md), predicted 2 % less.
    void transformersWritesOutGpt2sGelu()
    {
        const auto activations = [](const char* library) {
            const auto prediction =
                trainingMemory().predict(h200(),
                                         trainingWith({"model=gpt2", "batch=2", "sequence=256", "precision=fp32",
                                                       "attention=flash", "advice=none", library}));
            return prediction ? predictedValue(*prediction, "activations") : memscape::nan;
        };
        QCOMPARE(activations("library=transformers") - activations("library=auto"), 12.0 * 3 * 2 * 256 * 4 * 768 * 4);
    }

    void whatIsNotModelledWithCompileIsRefused()
    {
        const auto predictedWith = [](const char* compile, const std::vector<std::string>& others) {
            std::vector<std::string> all{"model=gpt2", "batch=2", "sequence=64", "advice=none", compile};
            all.insert(all.end(), others.begin(), others.end());
            return trainingMemory().predict(h200(), trainingWith(all));
        };
        for (const char* const compile : {"compile=inductor", "compile=layers"})
            for (const std::vector<std::string>& others :
                 std::vector<std::vector<std::string>>{{"pipeline_parallel=2", "accumulation=2"},
                                                       {"adapter=lora", "base_precision=int8"},
                                                       {"adapter=lora", "base_precision=gptq"},
                                                       {"offload=gradients"},
                                                       {"precision=fp8"},
                                                       {"checkpointing=selective"}}) {
                const auto prediction = predictedWith(compile, others);
                QVERIFY2(!prediction && prediction.error().place == "compile", others.back().c_str());
            }
        // What layers that are compiled alone allow, and a whole network does not.
        for (const std::vector<std::string>& others :
             std::vector<std::vector<std::string>>{{"checkpointing=block"},
                                                   {"checkpointing=operators"},
                                                   {"zero=3", "data_parallel=4"},
                                                   {"tensor_parallel=2"}}) {
            const auto refused = predictedWith("compile=inductor", others);
            QVERIFY2(!refused && refused.error().hint == "choose compile=layers", others.front().c_str());
            QVERIFY2(predictedWith("compile=layers", others), others.front().c_str());
        }
        QVERIFY(predictedWith("compile=layers", {"adapter=qlora"}));
    }

    /// The less is computed again, the more is kept.
    void whatIsKeptTakesMemoryAndSavesTime()
    {
        const auto predicted = [](const char* checkpointing, const char* key) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=smollm2-360m", "batch=4", "sequence=2048", "precision=bf16-mixed",
                              "attention=flash", "loss=chunked:8", "advice=none", checkpointing}));
            return prediction ? predictedValue(*prediction, key) : memscape::nan;
        };
        const char *const none = "checkpointing=none", *const block = "checkpointing=block";
        for (const char* const between : {"checkpointing=second", "checkpointing=operators"}) {
            QVERIFY2(predicted(block, "peak_allocated") < predicted(between, "peak_allocated"), between);
            QVERIFY2(predicted(between, "peak_allocated") < predicted(none, "peak_allocated"), between);
            QVERIFY2(predicted(none, "step_time") < predicted(between, "step_time"), between);
            QVERIFY2(predicted(between, "step_time") < predicted(block, "step_time"), between);
        }
    }

    void layersThatAreCompiledTakeLessWithCheckpointsAndShards()
    {
        const auto predicted = [](std::vector<std::string> more, const char* key) {
            more.insert(more.end(),
                        {"model=llama-3.2-1b", "batch=4", "sequence=1024", "precision=bf16", "attention=flash",
                         "keeps_logits=false", "loss=chunked:8", "optimizer_implementation=fused", "advice=none"});
            const auto prediction = trainingMemory().predict(h200(), trainingWith(more));
            return prediction ? predictedValue(*prediction, key) : memscape::nan;
        };
        for (const std::vector<std::string>& plan : std::vector<std::vector<std::string>>{
                 {},
                 {"checkpointing=block"},
                 {"zero=3", "data_parallel=8"},
                 {"zero=3", "data_parallel=8", "checkpointing=block", "sharding_implementation=fsdp1"},
                 {"adapter=lora"},
                 {"adapter=qlora", "checkpointing=every:2"}}) {
            std::vector<std::string> compiled = plan;
            compiled.emplace_back("compile=layers");
            const char* const name = plan.empty() ? "alone" : plan.back().c_str();
            QVERIFY2(predicted(compiled, "peak_allocated") < predicted(plan, "peak_allocated"), name);
            QVERIFY2(predicted(compiled, "step_time") < predicted(plan, "step_time"), name);
            QCOMPARE(predicted(compiled, "weights"), predicted(plan, "weights"));
        }
    }

    void fp8NeedsAGpuThatHasIt()
    {
        // Transformer Engine, fp8.py: compute capability 8.9 or later.
        const auto answer = [](const char* device) {
            return trainingMemory().predict(*findDevice(device), trainingWith({"precision=fp8", "advice=none"}));
        };
        QVERIFY(answer("nvidia-h200"));
        QVERIFY(answer("nvidia-rtx-4090"));
        QVERIFY(!answer("nvidia-a100-80gb"));
        QCOMPARE(answer("nvidia-a100-80gb").error().place, std::string("precision"));
    }

    /// torchao, float8_linear.py: save_for_backward(input_hp, weight_hp_t), which are what bf16 keeps, and no copy of a
    /// weight; its casts are there for a product. Transformer Engine keeps an input's byte, and two of a weight's.
    void torchaosFp8KeepsWhatBf16Keeps()
    {
        const auto figureOf = [](const char* key, std::vector<std::string> more) {
            more.insert(more.end(),
                        {"model=llama-3.2-1b", "batch=2", "sequence=512", "attention=flash", "loss=chunked:8",
                         "keeps_logits=false", "advice=none"});
            return predictedValue(*trainingMemory().predict(h200(), trainingWith(more)), key);
        };
        const double matrices = 16. * (2048 * 2048 * 2 + 2 * 2048 * 512 + 3 * 2048 * 8192), embedding = 128256. * 2048;
        const double half = figureOf("weights", {"precision=bf16-mixed"});
        QCOMPARE(figureOf("weights", {"precision=fp8", "fp8_scaling=tensorwise"}), half);
        QVERIFY(figureOf("weights", {"precision=fp8"}) - half >= 2 * matrices);
        QVERIFY(figureOf("weights", {"precision=fp8"}) - half <= 2 * (matrices + embedding));
        const double kept = figureOf("activations", {"precision=bf16-mixed"});
        const double own = figureOf("activations", {"precision=fp8", "fp8_scaling=tensorwise"});
        QVERIFY(own >= kept && own - kept <= 2 * 512 * 8192); // a cast of the widest input
        QVERIFY(figureOf("activations", {"precision=fp8"}) < kept);
        QVERIFY(trainingMemory().predict(
            h200(), trainingWith({"precision=fp8", "fp8_scaling=tensorwise", "compile=layers", "advice=none"})));
    }

    void activationsGoToTheHostAndBack()
    {
        // 16 layers keep their input, 2 · 512 · 2048 in bf16 = 4 MiB each. The last norm packs its input in fp32 for
        // the square and for the product, the root of each row's mean twice, and its result before the weight: five
        // tensors, which are still on the device when backward begins.
        const auto with = [](std::vector<std::string> more) {
            if (std::none_of(more.begin(), more.end(),
                             [](const auto& one) { return one.starts_with("checkpointing"); }))
                more.emplace_back("checkpointing=block");
            more.insert(more.end(),
                        {"model=llama-3.2-1b", "batch=2", "sequence=512", "precision=bf16", "attention=flash",
                         "keeps_logits=false", "advice=none"});
            return answerTraining(h200(), trainingWith(more));
        };
        constexpr std::int64_t input = 4 << 20, layers = 16, rows = 2 * 512,
                               norm = 2 * 2 * input + 2 * 4 * rows + input;
        const auto kept = with({}), sent = with({"activation_offload=true"});
        QVERIFY(kept && sent);
        QCOMPARE(sentBytes(sent->collectives), double(2 * (layers * input + norm)));
        QCOMPARE(sentBytes(kept->collectives), 0.0);
        QCOMPARE(liveAtBackward(*kept) - liveAtBackward(*sent), layers * input);
        QCOMPARE(sent->time.total, kept->time.total); // 128 MiB over PCIe take less than the passes
        // Nothing is left behind, whatever is compiled, accumulated and checkpointed.
        for (const std::vector<std::string>& more :
             std::vector<std::vector<std::string>>{{},
                                                   {"checkpointing=none"},
                                                   {"compile=layers"},
                                                   {"compile=layers", "checkpointing=none"},
                                                   {"checkpointing=every:2", "accumulation=3"},
                                                   {"zero=3", "data_parallel=4"},
                                                   {"adapter=qlora"}}) {
            std::vector<std::string> offloaded = more;
            offloaded.emplace_back("activation_offload=true");
            const auto before = with(more), after = with(offloaded);
            QVERIFY2(before && after, more.empty() ? "" : more.front().c_str());
            const auto left = [](const TrainingAnswer& answer) {
                std::int64_t bytes = 0;
                for (const Event& event : answer.simulation.trace.events())
                    bytes += event.change();
                return bytes;
            };
            QCOMPARE(left(*after), left(*before));
            QVERIFY(after->simulation.allocatedBytes() <= before->simulation.allocatedBytes());
        }
    }

    /// Over a link that is slower than the passes the step waits for it.
    void aSlowLinkHoldsTheStep()
    {
        Device device = h200();
        for (Link& link : device.links)
            if (link.id == "host")
                link.bandwidth = {1e8, Evidence::Measured};
        const auto with = [&](const char* offload) {
            return *answerTraining(
                device,
                trainingWith({"model=llama-3.2-1b", "batch=2", "sequence=512", "precision=bf16", "attention=flash",
                              "advice=none", "checkpointing=block", std::string("activation_offload=") + offload}));
        };
        const StepTime kept = with("false").time, sent = with("true").time;
        const double copy = double(16 * (4 << 20) + 5 * (4 << 20) + 2 * 4 * 2 * 512) / 1e8; // as above
        QVERIFY2(qAbs(sent.total - (kept.optimizer + kept.dispatch + 2 * copy)) < 1e-9 * sent.total,
                 qPrintable(QString::number(sent.total)));
        for (Link& link : device.links)
            link.bandwidth = {};
        const auto unknown = answerTraining(
            device, trainingWith({"model=gpt2", "batch=2", "sequence=64", "advice=none", "activation_offload=true"}));
        QVERIFY(unknown && unknown->timeMissing && unknown->timeMissing->place == "activation_offload");
    }

    void activationsStayWhereThereIsNoOtherHost()
    {
        for (const auto& [device, more] : {std::pair{"cpu", "optimizer=sgd"},
                                           {"nvidia-h200", "pipeline_parallel=2"},
                                           {"nvidia-h200", "checkpointing=selective"},
                                           {"nvidia-h200", "checkpointing=operators"},
                                           {"nvidia-h200", "compile=inductor"}}) {
            const auto prediction =
                trainingMemory().predict(*findDevice(device),
                                         trainingWith({"model=gpt2", "batch=2", "sequence=64", "advice=none",
                                                       "accumulation=2", "activation_offload=true", more}));
            QVERIFY2(!prediction && prediction.error().place == "activation_offload", more);
        }
    }

    /// Bytes of each logit at the peak. The gradient of log_softmax is made of its result and of the loss's: 3 × 4, and
    /// what the loop names, 2 in half and 4 as transformers before 4.46 returned them. From 4.46 to 4.49 forward has
    /// more where nothing is named: 2 in half, 4 in float, 4 of `logits[..., :-1, :].contiguous()`, 4 of log_softmax.
    void olderVersionsCopyTheLogits()
    {
        const auto peak = [](const char* version, const char* kept) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=tinyllama-1.1b", "batch=4", "sequence=2048", "precision=bf16", "attention=flash",
                              "optimizer=sgd", "checkpointing=block", "advice=none", version, kept}));
            return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
        };
        const double logits = 4 * 2048 * 32000;
        const double named = peak("transformers=4.50", "keeps_logits=true");
        QCOMPARE(named - peak("transformers=4.50", "keeps_logits=false"), 2 * logits);
        QCOMPARE(peak("transformers=4.38", "keeps_logits=true") - named, 2 * logits);
        QCOMPARE(peak("transformers=4.45", "keeps_logits=true"), peak("transformers=4.38", "keeps_logits=true"));
        QCOMPARE(peak("transformers=4.46", "keeps_logits=false"), named);
    }

    /// The loops that were read: litgpt/finetune/lora.py names `logits` until the next batch, Trainer.compute_loss() of
    /// transformers returns the loss alone, _loss_step() of torchtune says `del logits`.
    void loopsKeepOrFreeTheLogits()
    {
        const auto peak = [](const char* loop, const char* kept) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=tinyllama-1.1b", "batch=4", "sequence=2048", "precision=bf16", "attention=flash",
                              "optimizer=sgd", "checkpointing=block", "advice=none", loop, kept}));
            return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
        };
        for (const char* loop : {"library=auto", "library=litgpt"}) {
            QCOMPARE(peak(loop, "keeps_logits=auto"), peak(loop, "keeps_logits=true"));
            QVERIFY(peak(loop, "keeps_logits=auto") > peak(loop, "keeps_logits=false"));
        }
        for (const char* loop : {"library=transformers", "loss=chunked:8"}) {
            QCOMPARE(peak(loop, "keeps_logits=auto"), peak(loop, "keeps_logits=false"));
            QVERIFY(peak(loop, "keeps_logits=auto") < peak(loop, "keeps_logits=true"));
        }
    }

    /// GPT-BigCode of transformers 4.48.1 on a CPU, 49,280 words in bf16: with the logits, their copy without the last
    /// token and log_softmax 3.16 times the logits are alive at the end of forward, and never more (TorchDispatchMode,
    /// live storages). Since 4.49 backward has log_softmax and two gradients in float beside them. T5 has no float copy
    /// ever.
    void olderDecodersKeepTheTypeOfTheirLogits()
    {
        const auto peak = [](const char* model, std::vector<std::string> more) {
            more.insert(more.end(),
                        {std::string("model=") + model, "batch=4", "sequence=2048", "precision=bf16", "attention=flash",
                         "optimizer=sgd", "checkpointing=block", "advice=none", "keeps_logits=false"});
            const auto prediction = trainingMemory().predict(h200(), trainingWith(more));
            return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
        };
        const double logits = 2.0 * 4 * 2048 * 49152;
        const double newer = peak("starcoderbase-1b", {"transformers=4.50"});
        for (const char* version : {"transformers=4.46", "transformers=4.45"})
            QVERIFY(std::abs((newer - peak("starcoderbase-1b", {version})) / logits - 3) < 0.02);
        QCOMPARE(peak("starcoderbase-1b", {"transformers=4.46", "logits_fp32=false"}),
                 peak("starcoderbase-1b", {"transformers=4.46"}));
        QCOMPARE(peak("t5-large", {"logits_fp32=false"}), peak("t5-large", {}));
    }

    /// modeling_opt.py of 4.43: torch.max(scores, the least number) keeps them for backward, 2 bytes each in fp16
    /// (saved tensors of transformers 4.43.4 on a CPU: one more of batch × heads × tokens² a layer).
    void olderOptKeepsItsScores()
    {
        const auto kept = [](const char* version, const char* attention) {
            const auto prediction =
                trainingMemory().predict(h200(),
                                         trainingWith({"model=opt-350m", "batch=2", "sequence=256", "precision=fp16",
                                                       "phase=forward", "advice=none", version, attention}));
            return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
        };
        const double scores = 24 * 2 * 16 * 256.0 * 256;
        QCOMPARE(kept("transformers=4.45", "attention=eager") - kept("transformers=4.50", "attention=eager"),
                 2 * scores);
        QCOMPARE(kept("transformers=4.45", "attention=flash"), kept("transformers=4.50", "attention=flash"));
    }

    /// LitGPT's config_hub/finetune/README.md: 16.24 GB for one micro-batch a step. bitsandbytes 0.41 has the inputs of
    /// 22 layers in its nodes, (2048 + 2048 + 2048 + 5632) numbers a token, and of the head; the embedding has no
    /// gradient.
    void aNamedLossKeepsInputsOf4BitLayersIntoTheNextStep()
    {
        const auto predicted = [](const char* version, const char* key) {
            const auto prediction = trainingMemory().predict(
                h200(),
                trainingWith({"model=tinyllama-1.1b", "batch=8", "sequence=512", "library=litgpt", "precision=bf16",
                              "attention=flash", "adapter=lora", "base_precision=nf4", "adapter_rank=32",
                              "adapter_targets=query,key,value,projection,mlp", "adapter_dropout=0.05", "advice=none",
                              version}));
            return prediction ? predictedValue(*prediction, key) : memscape::nan;
        };
        const auto later = [&](const char* version) {
            return predicted(version, "peak_allocated") - predicted(version, "first_step_peak");
        };
        const double measured = 16.24e9, tokens = 8 * 512;
        QVERIFY(std::abs(predicted("bitsandbytes=0.41", "peak_allocated") / measured - 1) < 0.04);
        const double inputs = tokens * 2 * 22 * (3 * 2048 + 5632); // of the head instead of the first layer
        const double more =
            later("bitsandbytes=0.41") - later("bitsandbytes=0.44"); // where the first step has less alive
        QVERIFY2(more > 0.9 * inputs && more < inputs, qPrintable(QString::number(more / inputs)));
    }
};

QTEST_GUILESS_MAIN(TestTrainingOptions)
#include "tst_training_options.moc"
