// SPDX-License-Identifier: GPL-3.0-or-later
// A worker that does what workers may do wrong, one mode per program argument. No Qt and none of our
// code: what it prints is what another program could print.
//
//   ok [points]        a run of so many points (default 4), each sent twice, then done
//   slow               a point every 50 ms for ever; obeys cancel
//   crash              two points, then SIGSEGV            crash-once FILE  the same, but only once
//   crash-idle         hello, then exit 1 after 50 ms
//   hang               one point, then silence; obeys cancel
//   deaf               one point, then silence; ignores cancel, SIGTERM and the end of its input
//   flood [lines]      so many progress lines as fast as possible, then done
//   garbage            a point, then no JSON               noise     no JSON instead of hello
//   early              a run message before hello
//   half-done          done without a newline, then exits  half-line half a point, then exits
//   huge               a line of 16 MiB                    exit      a line on stderr, then exit 3
//   silent             never says hello                    version   says hello in version 99
//   skipped, failed    done with that status and an error
//   broken-result      done with a result that is no measurement
//   strange            unknown messages and fields, runs of other ids, CRLF, split writes, then ok
//   result FILE        a CPU that is described by the file; done, with the same as the result
//   environment        its environment on stderr, then ok
//   child              starts a child that ignores SIGTERM, then hangs; pids on stderr
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <poll.h>
#include <unistd.h>

namespace {

void say(const std::string& line)
{
    std::fputs((line + "\n").c_str(), stdout);
    std::fflush(stdout);
}

std::string lineOf(const char* file)
{
    std::string line;
    std::getline(std::ifstream(file), line);
    return line;
}

void hello(int version = 1, const std::string& description = "null")
{
    say(R"({"type":"hello","protocol":)" + std::to_string(version) + R"(,"worker":"0.0-fake","pid":)"
        + std::to_string(getpid()) + R"(,"devices":[{"id":"cpu","name":"Fake CPU","missing":"","description":)"
        + description
        + R"(},)"
          R"({"id":"cuda:0","name":"No GPU","missing":"no driver","description":null}]})");
}

/// A line of input, or nothing within the time (-1: for ever). Ends the program with the input.
bool hear(std::string& line, int milliseconds)
{
    static std::string rest;
    for (;;) {
        if (const auto end = rest.find('\n'); end != std::string::npos) {
            line = rest.substr(0, end);
            rest.erase(0, end + 1);
            return true;
        }
        pollfd input{0, POLLIN, 0};
        if (poll(&input, 1, milliseconds) <= 0)
            return false;
        char block[4096];
        const ssize_t count = read(0, block, sizeof block);
        if (count <= 0)
            std::exit(0);
        rest.append(block, static_cast<std::size_t>(count));
    }
}

long run = 0;
bool isForced = false; ///< the run came with "force"

std::string about(const char* type)
{
    return std::string(R"({"type":")") + type + R"(","id":)" + std::to_string(run);
}

void point(int x, double value)
{
    say(about("sample") + R"(,"key":"stride","x":)" + std::to_string(x)
        + R"(,"name":"","figures":{"useful_bandwidth":{"value":)" + std::to_string(value)
        + R"(,"unit":"B/s","label":"useful bandwidth"}},"detail":{"grade":"A"}})");
}

void progress(int done, int total)
{
    say(about("progress") + R"(,"done":)" + std::to_string(done) + R"(,"total":)" + std::to_string(total)
        + R"(,"label":"step"})");
}

std::string doneLine(const std::string& status, const std::string& more = {})
{
    return about("done") + R"(,"status":")" + status + R"(","elapsed":0.5)" + more + "}";
}

const char* const result =
    R"(,"result":{"figures":{"time":{"value":0.5,"unit":"s","label":"time"}},"series":[],"detail":{}},"provenance":{"backend":"fake"})";

void error(const char* status, const char* code)
{
    say(doneLine(status,
                 std::string(R"(,"error":{"code":")") + code + R"(","message":"it could not","hint":"do otherwise"})"));
}

/// Wait; a cancel ends the run properly.
void waitForCancel(int milliseconds)
{
    std::string line;
    if (hear(line, milliseconds) && line.find("\"cancel\"") != std::string::npos) {
        say(doneLine("cancelled"));
        run = 0;
    }
}

void whole(int points)
{
    for (int pass = 0; pass < 2; ++pass) {
        for (int x = 1; x <= points; ++x) {
            point(x, 1e9 * x + pass);
            progress(pass * points + x, 2 * points);
        }
    }
    say(doneLine("ok", result));
}

void spawnChild()
{
    std::signal(SIGTERM, SIG_IGN);
    const pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    std::fprintf(stderr, "child %d\n", static_cast<int>(child));
}

void strange()
{
    say(R"({"type":"weather","rain":true})");
    say(R"({"type":"progress","id":99999,"done":1,"total":2,"mood":"fine"})");
    say(R"({"type":"done","id":99999,"status":"ok"})");
    std::fputs((about("started") + "}\r\n").c_str(), stdout);
    const std::string line = about("note") + R"(,"level":"warning","code":"clock.throttled","text":"half )";
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
    usleep(20000);
    say(R"(and half"})");
    whole(2);
}

void answer(const std::string& mode, const char* argument)
{
    say(about("started") + "}");
    if (mode == "ok" || mode == "environment")
        whole(argument ? std::atoi(argument) : 4);
    else if (mode == "result")
        say(doneLine("ok", ",\"result\":" + lineOf(argument)));
    else if (mode == "strange")
        strange();
    else if (mode == "skipped")
        error("skipped", "run.skipped");
    else if (mode == "refuse" && isForced)
        whole(4);
    else if (mode == "failed" || mode == "refuse")
        error("failed", "run.memory");
    else if (mode == "broken-result")
        say(doneLine("ok", R"(,"result":{"figures":[1,2,3]})"));
    else if (mode == "crash" || mode == "crash-once") {
        if (mode == "crash-once" && access(argument, F_OK) == 0) {
            whole(4);
            return;
        }
        if (mode == "crash-once")
            std::fclose(std::fopen(argument, "w"));
        point(1, 1e9);
        point(2, 2e9);
        std::fprintf(stderr, "illegal address\n");
        std::raise(SIGSEGV);
    } else if (mode == "killed") {
        point(1, 1e9);
        std::raise(SIGKILL);
    } else if (mode == "flood") {
        const int lines = argument ? std::atoi(argument) : 500000;
        for (int i = 1; i <= lines; ++i)
            std::printf("%s,\"done\":%d,\"total\":%d}\n", about("progress").c_str(), i, lines);
        say(doneLine("ok", result));
    } else if (mode == "garbage") {
        point(1, 1e9);
        say("Segmentation violation in module {");
    } else if (mode == "half-done" || mode == "half-line") {
        point(1, 1e9);
        const std::string last = mode == "half-done" ? doneLine("ok", result) : about("sample") + ",\"ke";
        std::fputs(last.c_str(), stdout);
        std::exit(0);
    } else if (mode == "huge") {
        point(1, 1e9);
        say(std::string(16u << 20, 'x'));
    } else if (mode == "slow") {
        for (int x = 1; run != 0; ++x) {
            point(x, 1e9);
            waitForCancel(50);
        }
    } else { // hang, deaf, child
        if (mode == "child")
            spawnChild();
        point(1, 1e9);
        while (run != 0) {
            if (mode == "hang")
                waitForCancel(-1);
            else
                pause();
        }
    }
}

} // namespace

int main(int count, char** arguments)
{
    const std::string mode = count > 1 ? arguments[1] : "ok";
    const char* argument = count > 2 ? arguments[2] : nullptr;
    if (mode == "deaf")
        std::signal(SIGTERM, SIG_IGN);
    if (mode == "exit") {
        std::fprintf(stderr, "Permission denied (publickey).\n");
        return 3;
    }
    if (mode == "environment") {
        for (const char* name : {"LC_ALL", "LD_LIBRARY_PATH"})
            std::fprintf(stderr, "%s=%s\n", name, std::getenv(name) ? std::getenv(name) : "(unset)");
    }
    if (mode == "noise")
        say("Welcome to lab-gpu! Today is a good day.");
    if (mode == "early")
        say(R"({"type":"started","id":1})");
    if (mode != "silent")
        hello(mode == "version" ? 99 : 1, mode == "result" ? lineOf(argument) : "null");
    if (mode == "crash-idle") {
        usleep(50000);
        return 1;
    }
    std::string line;
    while (hear(line, -1)) {
        if (line.find("\"quit\"") != std::string::npos)
            return 0;
        if (line.find("\"run\"") == std::string::npos)
            continue;
        run = std::atol(line.c_str() + line.find("\"id\":") + 5);
        isForced = line.find("\"force\":true") != std::string::npos;
        answer(mode, argument);
    }
}
