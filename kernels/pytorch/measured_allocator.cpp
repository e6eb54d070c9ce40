// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/measured_allocator.h"

#include "core/experiments/memory/memory_detail.h"
#include "kernels/measure/statistics.h"
#include "kernels/programs/allocator/allocator_run.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// A CPU has one allocator in PyTorch; a GPU the caching one with its options, and cudaMallocAsync.
Result<std::string> configuration(const Device& device, const PolicySetting& setting)
{
    if (!device.isGpu()) {
        if (setting.kind == PolicyKind::Malloc)
            return std::string();
        return fail("run.skipped",
                    fmt::format("PyTorch takes every block on a CPU from malloc: {} is not there", setting.label),
                    "choose setting=default or malloc", "setting");
    }
    if (setting.kind == PolicyKind::CudaAsync)
        return std::string("backend:cudaMallocAsync");
    if (setting.kind == PolicyKind::Caching)
        return allocatorOptionsText(setting.options);
    return fail("run.skipped", fmt::format("PyTorch has no allocator like {}", setting.label),
                "choose default, expandable_segments, options of PYTORCH_CUDA_ALLOC_CONF, or cudaMallocAsync",
                "setting");
}

Result<std::vector<double>> column(const JsonReader& reader, const char* key)
{
    MEMSCAPE_TRY(array, reader.at(key));
    return array.numbers();
}

/// After each request that was served, as the host's run counts them.
Result<std::vector<PolicyCounts>> countsOf(const JsonReader& answer)
{
    MEMSCAPE_TRY(requested, column(answer, "requested"));
    MEMSCAPE_TRY(allocated, column(answer, "allocated"));
    MEMSCAPE_TRY(reserved, column(answer, "reserved"));
    MEMSCAPE_TRY(segments, answer.integer("segments", 0));
    if (allocated.size() != requested.size() || reserved.size() != requested.size())
        return fail("probe.trace", "the probe's columns have different lengths", "please report this", answer.path());
    std::vector<PolicyCounts> counts;
    for (std::size_t i = 0; i < requested.size(); ++i)
        counts.push_back({std::int64_t(requested[i]), std::int64_t(allocated[i]), std::int64_t(reserved[i]), segments});
    return counts;
}

std::vector<double> doubles(const std::vector<PolicyCounts>& counts, std::int64_t PolicyCounts::*count)
{
    std::vector<double> values;
    for (const PolicyCounts& now : counts)
        values.push_back(double(now.*count));
    return values;
}

} // namespace

Result<Json> playedByProbe(const Device& device, const AllocatorCase& asked)
{
    MEMSCAPE_TRY(text, configuration(device, asked.setting));
    Json played = requestsJson(*asked.trace);
    played["conf"] = std::move(text);
    const auto capacity = capacityOf(device);
    const auto most =
        asked.setting.options.fractionLimit ? asked.setting.options.fractionLimit : asked.setting.options.deviceLimit;
    played["fraction"] = most && capacity && *most < *capacity ? double(*most) / double(*capacity) : 0;
    return played;
}

Result<MeasuredMemory> measuredAllocator(const Device& device, const AllocatorCase& asked, const Json& result)
{
    const JsonReader answer(result, "result");
    MeasuredMemory memory;
    AllocatorNumbers numbers;
    MEMSCAPE_TRY(counts, countsOf(answer));
    addPeaks(numbers, counts);
    MEMSCAPE_TRY(seconds, column(answer, "seconds"));
    memory.seconds = std::move(seconds);
    const Summary summary = summarize(memory.seconds);
    numbers.seconds = summary.median;
    numbers.secondsLow = summary.minimum;
    numbers.secondsHigh = summary.q3;
    for (const auto& [key, value] : {std::pair{"driver_calls", &numbers.driverCalls},
                                     {"retries", &numbers.retries},
                                     {"first_touch", &numbers.firstTouch},
                                     {"page_faults", &numbers.pageFaults},
                                     {"resident", &numbers.resident}}) {
        MEMSCAPE_TRY(number, answer.number(key, key == std::string_view("retries") ? 0 : nan));
        *value = number;
    }
    const std::size_t requests = asked.trace->requests.size();
    MEMSCAPE_TRY(served, answer.integer("served", std::int64_t(requests)));
    if (served < std::int64_t(requests))
        numbers.outOfMemory = fmt::format("at request {} of {}", served + 1, requests);
    memory.figures = allocatorFigures(device, asked, numbers);
    memory.curves = requestSeries(doubles(counts, &PolicyCounts::allocated), doubles(counts, &PolicyCounts::reserved));
    memory.detail["sizes_divided_by"] = asked.divisor;
    memory.detail["own_seconds"] = result.value("loop_seconds", Json()); // of Python's loop, subtracted
    return memory;
}

} // namespace memscape
