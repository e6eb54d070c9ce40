// SPDX-License-Identifier: GPL-3.0-or-later
// Precompiled for the window's rooms: what nearly every file there includes anyway, and what costs
// seconds a file otherwise (Qt Widgets, the JSON library inside the engine's values).
#pragma once

#include "core/experiment/record.h"

#include <nlohmann/json.hpp>

#include <QtWidgets>

#include <functional>
#include <memory>
#include <variant>
#include <vector>
