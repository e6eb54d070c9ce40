// SPDX-License-Identifier: Apache-2.0
// What CLI11 found wrong with a command line, in our own words: its texts count ("1 required ID missing") and say
// no remedy.
#pragma once

#include "core/base/text.h"

#include <CLI/CLI.hpp>

#include <string>

namespace memscape {

/// "--device lacks its value", "EXPERIMENT is missing", "\"--foo\" was not expected here".
inline std::string parseProblem(const CLI::App& app, const CLI::ParseError& error)
{
    const std::string text = error.what(); // begins with the option's name, unless nothing has that name
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) { // its name is the command's
        const auto words = app.remaining(true);
        return "\"" + quotedForMessage(words.empty() ? std::string() : words.front()) + "\" was not expected here";
    }
    const std::string name = quotedForMessage(text.substr(0, text.find_first_of(": ")));
    if (error.get_name() == "RequiredError")
        return name + " is missing";
    if (error.get_name() == "ArgumentMismatch")
        return name + (text.find("At Most") == std::string::npos ? " lacks its value" : " is given more than once");
    if (error.get_name() == "ExcludesError") // "--json excludes --events"
        return name + " excludes " + quotedForMessage(text.substr(text.rfind(' ') + 1));
    return name + " cannot be read";
}

} // namespace memscape
