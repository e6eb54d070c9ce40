// SPDX-License-Identifier: Apache-2.0
// A page that can be mailed, printed or put on a server, and its parts: styles and charts inside, no script, and a
// content security policy that forbids what a hostile document might smuggle past the escaping. Light and dark by the
// reader's preference.
#pragma once

#include "core/report/summary.h"

#include <string>
#include <string_view>

namespace memscape {

/// The whole document; the title stands on top of `body`, which is markup.
std::string htmlPage(const std::string& title, std::string_view body);

/// Text, escaped, in an element such as "p".
std::string htmlElement(std::string_view tag, std::string_view text);
/// Columns named predicted and measured have those colours.
std::string htmlTable(const TextTable& table);
/// Names and their values.
std::string htmlPairs(const TextPairs& pairs);
/// `inner` is markup that opens below the summary.
std::string htmlDetails(std::string_view summary, std::string_view inner, bool open = false);

} // namespace memscape
