// SPDX-License-Identifier: Apache-2.0
// A chain of linear layers with an activation between them, trained on classes.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct ClassifierShape
{
    std::vector<std::int64_t> sizes{784, 512, 256, 128, 10}; ///< features in, …, classes out
    OperatorKind activation = OperatorKind::Relu;
    bool hasActivation = true;
    bool isInPlace = false;
    bool hasBias = true;
};

/// `options.batch` rows. Errors: network.shape with fewer than two sizes.
Result<Graph> classifier(const ClassifierShape& shape, const BuildOptions& options);

} // namespace memscape
