// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/schedule.h"

#include <array>

namespace memscape {

std::string_view operationText(OperationKind kind)
{
    constexpr std::array<std::string_view, 7> texts{"forward-keep", "forward-drop",  "forward-save", "loss",
                                                    "backward",     "discard-value", "discard-saved"};
    return texts[std::size_t(kind)];
}

} // namespace memscape
