// SPDX-License-Identifier: Apache-2.0
// The versions of attention that there are programs for: kernels/host/attention_*.cpp and
// kernels/cuda/attention/. What is said here about arrays is what those programs take from their
// pool; a test compares the two.
#include "core/timing/attention_problem.h"

namespace memscape {

namespace {

const std::vector<DType> halves{DType::Float16, DType::BFloat16};
const std::vector<DType> everyDType{DType::Float32, DType::Float16, DType::BFloat16};
/// Clocks of shared memory that a GPU's backward needs for 64 × 64 scores, by its tiles and the head
/// dimension (kernels/cuda/attention/flash_backward.h and flash_one_pass.h; their tests count them).
constexpr double narrow64 = 2304, narrow128 = 4864, wide64 = 1280 + 512 / 3.0, wide128 = 3968;
constexpr double onePass64 = 1344, onePass128 = 2560;
const std::vector<std::int64_t> by32{32, 64, 96, 128, 160, 192, 224, 256};

std::vector<AttentionVersion> hostStandard()
{
    AttentionVersion first{AttentionKind::Standard,
                           1,
                           "three passes",
                           "S, P, dP and dS are each written to memory and read again: the time is spent on the "
                           "matrix, not on the products",
                           everyDType,
                           {}};
    AttentionVersion second{AttentionKind::Standard,
                            2,
                            "softmax in place",
                            "softmax may overwrite S, and dS overwrite dP: half the extra memory, "
                            "but still the whole matrix",
                            everyDType,
                            {}};
    second.inPlace = true;
    return {first, second};
}

std::vector<AttentionVersion> hostFlash()
{
    AttentionVersion first{AttentionKind::Flash,
                           1,
                           "one row at a time",
                           "a running maximum and sum are enough: no row of S is ever kept, but "
                           "every key is fetched again for every query",
                           everyDType,
                           {}};
    AttentionVersion second{AttentionKind::Flash,
                            2,
                            "tiles in vectors",
                            "a tile of keys is used by many queries while it is in the cache, and "
                            "queries lie along the vector, so maximum and sum need no shuffles",
                            everyDType,
                            by32};
    second.queryGradient = QueryGradient::PerSplit;
    second.tiles = {{256, {128, 64}, {64, 64}}}; // K, V, Q and O of a tile fit L2
    return {first, second};
}

std::vector<AttentionVersion> gpuStandard()
{
    AttentionVersion first{AttentionKind::Standard,
                           1,
                           "three kernels",
                           "product, softmax and product as three kernels: S and P each go to "
                           "memory and come back",
                           everyDType,
                           {}};
    AttentionVersion second{AttentionKind::Standard,
                            2,
                            "softmax in place",
                            "softmax may overwrite S, and dS overwrite dP: half the extra memory, "
                            "the same traffic",
                            everyDType,
                            {}};
    second.inPlace = true;
    AttentionVersion third{
        AttentionKind::Standard,
        3,
        "cuBLASLt",
        "the three kernels with the best products there are: the time is spent on the matrix between them",
        everyDType,
        {}};
    return {first, second, third};
}

std::vector<AttentionVersion> gpuFlash()
{
    const std::vector<std::int64_t> dims{64, 128};
    const auto make = [&](int number, const char* name, const char* teaches, double capability) {
        AttentionVersion version{AttentionKind::Flash, number, name, teaches, halves, dims};
        version.computeCapability = capability;
        version.hasBackward = capability >= 8;
        version.tiles = {{64, {64, 64}, {64, 64}, narrow64}, {128, {64, 64}, {32, 64}, narrow128}};
        return version;
    };
    AttentionVersion plain = make(1, "tiles and a running softmax",
                                  "no score is ever written: a block walks over K and V through "
                                  "shared memory, in float on the SM's ordinary lanes",
                                  7.5);
    plain.dtypes = everyDType;
    plain.tiles = {{128, {32, 32}, {}}};
    AttentionVersion wide = make(
        6, "32 rows a warp", "every fragment of K and V is used by two products: half the reads of shared memory", 8.0);
    wide.tiles = {{64, {128, 64}, {64, 64}, narrow64}, {128, {128, 64}, {32, 64}, narrow128}};
    AttentionVersion sparing = make(7, "O is rescaled only when it must be",
                                    "O is rescaled only when the running maximum has grown by enough, which few tiles "
                                    "do; backward, tiles as wide as registers allow",
                                    8.0);
    sparing.tiles = {
        {64, {128, 64}, {32, 128}, wide64}, {128, {128, 48}, {64, 64}, wide128}, {256, {128, 48}, {64, 64}}};
    sparing.headDims = by32; // predicted; the program is compiled for 64 and 128 and says so
    AttentionVersion hopper = make(8, "Hopper's copy engine and warpgroups",
                                   "one thread fetches tiles, tensor cores read them from shared memory "
                                   "by themselves, and two warpgroups take turns, so that the softmax of "
                                   "one overlaps with the products of the other",
                                   9.0);
    hopper.onlyThatCapability = true; // sm_90a: neither older nor newer GPUs know its instructions
    hopper.needsRecord = true;
    hopper.tiles = {{64, {128, 128}, {32, 128}, wide64}, {128, {128, 128}, {64, 64}, wide128}};
    AttentionVersion onePass = make(9, "the gradients in one pass",
                                    "scores are made once for all three gradients, five products instead of "
                                    "seven; tiles of keys add to dQ in whatever order they finish, so that its "
                                    "last bits change from run to run",
                                    8.0);
    onePass.needsRecord = true;
    onePass.queryGradient = QueryGradient::Atomic;
    onePass.tiles = {{64, {128, 64}, {128, 128}, onePass64}, {128, {128, 48}, {64, 128}, onePass128}};
    return {
        plain,
        make(2, "tensor cores",
             "the sums of Q K^T are in the registers that P V reads as its left operand; in plain tiles eight rows "
             "share their banks, and each load of shared memory takes eight wavefronts",
             7.5),
        make(3, "swizzled tiles and ldmatrix", "chunks of 16 bytes are exchanged so that eight rows share no bank",
             7.5),
        make(4, "asynchronous copies", "the next tile is on its way while this one is multiplied", 8.0),
        make(5, "powers of two, Q in registers", "a multiplication less for every score, and Q is loaded once", 8.0),
        wide,
        sparing,
        hopper,
        onePass};
}

} // namespace

const std::vector<AttentionVersion>& attentionVersions(AttentionKind kind, bool gpu)
{
    static const std::vector<AttentionVersion> standardOnHosts = hostStandard();
    static const std::vector<AttentionVersion> flashOnHosts = hostFlash();
    static const std::vector<AttentionVersion> standardOnGpus = gpuStandard();
    static const std::vector<AttentionVersion> flashOnGpus = gpuFlash();
    if (kind == AttentionKind::Standard)
        return gpu ? standardOnGpus : standardOnHosts;
    return gpu ? flashOnGpus : flashOnHosts;
}

} // namespace memscape
