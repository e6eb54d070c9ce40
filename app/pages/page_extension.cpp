// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/page_extension.h"

#include "app/pages/allocator_extension.h"
#include "app/pages/checkpoint_extension.h"
#include "app/pages/memory_extension.h"

namespace memscape {

PageExtension::PageExtension(const PageParts& parts, QObject* parent)
    : QObject(parent)
    , m_parts(parts)
{ }

void PageExtension::request(const Device& device, const Parameters& parameters)
{
    m_parts.predictor.request(m_parts.experiment.id(), device, parameters);
}

PageExtension* makePageExtension(const PageParts& parts, QObject* parent)
{
    const auto id = parts.experiment.id();
    if (id == "training-memory" || id == "inference-memory")
        return new MemoryExtension(parts, parent);
    if (id == "checkpoint")
        return new CheckpointExtension(parts, parent);
    if (id == "allocator")
        return new AllocatorExtension(parts, parent);
    return new PageExtension(parts, parent);
}

} // namespace memscape
