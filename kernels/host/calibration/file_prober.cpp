// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/calibration/file_prober.h"

#include <algorithm>
#include <utility>

namespace memscape::host {

std::vector<LinkPlan> FileProber::readings()
{
    using Method = LoadingMethod;
    std::vector<LinkPlan> plans;
    for (const bool isWarm : {false, true}) {
        for (const Method method : {Method::Read, Method::Mmap, Method::Direct, Method::Parallel}) {
            if (isWarm && method == Method::Direct)
                continue;
            LinkPlan plan = readingPlan(m_session, method, isWarm, [this] { return file(); });
            plan.measure = [this, measure = std::move(plan.measure)](double bytes, const StoppingOptions& options) {
                return notedUnlessRead(measure(bytes, options));
            };
            plans.push_back(std::move(plan));
        }
    }
    return plans;
}

std::vector<LinkPlan> FileProber::conversions()
{
    using Form = LoadingForm;
    using Target = LoadingTarget;
    std::vector<std::pair<Form, Target>> pairs{{Form::Other, Target::AsStored}};
    for (const Form form : {Form::Float32, Form::BFloat16, Form::Float16, Form::Int8, Form::Int4}) {
        for (const Target target : {Target::Float32, Target::BFloat16, Target::Float16}) {
            if (loadingFormKey(form) != loadingTargetKey(target))
                pairs.emplace_back(form, target);
        }
    }
    std::vector<LinkPlan> plans;
    for (const auto& pair : pairs) {
        LinkPlan plan;
        plan.link.id = plan.link.label = loadingConvertLink(pair.first, pair.second);
        plan.sizes = {0x1p18, 0x1p20, 0x1p22, 0x1p24, 0x1p26};
        plan.measure = [this, pair](double bytes, const StoppingOptions& options) {
            return measureConverting(m_session, pair.first, pair.second, std::uint64_t(bytes), options);
        };
        plans.push_back(std::move(plan));
    }
    return plans;
}

Result<std::vector<double>> FileProber::measurePageCache()
{
    const auto mapped = file();
    if (!mapped)
        return notedUnlessRead(fail(mapped.error()));
    LoadingSeen seen;
    auto seconds = measureReading(m_session, **mapped, LoadingMethod::Mmap, true, std::uint64_t(calibratedFile),
                                  probeOptions(0.1), &seen);
    if (seconds) {
        const double window = (*mapped)->readAhead();
        m_pageCache = {window, largestPiece(window, calibratedFile, seen.faults)};
    }
    return notedUnlessRead(std::move(seconds));
}

Result<const LoadingFile*> FileProber::file()
{
    if (m_fileError)
        return fail(*m_fileError);
    LoadingCase asked;
    asked.bytes = asked.limit = std::uint64_t(calibratedFile);
    auto written = m_files.fileFor(m_session, asked);
    if (!written && written.error().code != "run.cancelled")
        m_fileError = written.error();
    return written;
}

/// Nothing and a note where a file is not read; what ends a calibration ends it.
Result<std::vector<double>> FileProber::notedUnlessRead(Result<std::vector<double>> seconds)
{
    if (seconds || seconds.error().code == "run.cancelled" || seconds.error().code == "check.failed")
        return seconds;
    const std::string note = "a file is not read in every way here: " + seconds.error().message;
    if (std::ranges::find(m_notes, note) == m_notes.end())
        m_notes.push_back(note);
    return std::vector<double>();
}

} // namespace memscape::host
