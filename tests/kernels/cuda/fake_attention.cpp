// SPDX-License-Identifier: Apache-2.0
// Attention on the GPU of the tests' own making: small problems really run, plainly or, when a test
// asks for it, thread by thread on the emulated machine (tests/support/warp_emulator.h) with the very
// kernels of the module; large ones only take their time. A fault of the machine is an illegal
// address, as on a GPU.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash_backward.h"
#include "kernels/cuda/attention/flash_one_pass.h"
#include "kernels/cuda/attention/flash_v1.h"
#include "kernels/cuda/attention/flash_v2.h"
#include "kernels/cuda/attention/flash_v3.h"
#include "kernels/cuda/attention/flash_v4.h"
#include "kernels/cuda/attention/flash_v5.h"
#include "kernels/cuda/attention/flash_v7.h"
#include "kernels/cuda/attention/standard.h"
#include "tests/kernels/cuda/fake_gpu.h"
#include "tests/kernels/cuda/fake_hopper.h"
#include "tests/support/attention_cases.h"
#include "tests/support/forgetful_machines.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

using emulated::GlobalMemory;
using emulated::Launch;
using emulated::Machine;
using emulated::WithoutBarriers;

constexpr double emulatedScores = 400'000; ///< products of more rows and keys than that are timed only

/// kernel(machine) over the grid.
template <typename Kernel> bool emulate(const Launch& launch, GlobalMemory& memory, const Kernel& kernel)
{
    try {
        emulated::run(launch, memory, [&](Machine& m) {
            if (fakeGpu().forgetsBarriers)
                kernel(static_cast<WithoutBarriers&>(m));
            else
                kernel(m);
        });
    } catch (const emulated::Fault& fault) {
        std::fprintf(stderr, "emulated GPU: %s\n", fault.what());
        return false;
    }
    return true;
}

struct Extents
{
    std::size_t queries, keys, rows; ///< elements of Q, elements of K, rows of Q
    std::size_t element;

    Extents(const AttentionSizes& s, ElementFormat format)
        : queries(std::size_t(s.batch) * std::size_t(s.heads) * std::size_t(s.queries) * std::size_t(s.headDim))
        , keys(std::size_t(s.batch) * std::size_t(s.kvHeads) * std::size_t(s.keys) * std::size_t(s.headDim))
        , rows(queries / std::size_t(s.headDim))
        , element(format == ElementFormat::Float32 ? 4 : 2)
    { }
};

double scoresOf(const AttentionSizes& s)
{
    return double(s.batch) * s.heads * double(s.queries) * s.keys;
}

GlobalMemory inputsOf(const FlashLaunch& w)
{
    const Extents e(w.sizes, w.format);
    GlobalMemory memory;
    memory.readable("Q", w.arrays.query, e.queries * e.element);
    memory.readable("K", w.arrays.key, e.keys * e.element);
    memory.readable("V", w.arrays.value, e.keys * e.element);
    return memory;
}

template <typename Tile> Launch launchOf(const AttentionSizes& s, int sharedBytes)
{
    Launch launch;
    launch.blocksX = over(s.queries, Tile::rows);
    launch.blocksY = s.batch * s.heads;
    launch.threads = Tile::threads;
    launch.sharedBytes = sharedBytes;
    launch.isTuring = fakeGpu().computeCapability < 80;
    return launch;
}

template <typename Element, int headDim> bool runPlain(const FlashLaunch& w, GlobalMemory& memory)
{
    using One = FlashOne<headDim>;
    return emulate(launchOf<One>(w.sizes, One::sharedBytes), memory,
                   [&](auto& m) { flash_v1<Element, headDim>(m, w.sizes, w.arrays); });
}

template <typename Element, int headDim> bool runForward(const FlashLaunch& w, GlobalMemory& memory)
{
    using Two = FlashTwo<Element, headDim>;
    using Three = FlashThree<Element, headDim>;
    using Six = FlashSix<Element, headDim>;
    using Seven = FlashSeven<Element, headDim>;
    const AttentionSizes& s = w.sizes;
    switch (w.version) {
    case 1: return runPlain<Element, headDim>(w, memory);
    case 2:
        return emulate(launchOf<Two>(s, flashSharedBytesV2<Two>), memory,
                       [&](auto& m) { flash_v2<Two>(m, s, w.arrays); });
    case 3:
        return emulate(launchOf<Three>(s, flashSharedBytesV3<Three>), memory,
                       [&](auto& m) { flash_v3<Three>(m, s, w.arrays); });
    case 4:
        return emulate(launchOf<Three>(s, flashSharedBytesV4<Three>), memory,
                       [&](auto& m) { flash_v4<Three>(m, s, w.arrays); });
    case 5:
        return emulate(launchOf<Three>(s, flashSharedBytesV5<Three>), memory,
                       [&](auto& m) { flash_v5<Three>(m, s, w.arrays); });
    case 6:
        return emulate(launchOf<Six>(s, flashSharedBytesV6<Six>), memory,
                       [&](auto& m) { flash_v6<Six>(m, s, w.arrays); });
    default:
        return emulate(launchOf<Seven>(s, flashSharedBytesV6<Seven>), memory,
                       [&](auto& m) { flash_v7<Seven>(m, s, w.arrays); });
    }
}

/// What every kernel of a backward may read.
GlobalMemory backwardInputsOf(const FlashLaunch& w, bool withDelta)
{
    const Extents e(w.sizes, w.format);
    GlobalMemory memory = inputsOf(w);
    memory.readable("O", w.arrays.output, e.queries * e.element);
    memory.readable("dO", w.arrays.outputGradient, e.queries * e.element);
    memory.readable("LSE", w.arrays.logSumExp, e.rows * 4);
    if (withDelta)
        memory.readable("delta", w.arrays.delta, e.rows * 4);
    return memory;
}

/// A GPU's blocks end in no fixed order: every second launch takes them from the end.
template <typename Base> struct FromTheEnd : Base
{
    int blockX() const { return Base::blocksX() - 1 - Base::blockX(); }
};

template <typename Element, int headDim> bool runOnePass(const FlashLaunch& w)
{
    // The tests' GPU has the shared memory of an H100, and the large tile of a head dimension of 128.
    using Tile = LargeOnePassTile<Element, headDim>;
    const AttentionSizes& s = w.sizes;
    const Extents e(s, w.format);
    GlobalMemory first = backwardInputsOf(w, false), second = backwardInputsOf(w, true), third;
    const auto sums = [&](GlobalMemory& memory) {
        memory.writable("sums of dQ", w.arrays.queryGradientSums, e.queries * 4);
    };
    first.writable("delta", w.arrays.delta, e.rows * 4);
    sums(first);
    second.writable("dK", w.arrays.keyGradient, e.keys * e.element);
    second.writable("dV", w.arrays.valueGradient, e.keys * e.element);
    sums(second);
    third.readable("sums of dQ", w.arrays.queryGradientSums, e.queries * 4);
    third.writable("dQ", w.arrays.queryGradient, e.queries * e.element);
    Launch rows, keys, rounds;
    rows.blocksX = over(int(e.rows), deltaThreads / 32);
    rows.threads = deltaThreads;
    keys.blocksX = over(s.keys, Tile::keys);
    keys.blocksY = s.batch * s.kvHeads;
    keys.threads = Tile::threads;
    keys.sharedBytes = Tile::sharedBytes;
    rounds.blocksX = over(int(e.queries) / sumsTogether, roundThreads);
    rounds.threads = roundThreads;
    static bool fromTheEnd = false;
    fromTheEnd = !fromTheEnd;
    return emulate(rows, first, [&](auto& m) { flashDelta<Element, headDim, true>(m, s, w.arrays); })
        && emulate(keys, second,
                   [&](auto& m) {
                       using Base = std::remove_reference_t<decltype(m)>;
                       if (fromTheEnd)
                           gradientsInOnePass<Tile>(static_cast<FromTheEnd<Base>&>(m), s, w.arrays);
                       else
                           gradientsInOnePass<Tile>(m, s, w.arrays);
                   })
        && emulate(rounds, third, [&](auto& m) { roundQueryGradient<Element, headDim>(m, s, w.arrays); });
}

template <typename Keys, typename Queries> bool runTiles(const FlashLaunch& w)
{
    using Element = typename Keys::Element;
    constexpr int headDim = Keys::headDim;
    const AttentionSizes& s = w.sizes;
    const Extents e(s, w.format);
    GlobalMemory first = backwardInputsOf(w, false), second = backwardInputsOf(w, true),
                 third = backwardInputsOf(w, true);
    first.writable("delta", w.arrays.delta, e.rows * 4);
    second.writable("dK", w.arrays.keyGradient, e.keys * e.element);
    second.writable("dV", w.arrays.valueGradient, e.keys * e.element);
    third.writable("dQ", w.arrays.queryGradient, e.queries * e.element);
    Launch rows, keys;
    rows.blocksX = over(int(e.rows), deltaThreads / 32);
    rows.threads = deltaThreads;
    keys.blocksX = over(s.keys, Keys::keys);
    keys.blocksY = s.batch * s.kvHeads;
    keys.threads = Keys::threads;
    keys.sharedBytes = Keys::sharedBytes;
    return emulate(rows, first, [&](auto& m) { flashDelta<Element, headDim>(m, s, w.arrays); })
        && emulate(keys, second, [&](auto& m) { gradientsOfKeys<Keys>(m, s, w.arrays); })
        && emulate(launchOf<Queries>(s, flashSharedBytesOfQueries<Queries>), third,
                   [&](auto& m) { gradientsOfQueries<Queries>(m, s, w.arrays); });
}

template <typename Element, int headDim> bool runBackward(const FlashLaunch& w)
{
    if (w.version == onePassBackward)
        return runOnePass<Element, headDim>(w);
    if (w.version < firstWideBackward)
        return runTiles<NarrowKeysTile<Element, headDim>, NarrowQueriesTile<Element, headDim>>(w);
    return runTiles<WideKeysTile<Element, headDim>, WideQueriesTile<Element, headDim>>(w);
}

/// A version of attention in one format, head dimension and mask.
struct Kernel
{
    std::string name;
    std::uint64_t variant;
};
Kernel flashKernel(const char* pass, const FlashLaunch& w)
{
    return {fmt::format("flash {} v{}", pass, w.version), fakeVariant(w.format, w.sizes.headDim, w.sizes.causal)};
}
cudaError_t timed(const Kernel& kernel, double seconds)
{
    return fakeLaunch(kernel.name, kernel.variant, seconds);
}
cudaError_t finished(bool good, const Kernel& kernel, double seconds)
{
    const cudaError_t error = timed(kernel, seconds);
    return good ? error : cudaErrorIllegalAddress;
}

template <typename Element> std::vector<double> doublesOf(const void* data, std::size_t count)
{
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = double(emulated::toFloat(static_cast<const Element*>(data)[i]));
    return values;
}
template <typename Element> void roundInto(void* to, const std::vector<double>& values)
{
    for (std::size_t i = 0; i < values.size() && to != nullptr; ++i)
        static_cast<Element*>(to)[i] = emulated::fromFloat<Element>(float(values[i]));
}

/// Forward and, where there is a gradient, backward, in double.
template <typename Element> void runPlainly(const FlashLaunch& w, bool isBackward)
{
    const Extents e(w.sizes, w.format);
    const auto exact = emulated::exactAttention(
        w.sizes, doublesOf<Element>(w.arrays.query, e.queries), doublesOf<Element>(w.arrays.key, e.keys),
        doublesOf<Element>(w.arrays.value, e.keys),
        isBackward ? doublesOf<Element>(w.arrays.outputGradient, e.queries) : std::vector<double>());
    if (isBackward) {
        roundInto<float>(w.arrays.delta, exact.delta);
        roundInto<Element>(w.arrays.queryGradient, exact.queryGradient);
        roundInto<Element>(w.arrays.keyGradient, exact.keyGradient);
        roundInto<Element>(w.arrays.valueGradient, exact.valueGradient);
        return;
    }
    roundInto<Element>(w.arrays.output, exact.output);
    roundInto<float>(w.arrays.logSumExp, exact.logSumExp);
    if (fakeGpu().wrongKernel || (w.version == fakeGpu().wrongFlash && !isBackward))
        static_cast<Element*>(w.arrays.output)[0] = emulated::fromFloat<Element>(1e4F);
}
void runPlainly(const FlashLaunch& w, bool isBackward)
{
    if (w.format == ElementFormat::Float32)
        runPlainly<float>(w, isBackward);
    else if (w.format == ElementFormat::Float16)
        runPlainly<Half>(w, isBackward);
    else
        runPlainly<Bfloat>(w, isBackward);
}

/// A softmax, or its gradient, row by row.
template <typename Element> void softmaxPlainly(const SoftmaxLaunch& w)
{
    const AttentionSizes& s = w.sizes;
    const auto rows = std::size_t(s.batch) * std::size_t(s.heads) * std::size_t(s.queries), keys = std::size_t(s.keys);
    std::vector<double> values = doublesOf<Element>(w.scores, rows * keys);
    const std::vector<double> gradient =
        w.gradient != nullptr ? doublesOf<Element>(w.gradient, rows * keys) : std::vector<double>();
    for (std::size_t row = 0; row < rows; ++row) {
        double* const at = values.data() + row * keys;
        const auto seen =
            std::size_t(attentionVisibleKeys(std::int64_t(row % std::size_t(s.queries)), s.queries, s.keys, s.causal));
        double sum = 0;
        if (w.gradient != nullptr) {
            for (std::size_t j = 0; j < keys; ++j)
                sum += at[j] * gradient[row * keys + j];
            for (std::size_t j = 0; j < keys; ++j)
                at[j] *= double(s.scale) * (gradient[row * keys + j] - sum);
            continue;
        }
        const double most = *std::max_element(at, at + seen);
        for (std::size_t j = 0; j < keys; ++j)
            sum += at[j] = j < seen ? std::exp(double(s.scale) * (at[j] - most)) : 0;
        for (std::size_t j = 0; j < keys; ++j)
            at[j] /= sum;
    }
    roundInto<Element>(w.result, values);
}

/// A matrix of rows × columns, row by row; transposed, it lies column by column.
template <typename Element>
std::vector<float> widened(const void* from, std::int64_t begin, std::int64_t rows, std::int64_t columns,
                           bool isTransposed)
{
    const Element* const elements = static_cast<const Element*>(from) + begin;
    std::vector<float> matrix;
    matrix.reserve(std::size_t(rows * columns));
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
            matrix.push_back(emulated::toFloat(elements[isTransposed ? column * rows + row : row * columns + column]));
    return matrix;
}

/// Plainly: the product's own kernel is emulated in tst_standard_attention, and is slow.
template <typename Element> void runProduct(const TensorProductLaunch& w)
{
    for (std::int64_t n = 0; n < w.batch; ++n) {
        const auto a = widened<Element>(w.a, n * w.rows * w.inner, w.rows, w.inner, w.aTransposed);
        const auto b = widened<Element>(w.b, n * w.inner * w.columns, w.inner, w.columns, w.bTransposed);
        for (std::int64_t row = 0; row < w.rows; ++row) {
            std::vector<float> sums(std::size_t(w.columns));
            for (std::int64_t k = 0; k < w.inner; ++k)
                for (std::int64_t column = 0; column < w.columns; ++column)
                    sums[std::size_t(column)] +=
                        a[std::size_t(row * w.inner + k)] * b[std::size_t(k * w.columns + column)];
            Element* const result = static_cast<Element*>(w.c) + (n * w.rows + row) * w.columns;
            std::transform(sums.begin(), sums.end(), result,
                           [&](float sum) { return emulated::fromFloat<Element>(sum * w.factor); });
        }
    }
}

template <typename Element> bool runSoftmax(const SoftmaxLaunch& w)
{
    const std::size_t rows = std::size_t(w.sizes.batch) * std::size_t(w.sizes.heads) * std::size_t(w.sizes.queries);
    const std::size_t bytes = rows * std::size_t(w.sizes.keys) * sizeof(Element);
    GlobalMemory memory;
    memory.writable("result", w.result, bytes); // first: it may lie over an input
    memory.readable("scores", w.scores, bytes);
    if (w.gradient != nullptr)
        memory.readable("dP", w.gradient, bytes);
    Launch launch;
    launch.blocksX = int(rows);
    launch.threads = softmaxThreads;
    launch.sharedBytes = softmaxSharedBytes;
    const SoftmaxArguments arguments{w.scores, w.gradient, w.result, w.sizes.scale};
    return emulate(launch, memory, [&](auto& m) {
        if (w.gradient != nullptr)
            standardSoftmax<Element, true>(m, w.sizes, arguments);
        else
            standardSoftmax<Element, false>(m, w.sizes, arguments);
    });
}

template <typename Element>
void fillInput(void* to, AttentionTensor tensor, AttentionInputs inputs, std::uint64_t count, std::uint64_t headDim)
{
    for (std::uint64_t i = 0; i < count; ++i)
        static_cast<Element*>(to)[i] = emulated::fromFloat<Element>(attentionInput(tensor, i, headDim, inputs));
}

} // namespace

cudaError_t launchFlash(const FlashLaunch& w, cudaStream_t)
{
    const Kernel kernel = flashKernel("forward", w);
    const double scores = scoresOf(w.sizes) * (w.sizes.causal ? 0.5 : 1);
    const double seconds = 4 * scores * w.sizes.headDim / fakeGpu().tensorFlopsPerSecond;
    if (scores > emulatedScores)
        return timed(kernel, seconds);
    if (!fakeGpu().emulatesAttention) {
        runPlainly(w, false);
        return timed(kernel, seconds);
    }
    GlobalMemory memory = inputsOf(w);
    const Extents e(w.sizes, w.format);
    memory.writable("O", w.arrays.output, e.queries * e.element);
    memory.writable("LSE", w.arrays.logSumExp, e.rows * 4);
    if (w.version == 8) {
        const cudaError_t error = emulateFlashHopper(w, memory);
        return error != cudaSuccess ? error : finished(memory.elementsUntouched() == 0, kernel, seconds);
    }
    const bool isShort = w.sizes.headDim == 64;
    bool good = false;
    if (w.format == ElementFormat::Float32)
        good = isShort ? runPlain<float, 64>(w, memory) : runPlain<float, 128>(w, memory);
    else if (w.format == ElementFormat::Float16)
        good = isShort ? runForward<Half, 64>(w, memory) : runForward<Half, 128>(w, memory);
    else
        good = isShort ? runForward<Bfloat, 64>(w, memory) : runForward<Bfloat, 128>(w, memory);
    return finished(good && memory.elementsUntouched() == 0, kernel, seconds);
}

cudaError_t launchFlashBackward(const FlashLaunch& w, cudaStream_t)
{
    const Kernel kernel = flashKernel("backward", w);
    const double scores = scoresOf(w.sizes) * (w.sizes.causal ? 0.5 : 1);
    const double products = w.version == onePassBackward ? 5 : 7;
    const double seconds = 2 * products * scores * w.sizes.headDim / fakeGpu().tensorFlopsPerSecond;
    if (scores > emulatedScores)
        return timed(kernel, seconds);
    if (!fakeGpu().emulatesAttention) {
        runPlainly(w, true);
        return timed(kernel, seconds);
    }
    const bool isShort = w.sizes.headDim == 64;
    if (w.format == ElementFormat::Float16)
        return finished(isShort ? runBackward<Half, 64>(w) : runBackward<Half, 128>(w), kernel, seconds);
    return finished(isShort ? runBackward<Bfloat, 64>(w) : runBackward<Bfloat, 128>(w), kernel, seconds);
}

cudaError_t launchSoftmax(const SoftmaxLaunch& w, cudaStream_t)
{
    const Kernel kernel{"softmax", fakeVariant(w.format, w.gradient != nullptr, w.sizes.causal)};
    const double element = w.format == ElementFormat::Float32 ? 4 : 2;
    const double bytes = element * scoresOf(w.sizes) * (w.gradient != nullptr ? 3 : 2);
    const double seconds = bytes / fakeGpu().streamBytesPerSecond;
    if (scoresOf(w.sizes) > emulatedScores)
        return timed(kernel, seconds);
    const auto run = [&](auto zero) {
        using Element = decltype(zero);
        if (fakeGpu().emulatesAttention)
            return runSoftmax<Element>(w);
        softmaxPlainly<Element>(w);
        return true;
    };
    if (w.format == ElementFormat::Float32)
        return finished(run(float()), kernel, seconds);
    return finished(w.format == ElementFormat::Float16 ? run(Half()) : run(Bfloat()), kernel, seconds);
}

cudaError_t launchTensorProduct(const TensorProductLaunch& w, cudaStream_t)
{
    const Kernel kernel{"tensor product", fakeVariant(w.format, w.aTransposed, w.bTransposed)};
    const double terms = double(w.rows) * w.columns * double(w.inner) * w.batch;
    const double seconds = 2 * terms / fakeGpu().tensorFlopsPerSecond;
    if (terms > emulatedScores * 256)
        return timed(kernel, seconds);
    if (w.format == ElementFormat::Float16)
        runProduct<Half>(w);
    else
        runProduct<Bfloat>(w);
    return timed(kernel, seconds);
}

cudaError_t launchAttentionInput(void* to, ElementFormat format, AttentionTensor tensor, AttentionInputs inputs,
                                 std::uint64_t count, std::uint64_t headDim, cudaStream_t)
{
    if (format == ElementFormat::Float32)
        fillInput<float>(to, tensor, inputs, count, headDim);
    else if (format == ElementFormat::Float16)
        fillInput<Half>(to, tensor, inputs, count, headDim);
    else
        fillInput<Bfloat>(to, tensor, inputs, count, headDim);
    return fakeQueue("attention input", fakeVariant(format, tensor, inputs));
}

} // namespace memscape::cuda
