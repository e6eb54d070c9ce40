// SPDX-License-Identifier: Apache-2.0
// The networks that tests/data/pytorch was measured on, from their names and configurations there.
#pragma once

#include "core/base/result.h"
#include "core/network/build_options.h"
#include "core/network/graph.h"

#include <QJsonObject>
#include <QString>

namespace memscape {

/// The rules, precision and batch that a measurement was made with.
BuildOptions measuredOptions(const QString& name, const QString& mode, const QJsonObject& config);

/// Errors: test.family when nothing here records `name`.
Result<Graph> measuredNetwork(const QString& name, const QJsonObject& config, const BuildOptions& options);

} // namespace memscape
