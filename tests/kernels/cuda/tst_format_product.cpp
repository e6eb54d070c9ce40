// SPDX-License-Identifier: Apache-2.0
// Products in TF32, FP8, INT8 and FP64, thread by thread on the emulated GPU, compared with sums in double of
// what core/precision says that the bits mean.
#include "core/precision/number_format.h"
#include "kernels/cuda/precision/format_tiles.h"
#include "tests/support/warp_emulator.h"

#include <QtTest>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace memscape;
using namespace memscape::cuda;
using emulated::GlobalMemory;
using emulated::LaunchCount;
using emulated::Machine;

namespace {

struct Shape
{
    int rows, columns, inner;
};

/// Numbers that the format holds and their bytes, `width` of them a number.
struct Numbers
{
    Numbers(Format format, std::size_t width, std::size_t count, unsigned seed)
    {
        std::mt19937 generator(seed);
        std::normal_distribution<double> normal;
        const NumberFormat& numbers = numberFormat(format);
        bytes.resize(count * width);
        for (std::size_t i = 0; i < count; ++i) {
            const double drawn = numbers.isInteger() ? std::round(50 * normal(generator)) : normal(generator);
            exact.push_back(rounded(numbers, drawn));
            const std::uint64_t bits =
                format == Format::Tf32 ? std::bit_cast<std::uint32_t>(float(exact.back())) : encode(numbers, drawn);
            std::memcpy(bytes.data() + i * width, &bits, width);
        }
    }
    std::vector<char> bytes;
    std::vector<double> exact;
};

struct Ran
{
    LaunchCount count;
    std::uint64_t untouched = 0;
    double error = 0; ///< the largest, in parts of the terms' absolute sum
};

double number(TensorFormat format, const std::vector<char>& c, std::size_t i)
{
    const auto at = [&](auto value) {
        std::memcpy(&value, c.data() + i * sizeof value, sizeof value);
        return value;
    };
    switch (format) {
    case TensorFormat::Fp64: return at(double());
    case TensorFormat::Tf32: return double(at(float()));
    case TensorFormat::Int8: return at(std::int32_t());
    default: return double(std::bit_cast<float>(std::uint32_t(at(std::uint16_t())) << 16));
    }
}

/// `kernel` for every block of tiles of `side`; A and B of these formats.
template <typename Kernel>
Ran run(TensorFormat tensor, Format left, Format right, const Shape& shape, int side, int threads, int sharedBytes,
        bool isTuring, const Kernel& kernel)
{
    const auto width = std::size_t(tensor == TensorFormat::Fp64 ? 8 : tensor == TensorFormat::Tf32 ? 4 : 1);
    const auto m = std::size_t(shape.rows), n = std::size_t(shape.columns), k = std::size_t(shape.inner);
    const Numbers a(left, width, m * k, 1), b(right, width, k * n, 2);
    const std::size_t resultWidth = width == 8                         ? 8
        : tensor == TensorFormat::Tf32 || tensor == TensorFormat::Int8 ? 4
                                                                       : 2;
    std::vector<char> c(m * n * resultWidth, char(0x7f));
    const FormatArguments w =
        formatArguments({tensor, shape.rows, shape.columns, shape.inner, a.bytes.data(), b.bytes.data(), c.data()});

    GlobalMemory memory;
    memory.readable("A", a.bytes.data(), a.bytes.size());
    memory.readable("B", b.bytes.data(), b.bytes.size());
    memory.writable("C", c.data(), c.size());
    emulated::Launch launch;
    launch.blocksX = over(shape.rows, side) * over(shape.columns, side);
    launch.threads = threads;
    launch.sharedBytes = sharedBytes;
    launch.isTuring = isTuring;
    Ran ran;
    ran.count = emulated::run(launch, memory, [&](Machine& machine) { kernel(machine, w); });
    ran.untouched = memory.elementsUntouched();
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0, size = 1e-300;
            for (std::size_t l = 0; l < k; ++l) {
                const double term = a.exact[i * k + l] * b.exact[width == 1 ? j * k + l : l * n + j];
                sum += term;
                size += std::abs(term);
            }
            ran.error = std::max(ran.error, std::abs(number(tensor, c, i * n + j) - sum) / size);
        }
    }
    return ran;
}

template <typename TheNumbers, bool isAsync = true> Ran run(Format left, Format right, const Shape& shape)
{
    using Tile = FormatTile<TheNumbers, isAsync>;
    return run(TheNumbers::format, left, right, shape, Tile::side, Tile::threads, Tile::sharedBytes, !isAsync,
               [](Machine& m, const FormatArguments& w) {
                   if (w.isAligned)
                       formatProduct<Tile, true>(m, w);
                   else
                       formatProduct<Tile, false>(m, w);
               });
}

/// A machine that waits for one group of copies less than it is asked to.
struct HastyProduct : Machine
{
    explicit HastyProduct(const Machine& machine)
        : Machine(machine)
    { }
    template <int pending> void waitForCopies() { Machine::waitForCopies<pending + 1>(); }
};
/// A machine whose threads do not wait for each other.
struct UnrulyProduct : Machine
{
    explicit UnrulyProduct(const Machine& machine)
        : Machine(machine)
    { }
    void syncThreads() { }
};

/// The product in bytes on such a machine.
template <typename Faulty, bool isAsync> void runFaulty()
{
    using Tile = FormatTile<Int8Numbers, isAsync>;
    run(TensorFormat::Int8, Format::Int8, Format::Int8, {32, 32, 256}, Tile::side, Tile::threads, Tile::sharedBytes,
        !isAsync, [](Machine& machine, const FormatArguments& w) {
            Faulty m(machine);
            formatProduct<Tile, true>(m, w);
        });
}

Ran run(const QString& format, const Shape& shape)
{
    if (format == "tf32")
        return run<Tf32Numbers>(Format::Tf32, Format::Tf32, shape);
    if (format == "fp8 e4m3")
        return run<E4M3Numbers>(Format::Fp8E4M3, Format::Fp8E4M3, shape);
    if (format == "fp8 e5m2")
        return run<E5M2Numbers>(Format::Fp8E5M2, Format::Fp8E4M3, shape);
    if (format == "int8")
        return run<Int8Numbers>(Format::Int8, Format::Int8, shape);
    if (format == "int8 on Turing")
        return run<Int8Numbers, false>(Format::Int8, Format::Int8, shape);
    return run(TensorFormat::Fp64, Format::Fp64, Format::Fp64, shape, DoubleTile::side, DoubleTile::threads,
               DoubleTile::sharedBytes, false, [](Machine& m, const FormatArguments& w) {
                   if (w.isAligned)
                       doubleProduct<true>(m, w);
                   else
                       doubleProduct<false>(m, w);
               });
}

} // namespace

class TestFormatProduct : public QObject
{
    Q_OBJECT

private slots:
    void multipliesEveryShape_data()
    {
        QTest::addColumn<QString>("format");
        QTest::addColumn<double>("rounding");
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("columns");
        QTest::addColumn<int>("inner");
        const struct
        {
            const char* format;
            double rounding;
        } all[] = {{"tf32", 1e-6}, {"fp8 e4m3", 0x1p-8},    {"fp8 e5m2", 0x1p-8},
                   {"int8", 0.0},  {"int8 on Turing", 0.0}, {"fp64", 1e-14}};
        const Shape shapes[] = {{1, 1, 1}, {16, 32, 16}, {144, 128, 80}, {33, 65, 131}, {130, 260, 272}};
        for (const auto& [format, rounding] : all) {
            for (const Shape& s : shapes)
                QTest::addRow("%s %dx%dx%d", format, s.rows, s.columns, s.inner)
                    << QString(format) << rounding << s.rows << s.columns << s.inner;
        }
    }
    void multipliesEveryShape()
    {
        QFETCH(QString, format);
        QFETCH(double, rounding);
        QFETCH(int, rows);
        QFETCH(int, columns);
        QFETCH(int, inner);
        const Ran ran = run(format, {rows, columns, inner});
        QVERIFY2(ran.error <= rounding, qPrintable(QString::number(ran.error)));
        QCOMPARE(ran.untouched, 0U);
    }

    void wholeTilesMeetNoBankTwice_data() { formats(); }

    void wholeTilesMeetNoBankTwice()
    {
        QFETCH(QString, format);
        QFETCH(int, depth);
        const bool isDouble = format == "fp64";
        const int side = isDouble ? 64 : 128;
        const Ran ran = run(format, {side, 2 * side, 256});
        QCOMPARE(ran.count.matrixLoads.conflicts(), 0U);
        QCOMPARE(ran.count.loads.conflicts(), 0U);
        QCOMPARE(ran.count.stores.conflicts(), 0U);
        QCOMPARE(ran.count.copies.conflicts(), 0U);
        // mma instructions: every product once. Turing's are 8 × 8, so are those of doubles.
        const int height = isDouble || format == "int8 on Turing" ? 8 : 16;
        QCOMPARE(ran.count.products,
                 std::uint64_t(side / height) * std::uint64_t(2 * side / 8) * std::uint64_t(256 / depth));
    }

    void chunksWantAlignedRows()
    {
        alignas(16) static const char memory[64] = {};
        const auto isAligned = [](TensorFormat format, int columns, int inner, int skip) {
            return formatArguments({format, 5, columns, inner, memory, memory + skip, nullptr}).isAligned;
        };
        QVERIFY(isAligned(TensorFormat::Int8, 7, 32, 0)); // B lies along the depth
        QVERIFY(!isAligned(TensorFormat::Int8, 7, 40, 0));
        QVERIFY(!isAligned(TensorFormat::Int8, 7, 32, 8));
        QVERIFY(isAligned(TensorFormat::Tf32, 8, 12, 0));
        QVERIFY(!isAligned(TensorFormat::Tf32, 7, 12, 0));
        QVERIFY(!isAligned(TensorFormat::Tf32, 8, 13, 0));
        QVERIFY(isAligned(TensorFormat::Fp64, 2, 6, 16));
        QVERIFY(!isAligned(TensorFormat::Fp64, 3, 6, 16));
    }

    void faultsAreCaught()
    {
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, (runFaulty<HastyProduct, true>()));
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, (runFaulty<UnrulyProduct, true>()));
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, (runFaulty<UnrulyProduct, false>()));
        const auto chunksOfOddRows = [] {
            using Tile = FormatTile<Int8Numbers, true>;
            run(TensorFormat::Int8, Format::Int8, Format::Int8, {16, 16, 40}, Tile::side, Tile::threads,
                Tile::sharedBytes, false,
                [](Machine& m, const FormatArguments& w) { formatProduct<Tile, true>(m, w); });
        };
        QVERIFY_THROWS_EXCEPTION(emulated::Fault, chunksOfOddRows());
    }

private:
    static void formats()
    {
        QTest::addColumn<QString>("format");
        QTest::addColumn<double>("rounding"); ///< of a sum, relative to its terms
        QTest::addColumn<int>("depth");
        QTest::newRow("tf32") << QString("tf32") << 1e-6 << 8;
        QTest::newRow("fp8 e4m3") << QString("fp8 e4m3") << 0x1p-8 << 32; // C is bfloat16
        QTest::newRow("fp8 e5m2") << QString("fp8 e5m2") << 0x1p-8 << 32;
        QTest::newRow("int8") << QString("int8") << 0.0 << 32;
        QTest::newRow("int8 on Turing") << QString("int8 on Turing") << 0.0 << 16;
        QTest::newRow("fp64") << QString("fp64") << 1e-14 << 4;
    }
};

QTEST_APPLESS_MAIN(TestFormatProduct)
#include "tst_format_product.moc"
