// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/stack_meaning.h"

#include <algorithm>
#include <array>

namespace memscape {

namespace {

bool has(std::string_view text, std::string_view part)
{
    return text.find(part) != text.npos;
}

bool isOneOf(std::string_view text, std::initializer_list<std::string_view> words)
{
    return std::ranges::find(words, text) != words.end();
}

/// "forward", "forward0": a function and the number of a micro-batch.
bool isNumbered(std::string_view name, std::string_view word)
{
    return name.starts_with(word)
        && std::ranges::all_of(name.substr(word.size()), [](char c) { return c >= '0' && c <= '9'; });
}

bool isPython(std::string_view file)
{
    return file.ends_with(".py");
}

bool isInstalled(std::string_view file)
{
    return has(file, "site-packages/") || has(file, "dist-packages/") || has(file, "/torch/")
        || has(file, "lib/python3") || file.starts_with("<");
}

struct Tells ///< bits: what a frame tells
{
    enum Bit : std::uint16_t {
        Nothing = 0,
        Optimizer = 1,
        ZeroGrad = 2,
        Backward = 4,
        Forward = 8,
        Init = 16,
        Workspace = 32,
        Operation = 64,
        BareOperation = 128, ///< an operator that only allocates
        UserLine = 256,
        Module = 512,
    };
};

std::uint16_t phaseTold(std::string_view name, std::string_view file)
{
    if (name.starts_with("Optimizer.zero_grad#") || name == "zero_grad")
        return Tells::ZeroGrad;
    if (name.starts_with("Optimizer.step#") || isOneOf(name, {"optimizer", "optimizer_step"})
        || has(file, "torch/optim/"))
        return Tells::Optimizer;
    if (name.starts_with("autograd::engine::") || has(name, "torch::autograd::Engine::")
        || has(name, "torch::autograd::python::PythonEngine") || isNumbered(name, "backward")
        || name == "_engine_run_backward")
        return Tells::Backward;
    if (isNumbered(name, "forward"))
        return Tells::Forward;
    const bool isModule = has(file, "nn/modules/module.py");
    if (isOneOf(name, {"<init>", "__init__", "init", "reset_parameters", "load_state_dict"})
        || (isModule && isOneOf(name, {"_apply", "to", "cuda", "half", "bfloat16", "float", "double"})))
        return Tells::Init;
    return Tells::Nothing;
}

std::uint16_t tellsOf(std::string_view name, std::string_view file)
{
    std::uint16_t tells = phaseTold(name, file);
    if (has(name, "getCurrentCUDABlasHandle") || has(name, "cublasCommonArgs") || has(name, "Workspace::Workspace")
        || has(name, "getCUDABlasLtWorkspace"))
        tells |= Tells::Workspace;
    if (name.starts_with("aten::") || name.starts_with("at::_ops::")) {
        const std::string operation = operatorName(name);
        const bool isBare = operation.starts_with("aten::empty") || operation.starts_with("aten::new_empty")
            || operation == "aten::resize_";
        tells |= isBare ? Tells::BareOperation : Tells::Operation;
    }
    if (isPython(file) && !isInstalled(file)) {
        tells |= Tells::UserLine;
        if (name == "forward")
            tells |= Tells::Module;
    }
    return tells;
}

StackMeaning meaningOf(std::span<const FrameId> frames, const std::vector<std::uint16_t>& tells)
{
    StackMeaning meaning;
    std::uint16_t all = Tells::Nothing;
    FrameId bare = noFrame;
    for (const FrameId frame : frames) {
        all |= tells[frame];
        if (tells[frame] & Tells::Operation && meaning.operation == noFrame)
            meaning.operation = frame;
        if (tells[frame] & Tells::BareOperation && bare == noFrame)
            bare = frame;
        if (tells[frame] & Tells::UserLine && meaning.line == noFrame)
            meaning.line = frame;
        if (tells[frame] & Tells::Module && meaning.module == noFrame)
            meaning.module = frame;
    }
    if (meaning.operation == noFrame)
        meaning.operation = bare;
    meaning.isWorkspace = all & Tells::Workspace;
    // An optimizer's closure calls backward, a recomputing backward calls forward, a first forward may call __init__.
    constexpr std::array<std::pair<Tells::Bit, Phase>, 5> order{{{Tells::ZeroGrad, Phase::ZeroGrad},
                                                                 {Tells::Backward, Phase::Backward},
                                                                 {Tells::Optimizer, Phase::Optimizer},
                                                                 {Tells::Forward, Phase::Forward},
                                                                 {Tells::Init, Phase::Setup}}};
    for (const auto& [told, phase] : order) {
        if (all & told) {
            meaning.phase = phase;
            meaning.isKnown = true;
            break;
        }
    }
    return meaning;
}

} // namespace

std::vector<StackMeaning> stackMeanings(const Snapshot& snapshot)
{
    std::vector<std::uint16_t> tells(snapshot.frames.size());
    for (FrameId frame = 0; frame < tells.size(); ++frame)
        tells[frame] = tellsOf(snapshot.frameName(frame), snapshot.frameFile(frame));
    std::vector<StackMeaning> meanings(snapshot.stacks.size());
    for (StackId stack = 0; stack < meanings.size(); ++stack)
        meanings[stack] = meaningOf(snapshot.stacks[stack], tells);
    return meanings;
}

std::string operatorName(std::string_view name)
{
    constexpr std::string_view prefix = "at::_ops::";
    if (!name.starts_with(prefix))
        return std::string(name);
    name.remove_prefix(prefix.size());
    name = name.substr(0, name.find("::"));
    for (const std::string_view overload : {"_Tensor", "_Scalar", "_memory_format", "_out", "_dim_IntList", "_dim"}) {
        if (name.ends_with(overload))
            name.remove_suffix(overload.size());
    }
    return "aten::" + std::string(name);
}

bool isInternalFrame(std::string_view name, std::string_view file)
{
    if (isPython(file))
        return has(file, "nn/modules/module.py") && isOneOf(name, {"_call_impl", "_wrapped_call_impl"});
    if (name.starts_with("aten::") || name.starts_with("autograd::engine::") || name.starts_with("Optimizer."))
        return false;
    if (name.starts_with("at::_ops::"))
        return has(name, "::redispatch(");
    for (const std::string_view start :
         {"c10::",      "at::",    "torch::", "_Py",     "Py",    "py",      "run_",
          "_object*",   "THP",     "void ",   "std::",   "slot_", "method_", "cfunction_",
          "vectorcall", "__libc_", "_start",  "object_", "clone", "dynamic_"}) {
        if (name.starts_with(start))
            return true;
    }
    return name.empty() || has(file, ".cpp") || has(file, ".h") || has(file, ".c");
}

} // namespace memscape
