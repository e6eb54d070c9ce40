// SPDX-License-Identifier: GPL-3.0-or-later
// A page on one sheet, for exports and printing: title and question, the parameters in one line,
// the picture, the plot, the figures with predicted, measured and error, and why. Painted from
// values as vectors, in the light theme unless asked otherwise, so that it does not depend on the
// screen.
#pragma once

#include "app/pages/cards/figures_model.h"
#include "app/settings/theme.h"
#include "core/base/result.h"
#include "core/experiment/record.h"

#include <QImage>
#include <QRectF>
#include <QSize>
#include <QString>

#include <functional>

class QPainter;

namespace memscape {

class ExperimentPage;
class PlotView;

struct Sheet
{
    QString title, question;
    QString subtitle; ///< device and parameters
    QString footer;   ///< program, basis, fit
    /// Draws the picture into a rectangle; null: there is none.
    std::function<void(QPainter&, const QRectF&, const Theme&)> picture = {};
    double pictureHeight = 0; ///< that it would like beside a plot; 0: no wish
    PlotView* plot = nullptr;
    std::vector<FigureRow> figures;
    ByteStyle bytes = ByteStyle::Binary;
    bool isBare = false; ///< the picture alone, as a plot is exported
    /// What the sheet shows, as JSON of a record; null: it is none. A PNG keeps it, so that it can be opened again.
    std::function<std::string()> record = {};
};

/// The text of a PNG that holds Sheet::record.
inline constexpr auto recordInPicture = "memscape-record";

/// What is on the page now; the page must outlive it.
Sheet sheetOf(const ExperimentPage& page);

/// As wide as `least`, and high enough for the picture as it likes to be, a plot and every figure. Px.
QSize roomFor(const Sheet& sheet, QSize least);

void paintSheet(QPainter& painter, const QRectF& rect, const Sheet& sheet, const Theme& theme);

/// Null when there is no memory for it.
QImage sheetImage(const Sheet& sheet, const QSize& size, double scale, const Theme& theme);
/// Writes .png, .svg or .pdf by the path's ending. Errors: export.format, export.write.
Result<void> writeSheet(const QString& path, const Sheet& sheet, const QSize& size, double scale, const Theme& theme);

} // namespace memscape
