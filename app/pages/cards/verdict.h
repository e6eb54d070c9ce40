// SPDX-License-Identifier: GPL-3.0-or-later
// A verdict on a claim to the eye: a colour and a mark of its own shape, so that neither is needed alone.
#pragma once

#include "app/settings/theme.h"
#include "core/claims/claim_verdicts.h"

#include <QPixmap>
#include <QRectF>
#include <QString>

class QPainter;

namespace memscape {

/// "holds", "holds when …", "does not hold", "cannot be tested here".
QString verdictWord(ClaimVerdict verdict);
/// Of a label (settings/theme.h).
const char* verdictTone(ClaimVerdict verdict);
QColor verdictColour(ClaimVerdict verdict, const Theme& theme);
/// A disc with a tick, half a disc, a disc with a cross, a dashed ring.
void paintVerdict(QPainter& painter, const QRectF& rect, ClaimVerdict verdict, const Theme& theme);
/// The same, as high as a line of text.
QPixmap verdictPixmap(ClaimVerdict verdict, const QWidget& beside);

} // namespace memscape
