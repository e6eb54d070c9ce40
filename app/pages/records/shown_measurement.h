// SPDX-License-Identifier: GPL-3.0-or-later
// Which measurement stands beside a prediction, and whether it answers the same question.
#pragma once

#include "app/document/study_document.h"
#include "app/pages/run_controller.h"
#include "core/experiment/probed_links.h"

#include <optional>

namespace memscape {

struct ShownMeasurement
{
    std::optional<Measurement> outcome;
    std::optional<ProbedRun> probed; ///< what the model says with the links as its run found them
    int recordIndex = -1;            ///< in the study; −1 while points are arriving
    bool live = false;               ///< points are arriving
    QString incomplete;              ///< "stopped": its run did not come to its end; empty of a whole one
    bool elsewhere = false;          ///< other parameters or another device than the page's
    Device device;
    Parameters parameters;
};

/// In this order: points that are arriving; the chosen record; the newest record that answers the
/// same question; the newest of this experiment and device with other parameters; none.
ShownMeasurement shownMeasurement(const StudyDocument& document, const RunController& runs,
                                  const Experiment& experiment, const Device& device, const Parameters& parameters,
                                  int chosen);

} // namespace memscape
