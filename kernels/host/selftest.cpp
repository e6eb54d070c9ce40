// SPDX-License-Identifier: Apache-2.0
// Every host kernel, in every version, element size and operation, against its reference.
#include "kernels/host/attention/attention_device.h"
#include "kernels/host/batch-size/batch_device.h"
#include "kernels/host/checkpoint/gelu.h"
#include "kernels/host/checkpoint/mlp_device.h"
#include "kernels/host/common/streams.h"
#include "kernels/host/hierarchy/chase.h"
#include "kernels/host/host_backend.h"
#include "kernels/host/layout/layout_kernels.h"
#include "kernels/host/precision/convert.h"
#include "kernels/host/stride/stride_kernels.h"
#include "kernels/programs/attention/attention_reference.h"
#include "kernels/programs/batch-size/batch_trainer.h"
#include "kernels/programs/checkpoint/mlp_reference.h"

#include <vector>

#include <fmt/format.h>

namespace memscape::host {

namespace {

SelftestLine lineOf(const std::string& kernel, const Check& check)
{
    return {kernel, check.passed(), false, check.text()};
}

/// The cycle itself, and that both chases arrive where so many steps lead.
SelftestLine chaseLine(std::size_t nodes, std::size_t windowBytes)
{
    std::vector<ChaseNode> memory(nodes);
    const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(memory.data()), nodes * sizeof(ChaseNode));
    const ChaseOptions options{windowBytes, 3};
    const ChaseNode* const start = buildChase(bytes, options, [] { return false; });
    Check check;
    const std::string wrong = checkChase(bytes, options);
    check.require(0, wrong.empty(), wrong);
    // After as many loads as there are nodes one is back; in between one is where the links lead.
    const ChaseNode* expected = start;
    for (std::size_t i = 0; i < 5 * chaseGroup; ++i)
        expected = expected->next;
    check.require(1, chase_v1(start, nodes) == start, "v1 is not back after a lap");
    check.require(2, chase_v1(start, 5 * chaseGroup) == expected, "v1 took a wrong way");
    check.require(3, chase_v2(start, 5 * chaseGroup) == expected, "v2 took a wrong way");
    return lineOf(fmt::format("chase {} nodes {}", nodes, windowBytes ? "windows" : "random"), check);
}

/// Every product, and the chain that checkpoint runs with it, in every way to drop and recompute.
void addChains(std::vector<SelftestLine>& lines, RunSink& sink)
{
    const Device described;
    HostSession session(described, sink);
    lines.push_back(lineOf("gelu and its slope", checkGelu()));
    for (const ProductKernel& kernel : productKernels()) {
        lines.push_back(lineOf(kernel.name, checkProduct(kernel)));
        const auto check = checkMlpDevice([&](const MlpShape& shape, std::int64_t arenaBytes) {
            return makeMlpDevice(session, shape, arenaBytes, kernel);
        });
        const std::string name = "MLP chain, " + kernel.name;
        lines.push_back(check ? lineOf(name, *check) : SelftestLine{name, false, false, check.error().text()});
        const auto step = checkBatchTrainer(batchDevices(session, kernel));
        const std::string training = "training step, " + kernel.name;
        lines.push_back(step ? lineOf(training, *step) : SelftestLine{training, false, false, step.error().text()});
    }
}

/// Conversions of halves, and every version of attention in every format that it takes.
void addAttention(std::vector<SelftestLine>& lines, RunSink& sink)
{
    const Device described;
    HostSession session(described, sink);
    for (const DType dtype : {DType::Float16, DType::BFloat16})
        lines.push_back(lineOf(fmt::format("rows of {}", dtypeText(dtype)),
                               checkConversions(dtype == DType::Float16 ? Format::Fp16 : Format::Bf16)));
    const auto makeDevice = [&](const AttentionTask& task) {
        return makeAttentionDevice(session, task, bestProduct());
    };
    for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
        for (const AttentionVersion& version : attentionVersions(kind, false)) {
            for (const DType dtype : version.dtypes) {
                if (sink.cancelled())
                    return;
                const std::string name =
                    fmt::format("attention {} v{} {}", attentionKindText(kind), version.number, dtypeText(dtype));
                sink.progress(int(lines.size()), int(lines.size() + 1), name);
                const auto check = checkAttentionDevice(makeDevice, version, dtype, session.team().size());
                lines.push_back(check ? lineOf(name, *check) : SelftestLine{name, false, false, check.error().text()});
            }
        }
    }
}

} // namespace

std::vector<SelftestLine> selftestHost(RunSink& sink)
{
    std::vector<SelftestLine> lines;
    addChains(lines, sink);
    if (!sink.cancelled())
        addAttention(lines, sink);
    if (sink.cancelled())
        return lines;
    for (const std::size_t nodes : {2u, 3u, 64u, 1000u, 16384u}) {
        lines.push_back(chaseLine(nodes, 0));
        lines.push_back(chaseLine(nodes, 65536));
    }
    for (const Operation operation : {Operation::Read, Operation::Write, Operation::Copy, Operation::Triad}) {
        for (const StreamKernel& kernel : streamKernels(operation))
            lines.push_back(lineOf(kernel.name(), checkStream(kernel)));
    }
    for (const int item : {1, 2, 4, 8, 16}) {
        lines.push_back(lineOf(fmt::format("read of a view {} B", item), checkReadWalk(item)));
        for (const CopyKernel& kernel : copyKernels(item))
            lines.push_back(lineOf(kernel.name(), checkCopy(kernel)));
    }
    constexpr StrideWalk walks[] = {StrideWalk::Contiguous, StrideWalk::Strided, StrideWalk::Random};
    int done = 0;
    for (const StrideWalk walk : walks) {
        for (const Operation operation : {Operation::Read, Operation::Write, Operation::Copy}) {
            sink.progress(done++, 9, "access patterns");
            for (const int element : {1, 2, 4, 8, 16}) {
                if (sink.cancelled())
                    return lines;
                for (const StrideKernel& kernel : strideKernels(walk, operation, element))
                    lines.push_back(lineOf(kernel.name(), checkStride(kernel)));
            }
        }
    }
    return lines;
}

} // namespace memscape::host
