// SPDX-License-Identifier: Apache-2.0
// What every language model begins and ends with: token indices, and the loss over the vocabulary.
#pragma once

#include "core/network/builder.h"

namespace memscape {

/// Input `name` (B, S) of Int64.
Variable tokenInput(NetworkBuilder& b, std::string_view name = "tokens");

/// Ends in the logits, or, when the options ask for a loss, in the mean cross-entropy of every
/// token.
Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable logits);

/// The same for a classifier's logits (B, classes) and one label each.
Result<Graph> finishClassifier(NetworkBuilder& b, Variable logits);

} // namespace memscape
