// SPDX-License-Identifier: Apache-2.0
// A network that Python traced (kernels/pytorch/memscape_probe/exporter.py): the calls of torch that a model made, in
// order, with the moments at which its variables died. Running it through a NetworkBuilder (network_program.h) records
// the program as if it were one of our families, so every plan can be asked of it.
//
//   {"format": "memscape-network", "version": 1, "name": "GPT", "torch": "2.6.0",
//    "batch": 4, "sequence": 64, "scales": {"batch": true, "sequence": true},
//    "modules": [{"path": "h.0.attn", "type": "Attention"}, …],
//    "parameters": [{"id": 0, "name": "wte.weight", "shape": [50257, 768], "dtype": "float32", "trained": true}, …],
//    "buffers": [{"id", "name", "shape", "dtype"}, …],
//    "inputs": [{"id", "name", "role": "input" | "target", "shape": [[0, 1, 0, 0], [0, 0, 1, 0]], "dtype": "int64"},
//    …], "program": [{"enter": "h.0", "layer": true}, {"leave": 9}, {"free": [7, 8]},
//                {"op": "linear", "in": [5, 1, 2], "out": [{"id": 9, "shape": [[0, 1, 0, 0], 64], "dtype":
//                "weights"}]}],
//    "output": 9, "loss": 12, "returns_loss": false, "assumptions": ["…"]}
//
// A size is a number, or [a, b, c, d]: a + b·batch + c·sequence + d·batch·sequence. The type "weights" is that of the
// plan's weights. Ids are given once, in any order of growth; an operator may name only what exists already. "layer"
// marks a module that checkpointing may run again. An operator that no rule knows is "other" with "keeps": "inputs",
// "result", "inputs and result" or "nothing": what autograd holds of it; "temporaries" live beside its gradient.
//
// Left out: complex numbers, sparse tensors, more than six dimensions, control flow that depends on values.
#pragma once

#include "core/base/result.h"
#include "core/network/dtype.h"
#include "core/network/shape.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

class JsonReader;

using FileTensorId = std::uint32_t;
constexpr FileTensorId noFileTensor = UINT32_MAX;

/// constant + batch·B + sequence·S + both·B·S
struct FileSize
{
    std::int64_t constant = 0, batch = 0, sequence = 0, both = 0;
};

struct FileTensor
{
    FileTensorId id = noFileTensor;
    std::vector<FileSize> sizes;
    DType dtype = DType::Float32;
    bool hasWeightsType = false; ///< the type of the plan's weights instead
};

struct FileNamedTensor
{
    FileTensor tensor;
    std::string name; ///< "h.0.attn.weight"
    bool isTrained = false;
    bool isTarget = false;
};

struct FileModule
{
    std::string path, type;
};

/// What an operator is told beside its tensors; each uses some.
struct FileAttributes
{
    std::vector<int> dimensions; ///< "order", "dims" or the one of "dim"
    std::int64_t count = 0;      ///< "groups"; "dims" of a norm
    double probability = 0;      ///< "p"
    bool keepsSizes = false;     ///< "keep"
    bool isInPlace = false, isWithoutGradient = false;
    bool keepsInputs = false, keepsResult = false; ///< of "other"
    int temporaries = 0;                           ///< of "other": of the size of its gradient, in backward
    bool isBilinear = false;
    std::string equation; ///< of "einsum"
    std::string name;     ///< of "other": what it is in torch
};

struct FileStep
{
    enum class Kind : std::uint8_t { Operator, Free, Enter, Leave };
    Kind kind = Kind::Operator;
    bool isLayer = false;
    std::uint16_t op = 0;              ///< index of networkFileOperators()
    std::uint32_t module = 0;          ///< entered
    std::uint32_t attributes = 0;      ///< index of NetworkFile::attributes
    std::vector<FileTensorId> tensors; ///< inputs, freed ones, or the result of what is left
    std::vector<FileTensor> outputs;
};

struct NetworkFile
{
    std::string name, torch;
    std::int64_t batch = 1, sequence = 0; ///< of the export; sequence 0: it has none
    bool scalesBatch = false, scalesSequence = false;
    std::vector<FileModule> modules;
    std::vector<FileNamedTensor> parameters, buffers, inputs;
    std::vector<FileStep> program;
    std::vector<FileAttributes> attributes;
    FileTensorId output = noFileTensor, loss = noFileTensor;
    bool returnsLoss = false;
    FileTensorId tensors = 0; ///< ids are below this
    std::vector<std::string> assumptions;
};

/// The names of the operators that a file may have, sorted.
const std::vector<std::string_view>& networkFileOperators();

/// Whether a JSON document says that it is a network file.
bool isNetworkFile(const JsonReader& json);

/// Errors: network_file.version, network_file.operator, network_file.tensor (used before it exists, or given twice),
/// network_file.size, network_file.modules (not left, or too deep), json.*; the place is the path in the document.
Result<NetworkFile> networkFileFromJson(const JsonReader& json);

} // namespace memscape
