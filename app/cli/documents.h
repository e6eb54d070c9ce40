// SPDX-License-Identifier: Apache-2.0
// What a file is, and whether it is sound: every Memscape document, and the foreign files that
// Memscape reads or will be handed by mistake.
#pragma once

#include "core/snapshot/snapshot.h"

#include <string>
#include <string_view>

namespace memscape::cli {

/// "record of stride on NVIDIA H200 SXM, predicted and measured". Errors name the place in the
/// document; document.* when it is none that Memscape knows.
Result<std::string> describeDocument(std::string_view text);
/// "PyTorch memory snapshot: 8 segments of 16 MiB, …".
std::string describeSnapshot(const Snapshot& snapshot);

} // namespace memscape::cli
