// SPDX-License-Identifier: Apache-2.0
// `allocator` as its callers see it: which requests its parameters ask for and of which allocator, its figures made of
// predicted or of measured numbers, and what a picture needs to play the requests itself.
#pragma once

#include "core/experiment/experiment.h"
#include "core/trace/policy_replay.h"
#include "core/trace/touched_pages.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// More requests are not played one by one.
inline constexpr std::size_t mostRequests = 1'000'000;

/// What the parameters of `allocator` say.
struct AllocatorCase
{
    std::shared_ptr<const RequestTrace> trace; ///< with its empty_cache(), sizes divided
    std::string title;                         ///< "one step of GPT-2 (124M)", "script.txt"
    bool isStep = false;                       ///< of a model, else a script
    PolicySetting setting;
    std::int64_t divisor = 1;  ///< of all sizes
    std::int64_t peakLive = 0; ///< B; no allocator can do with less
    FirstTouch touch = FirstTouch::Lazy;
    double driverCall = 0;          ///< s
    bool assumesDriverCall = false; ///< driver_call was not given
};
/// Errors: script.*, model.*, trace.*, file.*, allocator.*, plan.*.
Result<AllocatorCase> allocatorCase(const Device& device, const Parameters& parameters, PredictionContext& context);
Result<AllocatorCase> allocatorCase(const Device& device, const Parameters& parameters);
/// The text of `trace` names a model or is a file or a script of its own; without reading any file.
bool isModelText(const std::string& trace);

/// What is predicted or measured of one allocator.
struct AllocatorNumbers
{
    double peakAllocated = 0, peakReserved = 0; ///< B
    double endAllocated = 0, endReserved = 0;   ///< B, behind the last request
    double unusable = nan;                      ///< share of the reserved bytes, see ReservedPeak
    double segments = 0;                        ///< at most at once
    double driverCalls = 0, retries = 0;
    double seconds = nan; ///< of all requests together
    std::optional<double> secondsLow = {}, secondsHigh = {};
    double firstTouch = nan;                 ///< s, of writing each page for the first time
    double pageFaults = nan, resident = nan; ///< of a host
    std::string outOfMemory = "no";
};
AllocatorNumbers numbersOf(const AllocatorCase& asked, const PolicyReplay& replay);
/// The figures of both sides, without reasons.
Figures allocatorFigures(const Device& device, const AllocatorCase& asked, const AllocatorNumbers& numbers);

/// The same trace under another allocator.
struct Elsewhere
{
    PolicySetting setting;
    std::optional<PolicyReplay> replay; ///< nothing: why it is missing is said
    std::string missing;
};
struct AllocatorAnswer
{
    AllocatorCase asked;
    PolicyReplay replay;
    std::vector<Elsewhere> elsewhere;  ///< the chosen one among them
    std::optional<PageCounts> pages;   ///< of a host
    std::vector<std::string> peakText; ///< what happened at the peak of reserved
};
/// Errors: those of allocatorCase() and replayRequests().
Result<AllocatorAnswer> answerAllocator(const Device& device, const Parameters& parameters, PredictionContext& context);
Figures predictedAllocator(const Device& device, const AllocatorAnswer& answer);

/// `allocated` and `reserved` over the requests, few enough points to draw; every peak is among them.
std::vector<Series> requestSeries(const std::vector<double>& allocated, const std::vector<double>& reserved);

/// The requests as they are written and sent: requests, calls, bytes and streams of allocator_detail.cpp.
Json requestsJson(const RequestTrace& trace);
Json allocatorDetail(const AllocatorAnswer& answer);
/// `trace` of a detail, for a picture that plays it. Errors: json.*, detail.trace.
Result<RequestTrace> requestsFromJson(const JsonReader& trace);
std::vector<Claim> allocatorClaims(const AllocatorAnswer& answer, const Measurement& measured);

} // namespace memscape
