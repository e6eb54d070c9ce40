// SPDX-License-Identifier: Apache-2.0
// How long one operator's kernels take on a GPU, as what their shapes reach:
//
//     matrix product    max(flops / (reached rate × share of its tiles), bytes / bandwidth) + fill + launch
//     attention         as FlashAttention-2's kernels reach it (attention_time.h), what a causal mask hides left out
//     everything else   max(flops / fp32 rate, bytes / bandwidth) + launch per kernel
//
// The share is that of tiles and waves (gemm_time.h): multiprocessors of a last wave that have nothing to do, rows
// and columns that pad a tile; long sums of few tiles are cut into parts (split-k) of 2,048 terms and more.
//
// Convolutions run at the reached rate of large products, whatever their shape.
//
// Left out: kernels of Hopper's own for attention, cache hits between operators, clocks that sag in a long
// run below those at which the reached rates were measured.
#pragma once

#include "core/timing/operator_time.h"

namespace memscape {

class DeviceKernels
{
public:
    /// Nothing of a device that is no GPU.
    DeviceKernels(const Device& device, double efficiency)
        : m_device(device)
        , m_efficiency(efficiency)
    { }

    /// s; `rates` are those of the device. What holds it is in the parts.
    TimeParts parts(const DeviceRates& rates, const OperatorCost& cost) const;

private:
    double productSeconds(const DeviceRates& rates, const OperatorCost& cost) const;

    const Device& m_device;
    double m_efficiency;
};

/// What PyTorch takes on the host for each operator that it runs eagerly, while the device works on earlier ones.
/// Measured with PyTorch 2.15 on one core of a Zen 4 EPYC (virtual machine): GPT-2 and LLaMA of transformers with 12
/// layers of 32 channels, where kernels take next to nothing; all of Python, views and autograd included.
struct Dispatch
{
    double forward = 0, backward = 0; ///< s per kernel
    double update = 0;                ///< s per updated tensor
};
/// Of an update written so. A launch on a GPU comes on top.
Dispatch eagerDispatch(UpdateStyle style);

} // namespace memscape
