// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 2. A tile of queries meets the keys tile by tile; S exists for one panel
// of queries and one tile of keys at a time, in L1. What standard attention writes to memory,
// queries × keys numbers four times over, is never written at all; what is read again for it are K
// and V, once per tile of queries, from the caches. The products are done by the same kind of
// register tile that the library uses (kernels/host/common/product.cpp), on operands that already lie
// right.
//
// Forward: one piece is a tile of queries. Backward: one piece is a range of keys of one kv head;
// where there are fewer heads than threads a head's keys are cut into ranges, and each range adds
// into a dQ of its own, summed at the end in the order of the ranges.
//
// Head dimensions are multiples of 32: a row is then whole vectors.
#include "core/base/rounding.h"
#include "kernels/host/attention/attention_tiled_backward.h"
#include "kernels/host/attention/attention_tiled_forward.h"

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

void forward16(const ForwardPiece& piece)
{
    forwardTile<Simd16>(piece);
}
void backward16(const BackwardPiece& piece)
{
    backwardRange<Simd16>(piece);
}
#if MEMSCAPE_X86
__attribute__((target("avx2,fma"))) void forward32(const ForwardPiece& piece)
{
    forwardTile<Simd32>(piece);
}
__attribute__((target("avx2,fma"))) void backward32(const BackwardPiece& piece)
{
    backwardRange<Simd32>(piece);
}
__attribute__((target("avx512f,avx512vl,avx512bw"))) void forward64(const ForwardPiece& piece)
{
    forwardTile<Simd64>(piece);
}
__attribute__((target("avx512f,avx512vl,avx512bw"))) void backward64(const BackwardPiece& piece)
{
    backwardRange<Simd64>(piece);
}
#endif

void runForward(Isa isa, const ForwardPiece& piece)
{
#if MEMSCAPE_X86
    if (isa == Isa::Bytes64)
        return forward64(piece);
    if (isa == Isa::Bytes32)
        return forward32(piece);
#endif
    forward16(piece);
}

void runBackward(Isa isa, const BackwardPiece& piece)
{
#if MEMSCAPE_X86
    if (isa == Isa::Bytes64)
        return backward64(piece);
    if (isa == Isa::Bytes32)
        return backward32(piece);
#endif
    backward16(piece);
}

class TiledAttention final : public AttentionKernel
{
public:
    TiledAttention(HostSession& session, const AttentionVersion& version, Isa isa)
        : m_session(session)
        , m_version(version)
        , m_isa(isa)
        , m_scratch(std::size_t(session.team().size()))
    { }
    Result<void> forward(const AttentionWork& work) override;
    Result<void> backward(const AttentionWork& work) override;
    std::int64_t tileBytes() const override
    {
        std::size_t floats = 0;
        for (const auto& scratch : m_scratch)
            floats += scratch.size();
        return std::int64_t(floats * sizeof(float));
    }
    Json method() const override { return {{"vectors", isaText(m_isa)}, {"tile_bytes", tileBytes()}}; }

private:
    float* scratch(int thread, std::size_t floats)
    {
        auto& own = m_scratch[std::size_t(thread)];
        if (own.size() < floats)
            own.resize(floats);
        return own.data();
    }
    Result<void> addSplits(const AttentionWork& work);

    HostSession& m_session;
    AttentionVersion m_version;
    Isa m_isa;
    AttentionScratch m_scratch;
};

Result<void> TiledAttention::forward(const AttentionWork& work)
{
    const AttentionShape& shape = work.shape;
    const AttentionTile tile = m_version.tile(shape.headDim, AttentionPass::Forward);
    const std::size_t floats = forwardScratch(tile, std::size_t(shape.headDim));
    const std::int64_t tiles = quotientUp(shape.queries, tile.queries);
    return overPieces(m_session, work.planes() * tiles, [&](int thread, std::int64_t index) {
        // The last tiles of a causal problem are the longest: they go first.
        const std::int64_t first = (tiles - 1 - index % tiles) * tile.queries;
        const auto count = std::size_t(std::min(tile.queries, shape.queries - first));
        runForward(m_isa,
                   {work, index / tiles, first, count, std::size_t(tile.queries), std::size_t(tile.keys),
                    scratch(thread, floats)});
    });
}

Result<void> TiledAttention::backward(const AttentionWork& work)
{
    MEMSCAPE_CHECK(attentionRowSums(m_session, work));
    const AttentionShape& shape = work.shape;
    const AttentionTile tile = m_version.tile(shape.headDim, AttentionPass::Backward);
    const std::size_t floats = backwardScratch(tile, std::size_t(shape.headDim));
    const std::int64_t tiles = quotientUp(shape.keys, tile.keys);
    MEMSCAPE_CHECK(overPieces(m_session, work.keyPlanes() * work.splits, [&](int thread, std::int64_t index) {
        const std::int64_t split = index % work.splits;
        const std::int64_t first = tiles * split / work.splits * tile.keys;
        const std::int64_t end = std::min(tiles * (split + 1) / work.splits * tile.keys, shape.keys);
        runBackward(m_isa,
                    {work, index / work.splits, split, first, end, std::size_t(tile.queries), std::size_t(tile.keys),
                     scratch(thread, floats), &m_session.team()});
    }));
    return work.dqSums != nullptr ? addSplits(work) : Result<void>();
}

/// dQ from the ranges' sums, in their order.
Result<void> TiledAttention::addSplits(const AttentionWork& work)
{
    const auto d = std::size_t(work.shape.headDim);
    constexpr std::int64_t rowsPerPiece = 64;
    const std::int64_t rows = work.shape.queryRows();
    return overPieces(m_session, quotientUp(rows, rowsPerPiece), [&](int, std::int64_t piece) {
        const std::int64_t first = piece * rowsPerPiece;
        const auto count = std::size_t(std::min(rowsPerPiece, rows - first)) * d;
        float* const sums = work.dqSums + std::size_t(first) * d;
        for (std::int64_t split = 1; split < work.splits; ++split) {
            const float* more = sums + std::size_t(split * rows) * d;
            for (std::size_t i = 0; i < count; ++i)
                sums[i] += more[i];
        }
        narrowRow(sums, work.dtype, work.dq + work.rowOffset(first), count);
    });
}

} // namespace

std::size_t forwardScratch(const AttentionTile& tile, std::size_t headDim)
{
    constexpr std::size_t widest = panelWidth<Simd64>;
    const auto queries = std::size_t(tile.queries), keys = std::size_t(tile.keys);
    return 2 * queries * headDim + 2 * queries + keys * widest + 2 * keys * headDim;
}

std::size_t backwardScratch(const AttentionTile& tile, std::size_t headDim)
{
    const auto queries = std::size_t(tile.queries), keys = std::size_t(tile.keys);
    return 5 * keys * headDim + 2 * queries * headDim + 2 * queries * keys;
}

std::unique_ptr<AttentionKernel> makeTiledAttention(HostSession& session, const AttentionVersion& version, Isa isa)
{
    return std::make_unique<TiledAttention>(session, version, isa);
}

} // namespace memscape::host
