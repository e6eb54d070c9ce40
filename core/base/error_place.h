// SPDX-License-Identifier: Apache-2.0
// Where an error lies, from the outside in: whoever passes it on says what its place is a place of.
#pragma once

#include "core/base/result.h"

#include <string>
#include <utility>

namespace memscape {

/// The error at "`where`, its place", or at `where` alone when it has no place yet.
inline Error placedIn(const std::string& where, Error error)
{
    error.place = error.place.empty() ? where : where + ", " + error.place;
    return error;
}

} // namespace memscape
