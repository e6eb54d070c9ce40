// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_report.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 6> gradeFormats{"text", "json", "csv", "autolab", "gradescope", "junit"};

/// Control characters of answers must not reach a terminal.
std::string plainLine(const std::string& text)
{
    std::string line;
    for (const char letter : text)
        line += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f ? ' ' : letter;
    return line;
}

std::string nameOfGrade(const LabGrade& grade)
{
    return plainLine(!grade.student.empty() ? grade.student : !grade.file.empty() ? grade.file : "(no name)");
}

std::string submissionText(const LabGrade& grade, bool showHidden)
{
    std::string text =
        fmt::format("{}{}\n", nameOfGrade(grade), grade.file.empty() ? "" : " (" + plainLine(grade.file) + ")");
    if (grade.problem)
        return text + fmt::format("  cannot be graded: {}\n", plainLine(grade.problem->text()));
    text += fmt::format("  {} of {} points, {} %", labPointsText(grade.points), labPointsText(grade.most),
                        labPointsText(grade.percent()));
    if (grade.byPerson > 0)
        text += fmt::format("; texts for up to {} points wait for a person", labPointsText(grade.byPerson));
    text += "\n";
    for (const LabStepResult& step : grade.steps) {
        if (step.most <= 0)
            continue;
        text += fmt::format("  {}: {} of {}\n", step.title, labPointsText(step.points), labPointsText(step.most));
        if (step.hintCost > 0)
            text += fmt::format("    {} hint{} cost {}\n", step.hints, step.hints == 1 ? "" : "s",
                                labPointsText(step.hintCost));
        for (const LabCheckResult& check : grade.checks) {
            if (check.step != step.id)
                continue;
            if (check.hidden && !showHidden) {
                text += fmt::format("    hidden check: {}\n", labVerdictText(check.verdict));
                continue;
            }
            text += fmt::format("    {}: {} ({} of {})", check.id, labVerdictText(check.verdict),
                                labPointsText(check.points), labPointsText(check.most));
            if (!check.message.empty())
                text += ": " + plainLine(check.message);
            text += "\n";
            if (check.verdict != LabVerdict::Passed && !check.actual.empty())
                text +=
                    fmt::format("      answered {}; right: {}\n", plainLine(check.actual), plainLine(check.expected));
            if (check.verdict != LabVerdict::Passed && !check.because.empty())
                text += fmt::format("      {}\n", plainLine(check.because));
        }
    }
    for (const LabTextAnswer& one : grade.texts)
        text += fmt::format("  to be read, up to {} points: {}\n    {}\n", labPointsText(one.most), plainLine(one.ask),
                            one.text.empty() ? "(no answer)" : plainLine(one.text));
    for (const std::string& flag : grade.flags)
        text += fmt::format("  look at: {}\n", plainLine(flag));
    return text;
}

Json gradeJson(const LabGrade& grade, bool showHidden)
{
    Json json{{"student", grade.student}, {"file", grade.file}};
    if (grade.problem) {
        json["problem"] = {{"code", grade.problem->code}, {"message", grade.problem->text()}};
        return json;
    }
    json["points"] = grade.points;
    json["most"] = grade.most;
    json["percent"] = grade.percent();
    json["by_person"] = grade.byPerson;
    Json steps = Json::array(), checks = Json::array(), texts = Json::array();
    for (const LabStepResult& step : grade.steps)
        steps.push_back({{"id", step.id},
                         {"points", step.points},
                         {"most", step.most},
                         {"hints", step.hints},
                         {"hint_cost", step.hintCost}});
    for (const LabCheckResult& check : grade.checks) {
        Json one{{"id", check.id},         {"kind", check.kind}, {"verdict", labVerdictText(check.verdict)},
                 {"points", check.points}, {"most", check.most}, {"hidden", check.hidden}};
        if (!check.hidden || showHidden) {
            one["expected"] = check.expected;
            one["actual"] = check.actual;
            one["message"] = check.message;
            one["because"] = check.because;
        }
        checks.push_back(std::move(one));
    }
    for (const LabTextAnswer& one : grade.texts)
        texts.push_back({{"question", one.question}, {"ask", one.ask}, {"text", one.text}, {"most", one.most}});
    json["steps"] = std::move(steps);
    json["checks"] = std::move(checks);
    json["texts"] = std::move(texts);
    json["flags"] = grade.flags;
    return json;
}

/// RFC 4180; a cell that a spreadsheet would take for a formula gets a quote in front.
std::string cell(std::string text)
{
    if (!text.empty() && std::string_view("=+-@\t").find(text.front()) != std::string_view::npos)
        text.insert(text.begin(), '\'');
    if (text.find_first_of("\",\r\n") == std::string::npos)
        return text;
    std::string quoted = "\"";
    for (const char letter : text)
        quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
    return quoted + "\"";
}

std::string gradesCsv(const Lab& lab, const std::vector<LabGrade>& grades)
{
    std::string text = "student,file,points,most,percent,by_person";
    for (const LabStep& step : lab.steps)
        for (const LabCheck& check : step.checks)
            text += "," + cell(check.id);
    text += ",hints,flags,problem\r\n";
    for (const LabGrade& grade : grades) {
        text += cell(grade.student) + "," + cell(grade.file);
        if (grade.problem) {
            text += std::string(4 + lab.checkCount() + 2, ',') + "," + cell(grade.problem->text()) + "\r\n";
            continue;
        }
        text += fmt::format(",{},{},{},{}", labPointsText(grade.points), labPointsText(grade.most),
                            labPointsText(grade.percent()), labPointsText(grade.byPerson));
        for (const LabCheckResult& check : grade.checks)
            text += "," + labPointsText(check.points);
        std::size_t hints = 0;
        for (const LabStepResult& step : grade.steps)
            hints += step.hints;
        text += fmt::format(",{},{},\r\n", hints, cell(join(grade.flags, "; ")));
    }
    return text;
}

std::string autolabText(const std::vector<LabGrade>& grades, bool showHidden)
{
    std::string text;
    for (const LabGrade& grade : grades) {
        Json stages = Json::array(), scores = Json::object();
        Json lines{{"_presentation", "semantic"}, {"stages", Json::array()}};
        for (const LabStepResult& step : grade.steps) {
            if (step.most <= 0)
                continue;
            stages.push_back(step.title);
            scores[step.id] = step.points;
            for (const LabCheckResult& check : grade.checks)
                if (check.step == step.id && (!check.hidden || showHidden)) {
                    Json one{{"passed", check.verdict == LabVerdict::Passed}};
                    if (check.verdict != LabVerdict::Passed)
                        one["hint"] = check.message;
                    lines[step.title][check.id] = std::move(one);
                }
        }
        if (grade.problem)
            scores["problem"] = 0;
        lines["stages"] = stages;
        text += submissionText(grade, showHidden) + jsonLine(lines) + "\n" + jsonLine({{"scores", scores}}) + "\n";
    }
    return text;
}

Json gradescopeJson(const LabGrade& grade, bool showHidden)
{
    if (grade.problem)
        return {{"score", 0}, {"output", grade.problem->text()}, {"tests", Json::array()}};
    Json tests = Json::array();
    for (std::size_t i = 0; i < grade.checks.size(); ++i) {
        const LabCheckResult& check = grade.checks[i];
        tests.push_back({{"name", check.id},
                         {"number", fmt::format("{}", i + 1)},
                         {"score", check.points},
                         {"max_score", check.most},
                         {"status", check.verdict == LabVerdict::Passed ? "passed" : "failed"},
                         {"output", check.message.empty() ? std::string(labVerdictText(check.verdict)) : check.message},
                         {"tags", Json::array({check.kind})},
                         {"visibility", check.hidden && !showHidden ? "hidden" : "visible"}});
    }
    return {{"score", grade.points}, {"output", join(grade.flags, "\n")}, {"tests", tests}};
}

std::string xmlText(const std::string& text)
{
    std::string out;
    for (const char letter : plainLine(text))
        switch (letter) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        default: out += letter;
        }
    return out;
}

std::string junitText(const Lab& lab, const std::vector<LabGrade>& grades, bool showHidden)
{
    std::string text =
        fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n", xmlText(lab.id));
    for (const LabGrade& grade : grades) {
        const auto count = [&](LabVerdict verdict) {
            return std::ranges::count_if(grade.checks,
                                         [&](const LabCheckResult& one) { return one.verdict == verdict; });
        };
        text += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"{}\">\n",
                            xmlText(nameOfGrade(grade)), grade.checks.size(), count(LabVerdict::Failed),
                            count(LabVerdict::Skipped), count(LabVerdict::Ungraded) + (grade.problem ? 1 : 0));
        if (grade.problem)
            text += fmt::format("    <system-err>{}</system-err>\n", xmlText(grade.problem->text()));
        for (const LabCheckResult& check : grade.checks) {
            const std::string said = check.hidden && !showHidden ? "hidden" : check.message;
            text += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xmlText(lab.id), xmlText(check.id));
            if (check.verdict == LabVerdict::Passed) {
                text += "/>\n";
                continue;
            }
            const char* tag = check.verdict == LabVerdict::Failed ? "failure"
                : check.verdict == LabVerdict::Skipped            ? "skipped"
                                                                  : "error";
            text += fmt::format("><{} message=\"{}\"/></testcase>\n", tag, xmlText(said));
        }
        text += "  </testsuite>\n";
    }
    return text + "</testsuites>\n";
}

} // namespace

Result<GradeFormat> gradeFormatFromText(std::string_view text)
{
    for (std::size_t i = 0; i < gradeFormats.size(); ++i)
        if (gradeFormats[i] == text)
            return GradeFormat(i);
    return fail("usage", fmt::format("there is no format \"{}\"", quotedForMessage(text)),
                didYouMean(text, {gradeFormats.begin(), gradeFormats.end()}));
}

std::string gradesReport(GradeFormat format, const Lab& lab, const std::vector<LabGrade>& grades, bool showHidden)
{
    switch (format) {
    case GradeFormat::Csv: return gradesCsv(lab, grades);
    case GradeFormat::Autolab: return autolabText(grades, showHidden);
    case GradeFormat::Gradescope: return jsonText(grades.empty() ? Json() : gradescopeJson(grades.front(), showHidden));
    case GradeFormat::Junit: return junitText(lab, grades, showHidden);
    case GradeFormat::Json: {
        Json all = Json::array();
        for (const LabGrade& grade : grades)
            all.push_back(gradeJson(grade, showHidden));
        return jsonText({{"lab", lab.id}, {"title", lab.title}, {"hash", lab.hash}, {"submissions", all}});
    }
    case GradeFormat::Text: break;
    }
    std::string text;
    for (const LabGrade& grade : grades)
        text += (text.empty() ? "" : "\n") + submissionText(grade, showHidden);
    return text;
}

} // namespace memscape
