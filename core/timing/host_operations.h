// SPDX-License-Identifier: Apache-2.0
// How long the operations of a training step take on a processor, small ones included. All threads take their
// part of each operation and wait for each other:
//
//     product        call + c + s_f f + s_o o + s_r r
//     elementwise    call + max(bytes × s_b, bytes / bandwidth)
//     step           start + sum of its operations
//
// of the slab of a product (m × k by k × n) that one thread computes: f = 2 k ⌈m⌉ ⌈n⌉ with the sides rounded up to
// the register tile, o = m k + k n operands to rearrange, r = m n results to write; a slab has a thread's part of
// the longer side of the result. Packing and edge tiles are what makes small products slow (Goto and van de Geijn,
// ACM TOMS 34, 2008). c and the s differ between x Wᵀ, δ W and δᵀ x, which read their operands in
// different ways. They are fitted to probes of `calibrate` by non-negative least squares of relative errors; without a
// calibration typical values take their place.
//
// A product whose operands come from memory takes at least bytes / bandwidth.
//
// Left out: threads that the system takes away, cache lines that two threads share, frameworks' dispatch.
#pragma once

#include "core/device/device.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace memscape {

/// x Wᵀ (+ bias), δ W, δᵀ x (+ sum of rows), one pass over an array, nothing to do.
enum class HostOperation { Forward, InputGradient, WeightGradient, Elementwise, Call, Start };
std::string_view hostOperationText(HostOperation operation); ///< "forward", "input gradient", …

/// The result is m × n, sums have k terms; elementwise: m elements read and written.
struct ProductShape
{
    double m = 1, n = 1, k = 1;
};

/// One measured operation.
struct OperationProbe
{
    HostOperation operation = HostOperation::Call;
    ProductShape shape;
    double seconds = 0;
};

struct HostProductCost
{
    double perProduct = 0, perFlop = 0, perOperand = 0, perResult = 0; ///< s, of one thread's slab
};

/// The parts of a product's time, s, beside its call.
struct HostProductTime
{
    double constant = 0, arithmetic = 0, moving = 0;
    double total() const { return constant + arithmetic + moving; }
};

struct HostOperations
{
    int threads = 1;
    double tileRows = 4, tileColumns = 32;
    double start = 0;                        ///< s once a step
    double call = 0;                         ///< s per operation
    double perByte = 0;                      ///< s, elementwise, all threads, from near caches
    std::array<HostProductCost, 3> products; ///< by Forward, InputGradient, WeightGradient
    Evidence evidence = Evidence::Unverified;
    double misfit = 0; ///< median |model / probe − 1|; 0 when typical

    HostProductTime productTime(HostOperation operation, const ProductShape& shape) const;
    double productSeconds(HostOperation operation, const ProductShape& shape) const; ///< call included
};

/// Errors: calibration.probes when a kind of operation was not measured.
Result<HostOperations> fitHostOperations(const std::vector<OperationProbe>& probes, int threads, double tileRows,
                                         double tileColumns);
/// Of the calibration of `device`, else typical values of its units, clock and rates.
HostOperations hostOperations(const Device& device);

/// As `calibration.raw.operations` keeps it.
Json hostOperationsToJson(const HostOperations& operations);
/// Nothing where a value is missing, negative or no number.
std::optional<HostOperations> hostOperationsFromJson(const Json& json);
/// What a core of the 2020s needs, by the device's units, clock and rates.
HostOperations typicalHostOperations(const Device& device);

} // namespace memscape
