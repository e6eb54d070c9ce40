// SPDX-License-Identifier: Apache-2.0
// The central interface. An Experiment is a question about memory or time: an id, a title, the question, a typed
// parameter schema, and predict(). Where a machine can answer it, kernels/ holds a measurement under
// the same id. An experiment says what happens at one point; the sweep, the series, the record, the
// form, the flags and the exports are made from that here, once.
//
// To add one: a file in core/experiments/, a line in core/experiments/common/registry.cpp, one file per
// backend in kernels/, one test; a picture in app/pictures/ when a curve is not enough.
#pragma once

#include "core/device/device.h"
#include "core/experiment/answer.h"
#include "core/experiment/outcome.h"
#include "core/experiment/parameter.h"

#include <any>
#include <string>
#include <vector>

namespace memscape {

/// A claim of a textbook or course, with our number beside it.
struct Claim
{
    std::string quote;   ///< "Coalescing efficiency = requested / transferred"
    std::string source;  ///< "Device management and memory theory, course notes"
    std::string verdict; ///< "holds", "holds when …", "does not hold"
    std::string ours;    ///< our number, in words, computed for this device and these parameters
    std::string id = {}; ///< of the table in resources/claims/; empty: the words are the experiment's own
};

/// [{"quote","source","verdict","ours"}…], with "id" where there is one.
Json claimsJson(const std::vector<Claim>& claims);

/// Lines for another program that do what the parameters say: PyTorch, a configuration of DeepSpeed.
struct Snippet
{
    std::string key;                     ///< "pytorch", "deepspeed"
    std::string label;                   ///< "PyTorch lines"
    std::string text;                    ///< whole lines
    std::vector<std::string> notes = {}; ///< what its language has no words for, a sentence each
};

/// What a caller that asks an experiment again and again (a slider is dragged) lends to each of the
/// questions: what one answer leaves for the next. For one thread at a time.
struct PredictionContext
{
    std::any kept = {}; ///< the experiment's own; another experiment's is replaced
};

class Experiment
{
public:
    virtual ~Experiment() = default;

    virtual std::string id() const = 0;       ///< "stride"; the same word everywhere
    virtual std::string title() const = 0;    ///< "Access patterns"
    virtual std::string question() const = 0; ///< one sentence
    virtual std::string group() const = 0;    ///< "hardware", "tensors", "training", "kernels", "learn"
    virtual std::string help() const = 0;     ///< a paragraph: what is modelled, what is left out

    /// Why no machine is asked: a sentence. Empty where kernels/ measures it.
    virtual std::string notMeasured() const { return {}; }
    /// The same of a kind of device: what it lacks, and where to go instead. Empty where it can be asked.
    virtual std::string notMeasuredOn(const Device& device) const;
    /// Whether PyTorch is asked, too, on the devices that have it.
    virtual bool isMeasuredInPytorch() const { return false; }
    /// Whether its bytes are working sets in the levels of the device's memory, whose rates bound its own.
    virtual bool isThroughMemory(const Device&) const { return true; }

    virtual const Schema& schema() const = 0;
    /// Parameters of which no other value changes a figure or a curve on that device while the rest
    /// stays as it is: it means nothing there, or would be refused. A form leaves them out.
    virtual std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const;
    /// What differs from the schema's defaults where a page of that device is opened; see
    /// standardParameters().
    virtual ParameterTexts standardOn(const Device&) const { return {}; }
    /// What the values that were given imply for those that were not: a model's positions bound its tokens. See
    /// askedParameters().
    virtual ParameterTexts implied(const Parameters&) const { return {}; }
    /// The figures that a page keeps in sight, most important first; see headlineFigures().
    virtual std::vector<std::string> headlines() const { return {}; }
    /// question() answered from these figures (measured ones where they are there): see answer.h.
    /// Empty where they do not say.
    virtual ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures&) const { return {}; }
    /// What a page offers to copy for these parameters.
    virtual std::vector<Snippet> snippets(const Device&, const Parameters&) const { return {}; }
    /// Which figures become curves; the first is the headline.
    virtual std::vector<SeriesSpec> series() const = 0;
    /// The sweep of the curve when the user gave none: the parameter, and its values for this device
    /// and these parameters (the current value of the parameter is put in where it is missing).
    virtual Sweep axis(const Device& device, const Parameters& parameters) const = 0;

    /// The figures at one point (no sweep), each with its Why. Pure: same input, same answer.
    /// Errors: predict.* with a hint when the device lacks what the model needs.
    virtual Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const = 0;

    /// What is special to the experiment, for `detail` of the prediction: an object.
    virtual Json predictDetail(const Device& device, const Parameters& parameters) const;
    /// Verdicts are drawn from numbers: the measured ones where `measured` has them (it is empty
    /// where nothing was measured), else the predicted ones.
    virtual std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                                      const Measurement& measured = {}) const;

    /// The whole prediction: figures at the parameters' own values, series over the sweep. An
    /// experiment overrides it when its curves are not over a parameter (a timeline), when the
    /// figures, the detail and the curves come from one simulation, or when it takes long: `context`
    /// holds what the last answer left for this one.
    virtual Result<Prediction> predict(const Device& device, const Parameters& parameters,
                                       PredictionContext& context) const;
    Result<Prediction> predict(const Device& device, const Parameters& parameters) const;
};

/// What a command or a link asks for: what it assigns, what that implies, and the schema's defaults.
Result<Parameters> askedParameters(const Experiment& experiment, const std::vector<std::string>& assignments);
/// `now` with another value of `key`, as a page's form changes it: what was implied follows, and so does what is as the
/// schema has it; what else was said stays, also where it is the schema's default in place of what is implied.
Result<Parameters> changedWithImplied(const Experiment& experiment, const Parameters& now, const std::string& key,
                                      const std::string& text);
/// The parameters that a page of that device opens with.
Parameters standardParameters(const Experiment& experiment, const Device& device);
/// The same with some of them assigned: the first of standardOn() decides whether the others of it hold.
Result<Parameters> standardParameters(const Experiment& experiment, const Device& device,
                                      const std::vector<std::string>& assignments);

/// At most four figures that answer the question: those of headlines() that are there and say
/// something, then the first others.
std::vector<const Figure*> headlineFigures(const Experiment& experiment, const Figures& figures);

/// The points that a prediction and a measurement of these parameters both cover: the user's sweep,
/// else the experiment's axis with the current value put in (sorted).
Sweep sweepOf(const Experiment& experiment, const Device& device, const Parameters& parameters);

/// The x axis of the curves for that sweep.
SeriesAxis axisOf(const Experiment& experiment, const Sweep& sweep);

/// An outcome from the points of the sweep: what predict() and every backend end with. The figures
/// are those of the point whose value is the parameters' own.
Outcome outcomeFromPoints(const Experiment& experiment, const Device& device, const Parameters& parameters,
                          std::vector<Point> points);

// core/experiments/common/registry.cpp: an explicit list, in the order of the rail.
const std::vector<const Experiment*>& experiments();
/// Errors: experiment.unknown with near names.
Result<const Experiment*> findExperiment(std::string_view id);

} // namespace memscape
