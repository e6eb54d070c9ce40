// SPDX-License-Identifier: GPL-3.0-or-later
// Several parameters at once, as texts that parse: what a lever changes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace memscape {

using ParameterChanges = std::vector<std::pair<std::string, std::string>>;

} // namespace memscape
