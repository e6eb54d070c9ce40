// SPDX-License-Identifier: Apache-2.0
// The command line as a value. Everything that knows CLI11 is in arguments.cpp; a command sees only
// this. The names of commands and flags are a contract: other people's scripts test them.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace memscape::cli {

struct Arguments
{
    std::string command; ///< "predict"
    std::string experiment;
    std::vector<std::string> assignments; ///< "stride=4", as given
    std::string device;                   ///< empty: not given
    std::string python;                   ///< that measures with PyTorch; empty: not given
    std::vector<std::string> files;
    std::string format;  ///< of a report, or of a snapshot's export
    std::string range;   ///< of a snapshot: "1200:2400"; empty: all
    std::string snippet; ///< of a prediction: "pytorch", "deepspeed"; empty: the prediction itself
    std::string source;  ///< of claims: "vram-bottleneck"; empty: all
    std::string title;
    std::string output;    ///< -o; empty: not given, "-": standard output
    std::string action;    ///< of lab: "list", "show" …
    std::string student;   ///< of lab: a name; empty: not given
    std::string record;    ///< of lab answer: the file of a run
    std::string study;     ///< of lab start: the file of its first pages; empty: not given
    std::string labFolder; ///< of grade: the lab; of lab answer: where the lab lies that the answers name
    std::string show;      ///< of grade: "hidden"
    double failUnder = -1; ///< of grade: percent; −1: not given
    std::size_t jobs = 0;  ///< of grade; 0: as many as cores
    bool forStudents = false, solution = false, lock = false, replay = false, hint = false; ///< of lab
    bool questions = false; ///< of claims: the deep questions in place of the table
    bool everyRow = false;  ///< of accuracy: each row, not the families alone
    bool json = false;
    bool events = false;
    bool comments = false;
    bool anyway = false; ///< keep a calibration of grade D
    bool forget = false; ///< the calibration
    bool force = false;  ///< measure what is predicted not to fit
};

/// Nothing to run: the text was printed (help, version, a usage error) and this is the exit code.
struct Answered
{
    int exitCode = 0;
};

std::variant<Arguments, Answered> parseArguments(int argc, char** argv);

} // namespace memscape::cli
