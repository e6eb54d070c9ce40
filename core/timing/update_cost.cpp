// SPDX-License-Identifier: Apache-2.0
// What an update reads and writes, counted over the operators of torch/optim: a product in place is
// a read and a write (2), addcmul of three operands 4, and so on, in elements of the updated
// tensor.
#include "core/timing/operator_time.h"
#include "core/training/lora.h"
#include "core/training/optimizer_step.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr double chunksOfLaunch = 320; ///< chunks that one launch takes

struct Passes
{
    double elements = 0; ///< reads and writes per updated element
    double operators = 1;
};

/// mul_(p) lerp_(m, g) mul_(v) addcmul_(v, g, g) sqrt(v) div_ add_ addcdiv_(p, m, d)
constexpr Passes adamByOperators{2 + 3 + 2 + 3 + 2 + 2 + 2 + 4, 8};
/// b1*m (1-b1)*g + b2*v g**2 (1-b2)*.. + lr*m sqrt + / -= lr*wd*p -=
constexpr Passes adamWrittenOut{2 + 2 + 3 + 2 + 2 + 2 + 3 + 2 + 2 + 2 + 3 + 3 + 2 + 3, 14};

Passes passesOf(OptimizerKind optimizer, UpdateStyle style)
{
    const bool isFused = style == UpdateStyle::Fused;
    switch (optimizer) {
    case OptimizerKind::None: return {0, 0};
    case OptimizerKind::Sgd: return {3, 1};
    case OptimizerKind::Momentum: // b.mul_ b.add_(g) p.add_(b)
        return isFused ? Passes{5, 1} : Passes{8, 3};
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
        if (style == UpdateStyle::WrittenOut)
            return adamWrittenOut;
        return isFused ? Passes{7, 1} : adamByOperators;
    case OptimizerKind::PagedAdamW: return {7, 1};
    case OptimizerKind::PagedAdam8bit:
    case OptimizerKind::Adam8bit: // g, p twice; two byte-sized moments twice and their scales
        return {3 + 4 * (1 + 4.0 / 256) / 4, 1};
    case OptimizerKind::Adam4bit: return {3 + 4 * (0.5 + 4.0 / 128) / 4, 1}; // the same of half a byte
    case OptimizerKind::AdamFp8: return {3 + 4 * (1 + 4.0 / 256) / 4, 1};
    case OptimizerKind::Adafactor: // norm, row and column norms, product, div_ clamp_ rsqrt_ mul_
                                   // norm add_
        return {1 + 1 + 1 + 1 + 2 + 2 + 2 + 3 + 1 + 3, 12};
    case OptimizerKind::Lion: // mul_ b1*m (1-b1)*g + sign_ add_ mul_ add_
        return isFused ? Passes{5, 1} : Passes{2 + 2 + 2 + 3 + 2 + 3 + 2 + 3, 8};
    case OptimizerKind::GaLore8bit: // and a copy of the weight, put aside
        return {1 + 2 + 1 + 2 + 3, 7};
    case OptimizerKind::GaLore: return {1 + 1 + 2 + 3, 9};          // g; back, scaled, added; moments are small
    case OptimizerKind::Apollo: return {1 + 2 + 1 + 2 + 2 + 3, 16}; // g; scaled, its norm, limited, scaled, added
    case OptimizerKind::Lomo: return {2 + 2 + 3 + 2, 4};            // casts, add_, copy_
    case OptimizerKind::AdaLomo: return {2 + 2 + 2 + 2 + 1 + 3 + 1 + 2 + 2 + 1 + 3 + 2, 18};
    case OptimizerKind::Muon: // lerp_ lerp copy and norm in half, then products; mul_ add_
        return {3 + 3 + 2 + 2 + 3, 7};
    }
    return {};
}

/// Five Newton-Schulz steps in bf16: two Gram products of the smaller side and one with the matrix.
double orthogonalizationFlops(const ParameterTensor& matrix)
{
    const double side = double(std::min(matrix.shape[0], matrix.shape[1]));
    return 5 * (2 * 2 * side * double(matrix.elements) + 2 * side * side * side);
}

} // namespace

OperatorCost updateCost(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    OperatorCost cost;
    if (!plan.hasOptimizer() || plan.offload != Offload::None)
        return cost;
    for (const ParameterTensor& tensor : updatedTensors(parameters, plan)) {
        const PrecisionRule rule = precisionRule(tensor, plan);
        const bool isMuon = plan.optimizer == OptimizerKind::Muon;
        const bool byMuon = isMuon && isOrthogonalized(tensor);
        const Passes passes = passesOf(isMuon && !byMuon ? OptimizerKind::AdamW : plan.optimizer, plan.update);
        const double elements = double(tensor.elements);
        cost.bytes += passes.elements * elements * double(rule.updated());
        if (rule.master) // gradients to fp32, and the new master weights to half
            cost.bytes += elements * double((plan.gradientBytes() == 4 ? 0 : 2 + 4) + 4 + 2);
        if (plan.precision == Precision::Fp16Autocast || plan.precision == Precision::Fp16Mixed)
            cost.bytes += 2 * elements * 4; // the loss scale: GradScaler's, Megatron's and DeepSpeed's divide in fp32
        if (plan.clipsGradients)
            cost.bytes += 3 * elements * double(plan.gradientBytes());
        cost.flops += byMuon ? orthogonalizationFlops(tensor) : elements;
        cost.isProduct |= byMuon;
        const bool isByTensor = plan.updatesEarly() || plan.optimizer == OptimizerKind::Adam4bit
            || plan.optimizer == OptimizerKind::AdamFp8;
        cost.kernels += !isByTensor && (plan.update == UpdateStyle::Foreach || plan.update == UpdateStyle::Fused)
            ? passes.operators * elements / double(normChunk) / chunksOfLaunch
            : passes.operators;
    }
    cost.kernels = std::max(cost.kernels, 1.0);
    cost.dtype = cost.isProduct ? DType::BFloat16 : DType::Float32;
    return cost;
}

double hostUpdateBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    if (!plan.hasOptimizer())
        return 0;
    double bytes = 0;
    const double passes = passesOf(plan.optimizer, UpdateStyle::Fused).elements;
    for (const ParameterTensor& tensor : updatedTensors(parameters, plan))
        bytes += passes * double(tensor.elements) * 4;
    return bytes;
}

} // namespace memscape
