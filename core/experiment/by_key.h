// SPDX-License-Identifier: Apache-2.0
// Figures and series by their key, for looking up many of them: a foreign document may have a hundred thousand.
#pragma once

#include "core/experiment/outcome.h"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace memscape {

/// Which of `all` stands first under each key. Points into `all`, keys included.
template <typename Keyed> class ByKey
{
public:
    ByKey() = default;
    explicit ByKey(const std::vector<Keyed>& all)
    {
        for (const Keyed& one : all)
            m_all.try_emplace(one.key, &one);
    }
    /// Null where there is none.
    const Keyed* find(std::string_view key) const
    {
        const auto found = m_all.find(key);
        return found == m_all.end() ? nullptr : found->second;
    }

private:
    std::map<std::string_view, const Keyed*> m_all;
};

/// Those of one side of a record; none where it is missing.
inline ByKey<Figure> figuresOf(const std::optional<Outcome>& side)
{
    return side ? ByKey(side->figures) : ByKey<Figure>();
}
inline ByKey<Series> curvesOf(const std::optional<Outcome>& side)
{
    return side ? ByKey(side->series) : ByKey<Series>();
}

} // namespace memscape
