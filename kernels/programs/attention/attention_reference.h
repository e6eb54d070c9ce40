// SPDX-License-Identifier: Apache-2.0
// Attention and its gradients in double, and how far a program may be from them. See the .cpp for
// how the bounds come about.
#pragma once

#include "kernels/measure/check.h"
#include "kernels/programs/attention/attention_device.h"

#include <span>

namespace memscape {

/// A tensor of the reference: the exact values (of the inputs as rounded to the format), and for
/// every element the largest error that correct arithmetic in the format can make.
struct BoundedTensor
{
    std::vector<double> values, bounds;
};

struct AttentionReference
{
    BoundedTensor output, logSumExp, queryGradient, keyGradient, valueGradient;
    const BoundedTensor& of(AttentionTensor tensor) const;
};

/// Slow (batch · heads · queries · keys · d several times); for small shapes. The version decides
/// the bounds only: standard attention rounds S, P, dP and dS to the format.
AttentionReference attentionReference(const AttentionTask& task, AttentionInputs inputs);

/// Every element of a tensor in units of its bound: passes when no error is above 1.
void compareTensor(Check& check, std::size_t place, std::span<const float> found, const BoundedTensor& reference);

/// Small shapes that this version supports, each with normal and extreme inputs, against the
/// reference: odd lengths, one query, more keys than queries, grouped queries, causal and not,
/// every head dimension it lists (or some). Outputs and scratch are poisoned before, extra bytes
/// are compared with attentionMemory(), and a second run must give the same bits, but those of a dQ
/// that is added up in no fixed order. Errors: run.*; a mismatch is in the Check.
Result<Check> checkAttentionDevice(const AttentionDeviceFactory& makeDevice, const AttentionVersion& version,
                                   DType dtype, int workers);
/// The shapes of the above.
std::vector<AttentionShape> checkedShapes(const AttentionVersion& version);

} // namespace memscape
