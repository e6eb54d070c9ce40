// SPDX-License-Identifier: Apache-2.0
// How large a study grows: what is said while there is time to do something about it, long before it can no longer be
// saved (core/base/json.h, JsonLimits).
#pragma once

#include "core/experiment/record.h"

#include <string_view>

namespace memscape {

/// B. A study of more is heavy: a quarter of what can be opened.
inline constexpr std::size_t heavyStudyBytes = 64u << 20;

/// Bytes of each record in the text of a study, whatever its layout; nothing where it has no records.
std::vector<std::size_t> recordBytes(std::string_view text);

/// The message when a heavy study is opened or saved (study.heavy): its size, what cannot be opened, which
/// records hold most of it, and what to do. Nothing of a light one. `text` is that of `study`.
std::optional<Error> heavyStudyNote(std::string_view text, const Study& study, std::size_t heavy = heavyStudyBytes);

} // namespace memscape
