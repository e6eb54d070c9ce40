// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/launch_options.h"

#include "app/cli/parse_problem.h"
#include "core/base/number.h"
#include "core/experiment/record.h"

#include <CLI/CLI.hpp>

#include <QFileInfo>

namespace memscape {

namespace {

constexpr auto description =
    "Memscape: see where a machine-learning workload's bytes go.\n"
    "Opens the window; with --render or --screenshot it writes a picture and needs no display.\n"
    "Predicting and measuring without a window: memscape-cli --help";

constexpr auto footer = "Examples:\n"
                        "  memscape lab.memscape\n"
                        "  memscape --render run.json -o run.svg --theme light\n"
                        "  memscape --screenshot stride -o stride.png stride=4 element=float32 --size 1280x800\n"
                        "  memscape run.pickle\n"
                        "  memscape --screenshot labs lab=cache-size step=guess -o guess.png\n"
                        "  memscape --screenshot snapshot file=run.pickle view=blocks -o blocks.png\n"
                        "  memscape --screenshot claims device=nvidia-h200 entry=four-m -o claim.png\n"
                        "Exit codes: 0 done, 1 it failed while running, 2 the input was wrong, 3 no such device.";

/// Words for QGuiApplication itself (-platform xcb); CLI11 would read them as bundled short flags.
QStringList withoutQtOptions(const QStringList& arguments)
{
    static const QStringList known = {QStringLiteral("-platform"), QStringLiteral("-style"),
                                      QStringLiteral("-stylesheet")};
    QStringList rest;
    for (qsizetype i = 0; i < arguments.size(); ++i) {
        if (known.contains(arguments.at(i)))
            ++i;
        else
            rest << arguments.at(i);
    }
    return rest;
}

Result<void> checkOutput(const LaunchOptions& options, const QStringList& suffixes)
{
    if (options.output.isEmpty())
        return fail("usage.output", "no output file was given", "add -o FILE");
    const QString suffix = QFileInfo(options.output).suffix().toLower();
    if (!suffixes.contains(suffix))
        return fail("usage.output", "cannot tell the kind of picture from \"" + options.output.toStdString() + "\"",
                    "name it ." + suffixes.join(QStringLiteral(", .")).toStdString());
    return {};
}

Result<void> checkModes(LaunchOptions& options, const QStringList& positional)
{
    if (!options.record.isEmpty() && !options.page.isEmpty())
        return fail("usage.modes", "--render and --screenshot exclude each other", "run memscape twice");
    if (!options.theme.isEmpty() && options.theme != QStringLiteral("light") && options.theme != QStringLiteral("dark"))
        return fail("usage.theme", "unknown theme \"" + options.theme.toStdString() + "\"", "light or dark");
    if (!options.record.isEmpty()) {
        options.mode = LaunchOptions::Mode::Render;
        if (!positional.isEmpty())
            return fail("usage.extra", "unexpected \"" + positional.first().toStdString() + "\" after --render",
                        "--render draws one record or study");
        return checkOutput(options, {QStringLiteral("png"), QStringLiteral("svg"), QStringLiteral("pdf")});
    }
    if (!options.page.isEmpty()) {
        options.mode = LaunchOptions::Mode::Screenshot;
        options.values = positional;
        return checkOutput(options, {QStringLiteral("png")});
    }
    if (!options.output.isEmpty())
        return fail("usage.output", "-o goes with --render or --screenshot");
    options.files = positional;
    return {};
}

} // namespace

Result<QSize> parseSize(const QString& text)
{
    const QStringList parts = text.toLower().split(u'x');
    bool wide = false;
    bool high = false;
    const QSize size(parts.value(0).toInt(&wide), parts.value(1).toInt(&high));
    if (parts.size() != 2 || !wide || !high || size.width() < 64 || size.height() < 64 || size.width() > 16384
        || size.height() > 16384)
        return fail("usage.size", "\"" + text.toStdString() + "\" is not a size",
                    "WIDTHxHEIGHT in pixels, each 64 to 16384, such as 1600x1000");
    return size;
}

Result<LaunchOptions> parseLaunch(const QStringList& arguments)
{
    LaunchOptions options;
    std::vector<std::string> positional;
    std::string record, page, output, size, theme, device;
    CLI::App cli(description, "memscape");
    cli.footer(footer);
    cli.set_version_flag("--version", "memscape " + programVersion());
    cli.add_option("files", positional,
                   "studies (*.memscape), records, device files, memory snapshots, labs and answers (*.mlab) to open; "
                   "with --screenshot: KEY=VALUE parameters");
    cli.add_option("--render", record, "draw a record's plot into -o, then exit");
    cli.add_option("--screenshot", page, "draw an experiment's page into -o, then exit");
    cli.add_option("-o,--output", output, "the picture: .png, .svg or .pdf");
    cli.add_option("--size", size, "WIDTHxHEIGHT in pixels");
    cli.add_option("--theme", theme, "light or dark");
    cli.add_option("--device", device, "with --screenshot: cpu, a catalogue id or a device file");
    cli.add_flag("--reset-layout", options.resetLayout, "reset the layout of panels and windows, then open");
    cli.add_flag("--new-window", options.newWindow, "start with an empty study instead of the last one");

    std::vector<std::string> words;
    for (const QString& word : withoutQtOptions(arguments))
        words.insert(words.begin(), word.toStdString()); // CLI11 reads a vector from its end
    try {
        cli.parse(words);
    } catch (const CLI::CallForHelp&) {
        options.mode = LaunchOptions::Mode::Text;
        options.text = QString::fromStdString(cli.help());
        return options;
    } catch (const CLI::CallForVersion& version) {
        options.mode = LaunchOptions::Mode::Text;
        options.text = QString::fromStdString(std::string(version.what()) + "\n");
        return options;
    } catch (const CLI::ParseError& error) {
        return fail("usage.syntax", parseProblem(cli, error), "memscape --help lists the options");
    }
    options.record = QString::fromStdString(record);
    options.page = QString::fromStdString(page);
    options.output = QString::fromStdString(output);
    options.theme = QString::fromStdString(theme);
    options.device = QString::fromStdString(device);
    if (!size.empty())
        MEMSCAPE_SET(options.size, parseSize(QString::fromStdString(size)));
    QStringList names;
    for (const std::string& name : positional)
        names << QString::fromStdString(name);
    MEMSCAPE_CHECK(checkModes(options, names));
    return options;
}

bool displayAvailable()
{
    return !qEnvironmentVariableIsEmpty("DISPLAY") || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY")
        || !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM");
}

} // namespace memscape
