// SPDX-License-Identifier: Apache-2.0
// wgmma on the emulated Hopper: each warp of a warpgroup computes its 16 of 64 rows. Descriptors are
// taken apart by the ISA's bits, and places found by its canonical layouts, not by the formulas that
// kernels use. Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma (m64nNk16),
// "Strides", "Matrix Descriptor Format".
//
//   K-major   row i, depth k   at address + i mod 8 × 128 + i / 8 × stride + 2 k
//   MN-major  depth k, col n   at address + k mod 8 × 128 + k / 8 × stride + n / 64 × leading + 2 (n mod 64)
// and bits 4-6 of that ^= bits 7-9.
#include "tests/support/hopper_unit.h"

#include <algorithm>
#include <cstring>

namespace memscape::emulated {

namespace {

constexpr int groupWarps = 4, rowsPerWarp = 16, depth = 16;
constexpr std::uint32_t rowBytes = 128, chunkBytes = 16;
/// What sums hold while they are computed: far from everything, and not left alone by any arithmetic.
constexpr float poison = 2.71828e33F;

struct Descriptor
{
    std::uint32_t address, leading, stride;
    int offset, swizzle;

    explicit Descriptor(std::uint64_t bits)
        : address(std::uint32_t(bits & 0x3fff) << 4)
        , leading(std::uint32_t(bits >> 16 & 0x3fff) << 4)
        , stride(std::uint32_t(bits >> 32 & 0x3fff) << 4)
        , offset(int(bits >> 49 & 7))
        , swizzle(int(bits >> 62))
    { }
    std::uint32_t alongDepth(int row, int k) const
    {
        return swizzled(address + std::uint32_t(row % 8) * rowBytes + std::uint32_t(row / 8) * stride
                        + std::uint32_t(k) * 2);
    }
    std::uint32_t acrossDepth(int k, int column) const
    {
        return swizzled(address + std::uint32_t(k % 8) * rowBytes + std::uint32_t(k / 8) * stride
                        + std::uint32_t(column / 64) * leading + std::uint32_t(column % 64) * 2);
    }
    static std::uint32_t swizzled(std::uint32_t at) { return at ^ (at >> 7 & 7) << 4; }
};

/// Row and column of float `i` of a lane, of the 16 rows of its warp.
int rowOf(int lane, int i)
{
    return (lane >> 2) + ((i & 2) != 0 ? 8 : 0);
}
int columnOf(int lane, int i)
{
    return (i >> 2) * 8 + ((lane & 3) << 1) + (i & 1);
}

double fromBits(std::uint16_t bits, bool isBfloat)
{
    return double(isBfloat ? toFloat(Bfloat{bits}) : toFloat(Half{bits}));
}

} // namespace

/// All lanes and all warps of the warpgroup mean the same product, and registers are fenced.
void HopperUnit::checkProduct(int warp)
{
    Warp& own = m_warps[std::size_t(warp)];
    const GroupStep& first = stepOf(warp, 0);
    for (int lane = 1; lane < lanes; ++lane) {
        const GroupStep& other = stepOf(warp, lane);
        if (other.left != first.left || other.right != first.right || other.columns != first.columns)
            m_block.fault(warp * lanes + lane, "another product than the warp's first lane");
    }
    if (!own.isFenced)
        fault(warp, "a product with no fence since registers may have been touched");
    for (const std::uint64_t bits : {first.right, first.leftIsShared ? first.left : first.right}) {
        const Descriptor matrix(bits);
        if (matrix.swizzle != 1 || matrix.offset != 0)
            fault(warp,
                  "a descriptor with swizzle " + std::to_string(matrix.swizzle) + " and offset "
                      + std::to_string(matrix.offset));
    }
    std::vector<Product>& started = m_started[warp / groupWarps];
    const Product product{first.left, first.right, first.columns, first.leftIsShared, first.adds};
    const auto index = std::size_t(own.products);
    if (index == started.size())
        started.push_back(product);
    else if (!(started[index] == product))
        fault(warp, "another product than the other warps of its warpgroup");
}

void HopperUnit::multiply(int warp)
{
    checkProduct(warp);
    ++m_warps[std::size_t(warp)].products;
    const std::vector<double> left = leftOf(warp), right = rightOf(warp);
    for (int lane = 0; lane < lanes; ++lane)
        start(warp, lane, left, right);
    if (warp % groupWarps == 0)
        m_block.countProducts(1);
}

/// The warp's 16 rows × 16 of the left side.
std::vector<double> HopperUnit::leftOf(int warp)
{
    std::vector<double> left(std::size_t(rowsPerWarp * depth));
    const GroupStep& first = stepOf(warp, 0);
    if (first.leftIsShared) {
        const Descriptor matrix(first.left);
        for (int row = 0; row < rowsPerWarp; ++row) {
            for (int k = 0; k < depth; ++k)
                left[std::size_t(row * depth + k)] =
                    element(warp, matrix.alongDepth(warp % groupWarps * rowsPerWarp + row, k), first.isBfloat);
        }
        return left;
    }
    for (int lane = 0; lane < lanes; ++lane) {
        const std::uint32_t* words = stepOf(warp, lane).leftWords;
        for (int i = 0; i < 8; ++i) { // two of every word: upper left, lower left, upper right, lower right
            const int row = (lane >> 2) + (i / 2 % 2 == 1 ? 8 : 0);
            const int k = ((lane & 3) << 1) + i % 2 + (i >= 4 ? 8 : 0);
            left[std::size_t(row * depth + k)] =
                fromBits(std::uint16_t(words[i / 2] >> (16 * (i % 2))), first.isBfloat);
        }
        m_warps[std::size_t(warp)].lane[lane].leftSides.push_back(
            {m_warps[std::size_t(warp)].products, words, {words[0], words[1], words[2], words[3]}});
    }
    return left;
}

/// 16 × columns of the right side.
std::vector<double> HopperUnit::rightOf(int warp)
{
    const GroupStep& first = stepOf(warp, 0);
    const Descriptor matrix(first.right);
    std::vector<double> right(std::size_t(depth * first.columns));
    for (int k = 0; k < depth; ++k) {
        for (int column = 0; column < first.columns; ++column)
            right[std::size_t(k * first.columns + column)] =
                element(warp, first.leftIsShared ? matrix.alongDepth(column, k) : matrix.acrossDepth(k, column),
                        first.isBfloat);
    }
    return right;
}

double HopperUnit::element(int warp, std::uint32_t at, bool isBfloat)
{
    if (at < HopperMachine::sharedBase)
        fault(warp, "a descriptor that points before the block's shared memory");
    const std::uint32_t place = at - HopperMachine::sharedBase;
    std::uint16_t bits = 0;
    std::memcpy(&bits, m_block.shared(warp * lanes, place, sizeof bits), sizeof bits);
    if (place % chunkBytes == 0)
        noteRead(warp, place);
    return fromBits(bits, isBfloat);
}

void HopperUnit::noteRead(int warp, std::uint32_t at)
{
    Chunk& chunk = m_chunks[at / chunkBytes];
    const std::string where = "shared address " + std::to_string(at);
    if (chunk.state == Chunk::Empty)
        fault(warp, where + " is multiplied before anything was fetched");
    for (int lane = 0; lane < lanes; ++lane) {
        if (m_known[std::size_t(warp * lanes + lane)].phases[std::size_t(chunk.barrier)] < chunk.phase)
            m_block.fault(warp * lanes + lane, where + " is multiplied before the box has been waited for");
    }
    if (chunk.state == Chunk::Arriving)
        fault(warp, where + " is multiplied before the box has landed");
    chunk.readBy[std::size_t(warp)] = m_warps[std::size_t(warp)].products;
}

void HopperUnit::start(int warp, int lane, const std::vector<double>& left, const std::vector<double>& right)
{
    const GroupStep& step = stepOf(warp, lane);
    Lane& own = m_warps[std::size_t(warp)].lane[lane];
    const int count = step.columns / 2;
    const bool isNew = !own.running.contains(step.sums);
    Running& running = own.running[step.sums];
    if (isNew)
        running.sums.assign(step.sums, step.sums + count);
    running.product = m_warps[std::size_t(warp)].products;
    for (int i = 0; i < count; ++i) {
        const int row = rowOf(lane, i), column = columnOf(lane, i);
        double sum = step.adds ? running.sums[std::size_t(i)] : 0;
        for (int k = 0; k < depth; ++k)
            sum += left[std::size_t(row * depth + k)] * right[std::size_t(k * step.columns + column)];
        running.sums[std::size_t(i)] = double(float(sum));
        step.sums[i] = poison;
    }
}

/// All committed groups but the last `pending` are complete, and what they computed is there.
void HopperUnit::waitForProducts(int warp, int pending)
{
    Warp& own = m_warps[std::size_t(warp)];
    own.isFenced = false;
    const int groups = int(own.lastOfGroup.size()) - pending;
    if (groups <= 0)
        return;
    const int upTo = own.lastOfGroup[std::size_t(groups - 1)];
    for (int lane = 0; lane < lanes; ++lane) {
        deliver(warp, lane, upTo);
        int& known = m_known[std::size_t(warp * lanes + lane)].products[std::size_t(warp)];
        known = std::max(known, upTo);
    }
}

void HopperUnit::deliver(int warp, int lane, int upTo)
{
    Lane& own = m_warps[std::size_t(warp)].lane[lane];
    for (auto entry = own.running.begin(); entry != own.running.end();) {
        Running& running = entry->second;
        if (running.product > upTo) {
            ++entry;
            continue;
        }
        for (std::size_t i = 0; i < running.sums.size(); ++i) {
            if (entry->first[i] != poison)
                m_block.fault(warp * lanes + lane, "sums were touched while products on them ran");
            entry->first[i] = float(running.sums[i]);
        }
        entry = own.running.erase(entry);
    }
    for (const LeftSide& side : own.leftSides) {
        if (side.product <= upTo && std::memcmp(side.words, side.were, sizeof side.were) != 0)
            m_block.fault(warp * lanes + lane, "a left side was touched while its product ran");
    }
    std::erase_if(own.leftSides, [&](const LeftSide& side) { return side.product <= upTo; });
}

} // namespace memscape::emulated
