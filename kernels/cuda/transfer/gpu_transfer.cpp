// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/transfer/gpu_transfer.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/host_memory.h"
#include "kernels/cuda/transfer/transfer.h"
#include "kernels/host/common/arena.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

/// Streams beside the session's, and the events that order them behind and before it.
class Lanes
{
public:
    Lanes() = default;
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;
    ~Lanes()
    {
        if (isHung())
            return;
        for (cudaStream_t stream : m_own)
            cudaStreamDestroy(stream);
        for (cudaEvent_t event : m_events)
            cudaEventDestroy(event);
    }
    cudaError_t open(cudaStream_t first, int count)
    {
        m_streams = {first};
        for (int i = 0; i < count; ++i) { // an event of each lane's end, and one of the common begin
            m_events.emplace_back();
            if (const cudaError_t error = cudaEventCreate(&m_events.back()); error != cudaSuccess)
                return error;
            if (i == 0)
                continue;
            m_own.emplace_back();
            if (const cudaError_t error = cudaStreamCreateWithFlags(&m_own.back(), cudaStreamNonBlocking);
                error != cudaSuccess)
                return error;
            m_streams.push_back(m_own.back());
        }
        return cudaSuccess;
    }
    cudaStream_t stream(std::uint64_t chunk, int depth) const { return m_streams[chunk % std::uint64_t(depth)]; }
    /// The others begin when the first has come here.
    cudaError_t fork(int depth)
    {
        cudaError_t error = depth > 1 ? cudaEventRecord(m_events[0], m_streams[0]) : cudaSuccess;
        for (int i = 1; i < depth && error == cudaSuccess; ++i)
            error = cudaStreamWaitEvent(m_streams[std::size_t(i)], m_events[0], 0);
        return error;
    }
    /// The first goes on when all have come here.
    cudaError_t join(int depth)
    {
        cudaError_t error = cudaSuccess;
        for (std::size_t i = 1; i < std::size_t(depth) && error == cudaSuccess; ++i) {
            error = cudaEventRecord(m_events[i], m_streams[i]);
            if (error == cudaSuccess)
                error = cudaStreamWaitEvent(m_streams[0], m_events[i], 0);
        }
        return error;
    }

private:
    std::vector<cudaStream_t> m_streams, m_own;
    std::vector<cudaEvent_t> m_events;
};

/// The GPU at the other end of a peer copy, with memory on it.
struct Neighbour
{
    int here = 0, ordinal = -1;
    Buffer in, out;
};

Result<Neighbour> findNeighbour()
{
    Neighbour neighbour;
    int count = 0;
    MEMSCAPE_CHECK(cudaResult(cudaGetDevice(&neighbour.here), "asking for the GPU"));
    MEMSCAPE_CHECK(cudaResult(cudaGetDeviceCount(&count), "counting the GPUs"));
    for (int other = 0; other < count; ++other) {
        int can = 0;
        if (other != neighbour.here && succeeded(cudaDeviceCanAccessPeer(&can, neighbour.here, other)) && can != 0) {
            neighbour.ordinal = other;
            const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
            if (error == cudaErrorPeerAccessAlreadyEnabled)
                forgetCudaError();
            else
                MEMSCAPE_CHECK(cudaResult(error, "opening the way to another GPU"));
            return neighbour;
        }
    }
    return fail("run.skipped", "there is no other GPU that this one can reach",
                "choose kind=pinned, pageable, mapped or device");
}

Result<Buffer> onNeighbour(const Neighbour& neighbour, std::uint64_t bytes)
{
    void* taken = nullptr;
    MEMSCAPE_CHECK(cudaResult(cudaSetDevice(neighbour.ordinal), "asking the other GPU"));
    const cudaError_t error = cudaMalloc(&taken, bytes);
    MEMSCAPE_CHECK(cudaResult(cudaSetDevice(neighbour.here), "coming back from the other GPU"));
    MEMSCAPE_CHECK(cudaResult(error, "taking memory of the other GPU"));
    return Buffer(static_cast<char*>(taken), [](char* memory) {
        if (!isHung())
            cudaFree(memory);
    });
}

} // namespace

struct GpuTransfer::Parts
{
    Parts(GpuSession& session, TransferCase asked)
        : m_session(session)
        , m_asked(std::move(asked))
    { }

    Result<void> open()
    {
        const std::uint64_t stride = chunkStride();
        const std::uint64_t all = stride * std::uint64_t(m_asked.depth);
        // A neighbour is not let into a pool.
        MEMSCAPE_SET(m_buffers,
                     m_asked.kind == TransferKind::Peer ? m_session.allocateExtra(all) : m_session.allocate(all));
        MEMSCAPE_SET(m_sum, m_session.allocateExtra(sizeof(float)));
        MEMSCAPE_CHECK(m_session.fill(m_buffers.get(), all));
        if (m_asked.kind == TransferKind::Peer)
            MEMSCAPE_SET(m_neighbour, findNeighbour());
        if (m_asked.goesIn())
            MEMSCAPE_CHECK(openEnd(m_in));
        if (m_asked.goesOut())
            MEMSCAPE_CHECK(openEnd(m_out));
        return cudaResult(m_lanes.open(m_session.stream(), m_asked.depth), "making streams");
    }

    Result<void> check()
    {
        for (const std::uint64_t chunk : {std::uint64_t(0), m_asked.chunks() - 1}) {
            const std::uint64_t offset = chunk * m_asked.chunk, bytes = bytesOf(chunk);
            std::vector<std::byte> expected(bytes), found(bytes);
            host::fillSource(expected.data(), std::size_t(offset), std::size_t(bytes));
            const bool isMapped = m_asked.kind == TransferKind::Mapped;
            if (m_asked.goesIn() && !isMapped) {
                MEMSCAPE_CHECK(put(m_in, offset, expected));
                MEMSCAPE_CHECK(cudaResult(copyIn(chunk, 1), "copying in"));
                MEMSCAPE_CHECK(m_session.download(found.data(), buffer(chunk, 1), bytes, "copying in"));
                MEMSCAPE_CHECK(compared(expected, found, "in"));
            }
            if (m_asked.goesOut() && !isMapped) {
                MEMSCAPE_CHECK(m_session.upload(buffer(chunk, 1), expected.data(), bytes, "filling a buffer"));
                MEMSCAPE_CHECK(cudaResult(copyOut(chunk, 1), "copying out"));
                MEMSCAPE_CHECK(m_session.synchronize("copying out"));
                MEMSCAPE_CHECK(get(m_out, offset, found));
                MEMSCAPE_CHECK(compared(expected, found, "out"));
            }
        }
        return {};
    }

    Result<double> sample(bool withCopies, bool withKernel)
    {
        // Lanes alone are timed one chunk after the other.
        const int depth = withCopies && withKernel ? m_asked.depth : 1;
        MEMSCAPE_CHECK(m_session.synchronize("waiting for an idle GPU"));
        MEMSCAPE_CHECK(cudaResult(cudaEventRecord(m_session.begin(), m_session.stream()), "recording an event"));
        MEMSCAPE_CHECK(cudaResult(queue(withCopies, withKernel, depth), "queueing the chunks"));
        MEMSCAPE_CHECK(cudaResult(cudaEventRecord(m_session.end(), m_session.stream()), "recording an event"));
        MEMSCAPE_CHECK(m_session.synchronize("moving the chunks"));
        float milliseconds = 0;
        MEMSCAPE_CHECK(
            cudaResult(cudaEventElapsedTime(&milliseconds, m_session.begin(), m_session.end()), "reading the events"));
        return double(milliseconds) * 1e-3;
    }

private:
    /// The far end of a direction: memory of the host, of this GPU, or of another.
    struct End
    {
        HostMemory host{nullptr, nullptr};
        Buffer device;
        char* at = nullptr; ///< as the GPU or the runtime names it
        bool isOnHost() const { return host != nullptr; }
    };

    std::uint64_t chunkStride() const { return (m_asked.chunk + 255) / 256 * 256; }
    std::uint64_t bytesOf(std::uint64_t chunk) const
    {
        return chunk + 1 == m_asked.chunks() ? m_asked.lastChunk() : m_asked.chunk;
    }
    char* buffer(std::uint64_t chunk, int depth) const
    {
        return m_buffers.get() + chunk % std::uint64_t(depth) * chunkStride();
    }

    Result<void> openEnd(End& end)
    {
        if (m_asked.kind == TransferKind::Peer) {
            MEMSCAPE_SET(end.device, onNeighbour(m_neighbour, m_asked.bytes));
        } else if (m_asked.kind == TransferKind::Device) {
            MEMSCAPE_SET(end.device, m_session.allocate(m_asked.bytes));
        } else {
            MEMSCAPE_CHECK(host::checkFits(double(m_asked.bytes)));
            MEMSCAPE_SET(end.host, takeHostMemory(m_session, m_asked.kind != TransferKind::Pageable, m_asked.bytes));
            end.at = end.host.get();
            host::fillSource(reinterpret_cast<std::byte*>(end.at), 0, std::size_t(m_asked.bytes)); // floats, no NaN
        }
        if (!end.isOnHost())
            end.at = end.device.get();
        if (m_asked.kind == TransferKind::Mapped) {
            void* seen = nullptr;
            MEMSCAPE_CHECK(cudaResult(cudaHostGetDevicePointer(&seen, end.at, 0), "mapping memory of the host"));
            end.at = static_cast<char*>(seen);
        }
        return {};
    }

    cudaError_t copied(char* to, const char* from, std::uint64_t bytes, bool isIn, cudaStream_t stream) const
    {
        if (m_asked.kind == TransferKind::Peer)
            return cudaMemcpyPeerAsync(to, isIn ? m_neighbour.here : m_neighbour.ordinal, from,
                                       isIn ? m_neighbour.ordinal : m_neighbour.here, bytes, stream);
        const cudaMemcpyKind kind = m_asked.kind == TransferKind::Device ? cudaMemcpyDeviceToDevice
            : isIn                                                       ? cudaMemcpyHostToDevice
                                                                         : cudaMemcpyDeviceToHost;
        return cudaMemcpyAsync(to, from, bytes, kind, stream);
    }
    cudaError_t copyIn(std::uint64_t chunk, int depth) const
    {
        return copied(buffer(chunk, depth), m_in.at + chunk * m_asked.chunk, bytesOf(chunk), true,
                      m_lanes.stream(chunk, depth));
    }
    cudaError_t copyOut(std::uint64_t chunk, int depth) const
    {
        return copied(m_out.at + chunk * m_asked.chunk, buffer(chunk, depth), bytesOf(chunk), false,
                      m_lanes.stream(chunk, depth));
    }

    cudaError_t workOn(const char* from, char* to, std::uint64_t bytes, unsigned rounds, cudaStream_t stream) const
    {
        TransferWorkLaunch launch;
        launch.from = reinterpret_cast<const float*>(from);
        launch.to = reinterpret_cast<float*>(to);
        launch.count = bytes / sizeof(float);
        launch.rounds = rounds;
        launch.sum = reinterpret_cast<float*>(m_sum.get());
        return launchTransferWork(launch, m_session.multiprocessors(), stream);
    }

    /// One kernel reads and writes the host's memory; for the kernel alone a buffer of the GPU instead.
    cudaError_t queueMapped(bool withCopies, bool withKernel) const
    {
        const char* const from = withCopies && m_asked.goesIn() ? m_in.at : m_buffers.get();
        char* const to = withCopies && m_asked.goesOut() ? m_out.at : nullptr;
        return workOn(from, to, m_asked.bytes, withKernel ? host::roundsOfWork(m_asked.work) : 0, m_session.stream());
    }

    cudaError_t queue(bool withCopies, bool withKernel, int depth)
    {
        if (m_asked.kind == TransferKind::Mapped)
            return queueMapped(withCopies, withKernel);
        cudaError_t error = m_lanes.fork(depth);
        for (std::uint64_t chunk = 0; chunk < m_asked.chunks() && error == cudaSuccess; ++chunk) {
            if (withCopies && m_asked.goesIn())
                error = copyIn(chunk, depth);
            if (error == cudaSuccess && withKernel && m_asked.hasKernel() && bytesOf(chunk) >= sizeof(float))
                error = workOn(buffer(chunk, depth), nullptr, bytesOf(chunk), host::roundsOfWork(m_asked.work),
                               m_lanes.stream(chunk, depth));
            if (error == cudaSuccess && withCopies && m_asked.goesOut())
                error = copyOut(chunk, depth);
        }
        return error == cudaSuccess ? m_lanes.join(depth) : error;
    }

    Result<void> put(End& end, std::uint64_t offset, const std::vector<std::byte>& bytes)
    {
        if (!end.isOnHost())
            return m_session.upload(end.at + offset, bytes.data(), bytes.size(), "filling the source");
        std::memcpy(end.at + offset, bytes.data(), bytes.size());
        return {};
    }
    Result<void> get(End& end, std::uint64_t offset, std::vector<std::byte>& bytes)
    {
        if (!end.isOnHost())
            return m_session.download(bytes.data(), end.at + offset, bytes.size(), "reading the target");
        std::memcpy(bytes.data(), end.at + offset, bytes.size());
        return {};
    }
    Result<void> compared(const std::vector<std::byte>& expected, const std::vector<std::byte>& found,
                          const char* way) const
    {
        if (expected == found)
            return {};
        return fail(
            "check.failed",
            fmt::format("{}: bytes copied {} are not those that were sent", transferKindLabel(m_asked.kind), way),
            "measure again; a GPU that does this twice is broken");
    }

    GpuSession& m_session;
    TransferCase m_asked;
    Neighbour m_neighbour;
    Buffer m_buffers, m_sum;
    End m_in, m_out;
    Lanes m_lanes;
};

GpuTransfer::GpuTransfer(GpuSession& session, TransferCase asked)
    : m_parts(std::make_unique<Parts>(session, std::move(asked)))
{ }

GpuTransfer::~GpuTransfer() = default;

Result<void> GpuTransfer::open()
{
    return m_parts->open();
}

Result<void> GpuTransfer::check()
{
    return m_parts->check();
}

Result<double> GpuTransfer::sample(bool withCopies, bool withKernel)
{
    return m_parts->sample(withCopies, withKernel);
}

} // namespace memscape::cuda
