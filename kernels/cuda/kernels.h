// SPDX-License-Identifier: Apache-2.0
// The kernels as plain calls: raw pointers and numbers in, a CUDA error code out. The only header
// between the .cu files (nvcc, C++17) and the backend (C++20).
#pragma once

#include "core/device/operation.h"
#include "kernels/cuda/bank-conflicts/banks.h"
#include "kernels/cuda/common/plan.h"
#include "kernels/cuda/layout/layout_plan.h"
#include "kernels/cuda/precision/format_tags.h"

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace memscape::cuda {

/// The verdict on one version of one kernel, compared with the reference on the host.
struct KernelCheck
{
    bool passed = false;
    cudaError_t error = cudaSuccess; ///< when it could not even run
    char kernel[64] = {};            ///< "stride read 4 B v2"
    char detail[160] = {};           ///< "524288 elements equal", "17 of 524288 differ, first at 3"
};

// ---- stride.cu ---------------------------------------------------------------------------------

constexpr int strideVersions = 2;

struct StrideLaunch
{
    int version = strideVersions;
    int elementBytes = 4;
    Operation operation = Operation::Read;
    const void* source = nullptr;
    void* target = nullptr;
    const std::uint32_t* indices = nullptr; ///< the elements to touch; null walks instead
    Walk walk = {};
    std::uint32_t* sum = nullptr; ///< read: where the check sum goes; null when timed
    int threads = 256;            ///< per block
};

/// Queues one pass. cudaErrorInvalidValue for an element size or version that does not exist.
cudaError_t launchStride(const StrideLaunch& launch, int multiprocessors, cudaStream_t stream);
/// Fills `words` 4-byte words with mixed(index + salt).
cudaError_t launchFill(std::uint32_t* data, std::uint64_t words, std::uint64_t salt, cudaStream_t stream);
/// indices[i] = permuted(i, range), i < count ≤ range ≤ 2^32: `count` different elements of
/// `range`.
cudaError_t launchIndices(std::uint32_t* indices, std::uint64_t count, std::uint64_t range, std::uint32_t seed,
                          cudaStream_t stream);
KernelCheck checkStride(int version, int elementBytes, Operation operation, std::uint64_t step, bool gather,
                        int multiprocessors);

// ---- layout.cu ---------------------------------------------------------------------------------

constexpr int viewCopyVersions = 4;

/// A walk over a view. Version 0 reads it, 1 to 4 copy it: target[i] is the i-th visit.
struct ViewLaunch
{
    int version = viewCopyVersions;
    int elementBytes = 4;
    const void* source = nullptr; ///< the storage
    void* target = nullptr;
    ViewNest nest = {};
    std::uint32_t* sum = nullptr; ///< read: where the check sum goes; null when timed
};
cudaError_t launchView(const ViewLaunch& launch, int multiprocessors, cudaStream_t stream);
KernelCheck checkView(int version, int elementBytes, int multiprocessors);

// ---- streams.cu --------------------------------------------------------------------------------

constexpr int streamVersions = 3;

struct StreamLaunch
{
    int version = streamVersions;
    int wordBytes = 16; ///< per thread and load
    Operation operation = Operation::Read;
    const void* first = nullptr;  ///< read, copy: the source; triad: b
    const void* second = nullptr; ///< triad: c
    void* target = nullptr;
    std::uint64_t bytes = 0; ///< of one array
    std::uint32_t* sum = nullptr;
    int threads = 1024;
    int blocksPerSm = 0; ///< of the grid-stride versions; 0: as many as fit (the occupancy scan sets it)
};
cudaError_t launchStream(const StreamLaunch& launch, int multiprocessors, cudaStream_t stream);
KernelCheck checkStream(int version, int wordBytes, Operation operation, int multiprocessors);

// ---- laps.cu -----------------------------------------------------------------------------------

/// Laps over a working set that stays where it fits. Private: every block has its own slice of
/// `chunkBytes` and reads it `laps` times (L1). Shared: all blocks share `chunks` chunks in an
/// order that changes (L2, DRAM). Write stores, copy reads the first half of a chunk and stores the
/// second.
struct LapsLaunch
{
    Operation operation = Operation::Read;
    char* data = nullptr;
    std::uint64_t chunkBytes = 0; ///< a multiple of 16
    std::uint64_t chunks = 1;
    bool isPrivate = false;
    std::uint64_t laps = 1;
    std::uint32_t* sum = nullptr;
    int threads = 1024;
    int blocks = 1;
};
cudaError_t launchLaps(const LapsLaunch& launch, cudaStream_t stream);
/// Blocks of `threads` that fit on the device at once.
cudaError_t lapsResidentBlocks(Operation operation, int threads, int multiprocessors, int* blocks);
KernelCheck checkLaps(Operation operation, bool isPrivate, int multiprocessors);

// ---- chase.cu ----------------------------------------------------------------------------------

enum class ChaseKind { Index, CacheAll, CacheGlobal, Shared };

struct ChaseResult
{
    std::uint64_t end = 0;              ///< where the chain stands now; the next launch starts there
    long long cycles = 0;               ///< SM clocks for the loads
    unsigned long long nanoseconds = 0; ///< of the global timer, over the same loads
};

/// nodes[i × spacing] = address of node next[i] (Index: the index itself).
cudaError_t launchChain(char* nodes, const std::uint32_t* next, std::uint64_t count, std::uint64_t spacing,
                        ChaseKind kind, cudaStream_t stream);
/// `loads` dependent loads (rounded down to whole turns of 32) by one lane, from `start`.
cudaError_t launchChase(ChaseKind kind, const char* nodes, std::uint64_t start, std::uint64_t spacing,
                        std::uint64_t loads, ChaseResult* result, cudaStream_t stream);
/// Shared memory: `count` words of `next` are copied in first.
cudaError_t launchSharedChase(const std::uint32_t* next, std::uint32_t count, std::uint64_t loads, ChaseResult* result,
                              cudaStream_t stream);
/// Give the whole array of an SM to L1 for the chases and laps through it.
cudaError_t preferL1();
KernelCheck checkChase(ChaseKind kind);

// ---- product.cu --------------------------------------------------------------------------------

constexpr int productVersions = 2;

/// C (rows × columns) = A · B, row-major floats; A is inner × rows when it is read transposed, B is
/// columns × inner. Strides are distances of rows in elements.
struct ProductLaunch
{
    int version = productVersions;
    std::uint64_t rows = 0, columns = 0, inner = 0;
    const float* a = nullptr;
    std::uint64_t aStride = 0;
    bool aTransposed = false;
    const float* b = nullptr;
    std::uint64_t bStride = 0;
    bool bTransposed = false;
    float* c = nullptr;
    std::uint64_t cStride = 0;
};
cudaError_t launchProduct(const ProductLaunch& launch, cudaStream_t stream);
KernelCheck checkProduct(int version, bool aTransposed, bool bTransposed);

// ---- banks.cu ----------------------------------------------------------------------------------

constexpr std::uint32_t bankRequestsPerTurn = 16; ///< of every warp

/// SM clocks and the global timer, from the first warp's start to the last one's end.
struct BankResult
{
    unsigned long long begin = ~0ULL, end = 0;
    unsigned long long beginNs = ~0ULL, endNs = 0;
};

struct BankLaunch
{
    BankWork work;
    bool isWrite = false;
    int warps = 32;               ///< of the one block
    std::uint32_t turns = 1;      ///< of bankRequestsPerTurn requests
    BankResult* result = nullptr; ///< a fresh one for every launch
    /// Throughput: where the check sum goes, null when timed. Latency: lanes that went astray.
    std::uint32_t* sum = nullptr;
    void* target = nullptr; ///< write: the tile afterwards; null when timed
};
/// Shared memory of one block.
inline std::uint32_t bankSharedBytes(const BankWork& work)
{
    return bytesOf(work.tile, work.elements / work.tile.columns);
}
/// cudaErrorInvalidValue for a request that leaves its tile.
cudaError_t launchBanks(const BankLaunch& launch, cudaStream_t stream);
/// One warp, reads of 4 bytes and more.
cudaError_t launchBankLatency(const BankLaunch& launch, cudaStream_t stream);
KernelCheck checkBanks(const BankWork& work, bool isWrite);
KernelCheck checkBankLatency(const BankWork& work);

// ---- format_product.cu -------------------------------------------------------------------------

/// On tensor cores, in the formats of format_tags.h. Queues it; cudaErrorInvalidValue for sizes below 1.
cudaError_t launchFormatProduct(const FormatProductLaunch& launch, cudaStream_t stream);

// ---- formats.cu --------------------------------------------------------------------------------

constexpr std::uint32_t operandTable = 4096; ///< bit patterns that a matrix is filled from

/// Where element `index` of the matrix with this seed is in the table.
MEMSCAPE_HD std::uint32_t operandPlace(std::uint64_t seed, std::uint64_t index)
{
    return mixed(index + (seed << 32) + seed * 7919U) % operandTable;
}
/// `count` elements of 1, 2, 4 or 8 bytes; table: operandTable of them, in device memory.
cudaError_t launchOperands(void* to, int bytes, const void* table, std::uint64_t count, std::uint64_t seed,
                           cudaStream_t stream);

enum class ShortFormat { Float16, Bfloat16, E4M3, E5M2 };
/// The GPU's own conversions, rounded to nearest, ties to even. `saturates`: FP8 beyond the largest number.
cudaError_t launchNarrow(ShortFormat format, const float* from, std::uint16_t* bits, std::uint64_t count,
                         bool saturates, cudaStream_t stream);
cudaError_t launchWiden(ShortFormat format, const std::uint16_t* bits, float* to, std::uint64_t count,
                        cudaStream_t stream);

// ---- mlp.cu ------------------------------------------------------------------------------------

/// z = sums + bias and x = gelu(z), rows × width; either of z and x may be null, and each may be sums.
cudaError_t launchGelu(const float* sums, const float* bias, float* z, float* x, std::uint64_t rows,
                       std::uint64_t width, cudaStream_t stream);
/// y = y ∘ gelu'(z).
cudaError_t launchGeluSlope(const float* z, float* y, std::uint64_t count, cudaStream_t stream);
/// sums[column] = Σ over the rows, always in the same order.
cudaError_t launchColumnSums(const float* y, float* sums, std::uint64_t rows, std::uint64_t width, cudaStream_t stream);
/// gradient = 2 (x − target) / count; partial: lossPartials sums of (x − target)².
constexpr int lossPartials = 1024;
cudaError_t launchLoss(const float* x, float* gradient, std::uint64_t count, double* partial, cudaStream_t stream);
/// values[i] = scale × element i of the seed (kernels/programs/common/mlp_numbers.h).
cudaError_t launchUniform(float* values, std::uint64_t count, std::uint64_t seed, float scale, cudaStream_t stream);
/// Adds the digest of `count` floats to *sum.
cudaError_t launchDigest(const float* values, std::uint64_t count, unsigned long long* sum, cudaStream_t stream);
KernelCheck checkMlpElements();

// ---- harness.cu --------------------------------------------------------------------------------

struct Stamp
{
    unsigned long long nanoseconds = 0;
    long long clocks = 0;
};

/// What the host and a waiting kernel share, in mapped host memory.
struct StreamBlock
{
    volatile std::uint32_t open = 0;     ///< the host lets the stream go on
    volatile std::uint32_t timedOut = 0; ///< the kernel stopped waiting
};

cudaError_t launchEmpty(cudaStream_t stream);
/// One thread spins until it is released or `limitNs` have passed.
cudaError_t launchBlockingKernel(StreamBlock* block, std::uint64_t limitNs, cudaStream_t stream);
/// SM 0 writes its clock and the global timer.
cudaError_t launchStamp(Stamp* stamp, int multiprocessors, cudaStream_t stream);
/// Multiplications for about `limitNs`, to leave the idle clock.
cudaError_t launchSpin(std::uint64_t limitNs, int multiprocessors, float* sink, cudaStream_t stream);

} // namespace memscape::cuda
