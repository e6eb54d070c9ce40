// SPDX-License-Identifier: Apache-2.0
// The worker's lines, in both directions: in pieces of any length, events and commands. The first byte is the length
// of a piece.
#include "core/protocol/message.h"
#include "tests/fuzz/target.h"

using namespace memscape;

namespace {

template <typename Message, typename Decode> void readsBackLine(const Result<Message>& message, Decode decode)
{
    fuzz::errorIsClear(message);
    if (!message)
        return;
    const std::string line = protocol::encode(*message);
    fuzz::promise(!line.empty() && line.back() == '\n' && line.find('\n') == line.size() - 1, "a message is one line");
    const auto again = decode(line);
    fuzz::promise(again.has_value() && protocol::encode(*again) == line, "a message reads back as the same");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0)
        return 0;
    const std::size_t piece = std::size_t(data[0]) + 1;
    const std::string_view bytes = fuzz::text(data + 1, size - 1);
    protocol::LineReader reader;
    std::vector<std::string> whole;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        const auto lines = reader.feed(bytes.substr(at, piece));
        fuzz::errorIsClear(lines);
        if (lines)
            whole.insert(whole.end(), lines->begin(), lines->end());
    }
    whole.push_back(reader.finish());
    for (const std::string& line : whole) {
        fuzz::promise(line.find('\n') == std::string::npos, "a line holds no newline");
        readsBackLine(protocol::decodeEvent(line), protocol::decodeEvent);
        readsBackLine(protocol::decodeCommand(line), protocol::decodeCommand);
    }
    return 0;
}
