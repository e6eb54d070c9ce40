// SPDX-License-Identifier: Apache-2.0
// precision, operation=matmul, measured on the host: one product of dense matrices in a format, and
// the same in FP32 in turn with it, so that what a neighbour takes it takes from both.
#include "kernels/host/precision/precision.h"

#include "core/experiments/precision/precision.h"
#include "kernels/host/measurement.h"
#include "kernels/host/precision/convert.h"
#include "kernels/host/precision/onednn.h"
#include "kernels/host/training-memory/amp_device.h"
#include "kernels/programs/common/mlp_numbers.h"
#include "kernels/programs/precision/product_figures.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr std::int64_t triedSize = 512;

/// Matrices of one product: operands that the format holds exactly, and room for the result.
struct Matrices
{
    Buffer a, b, c;
};

/// Numbers in ±1 (INT8: ±127), bit patterns written through the format's own rounding.
void fill(HostSession& session, Format format, Buffer& buffer, std::uint64_t seed)
{
    const NumberFormat& numbers = numberFormat(format);
    const auto width = std::size_t(numbers.bytes);
    session.team().run([&](int thread) {
        const Part part = partOf(buffer.bytes() / width, thread, session.team().size(), 64);
        for (std::size_t i = part.begin; i < part.end; ++i) {
            const double value = double(mlpUniform(seed, i)) * (numbers.isInteger() ? 127 : 1);
            if (i % 65536 == 0 && session.team().stopping())
                return;
            if (format == Format::Fp32) {
                buffer.as<float>()[i] = float(value);
                continue;
            }
            const std::uint64_t bits = encode(numbers, value);
            std::memcpy(buffer.data() + i * width, &bits, width); // little-endian
        }
    });
}

Result<Matrices> makeMatrices(HostSession& session, const GemmTask& task)
{
    const auto& [m, n, k] = task.shape;
    const double operand = numberFormat(task.operands).bytes;
    const double aBytes = operand * double(m) * double(k), bBytes = operand * double(k) * double(n);
    const double cBytes = resultBytes(task) * double(m) * double(n);
    MEMSCAPE_CHECK(session.checkFits(aBytes + bBytes + cBytes));
    MEMSCAPE_TRY(a, allocate(std::size_t(aBytes), Pages::Huge, session.memory()));
    MEMSCAPE_TRY(b, allocate(std::size_t(bBytes), Pages::Huge, session.memory()));
    MEMSCAPE_TRY(c, allocate(std::size_t(cBytes), Pages::Huge, session.memory()));
    Matrices made{std::move(a), std::move(b), std::move(c)};
    fill(session, task.operands, made.a, 21);
    fill(session, task.operands, made.b, 22);
    MEMSCAPE_CHECK(session.checkStopped());
    return made;
}

/// One thread's rate in a product that fits the caches.
Result<double> triedRate(HostSession& session, const GemmKernel& kernel, Format format)
{
    const GemmTask task = GemmTask::dense({triedSize, triedSize, triedSize}, format);
    MEMSCAPE_TRY(plan, kernel.plan(task));
    MEMSCAPE_TRY(matrices, makeMatrices(session, task));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 4; ++i) {
        const double seconds =
            session.team().run([&](int) { plan->run(matrices.a.data(), matrices.b.data(), matrices.c.data()); }, 1);
        if (i > 0) // the first loads code and pages
            best = std::min(best, seconds);
    }
    return task.shape.flops() / possibleSeconds(best, 0);
}

tl::unexpected<Error> unsupported(Format format)
{
    std::string known;
    for (const Format other : gemmFormats())
        known += (known.empty() ? "" : ", ") + std::string(numberFormat(other).key);
    const NumberFormat& numbers = numberFormat(format);
    const char* nearest = numbers.isInteger() ? "fp32" : numbers.bytes >= 4 ? "fp32" : "bf16";
    return fail("run.skipped",
                fmt::format("this CPU does not multiply in {}{}", numbers.label,
                            oneDnnName().empty() ? " (INT8 would need oneDNN: libdnnl2 or libdnnl3)"
                                : hasExactInt8() ? ""
                                                 : " (INT8 would need VNNI: without it sums saturate at 16 bits)"),
                fmt::format("the nearest is {}; it multiplies {}", nearest, known), "format");
}

class GemmMeasurement final : public HostMeasurement
{
public:
    explicit GemmMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return {}; } // in visit(): the format is the point's
    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override;
    Json method() const override;

private:
    struct Ready
    {
        GemmTask task;
        Matrices matrices;
        TeamGemm gemm;
    };
    Result<const GemmChoice*> choiceOf(Format format);
    Result<Ready> prepare(Format format, const GemmShape& shape);
    Result<void> sample(Ready& ready, StoppingRule& rule, int repeats);

    HostSession& m_session;
    std::map<Format, GemmChoice> m_choices;
    std::map<std::string, std::string> m_names; ///< the implementation of products, by format
};

Result<const GemmChoice*> GemmMeasurement::choiceOf(Format format)
{
    if (!m_choices.contains(format)) {
        MEMSCAPE_TRY(choice, fastestGemm(m_session, format));
        m_choices.emplace(format, std::move(choice));
    }
    return &m_choices.at(format);
}

Result<GemmMeasurement::Ready> GemmMeasurement::prepare(Format format, const GemmShape& shape)
{
    MEMSCAPE_TRY(choice, choiceOf(format));
    const GemmTask task = GemmTask::dense(shape, format);
    MEMSCAPE_TRY(matrices, makeMatrices(m_session, task));
    MEMSCAPE_TRY(gemm, TeamGemm::make(m_session, choice->kernel, task));
    m_names[std::string(numberFormat(format).key)] = gemm.name();
    return Ready{task, std::move(matrices), std::move(gemm)};
}

Result<void> GemmMeasurement::sample(Ready& ready, StoppingRule& rule, int repeats)
{
    double seconds = 0;
    for (int i = 0; i < repeats; ++i)
        seconds += ready.gemm.run(ready.matrices.a.data(), ready.matrices.b.data(), ready.matrices.c.data());
    MEMSCAPE_CHECK(m_session.checkStopped());
    rule.add(seconds / repeats);
    return {};
}

Result<SampleSets> GemmMeasurement::visit(const Parameters& point, int)
{
    const PrecisionCase asked = precisionCase(point);
    std::vector<Ready> all;
    for (const Format format : {asked.format, Format::Fp32}) {
        if (!all.empty() && format == asked.format)
            break;
        MEMSCAPE_TRY(ready, prepare(format, asked.shape));
        all.push_back(std::move(ready));
    }
    std::vector<int> repeats;
    for (Ready& ready : all) { // warms up, and says how long one takes
        const double once = ready.gemm.run(ready.matrices.a.data(), ready.matrices.b.data(), ready.matrices.c.data());
        MEMSCAPE_CHECK(m_session.checkStopped());
        repeats.push_back(std::max(1, int(shortestSample / possibleSeconds(once, 0))));
    }
    // Their time runs from here: the first one has checked its kernels before.
    std::vector<StoppingRule> rules(all.size(), {m_session.passOptions(), m_session.clock()});
    do {
        for (std::size_t i = 0; i < all.size(); ++i)
            MEMSCAPE_CHECK(sample(all[i], rules[i], repeats[i]));
    } while (!rules.front().finished());
    SampleSets sets{{"time", m_session.samplesOf(rules.front(), 1)}};
    sets["fp32_time"] = m_session.samplesOf(rules.back(), 1);
    return sets;
}

Result<Figures> GemmMeasurement::figures(const Parameters& point, const MergedSamples& samples)
{
    const PrecisionCase asked = precisionCase(point);
    return productFigures(asked, samples, storedFigure(asked.format, asked.value));
}

Json GemmMeasurement::method() const
{
    Json tried = Json::object();
    for (const auto& [format, choice] : m_choices)
        tried[std::string(numberFormat(format).key)] = choice.tried;
    return {{"products", m_names},
            {"tried", std::move(tried)},
            {"threads", m_session.team().size()},
            {"threading", "the pinned threads of the measurement, slabs of one product each"},
            {"instructions", numberInstructions()}};
}

} // namespace

std::optional<Figure> storedFigure(Format format, double value)
{
    if (format != Format::Fp16 && format != Format::Bf16)
        return {};
    const auto single = float(value);
    std::uint16_t bits = 0;
    float back = 0;
    narrowRow(format, &single, &bits, 1);
    widenRow(format, &bits, &back, 1);
    return Figure{"stored_value", "value as stored", Unit::One, double(back)};
}

Result<GemmChoice> fastestGemm(HostSession& session, Format format)
{
    const std::vector<GemmKernel> kernels = gemmKernels(format);
    if (kernels.empty())
        return unsupported(format);
    GemmChoice choice;
    double best = 0;
    for (const GemmKernel& kernel : kernels) {
        MEMSCAPE_CHECK(checkGemm(kernel, format).result(kernel.name));
        MEMSCAPE_TRY(rate, triedRate(session, kernel, format));
        choice.tried[kernel.name] = jsonNumber(rate);
        if (rate <= best)
            continue;
        best = rate;
        choice.kernel = kernel;
    }
    if (oneDnnName().empty())
        session.noteOnce("info", "onednn.missing",
                         "no oneDNN on this machine (Debian: libdnnl2): no product in INT8, and BF16 "
                         "is converted and multiplied in FP32, which is no faster");
    if (choice.kernel.isEmulated)
        session.noteOnce("info", "format.emulated",
                         fmt::format("{} is multiplied by FP32 units after a conversion here: its "
                                     "bytes are real, its speed is FP32's",
                                     numberFormat(format).label));
    return choice;
}

Result<std::map<std::string, double>> productRates(HostSession& session)
{
    constexpr std::int64_t size = 1536; // no size that a sweep by doubling compares on
    std::map<std::string, double> rates;
    for (const Format format : gemmFormats()) {
        MEMSCAPE_TRY(choice, fastestGemm(session, format));
        const GemmTask task = GemmTask::dense({size, size, size}, format);
        MEMSCAPE_TRY(matrices, makeMatrices(session, task));
        MEMSCAPE_TRY(gemm, TeamGemm::make(session, choice.kernel, task));
        StoppingOptions options;
        options.minimumSamples = 5;
        options.wallLimit = 1;
        StoppingRule rule(options, session.clock());
        for (bool isWarm = false; !rule.finished(); isWarm = true) {
            const double seconds = gemm.run(matrices.a.data(), matrices.b.data(), matrices.c.data());
            MEMSCAPE_CHECK(session.checkStopped());
            if (isWarm)
                rule.add(seconds);
        }
        const Summary summary = summarize(rule.samples());
        if (summary.median > 0)
            rates[std::string(numberFormat(format).key)] = task.shape.flops() / summary.median;
    }
    return rates;
}

Result<MeasuredRun> measurePrecision(HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    if (precisionCase(parameters).trains())
        return measureTraining(session, experiment, parameters);
    GemmMeasurement measurement(session);
    return runSweep(experiment, parameters, measurement, session);
}

} // namespace memscape::host
