// SPDX-License-Identifier: Apache-2.0
// The place of an error that a caller passes on: the caller's own place stands in front of it ("lab.json, steps.2").
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
