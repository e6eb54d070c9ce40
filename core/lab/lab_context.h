// SPDX-License-Identifier: Apache-2.0
// What the expressions of a lab mean for one student: the names of the variant, of values, predictions, runs and
// answers. Predictions are kept and shared by all students of a class, whose variants are few.
#pragma once

#include "core/lab/lab_attempt.h"

#include <mutex>

namespace memscape {

/// Predictions asked for by a lab, each made once. For several threads.
class LabPredictions
{
public:
    /// Errors: those of findDevice(), resolve() and predict().
    Result<std::shared_ptr<const Record>> get(const LabRequest& request, const std::string& device,
                                              const std::vector<std::pair<std::string, std::string>>& parameters);

private:
    std::mutex m_mutex;
    std::map<std::string, Device> m_devices;
    std::map<std::string, Result<std::shared_ptr<const Record>>> m_records;
};

/// Errors of names: lab.missing where the student has not measured or answered what is asked for. Both must outlive it.
class LabContext
{
public:
    LabContext(const LabAttempt& attempt, LabPredictions& predictions);

    const LabScope& scope() const { return m_scope; }
    /// A curve "run.latency": of a measure step the measured one, else the predicted one.
    Result<Series> curve(const std::string& name) const;
    /// What a step's student parameters or a prediction of the lab give.
    Result<std::shared_ptr<const Record>> predicted(const std::string& source) const;

private:
    Result<LabValue> name(const std::string& text) const;
    Result<LabValue> answerOf(const LabQuestion& question) const;
    Result<LabValue> figure(const std::string& source, const std::string& key) const;
    Result<LabValue> call(const std::string& function, const std::vector<LabValue>& arguments) const;
    Result<const Outcome*> outcome(const std::string& source, std::shared_ptr<const Record>& keep, bool measured) const;
    Result<const Record*> record(const std::string& source, std::shared_ptr<const Record>& keep) const;

    const LabAttempt& m_attempt;
    LabPredictions& m_predictions;
    LabScope m_scope;
    mutable std::map<std::string, LabValue> m_values;
    mutable int m_depth = 0;
};

/// y of a curve at x; between two points on a straight line of logarithms (of values where one is not positive).
/// Errors: lab.missing where the curve does not reach x.
Result<double> labCurveAt(const Series& series, const LabValue& x);

} // namespace memscape
