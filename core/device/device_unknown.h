// SPDX-License-Identifier: Apache-2.0
// What a document says that this program does not know: kept beside the values and merged back when
// they are written, at any depth. Entries of arrays are found again by their index; when an array
// has changed its length in between, what was unknown inside it is dropped, because it may belong
// to an entry that is gone.
#pragma once

#include "core/base/json.h"

namespace memscape {

/// The keys of `document` that `known` lacks, "+key" with its value; "~key" descends into a key
/// that both have; {"size": n, "items": {"2": …}} into an array. Null when there is nothing
/// unknown.
Json unknownPart(const Json& document, const Json& known);

/// `known` with what unknownPart() found put back, after the known keys of each object.
void mergeUnknown(Json& known, const Json& unknown);

/// The document's own member `key` of what was unknown; null where there is none.
Json unknownMember(const Json& unknown, const std::string& key);

} // namespace memscape
