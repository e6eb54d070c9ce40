// SPDX-License-Identifier: Apache-2.0
// Encoders as Hugging Face transformers runs them: BERT (Devlin et al. 2019), norms after the
// residual sums; the vision transformer (Dosovitskiy et al. 2021), norms before. No padding, so no
// mask.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// On `options.batch` sequences of `options.sequence` tokens. The loss is the masked language
/// model's over every position, a classifier's, or, without a head, the sum of the pooled output.
Result<Graph> bert(const ModelDescription& model, const BuildOptions& options);

/// On `options.batch` pictures; the sequence is ignored.
Result<Graph> visionTransformer(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape
