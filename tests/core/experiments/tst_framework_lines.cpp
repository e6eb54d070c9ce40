// SPDX-License-Identifier: Apache-2.0
// The lines that a page offers to copy: a Python program as far as Python can tell, a configuration whose
// every key is one of DeepSpeed's documentation, and in both what was chosen.
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QtTest>

#include <nlohmann/json.hpp>

#include <set>

using namespace memscape;

namespace {

using Assignments = std::vector<std::string>;

std::vector<Snippet> snippets(const char* id, const Assignments& assignments, const char* device = "nvidia-h200")
{
    const Experiment& experiment = **findExperiment(id);
    const auto parameters = resolve(experiment.schema(), assignments);
    if (!parameters)
        qWarning("%s", parameters.error().message.c_str());
    return experiment.snippets(*findDevice(device), *parameters);
}

QString lines(const char* id, const Assignments& assignments, const char* device = "nvidia-h200")
{
    return QString::fromStdString(snippets(id, assignments, device).front().text);
}

Json config(const Assignments& assignments)
{
    return Json::parse(snippets("training-memory", assignments).at(1).text);
}

QString notes(const Assignments& assignments)
{
    QString all;
    const auto made = snippets("training-memory", assignments);
    for (const std::string& note : made.at(1).notes)
        all += QString::fromStdString(note) + '\n';
    return all;
}

/// Every value of every choice and flag beside the defaults, and numbers that turn things on.
std::vector<Assignments> settingsOf(const Experiment& experiment)
{
    std::vector<Assignments> all{{}};
    for (const ParameterSpec& spec : experiment.schema()) {
        for (const ChoiceValue& choice : spec.choices)
            all.push_back({spec.key + "=" + choice.key});
        if (spec.kind == ParameterKind::Flag)
            all.insert(all.end(), {{spec.key + "=true"}, {spec.key + "=false"}});
    }
    for (const char* one : {"zero=1", "zero=2", "zero=3", "data_parallel=4", "accumulation=8", "tensor_parallel=2",
                            "dropout=0.1", "strategy=every:4", "chain=uniform:8", "chain=model:gpt2", "format=fp16"}) {
        if (resolve(experiment.schema(), Assignments{one}))
            all.push_back({one});
    }
    const Assignments combined[] = {
        {"zero=3", "offload=parameters", "precision=fp16-autocast", "clipping=true", "optimizer=momentum"},
        {"optimizer=muon", "precision=fp16-autocast", "clipping=true", "accumulation=4"},
        {"zero=3", "offload=gradients", "sharding_implementation=deepspeed", "nvme_bandwidth=5e9"},
        {"attention=flash", "checkpointing=selective", "phase=forward"},
        {"format=fp16", "operation=train"},
        {"format=fp8-e4m3", "operation=train"}};
    for (const Assignments& one : combined) {
        if (resolve(experiment.schema(), one))
            all.push_back(one);
    }
    return all;
}

/// What Python says of the programs, one complaint a line; they come apart at a zero byte.
QByteArray pythonSays(const QByteArray& programs)
{
    QProcess python;
    python.start("python3",
                 {"-c",
                  "import sys\n"
                  "for text in sys.stdin.read().split('\\0'):\n"
                  "    try: compile(text, 'lines', 'exec')\n"
                  "    except SyntaxError as e: print(e, text)\n"});
    python.write(programs);
    python.closeWriteChannel();
    if (!python.waitForFinished(60'000) || python.exitCode() != 0)
        return "python3 failed: " + python.readAllStandardError();
    return python.readAllStandardOutput();
}

const std::set<std::string> documented{"train_batch_size",
                                       "zero_optimization.overlap_comm",
                                       "zero_optimization.reduce_bucket_size",
                                       "zero_optimization.stage3_param_persistence_threshold",
                                       "zero_optimization.stage3_prefetch_bucket_size",
                                       "train_micro_batch_size_per_gpu",
                                       "gradient_accumulation_steps",
                                       "gradient_clipping",
                                       "optimizer",
                                       "optimizer.type",
                                       "optimizer.params",
                                       "optimizer.params.adam_w_mode",
                                       "optimizer.params.momentum",
                                       "fp16",
                                       "fp16.enabled",
                                       "fp16.loss_scale",
                                       "bf16",
                                       "bf16.enabled",
                                       "bf16.bf16_master_weights_and_grads",
                                       "bf16.bf16_optimizer_states",
                                       "torch_autocast",
                                       "torch_autocast.enabled",
                                       "torch_autocast.dtype",
                                       "data_types",
                                       "data_types.grad_accum_dtype",
                                       "zero_optimization",
                                       "zero_optimization.stage",
                                       "zero_optimization.offload_optimizer",
                                       "zero_optimization.offload_optimizer.device",
                                       "zero_optimization.offload_optimizer.pin_memory",
                                       "zero_optimization.offload_optimizer.nvme_path",
                                       "zero_optimization.offload_optimizer.buffer_count",
                                       "zero_optimization.offload_param",
                                       "zero_optimization.offload_param.device",
                                       "zero_optimization.offload_param.pin_memory"};

QString undocumented(const Json& object, const std::string& prefix = {})
{
    for (const auto& [key, value] : object.items()) {
        const std::string path = prefix.empty() ? key : prefix + "." + key;
        if (!documented.contains(path))
            return QString::fromStdString(path);
        if (const QString inner = value.is_object() ? undocumented(value, path) : QString(); !inner.isEmpty())
            return inner;
    }
    return {};
}

} // namespace

class TestFrameworkLines : public QObject
{
    Q_OBJECT

private slots:
    void everySettingIsAPythonProgram()
    {
        if (QStandardPaths::findExecutable("python3").isEmpty())
            QSKIP("there is no python3 here to ask");
        QByteArray programs;
        for (const char* id : {"training-memory", "batch-size", "checkpoint", "precision"}) {
            for (const Assignments& setting : settingsOf(**findExperiment(id))) {
                for (const char* device : {"cpu", "nvidia-h200"})
                    programs += lines(id, setting, device).toUtf8() + '\0';
            }
        }
        programs.chop(1);
        QCOMPARE(pythonSays(programs), QByteArray());
        QVERIFY(!pythonSays("def forward(:").isEmpty()); // it reports a syntax error
    }

    void everyConfigurationHasDocumentedKeysAlone()
    {
        for (const Assignments& setting : settingsOf(**findExperiment("training-memory"))) {
            const auto made = snippets("training-memory", setting);
            if (made.size() < 2)
                continue;
            const Json json = Json::parse(made[1].text, nullptr, false);
            QVERIFY(json.is_object());
            QCOMPARE(undocumented(json), QString());
        }
        QCOMPARE(undocumented(Json{{"zero_optimization", {{"stages", 1}}}}), QString("zero_optimization.stages"));
    }

    void whatIsChosenIsWritten_data()
    {
        QTest::addColumn<QStringList>("setting");
        QTest::addColumn<QString>("line");
        const auto row = [](const char* setting, const char* line) {
            QTest::newRow(setting) << QString(setting).split(' ') << QString(line);
        };
        row("batch=6", "micro_batch = 6\n");
        row("precision=bf16-autocast", "with torch.autocast(\"cuda\", dtype=torch.bfloat16):");
        row("precision=fp16-autocast", "scaler = torch.amp.GradScaler(\"cuda\")");
        row("precision=fp16-autocast clipping=true",
            "    scaler.unscale_(optimizer)\n    torch.nn.utils.clip_grad_norm_(");
        row("precision=bf16", "model = model.to(\"cuda\", dtype=torch.bfloat16)");
        row("precision=bf16-under-autocast", "model = model.to(\"cuda\", dtype=torch.bfloat16)");
        row("precision=bf16-under-autocast batch=6", "with torch.autocast(\"cuda\", dtype=torch.bfloat16):");
        row("precision=fp16-under-autocast", "# Nothing scales the loss: GradScaler refuses fp16 gradients.");
        row("precision=bf16-mixed", "# PyTorch's optimizers keep no fp32 master copy");
        row("precision=fp16", "# Nothing scales the loss: GradScaler refuses fp16 gradients.");
        row("precision=fp16-autocast zero=3 sharding_implementation=fsdp1", "scaler = ShardedGradScaler()");
        row("precision=fp16-autocast zero=3", "scaler = torch.amp.GradScaler(\"cuda\")");
        row("offload=gradients accumulation=4", "# It takes each gradient away while backward runs");
        row("precision=fp8", "# PyTorch has no FP8 layers of its own");
        row("optimizer=adamw", "torch.optim.AdamW(model.parameters(), lr=learning_rate, foreach=True)");
        row("optimizer=sgd optimizer_implementation=loop",
            "torch.optim.SGD(model.parameters(), lr=learning_rate, foreach=False)");
        row("optimizer=momentum optimizer_implementation=fused",
            "torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9, fused=True)");
        row("optimizer=adam-8bit", "bitsandbytes.optim.Adam8bit(");
        row("optimizer=paged-adamw", "bitsandbytes.optim.PagedAdamW(");
        row("optimizer=paged-adam-8bit", "bitsandbytes.optim.PagedAdam8bit(");
        row("optimizer=adam-4bit", "torchao.optim.Adam4bit(");
        row("optimizer=adam-fp8", "torchao.optim.AdamFp8(");
        row("optimizer=muon", "torch.optim.Muon(");
        row("optimizer=galore optimizer_rank=64", "{\"rank\": 64, \"update_proj_gap\": 200,");
        row("optimizer=galore", "galore_torch.GaLoreAdamW(groups(model.parameters()), lr=learning_rate)");
        row("optimizer=apollo", "apollo_torch.APOLLOAdamW(groups(model.parameters()), lr=learning_rate)");
        row("optimizer=adalomo", "lomo_optim.AdaLomo(model, lr=learning_rate)");
        row("optimizer=lomo", "optimizer.fused_backward(loss, learning_rate)");
        row("checkpointing=every:4", "every = 4\n");
        row("checkpointing=block-reentrant", "checkpoint(segment, hidden, use_reentrant=True)");
        row("checkpointing=sqrt", "every = max(1, round(math.sqrt(len(blocks))))");
        row("checkpointing=selective", "checkpoint(attention_core, query, key, value, use_reentrant=False)");
        row("attention=flash", "sdpa_kernel(SDPBackend.FLASH_ATTENTION)");
        row("attention=efficient", "sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION)");
        row("attention=eager", "attn_implementation=\"eager\"");
        row("accumulation=8", "accumulation = 8\n");
        row("zero=1 data_parallel=4", "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW");
        row("zero=2 data_parallel=4", "sharding_strategy=ShardingStrategy.SHARD_GRAD_OP");
        row("zero=3 offload=parameters sharding_implementation=fsdp1",
            "ShardingStrategy.FULL_SHARD, cpu_offload=CPUOffload(offload_params=True)");
        row("zero=3 data_parallel=4",
            "fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, "
            "reduce_dtype=torch.float32))");
        row("zero=3 data_parallel=4 precision=fp32", "    fully_shard(block)\nfully_shard(model)\n");
        row("zero=3 data_parallel=4 clipping=true", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)");
        row("zero=2 data_parallel=4 precision=bf16 sharding_implementation=fsdp2",
            "fully_shard(model, reshard_after_forward=False)");
        row("zero=3 offload=parameters", "offload_policy=CPUOffloadPolicy()");
        row("zero=2 data_parallel=4", "# Predicted is DeepSpeed, whose configuration is another export.");
        row("zero=3 data_parallel=4 accumulation=4 no_sync=true", "model.set_requires_gradient_sync(is_last)");
        row("zero=3 data_parallel=4 accumulation=4 no_sync=true sharding_implementation=fsdp1",
            "with contextlib.nullcontext() if is_last else model.no_sync():");
        row("zero=3 data_parallel=4 sharding_implementation=fsdp1",
            "auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(");
        row("zero=3 data_parallel=4 sharding_implementation=fsdp1 fsdp_wrap=size fsdp_min_params=20000",
            "auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=20000), ");
        row("zero=3 data_parallel=4 sharding_implementation=fsdp1 fsdp_wrap=whole",
            "FullyShardedDataParallel(model, sharding_strategy=");
        row("data_parallel=4 gradient_as_bucket_view=true",
            "DistributedDataParallel(model, gradient_as_bucket_view=True)");
        row("offload=gradients", "CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, offload_gradients=True");
        row("data_parallel=2", "DistributedDataParallel(model)");
        row("precision=fp32 tf32=all", "torch.set_float32_matmul_precision(\"high\")");
        row("precision=fp32 tf32=none", "torch.backends.cudnn.allow_tf32 = False");
        row("attention=cudnn", "sdpa_kernel(SDPBackend.CUDNN_ATTENTION)");
        row("tensor_parallel=2", "parallelize_module");
        row("tensor_parallel=2 sequence_parallel=true async_tensor_parallel=true",
            "torch._inductor.config._micro_pipeline_tp = True");
        row("pipeline_parallel=2 accumulation=4", "and Schedule1F1B(stages, n_microbatches=accumulation)");
        row("pipeline_parallel=2 pipeline_schedule=interleaved virtual_stages=3 accumulation=4",
            "ScheduleInterleaved1F1B");
        row("context_parallel=2 attention=flash", "torch.distributed.tensor.experimental.context_parallel");
        row("data_parallel=4 expert_parallel=2", "2 ranks share the experts");
        row("data_parallel=4 tensor_parallel=2 sequence_parallel=true expert_parallel=8 whole_experts=true",
            "Megatron's --expert-tensor-parallel-size 1");
        row("data_parallel=8 data_parallel_replicate=2 zero=3",
            "mesh = init_device_mesh(\"cuda\", (2, 4), mesh_dim_names=(\"replicate\", \"shard\"))");
        row("data_parallel=8 data_parallel_replicate=2 zero=3 sharding_implementation=fsdp1",
            "ShardingStrategy.HYBRID_SHARD");
        row("adapter=lora adapter_rank=8", "adapters = LoraConfig(r=8)\n");
        row("adapter=lora", "model = get_peft_model(model, adapters, autocast_adapter_dtype=False)\n");
        row("adapter=lora precision=bf16", "model = get_peft_model(model, adapters)\n");
        row("adapter=lora adapter_targets=q_proj,o_proj adapter_dropout=0.05",
            "LoraConfig(r=16, target_modules=[\"q_proj\", \"o_proj\"], lora_dropout=0.05)");
        row("adapter=lora modules_to_save=embed_tokens,lm_head adapter_variant=dora",
            "modules_to_save=[\"embed_tokens\", \"lm_head\"], use_dora=True)");
        row("adapter=lora adapter_targets=attention", "target_modules=[\"attn.c_attn\", \"attn.c_proj\"]");
        row("adapter=lora adapter_variant=rslora", "use_rslora=True");
        row("adapter=lora adapter_variant=lora-fa", "if \"lora_A\" in name:");
        row("adapter=lora base_precision=int8", "quantization = BitsAndBytesConfig(load_in_8bit=True)");
        row("adapter=qlora base_precision=gptq", "quantization = GPTQConfig(bits=4, use_exllama=False)");
        row("adapter=qlora", "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)");
        row("adapter=qlora", "LoraConfig(r=16, target_modules=\"all-linear\")");
        row("adapter=lora base_precision=int8 quantized_head=true",
            "BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=[])");
        row("adapter=qlora bitsandbytes=0.41", "# python3 -m pip install bitsandbytes==0.41.0");
        row("adapter=qlora base_precision=nf4 compute_precision=fp32",
            "bnb_4bit_use_double_quant=False, bnb_4bit_compute_dtype=torch.float32)");
        row("adapter=qlora checkpointing=block",
            "model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=True)");
        row("adapter=ia3", "adapters = IA3Config()\n");
        row("adapter=ia3 adapter_targets=c_attn,mlp.c_proj",
            "IA3Config(target_modules=[\"c_attn\", \"mlp.c_proj\"], feedforward_modules=[\"mlp.c_proj\"])");
        row("adapter=vera adapter_rank=256 adapter_dropout=0.1", "adapters = VeraConfig(r=256, vera_dropout=0.1)\n");
        row("adapter=norms", "from peft import LNTuningConfig, get_peft_model");
        row("adapter=prompt virtual_tokens=8", "PromptTuningConfig(task_type=\"CAUSAL_LM\", num_virtual_tokens=8)");
        row("adapter=prefix", "PrefixTuningConfig(task_type=\"CAUSAL_LM\", num_virtual_tokens=20)");
        row("model=llama-3.2-1b transformers=4.38", "# python3 -m pip install \"transformers>=4.38,<4.45\"");
        row("model=llama-3.2-1b transformers=4.45", "# python3 -m pip install \"transformers>=4.45,<4.46\"");
        row("model=llama-3.2-1b transformers=4.49", "# python3 -m pip install \"transformers>=4.48,<4.50\"");
        row("model=llama-3.2-1b transformers=4.54", "# python3 -m pip install \"transformers>=4.54,<5.24\"");
        row("allocator=expandable", "os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"expandable_segments:True\"");
        row("compile=inductor", "model = torch.compile(model)");
        row("compile=inductor-2.0", "model = torch.compile(model)");
        row("optimizer_in_backward=true", "    parameter.register_post_accumulate_grad_hook(step)\n");
        row("optimizer_in_backward=true optimizer=muon",
            "(torch.optim.Muon if is_hidden(name, parameter) else torch.optim.AdamW)([parameter], lr=learning_rate)");
        row("compile=layers checkpointing=block", "block.compile()");
        row("compile=layers", "loss = cross_entropy(logits.float().flatten(0, -2), targets.flatten()) / accumulation");
        row("compile=layers loss=chunked:4",
            "return torch.nn.functional.cross_entropy(logits.float(), targets, "
            "reduction=reduction)");
        row("activation_offload=true", "with OffloadActivations():");
        row("zero_grad_frees=false", "zero_grad(set_to_none=False)");
        row("pytorch=1.13", "zero_grad(set_to_none=False)");
        row("zero_grad_frees=late", "optimizer.zero_grad(set_to_none=True)\n        loss.backward()");
        row("compile=logits", "model = torch.compile(model)");
        row("optimizer=galore-8bit", "galore_torch.GaLoreAdamW8bit(groups(model.parameters()), lr=learning_rate)");
        row("keeps_logits=false", "loss = model(inputs, targets) / accumulation");
        row("library=transformers", "loss = model(inputs, targets) / accumulation");
        row("library=transformers keeps_logits=true", "logits = model(inputs)");
        row("loss=chunked:8", "        del logits\n");
        row("loss=in-place", "loss = fast_cross_entropy_loss(logits, targets) / accumulation");
        row("operators=all-fused", "apply_liger_kernel_to_");
        row("loss=chunked:4", "for piece, wanted in zip(logits, targets.chunk(4, dim=1)))");
        row("loss=liger", "LigerFusedLinearCrossEntropyLoss()(head, hidden.flatten(0, -2), targets.flatten())");
        row("loss=cut", "linear_cross_entropy(hidden, head, targets)");
        row("phase=inference", "with torch.no_grad():");
    }
    void whatIsChosenIsWritten()
    {
        QFETCH(QStringList, setting);
        QFETCH(QString, line);
        Assignments texts{"sequence=512"};
        for (const QString& one : setting)
            texts.push_back(one.toStdString());
        if (!setting.first().startsWith("model="))
            texts.emplace_back("model=gpt2");
        const QString all = lines("training-memory", texts).replace(QRegularExpression("\n *# "), " # ").simplified();
        const QString wanted = line.simplified();
        QVERIFY2(all.contains(wanted), qPrintable(lines("training-memory", texts)));
    }

    void whatMeansNothingIsNotWritten()
    {
        const QString text = lines("training-memory", {"model=mlp:784,512,10", "attention=flash", "sequence=4096"});
        QVERIFY(!text.contains("sdpa") && !text.contains("4096"));
    }

    void foreignTextIsNeverCode()
    {
        const auto linesOf = [](const char* id, const char* key, const std::string& foreign) {
            const Experiment& experiment = **findExperiment(id);
            Parameters parameters = *resolve(experiment.schema(), Assignments{});
            parameters.set(key, foreign); // unchecked: what is typed has no line ends
            return QString::fromStdString(experiment.snippets(*findDevice("cpu"), parameters).front().text);
        };
        const QString text = linesOf("training-memory", "model", "a\nimport os  # \"\\");
        QVERIFY(!text.contains("\nimport os"));
        QVERIFY(text.contains("build_model(\"a\\nimport os  # \\\"\\\\\")"));
        const QString chain = linesOf("checkpoint", "chain", "x\nimport os");
        QVERIFY(!chain.contains("\nimport os"));
    }

    void deepspeedSaysWhatWasChosen()
    {
        const Json json =
            config({"batch=4", "accumulation=8", "data_parallel=16", "zero=2", "offload=gradients", "clipping=true"});
        QCOMPARE(json["train_micro_batch_size_per_gpu"].get<int>(), 4);
        QCOMPARE(json["train_batch_size"].get<int>(), 512);
        QCOMPARE(json["zero_optimization"]["stage"].get<int>(), 2);
        QCOMPARE(json["zero_optimization"]["offload_optimizer"]["device"].get<std::string>(), std::string("cpu"));
        QVERIFY(!json["zero_optimization"].contains("offload_param"));
        QVERIFY(json["bf16"]["enabled"].get<bool>() && !json.contains("fp16"));
        QCOMPARE(json["gradient_clipping"].get<double>(), 1.0);
        QCOMPARE(config({"clipping=false"})["gradient_clipping"].get<double>(), 0.0); // DeepSpeed 0.19 clips otherwise
        QVERIFY(config({"precision=fp16-autocast"})["torch_autocast"]["dtype"] == "float16");
        QVERIFY(!config({"optimizer=adam"})["optimizer"]["params"]["adam_w_mode"].get<bool>());
    }

    // What Accelerate 1.15 reads as a configuration of the kind that was chosen.
    void accelerateSaysWhatWasChosen()
    {
        const auto yaml = [](const Assignments& assignments) {
            return QString::fromStdString(snippets("training-memory", assignments).at(2).text);
        };
        const QString second = yaml({"zero=3", "data_parallel=8", "checkpointing=block"});
        for (const char* line :
             {"distributed_type: FSDP\n", "mixed_precision: bf16\n", "num_processes: 8\n", "  fsdp_version: 2\n",
              "  fsdp_reshard_after_forward: true\n", "  fsdp_activation_checkpointing: true\n"})
            QVERIFY2(second.contains(line), qPrintable(second));
        const QString first = yaml({"zero=2", "data_parallel=16", "sharding_implementation=fsdp1", "precision=bf16"});
        for (const char* line :
             {"  fsdp_version: 1\n", "  fsdp_reshard_after_forward: SHARD_GRAD_OP\n", "num_machines: 2\n",
              "mixed_precision: 'no'\n", "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"})
            QVERIFY2(first.contains(line), qPrintable(first));
        const QString bySize = yaml({"zero=3", "data_parallel=2", "sharding_implementation=fsdp1", "fsdp_wrap=size"});
        QVERIFY(bySize.contains("  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n  fsdp_min_num_params: 100000000\n"));
        const QString whole = yaml({"zero=3", "data_parallel=2", "fsdp_wrap=whole"});
        QVERIFY(whole.contains("  fsdp_auto_wrap_policy: NO_WRAP\n") && !whole.contains("min_num_params"));
        const QString deepspeed = yaml({"zero=2", "data_parallel=4", "offload=optimizer", "accumulation=8"});
        for (const char* line :
             {"distributed_type: DEEPSPEED\n", "  zero_stage: 2\n", "  gradient_accumulation_steps: 8\n",
              "  offload_optimizer_device: cpu\n", "  offload_param_device: none\n"})
            QVERIFY2(deepspeed.contains(line), qPrintable(deepspeed));
        QVERIFY(yaml({}).contains("distributed_type: 'NO'\n"));
        QVERIFY(yaml({"data_parallel=2"}).contains("distributed_type: MULTI_GPU\n"));
    }

    void torchrunStartsAProcessForEachGpu()
    {
        const auto line = [](const Assignments& assignments) {
            return QString::fromStdString(snippets("training-memory", assignments).at(3).text);
        };
        const QString one = line({"batch=4", "zero=3", "data_parallel=8", "clipping=true"});
        QVERIFY(one.startsWith("torchrun --nproc-per-node=8 train.py \\\n"));
        QVERIFY(one.contains("--per_device_train_batch_size 4 ") && one.contains("--max_grad_norm 1.0"));
        QVERIFY(one.contains("--fsdp \\\n    --fsdp_config '{\"version\": 2, \"reshard_after_forward\": true"));
        QVERIFY(line({"zero=3", "data_parallel=8", "fsdp_wrap=whole"}).contains("\"auto_wrap_policy\": \"NO_WRAP\"}'"));
        QVERIFY(line({"data_parallel=32"}).startsWith("torchrun --nnodes=4 "));
        QVERIFY(line({"zero=1", "data_parallel=8"}).contains("--deepspeed deepspeed.json"));
        QVERIFY(!line({}).contains("fsdp"));
    }

    void whatDeepspeedCannotSayIsANote()
    {
        QCOMPARE(config({"offload=gradients", "zero=0"})["zero_optimization"]["stage"].get<int>(), 2);
        QVERIFY(notes({"offload=gradients", "zero=0"}).contains("stage 2 in place of 0"));
        QVERIFY(notes({"optimizer=lion"}).contains("Lion cannot be named in a configuration"));
        QVERIFY(notes({"checkpointing=block"}).contains("Checkpointing is the model's"));
        QVERIFY(!notes({}).contains("Checkpointing"));
        QCOMPARE(snippets("training-memory", {}, "cpu").size(), std::size_t(1)); // it is for GPUs
        QCOMPARE(snippets("training-memory", {"phase=inference"}).size(), std::size_t(1));
    }

    void segmentsOfAChain()
    {
        QVERIFY(lines("checkpoint", {"chain=mlp:24x1024"})
                    .contains("torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(24)"));
        QVERIFY(lines("checkpoint", {"strategy=every:4"}).contains("starts = list(range(0, len(stages), 4))"));
        QVERIFY(lines("checkpoint", {"strategy=every:4"}).contains("if end == len(stages)"));
        QVERIFY(
            !lines("checkpoint", {"strategy=every:4", "last_segment=recomputed"}).contains("if end == len(stages)"));
        QVERIFY(lines("checkpoint", {"strategy=optimal"}).contains("PyTorch has no solver and no form"));
        QVERIFY(!lines("checkpoint", {"strategy=none"}).contains("checkpoint("));
    }

    void formatsOfAProduct()
    {
        QVERIFY(lines("precision", {"format=bf16", "m=64", "n=32"}).contains("m, n, k = 64, 32, 64"));
        QVERIFY(lines("precision", {"format=tf32"}).contains("set_float32_matmul_precision(\"high\")"));
        const QString scaled =
            lines("precision", {"format=fp16", "operation=train", "loss_scale=1024", "growth_interval=50"});
        QVERIFY(scaled.contains("GradScaler(\"cuda\", init_scale=1024, growth_interval=50)"));
        QVERIFY(lines("precision", {"format=fp8-e4m3"}).contains("# PyTorch stores FP8"));
    }
};

QTEST_MAIN(TestFrameworkLines)
#include "tst_framework_lines.moc"
