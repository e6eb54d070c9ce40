// SPDX-License-Identifier: Apache-2.0
// An experiment in tests, asked as a command asks it: a device, parameters in words, the key of a figure.
#pragma once

#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QtGlobal>

#include <cmath>
#include <string>
#include <vector>

namespace memscape::test {

/// NaN where there is no such figure.
inline double numberIn(const Figures& figures, std::string_view key)
{
    const Figure* figure = findFigure(figures, key);
    return figure ? figure->number() : nan;
}
inline double numberIn(const Outcome& outcome, std::string_view key)
{
    return numberIn(outcome.figures, key);
}

/// At most `share` of `expected` apart.
inline bool isWithin(double found, double expected, double share)
{
    return std::fabs(found / expected - 1) <= share;
}

class AskedExperiment
{
public:
    constexpr explicit AskedExperiment(const char* id)
        : m_id(id)
    { }
    const Experiment& operator*() const { return **findExperiment(m_id); }
    const Experiment* operator->() const { return *findExperiment(m_id); }

    /// Words that are refused end the program.
    Parameters with(const std::vector<std::string>& assignments) const
    {
        auto parameters = resolve((*this)->schema(), assignments);
        if (!parameters)
            qFatal("%s", parameters.error().text().c_str());
        return *parameters;
    }
    /// Errors: those of the words, then of the prediction.
    Result<Figures> figures(const Device& device, const std::vector<std::string>& assignments) const
    {
        MEMSCAPE_TRY(parameters, resolve((*this)->schema(), assignments));
        return (*this)->predictPoint(device, parameters);
    }
    Result<Prediction> predict(const std::vector<std::string>& assignments, const char* device = "nvidia-h200") const
    {
        MEMSCAPE_TRY(parameters, resolve((*this)->schema(), assignments));
        return (*this)->predict(*findDevice(device), parameters);
    }
    /// NaN where it is refused.
    double number(const Device& device, const std::vector<std::string>& assignments, std::string_view key) const
    {
        const auto found = figures(device, assignments);
        return found ? numberIn(*found, key) : nan;
    }
    double number(const char* device, const std::vector<std::string>& assignments, std::string_view key) const
    {
        return number(*findDevice(device), assignments, key);
    }

private:
    const char* m_id;
};

} // namespace memscape::test
