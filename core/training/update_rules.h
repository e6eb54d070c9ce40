// SPDX-License-Identifier: Apache-2.0
// The temporaries of each optimizer's update, in the order in which torch/optim makes and drops
// them. Used by optimizer_step.cpp, which explains the model.
#pragma once

#include "core/training/optimizer_step.h"
#include "core/training/temporary.h"

namespace memscape {

class UpdateRules
{
public:
    UpdateRules(Trace& trace, const Plan& plan, OptimizerBlocks& blocks);
    void run();

private:
    using Indices = std::vector<std::size_t>;

    void adam(const Indices& tensors);
    void adamLoop(const Indices& tensors);
    void adamForeach(const Indices& tensors);
    void adamWrittenOut(const Indices& tensors);
    BlockId decayedMoment(std::size_t index, BlockId old, bool isSquared) const;
    void writtenOutUpdate(std::size_t index) const;
    void lion(const Indices& tensors);
    void muon(const Indices& tensors);
    void galore(const Indices& tensors);
    void galore8bit(const Indices& tensors);
    void apollo(const Indices& tensors);
    void lomo(const Indices& tensors);
    void adaLomo(const Indices& tensors);
    std::int64_t momentElements(std::size_t index) const;  ///< of a moment of GaLore and APOLLO
    Temporary whole(std::size_t index, NameId name) const; ///< in fp32
    void adafactorLoop(const Indices& tensors);
    void adafactorForeachMatrices(const Indices& tensors, std::vector<Temporary>& updates);
    void adafactorForeachVectors(const Indices& tensors, std::vector<Temporary>& updates);
    void adafactorForeach(const Indices& tensors);

    const ParameterTensor& tensor(std::size_t index) const { return m_blocks.updated[index]; }
    std::int64_t elementBytes(std::size_t index) const; ///< of what is updated
    /// A temporary of so many elements, in the precision of what is updated.
    Temporary make(std::size_t index, std::int64_t elements, NameId name) const;
    Temporary like(std::size_t index, NameId name) const;                        ///< of the tensor's own size
    Temporary half(std::size_t index, std::int64_t elements, NameId name) const; ///< in bf16
    void number(std::int64_t castBytes) const;             ///< a kernel in place that is given a number
    void numbers(const Indices& tensors, int times) const; ///< such kernels, each over all tensors
    Temporary quotientOf(std::size_t index, NameId name) const;
    void countStepsForeach(const Indices& tensors) const;
    void norm(std::size_t index) const;            ///< tensor.norm(2).item()
    std::int64_t rows(std::size_t index) const;    ///< elements / size of the last dimension
    std::int64_t columns(std::size_t index) const; ///< elements / size of the one before
    void newtonSchulz(std::size_t index, Temporary& update) const;

    Trace& m_trace;
    const Plan& m_plan;
    OptimizerBlocks& m_blocks;
    std::int64_t m_elementBytes;
    NameId m_scalar;
};

} // namespace memscape
