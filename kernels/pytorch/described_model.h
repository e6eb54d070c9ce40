// SPDX-License-Identifier: Apache-2.0
// What the probe cannot know of a model by itself: the sizes of recipes, the catalogue's name of an alias.
#pragma once

#include "core/base/json.h"

#include <string>

namespace memscape {

/// The field "described" of a run: name, architecture, family, sizes. null for a model that only a library knows.
Json describedModel(const std::string& text);

} // namespace memscape
