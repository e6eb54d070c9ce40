// SPDX-License-Identifier: Apache-2.0
// The launchers of the experiments' kernels on the fake GPU, and the verdicts on them.
#include "tests/kernels/cuda/fake_gpu.h"

#include "kernels/cuda/kernels.h"
#include "kernels/programs/checkpoint/mlp_reference.h"
#include "kernels/programs/common/mlp_numbers.h"
#include "tests/support/warp_emulator_block.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

/// The one that was laid last.
static struct
{
    std::uint64_t nodes = 0, spacing = 0;
    std::uint64_t visited = 0; ///< loads so far
} chain;

// ---- the launchers ----------------------------------------------------------------------------

namespace memscape::cuda {

cudaError_t launchStride(const StrideLaunch& launch, int, cudaStream_t)
{
    const double share =
        launch.indices != nullptr ? 32 : std::min<double>(32, double(launch.walk.step) * launch.elementBytes);
    const double moved = double(launch.walk.touched) * std::max(share, 1.0);
    const std::uint64_t variant =
        fakeVariant(launch.version, launch.elementBytes, launch.operation, launch.indices != nullptr);
    return fakeLaunch("stride", variant,
                      moved * (launch.operation == Operation::Copy ? 2 : 1) / fakeGpu().sectorBytesPerSecond);
}
/// Sectors of 32 bytes for every element that is no neighbour of the one before; a copy in tiles moves each once.
cudaError_t launchView(const ViewLaunch& launch, int, cudaStream_t)
{
    const double step = launch.nest.rank > 0 && launch.version < 2 ? double(launch.nest.stride[0]) : 1;
    const double share = std::clamp<double>(step * launch.elementBytes, 1, 32);
    const double written = launch.version > 0 ? launch.elementBytes : 0;
    return fakeLaunch("view", fakeVariant(launch.version, launch.elementBytes, launch.nest.rank),
                      double(launch.nest.elements) * (share + written) / fakeGpu().sectorBytesPerSecond);
}
cudaError_t launchIndices(std::uint32_t*, std::uint64_t, std::uint64_t, std::uint32_t, cudaStream_t)
{
    return fakeQueue("indices");
}
cudaError_t launchStream(const StreamLaunch& launch, int, cudaStream_t)
{
    const double slower = launch.version == 3 && launch.threads == 512 ? 1 : 1.1;
    const int arrays = launch.operation == Operation::Triad ? 3 : launch.operation == Operation::Copy ? 2 : 1;
    return fakeLaunch("stream", fakeVariant(launch.version, launch.wordBytes, launch.operation),
                      slower * double(launch.bytes) * arrays / fakeGpu().streamBytesPerSecond);
}
cudaError_t launchLaps(const LapsLaunch& launch, cudaStream_t)
{
    const double bytes = double(launch.chunkBytes) * double(launch.laps) * launch.blocks;
    return fakeLaunch("laps", fakeVariant(launch.operation, launch.isPrivate),
                      bytes / (launch.isPrivate ? fakeGpu().l1BytesPerSecond : fakeGpu().l2BytesPerSecond));
}
cudaError_t lapsResidentBlocks(Operation, int, int multiprocessors, int* blocks)
{
    *blocks = 2 * multiprocessors;
    return cudaSuccess;
}
cudaError_t preferL1()
{
    return cudaSuccess;
}

cudaError_t launchChain(char*, const std::uint32_t*, std::uint64_t count, std::uint64_t spacing, ChaseKind kind,
                        cudaStream_t)
{
    chain = {count, spacing, 0};
    return fakeQueue("chain", fakeVariant(kind));
}

static cudaError_t chase(ChaseKind kind, double seconds, std::uint64_t loads, ChaseResult* result)
{
    const cudaError_t error = fakeLaunch("chase", fakeVariant(kind), seconds);
    *result = {1, static_cast<long long>(seconds * fakeGpu().clockHz), static_cast<unsigned long long>(seconds * 1e9)};
    chain.visited += loads;
    return error;
}
/// Nodes that no load has visited since they were laid come from DRAM.
cudaError_t launchChase(ChaseKind kind, const char*, std::uint64_t, std::uint64_t, std::uint64_t loads,
                        ChaseResult* result, cudaStream_t)
{
    const FakeGpu& gpu = fakeGpu();
    const std::uint64_t bytes = chain.nodes * chain.spacing;
    const bool near = bytes <= gpu.l1Bytes && kind != ChaseKind::CacheGlobal;
    const double latency = near ? gpu.l1Latency : (bytes <= gpu.l2Bytes ? gpu.l2Latency : gpu.dramLatency);
    const std::uint64_t fresh = std::min(loads, chain.nodes - std::min(chain.nodes, chain.visited));
    return chase(kind, double(fresh) * gpu.dramLatency + double(loads - fresh) * latency, loads, result);
}
cudaError_t launchSharedChase(const std::uint32_t*, std::uint32_t, std::uint64_t loads, ChaseResult* result,
                              cudaStream_t)
{
    return chase(ChaseKind::Shared, 12e-9 * double(loads), loads, result);
}

/// What the banks take for one request, counted by the emulated machine.
static std::uint64_t bankTurns(const BankWork& work)
{
    emulated::BankCount count;
    std::vector<std::uint32_t> at;
    for (std::uint32_t lane = 0; lane < work.lanes; ++lane)
        at.push_back(addressIn(work.tile, work.asked[lane]));
    emulated::addTurns(count, at, work.tile.width);
    return count.turns;
}
static cudaError_t bankTime(const char* kernel, const BankLaunch& launch, double cycles)
{
    const FakeGpu& gpu = fakeGpu();
    const double clock = gpu.clockHz * gpu.clockSag;
    const auto begin = static_cast<unsigned long long>(fakeClocks()),
               beginNs = static_cast<unsigned long long>(fakeNow() * 1e9);
    const cudaError_t error = fakeLaunch(kernel, fakeVariant(launch.work.tile.width, launch.isWrite), cycles / clock);
    *launch.result = {begin, begin + static_cast<unsigned long long>(cycles), beginNs,
                      beginNs + static_cast<unsigned long long>(cycles / clock * 1e9)};
    return error;
}
cudaError_t launchBanks(const BankLaunch& launch, cudaStream_t)
{
    return bankTime("banks", launch,
                    double(bankTurns(launch.work)) * launch.turns * bankRequestsPerTurn * launch.warps);
}
cudaError_t launchBankLatency(const BankLaunch& launch, cudaStream_t)
{
    const double cycles = fakeGpu().sharedLatencyCycles + double(bankTurns(launch.work)) - 1;
    return bankTime("bank latency", launch, cycles * launch.turns * bankRequestsPerTurn);
}

// The chain of checkpoint is small in tests, so its kernels really run, on the host.
/// Sums in the order of k, row by row of B as the cache likes it.
static void multiply(const ProductLaunch& w)
{
    std::vector<float> b(w.inner * w.columns), sums(w.columns);
    for (std::uint64_t k = 0; k < w.inner; ++k) {
        for (std::uint64_t column = 0; column < w.columns; ++column)
            b[k * w.columns + column] = w.b[w.bTransposed ? column * w.bStride + k : k * w.bStride + column];
    }
    for (std::uint64_t row = 0; row < w.rows; ++row) {
        std::ranges::fill(sums, 0.0F);
        for (std::uint64_t k = 0; k < w.inner; ++k) {
            const float a = w.a[w.aTransposed ? k * w.aStride + row : row * w.aStride + k];
            for (std::uint64_t column = 0; column < w.columns; ++column)
                sums[column] += a * b[k * w.columns + column];
        }
        std::copy(sums.begin(), sums.end(), w.c + row * w.cStride);
    }
}
cudaError_t launchProduct(const ProductLaunch& w, cudaStream_t stream)
{
    if (fakeError() != cudaSuccess)
        return fakeError();
    fakeReads(stream, w.a, 4 * w.aStride * (w.aTransposed ? w.inner : w.rows));
    fakeReads(stream, w.b, 4 * w.bStride * (w.bTransposed ? w.columns : w.inner));
    fakeWrites(stream, w.c, 4 * w.cStride * w.rows);
    const bool isSmall = w.rows * w.columns * w.inner <= (1U << 26); // a large one only takes its time
    if (isSmall)
        multiply(w);
    const std::uint64_t written = w.cStride == w.columns ? w.rows * w.columns : 0;
    // Not looked at, but numbers.
    if (!isSmall && written > 0 && written <= (1U << 20) && !(std::isfinite(*w.c) && std::isfinite(w.c[written - 1])))
        std::fill_n(w.c, written, 0.0F);
    FakeGpu& gpu = fakeGpu();
    if (isSmall && gpu.productsUntilWrong >= 0 && gpu.productsUntilWrong-- == 0)
        *w.c += 1;
    return fakeLaunch("product", fakeVariant(w.version, w.aTransposed, w.bTransposed),
                      2.0 * double(w.rows) * double(w.columns) * double(w.inner) / gpu.flopsPerSecond);
}
/// Of arrays this large the elements are not looked at: they become numbers, whichever, in no time.
static bool isLarge(std::uint64_t elements)
{
    return elements >= (1U << 18);
}
/// A pass over so many floats.
static cudaError_t elements(const char* kernel, std::uint64_t floats)
{
    return fakeLaunch(kernel, 0, 4.0 * double(floats) / fakeGpu().streamBytesPerSecond);
}
cudaError_t launchGelu(const float* sums, const float* bias, float* z, float* x, std::uint64_t rows,
                       std::uint64_t width, cudaStream_t stream)
{
    fakeReads(stream, sums, 4 * rows * width);
    for (float* result : {z, x}) {
        if (result != nullptr)
            fakeWrites(stream, result, 4 * rows * width);
        if (result != nullptr && isLarge(rows * width))
            std::fill_n(result, rows * width, 0.0F);
    }
    for (std::uint64_t i = 0; i < rows * width && !isLarge(rows * width) && fakeError() == cudaSuccess; ++i) {
        const float value = sums[i] + bias[i % width];
        if (z != nullptr)
            z[i] = value;
        if (x != nullptr)
            x[i] = static_cast<float>(geluReference(double(value)));
    }
    return elements("gelu", 3 * rows * width);
}
cudaError_t launchGeluSlope(const float* z, float* y, std::uint64_t count, cudaStream_t stream)
{
    fakeReads(stream, z, 4 * count);
    fakeWrites(stream, y, 4 * count);
    for (std::uint64_t i = 0; i < count && !isLarge(count) && fakeError() == cudaSuccess; ++i)
        y[i] *= static_cast<float>(geluSlopeReference(double(z[i])));
    return elements("gelu slope", 3 * count);
}
cudaError_t launchColumnSums(const float* y, float* sums, std::uint64_t rows, std::uint64_t width, cudaStream_t)
{
    for (std::uint64_t column = 0; column < width && fakeError() == cudaSuccess; ++column) {
        sums[column] = 0;
        for (std::uint64_t row = 0; row < rows && !isLarge(rows * width); ++row)
            sums[column] += y[row * width + column];
    }
    return elements("column sums", rows * width);
}
cudaError_t launchLoss(const float* x, float* gradient, std::uint64_t count, double* partial, cudaStream_t stream)
{
    fakeReads(stream, x, 4 * count);
    fakeWrites(stream, gradient, 4 * count);
    std::fill_n(partial, lossPartials, 0.0);
    for (std::uint64_t i = 0; i < count && fakeError() == cudaSuccess; ++i) {
        const float difference = x[i] - mlpUniform(mlpTargetSeed, i);
        partial[0] += double(difference) * double(difference);
        gradient[i] = static_cast<float>(2 / double(count)) * difference;
    }
    return elements("loss", 2 * count);
}
cudaError_t launchUniform(float* values, std::uint64_t count, std::uint64_t seed, float scale, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && fakeError() == cudaSuccess; ++i)
        values[i] = mlpUniform(seed, i) * scale;
    return elements("uniform", count);
}
cudaError_t launchDigest(const float* values, std::uint64_t count, unsigned long long* sum, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && fakeError() == cudaSuccess; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, values + i, sizeof bits);
        *sum += mlpDigestOf(i, bits);
    }
    return elements("digest", count);
}

static KernelCheck verdictOf(const char* name)
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = fakeError() == cudaSuccess && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "%s", name);
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}
KernelCheck checkStride(int, int, Operation, std::uint64_t, bool, int)
{
    return verdictOf("stride");
}
KernelCheck checkView(int, int, int)
{
    return verdictOf("view");
}
KernelCheck checkStream(int, int, Operation, int)
{
    return verdictOf("stream");
}
KernelCheck checkLaps(Operation, bool, int)
{
    return verdictOf("laps");
}
KernelCheck checkBanks(const BankWork&, bool)
{
    return verdictOf("banks");
}
KernelCheck checkBankLatency(const BankWork&)
{
    return verdictOf("banks latency");
}
KernelCheck checkChase(ChaseKind)
{
    return verdictOf("chase");
}
KernelCheck checkProduct(int, bool, bool)
{
    return verdictOf("product");
}
KernelCheck checkMlpElements()
{
    return verdictOf("gelu");
}

} // namespace memscape::cuda
