// SPDX-License-Identifier: Apache-2.0
// The kernels' tiles in shared memory against the model of the banks: the request of bank-conflicts on the
// emulated machine, whose banks count their turns by themselves, and the layouts of flash attention and of
// its matrix product, whose swizzle must leave no conflict to ldmatrix or to the copies that fill a tile.
#include "core/access/banks.h"
#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/bank-conflicts/banks.h"
#include "tests/support/warp_emulator.h"

#include <QtTest>

#include <cstring>

using namespace memscape;
using namespace memscape::cuda;

namespace {

BankWork workOf(const SharedTile& tile, std::uint32_t stride)
{
    BankWork work;
    work.tile = tile;
    work.lanes = lanesPerWarp;
    for (std::uint32_t lane = 0; lane < work.lanes; ++lane)
        work.asked[lane] = lane * stride;
    work.elements = (work.asked[lanesPerWarp - 1] / tile.columns + 1) * tile.columns;
    return work;
}

std::vector<std::uint32_t> addressesOf(const BankWork& work)
{
    std::vector<std::uint32_t> addresses;
    for (const std::uint32_t element : work.asked)
        addresses.push_back(addressIn(work.tile, element));
    return addresses;
}

emulated::Launch launchOf(const BankWork& work)
{
    emulated::Launch launch;
    launch.threads = lanesPerWarp;
    launch.sharedBytes = int(bytesOf(work.tile, work.elements / work.tile.columns));
    return launch;
}

/// One warp fills the tile and asks once; turns of the banks for the question, and what it got.
template <typename Word> std::uint64_t turnsOfRead(const BankWork& work, std::vector<Word>& read)
{
    read.resize(lanesPerWarp);
    emulated::GlobalMemory memory;
    return emulated::run(launchOf(work), memory,
                         [&](emulated::Machine& m) {
                             fillTile<Word>(m, work, lanesPerWarp);
                             m.syncThreads();
                             read[std::size_t(m.thread())] = readAsked<Word>(m, work);
                         })
        .loads.turns;
}

template <typename Word> void compareReads(std::uint32_t padding, std::uint32_t granule)
{
    const auto tile = sharedTile(sizeof(Word), 32, padding, granule);
    QVERIFY(tile.has_value());
    for (const std::uint32_t stride : {0u, 1u, 2u, 3u, 8u, 12u, 31u, 32u}) {
        const BankWork work = workOf(*tile, stride);
        std::vector<Word> read;
        const std::uint64_t turns = turnsOfRead(work, read);
        QCOMPARE(turns, std::uint64_t(resolveBanks(addressesOf(work), sizeof(Word))->wavefronts));
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            const Word expected = wordOf<Word>(mixed(lane * stride)); // whatever the layout
            QVERIFY(std::memcmp(&read[lane], &expected, sizeof(Word)) == 0);
        }
    }
}

/// Wavefronts of one ldmatrix.x4 whose lanes point at rows of a tile from (row, chunk) on.
template <typename Layout> int matrixWavefronts(TilePlace (*placeOf)(int), int row, int chunk)
{
    std::vector<std::uint32_t> addresses;
    for (int lane = 0; lane < 32; ++lane) {
        const TilePlace place = placeOf(lane);
        addresses.push_back(Layout::at(row + place.row, chunk + place.column));
    }
    return resolveBanks(addresses, 16)->wavefronts;
}

template <int chunks> void expectNoConflicts()
{
    using Swizzled = TileLayout<chunks>;
    using Plain = TileLayout<chunks, false>;
    for (const auto placeOf : {&matrixRowDownFirst, &matrixRowAcrossFirst}) {
        for (int row = 0; row < 64; row += 8) {
            for (int chunk = 0; chunk + 1 < chunks; ++chunk)
                QCOMPARE(matrixWavefronts<Swizzled>(placeOf, row, chunk), 4); // one of each eight rows
            // In order, eight rows of 32, 64 or 128 bytes and more meet two, four or eight to a bank.
            QCOMPARE(matrixWavefronts<Plain>(placeOf, row, 0), 4 * std::min(chunks, 8));
        }
    }
    // The swizzle of the experiment is the one of these kernels.
    const auto tile = sharedTile(16, chunks, 0, 16);
    QVERIFY(tile.has_value());
    for (int row = 0; row < 64; ++row) {
        for (int chunk = 0; chunk < chunks; ++chunk)
            QCOMPARE(addressIn(*tile, std::uint32_t(row * chunks + chunk)), Swizzled::at(row, chunk));
    }
    // Filling it: neighbours in a warp store neighbouring chunks.
    for (int warp = 0; warp < 4; ++warp) {
        std::vector<std::uint32_t> stored;
        for (int lane = 0; lane < 32; ++lane) {
            const TilePlace place = firstChunk<chunks>(warp * 32 + lane);
            stored.push_back(Swizzled::at(place.row, place.column));
        }
        QCOMPARE(resolveBanks(stored, 16)->conflicts(), 0);
    }
}

} // namespace

class TestBankKernels : public QObject
{
    Q_OBJECT

private slots:
    void readsTakeTheWavefrontsThatAreCounted()
    {
        for (const std::uint32_t padding : {0u, 1u}) {
            compareReads<std::uint16_t>(padding, 0);
            compareReads<std::uint32_t>(padding, 0);
            compareReads<Word8>(padding, 0);
            compareReads<Word16>(padding, 0);
        }
        compareReads<std::uint32_t>(0, 4);
        compareReads<std::uint32_t>(0, 16);
        compareReads<Word8>(0, 8);
        compareReads<Word16>(0, 16);
    }

    void writesTakeTheWavefrontsThatAreCounted()
    {
        for (const std::uint32_t granule : {0u, 4u}) {
            for (const std::uint32_t stride : {1u, 2u, 8u, 32u}) {
                const BankWork work = workOf(*sharedTile(4, 32, 0, granule), stride);
                emulated::GlobalMemory memory;
                const auto stores = [&](bool writes) {
                    return emulated::run(launchOf(work), memory,
                                         [&](emulated::Machine& m) {
                                             fillTile<std::uint32_t>(m, work, lanesPerWarp);
                                             m.syncThreads();
                                             if (writes)
                                                 writeAsked<std::uint32_t>(m, work);
                                         })
                        .stores.turns;
                };
                QCOMPARE(stores(true) - stores(false), std::uint64_t(resolveBanks(addressesOf(work), 4)->wavefronts));
            }
        }
    }

    void whatIsWrittenIsWhereItIsRead()
    {
        const BankWork work = workOf(*sharedTile(8, 16, 3, 8), 7);
        std::vector<Word8> tile(work.elements);
        emulated::GlobalMemory memory;
        memory.writable("tile", tile.data(), tile.size() * sizeof(Word8));
        emulated::run(launchOf(work), memory, [&](emulated::Machine& m) {
            fillTile<Word8>(m, work, lanesPerWarp);
            m.syncThreads();
            writeAsked<Word8>(m, work);
            m.syncThreads();
            copyTile<Word8>(m, work, lanesPerWarp, tile.data());
        });
        for (std::uint32_t e = 0; e < work.elements; ++e) {
            const Word8 expected = wordOf<Word8>(e % 7 == 0 ? writtenBits(e) : mixed(e)); // 31 × 7 is the last
            QVERIFY(std::memcmp(&tile[e], &expected, sizeof(Word8)) == 0);
        }
    }

    void flashTilesHaveNoConflicts()
    {
        expectNoConflicts<2>();
        expectNoConflicts<4>();
        expectNoConflicts<8>();  // head dimension 64
        expectNoConflicts<16>(); // 128
    }
};

QTEST_GUILESS_MAIN(TestBankKernels)
#include "tst_bank_kernels.moc"
