// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/placement/host_machine.h"

#include "kernels/host/checkpoint/gelu.h"
#include "kernels/host/common/streams.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/placement/host_operators.h"
#include "kernels/host/transfer/transfer_route.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

namespace memscape::host {

namespace {

constexpr std::size_t pieceOfCopy = std::size_t(4) << 20; // B

class HostPlacedMachine final : public PlacedMachine
{
public:
    HostPlacedMachine(HostSession& session, LaneSharing sharing, ProductKernel product)
        : m_session(session)
        , m_hasWorker(sharing != LaneSharing::Single && session.team().size() > 1)
        , m_operators(std::move(product), [this] { return stopping(); })
    { }

    Result<void> checkFits(double onHost, double onDevice) override { return m_session.checkFits(onHost + onDevice); }

    Result<PlacedMemory> take(Place, std::int64_t bytes) override
    {
        MEMSCAPE_TRY(buffer, allocate(std::size_t(bytes), Pages::Huge, m_session.memory()));
        std::memset(buffer.data(), 0, buffer.bytes());
        const auto kept = std::make_shared<Buffer>(std::move(buffer));
        return PlacedMemory(kept, kept->data());
    }
    void fill(float* values, std::size_t count, std::uint64_t seed, float scale) override
    {
        uniformRow(values, seed, 0, count, scale);
    }
    Result<void> copyNow(const PlacedCopy& copy) override
    {
        std::memcpy(copy.to, copy.from, std::size_t(copy.bytes));
        return {};
    }

    Result<double> run(const PlacedProgram& program, bool isInTurn, const std::function<Result<void>()>& issue) override
    {
        prepare(program);
        m_isWorking = m_hasWorker && !isInTurn;
        Result<void> issued;
        const double seconds = m_session.team().run(
            [&](int thread) {
                if (thread > 0)
                    return copyInOrder();
                const Ending ending{m_ended};
                issued = issue();
                if (issued && m_isWorking)
                    waitFor(m_queue.size());
            },
            m_isWorking ? 2 : 1);
        MEMSCAPE_CHECK(m_session.checkStopped());
        MEMSCAPE_CHECK(issued);
        return seconds;
    }
    Result<double> timed(Lane, const std::function<Result<void>()>& step) override
    {
        const double begin = m_session.clock().now();
        MEMSCAPE_CHECK(step());
        return m_session.clock().now() - begin;
    }
    Result<void> checkStopped() override
    {
        if (stopping())
            return fail("run.cancelled", "the measurement was stopped");
        return {};
    }

    Result<void> copy(std::uint32_t step, const PlacedCopy& copy) override
    {
        if (!m_isWorking) {
            move(copy);
            return {};
        }
        m_copies[step] = copy;
        m_issued.store(m_place[step], std::memory_order_release);
        if (m_program->steps[step].waits)
            waitFor(m_place[step]);
        return {};
    }
    Result<void> begin(std::uint32_t step) override
    {
        for (const std::uint32_t before : m_program->steps[step].after) {
            if (m_isWorking && m_program->steps[before].isCopy())
                waitFor(m_place[before]);
        }
        return {};
    }
    Result<void> end(std::uint32_t) override { return {}; }

    Result<void> forward(Place, const GraphNode& node, const float* a, const float* b, float* output) override
    {
        m_operators.forward(node, a, b, output);
        return {};
    }
    Result<void> backward(const GraphNode& node, const PlacedBackward& work) override
    {
        m_operators.backward(node, work);
        return {};
    }
    Result<void> lossGradient(float* y, std::size_t count) override
    {
        HostOperators::lossGradient(y, count);
        return {};
    }
    Result<void> update(const PlacedUpdate& work) override
    {
        AdamStep step;
        step.step = work.step;
        adamUpdate({work.weights, work.moments, work.variances, work.gradients}, work.count, step);
        return {};
    }

private:
    /// Told however the issuing core ends, so that the copying one does not wait for more.
    struct Ending
    {
        std::atomic<bool>& isEnded;
        ~Ending() { isEnded.store(true, std::memory_order_release); }
    };

    bool stopping() const { return m_session.team().stopping(); }

    void prepare(const PlacedProgram& program)
    {
        m_issued = m_copied = 0;
        m_ended = false;
        if (m_program == &program)
            return;
        m_program = &program;
        m_queue.clear();
        m_place.assign(program.steps.size(), 0);
        m_copies.assign(program.steps.size(), {});
        for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
            if (program.steps[i].isCopy()) {
                m_queue.push_back(i);
                m_place[i] = m_queue.size();
            }
        }
    }

    void move(const PlacedCopy& copy) const
    {
        static const StreamKernel stream = bestStream(Operation::Copy);
        const auto bytes = std::size_t(copy.bytes);
        for (std::size_t done = 0; done < bytes && !stopping(); done += pieceOfCopy) {
            const std::size_t piece = std::min(pieceOfCopy, bytes - done), words = piece / 8 * 8;
            auto* const target = static_cast<std::byte*>(copy.to) + done;
            const auto* const source = static_cast<const std::byte*>(copy.from) + done;
            if (words > 0)
                static_cast<void>(stream.run({target, source, nullptr, words}, 1));
            std::memcpy(target + words, source + words, piece - words);
        }
    }

    /// Until so many copies of the queue have ended.
    void waitFor(std::size_t count)
    {
        for (unsigned turns = 0; m_copied.load(std::memory_order_acquire) < count && !stopping();)
            waitTurn(turns);
    }

    void copyInOrder()
    {
        for (std::size_t next = 0; next < m_queue.size(); ++next) {
            for (unsigned turns = 0; m_issued.load(std::memory_order_acquire) <= next;) {
                if (stopping() || m_ended.load(std::memory_order_acquire))
                    return;
                waitTurn(turns);
            }
            move(m_copies[m_queue[next]]);
            m_copied.store(next + 1, std::memory_order_release);
        }
    }

    HostSession& m_session;
    bool m_hasWorker;
    HostOperators m_operators;
    const PlacedProgram* m_program = nullptr;
    bool m_isWorking = false;                          ///< the second core, in this run
    std::atomic<std::size_t> m_issued{0}, m_copied{0}; ///< copies of the queue
    std::atomic<bool> m_ended{false};
    std::vector<std::uint32_t> m_queue; ///< steps that copy, in the order in which they are issued
    std::vector<std::size_t> m_place;   ///< by step: behind how many of the queue it has ended
    std::vector<PlacedCopy> m_copies;   ///< by step
};

} // namespace

std::unique_ptr<PlacedMachine> makePlacedMachine(HostSession& session, LaneSharing sharing, ProductKernel product)
{
    return std::make_unique<HostPlacedMachine>(session, sharing, std::move(product));
}

} // namespace memscape::host
