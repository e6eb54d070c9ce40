// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `precision` stands: a line of powers of two to drag the value
// on, a row of bits for each number format, and the histogram of gradients over the range of the
// chosen one. Geometry only, for painting, hit tests and tests.
#pragma once

#include "core/precision/number_format.h"

#include <QRectF>

#include <vector>

namespace memscape {

enum class BitPart { Sign, Exponent, Mantissa, Unused };

struct BitCell
{
    QRectF rect;
    int bit = -1; ///< counted from the lowest; −1: unused (TF32 in its word of 32)
    BitPart part = BitPart::Unused;
};

struct FormatRow
{
    Format format = Format::Fp32;
    QRectF area, label, text;
    std::vector<BitCell> cells;
};

struct PrecisionLayout
{
    QRectF head, line; ///< the title; the value's line
    std::vector<FormatRow> rows;
    QRectF caption, bars, axis; ///< of the histogram
    double unit = 1;

    // log2 of magnitudes along the line, and along the histogram.
    static constexpr double lineFirst = -40, lineLast = 40;
    static constexpr double barsFirst = -50, barsLast = 20;
    double lineX(double log2) const;
    double lineAt(double x) const;
    double barsX(double log2) const;
    double barsAt(double x) const;
};

/// `unit`: one pixel of the drawings (plotUnit()).
PrecisionLayout layoutPrecision(const QRectF& rect, double unit);

} // namespace memscape
