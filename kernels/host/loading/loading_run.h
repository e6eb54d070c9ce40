// SPDX-License-Identifier: Apache-2.0
// One loading that is ready to run: file open, memory taken and touched, a thread for each lane (several that read).
// Chunk i waits for what chunk i − d has left, d buffers in flight, whichever lanes run.
#pragma once

#include "core/experiments/loading/loading.h"
#include "kernels/host/loading/loading_file.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace memscape::host {

/// Where chunks go behind the host's memory: a GPU. Its calls come from one thread at a time.
class LoadingSink
{
public:
    virtual ~LoadingSink() = default;
    /// Memory that copies come from, pinned where it was asked for; the sink's own.
    virtual Result<std::byte*> stage(std::uint64_t bytes) = 0;
    /// `bytes` at `offset` of what is loaded; returns when they have arrived.
    virtual Result<void> copy(const std::byte* from, std::uint64_t offset, std::uint64_t bytes) = 0;
    /// What arrived there.
    virtual Result<void> fetch(std::byte* to, std::uint64_t offset, std::uint64_t bytes) = 0;
};

struct LanesUsed
{
    bool read = true, convert = true, copy = true;
};

/// What was seen beside the time.
struct LoadingSeen
{
    double deviceBytes = -1, cachedBytes = -1, faults = -1; ///< below 0: not known
};

class LoadingRun
{
public:
    /// All of them must outlive it.
    LoadingRun(HostSession& session, const LoadingFile& file, LoadingCase asked, LoadingSink* sink = nullptr);
    LoadingRun(const LoadingRun&) = delete;
    LoadingRun& operator=(const LoadingRun&) = delete;
    ~LoadingRun();

    /// Errors: run.memory, run.skipped, those of LoadingFile.
    Result<void> open();
    /// The memory alone, for a conversion that is timed without a file.
    Result<void> openMemory();
    /// Loads everything once: what arrives is what the file holds, and conversions of first and last chunk are right.
    Result<void> check();
    /// Makes the file cold or warm, then runs the lanes; seconds. Errors: run.cancelled, run.failed (the file became
    /// shorter, a read failed), run.skipped.
    Result<double> sample(const LanesUsed& used);

    const LoadingCase& asked() const { return m_asked; }
    const LoadingSeen& seen() const { return m_seen; } ///< of the last sample that read
    const std::string& checked() const { return m_checked; }

private:
    struct Lane
    {
        LoadingStep step;
        int threads;
    };

    Result<void> prepare(const LanesUsed& used);
    Result<void> mapFile();
    void unmapFile();
    double runLanes(const std::vector<Lane>& lanes);
    void runLane(const Lane& lane, int thread, std::uint64_t chunk);
    void readPart(int thread, std::uint64_t chunk);
    void convertChunk(std::uint64_t chunk);
    void copyChunk(std::uint64_t chunk);
    std::byte* readBuffer(std::uint64_t chunk) const;
    const std::byte* readBytes(std::uint64_t chunk) const; ///< where the chunk lies once it is read
    std::byte* convertedBuffer(std::uint64_t chunk) const;
    std::uint64_t convertedStride() const;
    std::size_t elementsOf(std::uint64_t chunk) const;
    std::uint64_t convertedSize(std::uint64_t chunk) const;
    int readDescriptor(int thread) const;
    void failWith(Error error);
    bool isStopping() const { return m_stop.load(std::memory_order_relaxed); }
    Result<void> compareChunk(std::uint64_t chunk, std::vector<std::byte>& expected);

    HostSession& m_session;
    const LoadingFile& m_file;
    LoadingCase m_asked;
    LoadingSink* m_sink;
    FileDescriptor m_direct;
    std::vector<FileDescriptor> m_others; ///< of the threads that read beside the first
    Buffer m_readMemory, m_convertedMemory;
    std::byte* m_readAt = nullptr;
    std::byte* m_convertedAt = nullptr;
    std::byte* m_mapping = nullptr;
    bool m_isReadBack = false; ///< the page cache holds the file as it was read
    std::atomic<bool> m_stop{false};
    std::atomic<long> m_faults{0};
    std::atomic<unsigned> m_touched{0}; ///< a sum of mapped bytes, so that they are read
    std::mutex m_mutex;
    std::optional<Error> m_error;
    LoadingSeen m_seen;
    std::string m_checked;
};

} // namespace memscape::host
