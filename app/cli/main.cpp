// SPDX-License-Identifier: Apache-2.0
// memscape-cli: everything but the window. No Qt, no display, no locale.
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/out_of_memory.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

namespace {

using namespace memscape::cli;

struct Command
{
    std::string_view name;
    int (*run)(const Arguments&);
};

constexpr std::array commands{
    Command{"list", runList},       Command{"devices", runDevices},   Command{"describe", runDescribe},
    Command{"predict", runPredict}, Command{"measure", runMeasure},   Command{"calibrate", runCalibrate},
    Command{"report", runReport},   Command{"check", runCheck},       Command{"snapshot", runSnapshot},
    Command{"compare", runCompare}, Command{"claims", runClaims},     Command{"lab", runLab},
    Command{"grade", runGrade},     Command{"selftest", runSelftest}, Command{"worker", runWorkerCommand},
    Command{"accuracy", runAccuracy},
};

int run(int argc, char** argv)
{
    const auto parsed = parseArguments(argc, argv);
    if (const auto* answered = std::get_if<Answered>(&parsed))
        return finishedOutput(answered->exitCode);
    const auto& arguments = std::get<Arguments>(parsed);
    if (!arguments.python.empty()) // also for the workers that this program starts
        ::setenv("MEMSCAPE_PYTHON", arguments.python.c_str(), 1);
    for (const Command& command : commands) {
        if (command.name == arguments.command)
            return finishedOutput(command.run(arguments));
    }
    return static_cast<int>(memscape::ExitCode::BadInput);
}

} // namespace

int main(int argc, char** argv)
{
    // A reader that goes away and a file that grows past a limit are errors of one write, not ends
    // of the program: a measurement in progress is still worth keeping.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    memscape::endClearlyWithoutMemory("memscape-cli");
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        complain({"memory", "out of memory", {}, "use fewer points or a smaller file"});
    } catch (const std::system_error& problem) {
        complain({"internal",
                  "the system could not start a thread or open a file: " + problem.code().message(),
                  {},
                  "allow more threads or memory (ulimit -a), or close other programs"});
    } catch (const std::exception&) {
        complain({"internal", "internal error of memscape-cli", {}, "try again with other parameters"});
    }
    return static_cast<int>(memscape::ExitCode::Failed);
}
