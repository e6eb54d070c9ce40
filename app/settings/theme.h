// SPDX-License-Identifier: GPL-3.0-or-later
// Colours by meaning, in one light and one dark set, and the application's look made from them:
// Fusion style, a QPalette and a style sheet. Qt 6.4 has no colour scheme of its own; "system" is
// decided by the lightness of the palette that the desktop gave us at start.
//
// Predicted is blue, measured is orange, everywhere and nowhere else. The rest is Okabe and Ito's
// palette (2008), which stays apart for colour-blind eyes; on light surfaces its members are
// darkened until text in them reads (contrast of at least 4.5:1, WCAG 2.1; a test computes it).
//
// Named widgets get their look from these properties and object names:
//   property "card" = true            a rounded, raised surface (QFrame)
//   property "role" = "primary"       the accent button (Measure)
//   property "role" = "chip"          a pill-shaped checkable button
//   property "role" = "flat"          a button without a frame
//   property "tone" =
//   "dim"|"faint"|"title"|"section"|"predicted"|"measured"|"good"|"bad"|"warning"|"code"   labels
//   objectName "rail", "inspector", "page", "header", "statusLine", "banner"  the parts of the
//   window
#pragma once

#include <QColor>
#include <QFont>
#include <QString>

#include <vector>

class QApplication;
class QPalette;

namespace memscape {

struct Theme
{
    QString name; ///< "light" or "dark"
    bool dark = false;

    QColor background; ///< behind plots and pages
    QColor surface;    ///< rail, inspector
    QColor raised;     ///< cards, fields, buttons
    QColor border;
    QColor grid;      ///< lines of plots
    QColor text;      ///< what one reads
    QColor textDim;   ///< labels, second lines
    QColor textFaint; ///< section heads, hints; still 4.5:1

    QColor predicted;                   ///< lines and fills of predictions; also the accent of controls
    QColor measured;                    ///< dots and bands of measurements
    QColor predictedText, measuredText; ///< the same meanings as text
    QColor onAccent;                    ///< text on a predicted-coloured button
    QColor good, bad, warning;          ///< as text and as dots
    QColor highlight;                   ///< yellow: what one drags, where one is
    QColor highlightText;               ///< the same meaning as text
    QColor highlightFill;               ///< of a pill: always yellow
    QColor onHighlight;                 ///< text on it
    QColor fill;                        ///< amber: bytes in use inside a level
    QColor empty;                       ///< cells that were fetched for nothing

    std::vector<QColor> palette; ///< Okabe–Ito without the blue and orange above: variants
    std::vector<QColor> pins;    ///< records put beside: none is a curve's colour otherwise

    /// Palette colour, wrapping round.
    QColor series(int index) const;
    /// Colour of a pinned record, wrapping round.
    QColor pin(int index) const;
};

const Theme& lightTheme();
const Theme& darkTheme();
/// The one that applyTheme() set; dark before that.
const Theme& currentTheme();
/// "light", "dark", anything else is "system".
const Theme& themeByName(const QString& name);

/// Sets style, palette, font and style sheet of the whole application. `fontScale` zooms all text
/// and spacing (Ctrl+= and Ctrl+-), 1 being the desktop's own size.
void applyTheme(QApplication& application, const QString& name, double fontScale = 1.0);

QPalette paletteFor(const Theme& theme);
QString styleSheetFor(const Theme& theme, const QFont& base);

/// WCAG 2.1 contrast ratio of two opaque colours, 1 to 21.
double contrast(const QColor& a, const QColor& b);
/// `share` of `over` mixed into `under`, opaque.
QColor mix(const QColor& under, const QColor& over, double share);

/// The application font scaled: relativeFont(0.85) for second lines, relativeFont(1.5, true) for
/// titles.
QFont relativeFont(double factor, bool bold = false);

/// Whether pictures may move by themselves (a setting; false for reduced motion).
bool motionAllowed();
void setMotionAllowed(bool allowed);

} // namespace memscape
