// SPDX-License-Identifier: Apache-2.0
// What does it cost to read a tensor through a view, and to copy it so that it lies as it is read? On a GPU the
// lanes of a warp visit neighbours of the walk: where these are far apart in memory, a request takes a sector for
// each. The copy is a transposition (Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009):
//
//   version 1  thread i writes element i of the target: stores are whole lines, loads take a sector each
//   version 2  tiles through shared memory: loads and stores are whole lines, but the lanes that read a column of
//              the tile meet in one bank, 32 wavefronts a request
//   version 3  a row of the tile is 33 words: the column lies in 32 banks
//   version 4  four elements a load and store (4-byte elements whose sizes and strides are multiples of four), and
//              quads of the tile's rows exchanged instead of padding: a quarter of the instructions
//
// Where the same loop is fastest in storage and target there is nothing to turn, and version 1 is a copy. Left out:
// tiles of other shapes, TMA, several elements per 4-byte word for smaller types.
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/words.cuh"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference: visit after visit on the host -----------------------------------------------

template <typename Word>
static std::vector<Word> referenceCopy(const std::vector<Word>& source, const ViewNest& nest)
{
    std::vector<Word> target(nest.elements);
    for (std::uint64_t i = 0; i < nest.elements; ++i)
        target[i] = source[elementAt<std::uint64_t>(nest, i)];
    return target;
}

template <typename Word>
static std::uint32_t referenceSum(const std::vector<Word>& source, const ViewNest& nest)
{
    std::uint32_t sum = 0;
    for (std::uint64_t i = 0; i < nest.elements; ++i)
        sum += fold(source[elementAt<std::uint64_t>(nest, i)]);
    return sum;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// Every element once, in the order of the walk: neighbouring lanes are neighbouring visits.
template <typename Word, typename Index>
__global__ void view_read(const Word* source, ViewNest nest, Sink sink)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    std::uint32_t sum = 0;
    for (; i + (inFlight - 1) * all < nest.elements; i += inFlight * all) {
        Word word[inFlight];
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            word[k] = load(source + elementAt<Index>(nest, static_cast<Index>(i + k * all)));
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            sum += fold(word[k]);
    }
    for (; i < nest.elements; i += all)
        sum += fold(load(source + elementAt<Index>(nest, static_cast<Index>(i))));
    keep(sum, sink);
}

/// Version 1.
template <typename Word, typename Index>
__global__ void view_copy_v1(const Word* source, Word* target, ViewNest nest)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < nest.elements; i += all)
        store(target + i, load(source + elementAt<Index>(nest, static_cast<Index>(i))));
}

/// Versions 2 and 3: a block of 32 × 8 threads turns a tile of 32 × 32.
template <typename Word, int version>
__global__ void view_copy_tiled(const Word* source, Word* target, TurnPlan plan)
{
    __shared__ Word tile[turnSide * (turnSide + 1)];
    const TurnTile at = turnTile(plan, blockIdx.x, turnSide, turnSide);
    const int lane = static_cast<int>(threadIdx.x) % turnSide, row = static_cast<int>(threadIdx.x) / turnSide;
#pragma unroll
    for (int k = 0; k < turnSide; k += 8) {
        const std::uint64_t a = at.a + row + k, b = at.b + lane;
        if (a < plan.aCount && b < plan.bCount)
            store(&tile[tileWord(version, row + k, lane)], load(source + at.from + a * plan.aFrom + b * plan.bFrom));
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < turnSide; k += 8) {
        const std::uint64_t a = at.a + lane, b = at.b + row + k;
        if (a < plan.aCount && b < plan.bCount)
            store(target + at.to + b * plan.bTo + a, load(&tile[tileWord(version, lane, row + k)]));
    }
}

/// Version 4: 256 threads turn four tiles along b, a quad at a time.
__global__ void view_copy_quads(const std::uint32_t* source, std::uint32_t* target, TurnPlan plan)
{
    __shared__ __align__(16) std::uint32_t tiles[turnQuadTiles][turnSide * turnSide];
    const TurnTile at = turnTile(plan, blockIdx.x, turnSide, turnQuadTiles * turnSide);
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / 8, quad = thread % 8 * 4; // of a, of b
#pragma unroll
    for (int k = 0; k < turnQuadTiles; ++k) {
        const std::uint64_t a = at.a + row, b = at.b + k * turnSide + quad;
        if (a < plan.aCount && b < plan.bCount) {
            const auto* from = reinterpret_cast<const Word16*>(source + at.from + a * plan.aFrom + b);
            store(reinterpret_cast<Word16*>(&tiles[k][tileWord(4, row, quad)]), load(from));
        }
    }
    __syncthreads();
    // Eight quads of a by four of b in a warp: 32 banks, and lines of 128 bytes in the target.
    const int aQuad = thread % 8 * 4, column = thread / 8;
#pragma unroll
    for (int k = 0; k < turnQuadTiles; ++k) {
        const std::uint64_t a = at.a + aQuad, b = at.b + k * turnSide + column;
        if (a < plan.aCount && b < plan.bCount) {
            const Word16 word{tiles[k][tileWord(4, aQuad, column)], tiles[k][tileWord(4, aQuad + 1, column)],
                              tiles[k][tileWord(4, aQuad + 2, column)], tiles[k][tileWord(4, aQuad + 3, column)]};
            store(reinterpret_cast<Word16*>(target + at.to + b * plan.bTo + a), word);
        }
    }
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

template <typename Word, typename Index>
static cudaError_t launchRead(const ViewLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    unsigned blocks = 1;
    const cudaError_t error = fullGrid(view_read<Word, Index>, blocksFor(launch.nest.elements, 256), 256, multiprocessors, &blocks);
    if (error != cudaSuccess)
        return error;
    view_read<Word, Index><<<blocks, 256, 0, stream>>>(static_cast<const Word*>(launch.source), launch.nest,
                                                       sinkOf(launch.sum, launch.source));
    return cudaGetLastError();
}

template <typename Word, typename Index>
static cudaError_t launchRows(const ViewLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    unsigned blocks = 1;
    const cudaError_t error =
        fullGrid(view_copy_v1<Word, Index>, blocksFor(launch.nest.elements, 256), 256, multiprocessors * 8, &blocks);
    if (error != cudaSuccess)
        return error;
    view_copy_v1<Word, Index><<<blocks, 256, 0, stream>>>(static_cast<const Word*>(launch.source),
                                                          static_cast<Word*>(launch.target), launch.nest);
    return cudaGetLastError();
}

template <typename Word>
static cudaError_t launchTiles(const ViewLaunch& launch, const TurnPlan& plan, cudaStream_t stream)
{
    const auto* source = static_cast<const Word*>(launch.source);
    auto* target = static_cast<Word*>(launch.target);
    const bool isQuads = launch.version == 4 && sizeof(Word) == 4 && hasQuads(plan);
    const std::uint64_t blocks = turnBlocks(plan, turnSide, isQuads ? turnQuadTiles * turnSide : turnSide);
    if (blocks > 0x7fffffffULL)
        return cudaErrorInvalidValue;
    const auto grid = static_cast<unsigned>(blocks);
    if (isQuads)
        view_copy_quads<<<grid, 256, 0, stream>>>(reinterpret_cast<const std::uint32_t*>(source),
                                                  reinterpret_cast<std::uint32_t*>(target), plan);
    else if (launch.version == 2)
        view_copy_tiled<Word, 2><<<grid, 256, 0, stream>>>(source, target, plan);
    else
        view_copy_tiled<Word, 3><<<grid, 256, 0, stream>>>(source, target, plan);
    return cudaGetLastError();
}

cudaError_t launchView(const ViewLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    if (launch.version < 0 || launch.version > viewCopyVersions || launch.nest.rank > viewLoops || launch.nest.elements == 0)
        return cudaErrorInvalidValue;
    const TurnPlan plan = turnPlanOf(launch.nest);
    const bool isNarrow = launch.nest.elements <= 0xffffffffULL;
    return withWord(launch.elementBytes, cudaErrorInvalidValue, [&](auto tag) {
        using Word = typename decltype(tag)::Type;
        if (launch.version == 0)
            return isNarrow ? launchRead<Word, std::uint32_t>(launch, multiprocessors, stream)
                            : launchRead<Word, std::uint64_t>(launch, multiprocessors, stream);
        if (launch.version == 1 || !plan.turns)
            return isNarrow ? launchRows<Word, std::uint32_t>(launch, multiprocessors, stream)
                            : launchRows<Word, std::uint64_t>(launch, multiprocessors, stream);
        return launchTiles<Word>(launch, plan, stream);
    });
}

// ---- 5. Checks --------------------------------------------------------------------------------

/// Sides around the tiles, planes, an offset, a broadcast; the last has whole quads.
static std::vector<ViewNest> checkedNests()
{
    std::vector<ViewNest> nests(5);
    nests[0] = {2, {100, 67}, {67, 1}, 0, 6700};                      // 67 × 100 transposed
    nests[1] = {3, {64, 40, 3}, {40, 1, 2560}, 5, 7680};              // planes, an offset
    nests[2] = {2, {50, 33}, {0, 1}, 0, 1650};                        // a broadcast
    nests[3] = {2, {90, 11}, {1, 100}, 3, 990};                       // rows: nothing to turn
    nests[4] = {3, {96, 160, 2}, {160, 1, 15360}, 4, 30720};          // whole quads
    return nests;
}

template <typename Word>
static void compareView(KernelCheck& check, ViewLaunch launch, const ViewNest& nest, int multiprocessors)
{
    launch.nest = nest;
    std::uint64_t last = nest.offset;
    for (int i = 0; i < nest.rank; ++i)
        last += (nest.count[i] - 1) * nest.stride[i];
    std::vector<Word> source(last + 1), found(nest.elements);
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
