// SPDX-License-Identifier: Apache-2.0
// Losses. cross_entropy keeps its log-probabilities and the targets. With a vocabulary of 128,000 these and the logits
// are often the largest tensors of a step, which two kernels avoid that take the last hidden states and the head's
// matrix:
//
//   Liger Kernel's fused_linear_cross_entropy (liger_kernel/ops/fused_linear_cross_entropy.py, 0.8.5): takes rows in
//   chunks of the next power of two of rows / ceil(V / H), computes logits, loss and the logits' gradient in place, and
//   from it the gradients of rows and matrix, which are kept in place of anything else.
//   Cut cross-entropy (Wijmans et al. 2024, cut_cross_entropy/cce.py): a tile of logits on the chip at a time; keeps
//   the rows and the matrix, and of every token the log of the sum of exponentials.
//
// What both take besides while they run: core/training/fused_loss.cpp. Left out: label smoothing and z-loss, which add
// a number a token.
//
// Where tensor parallelism divides the vocabulary, PyTorch's loss_parallel() runs both operators' backward in Python at
// nll_loss (core/training/fused_loss.cpp); log_softmax passes that gradient on. Its forward, which is never the peak
// beside that, is left as the kernel's.
#include "core/network/builder.h"

#include <array>

namespace memscape {

// Under autocast log_softmax stays in the logits' type, as cross_entropy needs it; nll_loss is
// on the float list and packs a float copy (aten/src/ATen/native/LossNLL.cpp).
Variable NetworkBuilder::crossEntropy(Variable logits, Variable target)
{
    const EagerRules& rules = m_options.rules; // a CPU's autocast casts the argument of cross_entropy
    const Variable input = rules.emulatedAutocast || rules.isOnCpu ? highPrecision(logits) : logits;
    const bool isDivided = m_options.tensorParallel > 1;
    const Variable held = logSoftmaxOf(input, isDivided); // an argument of nll_loss
    Variable probabilities = highPrecision(held);
    logits.reset();
    if (!ok())
        return {};
    const DType dtype = probabilities.dtype();
    begin(OperatorKind::NllLoss, std::array{probabilities.id(), target.id()}).attribute = std::int64_t(isDivided);
    const TensorId result = addOutput({Layout(Shape{}), dtype}, true);
    const TensorId weight = addOutput({Layout(Shape{}), dtype}, false);
    for (const TensorId tensor : {probabilities.id(), target.id(), weight})
        save(tensor);
    return settled(Variable(*this, result), probabilities, target);
}

Variable NetworkBuilder::mseLoss(Variable x, Variable target)
{
    const Variable held = x;
    x = highPrecision(std::move(x));
    target = highPrecision(std::move(target));
    if (!ok())
        return {};
    Variable result =
        record(OperatorKind::MseLoss, {x.id(), target.id()}, {Layout(Shape{}), x.dtype()}, {x.id(), target.id()});
    if (ok() && m_options.rules.isOnCpu) // made for every element, then told to be a number (Loss.cpp)
        m_graph.storages[m_graph.tensors[result.id()].storage].bytes = x.layout().elements() * elementBytes(x.dtype());
    return settled(std::move(result), x, target);
}

Variable NetworkBuilder::ligerLoss(Variable rows, Variable weight, Variable target)
{
    if (!ok())
        return {};
    const DType product = m_options.autocast.value_or(rows.dtype());
    begin(OperatorKind::LigerLoss, std::array{rows.id(), weight.id(), target.id()}).attribute = std::int64_t(product);
    const TensorId result = addOutput({Layout(Shape{}), DType::Float32}, true);
    std::array<TensorId, 2> gradients{noTensor, noTensor};
    const std::array<const Variable*, 2> operands{&rows, &weight};
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (i == 0 || needsGradient(weight))
            gradients[i] = addOutput({Layout(operands[i]->shape()), operands[i]->dtype()}, false);
    for (const TensorId gradient : gradients)
        if (gradient != noTensor)
            save(gradient);
    return settled(Variable(*this, result), rows, weight, target);
}

Variable NetworkBuilder::inPlaceLoss(Variable logits, Variable target)
{
    if (!ok())
        return {};
    const std::int64_t rows = target.layout().elements();
    begin(OperatorKind::InPlaceLoss, std::array{logits.id(), target.id()});
    const TensorId result = addOutput({Layout(Shape{}), DType::Float32}, true);
    const TensorId sums = addOutput({Layout(Shape{rows}), DType::Float32}, false);
    for (const TensorId tensor : {logits.id(), target.id(), sums})
        save(tensor);
    return settled(Variable(*this, result), logits, target);
}

Variable NetworkBuilder::cutLoss(Variable rows, Variable weight, Variable target)
{
    if (ok() && (rows.dtype() != weight.dtype() || elementBytes(rows.dtype()) != 2))
        refuse("network.loss", "cut cross-entropy takes hidden states and a matrix in half precision",
               "choose precision=bf16-mixed or bf16, or loss=liger");
    if (!ok())
        return {};
    begin(OperatorKind::CutLoss, std::array{rows.id(), weight.id(), target.id()});
    const TensorId result = addOutput({Layout(Shape{}), DType::Float32}, true);
    const TensorId exponentials = addOutput({Layout(Shape{rows.size(0)}), DType::Float32}, false);
    const TensorId averages = addOutput({Layout(Shape{weight.size(0)}), DType::Float32}, false);
    for (const TensorId tensor : {rows.id(), weight.id(), target.id(), exponentials, averages})
        save(tensor);
    return settled(Variable(*this, result), rows, weight, target);
}

} // namespace memscape
