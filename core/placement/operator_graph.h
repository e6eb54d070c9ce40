// SPDX-License-Identifier: Apache-2.0
// A graph of operators and the tensors between them, in an order in which it can run: what a placement is about. Each
// node makes one tensor; `matmul` of one input and `layer` have weights of their own, which live on the device or on
// the host.
//
//     x: input 512 4096; m@host: input 512 4096
//     a: matmul 512 4096 4096 <- x            # m n k: x is m × k, its own weight k × n
//     b: mul <- a m; y: gelu <- b; n: item <- y
//
// A statement is `name: kind sizes <- inputs`, ended by a semicolon or a line; `#` begins a remark; name@device or
// name@host places it. Nodes may be named before they are defined; what waits for itself is refused.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

enum class Place : std::uint8_t { Device, Host };

enum class NodeKind : std::uint8_t {
    Input,  ///< there when it begins
    Matmul, ///< m × k by k × n, the second a weight of its own or another tensor
    Add,
    Multiply,
    Relu,
    Gelu,
    ToHost,   ///< `.cpu()`: a copy that the program waits for
    ToDevice, ///< `.to(device)`
    Item,     ///< `.item()`: one number to the host; the program waits
    Layer,    ///< of a model: its sizes are given, not its operators
};
std::string_view nodeKindText(NodeKind kind); ///< the word of the text: "matmul", "mul", "cpu"

struct GraphNode
{
    std::string name;
    NodeKind kind = NodeKind::Input;
    std::optional<Place> pinned = {};              ///< where the text places it
    std::vector<std::uint32_t> inputs = {};        ///< earlier nodes
    std::int64_t rows = 0, columns = 0, inner = 0; ///< of a product; elsewhere `rows` elements in one column
    std::int64_t weightBytes = 0;                  ///< of its own
    std::int64_t outputBytes = 0;                  ///< of what it makes
    std::int64_t workBytes = 0;                    ///< beside inputs and output while it runs
    std::int64_t updatedBytes = 0;                 ///< of the weights that training updates, as they are computed with

    bool computes() const { return kind != NodeKind::Input && !isCopy(); }
    bool isCopy() const { return kind == NodeKind::ToHost || kind == NodeKind::ToDevice || kind == NodeKind::Item; }
    double flops() const;                 ///< of one pass forward; 0 of a Layer
    double moved(int elementBytes) const; ///< B that it reads and writes; 0 of a Layer
};

struct OperatorGraph
{
    std::vector<GraphNode> nodes;
    int elementBytes = 4;

    /// One input, and each other node works on the one before it alone.
    bool isChain() const;
    std::int64_t weightBytes() const;
};

/// B of one tensor, so that sums over all nodes stay far below 2^63.
inline constexpr double mostTensorBytes = 0x1p48;
/// The most nodes of a graph that is written by hand, and bytes of its text.
inline constexpr std::size_t mostNodes = 4096;
inline constexpr std::size_t mostGraphText = std::size_t(1) << 18;

/// Whether a text is a graph and not the name of a model: it has a colon with a space behind it, or an arrow.
bool isGraphText(std::string_view text);
/// Errors, each with the statement as place: graph.syntax, graph.kind (with near words), graph.undefined (with near
/// names), graph.twice, graph.cycle, graph.range, graph.shape, graph.limit, graph.empty.
Result<OperatorGraph> parseGraph(std::string_view text, int elementBytes);

/// "; did you mean a or b?", or nothing where no name is near; for the end of a hint.
std::string nearNames(std::string_view wanted, const std::vector<std::string>& names);

/// D times a product with its own width × width weights and gelu, on `batch` rows. Errors: graph.range.
Result<OperatorGraph> chainGraph(std::int64_t length, std::int64_t width, std::int64_t batch, int elementBytes);

} // namespace memscape
