// SPDX-License-Identifier: Apache-2.0
// What every fuzz target shares. A target takes any bytes, hands them to one reader and ends without a word, unless the
// reader breaks a promise: then it stops the process, and the sanitizers or this file say where. Under clang libFuzzer
// calls it with bytes that it makes up (tests/fuzz/run); everywhere else replay.cpp calls it with the kept corpus.
#pragma once

#include "core/base/json.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace memscape::fuzz {

inline std::string_view text(const std::uint8_t* data, std::size_t size)
{
    return {reinterpret_cast<const char*>(data), size};
}

inline std::vector<std::string> lines(std::string_view text)
{
    std::vector<std::string> out(1);
    for (const char c : text) {
        if (c == '\n')
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

/// Ends the process where a promise does not hold.
inline void promise(bool holds, const char* what)
{
    if (holds)
        return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

/// An error names what is wrong: a message that is neither empty nor of endless length.
template <typename Result> void errorIsClear(const Result& result)
{
    if (!result)
        promise(!result.error().message.empty() && result.error().text().size() < 20'000,
                "an error says what is wrong, in short");
}

/// What is read is written, and what is written reads back as the same: `read` from Json, `write` to Json.
template <typename Read, typename Write> void readsBack(const Json& json, Read read, Write write)
{
    const auto first = read(json);
    errorIsClear(first);
    if (!first)
        return;
    const std::string written = jsonText(write(*first));
    const auto parsed = parseJson(written);
    promise(parsed.has_value(), "what is written is JSON");
    const auto second = read(*parsed);
    promise(second.has_value(), second ? "" : ("what is written can be read: " + second.error().text()).c_str());
    promise(jsonText(write(*second)) == written, "what is read back is the same");
}

} // namespace memscape::fuzz
