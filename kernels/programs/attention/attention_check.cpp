// SPDX-License-Identifier: Apache-2.0
// Running a device on small shapes and holding what it gives against the reference.
#include "kernels/programs/attention/attention_reference.h"

#include <cstring>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr AttentionTensor outputs[] = {AttentionTensor::Output, AttentionTensor::LogSumExp,
                                       AttentionTensor::QueryGradient, AttentionTensor::KeyGradient,
                                       AttentionTensor::ValueGradient};
constexpr std::size_t placesPerTensor = 10'000'000; ///< so that a listed place names its tensor

bool isGradient(AttentionTensor tensor)
{
    return tensor >= AttentionTensor::QueryGradient;
}

/// What a device gave for one shape.
using Outputs = std::vector<std::vector<float>>;

Result<Outputs> readAll(AttentionDevice& device, const AttentionTask& task)
{
    Outputs all;
    for (const AttentionTensor tensor : outputs) {
        const bool has = isGradient(tensor)
            ? task.version.hasBackward
            : tensor != AttentionTensor::LogSumExp || task.problem.kind == AttentionKind::Flash;
        if (!has) {
            all.emplace_back();
            continue;
        }
        MEMSCAPE_TRY(values, device.read(tensor));
        all.push_back(std::move(values));
    }
    return all;
}

/// Forward and backward from poisoned outputs, counting.
Result<Outputs> runOnce(Check& check, AttentionDevice& device, const AttentionTask& task, AttentionInputs inputs,
                        const AttentionMemory& memory)
{
    MEMSCAPE_CHECK(device.fill(inputs));
    device.resetPeak();
    MEMSCAPE_CHECK(device.forward());
    check.require(1, device.bytes().peak == memory.forward,
                  fmt::format("forward took {} B extra instead of {}", device.bytes().peak, memory.forward));
    check.require(2, device.bytes().saved == memory.saved,
                  fmt::format("{} B stayed for the backward instead of {}", device.bytes().saved, memory.saved));
    if (task.version.hasBackward) {
        device.resetPeak();
        MEMSCAPE_CHECK(device.backward());
        check.require(3, device.bytes().peak == memory.backward,
                      fmt::format("backward took {} B extra instead of {}", device.bytes().peak, memory.backward));
    }
    MEMSCAPE_TRY(all, readAll(device, task));
    device.forget();
    check.require(4, device.bytes().saved == 0, "something is still taken after forget()");
    return all;
}

bool hasSameBits(const std::vector<float>& one, const std::vector<float>& other)
{
    return one.size() == other.size()
        && (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0);
}

/// Whether the version adds this tensor up in whatever order its parts arrive: its last bits are free.
bool hasNoOrder(const AttentionVersion& version, AttentionTensor tensor)
{
    return tensor == AttentionTensor::QueryGradient && version.queryGradient == QueryGradient::Atomic;
}

Result<void> checkShapeOf(Check& check, const AttentionDeviceFactory& makeDevice, const AttentionTask& task,
                          int workers)
{
    MEMSCAPE_TRY(device, makeDevice(task));
    MEMSCAPE_TRY(memory,
                 attentionMemory(task.version, task.problem.shape, task.problem.dtype, task.problem.pass, workers));
    for (const AttentionInputs inputs : {AttentionInputs::Normal, AttentionInputs::Extreme}) {
        const AttentionReference reference = attentionReference(task, inputs);
        MEMSCAPE_TRY(first, runOnce(check, *device, task, inputs, memory));
        for (std::size_t i = 0; i < first.size(); ++i) {
            if (!first[i].empty())
                compareTensor(check, i * placesPerTensor, first[i], reference.of(outputs[i]));
        }
        MEMSCAPE_TRY(second, runOnce(check, *device, task, inputs, memory));
        for (std::size_t i = 0; i < first.size(); ++i)
            check.require(i * placesPerTensor, hasNoOrder(task.version, outputs[i]) || hasSameBits(first[i], second[i]),
                          "a second run gave other bits");
    }
    return {};
}

} // namespace

std::vector<AttentionShape> checkedShapes(const AttentionVersion& version)
{
    std::vector<std::int64_t> headDims = version.headDims;
    if (headDims.empty())
        headDims = {1, 24, 64, 100, 128, 256};
    std::vector<AttentionShape> shapes;
    for (std::size_t i = 0; i < headDims.size(); ++i) {
        if (i % 2 == 0)
            shapes.push_back({1, 4, 2, 77, 101, headDims[i], true});
        else
            shapes.push_back({2, 1, 1, 133, 133, headDims[i], false});
    }
    const std::int64_t d = headDims[headDims.size() / 2];
    shapes.push_back({1, 1, 1, 1, 1, d, true});
    shapes.push_back({1, 2, 1, 1, 290, d, false});
    shapes.push_back({1, 1, 1, 291, 291, d, true});
    shapes.push_back({3, 2, 2, 19, 7, d, false});
    return shapes;
}

Result<Check> checkAttentionDevice(const AttentionDeviceFactory& makeDevice, const AttentionVersion& version,
                                   DType dtype, int workers)
{
    Check check({1, 0}); // in units of the bounds
    for (const AttentionShape& shape : checkedShapes(version)) {
        const AttentionTask task{
            {shape, dtype, version.kind, version.hasBackward ? AttentionPass::Both : AttentionPass::Forward}, version};
        MEMSCAPE_CHECK(checkShapeOf(check, makeDevice, task, workers));
        if (!check.passed()) // one shape's mismatches are enough to read
            break;
    }
    return check;
}

} // namespace memscape
