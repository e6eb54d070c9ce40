// SPDX-License-Identifier: Apache-2.0
// What does it cost to read a tensor through a view, and to copy it so that it lies as it is read? On a GPU the
// lanes of a warp visit neighbours of the walk: where these are far apart in memory, a request takes a sector for
// each. The copy is a transposition (Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009):
//
//   version 1  thread i writes element i of the target: stores are whole lines, loads take a sector each
//   version 2  tiles through shared memory: loads and stores are whole lines, but the lanes that read a column of
//              the tile meet in one bank, 32 wavefronts a request
//   version 3  a row of the tile is a word longer: the column lies in 32 banks
//   version 4  64 bytes a thread, 16 a load and store (layout_tiles.h), and chunks of the tile's rows exchanged
//              instead of padding: less than a third of version 3's instructions for elements of 4 bytes, a sixth
//              for 2, a twelfth for 1 (sm_90). 8 or 4 bytes a load where sizes and strides are no multiples of 16,
//              else version 3 with more tiles at once. Three channels of pixels and the like fill no tile:
//              they are visited in order, the caches keep their sectors
//
// Where the same loop is fastest in storage and target there is nothing to turn, and version 1 is a copy; version 4
// makes it in words of up to 16 bytes. Left out: tiles of other shapes (for columns of few elements), TMA, words of
// several elements where sizes are odd.
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"
#include "kernels/cuda/layout/layout_tiles.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference: visit after visit on the host -----------------------------------------------

template <typename Word> static std::vector<Word> referenceCopy(const std::vector<Word>& source, const ViewNest& nest)
{
    std::vector<Word> target(nest.elements);
    for (std::uint64_t i = 0; i < nest.elements; ++i)
        target[i] = source[elementAt(nest, i)];
    return target;
}

template <typename Word> static std::uint32_t referenceSum(const std::vector<Word>& source, const ViewNest& nest)
{
    std::uint32_t sum = 0;
    for (std::uint64_t i = 0; i < nest.elements; ++i)
        sum += fold(source[elementAt(nest, i)]);
    return sum;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// Every element once, in the order of the walk: neighbouring lanes are neighbouring visits.
template <typename Word, typename Nest> __global__ void view_read(const Word* source, Nest nest, Sink sink)
{
    using Index = typename Nest::Index;
    constexpr int loads = sizeof(Word) > 8 ? 4 : 8; // addresses of more fill the registers
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    std::uint32_t sum = 0;
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < nest.elements; i += loads * all) {
        Index visit[loads], at[loads];
        Word word[loads];
#pragma unroll
        for (int k = 0; k < loads; ++k)
            visit[k] = static_cast<Index>(i + k * all);
        elementsAt(nest, visit, at);
#pragma unroll
        for (int k = 0; k < loads; ++k)
            word[k] = i + k * all < nest.elements ? load(source + at[k]) : wordOf<Word>(0);
#pragma unroll
        for (int k = 0; k < loads; ++k)
            sum += i + k * all < nest.elements ? fold(word[k]) : 0;
    }
    keep(sum, sink);
}

/// Version 1.
template <typename Word, typename Nest> __global__ void view_copy_v1(const Word* source, Word* target, Nest nest)
{
    using Index = typename Nest::Index;
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < nest.elements; i += all)
        store(target + i, load(source + elementAt(nest, static_cast<Index>(i))));
}

/// Versions 2 and 3, and 4 where words do not hold whole elements or elements lie apart.
template <typename Word, int version, int atOnce>
__global__ void __launch_bounds__(256) view_copy_tiled(const Word* source, Word* target, TurnTiles tiles)
{
    GpuMachine m(dynamicShared());
    turnPaddedTile<version, atOnce>(m, source, target, tiles);
}

/// Version 4, rows.
template <typename Word, typename Nest>
__global__ void __launch_bounds__(rowsThreads, 2) view_copy_rows(const Word* source, Word* target, Nest nest)
{
    GpuMachine m(nullptr);
    copyRows(m, source, target, nest);
}

// Blocks that 2048 threads of a multiprocessor make (228 KB of shared memory), or five of six (1536 threads, 100 KB);
// each takes a kilobyte for the system. Source: CUDA C++ Programming Guide, "Technical Specifications".
static_assert(8 * (WordTile<4, 4>::sharedBytes + 1024) <= 228 << 10, "90, 100");
static_assert(5 * (WordTile<4, 4>::sharedBytes + 1024) <= 100 << 10, "86, 89, 120");

/// Version 4, tiles.
template <typename Tile>
__global__ void __launch_bounds__(Tile::threads) view_copy_words(const void* source, void* target, TurnTiles tiles)
{
    GpuMachine m(dynamicShared());
    turnWordTile<Tile>(m, source, target, tiles);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

/// A grid that just fills the GPU, or less.
template <typename Kernel>
static cudaError_t fullGrid(Kernel kernel, std::uint64_t wanted, int threads, int multiprocessors, unsigned* blocks)
{
    int perSm = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, kernel, threads, 0);
    const std::uint64_t fits = std::uint64_t(std::max(1, perSm)) * std::max(1, multiprocessors);
    *blocks = static_cast<unsigned>(std::max<std::uint64_t>(1, std::min(wanted, fits)));
    return error;
}

template <typename Word, typename Nest>
static cudaError_t launchRead(const ViewLaunch& launch, const Nest& nest, int multiprocessors, cudaStream_t stream)
{
    unsigned blocks = 1;
    const cudaError_t error =
        fullGrid(view_read<Word, Nest>, blocksFor(nest.elements, 256), 256, multiprocessors, &blocks);
    if (error != cudaSuccess)
        return error;
    view_read<Word, Nest>
        <<<blocks, 256, 0, stream>>>(static_cast<const Word*>(launch.source), nest, sinkOf(launch.sum, launch.source));
    return cudaGetLastError();
}

template <typename Word, typename Nest>
static cudaError_t launchVisits(const ViewLaunch& launch, const Nest& nest, int multiprocessors, cudaStream_t stream)
{
    unsigned blocks = 1;
    const cudaError_t error =
        fullGrid(view_copy_v1<Word, Nest>, blocksFor(nest.elements, 256), 256, multiprocessors * 8, &blocks);
    if (error != cudaSuccess)
        return error;
    view_copy_v1<Word, Nest>
        <<<blocks, 256, 0, stream>>>(static_cast<const Word*>(launch.source), static_cast<Word*>(launch.target), nest);
    return cudaGetLastError();
}

template <typename Word, typename Nest>
static cudaError_t launchRows(const ViewLaunch& launch, const Nest& nest, cudaStream_t stream)
{
    const std::uint64_t wanted = blocksFor(nest.elements, std::uint64_t(rowsInFlight<Word, Nest>) * rowsThreads);
    const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(wanted, 0x7fffffffU));
    view_copy_rows<Word, Nest><<<blocks, rowsThreads, 0, stream>>>(static_cast<const Word*>(launch.source),
                                                                   static_cast<Word*>(launch.target), nest);
    return cudaGetLastError();
}

/// launch(nest) with the walk in 32 bits where it fits.
template <typename Launch> static cudaError_t withNest(const ViewNest& nest, const Launch& launch)
{
    return isNarrow(nest) ? launch(narrowNest(nest)) : launch(nest);
}

template <typename Word, int version, int atOnce>
static cudaError_t launchPadded(const ViewLaunch& launch, const TurnPlan& plan, cudaStream_t stream)
{
    const auto grid = static_cast<unsigned>(turnBlocks(plan, turnSide, atOnce * turnSide));
    view_copy_tiled<Word, version, atOnce><<<grid, 256, paddedSharedBytes<Word, atOnce>, stream>>>(
        static_cast<const Word*>(launch.source), static_cast<Word*>(launch.target),
        turnTiles(plan, turnSide, atOnce * turnSide));
    return cudaGetLastError();
}

template <int elementBytes, int chunkWords>
static cudaError_t launchWords(const ViewLaunch& launch, const TurnPlan& plan, cudaStream_t stream)
{
    using Tile = WordTile<elementBytes, chunkWords>;
    const auto grid = static_cast<unsigned>(turnBlocks(plan, Tile::aSide, Tile::bSide));
    view_copy_words<Tile><<<grid, Tile::threads, Tile::sharedBytes, stream>>>(
        launch.source, launch.target, turnTiles(plan, Tile::aSide, Tile::bSide));
    return cudaGetLastError();
}

template <int elementBytes>
static cudaError_t launchChunks(const ViewLaunch& launch, const TurnPlan& plan, int chunkWords, cudaStream_t stream)
{
    if (chunkWords == 4)
        return launchWords<elementBytes, 4>(launch, plan, stream);
    return chunkWords == 2 ? launchWords<elementBytes, 2>(launch, plan, stream)
                           : launchWords<elementBytes, 1>(launch, plan, stream);
}

template <typename Word>
static cudaError_t launchTurned(const ViewLaunch& launch, const CopyPath& path, cudaStream_t stream)
{
    const TurnPlan plan = turnPlanOf(launch.nest);
    if constexpr (sizeof(Word) <= 4) {
        if (path.kernel == CopyKernel::Words)
            return launchChunks<int(sizeof(Word))>(launch, plan, path.chunkWords, stream);
    }
    if (launch.version == 2)
        return launchPadded<Word, 2, 1>(launch, plan, stream);
    return launch.version == 3 ? launchPadded<Word, 3, 1>(launch, plan, stream)
                               : launchPadded<Word, 3, paddedTilesAtOnce(sizeof(Word))>(launch, plan, stream);
}

cudaError_t launchView(const ViewLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    if (launch.version < 0 || launch.version > viewCopyVersions || launch.nest.rank > viewLoops
        || launch.nest.elements == 0)
        return cudaErrorInvalidValue;
    const CopyPath path =
        copyPathOf(launch.nest, launch.version, launch.elementBytes,
                   reinterpret_cast<std::uintptr_t>(launch.source) | reinterpret_cast<std::uintptr_t>(launch.target));
    const ViewNest walk = inWords(launch.nest, path.neighbours);
    return withWord(launch.elementBytes * path.neighbours, cudaErrorInvalidValue, [&](auto tag) {
        using Word = typename decltype(tag)::Type;
        if (launch.version > 0 && (path.kernel == CopyKernel::Padded || path.kernel == CopyKernel::Words))
            return launchTurned<Word>(launch, path, stream);
        return withNest(walk, [&](const auto& nest) {
            if (launch.version == 0)
                return launchRead<Word>(launch, nest, multiprocessors, stream);
            return path.kernel == CopyKernel::Rows ? launchRows<Word>(launch, nest, stream)
                                                   : launchVisits<Word>(launch, nest, multiprocessors, stream);
        });
    });
}

// ---- 5. Checks --------------------------------------------------------------------------------

/// Sides around the tiles, planes, an offset, a broadcast; chunks of 4, 8 and 16 bytes; rows in words and thin ones.
static std::vector<ViewNest> checkedNests()
{
    std::vector<ViewNest> nests(9);
    nests[0] = {2, {100, 67}, {67, 1}, 0, 6700};              // 67 × 100 transposed
    nests[1] = {3, {64, 40, 3}, {40, 1, 2560}, 5, 7680};      // planes, an offset
    nests[2] = {2, {50, 33}, {0, 1}, 0, 1650};                // a broadcast
    nests[3] = {2, {90, 11}, {1, 100}, 3, 990};               // rows: nothing to turn
    nests[4] = {3, {96, 160, 2}, {160, 1, 15360}, 4, 30720};  // chunks as the offset allows
    nests[5] = {3, {160, 144, 2}, {144, 1, 23040}, 0, 46080}; // chunks of 16 bytes
    nests[6] = {2, {64, 300}, {1, 80}, 0, 19200};             // rows in words
    nests[7] = {2, {3, 5000}, {5000, 1}, 0, 15000};           // three channels of pixels
    nests[8] = {2, {5000, 3}, {3, 1}, 0, 15000};              // and back
    return nests;
}

template <typename Word>
static void compareView(KernelCheck& check, ViewLaunch launch, const ViewNest& nest, int multiprocessors)
{
    launch.nest = nest;
    std::vector<Word> source(lastElement(nest) + 1), found(nest.elements);
    for (std::uint64_t i = 0; i < source.size(); ++i)
        source[i] = wordOf<Word>(mixed(i));
    Scratch scratch;
    auto* from = scratch.upload(source);
    auto* to = scratch.upload(std::vector<Word>(nest.elements, wordOf<Word>(0xa5a5a5a5U)));
    auto* sum = scratch.upload(std::vector<std::uint32_t>(1, 0));
    launch.source = from;
    launch.target = to;
    launch.sum = sum;
    if (scratch.ok())
        scratch.note(launchView(launch, multiprocessors, nullptr));
    if (launch.version > 0) {
        scratch.download(found, to);
        return compareWords(check, scratch.error(), found, referenceCopy(source, nest));
    }
    std::vector<std::uint32_t> got(1);
    scratch.download(got, sum);
    verdict(check, scratch.error(), got[0] == referenceSum(source, nest) ? 0 : 1, 0, nest.elements);
}

KernelCheck checkView(int version, int elementBytes, int multiprocessors)
{
    KernelCheck check;
    ViewLaunch launch;
    launch.version = version;
    launch.elementBytes = elementBytes;
    const bool known = withWord(elementBytes, false, [&](auto tag) {
        for (const ViewNest& nest : checkedNests()) {
            compareView<typename decltype(tag)::Type>(check, launch, nest, multiprocessors);
            if (!check.passed)
                break;
        }
        return true;
    });
    if (!known)
        check.error = cudaErrorInvalidValue;
    if (version == 0)
        std::snprintf(check.kernel, sizeof check.kernel, "read of a view %d B", elementBytes);
    else
        std::snprintf(check.kernel, sizeof check.kernel, "copy of a view %d B v%d", elementBytes, version);
    return check;
}

} // namespace memscape::cuda
