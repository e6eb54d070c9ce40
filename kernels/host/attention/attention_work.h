// SPDX-License-Identifier: Apache-2.0
// What the attention kernels of the host share: the tensors of a problem, and how a pass is cut
// into pieces that the pinned threads take one after the other. Every element is written by one
// piece, and a piece adds in one order, so which thread takes it does not change a bit.
#pragma once

#include "core/timing/attention_memory.h"
#include "kernels/host/common/product.h"
#include "kernels/host/session.h"
#include "kernels/programs/attention/attention_numbers.h"

#include <atomic>
#include <vector>

namespace memscape::host {

struct AttentionWork
{
    AttentionShape shape;
    DType dtype = DType::Float32;
    const std::byte *q = nullptr, *k = nullptr, *v = nullptr, *outputGradient = nullptr;
    std::byte *output = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
    float* logSumExp = nullptr; ///< L; flash
    float* rowSums = nullptr;   ///< D; flash
    float* dqSums = nullptr;    ///< dQ in floats, one array per split; null: in dq itself
    std::int64_t splits = 1;    ///< ranges of keys that a backward works on at the same time
    std::byte *s = nullptr, *p = nullptr, *dp = nullptr, *ds = nullptr; ///< standard

    std::int64_t planes() const { return shape.batch * shape.heads; }
    std::int64_t keyPlanes() const { return shape.batch * shape.kvHeads; }
    std::int64_t group() const { return shape.heads / shape.kvHeads; }
    std::int64_t visible(std::int64_t query) const
    {
        return attentionVisibleKeys(query, shape.queries, shape.keys, shape.causal);
    }
    std::int64_t firstQuery(std::int64_t key) const
    {
        return attentionFirstQuery(key, shape.queries, shape.keys, shape.causal);
    }
    /// Bytes to a row of a tensor with rows of d elements.
    std::size_t rowOffset(std::int64_t row) const { return std::size_t(row * shape.headDim * elementBytes(dtype)); }
    /// Bytes to a row of S, P, dP or dS; `row` counts through all planes.
    std::size_t scoreOffset(std::int64_t row) const { return std::size_t(row * shape.keys * elementBytes(dtype)); }
};

/// Floats that one thread keeps between pieces: tiles and blocks that were converted.
using AttentionScratch = std::vector<std::vector<float>>;

/// body(thread, piece) for every piece below `count`, each taken once by a free thread; looks at
/// Stop between pieces.
template <typename Body> Result<void> overPieces(HostSession& session, std::int64_t count, const Body& body)
{
    std::atomic<std::int64_t> next{0};
    session.team().run([&](int thread) {
        for (std::int64_t i = next++; i < count && !session.team().stopping(); i = next++)
            body(thread, i);
    });
    return session.checkStopped();
}

/// One kind and version.
class AttentionKernel
{
public:
    virtual ~AttentionKernel() = default;
    /// Errors: run.cancelled.
    virtual Result<void> forward(const AttentionWork& work) = 0;
    virtual Result<void> backward(const AttentionWork& work) = 0;
    /// What the threads hold in their tiles, B; what they need of the caches.
    virtual std::int64_t tileBytes() const = 0;
    virtual Json method() const = 0;
};

std::unique_ptr<AttentionKernel> makeStandardAttention(HostSession& session, bool inPlace,
                                                       const ProductKernel& product);
/// One row at a time: version 1.
std::unique_ptr<AttentionKernel> makeRowAttention(HostSession& session);
/// Tiles in vectors of the widest kind that this processor has, or of `isa`: version 2.
std::unique_ptr<AttentionKernel> makeTiledAttention(HostSession& session, const AttentionVersion& version, Isa isa);

/// D = Σ_j dO_ij O_ij of every row, in float.
Result<void> attentionRowSums(HostSession& session, const AttentionWork& work);

} // namespace memscape::host
