// SPDX-License-Identifier: Apache-2.0
// Precompiled for the tests: what nearly every one includes anyway, and what costs seconds a file
// otherwise. Qt Test itself is not among them: its headers know the folder of the test they are in.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include <QtCore>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
