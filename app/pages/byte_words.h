// SPDX-License-Identifier: GPL-3.0-or-later
// Sentences of a prediction name bytes in powers of 1024; where the window counts in powers of 1000, they are
// said again so.
#pragma once

#include "core/base/number.h"

#include <QString>

namespace memscape {

/// "= 43.45 GiB + 512 MiB" in Decimal: "= 46.7 GB + 537 MB". One digit less than was given, since that was rounded,
/// but three at least; text of the other style stays.
QString bytesInStyle(const QString& text, ByteStyle style);

} // namespace memscape
