// SPDX-License-Identifier: Apache-2.0
// What can be done to a tensor's layout, as a list of operations with PyTorch's names, arguments and
// defaults: read from text, written as text, and as the lines of PyTorch and NumPy that say the same.
//
// The text is PyTorch's, operations parted by ';' or '.':  transpose(0,1);narrow(2,1,2)  or
// x.permute(0, 2, 3, 1).contiguous().  Arguments come in order or by name (dim=0); lists are written
// [2,3] or (2,3), or plainly where an operation takes nothing else: view(2,3).
#pragma once

#include "core/access/views/tensor_view.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

enum class ArgumentKind { Integer, OptionalInteger, List, Flag, Format };

struct ArgumentSpec
{
    std::string name; ///< "dim"
    ArgumentKind kind = ArgumentKind::Integer;
    std::string standard = {}; ///< as text; empty: it must be given
};

struct OperationSpec
{
    std::string name;
    std::vector<ArgumentSpec> arguments;
    std::string help;    ///< a sentence that teaches
    bool isShown = true; ///< offered in the window; the others only answer to their names
};

/// Every operation, in the order in which they are offered.
const std::vector<OperationSpec>& operationSpecs();
const OperationSpec* findOperation(std::string_view name);

struct Argument
{
    std::optional<std::int64_t> integer; ///< of a flag 0 or 1; empty is None
    Sizes list;
    MemoryFormat format = MemoryFormat::Contiguous;
    bool isPreserve = false; ///< torch.preserve_format
    bool operator==(const Argument&) const = default;
};

struct ViewOperation
{
    std::string name;
    std::vector<Argument> arguments; ///< as many as its spec has
    std::size_t place = 0;           ///< of its first character in the text, from 0

    std::int64_t integer(std::size_t i) const { return arguments[i].integer.value_or(0); }
    const Sizes& list(std::size_t i) const { return arguments[i].list; }
    bool operator==(const ViewOperation& other) const { return name == other.name && arguments == other.arguments; }
};

/// At most this many operations in one text.
inline constexpr std::size_t operationsLimit = 64;

/// Errors name the character as place ("views, character 15"): views.syntax, views.unknown (with near
/// names), views.arguments (too few, too many, of another kind), views.range (beyond 64 bits),
/// views.limit.
Result<std::vector<ViewOperation>> parseViews(std::string_view text);
/// "2,3,4" or "[2, 3, 4]"; empty text is a tensor of one element without dimensions. Errors:
/// shape.syntax, with the character as place.
Result<Sizes> parseShape(std::string_view text);

/// Text that parses back to the same: "transpose(0,1);narrow(2,1,2)"; arguments at their defaults are
/// left away.
std::string viewText(const ViewOperation& operation);
std::string viewsText(const std::vector<ViewOperation>& operations);

} // namespace memscape
