// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_band.h"

#include <fmt/format.h>

namespace memscape {

void MemoryBand::addActivations(double bytes)
{
    add("activations", 0.1 * bytes, 0.15 * bytes, "what a library's version fuses, keeps or converts");
}

void MemoryBand::addTemporary(double bytes)
{
    add("temporary", 0.4 * bytes, 0.4 * bytes, "what an update or a backward writes in place, and when it frees");
}

void MemoryBand::addWeights(double bytes, bool areQuantized)
{
    add("weights", 0, (areQuantized ? 0.2 : 0.02) * bytes,
        areQuantized ? "layers left in half precision, and what quantizing left behind" : "padding to a kernel's tile");
}

void MemoryBand::addAllocator(double allocated)
{
    add("allocator", 0, 0.2 * allocated, "blocks of steps before this one");
}

void MemoryBand::add(const char* what, double below, double above, std::string meaning)
{
    if (!(above > 0))
        return;
    m_below += below;
    m_above += above;
    m_terms.push_back(
        {what, above, Unit::Byte,
         fmt::format("−{} to +{}: {}", quantityText(below, Unit::Byte), quantityText(above, Unit::Byte), meaning),
         "the band; not another summand"});
}

void MemoryBand::giveTo(Figure& figure) const
{
    if (!figure.isNumber() || m_terms.empty())
        return;
    figure.low = figure.number() - m_below;
    figure.high = figure.number() + m_above;
    if (figure.why)
        figure.why->terms.insert(figure.why->terms.end(), m_terms.begin(), m_terms.end());
}

} // namespace memscape
