// SPDX-License-Identifier: GPL-3.0-or-later
// The two sets of colours, the palette and the state that applyTheme() leaves. The style sheet is
// in style_sheet.cpp. No font is bundled: the desktop's own is used, or, where there is no desktop
// (the offscreen platform), the first sans serif of a short list that fontconfig has.
#include "app/settings/theme.h"

#include "app/settings/indicator_style.h"

#include <QApplication>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QPalette>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

Theme makeDark()
{
    Theme t;
    t.name = QStringLiteral("dark");
    t.dark = true;
    t.background = QColor(0x0f1216u);
    t.surface = QColor(0x161a21u);
    t.raised = QColor(0x1d232au);
    t.border = QColor(0x2c333cu);
    t.grid = QColor(0x2c333cu);
    t.text = QColor(0xe8eaedu);
    t.textDim = QColor(0xa3a9b1u);
    t.textFaint = QColor(0x8a919bu);
    t.predicted = QColor(0x56b4e9u);
    t.measured = QColor(0xe69f00u);
    t.predictedText = t.predicted;
    t.measuredText = t.measured;
    t.onAccent = QColor(0x0b1722u);
    t.good = QColor(0x1fb58au);
    t.bad = QColor(0xf0713au);
    t.warning = QColor(0xf2c14eu);
    t.highlight = QColor(0xf0e442u);
    t.highlightText = t.highlight;
    t.highlightFill = QColor(0xf0e442u);
    t.onHighlight = QColor(0x1b1a05u);
    t.fill = QColor(0x8b6914u);
    t.empty = QColor(0x2e363fu);
    t.palette = {QColor(0xcc79a7u), QColor(0x009e73u), QColor(0xd55e00u), QColor(0xf0e442u), QColor(0xbfc4cau)};
    t.pins = {QColor(0x8f7cf7u), QColor(0x2dd4bfu), QColor(0xb08968u), QColor(0xf25c78u), QColor(0xa8d24au)};
    return t;
}

Theme makeLight()
{
    Theme t;
    t.name = QStringLiteral("light");
    t.background = QColor(0xffffffu);
    t.surface = QColor(0xf4f6f8u);
    t.raised = QColor(0xffffffu);
    t.border = QColor(0xd3d8deu);
    t.grid = QColor(0xdde1e6u);
    t.text = QColor(0x1b1f24u);
    t.textDim = QColor(0x4d545cu);
    t.textFaint = QColor(0x636a73u);
    t.predicted = QColor(0x0072b2u);
    t.measured = QColor(0xd98c00u);
    t.predictedText = t.predicted;
    t.measuredText = QColor(0x8f5700u);
    t.onAccent = QColor(0xffffffu);
    t.good = QColor(0x00734fu);
    t.bad = QColor(0xb03a00u);
    t.warning = QColor(0x7a5c00u);
    t.highlight = QColor(0xb59d00u);
    t.highlightText = QColor(0x6b5b00u);
    t.highlightFill = QColor(0xf0e442u);
    t.onHighlight = QColor(0x000000u);
    t.fill = QColor(0xf3cd74u);
    t.empty = QColor(0xdfe4eau);
    t.palette = {QColor(0xa8467cu), QColor(0x00795au), QColor(0xb84500u), QColor(0x7d7000u), QColor(0x4d4d4du)};
    t.pins = {QColor(0x5a3fd0u), QColor(0x1c2a6bu), QColor(0x6b3410u), QColor(0xd0204fu), QColor(0x5f9e12u)};
    return t;
}

/// Text and edges in black or white alone, as a desktop with high contrast asks for. Colours keep their meaning and
/// come nearer to the text's until they reach 7:1 (WCAG 2.1, 1.4.6).
Theme withHighContrast(Theme t)
{
    const QColor ground = t.dark ? Qt::black : Qt::white, ink = t.dark ? Qt::white : Qt::black;
    t.background = t.surface = t.raised = t.onAccent = ground;
    t.border = t.text = t.textDim = t.textFaint = ink;
    t.grid = mix(ground, ink, 0.4);
    for (QColor* colour : {&t.predicted, &t.measured, &t.predictedText, &t.measuredText, &t.good, &t.bad, &t.warning,
                           &t.highlight, &t.highlightText}) {
        while (contrast(*colour, ground) < 7)
            *colour = mix(*colour, ink, 0.1);
    }
    return t;
}

// What the process shows now. Read by widgets while they paint, so it cannot be a parameter.
struct State
{
    const Theme* theme = nullptr; ///< the dark one before the first
    bool systemDark = false;
    bool systemContrast = false; ///< of black and white: no other desktop has such colours
    bool captured = false;
    bool motion = true;
};

State& state()
{
    static State instance;
    return instance;
}

void captureSystem()
{
    State& s = state();
    if (s.captured)
        return;
    const QPalette palette = QGuiApplication::palette();
    const QColor ground = palette.color(QPalette::Window), ink = palette.color(QPalette::WindowText);
    s.systemDark = ground.lightnessF() < ink.lightnessF();
    s.systemContrast = contrast(ground, ink) > 20.9;
    s.captured = true;
}

QFont baseFont(double scale)
{
    QFont font = QFontDatabase::systemFont(QFontDatabase::GeneralFont);
    const bool noDesktop = QGuiApplication::platformName() == QLatin1String("offscreen")
        || QGuiApplication::platformName() == QLatin1String("minimal");
    if (noDesktop || !QFontDatabase::hasFamily(font.family())) {
        const QStringList known{QStringLiteral("Inter"), QStringLiteral("Noto Sans"), QStringLiteral("DejaVu Sans"),
                                QStringLiteral("Liberation Sans"), QStringLiteral("Cantarell")};
        QStringList families;
        std::copy_if(known.begin(), known.end(), std::back_inserter(families),
                     [](const QString& family) { return QFontDatabase::hasFamily(family); });
        families << QStringLiteral("sans-serif");
        font.setFamilies(families);
    }
    const double size = noDesktop || font.pointSizeF() <= 0 ? 10.0 : font.pointSizeF();
    font.setPointSizeF(std::clamp(size * scale, 5.0, 48.0));
    return font;
}

QColor wrapped(const std::vector<QColor>& colours, int index)
{
    const int count = static_cast<int>(colours.size());
    return colours[static_cast<std::size_t>(((index % count) + count) % count)];
}

double channel(double value)
{
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& c)
{
    return 0.2126 * channel(c.redF()) + 0.7152 * channel(c.greenF()) + 0.0722 * channel(c.blueF());
}

} // namespace

QColor Theme::series(int index) const
{
    return palette.empty() ? text : wrapped(palette, index);
}

QColor Theme::pin(int index) const
{
    return pins.empty() ? text : wrapped(pins, index);
}

const Theme& lightTheme()
{
    static const Theme theme = makeLight();
    return theme;
}

const Theme& darkTheme()
{
    static const Theme theme = makeDark();
    return theme;
}

const Theme& themeByName(const QString& name)
{
    if (name == QLatin1String("light"))
        return lightTheme();
    if (name == QLatin1String("dark"))
        return darkTheme();
    captureSystem();
    static const Theme darkest = withHighContrast(darkTheme()), lightest = withHighContrast(lightTheme());
    if (state().systemContrast)
        return state().systemDark ? darkest : lightest;
    return state().systemDark ? darkTheme() : lightTheme();
}

const Theme& currentTheme()
{
    return state().theme ? *state().theme : darkTheme();
}

void applyTheme(QApplication& application, const QString& name, double fontScale)
{
    captureSystem();
    const Theme& theme = themeByName(name);
    state().theme = &theme;
    const QFont font = baseFont(fontScale);
    const QString sheet = styleSheetFor(theme, font);
    if (sheet == application.styleSheet() && font == application.font())
        return; // as it is: Qt would style every widget of every page again, which takes seconds
    application.setStyle(new IndicatorStyle); // the application takes it
    application.setFont(font);
    application.setPalette(paletteFor(theme));
    application.setStyleSheet(sheet);
}

QPalette paletteFor(const Theme& t)
{
    QPalette p;
    p.setColor(QPalette::Window, t.background);
    p.setColor(QPalette::WindowText, t.text);
    p.setColor(QPalette::Base, t.raised);
    p.setColor(QPalette::AlternateBase, mix(t.raised, t.surface, 0.5));
    p.setColor(QPalette::Text, t.text);
    p.setColor(QPalette::PlaceholderText, t.textFaint);
    p.setColor(QPalette::Button, t.raised);
    p.setColor(QPalette::ButtonText, t.text);
    p.setColor(QPalette::BrightText, t.bad);
    p.setColor(QPalette::ToolTipBase, t.raised);
    p.setColor(QPalette::ToolTipText, t.text);
    p.setColor(QPalette::Highlight, t.predicted);
    p.setColor(QPalette::HighlightedText, t.onAccent);
    p.setColor(QPalette::Link, t.predictedText);
    p.setColor(QPalette::LinkVisited, t.series(0));
    p.setColor(QPalette::Light, mix(t.raised, t.text, 0.10));
    p.setColor(QPalette::Midlight, mix(t.raised, t.text, 0.05));
    p.setColor(QPalette::Mid, t.border);
    p.setColor(QPalette::Dark, mix(t.background, Qt::black, 0.3));
    p.setColor(QPalette::Shadow, Qt::black);
    const QColor off = mix(t.raised, t.textFaint, 0.7);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        p.setColor(QPalette::Disabled, role, off);
    p.setColor(QPalette::Disabled, QPalette::Highlight, t.border);
    p.setColor(QPalette::Disabled, QPalette::HighlightedText, off);
    return p;
}

double contrast(const QColor& a, const QColor& b)
{
    const double one = luminance(a) + 0.05;
    const double two = luminance(b) + 0.05;
    return std::max(one, two) / std::min(one, two);
}

QColor mix(const QColor& under, const QColor& over, double share)
{
    const auto blend = [share](int u, int o) {
        return std::clamp(static_cast<int>(std::lround(u + (o - u) * share)), 0, 255);
    };
    return QColor(blend(under.red(), over.red()), blend(under.green(), over.green()), blend(under.blue(), over.blue()));
}

QFont relativeFont(double factor, bool bold)
{
    QFont font = QGuiApplication::font();
    const double size = font.pointSizeF() > 0 ? font.pointSizeF() : 10.0;
    font.setPointSizeF(std::max(4.0, size * factor));
    font.setBold(bold);
    return font;
}

bool motionAllowed()
{
    return state().motion;
}

void setMotionAllowed(bool allowed)
{
    state().motion = allowed;
}

} // namespace memscape
