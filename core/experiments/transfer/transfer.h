// SPDX-License-Identifier: Apache-2.0
// `transfer` as its callers see it: what its parameters say on a device, the lanes that the bytes pass through, and
// its figures, made of predicted or of measured numbers.
#pragma once

#include "core/base/rounding.h"
#include "core/experiment/experiment.h"
#include "core/timing/pipeline.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class TransferKind {
    Pageable, ///< between a GPU and ordinary host memory, staged by the driver
    Pinned,   ///< between a GPU and page-locked host memory
    Mapped,   ///< the kernel reads and writes page-locked host memory itself
    Device,   ///< within a GPU's memory
    Peer,     ///< between two GPUs
    Copy,     ///< within a host: ordinary loads and stores of one thread
    Stream,   ///< the same, stored past the caches
    Fresh,    ///< into pages that were never touched
    Huge,     ///< the same in huge pages
    Numa,     ///< out of the memory of another node, which a processor of this one reads
    Thread,   ///< another core writes, this one reads
    Pipe,     ///< between two processes through a pipe
    Shared    ///< between two processes through memory that both have mapped
};
enum class TransferDirection { To, From, Both };

/// What the parameters of `transfer` say on a device.
struct TransferCase
{
    TransferKind kind = TransferKind::Copy;
    TransferDirection direction = TransferDirection::To;
    std::uint64_t bytes = 0;
    std::uint64_t chunk = 0; ///< B of every chunk but the last; `bytes` in one piece
    int depth = 1;           ///< buffers in flight; 1 where nothing can overlap
    double work = 0;         ///< FLOP per byte
    std::string serial = {}; ///< why nothing overlaps although it was asked for; empty where it can

    std::uint64_t chunks() const { return quotientUp(bytes, chunk); }
    std::uint64_t lastChunk() const { return bytes - (chunks() - 1) * chunk; }
    bool hasKernel() const { return work > 0; }
    bool goesIn() const { return direction != TransferDirection::From; }
    bool goesOut() const { return direction != TransferDirection::To; }
    double moved() const { return double(bytes) * (goesIn() + goesOut()); } ///< B over the link
    /// B of the buffers through which chunks pass.
    double bufferBytes() const;
};

/// Cores that move and work at the same time, and those at the other end of links between cores.
int transferLanes(TransferDirection direction, bool hasKernel);
int transferPartners(TransferKind kind, TransferDirection direction);

/// Id of the calibrated link of copies through two buffers, out of an array of so many bytes, each chunk of which
/// another core reads at once.
inline constexpr const char* besideLink = "beside";
inline constexpr double besideArray = 0x1p26; ///< B, what the page moves
const std::string& transferKindKey(TransferKind kind);
std::string transferKindLabel(TransferKind kind);

/// Errors: predict.device where the device has not got that kind, with those that it has; predict.chunks where there
/// would be more chunks than are modelled or measured.
Result<TransferCase> transferCase(const Device& device, const Parameters& parameters);

/// One lane: `fixed` + n · `perByte` seconds for a chunk of n bytes, and `perPiece` for each piece that it comes in.
struct TransferLane
{
    std::string name; ///< "copy in", "kernel", "copy out"
    bool isKernel = false;
    double fixed = 0;        ///< s
    double perByte = 0;      ///< s/B
    double perPiece = 0;     ///< s
    std::string pieces = {}; ///< the link whose pieces they are (linkPieces()); those of a size alone
    double besideFixed = 0;  ///< s a chunk, where another core works on the chunks: at least that
    /// s/B of that by the bytes of all buffers, at least; none where nothing is known of it.
    std::function<double(double buffers)> besidePerByte = {};

    double seconds(double bytes) const;
    /// While another core works on these buffers.
    double secondsBeside(double bytes, double buffers) const;
    double seconds(const TransferCase& asked) const; ///< of all chunks, one after the other
};

/// The model of one case.
struct TransferModel
{
    TransferCase asked;
    std::vector<TransferLane> lanes; ///< in the order in which a chunk passes
    bool isFused = false;            ///< one kernel moves and works: the slower lane is the time
    double latency = 0;              ///< s, α: of a transfer of no bytes
    double bandwidth = 0;            ///< B/s, β: one direction, without pieces
    std::string rule, source;        ///< how α and β come about, and where they stand

    std::vector<LaneTime> times() const;
    double copySeconds() const;   ///< the copying lanes alone, added up
    double kernelSeconds() const; ///< the kernel alone
    double seconds() const;
};
/// Errors: predict.device where a rate is not known.
Result<TransferModel> transferModel(const Device& device, const TransferCase& asked);

/// The chunk that makes the model's time shortest (B), whole bytes; `bytes` where one piece is.
std::uint64_t bestChunk(const TransferModel& model);

/// A time with its band, s.
struct TransferTime
{
    double seconds = nan;
    std::optional<double> low = {}, high = {};
};
/// What is predicted or measured.
struct TransferNumbers
{
    TransferTime time, copy, kernel, latency;
    double halfSize = nan; ///< B, α β
};
/// α β of measured times, with β of what the copies took beside α, B; NaN where α is most of it.
double measuredHalfSize(const TransferCase& asked, const TransferNumbers& numbers);
/// The figures of both sides, without reasons.
Figures transferFigures(const TransferCase& asked, const TransferNumbers& numbers);

/// The same predicted, with the reasons. Errors: those of transferCase() and transferModel().
Result<Figures> predictedTransfer(const Device& device, const Parameters& parameters);
/// What the picture needs: {"ways": [{"key", "label", "time", "lanes": [name…], "pieces": [[lane, first, last, begin,
/// end]…]}…], "best_chunk", "best_time", …}.
Json transferDetail(const Device& device, const Parameters& parameters);

} // namespace memscape
