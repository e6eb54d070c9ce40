// SPDX-License-Identifier: Apache-2.0
#include "app/cli/console_sink.h"

#include "app/cli/output.h"
#include "core/protocol/message.h"
#include "core/report/text_table.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace memscape::cli {

namespace {

constexpr std::int64_t runId = 1; // one run a process

volatile std::sig_atomic_t interruptCount = 0;

void onInterrupt(int)
{
    interruptCount = interruptCount + 1;
}

} // namespace

InterruptGuard::InterruptGuard()
{
    interruptCount = 0;
    struct sigaction action
    { };
    action.sa_handler = onInterrupt;
    action.sa_flags = SA_RESETHAND; // the second one has its usual effect
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

InterruptGuard::~InterruptGuard()
{
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::interrupted()
{
    return interruptCount > 0;
}

ConsoleSink::ConsoleSink(bool events)
    : m_events(events)
    , m_bar(!events && ::isatty(STDERR_FILENO) == 1)
{
    if (m_events)
        printOut(protocol::encode(protocol::Event(protocol::Started{runId})));
}

ConsoleSink::~ConsoleSink()
{
    clearBar();
}

void ConsoleSink::clearBar()
{
    if (m_drawn)
        std::fputs("\r\033[K", stderr);
    m_drawn = false;
}

void ConsoleSink::progress(int done, int total, const std::string& label)
{
    if (m_events)
        printOut(protocol::encode(protocol::Event(protocol::Progress{runId, done, total, label})));
    const auto now = Clock::now();
    if (!m_bar || total <= 0 || (m_drawn && now - m_lastDrawn < std::chrono::milliseconds(100)))
        return;
    constexpr int width = 24;
    const int filled = std::clamp(static_cast<int>(static_cast<long>(done) * width / total), 0, width);
    const std::string bar = fmt::format("\r\033[K[{}{}] {}/{} {}", std::string(filled, '#'),
                                        std::string(width - filled, '.'), done, total, printable(label).substr(0, 40));
    std::fputs(bar.c_str(), stderr);
    std::fflush(stderr);
    m_drawn = true;
    m_lastDrawn = now;
}

void ConsoleSink::point(const std::string& sweepKey, const Point& point)
{
    if (m_events)
        printOut(protocol::encode(protocol::Event(protocol::Sample{runId, sweepKey, point})));
    const auto same = std::ranges::find_if(
        m_points, [&point](const Point& other) { return other.x == point.x && other.name == point.name; });
    if (same != m_points.end())
        *same = point; // the newest has the most samples in it
    else
        m_points.push_back(point);
}

void ConsoleSink::note(const std::string& level, const std::string& code, const std::string& text)
{
    if (m_events) {
        printOut(protocol::encode(protocol::Event(protocol::Note{runId, level, code, text})));
        return;
    }
    clearBar();
    cli::note(level == "info" ? text : level + ": " + text);
}

bool ConsoleSink::cancelled() const
{
    return InterruptGuard::interrupted() || (m_events && outputGone());
}

} // namespace memscape::cli
