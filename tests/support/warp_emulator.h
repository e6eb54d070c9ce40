// SPDX-License-Identifier: Apache-2.0
// A GPU's thread block on the host, for kernels written as templates over a machine
// (kernels/cuda/attention/gpu_machine.cuh is the real one). Every thread is a stack of its own that
// runs until it meets the others of its warp (mma, ldmatrix, shuffle) or of its block (barrier). The
// machine is stricter than a GPU; it ends the block with a message at
//   - an address outside shared memory or outside the arrays it was given, or not a multiple of the
//     size;
//   - shared memory read before anything was written, or while an asynchronous copy into it has not
//     been waited for;
//   - a read of what another thread wrote, or a write over what another thread reads or wrote, with
//     no barrier between them;
//   - an element of an array written twice, by any threads of any block (atomic additions apart);
//   - threads of a warp that meet at different operations, or a barrier that some have left.
// It counts bank conflicts (eight lanes of 16 bytes, sixteen of 8 or 32 of 4 at a time) and bytes.
//
// Left out: the memory model inside a warp beyond __syncwarp, time, the order of blocks (one by one).
#pragma once

#include "kernels/cuda/precision/format_tags.h"
#include "kernels/programs/common/half.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace memscape::emulated {

using cuda::Bfloat;
using cuda::Half;

/// IEEE binary16 and bfloat16, rounded to nearest, ties to even.
inline float toFloat(Half value)
{
    return float16ToFloat(value.bits);
}
inline float toFloat(Bfloat value)
{
    return bfloat16ToFloat(value.bits);
}
inline float toFloat(float value)
{
    return value;
}
template <typename Element> Element fromFloat(float value);
template <> inline Half fromFloat<Half>(float value)
{
    return {floatToFloat16(value)};
}
template <> inline Bfloat fromFloat<Bfloat>(float value)
{
    return {floatToBfloat16(value)};
}
template <> inline float fromFloat<float>(float value)
{
    return value;
}

/// What went wrong in a kernel: "block (0, 3), thread 17: …".
class Fault : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

/// The memory that a kernel may touch. Written arrays know which elements were written.
class GlobalMemory
{
public:
    void readable(const std::string& name, const void* data, std::size_t bytes);
    void writable(const std::string& name, void* data, std::size_t bytes);

    void read(const void* from, std::size_t bytes);
    void write(const void* to, std::size_t bytes, bool again = false);

    std::uint64_t bytesRead = 0, bytesWritten = 0;
    /// Of the arrays that may be written.
    std::uint64_t elementsUntouched() const;

private:
    struct Array
    {
        std::string name;
        const char* data;
        std::size_t bytes;
        bool isWritable;
        std::vector<char> written;
    };
    Array& arrayOf(const void* at, std::size_t bytes);
    std::vector<Array> m_arrays;
};

/// What a launch cost in shared memory: turns that the banks took, and the fewest they could.
struct BankCount
{
    std::uint64_t turns = 0, fewest = 0;
    std::uint64_t conflicts() const { return turns - fewest; }
};
struct LaunchCount
{
    BankCount matrixLoads, loads, stores, copies;
    std::uint64_t products = 0;              ///< mma.sync instructions, per warp
    std::uint64_t votes = 0, agreements = 0; ///< of a warp, and those with any lane for it
};

struct Launch
{
    int blocksX = 1, blocksY = 1;
    int threads = 128;
    int sharedBytes = 48 << 10;
    bool isTuring = false; ///< products of depth 16 are two of depth 8
};

class Block;

/// One thread's view: what a kernel template calls. Same names as on the GPU.
class Machine
{
public:
    Machine(Block& block, int thread)
        : m_block(block)
        , m_thread(thread)
    { }

    int thread() const { return m_thread; }
    int threadAnew() const { return m_thread; }
    int blockX() const;
    int blockY() const;
    int blocksX() const;

    template <typename T> T load(const T* from)
    {
        checkRead(from, sizeof(T), alignof(T));
        return *from;
    }
    template <typename T> void store(T* to, T value)
    {
        checkWrite(to, sizeof(T), alignof(T), false);
        *to = value;
    }
    void addAtomically(float* to, float value)
    {
        checkWrite(to, sizeof(float), alignof(float), true);
        *to += value;
    }
    void addFourAtomically(float* to, float a, float b, float c, float d)
    {
        checkWrite(to, 4 * sizeof(float), 4 * sizeof(float), true);
        const float values[] = {a, b, c, d};
        for (int i = 0; i < 4; ++i)
            to[i] += values[i];
    }

    template <typename T> T loadShared(std::uint32_t at)
    {
        T value;
        readShared(at, &value, sizeof(T));
        return value;
    }
    template <typename T> void storeShared(std::uint32_t at, T value) { writeShared(at, &value, sizeof(T)); }
    /// 16 bytes, or zeros when it is not `wanted`; arrived after waitForCopies().
    void copyAsync(std::uint32_t at, const void* from, bool wanted);
    void commitCopies();
    template <int pending> void waitForCopies() { waitFor(pending); }

    void loadMatrices(std::uint32_t (&r)[4], std::uint32_t at) { matrices(r, at, false); }
    void loadMatricesTransposed(std::uint32_t (&r)[4], std::uint32_t at) { matrices(r, at, true); }
    template <typename Element>
    void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t b0, const std::uint32_t b1)
    {
        multiplyWords(d, a, b0, b1, std::is_same_v<Element, Bfloat>);
    }
    template <typename Numbers>
    void multiplyNumbers(typename Numbers::Sum (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1)
    {
        multiplyFormat(Numbers::format, d, a, b0, b1);
    }
    void multiplyDoubles(double (&d)[2], double a, double b);
    float shuffleXor(float value, int distance);
    bool anyInWarp(bool value);
    void syncThreads();
    void syncWarp();

    template <typename Element> std::uint32_t pack(float low, float high)
    {
        return std::uint32_t(fromFloat<Element>(low).bits) | std::uint32_t(fromFloat<Element>(high).bits) << 16;
    }
    template <typename Element> float widen(Element value) { return toFloat(value); }
    template <typename Element> Element narrow(float value) { return fromFloat<Element>(value); }
    float maximum(float a, float b);
    float exponential(float x);
    float powerOfTwo(float x);
    float logarithm(float x);

private:
    void checkRead(const void* from, std::size_t bytes, std::size_t alignment);
    void checkWrite(const void* to, std::size_t bytes, std::size_t alignment, bool again);
    void readShared(std::uint32_t at, void* value, std::uint32_t bytes);
    void writeShared(std::uint32_t at, const void* value, std::uint32_t bytes);
    void waitFor(int pending);
    void matrices(std::uint32_t (&r)[4], std::uint32_t at, bool transposed);
    void multiplyFormat(cuda::TensorFormat format, void* d, const std::uint32_t (&a)[4], std::uint32_t b0,
                        std::uint32_t b1);
    void multiplyWords(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, bool isBfloat);

protected:
    Block& m_block;
    int m_thread;
};

using Kernel = std::function<void(Machine&)>;

/// Runs every block. Throws Fault.
LaunchCount run(const Launch& launch, GlobalMemory& memory, const Kernel& kernel);

} // namespace memscape::emulated
