// SPDX-License-Identifier: Apache-2.0
// A step of the ring: rank r reads its left neighbour's piece once that has ended the step before, and says with an
// event that its own step is done. Two events take turns, so that a neighbour that was queued first is not waited for a
// step too long. Before a collective begins, a rank waits until the right neighbour reads nothing of it any more.
#include "kernels/cuda/sharding/gpu_ring.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/host_memory.h"
#include "kernels/cuda/sharding/ring.h"
#include "kernels/host/common/arena.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape::cuda {

struct GpuRing::Rank
{
    int ordinal = 0;
    cudaStream_t stream = nullptr;
    bool isStreamOwn = false;
    std::array<cudaEvent_t, 2> done{};
    cudaEvent_t sent = nullptr; ///< into the host's memory
    Buffer memory, received;
    HostMemory slot{nullptr, nullptr}; ///< what it sends through the host

    char* at(std::size_t offset) const { return memory.get() + offset; }
    ~Rank()
    {
        if (stream != nullptr)
            static_cast<void>(waitFor(stream));
        if (isHung())
            return;
        for (const cudaEvent_t event : {done[0], done[1], sent}) {
            if (event != nullptr)
                cudaEventDestroy(event);
        }
        memory.reset();
        received.reset();
        if (isStreamOwn)
            cudaStreamDestroy(stream);
    }
};

/// Calls go to other GPUs; on every way out they go to the session's again.
class GpuRing::HomeAgain
{
public:
    explicit HomeAgain(int home)
        : m_home(home)
    { }
    ~HomeAgain() { cudaSetDevice(m_home); }
    HomeAgain(const HomeAgain&) = delete;
    HomeAgain& operator=(const HomeAgain&) = delete;

private:
    int m_home;
};

namespace {

Result<void> ringCall(cudaError_t error, const char* doing)
{
    return cudaResult(error, doing);
}

Result<Buffer> memoryOfRank(int ordinal, std::size_t bytes)
{
    void* taken = nullptr;
    const cudaError_t error = cudaMalloc(&taken, std::max<std::size_t>(bytes, 1));
    if (error == cudaErrorMemoryAllocation) {
        forgetCudaError();
        return fail("run.memory", fmt::format("{} of GPU {} cannot be had", bytesText(double(bytes)), ordinal),
                    "choose a smaller model or more ranks, or end what else uses the GPU's memory");
    }
    MEMSCAPE_CHECK(cudaResult(error, "taking memory for a rank"));
    return Buffer(static_cast<char*>(taken), [](char* memory) {
        if (!isHung())
            cudaFree(memory);
    });
}

} // namespace

GpuRing::GpuRing(GpuSession& session, int ranks, std::vector<RingOperation> operations, std::function<bool()> cancelled)
    : m_session(session)
    , m_operations(std::move(operations))
    , m_cancelled(std::move(cancelled))
{
    for (int rank = 0; rank < ranks; ++rank)
        m_ranks.push_back(std::make_unique<Rank>());
}

GpuRing::~GpuRing()
{
    static_cast<void>(settle());
}

std::uint64_t GpuRing::comparedElements() const
{
    return comparedInRing(m_operations, int(m_ranks.size()));
}

Result<void> GpuRing::open(bool isStaged, std::size_t memory)
{
    int here = 0, count = 0;
    MEMSCAPE_CHECK(ringCall(cudaGetDevice(&here), "asking for the GPU"));
    MEMSCAPE_CHECK(ringCall(cudaGetDeviceCount(&count), "counting the GPUs"));
    const auto ranks = int(m_ranks.size());
    if (count < ranks)
        return fail("run.skipped",
                    fmt::format("{} ranks need {} GPUs, and there {}", ranks, ranks,
                                count == 1 ? "is one" : fmt::format("are {}", count)),
                    fmt::format("{}measure on the device cpu, whose ranks are threads or processes, or look at the "
                                "prediction",
                                count > 1 ? fmt::format("choose {} ranks, ", count) : std::string()),
                    "data_parallel");
    std::size_t piece = 0;
    for (const RingOperation& operation : m_operations)
        piece = std::max(piece, operation.pieceBytes());
    const HomeAgain homeAgain(here);
    for (int rank = 0, other = 0; rank < ranks; ++rank) {
        if (other == here)
            ++other;
        m_ranks[std::size_t(rank)]->ordinal = rank == 0 ? here : other++;
    }
    m_isStaged = isStaged;
    if (!m_isStaged)
        MEMSCAPE_CHECK(openWays());
    if (m_isStaged)
        MEMSCAPE_CHECK(host::checkFits(double(piece) * ranks));
    for (const auto& rank : m_ranks)
        MEMSCAPE_CHECK(openRank(*rank, memory, piece));
    return settle();
}

/// From every rank to its left neighbour, or from none.
Result<void> GpuRing::openWays()
{
    for (std::size_t i = 0; i < m_ranks.size(); ++i) {
        const int mine = m_ranks[i]->ordinal, other = left(i).ordinal;
        int can = 0;
        const bool isAnswered = succeeded(cudaDeviceCanAccessPeer(&can, mine, other));
        MEMSCAPE_CHECK(ringCall(cudaSetDevice(mine), "choosing a GPU"));
        const cudaError_t error =
            isAnswered && can != 0 ? cudaDeviceEnablePeerAccess(other, 0) : cudaErrorPeerAccessUnsupported;
        forgetCudaError();
        if (error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled)
            continue;
        m_isStaged = true;
        m_whyStaged = fmt::format("GPU {} cannot reach the memory of GPU {} ({}): pieces go through pinned memory of "
                                  "the host, as with link=host",
                                  mine, other, cudaGetErrorName(error));
        return {};
    }
    return {};
}

Result<void> GpuRing::openRank(Rank& rank, std::size_t memory, std::size_t piece)
{
    MEMSCAPE_CHECK(ringCall(cudaSetDevice(rank.ordinal), "choosing a GPU"));
    if (&rank == m_ranks.front().get()) {
        rank.stream = m_session.stream();
    } else {
        MEMSCAPE_CHECK(ringCall(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "making a stream"));
        rank.isStreamOwn = true;
    }
    for (cudaEvent_t* event : {&rank.done[0], &rank.done[1], &rank.sent})
        MEMSCAPE_CHECK(ringCall(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event"));
    MEMSCAPE_SET(rank.memory, memoryOfRank(rank.ordinal, memory));
    MEMSCAPE_SET(rank.received, memoryOfRank(rank.ordinal, piece));
    MEMSCAPE_CHECK(ringCall(cudaMemsetAsync(rank.memory.get(), 0, memory, rank.stream), "clearing a rank's memory"));
    if (m_isStaged)
        MEMSCAPE_SET(rank.slot, takeHostMemory(m_session, true, piece));
    return {};
}

Result<void> GpuRing::settle()
{
    for (const auto& rank : m_ranks) {
        if (rank->stream != nullptr)
            MEMSCAPE_CHECK(cudaResult(waitFor(rank->stream), "running the ring"));
    }
    return {};
}

Result<void> GpuRing::waitOn(Rank& rank, Rank& neighbour)
{
    return ringCall(cudaStreamWaitEvent(rank.stream, neighbour.done[(m_step + 1) % 2], 0), "ordering the ranks");
}

/// What each rank's right neighbour will read, into the host's memory, where pieces go through it.
Result<void> GpuRing::send(const std::vector<std::size_t>& from, std::size_t bytes)
{
    for (std::size_t i = 0; i < m_ranks.size() && m_isStaged; ++i) {
        Rank& rank = *m_ranks[i];
        MEMSCAPE_CHECK(ringCall(cudaSetDevice(rank.ordinal), "choosing a GPU"));
        MEMSCAPE_CHECK(waitOn(rank, right(i))); // it has read what was there
        MEMSCAPE_CHECK(ringCall(cudaMemcpyAsync(rank.slot.get(), rank.at(from[(i + 1) % m_ranks.size()]), bytes,
                                                cudaMemcpyDeviceToHost, rank.stream),
                                "copying a piece to the host"));
        MEMSCAPE_CHECK(ringCall(cudaEventRecord(rank.sent, rank.stream), "recording an event"));
    }
    return {};
}

/// Of the left neighbour's memory; the rank's GPU is chosen.
Result<void> GpuRing::receive(std::size_t index, std::size_t from, char* to, std::size_t bytes)
{
    Rank &rank = *m_ranks[index], &neighbour = left(index);
    if (index == 0)
        m_taken += bytes; // every rank the same
    if (m_isStaged) {
        MEMSCAPE_CHECK(ringCall(cudaStreamWaitEvent(rank.stream, neighbour.sent, 0), "ordering the ranks"));
        return ringCall(cudaMemcpyAsync(to, neighbour.slot.get(), bytes, cudaMemcpyHostToDevice, rank.stream),
                        "copying a piece from the host");
    }
    MEMSCAPE_CHECK(waitOn(rank, neighbour));
    return ringCall(cudaMemcpyPeerAsync(to, rank.ordinal, neighbour.at(from), neighbour.ordinal, bytes, rank.stream),
                    "copying a piece of another GPU");
}

Result<void> GpuRing::stepDone()
{
    for (const auto& rank : m_ranks) {
        MEMSCAPE_CHECK(ringCall(cudaSetDevice(rank->ordinal), "choosing a GPU"));
        MEMSCAPE_CHECK(ringCall(cudaEventRecord(rank->done[m_step % 2], rank->stream), "recording an event"));
    }
    ++m_step;
    return {};
}

Result<void> GpuRing::reduceScatter(const RingOperation& operation)
{
    const auto ranks = int(m_ranks.size());
    for (int step = 0; step + 1 < ranks; ++step) {
        std::vector<std::size_t> from;
        for (int rank = 0; rank < ranks; ++rank)
            from.push_back(operation.placeOf(rank - 2 - step, ranks));
        MEMSCAPE_CHECK(send(from, operation.pieceBytes()));
        for (std::size_t i = 0; i < m_ranks.size(); ++i) {
            Rank& rank = *m_ranks[i];
            MEMSCAPE_CHECK(ringCall(cudaSetDevice(rank.ordinal), "choosing a GPU"));
            MEMSCAPE_CHECK(receive(i, from[i], rank.received.get(), operation.pieceBytes()));
            char* const mine = rank.at(from[i]);
            const bool goesElsewhere = step + 2 == ranks && operation.hasOwn();
            MEMSCAPE_CHECK(
                ringCall(launchRingAdd({int(operation.elementBytes), mine, rank.received.get(),
                                        goesElsewhere ? rank.at(operation.own) : mine, operation.pieceElements},
                                       rank.stream),
                         "adding a piece"));
        }
        MEMSCAPE_CHECK(stepDone());
    }
    return {};
}

Result<void> GpuRing::allGather(const RingOperation& operation)
{
    const auto ranks = int(m_ranks.size());
    for (int rank = 0; rank < ranks && operation.hasOwn(); ++rank) {
        Rank& mine = *m_ranks[std::size_t(rank)];
        MEMSCAPE_CHECK(ringCall(cudaSetDevice(mine.ordinal), "choosing a GPU"));
        MEMSCAPE_CHECK(ringCall(cudaMemcpyAsync(mine.at(operation.placeOf(rank, ranks)), mine.at(operation.own),
                                                operation.pieceBytes(), cudaMemcpyDeviceToDevice, mine.stream),
                                "copying a rank's own piece"));
    }
    for (int step = 0; step + 1 < ranks; ++step) {
        std::vector<std::size_t> from;
        for (int rank = 0; rank < ranks; ++rank) // the neighbour's own piece before it lies among the others
            from.push_back(step == 0 && operation.hasOwn() ? operation.own : operation.placeOf(rank - 1 - step, ranks));
        MEMSCAPE_CHECK(send(from, operation.pieceBytes()));
        for (std::size_t i = 0; i < m_ranks.size(); ++i) {
            Rank& rank = *m_ranks[i];
            MEMSCAPE_CHECK(ringCall(cudaSetDevice(rank.ordinal), "choosing a GPU"));
            MEMSCAPE_CHECK(
                receive(i, from[i], rank.at(operation.placeOf(int(i) - 1 - step, ranks)), operation.pieceBytes()));
        }
        MEMSCAPE_CHECK(stepDone());
    }
    return {};
}

Result<void> GpuRing::queue(const RingOperation& operation)
{
    for (std::size_t i = 0; i < m_ranks.size(); ++i)
        MEMSCAPE_CHECK(waitOn(*m_ranks[i], right(i)));
    if (operation.kind != CollectiveKind::AllGather)
        MEMSCAPE_CHECK(reduceScatter(operation));
    return operation.kind == CollectiveKind::ReduceScatter ? Result<void>() : allGather(operation);
}

Result<double> GpuRing::run(std::size_t repeats)
{
    if (m_cancelled())
        return fail("run.cancelled", "the measurement was stopped");
    const HomeAgain homeAgain(m_ranks.front()->ordinal);
    MEMSCAPE_CHECK(settle());
    MEMSCAPE_CHECK(ringCall(cudaEventRecord(m_session.begin(), m_session.stream()), "recording an event"));
    for (const auto& rank : m_ranks)
        MEMSCAPE_CHECK(ringCall(cudaStreamWaitEvent(rank->stream, m_session.begin(), 0), "ordering the ranks"));
    for (std::size_t i = 0; i < repeats; ++i) {
        for (const RingOperation& operation : m_operations)
            MEMSCAPE_CHECK(queue(operation));
    }
    for (const auto& rank : m_ranks)
        MEMSCAPE_CHECK(waitOn(*m_ranks.front(), *rank));
    MEMSCAPE_CHECK(ringCall(cudaSetDevice(m_ranks.front()->ordinal), "choosing the GPU"));
    MEMSCAPE_CHECK(ringCall(cudaEventRecord(m_session.end(), m_session.stream()), "recording an event"));
    MEMSCAPE_CHECK(settle());
    float milliseconds = 0;
    MEMSCAPE_CHECK(
        ringCall(cudaEventElapsedTime(&milliseconds, m_session.begin(), m_session.end()), "reading the events"));
    return double(milliseconds) * 1e-3;
}

Result<void> GpuRing::moveNow(Rank& rank, void* to, const void* from, std::size_t bytes, bool isUp)
{
    MEMSCAPE_CHECK(ringCall(cudaSetDevice(rank.ordinal), "choosing a GPU"));
    MEMSCAPE_CHECK(cudaResult(waitFor(rank.stream), "running the ring"));
    MEMSCAPE_CHECK(
        ringCall(cudaMemcpyAsync(to, from, bytes, isUp ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, rank.stream),
                 "copying numbers to compare"));
    return cudaResult(waitFor(rank.stream), "copying numbers to compare");
}

Result<void> GpuRing::check()
{
    const HomeAgain homeAgain(m_ranks.front()->ordinal);
    const auto ranks = int(m_ranks.size());
    std::uint64_t wrong = 0;
    const std::uint64_t before = m_taken;
    for (const RingOperation& operation : m_operations) {
        RingOperation here = operation; // its pieces, and behind them the rank's own
        const std::size_t pieces = operation.pieceBytes() * std::size_t(ranks), piece = operation.pieceBytes();
        here.offset = 0;
        here.own = operation.hasOwn() ? pieces : RingOperation::noPlace;
        MEMSCAPE_CHECK(host::checkFits(double(pieces + piece)));
        std::vector<std::byte> numbers(pieces + piece);
        const auto move = [&](Rank& rank, bool isUp) -> Result<void> {
            const auto both = [&](std::size_t offset, std::size_t at, std::size_t bytes) {
                char* const there = rank.at(offset);
                std::byte* const mine = numbers.data() + at;
                return isUp ? moveNow(rank, there, mine, bytes, true) : moveNow(rank, mine, there, bytes, false);
            };
            MEMSCAPE_CHECK(both(operation.offset, 0, pieces));
            return operation.hasOwn() ? both(operation.own, pieces, piece) : Result<void>();
        };
        for (int rank = 0; rank < ranks; ++rank) {
            fillRing(numbers.data(), here, rank, ranks);
            MEMSCAPE_CHECK(move(*m_ranks[std::size_t(rank)], true));
        }
        MEMSCAPE_CHECK(queue(operation));
        MEMSCAPE_CHECK(settle());
        for (int rank = 0; rank < ranks; ++rank) {
            MEMSCAPE_CHECK(move(*m_ranks[std::size_t(rank)], false));
            wrong += wrongInRing(numbers.data(), here, rank, ranks);
        }
    }
    m_sent = m_taken - before;
    if (wrong > 0)
        return fail("check.failed",
                    fmt::format("{} of {} elements are not the sum of the ranks", wrong, comparedElements()),
                    "measure again; a link between GPUs that does this twice is broken");
    return {};
}

} // namespace memscape::cuda
