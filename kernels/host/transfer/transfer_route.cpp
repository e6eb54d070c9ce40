// SPDX-License-Identifier: Apache-2.0
// Between cores and processes the other end serves requests, one at a time: "fill" copies a part of the source into
// what both see (or writes it into the pipe), "take" copies it away. So T counts one core's write and the other's read.
//
// Left out: vmsplice, sockets, io_uring; which node of memory a shared page lies on.
#include "kernels/host/transfer/transfer_route.h"

#include "kernels/host/transfer/forked_child.h"
#include "kernels/host/transfer/route_parts.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace memscape::host {

namespace {

enum class Order : std::uint32_t { None, Fill, Take };

struct Request
{
    Order order = Order::None;
    std::uint64_t offset = 0, bytes = 0;
};

/// What both ends see, before the data. Lines of their own, so that waiting for one does not move the other.
struct Mailbox
{
    alignas(cacheLine) std::atomic<std::uint32_t> asked{0};
    alignas(cacheLine) std::atomic<std::uint32_t> answered{0};
    alignas(cacheLine) Request request;
    std::uint64_t taken = 0; ///< sum of the bytes that were taken last
    std::atomic<bool> isSummed{false};
    static constexpr std::size_t room = pageBytes;
    std::byte* data() { return reinterpret_cast<std::byte*>(this) + room; }
};
static_assert(sizeof(Mailbox) <= Mailbox::room && std::atomic<std::uint32_t>::is_always_lock_free);

/// The other end: source and sink of one chunk are its own.
struct FarEnd
{
    const std::byte* source = nullptr;
    std::byte* sink = nullptr;
    StreamCopy copy{nullptr};
};

/// Answers one request if there is a new one.
bool answered(Mailbox& mailbox, const FarEnd& end)
{
    const std::uint32_t turn = mailbox.asked.load(std::memory_order_acquire);
    if (turn == mailbox.answered.load(std::memory_order_relaxed))
        return false;
    const Request request = mailbox.request;
    if (request.order == Order::Fill)
        end.copy(mailbox.data(), end.source + request.offset, request.bytes);
    else
        end.copy(end.sink, mailbox.data(), request.bytes);
    if (request.order == Order::Take && mailbox.isSummed)
        mailbox.taken = byteSum(end.sink, request.bytes);
    mailbox.answered.store(turn, std::memory_order_release);
    return true;
}

/// The processor of another core than those that the lanes use; below 0 where there is none.
int partnerProcessor(HostSession& session, const TransferCase& asked)
{
    const auto lanes = std::size_t(asked.depth > 1 ? transferLanes(asked.direction, asked.hasKernel()) : 1);
    const std::vector<int>& all = session.team().processors();
    return lanes < all.size() ? all[lanes] : -1;
}

/// Another core or another process at the other end of memory that both see.
class MailboxRoute final : public TransferRoute
{
public:
    MailboxRoute(HostSession& session, const TransferCase& asked, Buffer source, Buffer sink)
        : m_session(session)
        , m_mapping(Mailbox::room + roundedUp(std::size_t(asked.chunk), pageBytes))
        , m_source(std::move(source))
        , m_sink(std::move(sink))
        , m_end{m_source.data(), m_sink.data(), StreamCopy(bestStream(Operation::Copy).run)}
        , m_isProcess(asked.kind == TransferKind::Shared)
        , m_patience(partnerProcessor(session, asked) >= 0 ? ownCorePatience : sharedCorePatience)
    { }

    Result<void> start(const TransferCase& asked)
    {
        if (!m_mapping.isThere())
            return fail("run.memory", "no memory can be shared", "choose fewer bytes");
        m_mailbox = new (m_mapping.data()) Mailbox;
        std::memset(m_mailbox->data(), 0, std::size_t(asked.chunk)); // touched before it is timed
        if (!m_isProcess)
            return {};
        return m_child.start({-1, -1}, partnerProcessor(m_session, asked), [this] {
            for (unsigned turns = 0;;) {
                if (answered(*m_mailbox, m_end))
                    turns = 0;
                else
                    waitTurn(turns, m_patience);
            }
        });
    }

    bool bring(std::byte* buffer, std::size_t offset, std::size_t bytes) override
    {
        if (!ask({Order::Fill, offset, bytes}))
            return false;
        m_end.copy(buffer, m_mailbox->data(), bytes);
        return true;
    }
    bool send(const std::byte* buffer, std::size_t, std::size_t bytes) override
    {
        m_end.copy(m_mailbox->data(), buffer, bytes);
        return ask({Order::Take, 0, bytes});
    }
    bool hasArrived(const std::byte* buffer, std::size_t index, std::size_t bytes) override
    {
        m_mailbox->isSummed = true;
        const bool was = send(buffer, index, bytes);
        m_mailbox->isSummed = false;
        return was && m_mailbox->taken == byteSum(buffer, bytes);
    }
    void serve(const std::atomic<bool>& done) override
    {
        if (m_isProcess)
            return;
        for (unsigned turns = 0; !done.load(std::memory_order_acquire);) {
            if (answered(*m_mailbox, m_end))
                turns = 0;
            else
                waitTurn(turns, m_patience);
        }
    }

private:
    bool ask(const Request& request)
    {
        m_mailbox->request = request;
        const std::uint32_t turn = m_mailbox->asked.load(std::memory_order_relaxed) + 1;
        m_mailbox->asked.store(turn, std::memory_order_release);
        for (unsigned turns = 0; m_mailbox->answered.load(std::memory_order_acquire) != turn;) {
            waitTurn(turns, m_patience);
            const bool isTimeToLook = turns % 4096 == 0 || turns >= m_patience; // to let others run may take long
            if (isTimeToLook && (m_session.team().stopping() || (m_isProcess && !m_child.isAlive())))
                return false;
        }
        return true;
    }

    HostSession& m_session;
    SharedMapping m_mapping;
    Buffer m_source, m_sink;
    FarEnd m_end;
    bool m_isProcess;
    unsigned m_patience;
    Mailbox* m_mailbox = nullptr;
    ForkedChild m_child; // the last: it ends before what it uses
};

/// All of it or nothing; a signal in between is no end.
bool writeAll(int file, const void* data, std::size_t bytes)
{
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t count = ::write(file, at, bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        bytes -= std::size_t(count);
    }
    return true;
}

bool readAll(int file, void* data, std::size_t bytes, const ThreadTeam* team = nullptr)
{
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t count = ::read(file, at, bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0 || (team && team->stopping()))
            return false;
        at += count;
        bytes -= std::size_t(count);
    }
    return true;
}

/// Two pipes and a process that answers.
class PipeRoute final : public TransferRoute
{
public:
    PipeRoute(HostSession& session, Buffer source, Buffer sink)
        : m_session(session)
        , m_source(std::move(source))
        , m_sink(std::move(sink))
    { }
    PipeRoute(const PipeRoute&) = delete;
    PipeRoute& operator=(const PipeRoute&) = delete;
    ~PipeRoute() override
    {
        for (const int file : {m_toChild[0], m_toChild[1], m_fromChild[0], m_fromChild[1]}) {
            if (file >= 0)
                ::close(file);
        }
    }

    Result<void> start(const TransferCase& asked)
    {
        if (::pipe2(m_toChild.data(), O_CLOEXEC) != 0 || ::pipe2(m_fromChild.data(), O_CLOEXEC) != 0)
            return fail("run.failed", "no pipe can be made: " + std::generic_category().message(errno),
                        "close other programs, or raise the limit of open files (ulimit -n)");
        std::signal(SIGPIPE, SIG_IGN); // a lost child is an error of write(), as everywhere in a worker
        const int in = m_toChild[0], out = m_fromChild[1];
        MEMSCAPE_CHECK(m_child.start({std::min(in, out), std::max(in, out)}, partnerProcessor(m_session, asked),
                                     [this, in, out] { answer(in, out); }));
        ::close(std::exchange(m_toChild[0], -1));
        ::close(std::exchange(m_fromChild[1], -1));
        return {};
    }

    bool bring(std::byte* buffer, std::size_t offset, std::size_t bytes) override
    {
        const Request request{Order::Fill, offset, bytes};
        return writeAll(m_toChild[1], &request, sizeof(request))
            && readAll(m_fromChild[0], buffer, bytes, &m_session.team());
    }
    bool send(const std::byte* buffer, std::size_t, std::size_t bytes) override
    {
        return take(buffer, bytes, 0).has_value();
    }
    bool hasArrived(const std::byte* buffer, std::size_t, std::size_t bytes) override
    {
        return take(buffer, bytes, 1) == byteSum(buffer, bytes);
    }

private:
    /// `isSummed` of a take travels as its offset.
    std::optional<std::uint64_t> take(const std::byte* buffer, std::size_t bytes, std::uint64_t isSummed)
    {
        const Request request{Order::Take, isSummed, bytes};
        std::uint64_t sum = 0;
        if (!writeAll(m_toChild[1], &request, sizeof(request)) || !writeAll(m_toChild[1], buffer, bytes)
            || !readAll(m_fromChild[0], &sum, sizeof(sum)))
            return std::nullopt;
        return sum;
    }

    void answer(int in, int out) const
    {
        Request request;
        while (readAll(in, &request, sizeof(request))) {
            if (request.order == Order::Fill) {
                if (!writeAll(out, m_source.data() + request.offset, request.bytes))
                    return;
                continue;
            }
            if (!readAll(in, m_sink.data(), request.bytes))
                return;
            const std::uint64_t sum = request.offset != 0 ? byteSum(m_sink.data(), request.bytes) : 0;
            if (!writeAll(out, &sum, sizeof(sum)))
                return;
        }
    }

    HostSession& m_session;
    Buffer m_source, m_sink;
    std::array<int, 2> m_toChild{-1, -1}, m_fromChild{-1, -1};
    ForkedChild m_child;
};

} // namespace

void waitTurn(unsigned& turns, unsigned patience)
{
    if (++turns < patience) {
#if MEMSCAPE_X86
        __builtin_ia32_pause();
#endif
    } else {
        ::sched_yield();
    }
}

Result<std::unique_ptr<TransferRoute>> openTransferRoute(HostSession& session, const TransferCase& asked)
{
    if (transferPartners(asked.kind, asked.direction) == 0)
        return openCopyRoute(session, asked);
    MEMSCAPE_TRY(source, sourceOf(session, asked));
    MEMSCAPE_TRY(sink, allocate(std::size_t(asked.chunk), Pages::Huge, session.memory()));
    std::memset(sink.data(), 0, sink.bytes());
    if (asked.kind == TransferKind::Pipe) {
        auto route = std::make_unique<PipeRoute>(session, std::move(source), std::move(sink));
        MEMSCAPE_CHECK(route->start(asked));
        return route;
    }
    if (asked.kind == TransferKind::Thread && session.team().size() < 2)
        return fail("run.skipped", "one core has no other to read from", "choose another kind");
    auto route = std::make_unique<MailboxRoute>(session, asked, std::move(source), std::move(sink));
    MEMSCAPE_CHECK(route->start(asked));
    return route;
}

} // namespace memscape::host
