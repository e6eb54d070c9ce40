// SPDX-License-Identifier: Apache-2.0
// Hopper's own instructions on the host, with the names of flash_hopper_machine.cuh: barriers that
// count arrivals and bytes, boxes that the copy engine brings, products of a warpgroup. What is done
// later on a GPU is done later here: a box lands when no warp can go on without it, in any order; a
// product's sums hold a poison until its warp has waited. The block ends with a message at
//   - a barrier used before it was made and published, or by others before they all met since;
//   - shared memory read by a product of a warp that has not seen the box land (whether it has landed
//     or not), or fetched anew while its fetcher cannot know that the products on it are complete:
//     what is visible to a thread is passed over barriers, from arriving to waiting threads;
//   - a descriptor with another swizzle than 128 bytes, an offset into its pattern, or places outside;
//   - a product with no fence since registers were touched, sums or left sides touched while it runs,
//     warps of a warpgroup that start different products, products and boxes that were not waited for;
//   - more registers given out than an SM has; a block in which no warp can go on, with the waiting warps.
//
// Left out: the order inside a warpgroup's products, bank conflicts of boxes and products, time.
#pragma once

#include "kernels/cuda/attention/flash_hopper_tiles.h"
#include "tests/support/warp_emulator.h"

namespace memscape::emulated {

/// What one warp requests on behalf of its warpgroup or of a part of the block.
struct GroupStep
{
    enum Kind { Fence, Multiply, Commit, Wait, ArriveNamed, WaitNamed, Registers } kind = Fence;
    // Multiply
    float* sums = nullptr; ///< of this lane, four for every eight columns
    int columns = 0;
    bool leftIsShared = false, isBfloat = false, adds = true;
    std::uint64_t left = 0, right = 0;        ///< descriptors
    const std::uint32_t* leftWords = nullptr; ///< of this lane, four
    // Wait, named barriers, registers
    int number = 0, threads = 0;
};

class HopperMachine : public Machine
{
public:
    void makeBarrier(std::uint32_t at, int arrivals);
    void publishBarriers();
    void arrive(std::uint32_t at);
    void arriveExpecting(std::uint32_t at, std::uint32_t bytes);
    void waitBarrier(std::uint32_t at, std::uint32_t parity);
    void copyBox(std::uint32_t to, const cuda::TileMap& map, int column, int row, int plane, std::uint32_t there);

    void waitNamed(int barrier, int threads) { step(GroupStep::WaitNamed, barrier, threads); }
    void arriveNamed(int barrier, int threads) { step(GroupStep::ArriveNamed, barrier, threads); }
    template <int registers> void giveRegisters() { step(GroupStep::Registers, registers, 0); }
    template <int registers> void takeRegisters() { step(GroupStep::Registers, registers, 0); }

    /// Where the block's shared memory begins in the SM's: descriptors hold such addresses.
    static constexpr std::uint32_t sharedBase = 1024;
    std::uint64_t matrix(std::uint32_t at, std::uint32_t leading, std::uint32_t stride) const
    {
        return cuda::matrixDescriptor(sharedBase + at, leading, stride);
    }
    void fenceRegisters() { step(GroupStep::Fence, 0, 0); }
    void commitProducts() { step(GroupStep::Commit, 0, 0); }
    template <int pending> void waitForProducts() { step(GroupStep::Wait, pending, 0); }
    template <typename Registers> void landed(Registers&) { } // for a compiler's eyes

    template <typename Element>
    void multiplyShared(cuda::Sums<1, 16>& sums, std::uint64_t a, std::uint64_t b, bool adds)
    {
        GroupStep product = productInto<Element>(&sums.at[0][0][0], 16 * 8, b);
        product.leftIsShared = true;
        product.left = a;
        product.adds = adds;
        meet(product);
    }
    template <typename Element, int blocks>
    void multiplyRegisters(cuda::Sums<1, blocks>& sums, const std::uint32_t (&a)[4], std::uint64_t b)
    {
        GroupStep product = productInto<Element>(&sums.at[0][0][0], blocks * 8, b);
        product.leftWords = a;
        meet(product);
    }

private:
    template <typename Element> static GroupStep productInto(float* sums, int columns, std::uint64_t right)
    {
        GroupStep product;
        product.kind = GroupStep::Multiply;
        product.sums = sums;
        product.columns = columns;
        product.isBfloat = std::is_same_v<Element, Bfloat>;
        product.right = right;
        return product;
    }
    void step(GroupStep::Kind kind, int number, int threads);
    void meet(const GroupStep& step);
};

} // namespace memscape::emulated
