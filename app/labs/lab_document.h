// SPDX-License-Identifier: GPL-3.0-or-later
// A student's answers for paper: the page of core/lab as HTML, or laid out as a PDF. The PDF's tables are simpler
// than a browser's; charts are drawn from the same SVG.
#pragma once

#include "core/base/result.h"

#include <QString>

namespace memscape {

/// By the ending, .html or .pdf. Errors: export.format, file.*.
Result<void> writeLabDocument(const QString& path, const std::string& html);

} // namespace memscape
