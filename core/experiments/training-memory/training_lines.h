// SPDX-License-Identifier: Apache-2.0
// A training step's plan as PyTorch, line by line: training_lines.cpp writes the model, what is wrapped around it and
// one update as a function, optimizer_lines.cpp the optimizer.
#pragma once

#include "core/experiments/common/python_lines.h"
#include "core/experiments/memory/memory_parameters.h"

#include <set>
#include <string>
#include <string_view>

namespace memscape {

/// How torch.optim (or another library) calls an optimizer and writes its update.
struct OptimizerName;

class TrainingLines
{
public:
    TrainingLines(const Device& device, const Parameters& parameters);
    std::string text();

private:
    bool means(const std::string& key) const { return !m_idle.contains(key); }
    bool is(const char* key, std::string_view value) const { return m_parameters.choice(key) == value; }
    std::int64_t integer(const char* key) const { return m_parameters.integer(key); }
    bool isByFsdp2() const { return m_zero >= 2 && m_sharded == ShardedBy::Fsdp2; }
    /// FSDP shards fp32 weights and gathers half copies.
    bool isMixedByFsdp() const { return isByFsdp2() && m_precision.ends_with("-mixed"); }
    /// By GradScaler, which refuses gradients that are fp16 themselves.
    bool isScaled() const { return m_precision == "fp16-autocast"; }
    std::string_view halfType() const { return m_precision.starts_with("fp16") ? "torch.float16" : "torch.bfloat16"; }

    void writeSizes();
    void writeModel();
    void writeCheckpointing();
    /// torchtitan's policy, which has one run of a block in mind: products are counted in each.
    void writeOperatorCheckpoints();
    bool compilesLayers() const { return means("compile") && is("compile", "layers"); }
    bool isChunked() const { return m_parameters.choice("loss").starts_with("chunked:"); }

    void writeCompile();
    std::string crossEntropy() const;
    void writeDistribution();
    /// What ranks of a pipeline, of a sequence and of experts need is in PyTorch, but not one wrapper.
    std::string wrapPolicy();
    void writeSharedWork();
    void writeFullyShard();
    std::string styleArguments(const OptimizerName& name) const;
    void writeOptimizer();
    bool isLomo() const { return is("optimizer", "lomo") || is("optimizer", "adalomo"); }
    bool isGalore() const { return is("optimizer", "galore") || is("optimizer", "galore-8bit"); }

    void writeProjected(const OptimizerName& name, const std::string& arguments);
    /// What is projected is a group of its own.
    void writeProjection();
    void writeScaler();
    void writeOffloaded(const OptimizerName& name, const std::string& arguments);
    void writeSharded(const OptimizerName& name, const std::string& arguments);
    /// An optimizer for each parameter, called as soon as its gradient is there.
    void writeHooks(std::string optimizer);
    void writeIsHidden();
    void writeMuon();
    /// The contexts of a forward pass: autocast and the kernel of attention.
    std::string contexts(bool noGradient);
    void noteAttention(int indent);
    void writeForward(int indent);
    void writeOtherLoss(const std::string& start);
    /// The loop's head; how far its body is indented.
    int writeMicroBatches();
    void writeStep();
    void writeUpdate();
    std::string zeroGrad() const;
    void writePass();

    const Parameters& m_parameters;
    std::string m_device;
    bool m_freesGradients;
    const std::string& m_precision;
    const std::string& m_offload;
    const std::string& m_phase;
    std::int64_t m_zero;
    ShardedBy m_sharded;
    std::set<std::string> m_idle;
    PythonLines m_lines;
};

} // namespace memscape
