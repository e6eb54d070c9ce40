// SPDX-License-Identifier: Apache-2.0
// Models that are described in the parameter itself: params:N, from-scratch:KEY=VALUE,…, mlp:SIZES.
#pragma once

#include "core/network/model.h"

#include <string_view>

namespace memscape {

/// Whether the text begins with the word of a recipe.
bool isRecipe(std::string_view text);

/// Errors: model.recipe (place: the key), model.range, model.contradiction.
Result<ModelDescription> modelFromRecipe(std::string_view text);

/// A decoder like LLaMA with exactly `parameters` parameters (a fraction is dropped): hidden size 128 times the number
/// of layers, the aspect of GPT-3 and LLaMA; heads of 128; a vocabulary of 32000, untied, or less where that would be
/// more than a quarter of the model; the width of the feed-forward layer, near 8/3 of the hidden size, takes up the
/// rest as far as whole rows of all layers can. What is left, less than that, is a vector of its own whose mean is
/// added to the embeddings: trained as any other parameter, and next to no work. `parameters` is 10^5 to 10^15. Errors:
/// model.range.
Result<ModelDescription> modelOfSize(double parameters);

} // namespace memscape
