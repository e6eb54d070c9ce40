// SPDX-License-Identifier: Apache-2.0
// How much work it is for the host to run one operator of PyTorch eagerly: Python, modules, the dispatcher, autograd.
// In calls: an operator of LLaMA as transformers has it is one in the mean of its layer. What a call takes in seconds
// is known from LLaMA's tokens (device_kernels.h).
//
//     library     products, convolutions, norms with weights, fused attention: modules that look their weights up, and
//                 libraries that choose a kernel
//     view        no kernel, but a call
//     other       pointwise operators, sums, copies
//
// Measured with PyTorch 2.15 and transformers 5.24 on one core of an Emerald Rapids Xeon (virtual machine): what a
// layer takes (16 layers less 4, of 32 channels and 4 tokens or 4 × 4 pixels, where kernels take next to nothing), in
// µs without autograd, forward with it, backward:
//
//     LLaMA, eager    9 library, 30 other, 21 views    276   419   586
//     LLaMA, SDPA     8          26        15          254   349   508
//     ViT            10           6        15          208   289   391
//     BERT           10           6        15          252   346   436
//     GPT-2           8          14        16          227   325   382
//     ResNet          6           4         0          114   145   126
//
// Three numbers a pass, by least squares of the relative error, give all of them within 10 %. That they hold where the
// kernels are a GPU's is seen in published times, none of which made them: one picture through transformers' ViT and
// ResNet-50 on an A100 (tst_reached_step.cpp).
//
// Left out: what a network's own Python does between operators, hooks, the first call of a kernel.
#pragma once

#include "core/network/operator.h"

namespace memscape {

enum class EagerPass { WithoutAutograd, Forward, Backward };

/// Calls of one operator that runs so many kernels: 0 of one without any that is no view, and backward of one without a
/// gradient.
double eagerCalls(const Operator& op, EagerPass pass, double kernels);
/// Of a pointwise kernel that runs beside an operator's: a sum of gradients that meet, a cast.
inline constexpr double callsBeside = 0.37;

} // namespace memscape
