// SPDX-License-Identifier: Apache-2.0
// Words for what a parameter may be, as help, tooltips and errors say them.
#pragma once

#include "core/experiment/parameter.h"

namespace memscape {

/// Of an Integer that has a word of its own: "all" for 0 threads; else empty.
std::string wordOf(const ParameterSpec& spec, double value);

/// The range of a number: "1 B to 64 GiB", "0 (all) to 1024".
std::string numbersText(const ParameterSpec& spec);

} // namespace memscape
