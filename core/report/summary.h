// SPDX-License-Identifier: Apache-2.0
// The report of a record, as words and tables without markup: the terminal, Markdown and HTML all use it, so they
// cannot differ.
#pragma once

#include "core/experiment/record.h"
#include "core/report/text_table.h"

#include <string>
#include <utility>
#include <vector>

namespace memscape {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

/// The record's own name, else "Access patterns · NVIDIA H200 SXM".
std::string recordTitle(const Record& record);

/// Null when the record is of an experiment this program does not know.
const Experiment* experimentOf(const Record& record);

/// Label and value of every parameter, for people; of a foreign experiment, key and JSON.
TextPairs parameterRows(const Record& record);
/// Those of them that say what the question was: the main ones, and what is not as usual.
TextPairs namedParameterRows(const Record& record);
/// The same in one line, without what is beyond the basic ones and as by default (isNamed); empty without any.
std::string parametersText(const Record& record);

/// figure | predicted | measured | error. Error is (predicted − measured) / measured; words agree or
/// differ. Only the sides that the record has. With a baseline also its value and by how much this record differs:
/// measured against measured where both have it, else predicted against predicted.
TextTable figuresTable(const Record& record, const Record* baseline = nullptr, ByteStyle style = ByteStyle::Binary);

/// The question answered with the record's figures, measured ones first; empty where the experiment has no answer.
std::string answerText(const Record& record);

/// The points of every series over the swept parameter, predicted and measured beside each other;
/// curves without any value are left out. One table per swept parameter (there is one, as a rule);
/// curves over anything else (a timeline) and single points have none.
std::vector<TextTable> seriesTables(const Record& record, ByteStyle style = ByteStyle::Binary);

/// series | points | median error | largest error; empty without both sides.
TextTable errorsTable(const Record& record);

/// Points of the sweep that are missing, a sentence each (core/experiment/gap_sentences.h).
std::vector<std::string> gapSentences(const Record& record);

/// The figure that the page is about: the first that carries a Why. Null without a prediction.
const Figure* headlineFigure(const Record& record);

/// symbol | value | what it is | where it comes from.
TextTable termsTable(const Why& why, ByteStyle style = ByteStyle::Binary);

/// "NVIDIA H200 SXM, from the catalogue": the basis of the prediction.
std::string basisText(const Device& device);

/// "grade B: the clock fell to 71 %"; empty when the measurement carries no grade.
std::string gradeText(const Record& record);

/// Provenance flattened to "clocks.sm" → "1980000000"; raw samples are counted, not listed.
TextPairs provenanceRows(const Record& record);

} // namespace memscape
