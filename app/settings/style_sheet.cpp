// SPDX-License-Identifier: GPL-3.0-or-later
// The style sheet: flat surfaces, rounded cards, one accent. Lengths are in units of the font, so
// that zooming the text zooms everything. What a style sheet does badly is left to Fusion and the
// palette (spin buttons) or painted (the squares of check boxes: indicator_style.h).
#include "app/settings/theme.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

// Fills $name with a colour, @factor with a font size and #n with a length of n/16 line heights.
class Sheet
{
public:
    Sheet(const Theme& theme, const QFont& base)
        : m_theme(theme)
        , m_points(base.pointSizeF() > 0 ? base.pointSizeF() : 10.0)
        , m_unit(QFontMetricsF(base).height() / 16.0)
    { }

    void add(const QString& rules) { m_text += fill(rules); }
    const QString& text() const { return m_text; }

private:
    QString fill(QString rules) const
    {
        const std::pair<const char*, QColor> colours[] = {
            {"$background", m_theme.background},
            {"$surface", m_theme.surface},
            {"$raised", m_theme.raised},
            {"$hover", mix(m_theme.raised, m_theme.text, 0.08)},
            {"$pressed", mix(m_theme.raised, m_theme.text, 0.14)},
            {"$border", m_theme.border},
            {"$textDim", m_theme.textDim},
            {"$textFaint", m_theme.textFaint},
            {"$text", m_theme.text},
            {"$predictedText", m_theme.predictedText},
            {"$predictedHover", mix(m_theme.predicted, m_theme.text, 0.15)},
            {"$predicted", m_theme.predicted},
            {"$measuredText", m_theme.measuredText},
            {"$measured", m_theme.measured},
            {"$onAccent", m_theme.onAccent},
            {"$good", m_theme.good},
            {"$bad", m_theme.bad},
            {"$warning", m_theme.warning},
            {"$disabled", mix(m_theme.raised, m_theme.textFaint, 0.7)},
            {"$selected", mix(m_theme.surface, m_theme.text, 0.07)},
            {"$groove", mix(m_theme.surface, m_theme.text, 0.16)},
            {"$highlight", m_theme.highlight},
            {"$handle", m_theme.dark ? m_theme.text : m_theme.predicted},
        };
        for (const auto& [name, colour] : colours)
            rules.replace(QLatin1String(name), colour.name());
        for (const int n : {28, 24, 20, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2})
            rules.replace(QStringLiteral("~%1~").arg(n), pixels(n));
        for (const double size : {0.8, 0.85, 0.9, 1.15, 1.6})
            rules.replace(QStringLiteral("@%1@").arg(size),
                          QString::number(m_points * size, 'f', 2) + QLatin1String("pt"));
        return rules;
    }

    QString pixels(int n) const
    {
        const int value = std::max(1, static_cast<int>(std::lround(n * m_unit)));
        return QString::number(value) + QLatin1String("px");
    }

    const Theme& m_theme;
    double m_points;
    double m_unit;
    QString m_text;
};

const char* const surfaces = R"(
QMainWindow, QDialog { background: $background; }
#page, #centre { background: $background; }
#rail { background: $surface; border: none; border-right: 1px solid $border; }
#inspector { background: $surface; border: none; border-left: 1px solid $border; }
#headlines { background: $surface; border: none; border-bottom: 1px solid $border; }
#header { background: $background; border: none; border-bottom: 1px solid $border; }
#statusLine { color: $textDim; }
QFrame[card="true"] { background: $raised; border: 1px solid $border; border-radius: ~8~; }
QFrame[card="true"][current="true"] { border-color: $measured; }
#firstSteps { background: $raised; border: none; border-bottom: 1px solid $border; }
#banner { background: $raised; border: 1px solid $warning; border-radius: ~8~; }
#banner[kind="info"] { border-color: $predicted; }
#banner[kind="error"] { border-color: $bad; }
QSplitter::handle { background: $border; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }
QDockWidget { titlebar-close-icon: none; color: $textDim; }
QDockWidget::title { background: $surface; padding: ~6~ ~10~; }
QMainWindow::separator { background: $border; width: 1px; height: 1px; }
QScrollArea { background: transparent; border: none; }
QScrollArea > QWidget > QWidget { background: transparent; }
QToolTip { background: $raised; color: $text; border: 1px solid $border; padding: ~4~; }
QStatusBar { background: $surface; color: $textDim; border-top: 1px solid $border; }
QStatusBar::item { border: none; }
)";

const char* const labelRules = R"(
QLabel { background: transparent; }
QLabel[tone="title"] { font-size: @1.6@; font-weight: bold; color: $text; }
QLabel[tone="subtitle"] { font-size: @1.15@; font-weight: bold; color: $text; }
QLabel[tone="section"] { font-size: @0.8@; font-weight: bold; color: $textFaint; }
QLabel[tone="strong"] { font-weight: bold; color: $text; }
QLabel[tone="dim"] { color: $textDim; }
QLabel[tone="faint"] { color: $textFaint; font-size: @0.9@; }
QLabel[tone="predicted"] { color: $predictedText; }
QLabel[tone="measured"] { color: $measuredText; }
QLabel[tone="good"] { color: $good; }
QLabel[tone="bad"] { color: $bad; }
QLabel[tone="warning"] { color: $warning; }
QLabel[tone="code"] { font-family: monospace; font-size: @0.9@; }
)";

const char* const buttons = R"(
QPushButton, QToolButton, QComboBox { background: $raised; color: $text; border: 1px solid $border;
    border-radius: ~6~; padding: ~5~ ~12~; }
QToolButton { padding: ~5~ ~8~; }
QPushButton:hover, QToolButton:hover, QComboBox:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed { background: $pressed; }
QPushButton:focus, QToolButton:focus, QComboBox:focus { border-color: $predicted; }
QPushButton:disabled, QToolButton:disabled, QComboBox:disabled { color: $disabled; }
QToolButton[popupMode="1"] { padding-right: ~20~; }
QToolButton::menu-button { border: none; width: ~16~; }
QPushButton::menu-indicator { subcontrol-origin: padding; subcontrol-position: center right; right: ~6~; }
QPushButton[role="primary"], QToolButton[role="primary"] { background: $predicted; color: $onAccent;
    border-color: $predicted; font-weight: bold; padding: ~5~ ~20~; }
QPushButton[role="primary"]:hover, QToolButton[role="primary"]:hover { background: $predictedHover; }
QPushButton[role="primary"]:focus { border: 2px solid $text; }
QPushButton[role="primary"]:disabled { background: $raised; color: $disabled; border-color: $border; }
QPushButton[role="danger"] { color: $bad; font-weight: bold; }
QPushButton[role="chip"], QToolButton[role="chip"] { border-radius: ~12~; padding: ~3~ ~14~;
    background: transparent; color: $textDim; }
QPushButton[role="chip"]:checked, QToolButton[role="chip"]:checked { border-color: $predicted;
    color: $text; background: $raised; }
QPushButton[role="chip"]:focus, QToolButton[role="chip"]:focus { border: 2px solid $text; }
QPushButton[role="flat"], QToolButton[role="flat"] { background: transparent; border: 1px solid transparent; }
QPushButton[role="flat"]:hover, QToolButton[role="flat"]:hover { background: $hover; }
QPushButton[role="flat"]:focus, QToolButton[role="flat"]:focus { border-color: $predicted; }
QToolButton[role="fold"] { background: transparent; border: 1px solid transparent; border-top-color: $border;
    border-radius: 0px; padding: ~6~ ~2~; color: $text; font-weight: bold; text-align: left; }
QToolButton[role="fold"]:hover { background: $hover; }
QToolButton[role="fold"]:focus { border: 1px solid $predicted; border-radius: ~4~; }
QComboBox { padding: ~4~ ~10~; }
QComboBox::drop-down { border: none; width: ~24~; }
QComboBox QAbstractItemView, #choices { background: $raised; color: $text; border: 1px solid $border;
    selection-background-color: $hover; selection-color: $text; outline: none; }
)";

const char* const rail = R"(
#rail QPushButton, #rail QToolButton { background: transparent; border: none; text-align: left;
    border-left: 3px solid transparent; border-radius: ~5~; padding: ~5~ ~12~; color: $textDim; outline: none; }
#rail QPushButton:hover, #rail QToolButton:hover { background: $selected; color: $text; }
#rail QPushButton:checked, #rail QToolButton:checked { background: $selected; color: $text;
    font-weight: bold; border-left: 3px solid $predicted; }
#rail QPushButton:focus, #rail QToolButton:focus { border: 1px solid $predicted;
    border-left: 3px solid $predicted; }
#rail QAbstractItemView { background: transparent; border: none; outline: none; color: $textDim; }
#rail QAbstractItemView::item { padding: ~5~ ~10~; border-radius: ~5~; }
#rail QAbstractItemView::item:hover { background: $selected; }
#rail QAbstractItemView::item:selected { background: $selected; color: $text;
    border-left: 3px solid $predicted; }
)";

const char* const fields = R"(
QLineEdit, QAbstractSpinBox, QPlainTextEdit, QTextEdit, QTextBrowser { background: $raised; color: $text;
    border: 1px solid $border; border-radius: ~5~; padding: ~3~ ~6~;
    selection-background-color: $predicted; selection-color: $onAccent; }
QLineEdit:focus, QAbstractSpinBox:focus, QPlainTextEdit:focus, QTextEdit:focus { border-color: $predicted; }
QLineEdit[invalid="true"] { border-color: $bad; }
QLineEdit[role="value"] { background: transparent; border: 1px solid transparent; font-weight: bold;
    padding: ~2~; }
QLineEdit[role="value"]:hover { border-color: $border; }
QLineEdit[role="value"]:focus { background: $raised; border-color: $predicted; }
QLineEdit[role="value"][invalid="true"] { border-color: $bad; }
QSlider { min-height: ~20~; }
QSlider::groove:horizontal { height: ~4~; background: $groove; border-radius: ~2~; }
QSlider::sub-page:horizontal { background: $predicted; border-radius: ~2~; }
QSlider::handle:horizontal { background: $handle; width: ~14~; height: ~14~; margin: -~5~ 0;
    border-radius: ~6~; }
QSlider::handle:horizontal:focus { background: $highlight; border: 2px solid $predicted; }
QSlider::sub-page:horizontal:disabled { background: $groove; }
QSlider::handle:horizontal:disabled { background: $disabled; }
QProgressBar { background: $groove; border: none; border-radius: ~2~; max-height: ~4~; min-height: ~4~;
    color: transparent; }
QProgressBar::chunk { background: $measured; border-radius: ~2~; }
)";

const char* const views = R"(
QListView { background: $raised; color: $text; }
QTableView, QTreeView, QWidget QListView { background: transparent; border: none; outline: none;
    gridline-color: $border; selection-background-color: $selected; selection-color: $text; }
QTableView::item, QTreeView::item, QListView::item { padding: ~3~ ~4~; }
QHeaderView { background: transparent; }
QHeaderView::section { background: transparent; color: $textFaint; border: none;
    border-bottom: 1px solid $border; padding: ~3~ ~4~; }
QHeaderView::up-arrow, QHeaderView::down-arrow { image: none; width: 0px; height: 0px; }
QTabWidget::pane { border: none; }
QTabBar::tab { background: transparent; color: $textDim; padding: ~6~ ~12~;
    border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: $text; border-bottom-color: $predicted; }
QMenuBar { background: $surface; color: $text; }
QMenuBar::item { padding: ~4~ ~9~; background: transparent; border-radius: ~4~; }
QMenuBar::item:selected { background: $hover; }
QMenu { background: $raised; color: $text; border: 1px solid $border; padding: ~4~; }
QMenu::item { padding: ~5~ ~24~ ~5~ ~20~; border-radius: ~4~; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $disabled; }
QMenu::separator { height: 1px; background: $border; margin: ~4~ ~8~; }
QScrollBar { background: transparent; border: none; margin: 0; }
QScrollBar:vertical { width: ~10~; }
QScrollBar:horizontal { height: ~10~; }
QScrollBar::handle { background: $groove; border-radius: ~4~; margin: 2px; }
QScrollBar::handle:vertical { min-height: ~28~; }
QScrollBar::handle:horizontal { min-width: ~28~; }
QScrollBar::handle:hover { background: $textFaint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
)";

} // namespace

QString styleSheetFor(const Theme& theme, const QFont& base)
{
    Sheet sheet(theme, base);
    for (const char* rules : {surfaces, labelRules, buttons, rail, fields, views})
        sheet.add(QString::fromUtf8(rules));
    return sheet.text();
}

} // namespace memscape
