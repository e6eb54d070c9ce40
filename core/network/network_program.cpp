// SPDX-License-Identifier: Apache-2.0
#include "core/network/network_program.h"

#include "core/network/network_runner.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

// --- the program ---------------------------------------------------------------------------------------

Variable ProgramRunner::input(std::size_t i) const
{
    return i < m_step->tensors.size() ? m_values[m_step->tensors[i]] : Variable();
}

std::vector<Variable> ProgramRunner::allInputs() const
{
    std::vector<Variable> all;
    for (std::size_t i = 0; i < inputs(); ++i)
        all.push_back(input(i));
    return all;
}

bool ProgramRunner::hasInputs(std::size_t least)
{
    bool has = inputs() >= least;
    for (std::size_t i = 0; has && i < inputs(); ++i)
        has = bool(input(i));
    if (!has)
        m_builder.refuse(
            "network_file.tensor",
            fmt::format("\"{}\" has {} inputs, {} are needed", networkFileOperators()[m_step->op], inputs(), least));
    return has;
}

std::string ProgramRunner::moduleName() const
{
    const std::string& path = m_file.modules[m_open.empty() ? 0 : m_open.back()].path;
    return path.substr(path.rfind('.') + 1);
}

std::int64_t ProgramRunner::sizeOf(const FileSize& size) const
{
    const BuildOptions& options = m_builder.options();
    const std::int64_t sequence = m_file.sequence > 0 ? options.sequence : 1;
    std::int64_t sum = size.constant, part = 0;
    bool overflows =
        __builtin_mul_overflow(size.batch, options.batch, &part) || __builtin_add_overflow(sum, part, &sum);
    overflows |= __builtin_mul_overflow(size.sequence, sequence, &part) || __builtin_add_overflow(sum, part, &sum);
    overflows |= __builtin_mul_overflow(size.both, options.batch, &part)
        || __builtin_mul_overflow(part, sequence, &part) || __builtin_add_overflow(sum, part, &sum);
    return overflows || sum < 0 ? -1 : sum;
}

Shape ProgramRunner::shapeOf(const FileTensor& tensor) const
{
    Shape shape;
    for (const FileSize& size : tensor.sizes)
        shape.append(sizeOf(size));
    return shape;
}

DType ProgramRunner::typeOf(const FileTensor& tensor) const
{
    return tensor.hasWeightsType ? m_builder.options().weights : tensor.dtype;
}

Result<void> ProgramRunner::checkScale() const
{
    const BuildOptions& options = m_builder.options();
    const auto only = [&](const char* what, std::int64_t size) {
        Error error{"network_file.scale", fmt::format("{} was exported for {}={} alone", m_file.name, what, size), what,
                    fmt::format("take {}={}, or export the model again with other example inputs", what, size)};
        error.remedy = Remedy{what, fmt::format("{}", size)};
        return fail(std::move(error));
    };
    if (!m_file.scalesBatch && options.batch != m_file.batch)
        return only("batch", m_file.batch);
    if (m_file.sequence > 0 && !m_file.scalesSequence && options.sequence != m_file.sequence)
        return only("sequence", m_file.sequence);
    return {};
}

/// Parameters and buffers, each within the module that owns it.
void ProgramRunner::makeOwned(const std::vector<FileNamedTensor>& list, bool isParameter)
{
    std::unordered_map<std::string_view, std::string_view> types;
    for (const FileModule& module : m_file.modules)
        types.emplace(module.path, module.type);
    for (const FileNamedTensor& named : list) {
        if (!m_builder.ok())
            return;
        const auto dot = named.name.rfind('.');
        const std::string_view owner = dot == std::string::npos ? "" : std::string_view(named.name).substr(0, dot);
        const std::string_view name = std::string_view(named.name).substr(dot == std::string::npos ? 0 : dot + 1);
        std::optional<ModuleScope> scope;
        const auto type = types.find(owner);
        if (!owner.empty())
            scope.emplace(m_builder, owner, type == types.end() ? "" : type->second);
        const Shape shape = shapeOf(named.tensor);
        m_values[named.tensor.id] = isParameter ? m_builder.parameter(name, shape, named.isTrained)
                                                : m_builder.buffer(name, shape, typeOf(named.tensor));
    }
}

void ProgramRunner::makeTensors()
{
    makeOwned(m_file.parameters, true);
    makeOwned(m_file.buffers, false);
    for (const FileNamedTensor& named : m_file.inputs) {
        const Shape shape = shapeOf(named.tensor);
        if (!m_builder.options().loss && named.isTarget)
            continue; // only a loss reads it
        m_values[named.tensor.id] = named.isTarget ? m_builder.target(named.name, shape, typeOf(named.tensor))
                                                   : m_builder.input(named.name, shape, typeOf(named.tensor));
    }
}

/// Without a loss: the operators that the output needs.
std::vector<bool> ProgramRunner::neededSteps() const
{
    if (m_builder.options().loss || m_file.output == noFileTensor)
        return {};
    std::vector<bool> steps(m_file.program.size()), wanted(m_file.tensors);
    wanted[m_file.output] = true;
    for (std::size_t i = m_file.program.size(); i-- > 0;) {
        const FileStep& step = m_file.program[i];
        const bool isWanted = std::any_of(step.outputs.begin(), step.outputs.end(),
                                          [&](const FileTensor& output) { return wanted[output.id]; });
        if (step.kind != FileStep::Kind::Operator || !isWanted)
            continue;
        steps[i] = true;
        for (const FileTensorId id : step.tensors)
            wanted[id] = true;
    }
    return steps;
}

void ProgramRunner::settle(const FileStep& step, std::vector<Variable> results)
{
    if (!m_builder.ok())
        return;
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        const Shape expected = shapeOf(step.outputs[i]);
        if (i >= results.size() || !results[i] || !(results[i].shape() == expected)) {
            m_builder.refuse(
                "network_file.shape",
                fmt::format("\"{}\" makes {}, the file says {}", networkFileOperators()[step.op],
                            i < results.size() && results[i] ? program::shapeText(results[i].shape()) : "nothing",
                            program::shapeText(expected)),
                "export the model again, if need be with example inputs of this batch and sequence");
            return;
        }
        m_values[step.outputs[i].id] = std::move(results[i]);
    }
}

void ProgramRunner::runOperator(const FileStep& step)
{
    m_step = &step;
    for (std::size_t i = 0; i < step.outputs.size(); ++i)
        if (!shape(i).elements())
            return m_builder.refuse("network.size",
                                    fmt::format("a size of what \"{}\" makes is negative, or too large to be counted",
                                                networkFileOperators()[step.op]),
                                    "take another batch or sequence");
    const FileAttributes& a = attributes();
    const bool had = m_builder.options().gradient;
    if (a.isWithoutGradient)
        m_builder.recordGradient(false);
    const bool needsInput = networkFileOperators()[step.op] != "fill";
    std::vector<Variable> results;
    if (!needsInput || hasInputs(1))
        results = program::functions()[step.op].run(*this);
    m_builder.recordGradient(had);
    settle(step, std::move(results));
}

void ProgramRunner::enter(const FileStep& step)
{
    const FileModule& module = m_file.modules[step.module];
    // The name within the module that calls it, as far as it is one of that one's own.
    const std::string& caller = m_open.empty() ? std::string() : m_file.modules[m_open.back()].path;
    const bool isOwn = !caller.empty() && module.path.starts_with(caller + '.');
    std::optional<ModuleScope> scope;
    if (!module.path.empty())
        scope.emplace(m_builder, isOwn ? module.path.substr(caller.size() + 1) : module.path, module.type);
    m_open.push_back(step.module);
    if (!step.isLayer)
        return runUntilLeft();
    m_builder.layer([&] {
        runUntilLeft();
        const FileStep& left = m_file.program[m_next - 1];
        return left.tensors.empty() ? Variable() : m_values[left.tensors[0]];
    });
}

void ProgramRunner::runUntilLeft()
{
    while (m_next < m_file.program.size() && m_builder.ok()) {
        const std::size_t at = m_next++;
        const FileStep& step = m_file.program[at];
        switch (step.kind) {
        case FileStep::Kind::Operator:
            if (m_needed.empty() || m_needed[at])
                runOperator(step);
            break;
        case FileStep::Kind::Free:
            for (const FileTensorId id : step.tensors)
                m_values[id].reset();
            break;
        case FileStep::Kind::Enter: enter(step); break;
        case FileStep::Kind::Leave: m_open.pop_back(); return;
        }
    }
}

Result<Graph> ProgramRunner::run()
{
    MEMSCAPE_CHECK(checkScale());
    m_needed = neededSteps();
    makeTensors();
    runUntilLeft();
    const bool hasLoss = m_builder.options().loss && m_file.loss != noFileTensor;
    Variable output = m_file.output != noFileTensor ? m_values[m_file.output] : m_values[m_file.loss];
    Variable loss = hasLoss ? m_values[m_file.loss] : Variable();
    m_values.clear();
    auto graph = m_builder.finish(std::move(output), std::move(loss));
    if (graph)
        graph->returnsLoss = m_file.returnsLoss && hasLoss;
    return graph;
}

Result<Graph> runNetworkFile(const NetworkFile& file, const BuildOptions& options)
{
    return ProgramRunner(file, options).run();
}

} // namespace memscape
