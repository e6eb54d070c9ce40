// SPDX-License-Identifier: Apache-2.0
// The question of an experiment answered in a sentence, and what would change the answer most. The
// experiment makes the sentence of its figures and names the figure that matters and the parameters
// that a user may move; what each of them brings is found by asking the model again with that one
// changed (half, double, another choice, a value that the experiment names), never from a list of advice.
// Left out: two parameters changed together.
#pragma once

#include "core/base/quantity.h"
#include "core/experiment/parameter.h"

#include <string>
#include <utility>
#include <vector>

namespace memscape {

class Experiment;
struct Device;

struct ShortAnswer
{
    std::string sentence = {};           ///< "1 of 4 bytes that move is used: …"; empty: no answer
    std::string figure = {};             ///< key of the figure that matters; empty where none is better than another
    bool wantsMore = false;              ///< the figure is better when larger
    std::vector<std::string> knobs = {}; ///< keys of the parameters that may be moved
    /// Of a knob a value to try beside half and double: what the model finds best.
    std::vector<std::pair<std::string, double>> tries = {};
};

/// One parameter changed, and what the figure becomes.
struct Improvement
{
    std::string parameter; ///< its key
    std::string value;     ///< text that parses
    std::string label;     ///< "stride 2 elements"
    std::string after;     ///< the figure then, "2.22 TB/s"
    double factor = 1;     ///< how many times better the figure becomes, more than 1
};

/// Of each knob the change that improves the figure most, the best first; those that bring less than
/// 2 % or that the experiment refuses are left out. `now` holds the predicted figures of `parameters`. Ends
/// early, with what it has, when the answer is not wanted any more (core/base/cancellation.h).
std::vector<Improvement> improvements(const Experiment& experiment, const Device& device, const Parameters& parameters,
                                      const Figures& now, ByteStyle bytes = ByteStyle::Binary);

/// The figures of `predicted`, each replaced by the measured one of the same key where that is a number or a word.
Figures measuredFirst(const Figures& predicted, const Figures& measured);

} // namespace memscape
