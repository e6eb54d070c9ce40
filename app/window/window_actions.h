// SPDX-License-Identifier: GPL-3.0-or-later
// The list of everything the window can do: ids, words, shortcuts. What an action does is connected
// in main_window_actions.cpp.
#pragma once

#include "app/window/actions.h"
#include "core/experiment/experiment.h"

#include <vector>

namespace memscape {

void defineActions(Actions& actions, const std::vector<const Experiment*>& experiments);

} // namespace memscape
