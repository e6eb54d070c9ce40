// SPDX-License-Identifier: Apache-2.0
// precision, operation=train, as a sweep's points (sweep_run.h): the same steps on the same batches in FP32 and in the
// format, in turn, so that both meet the same machine; in FP16 a third time without loss scaling. Gradients are counted
// by magnitude in the FP32 run. One code for every machine; what differs is in TrainingMachine.
#pragma once

#include "kernels/measure/backend.h"
#include "kernels/programs/training-memory/taken_training.h"

#include <memory>
#include <optional>
#include <string>

namespace memscape {

/// The implementation of products in a format, and its devices.
struct TrainingProducts
{
    AmpDeviceFactory devices;
    std::string name;
    Json tried; ///< FLOP/s by name, where there was a choice; else null
};

/// A machine that trains, during one run.
class TrainingMachine
{
public:
    virtual ~TrainingMachine() = default;
    virtual const Device& device() const = 0;
    virtual RunSink& sink() = 0;
    /// Errors: run.skipped where no library multiplies in the format, check.failed.
    virtual Result<TrainingProducts> products(Format format) = 0;
    /// From here on what disturbs a run is watched; look() is called after every step of all courses.
    virtual void beginWatch() = 0;
    virtual void look() { }
    virtual RunConditions seen(std::size_t samples) = 0;
    virtual Json method() const = 0; ///< beside the products
    /// What the machine's own conversion makes of a value; nothing where it has none.
    virtual std::optional<Figure> stored(Format format, double value) = 0;
};

/// A run of steps for every point; both must outlive it. Errors of visits: run.skipped for formats that are not trained
/// in, run.memory, check.failed, run.cancelled, where the steps from the second on are kept.
std::unique_ptr<PointMeasurer> makeTrainingMeasurer(TrainingMachine& machine, const Experiment& experiment,
                                                    const Parameters& parameters);

} // namespace memscape
