// SPDX-License-Identifier: Apache-2.0
// Parts of an answer as a long computation finds them, so that they can be shown before the whole is there. Who
// starts it sets a function for its thread, as it does a flag (cancellation.h); the computation calls it with each
// part. The answer is the same with it and without.
#pragma once

#include "core/base/json.h"

#include <functional>

namespace memscape {

/// The function counts for this thread while the scope lives; scopes may stand inside each other. It may be called from
/// another thread, never from two at once.
class FoundScope
{
public:
    using Tell = std::function<void(const Json&)>;
    explicit FoundScope(Tell tell);
    ~FoundScope();
    FoundScope(const FoundScope&) = delete;
    FoundScope& operator=(const FoundScope&) = delete;

    /// The function that counts for this thread; null without one.
    static const Tell* current();

private:
    Tell m_tell;
    const Tell* m_outer;
};

} // namespace memscape
