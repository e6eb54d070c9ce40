// SPDX-License-Identifier: Apache-2.0
// How many bytes an attention program moves and how long it takes. See the .cpp for the formulas.
#pragma once

#include "core/base/quantity.h"
#include "core/device/device.h"
#include "core/timing/attention_memory.h"

#include <vector>

namespace memscape {

/// One pass over memory: a kernel on a GPU, a loop over all heads on a host.
struct AttentionStep
{
    std::string name; ///< "S = Q Kᵀ", "tiles"
    double flops = 0; ///< executed, of products
    double bytes = 0; ///< read from and written to DRAM
    double exponentials = 0;
    double seconds = 0;
};

struct AttentionCost
{
    std::vector<AttentionStep> steps; ///< of the pass, in order
    double bytes = 0;                 ///< Σ of the steps
    double seconds = 0;
    double tileBytes = 0; ///< into tiles from the caches, K and V again for every tile of queries; 0: no tiles
    std::string bytesFormula, timeFormula, timeSource;
    std::vector<Term> terms; ///< of the time
    std::vector<std::string> omits;
};

/// Errors: predict.device when a rate that the model needs is not known, with what would do.
Result<AttentionCost> attentionCost(const Device& device, const AttentionVersion& version,
                                    const AttentionProblem& problem);

/// Clocks that FlashAttention-2's tiles of this problem, forward or backward, take multiprocessors that multiply so
/// many FLOP in a clock in half precision, all of them together; with the shares that an A100's reach.
double flashClocks(const AttentionProblem& problem, double flopsPerClock);

/// B of on-chip memory that a tile is to fit: shared memory of a multiprocessor, L2 of a core.
double onChipBytes(const Device& device);
/// What the tiles of one worker take there: Q, K, V, and on a host also O and the scores, B.
double tileFootprint(const Device& device, const AttentionTile& tile, std::int64_t headDim, DType dtype);
/// The tiles of FlashAttention (2022), Algorithm 1, for M bytes on chip: keys = ⌈M / 4 d e⌉,
/// queries = min(keys, d).
AttentionTile firstFlashTile(double onChip, std::int64_t headDim, DType dtype);

} // namespace memscape
