// SPDX-License-Identifier: Apache-2.0
// What an optimizer keeps between steps, for each parameter of n elements with e bytes each (e is 4
// for fp32 weights or an fp32 master copy, 2 for pure half):
//   sgd            nothing
//   momentum       n e
//   adam, adamw    2 n e (and a step count of 4 B: on the host, which may be the device; there when fused)
//   adam-8bit      2 n + 2 × 4 ceil(n / 256): one byte each and an fp32 scale per block of 256
//                  (bitsandbytes since 0.44, its pull request 1365; blocks of 2048 before); below
//                  4096 elements 2 × 4 n; and two tables of 256 fp32 codes for all
//   adam-4bit      n + 2 × 4 n / 128 + 2 × 64: half a byte each, an fp32 scale per block of 128, and a table of 16
//                  fp32 codes for each moment (torchao/optim/subclass_4bit.py); what is no whole number of blocks, or
//                  below 4096 elements, has 2 n e
//   adam-fp8       2 n + 2 × 4 n / 256: E4M3, an fp32 scale per block of 256 (subclass_fp8.py); else 2 n e
//   paged-adamw    2 × 4 n in managed memory from 100,000 elements on, which PyTorch's counters do not see and whose
//                  pages leave for the host when the device is full (bitsandbytes, Optimizer8bit.get_state_buffer)
//   paged-adam-8bit the same of 2 n; its scales stay on the device
//   adafactor      (n / columns + n / rows) e over the last two dimensions, n e for vectors
//   lion           n e
//   galore         matrices of m × n, rank r: two moments of r max(m, n) e, and the projection: in half r min(m, n) e,
//                  in fp32 a view of all singular vectors, min(m, n)² e; else 2 n e (galore-torch 1.0)
//   apollo         the same moments, a random projection of r min(m, n) e and a norm of e (apollo-torch 1.0.3)
//   lomo           nothing
//   adalomo        4 (m + n) for matrices, 4 n for vectors (lomo-optim 0.1.1)
//   muon           n e for hidden matrices; embeddings, output head and vectors are left to AdamW
// Sources: torch/optim of PyTorch 2.x; Dettmers et al. 2022 (arXiv:2110.02861) and bitsandbytes;
// Chen et al. 2023 (Lion); Zhao et al. 2024 (GaLore); Zhu et al. 2024 (APOLLO); Lv et al. 2023 (LOMO, AdaLomo).
// Checked against the states that PyTorch itself makes.
//
// Left out: AMSGrad, Nesterov (no state), GradScaler's three scalars; that transformers' Trainer keeps
// 32-bit state for embeddings under 8-bit Adam; when managed pages move, and how long that takes.
#pragma once

#include "core/base/few.h"
#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

#include <span>

namespace memscape {

/// One tensor of the optimizer's state.
struct StateTensor
{
    std::string_view name; ///< "exp_avg", "row_var", …
    std::int64_t bytes = 0;
};

constexpr std::size_t mostStateTensors = 7; ///< of one parameter
using StateTensors = Few<StateTensor, mostStateTensors>;

/// The state of one updated tensor whose elements have `elementBytes`; empty for frozen ones.
StateTensors stateTensors(const ParameterTensor& updated, std::int64_t elementBytes, const Plan& plan);

/// B of the state of one updated tensor that lie in managed memory and are in no StateTensor; 0 unless it is paged.
std::int64_t pagedStateBytes(const ParameterTensor& updated, const Plan& plan);

/// State that belongs to the optimizer as a whole: the code tables of adam-8bit, made for the first
/// tensor that is quantized.
std::int64_t sharedStateBytes(const std::vector<ParameterTensor>& updated, OptimizerKind optimizer);

/// Whether Muon orthogonalizes its update, GaLore and APOLLO project its gradient (else AdamW's rule is used for it).
bool isOrthogonalized(const ParameterTensor& parameter);

/// Rank of the gradient that GaLore (never more than it has) and APOLLO keep moments of.
std::int64_t projectionRank(const ParameterTensor& matrix, const Plan& plan);

/// What the optimizer of one device updates: the trained parameters; with ZeRO stages 1 and 2 one
/// flat piece of ceil(sum / degree) elements; with stage 3 a flat piece of each.
std::vector<ParameterTensor> updatedTensors(const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// Bytes that one device keeps between steps. With offload, the bytes on the host are in `host`, and paged state.
struct KeptBytes
{
    std::int64_t weights = 0;
    std::int64_t gradients = 0;
    std::int64_t master = 0;
    std::int64_t state = 0;
    std::int64_t host = 0; ///< master copy and state (gradients, weights) that were offloaded or are paged
    std::int64_t device() const { return weights + gradients + master + state; }
};
/// The sum over parameters as the step simulator allocates them: gradients as they are between
/// backward and zero_grad. Frozen parameters keep only weights.
KeptBytes keptBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape
