// SPDX-License-Identifier: Apache-2.0
// The versions of attention that there are programs for: kernels/host/attention_*.cpp and
// kernels/cuda/attention*.cu. What is said here about arrays is what those programs take from their
// pool; a test compares the two.
#include "core/timing/attention_problem.h"

namespace memscape {

namespace {

const std::vector<DType> halves{DType::Float16, DType::BFloat16};
const std::vector<DType> all{DType::Float32, DType::Float16, DType::BFloat16};
const std::vector<std::int64_t> by32{32, 64, 96, 128, 160, 192, 224, 256};

std::vector<AttentionVersion> hostStandard()
{
    AttentionVersion first{AttentionKind::Standard, 1, "three passes",
                           "S, P, dP and dS are each written to memory and read again: the time "
                           "goes to the matrix, not to the products",
                           all, {}};
    AttentionVersion second{AttentionKind::Standard, 2, "softmax in place",
                            "softmax may overwrite S, and dS overwrite dP: half the extra memory, "
                            "but still the whole matrix",
                            all, {}};
    second.inPlace = true;
    return {first, second};
}

std::vector<AttentionVersion> hostFlash()
{
    AttentionVersion first{AttentionKind::Flash, 1, "one row at a time",
                           "a running maximum and sum are enough: no row of S is ever kept, but "
                           "every key is fetched again for every query",
                           all, {}};
    AttentionVersion second{AttentionKind::Flash, 2, "tiles in vectors",
                            "a tile of keys is used by many queries while it is in the cache, and "
                            "queries lie along the vector, so maximum and sum need no shuffles",
                            all, by32};
    second.queryGradient = QueryGradient::PerSplit;
    second.tiles = {{256, {128, 64}, {64, 64}}}; // K, V, Q and O of a tile fit L2
    return {first, second};
}

} // namespace

const std::vector<AttentionVersion>& attentionVersions(AttentionKind kind, bool gpu)
{
    static const std::vector<AttentionVersion> standardOnHosts = hostStandard();
    static const std::vector<AttentionVersion> flashOnHosts = hostFlash();
    // PyTorch's math and FlashAttention-2 stand in until a GPU's own are listed.
    static const std::vector<AttentionVersion> standardOnGpus{
        {AttentionKind::Standard, 1, "three kernels",
         "product, softmax and product as three kernels: S and P each go to HBM and come back", all,
         {}}};
    static const std::vector<AttentionVersion> flashOnGpus = [] {
        AttentionVersion fused{AttentionKind::Flash, 1, "tiles in shared memory",
                               "tiles of K and V pass through shared memory and S never leaves the "
                               "chip",
                               halves, {32, 64, 96, 128, 160, 192, 224, 256}};
        fused.tiles = {{64, {128, 128}, {128, 128}}, {128, {128, 64}, {64, 128}}, {256, {64, 64}, {64, 64}}};
        fused.queryGradient = QueryGradient::FloatForHalves;
        return std::vector<AttentionVersion>{fused};
    }();
    if (kind == AttentionKind::Standard)
        return gpu ? standardOnGpus : standardOnHosts;
    return gpu ? flashOnGpus : flashOnHosts;
}

} // namespace memscape
