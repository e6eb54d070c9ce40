// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/placement/gpu_machine.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/host_memory.h"
#include "kernels/cuda/placement/placement.h"
#include "kernels/host/checkpoint/gelu.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/placement/host_operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

constexpr std::size_t operatorsAhead = 8; ///< of the GPU, at most: a run that is stopped ends soon
constexpr std::size_t adamGrain = 4096;   ///< elements that stay with one core

class GpuPlacedMachine final : public PlacedMachine
{
public:
    GpuPlacedMachine(GpuSession& session, CublasLt* blas, host::HostSession& hostSession, bool isPinned,
                     std::function<bool()> cancelled)
        : m_session(session)
        , m_blas(blas)
        , m_host(hostSession)
        , m_isPinned(isPinned)
        , m_cancelled(std::move(cancelled))
    {
        for (int thread = 0; thread < m_host.team().size(); ++thread)
            m_operators.emplace_back(host::bestProduct(), [this] { return m_host.team().stopping(); });
    }
    ~GpuPlacedMachine() override
    {
        static_cast<void>(settle());
        if (isHung())
            return;
        for (const cudaEvent_t event : m_events)
            cudaEventDestroy(event);
        for (const cudaEvent_t event : m_lap)
            cudaEventDestroy(event);
        for (const cudaStream_t stream : m_copies)
            cudaStreamDestroy(stream);
    }

    Result<void> open()
    {
        for (cudaStream_t& stream : m_copies)
            MEMSCAPE_CHECK(cudaResult(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream"));
        for (cudaEvent_t& event : m_lap)
            MEMSCAPE_CHECK(cudaResult(cudaEventCreate(&event), "making an event"));
        MEMSCAPE_SET(m_zero, m_session.allocateExtra(sizeof(float)));
        MEMSCAPE_SET(m_partial, m_session.allocateExtra(lossPartials * sizeof(double)));
        return queued(cudaMemsetAsync(m_zero.get(), 0, sizeof(float), compute()), "making the bias");
    }

    Result<void> checkFits(double onHost, double onDevice) override
    {
        MEMSCAPE_CHECK(m_host.checkFits(onHost));
        const double free = double(m_session.freeBytes());
        if (!m_session.isForced() && onDevice > shareOfMemory * free)
            return fail("run.memory",
                        fmt::format("the run takes {} on the GPU, twice the limit's share and the reference beside it, "
                                    "and {} are free",
                                    quantityText(onDevice, Unit::Byte), quantityText(free, Unit::Byte)),
                        "choose a shorter or narrower chain, a smaller batch, or end what else uses the GPU's memory");
        return {};
    }
    Result<PlacedMemory> take(Place place, std::int64_t bytes) override
    {
        if (place == Place::Host) {
            MEMSCAPE_TRY(memory, takeHostMemory(m_session, m_isPinned, std::uint64_t(bytes)));
            return shared(std::move(memory));
        }
        MEMSCAPE_TRY(memory, m_session.allocate(std::uint64_t(bytes)));
        MEMSCAPE_CHECK(queued(cudaMemsetAsync(memory.get(), 0, std::size_t(bytes), compute()), "clearing an array"));
        return shared(std::move(memory));
    }
    void fill(float* values, std::size_t count, std::uint64_t seed, float scale) override
    {
        m_host.team().run([&](int thread) {
            const host::Part part = host::partOf(count, thread, m_host.team().size(), adamGrain);
            host::uniformRow(values + part.begin, seed, part.begin, part.size(), scale);
        });
    }
    Result<void> copyNow(const PlacedCopy& copy) override
    {
        const auto bytes = std::size_t(copy.bytes);
        return copy.lane == Lane::Up ? m_session.upload(copy.to, copy.from, bytes, "copying to the GPU")
                                     : m_session.download(copy.to, copy.from, bytes, "copying from the GPU");
    }

    Result<double> run(const PlacedProgram& program, bool, const std::function<Result<void>()>& issue) override
    {
        m_program = &program;
        m_behind.clear();
        while (m_events.size() < program.steps.size()) {
            cudaEvent_t event = nullptr;
            MEMSCAPE_CHECK(cudaResult(cudaEventCreate(&event), "making an event"));
            m_events.push_back(event);
        }
        MEMSCAPE_CHECK(settle());
        MEMSCAPE_CHECK(queued(cudaEventRecord(m_session.begin(), compute()), "recording an event"));
        if (auto issued = issue(); !issued) {
            MEMSCAPE_CHECK(settle()); // what is on its way uses memory that is freed next
            return tl::unexpected<Error>(std::move(issued).error());
        }
        for (const cudaStream_t stream : m_copies) {
            MEMSCAPE_CHECK(queued(cudaEventRecord(m_lap[0], stream), "recording an event"));
            MEMSCAPE_CHECK(queued(cudaStreamWaitEvent(compute(), m_lap[0], 0), "waiting for the copies"));
        }
        MEMSCAPE_CHECK(queued(cudaEventRecord(m_session.end(), compute()), "recording an event"));
        MEMSCAPE_CHECK(m_session.synchronize("running the placed program"));
        return between(m_session.begin(), m_session.end());
    }
    /// Of the GPU's steps by its events, of the host's by its clock.
    Result<double> timed(Lane lane, const std::function<Result<void>()>& step) override
    {
        MEMSCAPE_CHECK(settle());
        if (lane == Lane::Host) {
            const Clock& clock = m_session.clock();
            const double begin = clock.now();
            MEMSCAPE_CHECK(step());
            return clock.now() - begin;
        }
        const cudaStream_t stream = streamOf(lane);
        MEMSCAPE_CHECK(queued(cudaEventRecord(m_lap[0], stream), "recording an event"));
        MEMSCAPE_CHECK(step());
        MEMSCAPE_CHECK(queued(cudaEventRecord(m_lap[1], stream), "recording an event"));
        MEMSCAPE_CHECK(settle());
        return between(m_lap[0], m_lap[1]);
    }
    Result<void> checkStopped() override
    {
        if (m_cancelled())
            return fail("run.cancelled", "the measurement was stopped");
        return {};
    }

    Result<void> copy(std::uint32_t index, const PlacedCopy& copy) override
    {
        const ProgramStep& step = m_program->steps[index];
        const cudaStream_t stream = streamOf(step.lane);
        MEMSCAPE_CHECK(m_isPinned ? orderBehind(step, stream) : waitBefore(step));
        if (!m_isPinned)
            MEMSCAPE_CHECK(cudaResult(waitFor(stream), "copying of pageable memory"));
        MEMSCAPE_CHECK(
            queued(cudaMemcpyAsync(copy.to, copy.from, std::size_t(copy.bytes),
                                   step.lane == Lane::Up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
                   "copying over the link"));
        MEMSCAPE_CHECK(queued(cudaEventRecord(m_events[index], stream), "recording an event"));
        return step.waits ? cudaResult(waitFor(m_events[index]), "waiting for a copy") : Result<void>();
    }
    Result<void> begin(std::uint32_t index) override
    {
        const ProgramStep& step = m_program->steps[index];
        if (step.lane == Lane::Host)
            return waitBefore(step);
        if (m_behind.size() >= operatorsAhead)
            MEMSCAPE_CHECK(cudaResult(waitFor(m_events[m_behind[m_behind.size() - operatorsAhead]]),
                                      "running the placed program"));
        m_behind.push_back(index);
        return orderBehind(step, compute());
    }
    Result<void> end(std::uint32_t index) override
    {
        if (m_program->steps[index].lane == Lane::Host)
            return {};
        return queued(cudaEventRecord(m_events[index], compute()), "recording an event");
    }

    Result<void> forward(Place place, const GraphNode& node, const float* a, const float* b, float* output) override
    {
        if (place == Place::Host) {
            host::ThreadTeam& team = m_host.team();
            team.run(
                [&](int thread) { m_operators[std::size_t(thread)].forward(node, a, b, output, thread, team.size()); });
            return checkStopped();
        }
        const std::uint64_t count = std::uint64_t(node.outputBytes) / sizeof(float);
        const auto m = std::uint64_t(node.rows), n = std::uint64_t(node.columns), k = std::uint64_t(node.inner);
        switch (node.kind) {
        case NodeKind::Matmul: return multiply({productVersions, m, n, k, a, k, false, b, n, false, output, n});
        case NodeKind::Gelu:
            return queued(
                launchGelu(a, reinterpret_cast<const float*>(m_zero.get()), nullptr, output, count, 1, compute()),
                "computing gelu");
        case NodeKind::Add: return elements({PlacedElements::Add, a, b, output, count});
        case NodeKind::Multiply: return elements({PlacedElements::Multiply, a, b, output, count});
        case NodeKind::Relu: return elements({PlacedElements::Relu, a, nullptr, output, count});
        default: return {};
        }
    }
    Result<void> backward(const GraphNode& node, const PlacedBackward& work) override
    {
        const std::uint64_t count = std::uint64_t(node.outputBytes) / sizeof(float);
        const auto m = std::uint64_t(node.rows), n = std::uint64_t(node.columns), k = std::uint64_t(node.inner);
        if (node.kind == NodeKind::Matmul) {
            MEMSCAPE_CHECK(multiply({productVersions, k, n, m, work.x, k, true, work.dy, n, false, work.dw, n}));
            return work.dx ? multiply({productVersions, m, k, n, work.dy, n, false, work.weights, n, true, work.dx, k})
                           : Result<void>();
        }
        if (!work.dx)
            return {};
        if (node.kind != NodeKind::Gelu)
            return elements({PlacedElements::ReluSlope, work.x, work.dy, work.dx, count});
        MEMSCAPE_CHECK(
            queued(cudaMemcpyAsync(work.dx, work.dy, count * sizeof(float), cudaMemcpyDeviceToDevice, compute()),
                   "copying a gradient"));
        return queued(launchGeluSlope(work.x, work.dx, count, compute()), "computing the slope of gelu");
    }
    Result<void> lossGradient(float* y, std::size_t count) override
    {
        return queued(launchLoss(y, y, count, reinterpret_cast<double*>(m_partial.get()), compute()),
                      "computing the loss");
    }
    Result<void> update(const PlacedUpdate& work) override
    {
        host::AdamStep step;
        step.step = work.step;
        m_host.team().run([&](int thread) {
            const host::Part part = host::partOf(work.count, thread, m_host.team().size(), adamGrain);
            host::adamUpdate({work.weights + part.begin, work.moments + part.begin, work.variances + part.begin,
                              work.gradients + part.begin},
                             part.size(), step);
        });
        return checkStopped();
    }

private:
    /// As memory of a placed run.
    template <typename Owner> static PlacedMemory shared(Owner owner)
    {
        auto* const at = reinterpret_cast<std::byte*>(owner.get());
        return {std::make_shared<Owner>(std::move(owner)), at};
    }

    cudaStream_t compute() const { return m_session.stream(); }
    cudaStream_t streamOf(Lane lane) const
    {
        return lane == Lane::Up ? m_copies[0] : lane == Lane::Down ? m_copies[1] : compute();
    }
    static Result<void> queued(cudaError_t error, const char* doing) { return cudaResult(error, doing); }

    /// Until all streams are empty.
    Result<void> settle()
    {
        for (const cudaStream_t stream : m_copies) {
            if (stream != nullptr)
                MEMSCAPE_CHECK(cudaResult(waitFor(stream), "waiting for the copies"));
        }
        return m_session.synchronize("running the placed program");
    }
    static Result<double> between(cudaEvent_t begin, cudaEvent_t end)
    {
        float milliseconds = 0;
        MEMSCAPE_CHECK(cudaResult(cudaEventElapsedTime(&milliseconds, begin, end), "reading the events"));
        return double(milliseconds) * 1e-3;
    }
    /// The host's own steps have ended when another is issued.
    bool hasEvent(std::uint32_t before) const { return m_program->steps[before].lane != Lane::Host; }
    Result<void> orderBehind(const ProgramStep& step, cudaStream_t stream)
    {
        for (const std::uint32_t before : step.after) {
            if (hasEvent(before) && streamOf(m_program->steps[before].lane) != stream)
                MEMSCAPE_CHECK(queued(cudaStreamWaitEvent(stream, m_events[before], 0), "ordering the streams"));
        }
        return {};
    }
    Result<void> waitBefore(const ProgramStep& step)
    {
        for (const std::uint32_t before : step.after) {
            if (hasEvent(before))
                MEMSCAPE_CHECK(cudaResult(waitFor(m_events[before]), "waiting for the GPU"));
        }
        return {};
    }

    Result<void> multiply(const ProductLaunch& launch)
    {
        if (m_blas != nullptr)
            return m_blas->launch(launch, compute());
        return queued(launchProduct(launch, compute()), "multiplying matrices");
    }
    Result<void> elements(const PlacedElementsLaunch& launch)
    {
        return queued(launchPlacedElements(launch, compute()), "computing elements");
    }

    GpuSession& m_session;
    CublasLt* m_blas;
    host::HostSession& m_host;
    bool m_isPinned;
    std::function<bool()> m_cancelled;
    std::vector<host::HostOperators> m_operators; ///< by thread of the host
    std::array<cudaStream_t, 2> m_copies{};       ///< up, down
    std::array<cudaEvent_t, 2> m_lap{};
    std::vector<cudaEvent_t> m_events;   ///< by step
    std::vector<std::uint32_t> m_behind; ///< the GPU's operators of this run, as they were issued
    Buffer m_zero, m_partial;
    const PlacedProgram* m_program = nullptr;
};

} // namespace

Result<std::unique_ptr<PlacedMachine>> makePlacedMachine(GpuSession& session, CublasLt* blas,
                                                         host::HostSession& hostSession, bool isPinned,
                                                         std::function<bool()> cancelled)
{
    auto machine = std::make_unique<GpuPlacedMachine>(session, blas, hostSession, isPinned, std::move(cancelled));
    MEMSCAPE_CHECK(machine->open());
    return std::unique_ptr<PlacedMachine>(std::move(machine));
}

} // namespace memscape::cuda
