// SPDX-License-Identifier: Apache-2.0
// Answers of a student (*.mlab) to a shipped lab with every kind of step: read, graded, shown, written back.
#include "core/lab/lab_report_page.h"
#include "tests/fuzz/target.h"

#include <memory>

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const auto lab = findLab("cache-size");
    fuzz::promise(lab.has_value(), "the shipped lab can be read");
    static auto predictions = std::make_unique<LabPredictions>();
    static int count = 0;
    if (++count % 1000 == 0) // parameters of the student's choice would fill the memory
        predictions = std::make_unique<LabPredictions>();
    const std::string text(fuzz::text(data, size));
    const auto attempt = LabAttempt::parse(*lab, text);
    fuzz::errorIsClear(attempt);
    if (!attempt)
        return 0;
    fuzz::readsBack(
        *parseJson(text), [](const Json& one) { return LabAttempt::parse(*lab, jsonLine(one)); },
        [](const LabAttempt& one) { return one.toJson(); });
    const auto grade = gradeLab(*attempt, *predictions);
    fuzz::promise(grade.has_value(), "no answer breaks the lab");
    fuzz::promise(grade->points >= 0 && grade->points <= grade->most, "points lie between none and all");
    fuzz::promise(!labAnswersHtml(*attempt, *grade, *predictions).empty(), "answers have a page");
    return 0;
}
