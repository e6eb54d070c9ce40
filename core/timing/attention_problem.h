// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention as a problem that several programs solve: its shape, its tensors, its
// passes, and the numbered versions of the programs on a host and on a GPU. The prediction, the
// host's kernels and the GPU's read the same description, so they cannot mean different things.
//
//     S = Q Kᵀ / √d   (masked to −∞ above the diagonal when causal)        queries × keys
//     P = softmax of every row of S,   L = log Σ exp S (one number a row)
//     O = P V                                                              queries × d
//     backward, from dO:   dV = Pᵀ dO,   dP = dO Vᵀ,   D = Σ_j dO_ij O_ij,
//                          dS = P ∘ (dP − D),   dQ = dS K / √d,   dK = dSᵀ Q / √d
//
// Layouts, all contiguous, last index fastest: Q, O, dO, dQ are batch × heads × queries × d; K, V,
// dK, dV are batch × kv_heads × keys × d; L is batch × heads × queries, float, natural logarithm.
// Grouped queries: head h reads kv head h / (heads / kv_heads). Causal, with keys ≥ queries: query i
// sees keys 0 … i + keys − queries (aligned at the bottom right, as FlashAttention 2.1 and newer).
//
// Left out: dropout, other masks, biases, soft caps, windows, values of another width than keys,
// sequences of different length in a batch.
#pragma once

#include "core/base/result.h"
#include "core/network/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class AttentionKind { Standard, Flash };
enum class AttentionPass { Forward, Backward, Both };
std::string_view attentionKindText(AttentionKind kind); ///< "standard", "flash"
std::string_view attentionPassText(AttentionPass pass); ///< "forward", "backward", "both"

struct AttentionShape
{
    std::int64_t batch = 1, heads = 16, kvHeads = 16;
    std::int64_t queries = 4096, keys = 4096; ///< sequence lengths; keys ≥ queries when causal
    std::int64_t headDim = 128;
    bool causal = false;

    std::int64_t queryRows() const { return batch * heads * queries; }
    std::int64_t keyRows() const { return batch * kvHeads * keys; }
    /// Elements of S: what standard attention writes and flash attention never does.
    std::int64_t scores() const { return queryRows() * keys; }
    /// The same without what a causal mask hides; equal to scores() otherwise.
    double visibleScores() const;
    bool operator==(const AttentionShape&) const = default;
};

/// The largest of each that is taken in; no product of bytes passes 2^63.
inline constexpr std::int64_t attentionBatchLimit = 65'536, attentionHeadLimit = 1024;
inline constexpr std::int64_t attentionSequenceLimit = 1 << 22, attentionHeadDimLimit = 256;
/// Errors: attention.range (place: the parameter), attention.heads with the nearest kv_heads that
/// divide the heads, attention.causal.
Result<void> checkShape(const AttentionShape& shape);

/// Multiply-adds counted as two, of the products alone: 4 · scores · d forward, 2.5 times that
/// backward (five products), both 3.5; a causal mask counts what it leaves visible. The convention
/// of the FlashAttention papers, whatever a program really executes.
double attentionFlops(const AttentionShape& shape, AttentionPass pass);

struct AttentionTile
{
    std::int64_t queries = 0, keys = 0; ///< 0: no tiles, a whole row at a time
    bool operator==(const AttentionTile&) const = default;
};
/// Tiles for head dimensions up to `headDim`.
struct AttentionTileRule
{
    std::int64_t headDim = 0;
    AttentionTile forward, backward;
    double backwardClocks = 0; ///< of shared memory, for 64 × 64 scores of a backward; 0: not counted
};

/// How a backward adds up dQ, to which every tile of keys contributes.
enum class QueryGradient {
    Direct,   ///< in dQ itself
    Atomic,   ///< in dQ when it is float, else in one array of floats that is converted; by atomic
              ///< additions in any order, so that the last bits change from run to run
    PerSplit, ///< in arrays of floats, one per range of keys that is worked on at the same time
};

/// One program: the numbers of a machine's versions of a kind start at 1, naive first, best last.
struct AttentionVersion
{
    AttentionKind kind = AttentionKind::Flash;
    int number = 1;
    std::string name;    ///< "tiles in registers", short
    std::string teaches; ///< one sentence
    std::vector<DType> dtypes;
    std::vector<std::int64_t> headDims; ///< ascending; empty: every one up to the limit
    bool hasBackward = true;
    double computeCapability = 0;              ///< of a GPU at least
    bool onlyThatCapability = false;           ///< and at most: its instructions are no other GPU's
    bool needsRecord = false;                  ///< not chosen unasked before a measurement has named it the best
    std::vector<AttentionTileRule> tiles = {}; ///< ascending in headDim
    bool inPlace = false;                      ///< standard: softmax over S itself, dS over dP
    QueryGradient queryGradient = QueryGradient::Direct;
    bool expandsKeyGradients = false; ///< grouped queries: dK and dV per query head first, then summed
    std::int64_t workspace = 0;       ///< B of a library, taken once

    AttentionTile tile(std::int64_t headDim, AttentionPass pass) const;
    double backwardClocks(std::int64_t headDim) const; ///< 0 where they are not counted
    /// Whether a GPU of that compute capability runs it; one that does not say, 0, does.
    bool runsOn(double capability) const;
};

/// All versions of a kind on a host or on GPUs, ascending.
const std::vector<AttentionVersion>& attentionVersions(AttentionKind kind, bool gpu);

struct AttentionProblem
{
    AttentionShape shape;
    DType dtype = DType::Float32;
    AttentionKind kind = AttentionKind::Flash;
    AttentionPass pass = AttentionPass::Both;
};

/// Whether this version solves this problem. Errors: attention.unsupported with the reason and, as
/// a hint, the nearest head dimension, format or version that is supported.
Result<void> supports(const AttentionVersion& version, const AttentionProblem& problem, bool gpu,
                      double computeCapability = 0);

/// The version with that number; for 0 the `recorded` one where it solves the problem, else the last
/// that does and needs no record. Errors: attention.version (with the numbers that exist),
/// attention.unsupported.
Result<AttentionVersion> attentionVersion(int number, const AttentionProblem& problem, bool gpu,
                                          double computeCapability = 0, int recorded = 0);

/// The newest version before `failed` that solves the problem and needs no record; nothing where there
/// is none.
std::optional<AttentionVersion> olderAttentionVersion(const AttentionVersion& failed, const AttentionProblem& problem,
                                                      bool gpu, double computeCapability = 0);

} // namespace memscape
