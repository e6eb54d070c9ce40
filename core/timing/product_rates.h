// SPDX-License-Identifier: Apache-2.0
// What large matrix products reach on a device, which is less than its dense rate: power limits the
// clocks of GPUs, and no kernel keeps every unit busy. In this order:
//   - measured here: a calibrated device's `calibration.raw.product_rates`, FLOP/s by format
//   - published for this product of the catalogue, each value with its source
//   - a share of the dense rate, unverified: on GPUs what an H100 SXM reaches, on hosts 0.9
//
// A training step multiplies for minutes: where power lowers the clocks, products sustain less than they reach in a
// short run. Where a long run was published, that is the sustained rate; of a chip that is sold with other watts or
// fewer units it follows from its like; elsewhere it is the reached one. Power is spent by units that switch,
//
//     P ~ units × f V²  with V ~ f,  so  f ~ ∛(P / units)  and  rate ~ units × f ~ units^⅔ ∛P
//
// (P = C V² f: Weste and Harris, CMOS VLSI Design, chapter 5). Left out: idle watts and those of the memory, and the
// least voltage of a chip. Of an RTX 3090 in FP32 the rule makes 21.2 from an A10's 14.68; 24.7 was measured.
#pragma once

#include "core/device/device.h"
#include "core/precision/number_format.h"
#include "core/training/plan.h"

#include <vector>

namespace memscape {

/// What a device's units give in a format.
struct ProductRate
{
    Sourced dense;     ///< FLOP/s of the datasheet or the formula
    Sourced reached;   ///< FLOP/s of large products
    Sourced sustained; ///< FLOP/s of them one after the other, at the clocks that power allows then
};
/// Errors: predict.format, naming the formats that the device has a rate for.
Result<ProductRate> productRate(const Device& device, Format format);
/// The share of the dense rate that large products reach; 1 where that is not known.
double reachedShare(const Device& device, Format format);
/// The same in a long run.
double sustainedShare(const Device& device, Format format);
/// The share of the full clocks that power leaves in a long run to kernels that keep the tensor cores busy, products or
/// attention; at full clocks an H100 SXM's products reach 0.76 of the dense rate.
double sustainedClocks(const Device& device, Format format);
/// Times that they rise at most where multiprocessors idle: from those of a long run to those of a short one.
double spareClocks(const Device& device, Format format);
/// The format that a training recipe's products run in.
Format productFormat(Precision recipe);
/// The formats that the device has a rate for, in the order of numberFormats().
std::vector<Format> productFormats(const Device& device);

} // namespace memscape
