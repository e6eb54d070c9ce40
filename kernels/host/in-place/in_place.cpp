// SPDX-License-Identifier: Apache-2.0
// in-place, measured on the host by all cores: y ← f(x) and x ← f(x), one loop for both, passes following each other.
// Where autograd keeps a copy of the input, a pass in place copies first. What a repetition does, so that x stays near
// where it began: core/experiments/in-place/in_place_functions.h.
//
// e^x is 2^(x log₂ e) (attention_vectors.h). The peak is what was allocated: by each way on its own, so that one way's
// arrays are not the other's.
//
// Left out: stores past the caches, which a copy can use and an operation in place has no reason to.
#include "core/experiments/in-place/in_place.h"

#include "kernels/host/attention/attention_vectors.h"
#include "kernels/host/common/streams.h"
#include "kernels/host/measurement.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

using Function = InPlaceOperation;

constexpr std::size_t lineFloats = cacheLine / sizeof(float);
constexpr float log2e = 1.44269504F;

// --- Kernels --------------------------------------------------------------------------------------

template <typename Simd> using Floats = typename Simd::Floats;

template <typename Simd> MEMSCAPE_INLINE Floats<Simd> sigmoidOf(Floats<Simd> x)
{
    return 1.0F / (1.0F + powerOfTwo<Simd>(x * -log2e));
}

/// With a vector of factors.
template <typename Simd, Function function>
MEMSCAPE_INLINE Floats<Simd> valueOf(Floats<Simd> x, Floats<Simd> other, InPlaceStep step)
{
    switch (function) {
    case Function::AddScalar: return x + step.shift;
    case Function::MulScalar: return x * step.scale;
    case Function::MulMask:
    case Function::MulGate: return x * other;
    case Function::Relu: return x > 0.0F ? x : Floats<Simd>{};
    case Function::LeakyRelu: return x > 0.0F ? x : x * step.scale;
    case Function::Sigmoid: return sigmoidOf<Simd>(x);
    case Function::Tanh: return 2.0F * sigmoidOf<Simd>(2.0F * x) - 1.0F;
    case Function::Exp: return powerOfTwo<Simd>(x * (step.scale * log2e));
    case Function::Silu: return x * sigmoidOf<Simd>(x) + step.shift;
    case Function::Gelu: return x * sigmoidOf<Simd>(1.59576912F * (x + 0.044715F * x * x * x)) + step.shift;
    }
    return x;
}

/// y may be x; other is null where there is no second factor. `count`: whole lines.
using Kernel = void (*)(const float* x, const float* other, float* y, std::size_t count, InPlaceStep step);

template <typename Simd, Function function>
MEMSCAPE_INLINE void elementwise(const float* x, const float* other, float* y, std::size_t count, InPlaceStep step)
{
    for (std::size_t line = 0; line < count; line += lineFloats) {
#pragma GCC unroll 4
        for (std::size_t i = line; i < line + lineFloats; i += tileLanes<Simd>) {
            const Floats<Simd> from = vectorAt<Simd>(x + i);
            const Floats<Simd> factor = hasOtherFactor(function) ? vectorAt<Simd>(other + i) : from;
            vectorAt<Simd>(y + i) = valueOf<Simd, function>(from, factor, step);
        }
    }
}

template <Function function>
void elementwise16(const float* x, const float* other, float* y, std::size_t count, InPlaceStep step)
{
    elementwise<Simd16, function>(x, other, y, count, step);
}
#if MEMSCAPE_X86
template <Function function>
__attribute__((target("avx2,fma"))) void elementwise32(const float* x, const float* other, float* y, std::size_t count,
                                                       InPlaceStep step)
{
    elementwise<Simd32, function>(x, other, y, count, step);
}
template <Function function>
MEMSCAPE_AVX512 void elementwise64(const float* x, const float* other, float* y, std::size_t count, InPlaceStep step)
{
    elementwise<Simd64, function>(x, other, y, count, step);
}
#endif

template <Function function> Kernel widest()
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes64))
        return elementwise64<function>;
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        return elementwise32<function>;
#endif
    return elementwise16<function>;
}

Kernel kernelOf(Function function)
{
    switch (function) {
    case Function::AddScalar: return widest<Function::AddScalar>();
    case Function::MulScalar: return widest<Function::MulScalar>();
    case Function::MulMask:
    case Function::MulGate: return widest<Function::MulMask>();
    case Function::Relu: return widest<Function::Relu>();
    case Function::LeakyRelu: return widest<Function::LeakyRelu>();
    case Function::Sigmoid: return widest<Function::Sigmoid>();
    case Function::Tanh: return widest<Function::Tanh>();
    case Function::Exp: return widest<Function::Exp>();
    case Function::Silu: return widest<Function::Silu>();
    case Function::Gelu: return widest<Function::Gelu>();
    }
    return nullptr;
}

/// Against the reference in double, several sizes, both turns; in place the same bits as out of place, and nothing
/// beyond.
Check checkKernel(Function function)
{
    Check check({3e-7, 3e-6});
    for (const std::size_t count : {16, 48, 1200}) {
        for (const unsigned turn : {0U, 1U}) {
            const InPlaceStep step = inPlaceStep(function, turn);
            std::vector<float> x(count), other(count), y(count + 1, 77);
            for (std::size_t i = 0; i < count; ++i) {
                x[i] = 8 * mlpUniform(1, i);
                other[i] = mlpUniform(2, i);
            }
            std::vector<float> over = x;
            kernelOf(function)(x.data(), other.data(), y.data(), count, step);
            kernelOf(function)(over.data(), other.data(), over.data(), count, step);
            for (std::size_t i = 0; i < count; ++i)
                check.compare(i, double(y[i]), inPlaceReference(function, step, double(x[i]), double(other[i])));
            check.require(count, std::memcmp(y.data(), over.data(), count * sizeof(float)) == 0,
                          "in place gives other bits");
            check.require(count, y[count] == 77, "written beyond the end");
        }
    }
    return check;
}

// --- Measurement ----------------------------------------------------------------------------------

constexpr double shortestPasses = 500e-6;               // s
constexpr std::size_t stopBlock = std::size_t(1) << 20; // elements between two looks whether to stop

struct Arrays
{
    Buffer x, y, other, copy;
};

class InPlaceMeasurement final : public HostMeasurement
{
public:
    explicit InPlaceMeasurement(HostSession& session)
        : m_session(session)
    { }

    Result<void> check() override { return {}; } // in visit(): the kernel depends on the point

    Result<SampleSets> visit(const Parameters& point, int) override
    {
        const InPlaceCase asked = inPlaceCase(point);
        if (m_checked.empty()) {
            const Check check = checkKernel(asked.operation);
            m_checked = check.text();
            MEMSCAPE_CHECK(check.result("in-place " + point.choice("operation")));
        }
        SampleSets sets;
        for (const bool isInPlace : {false, true}) {
            MEMSCAPE_SET(sets[isInPlace ? "in_time" : "out_time"], samples(asked, isInPlace));
            m_peak[{asked.bytes, isInPlace}] = double(m_session.memory().highWater());
        }
        return sets;
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        const InPlaceCase asked = inPlaceCase(point);
        const auto timeOf = [&](const char* key) {
            const Summary time = summarize(samples.at(key).merged());
            return InPlaceTime{time.median, time.minimum, time.q3};
        };
        return inPlaceFigures(
            m_session.device(), asked,
            {timeOf("out_time"), timeOf("in_time"), m_peak[{asked.bytes, false}], m_peak[{asked.bytes, true}]});
    }

    Json method() const override
    {
        return {{"threads", m_session.team().size()},
                {"pages", m_hugeShare > 0.9 ? "huge (2 MiB)" : "small (4 KiB)"},
                {"huge_share", jsonNumber(m_hugeShare)},
                {"simd", isaText(widestIsa())},
                {"caches", "steady state: passes follow each other"},
                {"kernels", Json::array({{{"kernel", "elementwise"}, {"check", m_checked}}})}};
    }

private:
    Result<Arrays> prepare(const InPlaceCase& asked, bool isInPlace);
    Result<std::vector<double>> samples(const InPlaceCase& asked, bool isInPlace);
    /// Seconds of `repeats` passes, each thread over its own part.
    double passes(const InPlaceCase& asked, Arrays& arrays, std::size_t repeats);
    /// work(first element, elements) for blocks of a thread's part, until all are done or the run is stopped.
    template <typename Work> void inBlocks(const InPlaceCase& asked, int thread, Work&& work) const;

    HostSession& m_session;
    std::string m_checked;
    std::map<std::pair<std::uint64_t, bool>, double> m_peak;
    unsigned m_turn = 0; ///< of passes so far
    double m_hugeShare = 0;
};

template <typename Work> void InPlaceMeasurement::inBlocks(const InPlaceCase& asked, int thread, Work&& work) const
{
    const Part part = partOf(std::size_t(asked.elements()), thread, m_session.team().size(), lineFloats);
    for (std::size_t at = part.begin; at < part.end && !m_session.team().stopping(); at += stopBlock)
        work(at, std::min(stopBlock, part.end - at));
}

Result<Arrays> InPlaceMeasurement::prepare(const InPlaceCase& asked, bool isInPlace)
{
    const bool copies = isInPlace && overwriting(asked).copies;
    const auto bytes = std::size_t(asked.bytes);
    MEMSCAPE_CHECK(m_session.checkFits(double(bytes) * (2 + asked.hasOther())));
    m_session.memory().resetHighWater();
    Arrays arrays;
    const std::array<std::pair<Buffer*, bool>, 4> wanted{
        {{&arrays.x, true}, {&arrays.y, !isInPlace}, {&arrays.other, asked.hasOther()}, {&arrays.copy, copies}}};
    for (const auto& [buffer, isWanted] : wanted) {
        if (isWanted)
            MEMSCAPE_SET(*buffer, allocate(bytes, Pages::Huge, m_session.memory()));
    }
    m_session.team().run([&](int thread) {
        inBlocks(asked, thread, [&](std::size_t first, std::size_t count) {
            for (std::size_t i = first; i < first + count; ++i) {
                arrays.x.as<float>()[i] = mlpUniform(1, i);
                if (asked.hasOther())
                    arrays.other.as<float>()[i] = mlpUniform(2, i) < 0 ? -1.0F : 1.0F;
            }
            for (Buffer* buffer : {&arrays.y, &arrays.copy})
                if (buffer->data())
                    std::memset(buffer->as<float>() + first, 0, count * sizeof(float));
        });
    });
    MEMSCAPE_CHECK(m_session.checkStopped());
    m_hugeShare = arrays.x.hugeShare();
    return arrays;
}

double InPlaceMeasurement::passes(const InPlaceCase& asked, Arrays& arrays, std::size_t repeats)
{
    const Kernel kernel = kernelOf(asked.operation);
    const StreamKernel copy = bestStream(Operation::Copy);
    auto* const x = arrays.x.as<float>();
    auto* const y = arrays.y.data() ? arrays.y.as<float>() : x;
    const auto* const other = arrays.other.as<float>();
    const unsigned turn = m_turn;
    m_turn += unsigned(repeats);
    return m_session.team().run([&](int thread) {
        for (std::size_t k = 0; k < repeats; ++k) {
            if (arrays.copy.data())
                inBlocks(asked, thread, [&](std::size_t first, std::size_t count) {
                    const std::size_t at = first * sizeof(float);
                    copy.run({arrays.copy.data() + at, arrays.x.data() + at, nullptr, count * sizeof(float)}, 1);
                });
            const InPlaceStep step = inPlaceStep(asked.operation, turn + unsigned(k));
            inBlocks(asked, thread, [&](std::size_t first, std::size_t count) {
                kernel(x + first, other ? other + first : nullptr, y + first, count, step);
            });
            memoryBarrier();
        }
    });
}

Result<std::vector<double>> InPlaceMeasurement::samples(const InPlaceCase& asked, bool isInPlace)
{
    MEMSCAPE_TRY(arrays, prepare(asked, isInPlace));
    const double bytes = double(asked.bytes) / m_session.team().size();
    passes(asked, arrays, 2);
    const double once = possibleSeconds(passes(asked, arrays, 2) / 2, bytes);
    const auto repeats = std::max<std::size_t>(1, std::size_t(shortestPasses / once));
    MEMSCAPE_CHECK(m_session.checkStopped());
    StoppingRule rule(m_session.passOptions(2), m_session.clock());
    while (!rule.finished()) {
        const double sample = passes(asked, arrays, repeats);
        MEMSCAPE_CHECK(m_session.checkStopped()); // a stopped sample is not whole
        rule.add(sample);
    }
    return m_session.samplesOf(rule, double(repeats));
}

} // namespace

std::unique_ptr<HostMeasurement> makeInPlaceMeasurement(HostSession& session)
{
    return std::make_unique<InPlaceMeasurement>(session);
}

} // namespace memscape::host
