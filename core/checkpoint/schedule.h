// SPDX-License-Identifier: Apache-2.0
// A schedule: the order in which the stages of a chain are run, kept, discarded and run again. The
// operations are those of Beaumont et al. (F∅, Fck, Fall, B), and a discard for schedules that are not
// persistent (a kept value may go before its own backward and be made again).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace memscape {

enum class OperationKind : std::uint8_t {
    ForwardKeep,  ///< Fck: x_i ↦ x_{i+1}, x_i stays
    ForwardDrop,  ///< F∅: x_i ↦ x_{i+1}, then x_i goes
    ForwardSave,  ///< Fall: x_i ↦ x̄_{i+1} in one of the stage's ways; x_i stays
    Loss,         ///< x_L ↦ y_L; an x_L that is not inside x̄_L goes
    Backward,     ///< y_{i+1}, x̄_{i+1}, x_i ↦ y_i; then y_{i+1}, x̄_{i+1} and x_i go (x̄_i stays)
    DiscardValue, ///< x_i goes
    DiscardSaved, ///< x̄_i goes
};

/// "forward-keep", "forward-drop", "forward-save", "loss", "backward", "discard-value", "discard-saved"
std::string_view operationText(OperationKind kind);

struct ChainOperation
{
    OperationKind kind = OperationKind::ForwardSave;
    std::int32_t stage = 0;  ///< i; of discards the index of the value; of the loss L
    std::int32_t option = 0; ///< which way, of ForwardSave
    bool operator==(const ChainOperation&) const = default;
    bool isForward() const { return kind <= OperationKind::ForwardSave; }
};

using Schedule = std::vector<ChainOperation>;

} // namespace memscape
