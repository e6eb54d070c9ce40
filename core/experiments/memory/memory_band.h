// SPDX-License-Identifier: Apache-2.0
// How far a predicted peak may be off, in bytes below and above it:
//
//     activations     −10 … +15 % of them: what a library's version fuses, keeps or converts
//     temporary       −40 … +40 %: what an update or a backward writes in place, and when it frees
//     weights         0 … +2 % as they are, 0 … +20 % quantized: padding, layers that a library leaves in half
//     precision,
//                     what quantizing them left behind
//     allocator       0 … +20 % of what is allocated, of what is reserved alone: blocks of steps before this one
//
// The shares are judgements; `memscape-cli accuracy` counts how many published figures lie within them. Weights of a
// training, gradients and an optimizer's state are counted to the byte and have no band. Left out: what the data
// decides (routing of experts, lengths of sequences).
#pragma once

#include "core/experiment/outcome.h"

namespace memscape {

/// B that a peak may be off, and what makes it so.
class MemoryBand
{
public:
    void addActivations(double bytes);
    void addTemporary(double bytes);
    void addWeights(double bytes, bool areQuantized); ///< of a model that answers
    void addAllocator(double allocated);
    /// Gives the figure its low and high, and the parts to its why.
    void giveTo(Figure& figure) const;

private:
    void add(const char* what, double below, double above, std::string meaning);

    double m_below = 0, m_above = 0;
    std::vector<Term> m_terms;
};

} // namespace memscape
