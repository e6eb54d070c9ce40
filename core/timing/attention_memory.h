// SPDX-License-Identifier: Apache-2.0
// Which arrays an attention program takes besides Q, K, V, O and their gradients, and when. Bytes
// are as the pool of a live run counts them: every array rounded up to poolGranularity.
//
//     standard   S (forward), P (forward, kept for backward), dP, dS (backward): batch · heads ·
//                queries · keys elements each, in the format of the inputs; in place S = P, dP = dS
//     flash      L (forward, kept), D (backward): a float a query; dQ in floats where it is added up
//                apart from dQ itself
//
// Left out: tile buffers (shared memory on a GPU; on a host they stay in the caches of the core and
// are given beside, see attentionTileBytes), code, the process.
#pragma once

#include "core/timing/attention_problem.h"

namespace memscape {

struct AttentionArray
{
    std::string name; ///< "S", "P", "L", "dQ in floats"
    std::int64_t elements = 0;
    std::int64_t elementBytes = 0;
    std::int64_t bytes = 0; ///< rounded up
    bool inForward = false, isSaved = false, inBackward = false;
};

/// `workers`: threads of a host (a GPU's blocks do not matter). Errors: attention.bytes when a sum
/// passes 2^63.
Result<std::vector<AttentionArray>> attentionArrays(const AttentionVersion& version, const AttentionShape& shape,
                                                    DType dtype, int workers);

struct AttentionMemory
{
    std::int64_t tensors = 0;               ///< Q, K, V, O and, for a backward, dO, dQ, dK, dV: not extra
    std::int64_t forward = 0, backward = 0; ///< extra bytes alive during a pass
    std::int64_t saved = 0;                 ///< of these, what waits between the passes (Q, K, V and O aside)

    /// The most extra bytes alive at once in a pass.
    std::int64_t peak(AttentionPass pass) const
    {
        if (pass == AttentionPass::Both)
            return forward > backward ? forward : backward;
        return pass == AttentionPass::Forward ? forward : backward;
    }
};
Result<AttentionMemory> attentionMemory(const AttentionVersion& version, const AttentionShape& shape, DType dtype,
                                        AttentionPass pass, int workers);

/// On how many ranges of keys a host's backward works at the same time within one kv head: as many
/// as keep all threads busy, at most one per tile.
std::int64_t attentionSplits(const AttentionVersion& version, const AttentionShape& shape, int workers);

} // namespace memscape
