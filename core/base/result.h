// SPDX-License-Identifier: Apache-2.0
// What a function answers when its input can be wrong: the value, or an Error that says what was
// wrong, where, and what to do about it. Exceptions stay inside libraries that throw them (JSON);
// they are caught at the file boundary. Asserts are only for our own bugs.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace memscape {

/// A parameter and the text that would be accepted, where one change takes the error away.
struct Remedy
{
    std::string parameter, value;
};

/// An expected failure. `code` is a stable dotted word that tests, scripts and exit codes compare
/// ("parameter.range"); `message` is one sentence for a person; `place` names the spot in a document
/// ("predicted.figures.peak.value", "line 3, column 7"); `hint` says what to do next.
struct Error
{
    std::string code;
    std::string message;
    std::string place = {};
    std::string hint = {};
    std::optional<Remedy> remedy = {};

    /// "place: message (hint)", the form that every front end prints.
    std::string text() const;
};

template <typename T> using Result = tl::expected<T, Error>;

/// `return fail("file.missing", "…", "…");` from any function that returns a Result.
inline tl::unexpected<Error> fail(std::string code, std::string message, std::string hint = {}, std::string place = {})
{
    return tl::unexpected<Error>(Error{std::move(code), std::move(message), std::move(place), std::move(hint)});
}

inline tl::unexpected<Error> fail(Error error)
{
    return tl::unexpected<Error>(std::move(error));
}

/// The error as a caller passes it on: its place is "`where`, its place", or `where` alone when it has none yet.
inline Error placedIn(const std::string& where, Error error)
{
    error.place = error.place.empty() ? where : where + ", " + error.place;
    return error;
}

/// Exit codes of the command line, a contract: see resources/help/command-line.md.
enum class ExitCode { Done = 0, Failed = 1, BadInput = 2, NoDevice = 3, Interrupted = 130 };

/// Which exit code an error ends the program with: "device.*" is NoDevice, "run.cancelled" is
/// Interrupted, "run.*" is Failed, everything else BadInput.
ExitCode exitCodeFor(const Error& error);

} // namespace memscape

// Propagate an error, or name the value: MEMSCAPE_TRY(device, readDevice(path)); or give it to what has a name already:
// MEMSCAPE_SET(lab.title, reader.string("title")); or go on: MEMSCAPE_CHECK(writeFile(path, text));
#define MEMSCAPE_TRY(name, expression)                                                                                 \
    auto name##Result = (expression);                                                                                  \
    if (!name##Result)                                                                                                 \
        return tl::unexpected<::memscape::Error>(std::move(name##Result).error());                                     \
    auto name = std::move(*name##Result)

#define MEMSCAPE_SET(target, expression)                                                                               \
    do {                                                                                                               \
        auto settled = (expression);                                                                                   \
        if (!settled)                                                                                                  \
            return tl::unexpected<::memscape::Error>(std::move(settled).error());                                      \
        target = std::move(*settled);                                                                                  \
    } while (false)

#define MEMSCAPE_CHECK(expression)                                                                                     \
    do {                                                                                                               \
        if (auto checked = (expression); !checked)                                                                     \
            return tl::unexpected<::memscape::Error>(std::move(checked).error());                                      \
    } while (false)
