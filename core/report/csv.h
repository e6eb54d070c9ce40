// SPDX-License-Identifier: Apache-2.0
// One field of a CSV file by RFC 4180: quoted when it holds a comma, a quote or a line end (or a semicolon or a
// tab, which other countries' spreadsheets part cells by). A text that a spreadsheet would run as a formula gets an
// apostrophe in front.
#pragma once

#include <string>
#include <string_view>

namespace memscape {

std::string csvField(std::string_view text);

/// Shortest round-trip text, empty when the value is not finite.
std::string csvNumber(double value);

} // namespace memscape
