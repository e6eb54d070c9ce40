// SPDX-License-Identifier: Apache-2.0
#include "core/trace/trace_script.h"

#include "core/base/cancellation.h"
#include "core/base/number.h"
#include "core/base/text.h"

#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double largestBlock = 0x1p50;                   // 1 PiB
constexpr std::int64_t mostAlive = std::int64_t(1) << 60; // sizes can still be rounded up
constexpr std::size_t mostNamesTried = 1000;              // for "did you mean"
constexpr const char* forms = "alloc NAME SIZE [stream N] [as CATEGORY], free NAME, record NAME stream N, synchronize, "
                              "empty_cache";

/// Words between blanks.
std::vector<std::string_view> wordsOf(std::string_view text)
{
    std::vector<std::string_view> words;
    constexpr std::string_view blanks = " \t\r\f\v";
    for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;
         at = text.find_first_not_of(blanks, at)) {
        const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

class ScriptReader
{
public:
    explicit ScriptReader(std::string_view file)
        : m_file(file)
    {
        m_trace.names = {""};
        m_trace.modules = {""};
    }
    Result<RequestTrace> read(std::string_view text);

private:
    using Words = std::vector<std::string_view>;
    struct Named
    {
        BlockId block = noBlock;
        std::size_t made = 0, freed = 0; ///< lines; 0: alive
    };

    Result<void> statement(std::string_view text);
    Result<void> allocate(const Words& words);
    Result<std::int64_t> sizeOf(std::string_view text) const;
    Result<std::uint16_t> streamOf(std::string_view text) const;
    Result<Category> categoryOf(std::string_view text) const;
    Result<Named*> alive(std::string_view name);
    Result<void> add(RequestKind kind, BlockId block);
    tl::unexpected<Error> wrong(std::string code, std::string message, std::string hint = {}) const
    {
        const std::string line = fmt::format("line {}", m_line);
        return fail(std::move(code), std::move(message), std::move(hint),
                    m_file.empty() ? line : fmt::format("{}, {}", m_file, line));
    }

    std::string_view m_file;
    std::size_t m_line = 0;
    RequestTrace m_trace;
    std::unordered_map<std::string, Named> m_names;
    std::int64_t m_alive = 0;
};

Result<std::int64_t> ScriptReader::sizeOf(std::string_view text) const
{
    const auto bytes = parseQuantity(text, Unit::Byte);
    if (!bytes)
        return wrong("script.size",
                     fmt::format("can't read the size \"{}\": {}", quotedForMessage(text), bytes.error().message),
                     "write bytes, or a number with KiB, MiB or GiB: 96MiB");
    if (!(*bytes >= 1) || *bytes > largestBlock || *bytes != std::floor(*bytes))
        return wrong("script.size", fmt::format("a block can't have {} bytes", quotedForMessage(text)),
                     "a size is a whole number of bytes from 1 B to 1 PiB");
    return std::int64_t(*bytes);
}

Result<std::uint16_t> ScriptReader::streamOf(std::string_view text) const
{
    const auto number = parseNumber(text);
    if (!number || *number < 0 || *number > 65535 || *number != std::floor(*number))
        return wrong("script.stream", fmt::format("\"{}\" is no stream", quotedForMessage(text)),
                     "a stream is a whole number from 0 to 65535; without one it is 0");
    return std::uint16_t(*number);
}

Result<Category> ScriptReader::categoryOf(std::string_view text) const
{
    std::vector<std::string> known;
    for (std::size_t i = 0; i < categoryCount; ++i) {
        std::string key(categoryText(Category(i)));
        for (char& c : key)
            c = c == ' ' || c == '-' ? '_' : c;
        if (key == text)
            return Category(i);
        known.push_back(std::move(key));
    }
    return wrong("script.category", fmt::format("no category is called \"{}\"", quotedForMessage(text)),
                 didYouMean(text, known));
}

Result<ScriptReader::Named*> ScriptReader::alive(std::string_view name)
{
    const auto found = m_names.find(std::string(name));
    if (found == m_names.end()) {
        std::vector<std::string> known;
        for (const auto& [other, block] : m_names)
            if (block.freed == 0 && known.size() < mostNamesTried)
                known.push_back(other);
        return wrong("script.name", fmt::format("no block is called \"{}\"", quotedForMessage(name)),
                     known.empty() ? "alloc it first" : didYouMean(name, known));
    }
    if (found->second.freed != 0)
        return wrong("script.name",
                     fmt::format("\"{}\" is freed already, in line {}", quotedForMessage(name), found->second.freed),
                     "remove one of the two frees, or alloc the name again between them");
    return &found->second;
}

Result<void> ScriptReader::add(RequestKind kind, BlockId block)
{
    m_trace.requests.push_back({block, kind, Phase::Forward});
    return {};
}

Result<void> ScriptReader::allocate(const Words& words)
{
    if (words.size() < 3 || words.size() % 2 == 0)
        return wrong("script.syntax", "an alloc needs a name and a size", "write alloc a 96MiB");
    MEMSCAPE_TRY(bytes, sizeOf(words[2]));
    RequestedBlock block;
    block.bytes = bytes;
    for (std::size_t i = 3; i < words.size(); i += 2) {
        if (words[i] == "stream") {
            MEMSCAPE_TRY(stream, streamOf(words[i + 1]));
            block.stream = stream;
        } else if (words[i] == "as") {
            MEMSCAPE_TRY(category, categoryOf(words[i + 1]));
            block.category = category;
        } else {
            return wrong("script.syntax",
                         fmt::format("\"{}\" does not belong into an alloc", quotedForMessage(words[i])),
                         "write alloc a 96MiB stream 1 as weights");
        }
    }
    Named& named = m_names[std::string(words[1])];
    if (named.block != noBlock && named.freed == 0)
        return wrong("script.name",
                     fmt::format("\"{}\" is alive, since line {}", quotedForMessage(words[1]), named.made),
                     "free it first, or choose another name");
    if (bytes > mostAlive - m_alive)
        return wrong("script.size", "more than 1 EiB would be alive", "make the blocks smaller, or free some");
    m_alive += bytes;
    block.name = named.block != noBlock ? m_trace.blocks[named.block].name : NameId(m_trace.names.size());
    if (named.block == noBlock)
        m_trace.names.emplace_back(words[1]);
    named = {BlockId(m_trace.blocks.size()), m_line, 0};
    m_trace.blocks.push_back(block);
    return add(RequestKind::Allocate, named.block);
}

Result<void> ScriptReader::statement(std::string_view text)
{
    const Words words = wordsOf(text);
    if (words.empty())
        return {};
    const std::string verb = lowered(words[0]);
    if (verb == "alloc")
        return allocate(words);
    if (verb == "free" && words.size() == 2) {
        MEMSCAPE_TRY(named, alive(words[1]));
        named->freed = m_line;
        m_alive -= m_trace.blocks[named->block].bytes;
        return add(RequestKind::Free, named->block);
    }
    if (verb == "record" && words.size() == 4 && words[2] == "stream") {
        MEMSCAPE_TRY(named, alive(words[1]));
        MEMSCAPE_TRY(stream, streamOf(words[3]));
        const bool isOwn = stream == m_trace.blocks[named->block].stream; // the order on its own stream is enough
        return isOwn ? Result<void>() : add(RequestKind::Record, named->block);
    }
    if ((verb == "synchronize" || verb == "synchronize()") && words.size() == 1)
        return add(RequestKind::Synchronize, noBlock);
    if ((verb == "empty_cache" || verb == "empty_cache()") && words.size() == 1)
        return add(RequestKind::EmptyCache, noBlock);
    for (const std::string_view known : {"free", "record", "synchronize", "empty_cache"})
        if (verb == known)
            return wrong("script.syntax", fmt::format("can't read \"{}\"", quotedForMessage(trimmed(text))),
                         fmt::format("a line is one of: {}", forms));
    return wrong("script.verb", fmt::format("\"{}\" is no request", quotedForMessage(words[0])),
                 fmt::format("a line is one of: {}", forms));
}

Result<RequestTrace> ScriptReader::read(std::string_view text)
{
    while (!text.empty()) {
        if (++m_line > mostScriptLines)
            return wrong("script.length", fmt::format("a script has at most {} lines", mostScriptLines),
                         "keep a part of it: one step is enough");
        if (m_line % 65536 == 0)
            MEMSCAPE_CHECK(checkWanted());
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line = line.substr(0, line.find('#'));
        while (true) {
            const std::size_t semicolon = line.find(';');
            MEMSCAPE_CHECK(statement(line.substr(0, semicolon)));
            if (semicolon == std::string_view::npos)
                break;
            line.remove_prefix(semicolon + 1);
        }
        if (m_trace.requests.size() > mostScriptLines)
            return wrong("script.length", fmt::format("a script has at most {} requests", mostScriptLines),
                         "keep a part of it: one step is enough");
    }
    if (m_trace.requests.empty())
        return fail("script.empty", "the script asks for nothing", fmt::format("a line is one of: {}", forms),
                    std::string(m_file));
    return std::move(m_trace);
}

} // namespace

Result<RequestTrace> parseTraceScript(std::string_view text, std::string_view file)
{
    return ScriptReader(file).read(text);
}

} // namespace memscape
