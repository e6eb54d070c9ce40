// SPDX-License-Identifier: Apache-2.0
// Another program beside this one: its input and output are pipes, its errors go where ours go. It is the leader of a
// process group of its own, so that Ctrl+C is ours to pass on, and the whole group is killed and waited for when it
// goes: no orphans, also of what the program started itself.
#pragma once

#include "core/base/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace memscape {

struct ChildCommand
{
    std::vector<std::string> words; ///< the program (a path, or a name looked up in PATH) and its arguments
    std::vector<std::pair<std::string, std::string>> environment = {}; ///< on top of ours
    bool isQuiet = false;                                              ///< what it writes to standard error is dropped
};

class ChildProcess
{
public:
    ChildProcess() = default;
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess();

    /// Errors: run.failed, when the system does not start it.
    Result<void> start(const ChildCommand& command);
    /// What cannot be written, because it has gone, is dropped: its end is read.
    void send(std::string_view text) const;
    void closeInput();
    int output() const { return m_output; }
    void kill() const;
    /// How it ended, as waitpid() reports it.
    int waitStatus();

private:
    pid_t m_process = 0;
    int m_input = -1, m_output = -1; ///< our ends
};

/// What a program says on standard output, at most `limit` bytes, without input. Errors: run.failed when it cannot be
/// started or ends with another code than 0, run.hung when it has not ended after `seconds` (it is killed).
Result<std::string> outputOf(const ChildCommand& command, double seconds, std::size_t limit = 65536);

/// In a sentence, of a process that should not have ended. Codes: run.memory when the system killed it, else
/// run.failed.
Error endOf(int status, const std::string& what);

} // namespace memscape
