// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/worker.h"

#include "core/base/text.h"
#include "kernels/pytorch/pytorch_backend.h"
#include "kernels/worker/line_writer.h"
#include "kernels/worker/run_server.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace memscape {

namespace {

/// A line that is not a command: reported, and otherwise ignored.
void reportBadLine(LineWriter& out, const Error& error)
{
    out.write(protocol::Event{protocol::Note{0, "warning", error.code, error.text()}});
}

/// Whole lines. False when one was quit.
bool handleLines(const std::vector<std::string>& lines, RunServer& server, LineWriter& out)
{
    for (const std::string& line : lines) {
        if (trimmed(line).empty())
            continue;
        auto command = protocol::decodeCommand(line);
        if (!command) {
            reportBadLine(out, command.error());
            continue;
        }
        if (std::holds_alternative<protocol::Quit>(*command))
            return false;
        server.handle(*command);
    }
    return true;
}

/// What has arrived, fed line by line: the error of an over-long line must not take along the commands
/// that follow it. False when a line was quit.
bool handle(std::string_view bytes, protocol::LineReader& reader, RunServer& server, LineWriter& out)
{
    while (!bytes.empty()) {
        const std::size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
        const auto lines = reader.feed(bytes.substr(0, end));
        bytes.remove_prefix(end);
        if (!lines)
            reportBadLine(out, lines.error());
        else if (!handleLines(*lines, server, out))
            return false;
    }
    return true;
}

} // namespace

WorkerOptions WorkerOptions::fromEnvironment()
{
    WorkerOptions options;
    if (const char* const paths = std::getenv("MEMSCAPE_REPLAY")) {
        for (const std::string& path : split(paths, ':')) {
            if (!path.empty())
                options.replays.push_back(path);
        }
    }
    return options;
}

Backends makeBackends(const WorkerOptions& options)
{
    Backends backends;
    auto pytorch = makePytorchBackend(); // looks for PyTorch while the others load
    backends.push_back(makeHostBackend());
    backends.push_back(makeCudaBackend());
    backends.push_back(std::move(pytorch));
    for (const std::string& path : options.replays) {
        if (auto replay = makeReplayBackend(path))
            backends.push_back(std::move(*replay));
        else
            fmt::print(stderr, "memscape worker: {}\n", replay.error().text());
    }
    return backends;
}

int runWorker(int in, int out, const WorkerOptions& options)
{
    return runWorker(in, out, makeBackends(options), options);
}

int runWorker(int in, int out, Backends backends, const WorkerOptions& options)
{
    // A window that has gone shows as EPIPE and then as the end of our input.
    std::signal(SIGPIPE, SIG_IGN);
    LineWriter writer(out);
    RunServer server(std::move(backends), writer);
    server.hello();

    protocol::LineReader reader;
    bool going = true;
    char chunk[65536];
    while (going && !writer.broken()) {
        const ssize_t count = ::read(in, chunk, sizeof(chunk));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break; // a last line without its newline is not a whole command
        going = handle(std::string_view(chunk, static_cast<std::size_t>(count)), reader, server, writer);
    }
    if (!server.stop(options.patience))
        std::_Exit(0); // a kernel that hangs must not keep an orphan alive
    return 0;
}

} // namespace memscape
