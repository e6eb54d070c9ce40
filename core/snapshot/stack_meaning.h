// SPDX-License-Identifier: Apache-2.0
// What a stack tells about an allocation: its phase, its operator, the user's line. From the names that PyTorch's own
// frames have (checked on 1.13 and 2.x): the autograd engine, torch.optim, at::_ops::…, the profiler's names
// ("aten::mm", "Optimizer.step#AdamW.step", "autograd::engine::evaluate_function: …"); and from functions of the user
// that are called forward, backward, optimizer, zero_grad, init.
#pragma once

#include "core/snapshot/snapshot.h"
#include "core/trace/trace.h"

namespace memscape {

constexpr FrameId noFrame = ~FrameId(0);

/// Phase::Setup where isKnown: the model is being made.
struct StackMeaning
{
    Phase phase = Phase::Setup;
    bool isKnown = false;        ///< a frame tells the phase
    bool isWorkspace = false;    ///< cuBLAS, cuDNN
    FrameId operation = noFrame; ///< the innermost operator that is not a bare allocation
    FrameId line = noFrame;      ///< the innermost frame of the user's own code (a file outside of installed packages)
    FrameId module = noFrame;    ///< the innermost forward()
};

/// Of every stack of a snapshot, by id.
std::vector<StackMeaning> stackMeanings(const Snapshot& snapshot);

/// "aten::bmm" for "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)"; other names as they are.
std::string operatorName(std::string_view frameName);

/// Frames of the interpreter, of PyTorch's C++ and of its dispatch: most of a recorded stack, and no help to its
/// reader.
bool isInternalFrame(std::string_view name, std::string_view file);

} // namespace memscape
