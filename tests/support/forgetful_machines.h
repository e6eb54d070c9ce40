// SPDX-License-Identifier: Apache-2.0
// Emulated machines with a mistake: what a kernel would be that forgets a wait, a barrier, or which
// element lies where. A test that does not notice them is none.
#pragma once

#include "tests/support/warp_emulator.h"

#include <QString>

#include <functional>

namespace memscape::emulated {

struct WithoutWaits : Machine
{
    template <int pending> void waitForCopies() { }
};
struct WithoutBarriers : Machine
{
    void syncThreads() { }
};
/// Reads odd rows as if they were swizzled otherwise than they were written.
struct WrongSwizzle : Machine
{
    void loadMatrices(std::uint32_t (&r)[4], std::uint32_t at)
    {
        Machine::loadMatrices(r, at ^ (at >> 7 & 1) << 4); // rows of 128 bytes
    }
};
struct WithoutTransposition : Machine
{
    void loadMatricesTransposed(std::uint32_t (&r)[4], std::uint32_t at) { Machine::loadMatrices(r, at); }
};
/// The two halves of B the other way round.
struct WrongDepth : Machine
{
    template <typename Element>
    void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1)
    {
        Machine::multiply<Element>(d, a, b1, b0);
    }
};
/// A warp that never hears of a lane that is for it.
struct WithoutVotes : Machine
{
    bool anyInWarp(bool) { return false; }
};
struct WrongRow : Machine
{
    float shuffleXor(float value, int distance) { return Machine::shuffleXor(value, distance == 2 ? 4 : distance); }
};

inline QString faultOf(const std::function<void()>& run)
{
    try {
        run();
    } catch (const Fault& fault) {
        return QString::fromStdString(fault.what());
    }
    return {};
}

} // namespace memscape::emulated
