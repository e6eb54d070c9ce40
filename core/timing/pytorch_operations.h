// SPDX-License-Identifier: Apache-2.0
// How long PyTorch's operators take on a processor. What each kind needs is measured with PyTorch itself, one operator
// at a time (kernels/pytorch/memscape_probe/calibration.py); a network's step is then the sum over its operators:
//
//     product        as host_operations.h has it, of oneDNN's and MKL's kernels; batches of small matrices are shared
//                    out whole among the threads; a convolution is the product that it is, of other costs
//     channelwise    s per multiply-add, by pass and window
//     pass           s per element by kind and pass (a GELU is more than its bytes); fewer than 32,768 elements a
//                    thread stay on one thread (at::internal::GRAIN_SIZE)
//     update         the optimizer's operators one after the other over each parameter: what memory holds is read once,
//                    the rest comes from the caches where they hold the parameter and its state
//     call           s of dispatch, autograd and Python, forward, backward and by updated parameter
//     memory         what the caches have lost (tensor_reuse.h): s per byte more than from near, of products by way
//     turned copy    a weight's gradient that lies the other way round than the weight, which autograd copies
//                    (torch/csrc/autograd/functions/accumulate_grad.h): of a batched product with a turned weight
//     first touch    pages that malloc gave back and gets again, each cleared by the system: s per page times the pages
//                    of the step (experiments/training-memory/fresh_pages.h)
//
// Without a calibration typical values of a core take their places, and a pass costs its bytes.
//
// Left out: what a model's Python does between operators, threads that the system takes away, oneDNN's choice of
// another algorithm, kernels in half precision but products.
#pragma once

#include "core/timing/operator_time.h"

#include <limits>
#include <map>
#include <optional>
#include <string>

namespace memscape {

enum class OperatorPass { Forward, InputGradient, WeightGradient };

/// One measured operation of the probe. What a kind does not have stays 0.
struct OperatorProbe
{
    std::string kind;         ///< "forward", "batched forward", "convolution forward", "pass", "copy", …
    std::string operatorName; ///< of a pass
    bool isBackward = false;  ///< of a pass
    ProductShape shape;       ///< of products
    double count = 1;         ///< matrices of a batch
    double window = 0;        ///< R·S
    double elements = 0;      ///< of a pass; FLOPs of attention
    double bytes = 0;         ///< of a copy, read and written
    double seconds = 0;       ///< FLOP/s of a "rate"
};

/// Works that say how fast a processor is just then (memscape_probe/host_state.py), s: arithmetic, a pass over memory,
/// a new page, a call. Or, of two such, how many times longer they take.
struct HostState
{
    double core = 0, memory = 0, page = 0, call = 0;
};
/// By the names that the probe gives them.
inline constexpr std::pair<const char*, double HostState::*> worksOfState[] = {
    {"core", &HostState::core}, {"memory", &HostState::memory}, {"page", &HostState::page}, {"call", &HostState::call}};

/// Of a pass over all threads, s per element.
struct PassCost
{
    double forward = 0, backward = 0;
};

struct PytorchOperations
{
    HostOperations products, batched, convolutions;      ///< a batched one is of one thread
    std::map<std::string, PassCost, std::less<>> passes; ///< by operatorText(); "mul_number", "add_number"
    std::map<std::string, double, std::less<>> rates;    ///< FLOP/s of large products by format
    std::array<std::array<double, 3>, 2>
        channelwise{}; ///< s per multiply-add by OperatorPass, windows to 3 × 3, larger
    double forwardCall = 0, backwardCall = 0, viewCall = 0; ///< s per operator
    double updateCall = 0;                                  ///< s per parameter, AdamW one by one
    double nearByte = 0;                                    ///< s per byte of a pass from near caches
    double farByte = 0; ///< s more per byte of a pass that memory holds; what it writes is read and written back
    std::array<double, 3> farOperand{}; ///< the same of products by HostOperation
    double retention =
        std::numeric_limits<double>::infinity(); ///< s that a cache shared with others keeps what is not used
    double bandwidth =
        0;            ///< B/s from memory; new memory is read before it is written, what is written goes back beside
    double cache = 0; ///< B that stay near
    double firstTouch = 0;          ///< s per page of 4 KiB
    std::optional<HostState> state; ///< on average, when it was calibrated
    Evidence evidence = Evidence::Unverified;

    /// What one operator takes beside its dispatch.
    TimeParts parts(const OperatorCost& cost) const;
    /// A copy of a gradient that lies the other way round.
    double turnedCopySeconds(double elements) const;
    /// An update in a loop over parameters, s, dispatch included; `held`: B of the step.
    double updateSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan, double held) const;
    /// FLOP/s of large products of the type against those of fp32.
    double rateFactor(DType dtype) const;

private:
    double productSeconds(const ProductPart& part, const OperatorCost& cost) const;
    double passSeconds(const OperatorCost& cost) const;
};

/// Whether it stands for PyTorch on a processor.
bool isPytorchOnHost(const Device& device);
/// Of the calibration of `device`, else typical values of its units, clock and rates.
PytorchOperations pytorchOperations(const Device& device);

/// On the same processor in a state in which its works take so many times longer.
PytorchOperations slowed(PytorchOperations host, const HostState& times);

/// Errors: calibration.probes, naming what was not measured.
Result<PytorchOperations> fitPytorchOperations(const std::vector<OperatorProbe>& probes, int threads);
/// `detail` of the probe's answer. Errors: those of JsonReader with the place.
Result<std::vector<OperatorProbe>> pytorchProbesFromJson(const JsonReader& probes);

/// As `calibration.raw.pytorch` keeps it.
Json pytorchOperationsToJson(const PytorchOperations& operations);

} // namespace memscape
