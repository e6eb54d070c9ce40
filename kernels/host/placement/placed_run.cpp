// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/placement/placed_run.h"

#include "core/checkpoint/mlp_chain.h"
#include "kernels/host/checkpoint/gelu.h"
#include "kernels/host/common/streams.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/transfer/transfer_route.h"
#include "kernels/measure/counting_pool.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>

#include <fmt/format.h>

namespace memscape::host {

namespace {

constexpr double pieceOfProduct = 4e9;                    // FLOP between two looks at Stop
constexpr std::size_t pieceOfCopy = std::size_t(4) << 20; // B

std::size_t floatsOf(std::int64_t bytes)
{
    return std::size_t(bytes) / sizeof(float);
}

std::uint64_t seedOf(std::uint32_t node)
{
    return 2 * std::uint64_t(node) + 3;
}

/// So that products of a long chain stay near 1.
float scaleOf(const GraphNode& node)
{
    return node.kind == NodeKind::Matmul ? float(2 / std::sqrt(double(node.inner))) : 1;
}

} // namespace

/// Where everything is while a program runs.
struct PlacedRun::State
{
    State(HostSession& ofSession, const PlacementCase& ofCase, const Placement& ofPlacement, ProductKernel ofProduct)
        : session(ofSession)
        , asked(ofCase)
        , placement(ofPlacement)
        , product(std::move(ofProduct))
    { }

    HostSession& session;
    const PlacementCase& asked;
    const Placement& placement;
    ProductKernel product;
    const OperatorGraph& graph = asked.graph;
    const PlacedProgram& program = placement.program;

    Buffer arena; ///< the device
    CountingPool pool{0};
    std::int64_t highWater = 0;       ///< of all runs
    std::vector<std::int64_t> slotAt; ///< offsets, by slot

    std::vector<Buffer> weights, moments, variances, gradients, tensors; ///< on the host, by node
    std::vector<float*> deviceWeights, deviceTensor, deviceGradient;     ///< by node; null: not there
    std::vector<float*> weightGradient;
    std::vector<float> row; ///< of sums that are not kept
    ProductScratch scratch;
    int updates = 0; ///< Adam's t

    std::atomic<std::size_t> issued{0}, copied{0}; ///< steps for the copying core
    std::vector<std::uint32_t> queue;              ///< steps, in the order in which they are issued
    std::vector<std::size_t> queuePlace;           ///< by step: behind how many of the queue it has ended
    std::atomic<bool> refused{false};
    std::string refusal;

    float* at(std::uint32_t slot) const { return reinterpret_cast<float*>(arena.data() + slotAt[slot]); }
    std::uint32_t same(std::uint32_t node) const { return program.sameAs[node]; }
    bool stopping() const { return refused || session.team().stopping(); }

    Result<void> allocateHost();
    void reset();
    bool take(std::uint32_t slot);
    void give(const ProgramStep& step);
    bool takeAll(const ProgramStep& step);

    void copy(const ProgramStep& step);
    void compute(const ProgramStep& step);
    void forward(std::uint32_t node, const std::function<const float*(std::uint32_t)>& input, const float* ownWeights,
                 float* output);
    void backward(const ProgramStep& step);
    void backwardOf(std::uint32_t node, const float* x, const float* w, float* dy, float* dx, float* dw);
    void lossGradient(float* y);
    void update(std::uint32_t node);
    void multiply(ProductWork work);

    void run(StepSums* sums, bool isWorker);
    void copyThread();
};

Result<void> PlacedRun::State::allocateHost()
{
    const std::size_t count = graph.nodes.size();
    double bytes = 2 * double(placement.peak);
    for (const GraphNode& node : graph.nodes)
        bytes += double(node.weightBytes) * (asked.trains() ? 4 : 1) + double(node.outputBytes);
    MEMSCAPE_CHECK(session.checkFits(bytes));
    for (auto* all : {&weights, &moments, &variances, &gradients, &tensors})
        all->resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const GraphNode& node = graph.nodes[i];
        const auto make = [&](Buffer& buffer, std::int64_t size) -> Result<void> {
            MEMSCAPE_TRY(made, allocate(std::size_t(size), Pages::Huge, session.memory()));
            buffer = std::move(made);
            std::memset(buffer.data(), 0, std::size_t(size));
            return {};
        };
        MEMSCAPE_CHECK(make(tensors[i], node.outputBytes));
        if (node.kind == NodeKind::Input)
            uniformRow(tensors[i].as<float>(), seedOf(i), 0, floatsOf(node.outputBytes), 1);
        if (node.weightBytes > 0) {
            MEMSCAPE_CHECK(make(weights[i], node.weightBytes));
            uniformRow(weights[i].as<float>(), seedOf(i), 0, floatsOf(node.weightBytes), scaleOf(node));
            if (asked.trains()) {
                MEMSCAPE_CHECK(make(moments[i], node.weightBytes));
                MEMSCAPE_CHECK(make(variances[i], node.weightBytes));
                MEMSCAPE_CHECK(make(gradients[i], node.weightBytes));
            }
        }
        MEMSCAPE_CHECK(session.checkStopped());
    }
    return {};
}

bool PlacedRun::State::take(std::uint32_t slot)
{
    const DeviceSlot& wanted = program.blocks[slot];
    const auto offset = pool.take(wanted.bytes);
    if (!offset || pool.used() > asked.limit) {
        refusal = offset
            ? fmt::format("{} are taken, and the limit is {}", quantityText(double(pool.used()), Unit::Byte),
                          quantityText(double(asked.limit), Unit::Byte))
            : offset.error().message;
        refused = true;
        return false;
    }
    slotAt[slot] = *offset;
    float* const there = at(slot);
    switch (wanted.holds) {
    case DeviceSlot::Holds::Weights: deviceWeights[wanted.node] = there; break;
    case DeviceSlot::Holds::Tensor: deviceTensor[wanted.node] = there; break;
    case DeviceSlot::Holds::Gradient: break; // by its step
    case DeviceSlot::Holds::Work: break;
    }
    return true;
}

bool PlacedRun::State::takeAll(const ProgramStep& step)
{
    return std::all_of(step.takes.begin(), step.takes.end(), [&](std::uint32_t slot) { return take(slot); });
}

void PlacedRun::State::give(const ProgramStep& step)
{
    for (const std::uint32_t slot : step.gives)
        pool.give(slotAt[slot]);
}

/// Nothing but what stays is on the device; inputs are as they were.
void PlacedRun::State::reset()
{
    highWater = std::max(highWater, pool.highWater());
    pool = CountingPool(std::int64_t(arena.bytes()));
    const std::size_t count = graph.nodes.size();
    for (auto* all : {&deviceTensor, &deviceGradient, &weightGradient})
        all->assign(count, nullptr);
    deviceWeights.resize(count, nullptr);
    for (const std::uint32_t slot : program.resident) {
        if (!take(slot))
            return;
        const std::uint32_t node = program.blocks[slot].node;
        if (program.blocks[slot].holds == DeviceSlot::Holds::Tensor)
            std::memcpy(at(slot), tensors[node].data(), std::size_t(graph.nodes[node].outputBytes));
    }
    issued = copied = 0;
}

void PlacedRun::State::copy(const ProgramStep& step)
{
    float* const host = tensors[step.node].as<float>();
    const float* from = nullptr;
    float* to = nullptr;
    switch (step.kind) {
    case StepKind::CopyWeights:
        from = weights[step.node].as<float>();
        to = at(step.takes.front());
        break;
    case StepKind::CopyGradient:
        from = weightGradient[step.node];
        to = gradients[step.node].as<float>();
        break;
    case StepKind::CopyUpdated:
        from = weights[step.node].as<float>();
        to = deviceWeights[step.node];
        break;
    default: {
        const GraphNode& node = graph.nodes[step.node];
        // `.cpu()` itself, not what a later operator needs of its result elsewhere.
        const bool isNode = node.isCopy() && (node.kind == NodeKind::ToDevice) == (step.lane == Lane::Up);
        const std::uint32_t source = isNode ? same(node.inputs.front()) : step.node;
        from = step.lane == Lane::Up ? tensors[source].as<float>() : deviceTensor[source];
        to = step.lane == Lane::Up ? at(step.takes.front()) : host;
    }
    }
    const auto bytes = std::size_t(step.bytes);
    static const StreamKernel stream = bestStream(Operation::Copy);
    for (std::size_t done = 0; done < bytes && !stopping(); done += pieceOfCopy) {
        const std::size_t piece = std::min(pieceOfCopy, bytes - done), words = piece / 8 * 8;
        auto* const target = reinterpret_cast<std::byte*>(to) + done;
        const auto* const source = reinterpret_cast<const std::byte*>(from) + done;
        if (words > 0)
            static_cast<void>(stream.run({target, source, nullptr, words}, 1));
        std::memcpy(target + words, source + words, piece - words);
    }
}

/// In pieces of rows, so that a run stops soon; a row's sums do not depend on them.
void PlacedRun::State::multiply(ProductWork work)
{
    const double perRow = 2.0 * double(work.columns) * double(work.inner);
    const std::size_t piece = std::max<std::size_t>(64, std::size_t(pieceOfProduct / perRow) / 64 * 64);
    const std::size_t rows = work.rows;
    const float* const a = work.a;
    float* const c = work.c;
    for (std::size_t first = 0; first < rows && !stopping(); first += piece) {
        work.rows = std::min(piece, rows - first);
        work.a = a + first * (work.aTransposed ? 1 : work.aStride);
        work.c = c + first * work.cStride;
        product.run(work, scratch);
    }
}

void PlacedRun::State::forward(std::uint32_t index, const std::function<const float*(std::uint32_t)>& input,
                               const float* ownWeights, float* output)
{
    const GraphNode& node = graph.nodes[index];
    const std::size_t count = floatsOf(node.outputBytes);
    const float* const a = input(node.inputs[0]);
    const float* const b = node.inputs.size() > 1 ? input(node.inputs[1]) : nullptr;
    switch (node.kind) {
    case NodeKind::Matmul:
        multiply({std::size_t(node.rows), std::size_t(node.columns), std::size_t(node.inner), a,
                  std::size_t(node.inner), false, b ? b : ownWeights, std::size_t(node.columns), false, output,
                  std::size_t(node.columns)});
        return;
    case NodeKind::Add:
        for (std::size_t i = 0; i < count; ++i)
            output[i] = a[i] + b[i];
        return;
    case NodeKind::Multiply:
        for (std::size_t i = 0; i < count; ++i)
            output[i] = a[i] * b[i];
        return;
    case NodeKind::Relu:
        for (std::size_t i = 0; i < count; ++i)
            output[i] = a[i] > 0 ? a[i] : 0;
        return;
    case NodeKind::Gelu: geluRow(a, output, count); return;
    default: return;
    }
}

void PlacedRun::State::backwardOf(std::uint32_t index, const float* x, const float* w, float* dy, float* dx, float* dw)
{
    const GraphNode& node = graph.nodes[index];
    const std::size_t count = floatsOf(node.outputBytes);
    const auto m = std::size_t(node.rows), n = std::size_t(node.columns), k = std::size_t(node.inner);
    if (node.kind == NodeKind::Matmul) {
        multiply({k, n, m, x, k, true, dy, n, false, dw, n});
        if (dx)
            multiply({m, k, n, dy, n, false, w, n, true, dx, k});
    } else if (dx && node.kind == NodeKind::Gelu) {
        std::memcpy(dx, dy, count * sizeof(float));
        row.assign(n, 0);
        for (std::size_t i = 0; i < m; ++i)
            geluSlopeRow(x + i * n, dx + i * n, row.data(), n);
    } else if (dx) {
        for (std::size_t i = 0; i < count; ++i)
            dx[i] = x[i] > 0 ? dy[i] : 0;
    }
}

void PlacedRun::State::lossGradient(float* y)
{
    const std::size_t count = floatsOf(graph.nodes.back().outputBytes);
    static_cast<void>(lossRow(y, y, 0, count, double(count)));
}

void PlacedRun::State::update(std::uint32_t node)
{
    AdamStep step;
    step.step = updates + 1;
    adamUpdate({weights[node].as<float>(), moments[node].as<float>(), variances[node].as<float>(),
                gradients[node].as<float>()},
               floatsOf(graph.nodes[node].weightBytes), step);
}

void PlacedRun::State::backward(const ProgramStep& step)
{
    const std::uint32_t i = step.node;
    if (!deviceGradient[i]) { // the last node: the loss comes first
        lossGradient(deviceTensor[i]);
        deviceGradient[i] = deviceTensor[i];
    }
    for (const std::uint32_t slot : step.takes) {
        if (program.blocks[slot].holds == DeviceSlot::Holds::Gradient)
            (program.blocks[slot].node == i ? weightGradient : deviceGradient)[program.blocks[slot].node] = at(slot);
    }
    backwardOf(i, deviceTensor[i - 1], deviceWeights[i], deviceGradient[i], i > 1 ? deviceGradient[i - 1] : nullptr,
               weightGradient[i]);
}

void PlacedRun::State::compute(const ProgramStep& step)
{
    switch (step.kind) {
    case StepKind::Compute: {
        const bool isOnDevice = step.lane == Lane::Device;
        const auto input = [&](std::uint32_t of) -> const float* {
            return isOnDevice ? deviceTensor[same(of)] : tensors[same(of)].as<float>();
        };
        forward(step.node, input, isOnDevice ? deviceWeights[step.node] : weights[step.node].as<float>(),
                isOnDevice ? deviceTensor[step.node] : tensors[step.node].as<float>());
        return;
    }
    case StepKind::Backward: backward(step); return;
    case StepKind::Update: update(step.node); return;
    default: return;
    }
}

void PlacedRun::State::copyThread()
{
    for (std::size_t next = 0; next < queue.size(); ++next) {
        for (unsigned turns = 0; issued.load(std::memory_order_acquire) <= next;) {
            if (stopping())
                return;
            waitTurn(turns);
        }
        copy(program.steps[queue[next]]);
        copied.store(next + 1, std::memory_order_release);
    }
}

/// The core that issues. With `sums` it copies, too, and looks at the clock around each step.
void PlacedRun::State::run(StepSums* sums, bool isWorker)
{
    const auto waitFor = [&](std::size_t count) {
        for (unsigned turns = 0; copied.load(std::memory_order_acquire) < count && !stopping();)
            waitTurn(turns);
    };
    for (std::uint32_t i = 0; i < program.steps.size() && !stopping(); ++i) {
        const ProgramStep& step = program.steps[i];
        if (!takeAll(step))
            return;
        if (step.isCopy() && isWorker) {
            issued.store(queuePlace[i], std::memory_order_release);
            if (step.waits)
                waitFor(queuePlace[i]);
        } else {
            for (const std::uint32_t before : step.after) {
                if (isWorker && program.steps[before].isCopy())
                    waitFor(queuePlace[before]);
            }
            const double begin = sums ? session.clock().now() : 0;
            if (step.isCopy())
                copy(step);
            else
                compute(step);
            if (sums) {
                const double seconds = session.clock().now() - begin;
                if (!step.isCopy()) {
                    sums->compute += seconds;
                    sums->host += step.lane == Lane::Host ? seconds : 0;
                    sums->update += step.kind == StepKind::Update ? seconds : 0;
                } else {
                    (step.lane == Lane::Up ? sums->up : step.lane == Lane::Down ? sums->down : sums->disk) += seconds;
                    sums->copied += double(step.bytes);
                }
            }
        }
        if (!stopping())
            give(step);
    }
    if (isWorker)
        waitFor(queue.size());
}

PlacedRun::PlacedRun(HostSession& session, const PlacementCase& asked, const Placement& placement,
                     ProductKernel product)
    : m_state(std::make_unique<State>(session, asked, placement, std::move(product)))
{ }

PlacedRun::~PlacedRun() = default;

Result<void> PlacedRun::open()
{
    State& state = *m_state;
    if (state.asked.isModel())
        return fail("run.skipped", "a model's layers are predicted; a chain or a graph of your own is run",
                    "choose graph=mlp:8x1024");
    if (state.placement.peak > state.asked.limit)
        return fail("run.skipped",
                    fmt::format("this placement needs {} and the limit is {}",
                                quantityText(double(state.placement.peak), Unit::Byte),
                                quantityText(double(state.asked.limit), Unit::Byte)),
                    fmt::format("choose limit={} or more, or another strategy", state.placement.peak));
    MEMSCAPE_CHECK(state.allocateHost());
    // Twice the peak in addresses, so that holes between blocks are no matter; the limit is on what is taken.
    const std::int64_t room = 2 * state.placement.peak + 2 * poolGranularity;
    MEMSCAPE_TRY(arena, allocate(std::size_t(room), Pages::Huge, state.session.memory()));
    std::memset(arena.data(), 0, arena.bytes());
    state.arena = std::move(arena);
    state.pool = CountingPool(room);
    state.slotAt.assign(state.program.blocks.size(), 0);
    state.queuePlace.assign(state.program.steps.size(), 0);
    for (std::uint32_t i = 0; i < state.program.steps.size(); ++i) {
        if (state.program.steps[i].isCopy()) {
            state.queue.push_back(i);
            state.queuePlace[i] = state.queue.size();
        }
    }
    state.reset();
    for (const std::uint32_t slot : state.program.resident) {
        const DeviceSlot& held = state.program.blocks[slot];
        if (held.holds == DeviceSlot::Holds::Weights)
            std::memcpy(state.at(slot), state.weights[held.node].data(),
                        std::size_t(state.graph.nodes[held.node].weightBytes));
    }
    return {};
}

Result<double> PlacedRun::sideBySide()
{
    State& state = *m_state;
    state.reset();
    const bool isWorker = state.asked.sharing != LaneSharing::Single && state.session.team().size() > 1;
    const double seconds = state.session.team().run(
        [&](int thread) {
            if (thread == 0)
                state.run(nullptr, isWorker);
            else
                state.copyThread();
        },
        isWorker ? 2 : 1);
    ++state.updates;
    MEMSCAPE_CHECK(state.session.checkStopped());
    if (state.refused)
        return fail("run.memory", "the device is full: " + state.refusal,
                    "this is a fault of the program; please report it");
    return seconds;
}

Result<StepSums> PlacedRun::inTurn()
{
    State& state = *m_state;
    state.reset();
    StepSums sums;
    static_cast<void>(state.session.team().run([&](int) { state.run(&sums, false); }, 1));
    ++state.updates;
    MEMSCAPE_CHECK(state.session.checkStopped());
    if (state.refused)
        return fail("run.memory", "the device is full: " + state.refusal,
                    "this is a fault of the program; please report it");
    return sums;
}

double PlacedRun::highWater() const
{
    return double(std::max(m_state->highWater, m_state->pool.highWater()));
}

Result<std::string> PlacedRun::check()
{
    State& state = *m_state;
    const OperatorGraph& graph = state.graph;
    const std::size_t count = graph.nodes.size();
    MEMSCAPE_CHECK(checkAdam().result("Adam"));
    // Without limit: every array its own, the same kernels in the order of the graph.
    std::vector<std::vector<float>> own(count), weights(count);
    for (std::size_t i = 0; i < count; ++i) {
        const GraphNode& node = graph.nodes[i];
        own[i].resize(floatsOf(node.outputBytes));
        if (node.weightBytes > 0)
            weights[i].assign(state.weights[i].as<float>(), state.weights[i].as<float>() + floatsOf(node.weightBytes));
    }
    std::vector<std::vector<float>> moments(count), variances(count);
    for (std::size_t i = 0; i < count && state.asked.trains(); ++i) {
        const std::size_t size = weights[i].size();
        if (size > 0) {
            moments[i].assign(state.moments[i].as<float>(), state.moments[i].as<float>() + size);
            variances[i].assign(state.variances[i].as<float>(), state.variances[i].as<float>() + size);
        }
    }
    const int updates = state.updates;
    MEMSCAPE_TRY(seconds, sideBySide());
    static_cast<void>(seconds);
    std::string wrong;
    const auto same = [&](const float* found, const std::vector<float>& expected, std::size_t node) {
        if (std::memcmp(found, expected.data(), expected.size() * sizeof(float)) != 0 && wrong.empty())
            wrong = graph.nodes[node].name;
    };
    std::size_t compared = 0;
    static_cast<void>(state.session.team().run(
        [&](int) {
            for (std::uint32_t i = 0; i < count && !state.stopping(); ++i) {
                const GraphNode& node = graph.nodes[i];
                if (node.kind == NodeKind::Input)
                    uniformRow(own[i].data(), seedOf(i), 0, own[i].size(), 1);
                else if (node.isCopy())
                    std::copy_n(own[node.inputs.front()].begin(), own[i].size(), own[i].begin());
                else
                    state.forward(
                        i, [&](std::uint32_t of) { return own[of].data(); }, weights[i].data(), own[i].data());
            }
            if (!state.asked.trains())
                return;
            state.lossGradient(own.back().data());
            std::vector<std::vector<float>> gradients(count);
            std::vector<float> dy = own.back();
            for (std::uint32_t i = std::uint32_t(count) - 1; i > 0 && !state.stopping(); --i) {
                gradients[i].resize(weights[i].size());
                std::vector<float> dx(own[i - 1].size());
                state.backwardOf(i, own[i - 1].data(), weights[i].data(), dy.data(), i > 1 ? dx.data() : nullptr,
                                 gradients[i].data());
                dy = std::move(dx);
            }
            AdamStep step;
            step.step = updates + 1;
            for (std::size_t i = 0; i < count; ++i) {
                if (!weights[i].empty())
                    adamUpdate({weights[i].data(), moments[i].data(), variances[i].data(), gradients[i].data()},
                               weights[i].size(), step);
            }
        },
        1));
    MEMSCAPE_CHECK(state.session.checkStopped());
    for (std::size_t i = 0; i < count; ++i) {
        const auto node = std::uint32_t(i);
        if (state.asked.trains()) {
            if (weights[i].empty())
                continue;
            same(state.weights[i].as<float>(), weights[i], i);
            if (!state.asked.training.streamsWeights)
                same(state.deviceWeights[i], weights[i], i);
            compared += weights[i].size();
        } else if (i + 1 == count) { // the last result is still there
            const Place place = placeOf(graph.nodes[state.same(node)], state.placement.ways[state.same(node)]);
            const float* const found = place == Place::Device ? state.deviceTensor[state.same(node)]
                                                              : state.tensors[state.same(node)].as<float>();
            same(found, own[i], i);
            compared += own[i].size();
        }
    }
    if (!wrong.empty())
        return fail("check.failed", fmt::format("{} is not what it is without a limit", wrong),
                    "this is a fault of the program; please report it");
    return fmt::format("{} numbers, the same bits as without a limit", compared);
}

} // namespace memscape::host
