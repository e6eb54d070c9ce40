// SPDX-License-Identifier: Apache-2.0
#include "tests/support/warp_emulator.h"

#include "tests/support/warp_emulator_block.h"

#include <cmath>

namespace memscape::emulated {

// ---- arrays -----------------------------------------------------------------------------------

void GlobalMemory::readable(const std::string& name, const void* data, std::size_t bytes)
{
    m_arrays.push_back({name, static_cast<const char*>(data), bytes, false, {}});
}

void GlobalMemory::writable(const std::string& name, void* data, std::size_t bytes)
{
    m_arrays.push_back({name, static_cast<const char*>(data), bytes, true, std::vector<char>(bytes)});
}

GlobalMemory::Array& GlobalMemory::arrayOf(const void* at, std::size_t bytes)
{
    const char* first = static_cast<const char*>(at);
    for (Array& array : m_arrays) {
        if (first >= array.data && first + bytes <= array.data + array.bytes)
            return array;
    }
    std::string near;
    for (const Array& array : m_arrays)
        near += ", " + array.name + " at offset " + std::to_string(first - array.data) + " of "
            + std::to_string(array.bytes);
    throw Fault(std::to_string(bytes) + " bytes outside every array" + near);
}

void GlobalMemory::read(const void* from, std::size_t bytes)
{
    arrayOf(from, bytes);
    bytesRead += bytes;
}

void GlobalMemory::write(const void* to, std::size_t bytes, bool again)
{
    Array& array = arrayOf(to, bytes);
    if (!array.isWritable)
        throw Fault("a write into " + array.name);
    const auto first = std::size_t(static_cast<const char*>(to) - array.data);
    for (std::size_t i = first; i < first + bytes; ++i) {
        if (array.written[i] != 0 && !again)
            throw Fault("byte " + std::to_string(i) + " of " + array.name + " is written twice");
        array.written[i] = 1;
    }
    bytesWritten += bytes;
}

std::uint64_t GlobalMemory::elementsUntouched() const
{
    std::uint64_t untouched = 0;
    for (const Array& array : m_arrays) {
        for (const char written : array.written)
            untouched += written == 0 ? 1 : 0;
    }
    return untouched;
}

// ---- a thread's view --------------------------------------------------------------------------

int Machine::blockX() const
{
    return m_block.x;
}
int Machine::blockY() const
{
    return m_block.y;
}
int Machine::blocksX() const
{
    return m_block.launch.blocksX;
}

void Machine::checkRead(const void* from, std::size_t bytes, std::size_t alignment)
{
    if (reinterpret_cast<std::uintptr_t>(from) % alignment != 0)
        m_block.fault(m_thread, "a load that is not aligned");
    try {
        m_block.memory.read(from, bytes);
    } catch (const Fault& fault) {
        m_block.fault(m_thread, fault.what());
    }
}

void Machine::checkWrite(const void* to, std::size_t bytes, std::size_t alignment, bool again)
{
    if (reinterpret_cast<std::uintptr_t>(to) % alignment != 0)
        m_block.fault(m_thread, "a store that is not aligned");
    try {
        m_block.memory.write(to, bytes, again);
    } catch (const Fault& fault) {
        m_block.fault(m_thread, fault.what());
    }
}

void Machine::readShared(std::uint32_t at, void* value, std::uint32_t bytes)
{
    m_block.read(m_thread, at, value, bytes);
}
void Machine::writeShared(std::uint32_t at, const void* value, std::uint32_t bytes)
{
    m_block.write(m_thread, at, value, bytes);
}
void Machine::copyAsync(std::uint32_t at, const void* from, bool wanted)
{
    if (wanted)
        checkRead(from, 16, 16);
    m_block.copy(m_thread, at, from, wanted);
}
void Machine::commitCopies()
{
    m_block.commit(m_thread);
}
void Machine::waitFor(int pending)
{
    m_block.waitFor(m_thread, pending);
}

void Machine::matrices(std::uint32_t (&r)[4], std::uint32_t at, bool transposed)
{
    Brought brought;
    brought.meeting = transposed ? Meeting::MatricesTransposed : Meeting::Matrices;
    brought.at = at;
    brought.matrix = r;
    m_block.meet(m_thread, brought);
}

void Machine::multiplyWords(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                            bool isBfloat)
{
    Brought brought;
    brought.meeting = isBfloat ? Meeting::MultiplyBfloat : Meeting::MultiplyHalf;
    brought.sums = d;
    brought.a = a;
    brought.b[0] = b0;
    brought.b[1] = b1;
    m_block.meet(m_thread, brought);
}

float Machine::shuffleXor(float value, int distance)
{
    Brought brought;
    brought.meeting = Meeting::Shuffle;
    brought.value = value;
    brought.distance = distance;
    float result = 0;
    brought.sums = &result;
    m_block.meet(m_thread, brought);
    return result;
}

bool Machine::anyInWarp(bool value)
{
    Brought brought;
    brought.meeting = Meeting::Vote;
    brought.vote = value;
    bool result = false;
    brought.voted = &result;
    m_block.meet(m_thread, brought);
    return result;
}

void Machine::syncThreads()
{
    m_block.barrier(m_thread);
}
void Machine::syncWarp()
{
    m_block.meet(m_thread, Brought{});
}

float Machine::maximum(float a, float b)
{
    return std::fmax(a, b);
}
float Machine::exponential(float x)
{
    return std::exp(x);
}
float Machine::powerOfTwo(float x)
{
    return std::exp2(x);
}
float Machine::logarithm(float x)
{
    return std::log(x);
}

LaunchCount run(const Launch& launch, GlobalMemory& memory, const Kernel& kernel)
{
    LaunchCount count;
    for (int y = 0; y < launch.blocksY; ++y) {
        for (int x = 0; x < launch.blocksX; ++x)
            Block(launch, memory, kernel, x, y, count).run();
    }
    return count;
}

} // namespace memscape::emulated
