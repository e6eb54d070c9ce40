// SPDX-License-Identifier: Apache-2.0
// What runs a network file: the state that the functions of its operators (network_functions.cpp) ask, and the program
// that calls them (network_program.cpp).
#pragma once

#include "core/network/builder.h"
#include "core/network/network_program.h"

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

class ProgramRunner
{
public:
    ProgramRunner(const NetworkFile& file, const BuildOptions& options)
        : m_file(file)
        , m_builder(options)
        , m_values(file.tensors)
    { }
    Result<Graph> run();

    // --- what the functions of operators ask --------------------------------------------------------
    NetworkBuilder& builder() { return m_builder; }
    Variable input(std::size_t i) const;
    std::size_t inputs() const { return m_step->tensors.size(); }
    std::vector<Variable> allInputs() const;
    const FileAttributes& attributes() const { return m_file.attributes[m_step->attributes]; }
    int dimension() const { return attributes().dimensions.empty() ? 0 : attributes().dimensions[0]; }
    Shape shape(std::size_t output = 0) const { return shapeOf(m_step->outputs[output]); }
    DType dtype(std::size_t output = 0) const { return typeOf(m_step->outputs[output]); }
    bool hasWeightsType() const { return m_step->outputs[0].hasWeightsType; } ///< the first result
    /// The last component of the path of the module that runs.
    std::string moduleName() const;
    bool hasInputs(std::size_t least); ///< else it refuses

private:
    Result<void> checkScale() const;
    std::int64_t sizeOf(const FileSize& size) const;
    Shape shapeOf(const FileTensor& tensor) const;
    DType typeOf(const FileTensor& tensor) const;
    void makeTensors();
    void makeOwned(const std::vector<FileNamedTensor>& list, bool isParameter);
    std::vector<bool> neededSteps() const;
    void runUntilLeft();
    void enter(const FileStep& step);
    void runOperator(const FileStep& step);
    void settle(const FileStep& step, std::vector<Variable> results);

    const NetworkFile& m_file;
    NetworkBuilder m_builder;
    std::vector<Variable> m_values; ///< by id
    std::vector<std::uint32_t> m_open;
    std::vector<bool> m_needed; ///< by step; empty: all
    const FileStep* m_step = nullptr;
    std::size_t m_next = 0;
};

namespace program {

using Results = std::vector<Variable>;
struct NamedFunction
{
    std::string_view name; ///< "addmm", in files
    Results (*run)(ProgramRunner&);
};

/// Sorted by name, as networkFileOperators().
const std::vector<NamedFunction>& functions();
std::string shapeText(const Shape& shape); ///< "(2, 5)"

} // namespace program

} // namespace memscape
