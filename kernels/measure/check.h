// SPDX-License-Identifier: Apache-2.0
// Checking a kernel before it is timed: element by element against a reference that was computed in
// double or exactly, tolerance = absolute + |reference| × relative. The worst error and its index are
// kept, and at most ten mismatches are spelled out. A not-a-number never passes.
#pragma once

#include "core/base/result.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace memscape {

struct Tolerance
{
    double absolute = 0;
    double relative = 0;

    static Tolerance exact() { return {}; }
};

class Check
{
public:
    static constexpr std::size_t listedMismatches = 10;

    explicit Check(Tolerance tolerance = Tolerance::exact())
        : m_tolerance(tolerance)
    { }

    /// One element. Exact types are compared as such when they fit a double.
    void compare(std::size_t index, double found, double reference);
    /// One element whose equality the caller already knows (wide integers, structures).
    void require(std::size_t index, bool equal, const std::string& description);

    template <typename T> void compareAll(std::span<const T> found, std::span<const T> reference)
    {
        if (found.size() != reference.size())
            require(std::min(found.size(), reference.size()), false, "sizes differ");
        for (std::size_t i = 0; i < found.size() && i < reference.size(); ++i)
            compare(i, static_cast<double>(found[i]), static_cast<double>(reference[i]));
    }

    bool passed() const { return m_mismatches == 0; }
    std::size_t compared() const { return m_compared; }
    std::size_t mismatches() const { return m_mismatches; }
    double worstError() const { return m_worstError; }
    std::size_t worstIndex() const { return m_worstIndex; }
    const std::vector<std::string>& listed() const { return m_listed; }

    /// "4096 elements, worst error 0" or "3 of 4096 elements differ, worst 2 at 17: …".
    std::string text() const;
    /// check.failed naming the kernel, when not passed.
    Result<void> result(const std::string& kernel) const;

private:
    void mismatch(const std::string& text);

    Tolerance m_tolerance;
    std::size_t m_compared = 0, m_mismatches = 0, m_worstIndex = 0;
    double m_worstError = 0;
    std::vector<std::string> m_listed;
};

} // namespace memscape
