// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of the window. Every experiment has one under its own id; an experiment with more to
// show than one page holds has further ones, which share its parameters, device and records: what
// is moved on one has moved on the other. Tool pages show something that is no experiment; each
// has a class of its own (pages/tool_page.h).
#pragma once

#include "core/experiment/experiment.h"

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

struct PageInfo
{
    std::string id, title, question;
    std::string experiment; ///< whose parameters it shows; empty for a tool page
    std::string group;      ///< on the rail: "hardware", "tensors", "training", "kernels", "learn"
    std::string chapter;    ///< of the help, for a tool page
};

/// Of every experiment of that list its own page and then its further ones.
std::vector<PageInfo> pagesOf(const std::vector<const Experiment*>& experiments);

/// The page of a memory snapshot: it shows a file.
constexpr auto snapshotPageId = "snapshot";
/// The page of what course notes claim.
constexpr auto claimsPageId = "claims";
/// The page on which labs are done.
constexpr auto labsPageId = "labs";

/// The pages without an experiment.
const std::vector<PageInfo>& toolPages();
/// Null when there is none of that id.
const PageInfo* findToolPage(std::string_view id);

/// Pages of those experiments, then tool pages; the rail shows each group in this order.
std::vector<PageInfo> allPages(const std::vector<const Experiment*>& experiments);

/// One page of an experiment: its own when `page` is empty or not known.
PageInfo pageOf(const Experiment& experiment, std::string_view page);

/// The experiment that a page shows: the page's own id when it is not a further one.
std::string experimentOfPage(std::string_view page);

} // namespace memscape
