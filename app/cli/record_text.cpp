// SPDX-License-Identifier: Apache-2.0
// A record for a person at a terminal: what was asked, the figures beside each other, why the
// headline is what it is, the points.
#include "app/cli/output.h"
#include "core/experiment/probed_links.h"
#include "core/report/memory_tables.h"
#include "core/report/summary.h"

#include <fmt/format.h>

namespace memscape::cli {

namespace {

/// The question answered, of what was measured where it was.
std::string answerText(const Experiment& experiment, const Record& record)
{
    if (!record.predicted)
        return {};
    const Figures& predicted = record.predicted->figures;
    return experiment
        .shortAnswer(record.device, record.parameters,
                     record.measured ? measuredFirst(predicted, record.measured->figures) : predicted)
        .sentence;
}

std::string headText(const Record& record)
{
    std::string out = printable(recordTitle(record)) + "\n";
    if (const Experiment* experiment = experimentOf(record)) {
        out += experiment->question() + "\n";
        if (const std::string answer = answerText(*experiment, record); !answer.empty())
            out += printable(answer) + "\n";
    }
    if (const std::string parameters = parametersText(record); !parameters.empty())
        out += printable(parameters) + "\n";
    return out + "\n";
}

std::string whyText(const Figure& figure)
{
    const Why& why = *figure.why;
    std::string out = fmt::format("\nWhy {} is {}\n", figure.label, figure.text());
    for (const std::string& line : {why.formula, why.with})
        if (!line.empty())
            out += "  " + printable(line) + "\n";
    if (!why.terms.empty())
        out += alignedText(termsTable(why), 2);
    if (!why.source.empty())
        out += "  Source: " + printable(why.source) + "\n";
    for (const std::string& sentence : why.omits)
        out += "  Left out: " + printable(sentence) + "\n";
    return out;
}

} // namespace

std::string recordText(const Record& record)
{
    std::string out = headText(record) + alignedText(figuresTable(record));
    if (const std::string verdict = verdictText(record); !verdict.empty())
        out += "\n" + printable(verdict) + "\n";
    for (const NamedTable& one : memoryTables(record))
        out += "\n" + one.title + "\n" + alignedText(one.table, 2);
    if (const Figure* figure = headlineFigure(record))
        out += whyText(*figure);
    for (const TextTable& table : seriesTables(record))
        out += "\n" + alignedText(table);
    for (const std::string& gap : gapSentences(record))
        out += "\n" + printable(gap) + "\n";
    if (const TextTable errors = errorsTable(record); !errors.empty())
        out += "\n" + alignedText(errors);
    if (const std::string probed = probedText(record.measured); !probed.empty())
        out += "\n" + printable(probed) + "\n";
    out += "\nPrediction: " + printable(basisText(record.device)) + "\n";
    if (record.measured) {
        const std::string grade = gradeText(record);
        out += "Measurement: " + printable(grade.empty() ? "no grade" : grade) + "\n";
    }
    return out;
}

} // namespace memscape::cli
