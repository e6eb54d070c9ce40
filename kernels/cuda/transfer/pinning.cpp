// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/transfer/pinning.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/host_memory.h"
#include "kernels/host/common/arena.h"
#include "kernels/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t mostPinned = 256ULL << 20; // B
constexpr int pinnings = 5;

} // namespace

Result<PinningCost> measurePinning(GpuSession& session, std::uint64_t bytes)
{
    PinningCost cost;
    cost.bytes = std::min(std::max<std::uint64_t>(bytes, 1), mostPinned);
    MEMSCAPE_CHECK(host::checkFits(2 * double(cost.bytes)));
    MEMSCAPE_TRY(there, takeHostMemory(session, false, cost.bytes)); // its pages are touched
    const Clock& clock = session.clock();
    std::vector<double> allocated, registered;
    for (int i = 0; i < pinnings; ++i) {
        void* taken = nullptr;
        double begin = clock.now();
        MEMSCAPE_CHECK(cudaResult(cudaHostAlloc(&taken, cost.bytes, cudaHostAllocDefault), "pinning new memory"));
        allocated.push_back(clock.now() - begin);
        MEMSCAPE_CHECK(cudaResult(cudaFreeHost(taken), "freeing pinned memory"));
        begin = clock.now();
        MEMSCAPE_CHECK(cudaResult(cudaHostRegister(there.get(), cost.bytes, cudaHostRegisterDefault),
                                  "pinning memory that is there"));
        registered.push_back(clock.now() - begin);
        MEMSCAPE_CHECK(cudaResult(cudaHostUnregister(there.get()), "giving pinned pages back"));
    }
    cost.allocated = summarize(allocated).median;
    cost.registered = summarize(registered).median;
    return cost;
}

Json pinningToJson(const PinningCost& cost)
{
    return {
        {"bytes", cost.bytes}, {"allocated", jsonNumber(cost.allocated)}, {"registered", jsonNumber(cost.registered)}};
}

std::string pinningText(const PinningCost& cost, const Device& device, const TransferCase& asked)
{
    const auto rate = [&](double seconds) {
        return fmt::format("{} ({})", secondsText(seconds),
                           quantityText(double(cost.bytes) / seconds, Unit::BytePerSecond));
    };
    std::string text = fmt::format("pinning {} takes {}, of memory that is there {}", bytesText(double(cost.bytes)),
                                   rate(cost.allocated), rate(cost.registered));
    const auto secondsOf = [&](TransferKind kind) {
        TransferCase one = asked;
        one.kind = kind;
        one.bytes = one.chunk = cost.bytes;
        one.depth = 1;
        const auto model = transferModel(device, one);
        return model ? model->latency + double(cost.bytes) / model->bandwidth : nan;
    };
    const double saved = secondsOf(TransferKind::Pageable) - secondsOf(TransferKind::Pinned);
    if (saved > 0)
        text +=
            fmt::format("; a pageable copy takes {} longer by the device's rates, so that it is paid after {} copies",
                        secondsText(saved), countText(std::ceil(cost.allocated / saved)));
    return text;
}

} // namespace memscape::cuda
