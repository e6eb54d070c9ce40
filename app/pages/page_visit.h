// SPDX-License-Identifier: GPL-3.0-or-later
// A page that another one leads to, at a setting.
#pragma once

#include "app/pictures/common/parameter_changes.h"

#include <QString>

#include <string>

namespace memscape {

struct PageVisit
{
    QString page;                  ///< id
    ParameterChanges changes = {}; ///< of its experiment; what is not named stays
    std::string device = {};       ///< id; empty: the page keeps its own
    QString step = {};             ///< its name in the history
    QString item = {};             ///< of a tool page: what it shows of its own
};

} // namespace memscape
