// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/window_actions.h"

#include "app/document/pages.h"
#include "app/settings/words.h"

namespace memscape {

namespace {

/// A top menu, from its first action to its last.
struct Menu
{
    Actions& actions;
    QString key;
    int section = 0;

    /// `keys`: one or more shortcuts with a space between them.
    void add(const QString& id, const QString& text, const QString& tip, const char* icon = "", const char* keys = "",
             bool isSwitch = false) const
    {
        QList<QKeySequence> shortcuts;
        for (const QString& one : QString::fromLatin1(keys).split(u' ', Qt::SkipEmptyParts))
            shortcuts << QKeySequence(one, QKeySequence::PortableText);
        actions.add({id, text, tip, QString::fromLatin1(icon), shortcuts, key, section, isSwitch});
    }
    void addSwitch(const QString& id, const QString& text, const QString& tip, const char* icon = "",
                   const char* keys = "") const
    {
        add(id, text, tip, icon, keys, true);
    }
    void nextSection() { ++section; }
};

void defineFile(Actions& actions)
{
    Menu menu{actions, QStringLiteral("file")};
    menu.add("file.new", tr("&New study"), tr("Start an empty study"), "new", "Ctrl+N");
    menu.add("file.open", tr("&Open…"), tr("Open a study, a record, a device file or a memory snapshot"), "open",
             "Ctrl+O");
    menu.add("file.example", tr("Open the e&xample"),
             tr("A study of a quiet machine: hierarchy, strides and attention, predicted and measured"));
    menu.add("file.reload", tr("Re&load"), tr("Read the study's file again"), "reload", "F5");
    menu.nextSection();
    menu.add("file.save", tr("&Save"), tr("Save the study"), "save", "Ctrl+S");
    menu.add("file.saveAs", tr("Save &as…"), tr("Save the study under another name"), "", "Ctrl+Shift+S");
    menu.nextSection();
    menu.add("file.exportPlot", tr("Export &plot…"), tr("The plot as it is on screen: PNG, SVG or PDF"), "plot",
             "Ctrl+E");
    menu.add("file.exportPage", tr("Export pa&ge…"), tr("Picture, plot and figures on one sheet: PNG, SVG or PDF"),
             "export", "Ctrl+Shift+E");
    menu.add("file.exportCsv", tr("Export &data as CSV…"), tr("Predicted and measured points with their band"));
    menu.add("file.exportJson", tr("Export data as &JSON…"),
             tr("The record: figures, series, why, where they come from"));
    menu.add("file.exportReport", tr("Export study as repor&t…"), tr("All records of the study as one HTML page"),
             "file");
    menu.add(
        "file.exportMemoryViz", tr("Export for memory_&viz…"),
        tr("The predicted step, or the selected range of a snapshot, as a pickle that pytorch.org/memory_viz opens"));
    menu.nextSection();
    menu.add("file.quit", tr("&Quit"), tr("Close the window"), "", "Ctrl+Q");
}

void defineEdit(Actions& actions)
{
    Menu menu{actions, QStringLiteral("edit")};
    menu.add("edit.undo", tr("&Undo"), tr("Undo the last change"), "undo", "Ctrl+Z");
    menu.add("edit.redo", tr("&Redo"), tr("Do the undone change again"), "redo", "Ctrl+Shift+Z Ctrl+Y");
    menu.nextSection();
    menu.add("edit.copyPlot", tr("&Copy plot"), tr("The plot as an image, to the clipboard"), "copy", "Ctrl+Alt+C");
    menu.add("edit.copyData", tr("Copy &data"), tr("The points as a table, to the clipboard"), "", "Ctrl+Shift+C");
    menu.add("edit.copyPytorch", tr("Copy as Py&Torch lines"),
             tr("The chosen setting as PyTorch: optimizer, precision, checkpointing, sharding"));
    menu.add("edit.copyDeepspeed", tr("Copy as Deep&Speed configuration"),
             tr("The chosen setting as DeepSpeed's JSON"));
    menu.add("edit.copyAccelerate", tr("Copy as &Accelerate configuration"),
             tr("The chosen setting as YAML for accelerate launch"));
    menu.add("edit.copyTorchrun", tr("Copy as torchru&n line"),
             tr("The chosen setting as torchrun's command line with transformers' arguments"));
    menu.nextSection();
    menu.add("edit.palette", tr("Command &palette…"), tr("Find anything by typing a few letters"), "search", "Ctrl+K");
}

void defineView(Actions& actions)
{
    Menu menu{actions, QStringLiteral("view")};
    menu.addSwitch("view.rail", tr("&Rail"), tr("Show or hide the list of experiments"), "rail", "Ctrl+B");
    menu.addSwitch("view.inspector", tr("&Inspector"), tr("Show or hide parameters and figures"), "inspector", "F9");
    menu.addSwitch("view.picture", tr("&Picture"), tr("Show or hide the picture over the plot"), "", "Shift+F9");
    menu.addSwitch("view.toolbar", tr("&Toolbar"), tr("Show or hide the toolbar"));
    menu.addSwitch("view.fullScreen", tr("&Full screen"), tr("Use the whole screen"), "", "F11");
    menu.nextSection();
    menu.add("view.zoomIn", tr("Larg&er text"), tr("Enlarge all text and controls"), "", "Ctrl+= Ctrl++");
    menu.add("view.zoomOut", tr("&Smaller text"), tr("Shrink all text and controls"), "", "Ctrl+-");
    menu.add("view.zoomReset", tr("&Normal text"), tr("Text at the desktop's own size"), "", "Ctrl+0");
    menu.nextSection();
    menu.addSwitch("view.themeSystem", tr("Theme: as the s&ystem"), tr("Light or dark as the desktop"));
    menu.addSwitch("view.themeLight", tr("Theme: &light"), tr("Dark text on white"));
    menu.addSwitch("view.themeDark", tr("Theme: &dark"), tr("Light text on black"));
    menu.nextSection();
    menu.addSwitch("view.bases", tr("Predictions on every &basis"),
                   tr("Also draw the predictions from the data sheet and without the calibration"));
    menu.add("view.resetPlot", tr("Show &all data"), tr("Undo zoom and pan of the plot"), "", "Ctrl+Home");
    menu.add("view.message", tr("Go to the &message"),
             tr("The newest message over the page gets the keyboard, and back"), "", "F6");
    menu.nextSection();
    menu.add("view.restoreLayout", tr("Rest&ore default layout"),
             tr("Panels, splitters and window size as at the first start"));
}

void defineRun(Actions& actions)
{
    Menu menu{actions, QStringLiteral("run")};
    menu.add("run.measure", tr("&Measure"), tr("Run the experiment on the device and draw it beside the prediction"),
             "measure", "Ctrl+R");
    menu.add("run.measurePoint", tr("Measure only this &point"),
             tr("Run the selected point alone: the rest of the curve stays as it is"), "measure", "Ctrl+Shift+R");
    menu.add("run.pinPrediction", tr("Pin this pr&ediction"),
             tr("Keep the present prediction as a record, drawn beside what comes next"), "pin", "Ctrl+Shift+P");
    menu.add("run.stop", tr("&Stop"), tr("Stop the measurement; measured points are kept"), "stop", "Ctrl+.");
    menu.nextSection();
    menu.add("run.calibrate", tr("&Calibrate device"),
             tr("Measure the device for one to three minutes; predictions then use it"), "calibrate");
    menu.add("run.forgetCalibration", tr("&Forget calibration"),
             tr("Predictions of the device use its description again"), "calibrate");
    menu.nextSection();
    menu.add("run.addWorker", tr("&Add device from command…"),
             tr("A machine reached by a command, such as ssh lab-gpu memscape-cli worker"));
    menu.add("run.openDevice", tr("&Open device file…"), tr("A calibrated or hand-written device"));
    menu.nextSection();
    menu.add("run.restartWorkers", tr("&Restart workers"), tr("Start the measuring processes again"));
}

void defineSettingsAndHelp(Actions& actions)
{
    Menu settings{actions, QStringLiteral("settings")}, help{actions, QStringLiteral("help")};
    settings.add("settings.open", tr("&Settings…"), tr("Theme, units, workers, shortcuts"), "settings", "Ctrl+,");
    settings.nextSection();
    settings.addSwitch("settings.decimal", tr("&Decimal units (GB)"), tr("Bytes in GB (10⁹) instead of GiB (2³⁰)"));
    settings.addSwitch("settings.motion", tr("Reduce &motion"), tr("Pictures do not move by themselves"));
    help.add("help.experiment", tr("&About this experiment"), tr("What it models and what it leaves out"), "info",
             "F1");
    help.add("help.start", tr("&Getting started"), tr("Five minutes with Memscape"));
    help.add("help.measuring", tr("How it mea&sures"), tr("What is measured, and what a prediction is based on"));
    help.add("help.pytorch", tr("&Your own PyTorch programs"), tr("Recording a training loop, exporting a model"));
    help.add("help.accuracy", tr("A&ccuracy: what was checked"),
             tr("Every page's numbers: what they were compared with, and their errors"));
    help.add("help.published", tr("Published figures, &row by row"),
             tr("What predicting them first showed, and where predictions are still wrong"));
    help.add("help.claims", tr("What course &notes claim"),
             tr("The claims of five course notes, each with a verdict: how they are judged"));
    help.add("help.labs", tr("La&bs"), tr("Predict, lock, measure, explain: for students and teachers"));
    help.add("help.glossary", tr("G&lossary"), tr("Warp, working set, ridge, ZeRO … in a sentence each"));
    help.add("help.first", tr("Show the &first steps"), tr("The row of suggestions above the page"));
    help.add("help.shortcuts", tr("&Keyboard shortcuts"), tr("All of them"), "", "Ctrl+F1");
    help.nextSection();
    help.add("help.about", tr("About &Memscape"), tr("Version and licences"));
}

} // namespace

void defineActions(Actions& actions, const std::vector<const Experiment*>& experiments)
{
    defineFile(actions);
    defineEdit(actions);
    defineView(actions);
    Menu experiment{actions, QStringLiteral("experiment")};
    int number = 1;
    for (const PageInfo& page : allPages(experiments)) {
        const QString keys = number <= 9 ? QStringLiteral("Ctrl+%1").arg(number++) : QString();
        experiment.add(QStringLiteral("page.") + QString::fromStdString(page.id), QString::fromStdString(page.title),
                       QString::fromStdString(page.question), "plot", qPrintable(keys));
    }
    experiment.nextSection();
    experiment.add("experiment.reset", tr("&Reset parameters"), tr("All parameters of this page to their defaults"), "",
                   "Ctrl+Shift+0");
    experiment.add("experiment.latest", tr("Show the &newest measurement"),
                   tr("Instead of the record that was clicked"));
    defineRun(actions);
    defineSettingsAndHelp(actions);
}

} // namespace memscape
