// SPDX-License-Identifier: Apache-2.0
// How long a matrix product C (m × n) = A (m × k) · B (k × n) takes in a number format:
//
//     t = max(t_arithmetic, bytes / bandwidth) + launch
//     bytes = e (m k + k n) + e_out m n        every matrix once, from and to DRAM
//
// GPU: C is cut into tiles, one for each multiprocessor at a time, so the last wave of tiles may be
// nearly empty and the last tile of a row too (NVIDIA, Matrix Multiplication Background, User's
// Guide, "Tile quantization", "Wave quantization"):
//
//     tiles  = ⌈m / tm⌉ ⌈n / tn⌉,   waves = ⌈tiles / SMs⌉
//     t_arithmetic = waves × (2 tm tn k / (rate of one SM × quality of the tile) + fill)
//
// with the best of eight tiles, the larger of which read each operand less often:
//
//     quality = 1 / (1 + r (256 / tm + 256 / tn - 3)),   r ~ rate × e / bandwidth of L2
//
// r = 0.25, a fit to cuBLAS at 1k on an H100 SXM in FP16 (178, 548, 733 and 756 TFLOP/s at 1k, 2k, 4k and
// 8k: waynehacking8, bench.csv), gives 1 for 128 × 256 and 0.8 for 128 × 128; for the others (256 × 64,
// 128 × 64, 64 × 64, names that cuBLAS's kernels bear) it follows: 0.67, 0.57, 0.44. Elsewhere r is as many
// times that as reads weigh against products (tileReads()): a third on an RTX 3090, an eighth on the lanes
// of an H100 (FP32, FP64: 48.5 TFLOP/s of 4 B), 0.86 for 64 × 64 and 0.71 for 32 × 32, which is a kernel
// of lanes alone (sgemm_32x32). Up to 16 rows have kernels with tiles as low (cuBLAS's gemmSN, llama.cpp's mmf.cu), so
// that the matrix is what holds them, on lanes as on tensor cores: 8 tokens of Llama 3 8B in F16 take 18.9 ms on an RTX
// 3090, which reads its 15 GB in 17 (ggml-org/llama.cpp, pull request 15131). A wave fills its pipelines and writes its
// tiles before the next begins: 2.2 µs, what is left at k = 0 of 4096 × 4096 × k for k from 1,024 to 4,096 on an H100
// (681 and 786 TFLOP/s; two at once 693 and 763) and a B200 (1,076, 1,278 and 1,417): openxla/xla,
// matmul_interpolator_data.h. Its products of 256 to 1,024 rows and columns were not fitted; the test states the errors
// there and at other points. Before Hopper two blocks lie on a multiprocessor, one of which fills while the other
// multiplies: of a product only the first wave's is seen (BERT large's products of 1,024 terms on an A100 are as quick
// as those of 4,096: eager_kernels.h names the profile). The rate of one SM is what makes the whole reach the reached
// rate (product_rates.h) at 8192³. In a long run power holds the clocks, and multiprocessors that have no tile leave
// theirs to the others: f ~ 1 / ∛(busy share) (product_rates.h), up to the clocks of a short run. On a T4 of 70 W these
// are twice those of a long one.
//
// Host: 2 m n k over what all cores reached in calibration, else over a share of the derived rate.
//
// Left out: split-k and stream-k for few tiles and long k, the choice that a library's heuristics
// really make, clocks that sag under load, operands that are still in a cache, conversion of
// operands that come in another format.
#pragma once

#include "core/device/device.h"
#include "core/timing/product_rates.h"

#include <cstdint>
#include <string_view>

namespace memscape {

struct GemmShape
{
    std::int64_t m = 1, n = 1, k = 1;

    double flops() const { return 2.0 * double(m) * double(n) * double(k); }
    bool operator==(const GemmShape&) const = default;
};

/// Bytes of one element of the result: INT8 gives INT32, FP8 gives BF16, the others themselves.
int resultBytes(const NumberFormat& format);
/// Every matrix once.
double gemmBytes(const NumberFormat& format, const GemmShape& shape);

enum class GemmBound { Arithmetic, Memory, Overhead };
std::string_view gemmBoundText(GemmBound bound); ///< "compute-bound", "memory-bound", "overhead"

struct GemmTime
{
    double flops = 0, bytes = 0;
    double bandwidth = 0; ///< B/s of DRAM: reads and writes
    ProductRate rate;
    int tileRows = 0, tileColumns = 0; ///< 0 on hosts
    double tiles = 0, waves = 0;
    double quantization = 1;                         ///< useful multiply-adds / those of all waves' tiles
    double arithmetic = 0, memory = 0, overhead = 0; ///< s
    double seconds = 0;
    GemmBound bound = GemmBound::Arithmetic;

    double intensity() const { return flops / bytes; }            ///< FLOP/B
    double ridge() const { return rate.dense.value / bandwidth; } ///< FLOP/B
};

/// s of a wave that do not depend on k.
inline constexpr double waveFillSeconds = 2.2e-6;

/// What multiplies.
enum class Multipliers { TensorCores, Lanes };

/// Tiles that follow each other on a multiprocessor.
struct TiledTime
{
    int tileRows = 0, tileColumns = 0;
    double tiles = 0, waves = 0;
    double seconds = 0; ///< of arithmetic, what waves fill included
    double filling = 0; ///< of it, what waves fill
};
/// Multiprocessors that multiply tiles.
struct TileUnits
{
    Multipliers multipliers = Multipliers::TensorCores;
    int units = 1;
    double reached = 0;  ///< FLOP/s of all together at 8192³
    double reads = 0.25; ///< r above
    bool shares = false; ///< two blocks lie on a multiprocessor: one fills while the other multiplies
    double spare = 1;    ///< times that clocks rise at most where idle multiprocessors leave power
};
/// Of a device whose products reach so many FLOP/s of operands of so many bytes.
TileUnits tileUnits(const Device& device, Multipliers multipliers, double reached, double elementBytes);
/// r of a device whose products reach so many FLOP/s of operands of so many bytes; an H100's where the bandwidth of L2
/// is not known.
double tileReads(const Device& device, double reached, double elementBytes);
/// With the best tile, `count` products at once.
TiledTime tiledTime(const TileUnits& units, double m, double n, double k, double count = 1);

/// Errors: those of productRate, predict.device when the DRAM bandwidth is not known.
Result<GemmTime> gemmTime(const Device& device, Format format, const GemmShape& shape);

} // namespace memscape
