// SPDX-License-Identifier: Apache-2.0
// What a placed program (core/placement/placed_program.h) runs on: a device and its host, memory on both sides, the
// operators of both, and copies between them that run beside. A host brings a second core that copies, a GPU its
// streams.
//
// Steps are issued in the order of the program. A machine waits for what a step comes after, and for nothing else; only
// operators of the host, and copies that say so, keep the one who issues waiting.
#pragma once

#include "core/base/result.h"
#include "core/placement/placed_program.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace memscape {

/// Memory of one side; frees itself.
using PlacedMemory = std::shared_ptr<std::byte>;

struct PlacedCopy
{
    void* to = nullptr;
    const void* from = nullptr;
    std::int64_t bytes = 0;
    Lane lane = Lane::Up;
};

/// Of a node: x is what it read; dy, the gradient of what it made, is lost. dx and dw may be null.
struct PlacedBackward
{
    const float *x = nullptr, *weights = nullptr;
    float *dy = nullptr, *dx = nullptr, *dw = nullptr;
};

/// Adam's step `step`, from 1, on the host.
struct PlacedUpdate
{
    float *weights = nullptr, *moments = nullptr, *variances = nullptr;
    const float* gradients = nullptr;
    std::size_t count = 0;
    int step = 1;
};

class PlacedMachine
{
public:
    virtual ~PlacedMachine() = default;

    /// Before so many bytes are taken. Errors: run.memory.
    virtual Result<void> checkFits(double onHost, double onDevice) = 0;
    /// Zeros. Errors: run.memory.
    virtual Result<PlacedMemory> take(Place place, std::int64_t bytes) = 0;
    /// values[i] ← scale × element i of the seed (mlp_numbers.h), on the host.
    virtual void fill(float* values, std::size_t count, std::uint64_t seed, float scale) = 0;
    /// While nothing runs.
    virtual Result<void> copyNow(const PlacedCopy& copy) = 0;

    /// `issue` issues the steps of `program`; s until all have ended. In turn: each ends before the next begins.
    /// Errors: those of `issue`, run.cancelled.
    virtual Result<double> run(const PlacedProgram& program, bool isInTurn,
                               const std::function<Result<void>()>& issue) = 0;
    /// One step of a run in turn; s.
    virtual Result<double> timed(Lane lane, const std::function<Result<void>()>& step) = 0;
    /// Errors: run.cancelled; asked from within `issue`.
    virtual Result<void> checkStopped() = 0;

    virtual Result<void> copy(std::uint32_t step, const PlacedCopy& copy) = 0;
    /// Before and after the operators of a step that is no copy.
    virtual Result<void> begin(std::uint32_t step) = 0;
    virtual Result<void> end(std::uint32_t step) = 0;
    /// `b`: the second input or the node's own weights, or null.
    virtual Result<void> forward(Place place, const GraphNode& node, const float* a, const float* b, float* output) = 0;
    virtual Result<void> backward(const GraphNode& node, const PlacedBackward& work) = 0;
    /// y ← the gradient of the loss of y.
    virtual Result<void> lossGradient(float* y, std::size_t count) = 0;
    virtual Result<void> update(const PlacedUpdate& work) = 0;
};

} // namespace memscape
