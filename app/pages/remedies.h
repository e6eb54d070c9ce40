// SPDX-License-Identifier: GPL-3.0-or-later
// What a refusal proposes, as changes that one press makes. Hints name them as the command line takes them: "choose
// loss=library, or tensor_parallel=1" is two proposals, "zero=3 and offload=none" one of two changes. A word that is
// no value of a parameter ("an optimizer_rank of your own") is left to the reader.
#pragma once

#include "app/pictures/common/parameter_changes.h"
#include "core/base/result.h"
#include "core/experiment/parameter.h"

#include <QString>

#include <vector>

namespace memscape {

struct Proposal
{
    QString label; ///< "loss: as its library"
    ParameterChanges changes;
};

/// The remedy of an error, else what its hint names.
std::vector<Proposal> proposalsOf(const Error& error, const Schema& schema, ByteStyle bytes);

} // namespace memscape
