// SPDX-License-Identifier: Apache-2.0
// Scripts of requests, settings of an allocator, and the trace in a record's detail. What can be read can be played.
#include "core/experiments/allocator/allocator.h"
#include "core/trace/trace_script.h"
#include "tests/fuzz/target.h"

using namespace memscape;

namespace {

constexpr std::size_t playedAtMost = 2000; // requests

void play(const RequestTrace& trace)
{
    if (trace.requests.size() > playedAtMost)
        return;
    const std::int64_t bound = peakOfLiveBytes(trace);
    for (const char* text : {"default", "expandable_segments", "max_split_size_mb:32", "first-fit", "powers-of-two",
                             "malloc", "largest-first", "lifetime-colouring"}) {
        PolicySetting setting = readSetting(text).value();
        setting.options.deviceLimit = std::int64_t(1) << 50;
        const auto replay = replayRequests(trace, setting);
        fuzz::errorIsClear(replay);
        if (replay && !replay->refusal)
            fuzz::promise(replay->peak.reserved >= bound && replay->peak.allocated >= replay->peak.requested,
                          "no allocator does with less than what is alive");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text = fuzz::text(data, size);
    const auto script = parseTraceScript(text, "script");
    fuzz::errorIsClear(script);
    if (script)
        play(*script);
    fuzz::errorIsClear(readSetting(text));
    if (const auto json = parseJson(text)) {
        const auto trace = requestsFromJson(JsonReader(*json, "detail.trace"));
        fuzz::errorIsClear(trace);
        if (trace)
            play(*trace);
    }
    return 0;
}
