// SPDX-License-Identifier: Apache-2.0
// The commands, one file each. Every one prints its result on standard output and its messages on
// standard error, and answers with the exit code.
#pragma once

#include "app/cli/arguments.h"
#include "core/experiment/experiment.h"

namespace memscape::cli {

int runList(const Arguments& arguments);
int runDevices(const Arguments& arguments);
int runDescribe(const Arguments& arguments);
int runClaims(const Arguments& arguments);
int runAccuracy(const Arguments& arguments);
int runPredict(const Arguments& arguments);
int runMeasure(const Arguments& arguments);
int runCalibrate(const Arguments& arguments);
int runReport(const Arguments& arguments);
int runSnapshot(const Arguments& arguments);
int runCompare(const Arguments& arguments);
int runCheck(const Arguments& arguments);
int runLab(const Arguments& arguments);
int runGrade(const Arguments& arguments);
int runSelftest(const Arguments& arguments);
int runWorkerCommand(const Arguments& arguments);

/// The parameters of an experiment with range, default and help, for describe and --help.
std::string parametersText(const Experiment& experiment);

} // namespace memscape::cli
