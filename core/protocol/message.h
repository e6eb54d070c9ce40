// SPDX-License-Identifier: Apache-2.0
// The worker's messages: JSON lines, pure text in, values out. stdout of a worker carries only these,
// one object a line, UTF-8, flushed; stderr is free text. The worker says hello first; every run ends
// in exactly one done; it quits when its stdin ends. Unknown fields are ignored, unknown types are
// Unknown; a line over the limit or not JSON is an error (the reader then restarts the worker).
#pragma once

#include "core/experiment/experiment.h"

#include <string>
#include <variant>
#include <vector>

namespace memscape::protocol {

inline constexpr int version = 1;
/// B. The largest result, a sweep at its limit of points with the samples that a record keeps, takes
/// about half of it.
inline constexpr std::size_t lineLimit = 64u << 20;

// worker → window
struct WorkerDevice
{
    std::string id; ///< "cpu", "cuda:0"
    std::string name;
    std::string missing; ///< why it cannot be used here; empty when it can
    Json description;    ///< a device document, or null
};
struct Hello
{
    int protocol = version;
    std::string worker; ///< program version
    std::int64_t pid = 0;
    std::vector<WorkerDevice> devices;
};
struct Started
{
    std::int64_t id = 0;
};
struct Progress
{
    std::int64_t id = 0;
    int done = 0, total = 0;
    std::string label;
};
/// A measured point as it arrives. It may come again with more samples in it: the newest counts.
struct Sample
{
    std::int64_t id = 0;
    std::string key;
    Point point;
};
struct Note
{
    std::int64_t id = 0;
    std::string level, code, text;
}; ///< level: info, warning
/// status: ok, cancelled, skipped (cannot run here: `error` says why), failed.
struct Done
{
    std::int64_t id = 0;
    std::string status;
    double elapsed = 0;
    std::optional<Error> error;
    Json result;     ///< a measurement (outcome JSON; partial when cancelled), a device document of
                     ///< a calibration, or a selftest report; null without
    Json provenance; ///< object or null
};
struct UnknownMessage
{
    std::string type;
};
using Event = std::variant<Hello, Started, Progress, Sample, Note, Done, UnknownMessage>;

// window → worker
struct Run
{
    std::int64_t id = 0;
    std::string experiment; ///< or "calibrate", "selftest"
    std::string device;
    Json parameters;       ///< object: as in a record
    bool isForced = false; ///< run also what is predicted not to fit
};
struct Cancel
{
    std::int64_t id = 0;
};
struct Quit
{ };
using Command = std::variant<Run, Cancel, Quit>;

std::string encode(const Event& event);     ///< one line with its newline
std::string encode(const Command& command); ///< one line with its newline
Result<Event> decodeEvent(std::string_view line);
Result<Command> decodeCommand(std::string_view line);

/// Bytes in, whole lines out: split and joined chunks, CRLF, a last line without newline (`finish`).
class LineReader
{
public:
    /// protocol.limit when a line grows past lineLimit; the reader then drops to the next newline, and
    /// whole lines of the same bytes come with the next call.
    Result<std::vector<std::string>> feed(std::string_view bytes);
    std::string finish();

private:
    std::vector<std::string> m_whole;
    std::string m_rest;
    bool m_dropping = false;
};

} // namespace memscape::protocol
