// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of the window. Every experiment has one under its own id; an experiment with more to
// show than one page holds has further ones, which share its parameters, device and records: what
// is moved on one has moved on the other.
#pragma once

#include "core/experiment/experiment.h"

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

struct PageInfo
{
    std::string id, title, question;
    std::string experiment; ///< whose parameters it shows
};

/// Of every experiment of that list its own page and then its further ones.
std::vector<PageInfo> pagesOf(const std::vector<const Experiment*>& experiments);

/// The page of a memory snapshot: it shows a file, and has no experiment.
constexpr auto snapshotPageId = "snapshot";
PageInfo snapshotPageInfo();

/// One page of an experiment: its own when `page` is empty or not known.
PageInfo pageOf(const Experiment& experiment, std::string_view page);

/// The experiment that a page shows: the page's own id when it is not a further one.
std::string experimentOfPage(std::string_view page);

} // namespace memscape
