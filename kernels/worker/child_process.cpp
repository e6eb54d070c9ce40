// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ; // NOLINT: POSIX wants it declared here

namespace memscape {

namespace {

constexpr int endMilliseconds = 2000;

void closeEnd(int& end)
{
    if (end >= 0)
        ::close(end);
    end = -1;
}

/// Ours with `added` in the place of what has its name.
std::vector<std::string> environmentWith(const std::vector<std::pair<std::string, std::string>>& added)
{
    std::vector<std::string> all;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (std::ranges::none_of(added, [&](const auto& one) { return one.first == name; }))
            all.emplace_back(text);
    }
    for (const auto& [name, value] : added)
        all.push_back(name + "=" + value);
    return all;
}

/// Pointers into the texts, with a null at the end.
std::vector<char*> pointersTo(std::vector<std::string>& texts)
{
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

int spawn(pid_t& process, const ChildCommand& command, int in, int out)
{
    std::vector<std::string> words = command.words, variables = environmentWith(command.environment);
    const std::vector<char*> arguments = pointersTo(words), settings = pointersTo(variables);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (command.isQuiet)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int problem =
        ::posix_spawnp(&process, words.front().c_str(), &files, &attributes, arguments.data(), settings.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return problem;
}

} // namespace

ChildProcess::~ChildProcess()
{
    closeEnd(m_input);
    closeEnd(m_output);
    if (m_process > 0) {
        kill();
        static_cast<void>(waitStatus());
    }
}

Result<void> ChildProcess::start(const ChildCommand& command)
{
    std::array<int, 2> in{-1, -1}, out{-1, -1};
    int problem = ::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0 ? errno : 0;
    m_input = in[1];
    m_output = out[0];
    if (problem == 0)
        problem = spawn(m_process, command, in[0], out[1]);
    closeEnd(in[0]);
    closeEnd(out[1]);
    if (problem != 0) {
        m_process = 0;
        return fail(
            "run.failed",
            fmt::format("{} cannot be started: {}", command.words.front(), std::generic_category().message(problem)));
    }
    return {};
}

void ChildProcess::send(std::string_view text) const
{
    while (!text.empty()) {
        const ssize_t count = ::write(m_input, text.data(), text.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

void ChildProcess::closeInput()
{
    closeEnd(m_input);
}

void ChildProcess::kill() const
{
    if (m_process > 0)
        ::kill(-m_process, SIGKILL);
}

int ChildProcess::waitStatus()
{
    // A program that has closed its output and stays is ended.
    int status = 0;
    for (int waited = 0; m_process > 0; ++waited) {
        if (waited == endMilliseconds)
            kill();
        const pid_t ended = ::waitpid(m_process, &status, waited < endMilliseconds ? WNOHANG : 0);
        if (ended == m_process || (ended < 0 && errno != EINTR))
            m_process = 0;
        else if (ended == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return status;
}

Error endOf(int status, const std::string& what)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return {"run.memory",
                fmt::format("{} was killed, as the system does when the memory runs out", what),
                {},
                "choose smaller sizes, or close other programs"};
    if (WIFSIGNALED(status))
        return {"run.failed", fmt::format("{} crashed (signal {})", what, WTERMSIG(status))};
    return {"run.failed", fmt::format("{} ended unexpectedly (code {})", what, WEXITSTATUS(status))};
}

Result<std::string> outputOf(const ChildCommand& command, double seconds, std::size_t limit)
{
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    ChildProcess child;
    MEMSCAPE_CHECK(child.start(command));
    child.closeInput();
    std::string text;
    std::array<char, 4096> chunk{};
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd watched{child.output(), POLLIN, 0};
        if (left <= 0 || text.size() > limit)
            return fail("run.hung", fmt::format("{} did not answer within {} s", command.words.front(), seconds));
        if (::poll(&watched, 1, static_cast<int>(left)) <= 0)
            continue;
        const ssize_t count = ::read(child.output(), chunk.data(), chunk.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        text.append(chunk.data(), static_cast<std::size_t>(count));
    }
    if (const int status = child.waitStatus(); status != 0)
        return fail(endOf(status, command.words.front()));
    return text;
}

} // namespace memscape
