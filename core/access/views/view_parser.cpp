// SPDX-License-Identifier: Apache-2.0
// Reads operations from text. Every error says at which character.
#include "core/access/views/view_operation.h"

#include "core/base/number.h"
#include "core/base/text.h"

#include <charconv>

#include <fmt/format.h>

namespace memscape {

namespace {

/// One argument as it stands in the text, before the operation says what it should be.
struct Word
{
    std::size_t place = 0;
    std::string name; ///< of name=value
    std::optional<std::int64_t> integer;
    std::optional<Sizes> list;
    std::string text; ///< anything else: none, true, channels_last
};

class Reader
{
public:
    Reader(std::string_view text, std::string_view what)
        : m_text(text)
        , m_what(what)
    { }

    void skipBlanks()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\n'))
            ++m_at;
    }
    bool atEnd()
    {
        skipBlanks();
        return m_at == m_text.size();
    }
    char peek()
    {
        skipBlanks();
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }
    bool take(char wanted)
    {
        if (peek() != wanted || atEnd())
            return false;
        ++m_at;
        return true;
    }
    std::size_t place() const { return m_at; }

    std::string word()
    {
        skipBlanks();
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && isWord(m_text[m_at]))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }

    tl::unexpected<Error> error(const char* code, std::string message, std::size_t at,
                                std::string hint = "as in transpose(0,1);narrow(2,1,2)") const
    {
        return fail(code, std::move(message), std::move(hint), fmt::format("{}, character {}", m_what, at + 1));
    }
    tl::unexpected<Error> expected(std::string_view what)
    {
        skipBlanks();
        const std::string found = atEnd() ? "the end" : quoted(m_text.substr(m_at));
        return error(m_what == "shape" ? "shape.syntax" : "views.syntax",
                     fmt::format("expected {}, found {}", what, found), m_at,
                     m_what == "shape" ? "as in 2,3,4" : "as in transpose(0,1);narrow(2,1,2)");
    }

    Result<std::int64_t> integer()
    {
        skipBlanks();
        std::int64_t value = 0;
        const char* begin = m_text.data() + m_at;
        const auto [end, code] = std::from_chars(begin, m_text.data() + m_text.size(), value);
        if (code == std::errc::result_out_of_range)
            return error(m_what == "shape" ? "shape.range" : "views.range",
                         fmt::format("{} does not fit into 64 bits", quoted(m_text.substr(m_at))), m_at,
                         "sizes beyond 2^53 are refused anyway");
        if (code != std::errc() || end == begin)
            return expected("a whole number");
        m_at += std::size_t(end - begin);
        const char next = m_at < m_text.size() ? m_text[m_at] : '\0';
        if (isWord(next)
            || (next == '.' && m_at + 1 < m_text.size() && m_text[m_at + 1] >= '0' && m_text[m_at + 1] <= '9'))
            return expected("a whole number to end here");
        return value;
    }

    /// "2, 3, 4" up to (not with) `end`.
    Result<Sizes> integers(char end)
    {
        Sizes values;
        if (peek() == end)
            return values;
        do {
            if (!values.empty() && peek() == end) // (2,)
                break;
            MEMSCAPE_TRY(value, integer());
            values.push_back(value);
        } while (take(','));
        return values;
    }

    /// [2, 3] or (2, 3), which begins here.
    Result<Sizes> list()
    {
        const char end = take('[') ? ']' : (take('('), ')');
        MEMSCAPE_TRY(values, integers(end));
        if (!take(end))
            return expected(fmt::format("\",\" or \"{}\"", end));
        return values;
    }

private:
    static bool isWord(char c)
    {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    static std::string quoted(std::string_view text) { return "\"" + quotedForMessage(text, 20) + "\""; }

    std::string_view m_text;
    std::string_view m_what;
    std::size_t m_at = 0;
};

Result<Word> readWord(Reader& reader)
{
    Word word;
    reader.skipBlanks();
    word.place = reader.place();
    const auto startsNumber = [&reader] {
        const char c = reader.peek();
        return c == '-' || (c >= '0' && c <= '9');
    };
    if (!startsNumber() && reader.peek() != '[' && reader.peek() != '(') {
        word.text = reader.word();
        if (word.text.empty())
            return reader.expected("an argument");
        if (!reader.take('=')) {
            while (reader.take('.')) // torch.channels_last
                word.text = reader.word();
            return word;
        }
        word.name = std::move(word.text);
        word.text.clear();
        reader.skipBlanks();
    }
    if (reader.peek() == '[' || reader.peek() == '(') {
        MEMSCAPE_SET(word.list, reader.list());
    } else if (startsNumber()) {
        MEMSCAPE_SET(word.integer, reader.integer());
    } else {
        word.text = reader.word();
        while (reader.take('.'))
            word.text = reader.word();
        if (word.text.empty())
            return reader.expected("a value");
    }
    return word;
}

std::optional<Argument> argumentOf(ArgumentKind kind, const Word& word)
{
    const std::string text = lowered(word.text);
    const auto isInteger = [&] { return word.integer.has_value(); };
    switch (kind) {
    case ArgumentKind::Integer: return isInteger() ? std::optional(Argument{word.integer, {}, {}, {}}) : std::nullopt;
    case ArgumentKind::OptionalInteger:
        return isInteger() || text == "none" ? std::optional(Argument{word.integer, {}, {}, {}}) : std::nullopt;
    case ArgumentKind::List:
        if (word.list)
            return Argument{{}, *word.list, {}, {}};
        return isInteger() ? std::optional(Argument{{}, {*word.integer}, {}, {}}) : std::nullopt;
    case ArgumentKind::Flag:
        if (text == "true" || text == "false")
            return Argument{text == "true" ? 1 : 0, {}, {}, {}};
        return isInteger() ? std::optional(Argument{*word.integer != 0, {}, {}, {}}) : std::nullopt;
    case ArgumentKind::Format: break;
    }
    if (text == "contiguous_format")
        return Argument{};
    if (text == "preserve_format")
        return Argument{{}, {}, {}, true};
    if (text == "channels_last")
        return Argument{{}, {}, MemoryFormat::ChannelsLast, {}};
    if (text == "channels_last_3d")
        return Argument{{}, {}, MemoryFormat::ChannelsLast3d, {}};
    return std::nullopt;
}

std::string_view kindText(ArgumentKind kind)
{
    switch (kind) {
    case ArgumentKind::Integer: return "a whole number";
    case ArgumentKind::OptionalInteger: return "a whole number or none";
    case ArgumentKind::List: return "a list of whole numbers";
    case ArgumentKind::Flag: return "true or false";
    case ArgumentKind::Format: break;
    }
    return "contiguous_format, channels_last, channels_last_3d or preserve_format";
}

/// "narrow(dim,start,length)"
std::string signatureOf(const OperationSpec& spec)
{
    std::string text = spec.name + "(";
    for (const ArgumentSpec& argument : spec.arguments)
        text += (text.back() == '(' ? "" : ",") + argument.name
            + (argument.standard.empty() ? "" : "=" + argument.standard);
    return text + ")";
}

/// view(2,3) is view([2,3]): plain numbers of an operation that takes one list.
void joinPlainNumbers(const OperationSpec& spec, std::vector<Word>& words)
{
    if (spec.arguments.size() != 1 || spec.arguments.front().kind != ArgumentKind::List)
        return;
    Sizes joined;
    for (const Word& word : words) {
        if (!word.integer || !word.name.empty())
            return;
        joined.push_back(*word.integer);
    }
    Word all;
    all.place = words.empty() ? 0 : words.front().place;
    all.list = std::move(joined);
    words.assign(1, std::move(all));
}

Result<ViewOperation> bound(const OperationSpec& spec, std::vector<Word> words, std::size_t place, const Reader& reader)
{
    const std::string hint = signatureOf(spec);
    joinPlainNumbers(spec, words);
    ViewOperation operation{spec.name, {}, place};
    std::vector<std::optional<Argument>> given(spec.arguments.size());
    std::size_t next = 0;
    for (const Word& word : words) {
        std::size_t i = next++;
        if (!word.name.empty()) {
            for (i = 0; i < spec.arguments.size() && spec.arguments[i].name != word.name;)
                ++i;
            if (i == spec.arguments.size())
                return reader.error("views.arguments", fmt::format("{} has no argument {}", spec.name, word.name),
                                    word.place, hint);
        }
        if (i >= spec.arguments.size())
            return reader.error(
                "views.arguments",
                fmt::format("{} takes {} arguments, not {}", spec.name, spec.arguments.size(), words.size()),
                word.place, hint);
        if (given[i])
            return reader.error("views.arguments", fmt::format("{} is given twice", spec.arguments[i].name), word.place,
                                hint);
        given[i] = argumentOf(spec.arguments[i].kind, word);
        if (!given[i])
            return reader.error(
                "views.arguments",
                fmt::format("{} of {} is {}", spec.arguments[i].name, spec.name, kindText(spec.arguments[i].kind)),
                word.place, hint);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!given[i] && spec.arguments[i].standard.empty())
            return reader.error("views.arguments", fmt::format("{} needs {}", spec.name, spec.arguments[i].name), place,
                                hint);
        if (!given[i]) {
            Word word;
            word.text = spec.arguments[i].standard;
            if (const auto standard = parseNumber(word.text))
                word.integer = std::int64_t(*standard);
            given[i] = argumentOf(spec.arguments[i].kind, word);
        }
        operation.arguments.push_back(std::move(*given[i]));
    }
    return operation;
}

Result<ViewOperation> readOperation(Reader& reader)
{
    reader.skipBlanks();
    const std::size_t place = reader.place();
    const std::string name = reader.word();
    if (name.empty())
        return reader.expected("an operation");
    const OperationSpec* spec = findOperation(name);
    if (!spec) {
        std::vector<std::string> known;
        for (const OperationSpec& one : operationSpecs())
            known.push_back(one.name);
        return reader.error("views.unknown", fmt::format("no operation is called {}", quotedForMessage(name, 30)),
                            place, didYouMean(name, known));
    }
    if (!reader.take('('))
        return reader.expected("\"(\"");
    std::vector<Word> words;
    if (reader.peek() != ')') {
        do {
            MEMSCAPE_TRY(word, readWord(reader));
            words.push_back(std::move(word));
        } while (reader.take(','));
    }
    if (!reader.take(')'))
        return reader.expected("\",\" or \")\"");
    return bound(*spec, std::move(words), place, reader);
}

} // namespace

Result<std::vector<ViewOperation>> parseViews(std::string_view text)
{
    Reader reader(text, "views");
    std::vector<ViewOperation> operations;
    if (text.starts_with("x.")) {
        reader.word();
        reader.take('.');
    }
    while (!reader.atEnd()) {
        if (operations.size() == operationsLimit)
            return reader.error("views.limit", fmt::format("at most {} operations fit here", operationsLimit),
                                reader.place(), "remove some");
        MEMSCAPE_TRY(operation, readOperation(reader));
        operations.push_back(std::move(operation));
        if (!reader.atEnd() && !reader.take(';') && !reader.take('.'))
            return reader.expected("\";\" before the next operation");
    }
    return operations;
}

Result<Sizes> parseShape(std::string_view text)
{
    Reader reader(text, "shape");
    Sizes sizes;
    if (reader.peek() == '[' || reader.peek() == '(') {
        MEMSCAPE_SET(sizes, reader.list());
    } else {
        MEMSCAPE_SET(sizes, reader.integers('\0'));
    }
    if (!reader.atEnd())
        return reader.expected("\",\" or the end");
    return sizes;
}

} // namespace memscape
