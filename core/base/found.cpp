// SPDX-License-Identifier: Apache-2.0
#include "core/base/found.h"

#include <utility>

namespace memscape {

namespace {

thread_local const FoundScope::Tell* innermostTell = nullptr;

} // namespace

FoundScope::FoundScope(Tell tell)
    : m_tell(std::move(tell))
    , m_outer(std::exchange(innermostTell, &m_tell))
{ }

FoundScope::~FoundScope()
{
    innermostTell = m_outer;
}

const FoundScope::Tell* FoundScope::current()
{
    return innermostTell;
}

} // namespace memscape
