// SPDX-License-Identifier: Apache-2.0
// What would help: every lever is the step simulated again with one thing changed, never a factor.
//
// A lever is a change of parameters. Its saving is the difference of the device totals, its cost the
// difference of the predicted step times. `makeItFit` tries combinations: the states of optimizer and
// sharding do not change the forward and backward passes, so each pass is simulated once and combined with
// each optimizer by addition; what it proposes is then simulated whole, allocator and all.
//
// Left out: quality of the result (8-bit states, adapters change what is trained; the label says so).
#pragma once

#include "core/experiments/training-memory/training_memory.h"

#include <array>
#include <utility>

namespace memscape {

using Changes = std::vector<std::pair<std::string, std::string>>; ///< parameter and text that parses

struct Lever
{
    std::string key;    ///< "checkpointing=block": its changes, joined by ';'
    std::string label;  ///< "Checkpoint every block"
    std::string actsOn; ///< "activations", "optimizer state", "weights", …
    std::string why;    ///< what it does, one sentence
    Changes changes;
    bool keepsTraining = true; ///< false: it trains something else (adapters) or with other arithmetic
};

struct LeverOutcome
{
    Lever lever;
    std::int64_t peak = 0;                              ///< B allocated
    std::int64_t device = 0;                            ///< B, device total
    std::int64_t saving = 0;                            ///< B of the device total; positive is less
    std::array<std::int64_t, phaseCount> phaseSaving{}; ///< B of the most that is alive in each phase; by leversAt()
    double seconds = 0;
    double timeChange = 0; ///< share of the step time, +0.31 is slower
    bool fits = false;
};

/// Its memory is the host's: what is kept "on the host" is kept in it.
bool isHostMemory(const Device& device);

/// The changes that make sense for these parameters on that device; those already in force are left out.
std::vector<Lever> leversFor(const Device& device, const Parameters& parameters);

/// Parameters with the changes applied. Errors: parameter.*.
Result<Parameters> changed(const Parameters& parameters, const Changes& changes);

/// The order in which changes are best asked: those that share a network one after the other, the network of `answer`
/// first. A recorded network of many experts is kept no longer than until the next one.
std::vector<std::size_t> orderByNetwork(const Device& device, const Parameters& parameters,
                                        const TrainingAnswer& answer, const std::vector<Changes>& changes);

/// Whether what lives between steps is alone more than the device has, as far as that can be said without a simulation:
/// of the parameters of the network of `answer`, kept as the plan of `parameters` keeps them.
bool keepsTooMuch(const Device& device, const Parameters& parameters, const TrainingAnswer& answer);

/// How many steps like that of `answer` are simulated at the same time: one on each core, fewer where they are large.
std::size_t stepsAtOnce(const TrainingAnswer& answer);

/// What a change brings: the step after it against the step before.
LeverOutcome leverOutcome(Lever lever, const TrainingAnswer& now, const TrainingAnswer& then);

/// Each lever simulated, those that save nothing left out, best saving first. Each is told as soon as it is known
/// (FoundScope), as an element of `levers` of the detail.
std::vector<LeverOutcome> tryLevers(const Device& device, const Parameters& parameters, const TrainingAnswer& answer);

/// The levers that lower the most that is alive in a phase (else the device total), best first. Errors: those of
/// answerTraining(), predict.cancelled.
Result<std::vector<LeverOutcome>> leversAt(const Device& device, const Parameters& parameters,
                                           std::optional<Phase> phase);

struct FitOutcome
{
    std::vector<LeverOutcome> combinations; ///< that fit, quickest step first; the first is the advice
    std::size_t tried = 0;
    LeverOutcome smallest; ///< what came nearest, when no combination fits
    /// When none fits that trains the same: what fits and trains something else (adapters, other states, another
    /// precision), alone or on top of `smallest`; quickest first.
    std::vector<LeverOutcome> changing;
};

/// The combinations of levers that fit the device, quickest first, those within 5 % of it included. Where none does,
/// gradients and then weights go to the host too, and last the levers that change the training are tried.
/// Nothing is tried when the device's memory is not known.
FitOutcome makeItFit(const Device& device, const Parameters& parameters, const TrainingAnswer& answer);

/// The largest value of an integer parameter for which the step still fits; nothing when even its
/// minimum does not, or the device's memory is not known. The step grows with it.
std::optional<std::int64_t> largestThatFits(const Device& device, const Parameters& parameters, const std::string& key,
                                            const TrainingAnswer& answer);

/// The fewest data-parallel devices, a power of two, on which the step fits with ZeRO stage 3.
std::optional<std::int64_t> fewestDevices(const Device& device, const Parameters& parameters,
                                          const TrainingAnswer& answer);

/// `levers`, `out_of_memory`, `make_it_fit` and `largest` of the detail, as much as `advice=` asks for.
void addAdvice(Json& detail, const Device& device, const Parameters& parameters, const TrainingAnswer& answer,
               const std::optional<OutOfMemory>& outOfMemory);

} // namespace memscape
