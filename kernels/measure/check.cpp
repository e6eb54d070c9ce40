// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/check.h"

#include "core/base/number.h"
#include "core/base/text.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

void Check::compare(std::size_t index, double found, double reference)
{
    ++m_compared;
    double error = std::abs(found - reference);
    if (found == reference) // also equal infinities, whose difference is not a number
        return;
    if (!std::isfinite(error))
        error = std::numeric_limits<double>::infinity();
    if (error > m_worstError) {
        m_worstError = error;
        m_worstIndex = index;
    }
    const double allowed = m_tolerance.absolute + std::abs(reference) * m_tolerance.relative;
    if (std::isinf(error) || !(error <= allowed))
        mismatch(fmt::format("[{}] {} instead of {}", index, numberText(found), numberText(reference)));
}

void Check::require(std::size_t index, bool equal, const std::string& description)
{
    ++m_compared;
    if (equal)
        return;
    if (m_mismatches == 0) {
        m_worstIndex = index;
        m_worstError = std::numeric_limits<double>::infinity();
    }
    mismatch(fmt::format("[{}] {}", index, description));
}

void Check::mismatch(const std::string& text)
{
    ++m_mismatches;
    if (m_listed.size() < listedMismatches)
        m_listed.push_back(text);
}

std::string Check::text() const
{
    if (passed())
        return fmt::format("{} {}, worst error {}", m_compared, m_compared == 1 ? "value" : "values",
                           numberText(m_worstError));
    return fmt::format("{} of {} values differ, worst {} at {}: {}{}", m_mismatches, m_compared,
                       numberText(m_worstError), m_worstIndex, join(m_listed, ", "),
                       m_mismatches > m_listed.size() ? ", …" : "");
}

Result<void> Check::result(const std::string& kernel) const
{
    if (passed())
        return {};
    return fail("check.failed", fmt::format("{} gave a wrong answer: {}", kernel, text()),
                "this kernel was not timed; run memscape-cli selftest and report what it prints");
}

} // namespace memscape
