// SPDX-License-Identifier: Apache-2.0
// Predict, run, and put the two side by side. A run that was interrupted or failed half-way keeps
// the points it had: the record says what happened in its provenance ("status", "error").
#include "app/cli/commands.h"
#include "app/cli/console_sink.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "app/cli/worker_run.h"
#include "core/base/text.h"
#include "core/protocol/message.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

struct Plan
{
    const Experiment* experiment;
    Parameters parameters;
    LiveDevice live;
};

/// A processor is asked what its page opens with, where the command names nothing else: the schema's own model is one
/// for a large GPU. What differs is said.
Result<Parameters> withWhatAProcessorHolds(const Experiment& experiment, const Device& device,
                                           const Arguments& arguments, const Parameters& asked)
{
    MEMSCAPE_TRY(held, standardParameters(experiment, device, arguments.assignments));
    std::string others;
    for (const auto& [key, value] : held.values()) {
        if (asked.at(key, value).values() != asked.values()) // a sweep is not what differs
            others += fmt::format("{}{}={}", others.empty() ? "" : " ", key, valueText(value));
    }
    if (!others.empty())
        note(fmt::format("measuring {}, which this processor can hold; give them for another run", others));
    return held;
}

Result<Plan> planOf(const Arguments& arguments)
{
    MEMSCAPE_TRY(experiment, findExperiment(arguments.experiment));
    MEMSCAPE_TRY(parameters, askedParameters(*experiment, arguments.assignments));
    MEMSCAPE_CHECK(requireDevice(arguments.device));
    MEMSCAPE_TRY(live, findLiveDevice(arguments.device));
    MEMSCAPE_CHECK(writable(arguments.output));
    if (live.device.device.isGpu() || arguments.device.starts_with("replay:"))
        return Plan{experiment, std::move(parameters), std::move(live)};
    MEMSCAPE_TRY(held, withWhatAProcessorHolds(*experiment, live.device.device, arguments, parameters));
    return Plan{experiment, std::move(held), std::move(live)};
}

/// The record before the run. A device that cannot be predicted yet can still be measured.
Record predictedPart(const Plan& plan)
{
    auto record = predictRecord(*plan.experiment, plan.live.device.device, plan.parameters);
    if (record)
        return *record;
    note("measuring without a prediction: " + record.error().text());
    Record bare;
    bare.experiment = plan.experiment->id();
    bare.parameters = plan.parameters;
    bare.device = plan.live.device.device;
    bare.provenance = programProvenance();
    return bare;
}

void addProvenance(Record& record, const Json& provenance)
{
    if (!record.provenance.is_object())
        record.provenance = Json::object();
    record.provenance.update(provenance);
}

struct Outcomes
{
    std::string status; ///< ok, cancelled, skipped, failed: the worker's words
    std::optional<Error> error;
    int exitCode = 0;
};

Outcomes outcomeOf(const Result<MeasuredRun>& run)
{
    if (run && run->complete)
        return {"ok", {}, 0};
    const bool cancelled = run ? !run->complete : run.error().code == "run.cancelled";
    if (cancelled)
        return {"cancelled", {}, static_cast<int>(ExitCode::Interrupted)};
    return {run.error().code == "run.skipped" ? "skipped" : "failed", run.error(),
            static_cast<int>(exitCodeFor(run.error()))};
}

/// The measured side: the run's own, else what its points amount to when it broke off.
void addMeasurement(Record& record, const Plan& plan, const Result<MeasuredRun>& run, std::vector<Point> points,
                    const Outcomes& outcomes)
{
    if (run) {
        record.measured = run->measurement;
        addProvenance(record, provenanceToJson(run->provenance, run->complete));
    } else if (!points.empty()) {
        std::ranges::sort(points, [](const Point& a, const Point& b) { return a.x < b.x; });
        record.measured = outcomeFromPoints(*plan.experiment, record.device, plan.parameters, std::move(points));
    }
    judgeMeasured(record);
    record.provenance["status"] = outcomes.status == "cancelled" ? "interrupted" : outcomes.status;
    if (outcomes.error)
        record.provenance["error"] = {{"code", outcomes.error->code}, {"message", outcomes.error->message}};
}

void printDone(const Outcomes& outcomes, const Record& record, double seconds)
{
    protocol::Done done;
    done.id = 1;
    done.status = outcomes.status;
    done.elapsed = seconds;
    done.error = outcomes.error;
    if (record.measured)
        done.result = outcomeToJson(*record.measured);
    done.provenance = record.provenance;
    printOut(protocol::encode(protocol::Event(done)));
}

/// In this process, where what does not fit is refused; forced, in one that may be lost. A
/// replayed run takes no memory.
Result<MeasuredRun> runPlan(const Plan& plan, const Arguments& arguments, RunSink& sink)
{
    if (arguments.force && plan.live.backend->id() != "replay")
        return measureInWorker(*plan.experiment, plan.live.device.id, plan.parameters, sink);
    auto run = plan.live.backend->measure(*plan.experiment, plan.live.device, plan.parameters, sink);
    if (!run && run.error().code == "run.memory") {
        Error error = run.error();
        error.hint += error.hint.empty() ? "--force tries it anyway" : "; --force tries it anyway";
        return fail(std::move(error));
    }
    return run;
}

} // namespace

int runMeasure(const Arguments& arguments)
{
    auto plan = planOf(arguments);
    if (!plan)
        return refused(plan.error());
    Record record = predictedPart(*plan);

    const InterruptGuard guard;
    ConsoleSink sink(arguments.events);
    noteBusyMachine(plan->live, sink);
    const auto start = std::chrono::steady_clock::now();
    const auto run = runPlan(*plan, arguments, sink);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    sink.clearBar();

    const Outcomes outcomes = outcomeOf(run);
    addMeasurement(record, *plan, run, sink.points(), outcomes);
    if (arguments.events)
        printDone(outcomes, record, elapsed.count());
    if (outcomes.error)
        complain(*outcomes.error);
    if (!record.measured)
        return outcomes.exitCode; // nothing was measured: there is no record to keep
    if (outcomes.status == "cancelled")
        note("interrupted: the record holds the points measured so far");
    const bool json = arguments.json || (arguments.output == "-" && !arguments.events);
    if (!json && !arguments.events)
        printOut(recordText(record));
    return deliver(arguments.output, jsonText(recordToJson(record)), json, outcomes.exitCode);
}

} // namespace memscape::cli
