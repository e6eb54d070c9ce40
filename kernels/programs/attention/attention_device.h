// SPDX-License-Identifier: Apache-2.0
// What a live run of attention asks of a machine: one version of one kind at one shape. The device
// owns the tensors and an arena with a CountingPool (or what counts like one) for everything else;
// which arrays a version takes is in core/timing/attention_memory.h.
//
// forward() and backward() compute the same bits whenever they run on the same inputs, unless the
// version's method says that it adds in no fixed order.
#pragma once

#include "core/base/json.h"
#include "core/timing/attention_memory.h"
#include "kernels/programs/attention/attention_numbers.h"

#include <functional>
#include <memory>
#include <vector>

namespace memscape {

/// What to run.
struct AttentionTask
{
    AttentionProblem problem;
    AttentionVersion version; ///< supports the problem
};

/// Extra bytes that were really taken, beside the tensors of the problem.
struct AttentionBytes
{
    std::int64_t peak = 0;  ///< most alive at once since the last resetPeak()
    std::int64_t saved = 0; ///< alive now, between forward() and backward()
};

class AttentionDevice
{
public:
    virtual ~AttentionDevice() = default;

    /// Q, K, V and dO from attentionInput(), rounded to the format; every output is poisoned with
    /// not-a-numbers, and so is what the pool hands out next.
    virtual Result<void> fill(AttentionInputs inputs) = 0;

    /// O, from Q, K and V. What a backward needs stays taken until the next forward() or forget();
    /// everything else is given back.
    virtual Result<void> forward() = 0;
    /// dQ, dK and dV, from dO and what forward() kept; may be called again.
    virtual Result<void> backward() = 0;
    virtual void forget() = 0;

    virtual void resetPeak() = 0;
    virtual AttentionBytes bytes() const = 0;

    /// Seconds of one run of the pass, as the machine's protocol times it (caches flushed before;
    /// a GPU: between events behind the blocking kernel). Both: a forward and its backward. What a backward
    /// alone needs was made before the clock starts.
    virtual Result<double> sample(AttentionPass pass) = 0;
    /// run.cancelled when the person wants to stop.
    virtual Result<void> checkStopped() = 0;

    /// A tensor as floats on the host (exact for every format); LogSumExp only for flash.
    virtual Result<std::vector<float>> read(AttentionTensor tensor) = 0;
    /// Library or kernel of the products, threads, tiles, bytes on chip: Provenance::method.
    virtual Json method() const = 0;
};

/// Errors: run.memory with what is needed and what there is, before anything is taken;
/// attention.unsupported.
using AttentionDeviceFactory = std::function<Result<std::unique_ptr<AttentionDevice>>(const AttentionTask&)>;

} // namespace memscape
