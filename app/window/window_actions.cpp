// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/window_actions.h"

#include "app/document/pages.h"
#include "app/settings/words.h"

#include <QCoreApplication>

namespace memscape {

namespace {

QKeySequence keys(const char* text)
{
    return QKeySequence(QString::fromLatin1(text), QKeySequence::PortableText);
}

void defineFile(Actions& actions)
{
    const QString menu = QStringLiteral("file");
    actions.add({"file.new", tr("&New study"), tr("Start an empty study"), "new", {keys("Ctrl+N")}, menu, 0});
    actions.add({"file.open",
                 tr("&Open…"),
                 tr("Open a study, a record, a device file or a memory snapshot"),
                 "open",
                 {keys("Ctrl+O")},
                 menu,
                 0});
    actions.add({"file.example",
                 tr("Open the e&xample"),
                 tr("A study of a quiet machine: hierarchy, strides and attention, predicted and measured"),
                 {},
                 {},
                 menu,
                 0});
    actions.add({"file.reload", tr("Re&load"), tr("Read the study's file again"), "reload", {keys("F5")}, menu, 0});
    actions.add({"file.save", tr("&Save"), tr("Save the study"), "save", {keys("Ctrl+S")}, menu, 1});
    actions.add(
        {"file.saveAs", tr("Save &as…"), tr("Save the study under another name"), {}, {keys("Ctrl+Shift+S")}, menu, 1});
    actions.add({"file.exportPlot",
                 tr("Export &plot…"),
                 tr("The plot as it is on screen: PNG, SVG or PDF"),
                 "plot",
                 {keys("Ctrl+E")},
                 menu,
                 2});
    actions.add({"file.exportPage",
                 tr("Export pa&ge…"),
                 tr("Picture, plot and figures on one sheet: PNG, SVG or PDF"),
                 "export",
                 {keys("Ctrl+Shift+E")},
                 menu,
                 2});
    actions.add({"file.exportCsv",
                 tr("Export &data as CSV…"),
                 tr("Predicted and measured points with their band"),
                 {},
                 {},
                 menu,
                 2});
    actions.add({"file.exportJson",
                 tr("Export data as &JSON…"),
                 tr("The record: figures, series, why, where they come from"),
                 {},
                 {},
                 menu,
                 2});
    actions.add({"file.exportReport",
                 tr("Export study as repor&t…"),
                 tr("All records of the study as one HTML page"),
                 "file",
                 {},
                 menu,
                 2});
    actions.add(
        {"file.exportMemoryViz",
         tr("Export for memory_&viz…"),
         tr("The predicted step, or the selected range of a snapshot, as a pickle that pytorch.org/memory_viz opens"),
         {},
         {},
         menu,
         2});
    actions.add({"file.quit", tr("&Quit"), tr("Close the window"), {}, {keys("Ctrl+Q")}, menu, 3});
}

void defineEdit(Actions& actions)
{
    const QString menu = QStringLiteral("edit");
    actions.add({"edit.undo", tr("&Undo"), tr("Undo the last change"), "undo", {keys("Ctrl+Z")}, menu, 0});
    actions.add({"edit.redo",
                 tr("&Redo"),
                 tr("Do the undone change again"),
                 "redo",
                 {keys("Ctrl+Shift+Z"), keys("Ctrl+Y")},
                 menu,
                 0});
    actions.add({"edit.copyPlot",
                 tr("&Copy plot"),
                 tr("The plot as an image, to the clipboard"),
                 "copy",
                 {keys("Ctrl+Alt+C")},
                 menu,
                 1});
    actions.add({"edit.copyData",
                 tr("Copy &data"),
                 tr("The points as a table, to the clipboard"),
                 {},
                 {keys("Ctrl+Shift+C")},
                 menu,
                 1});
    actions.add({"edit.copyPytorch",
                 tr("Copy as Py&Torch lines"),
                 tr("The chosen setting as PyTorch: optimizer, precision, checkpointing, sharding"),
                 {},
                 {},
                 menu,
                 1});
    actions.add({"edit.copyDeepspeed",
                 tr("Copy as Deep&Speed configuration"),
                 tr("The chosen setting as DeepSpeed's JSON"),
                 {},
                 {},
                 menu,
                 1});
    actions.add({"edit.copyAccelerate",
                 tr("Copy as &Accelerate configuration"),
                 tr("The chosen setting as YAML for accelerate launch"),
                 {},
                 {},
                 menu,
                 1});
    actions.add({"edit.copyTorchrun",
                 tr("Copy as torchru&n line"),
                 tr("The chosen setting as torchrun's command line with transformers' arguments"),
                 {},
                 {},
                 menu,
                 1});
    actions.add({"edit.palette",
                 tr("Command &palette…"),
                 tr("Find anything by typing a few letters"),
                 "search",
                 {keys("Ctrl+K")},
                 menu,
                 2});
}

void defineView(Actions& actions)
{
    const QString menu = QStringLiteral("view");
    actions.add({"view.rail",
                 tr("&Rail"),
                 tr("Show or hide the list of experiments"),
                 "rail",
                 {keys("Ctrl+B")},
                 menu,
                 0,
                 true});
    actions.add({"view.inspector",
                 tr("&Inspector"),
                 tr("Show or hide parameters and figures"),
                 "inspector",
                 {keys("F9")},
                 menu,
                 0,
                 true});
    actions.add({"view.picture",
                 tr("&Picture"),
                 tr("Show or hide the picture over the plot"),
                 {},
                 {keys("Shift+F9")},
                 menu,
                 0,
                 true});
    actions.add({"view.toolbar", tr("&Toolbar"), tr("Show or hide the toolbar"), {}, {}, menu, 0, true});
    actions.add({"view.fullScreen", tr("&Full screen"), tr("Use the whole screen"), {}, {keys("F11")}, menu, 0, true});
    actions.add({"view.zoomIn",
                 tr("Larg&er text"),
                 tr("Enlarge all text and controls"),
                 {},
                 {keys("Ctrl+="), keys("Ctrl++")},
                 menu,
                 1});
    actions.add(
        {"view.zoomOut", tr("&Smaller text"), tr("Shrink all text and controls"), {}, {keys("Ctrl+-")}, menu, 1});
    actions.add(
        {"view.zoomReset", tr("&Normal text"), tr("Text at the desktop's own size"), {}, {keys("Ctrl+0")}, menu, 1});
    actions.add(
        {"view.themeSystem", tr("Theme: as the s&ystem"), tr("Light or dark as the desktop"), {}, {}, menu, 2, true});
    actions.add({"view.themeLight", tr("Theme: &light"), tr("Dark text on white"), {}, {}, menu, 2, true});
    actions.add({"view.themeDark", tr("Theme: &dark"), tr("Light text on black"), {}, {}, menu, 2, true});
    actions.add({"view.bases",
                 tr("Predictions on every &basis"),
                 tr("Also draw the predictions from the data sheet and without the calibration"),
                 {},
                 {},
                 menu,
                 3,
                 true});
    actions.add({"view.resetPlot",
                 tr("Show &all data"),
                 tr("Undo zoom and pan of the plot"),
                 {},
                 {keys("Ctrl+Home")},
                 menu,
                 3});
    actions.add({"view.restoreLayout",
                 tr("Rest&ore default layout"),
                 tr("Panels, splitters and window size as at the first start"),
                 {},
                 {},
                 menu,
                 4});
}

void defineRun(Actions& actions)
{
    const QString menu = QStringLiteral("run");
    actions.add({"run.measure",
                 tr("&Measure"),
                 tr("Run the experiment on the device and draw it beside the prediction"),
                 "measure",
                 {keys("Ctrl+R")},
                 menu,
                 0});
    actions.add({"run.measurePoint",
                 tr("Measure only this &point"),
                 tr("Run the selected point alone: the rest of the curve stays as it is"),
                 "measure",
                 {keys("Ctrl+Shift+R")},
                 menu,
                 0});
    actions.add({"run.pinPrediction",
                 tr("Pin this pr&ediction"),
                 tr("Keep the present prediction as a record, drawn beside what comes next"),
                 "pin",
                 {keys("Ctrl+Shift+P")},
                 menu,
                 0});
    actions.add({"run.stop",
                 tr("&Stop"),
                 tr("Stop the measurement; measured points are kept"),
                 "stop",
                 {keys("Ctrl+.")},
                 menu,
                 0});
    actions.add({"run.calibrate",
                 tr("&Calibrate device"),
                 tr("Measure the device for one to three minutes; predictions then use it"),
                 "calibrate",
                 {},
                 menu,
                 1});
    actions.add({"run.forgetCalibration",
                 tr("&Forget calibration"),
                 tr("Predictions of the device use its description again"),
                 "calibrate",
                 {},
                 menu,
                 1});
    actions.add({"run.addWorker",
                 tr("&Add device from command…"),
                 tr("A machine reached by a command, such as ssh lab-gpu memscape-cli worker"),
                 {},
                 {},
                 menu,
                 2});
    actions.add(
        {"run.openDevice", tr("&Open device file…"), tr("A calibrated or hand-written device"), {}, {}, menu, 2});
    actions.add(
        {"run.restartWorkers", tr("&Restart workers"), tr("Start the measuring processes again"), {}, {}, menu, 3});
}

void defineSettingsAndHelp(Actions& actions)
{
    actions.add({"settings.open",
                 tr("&Settings…"),
                 tr("Theme, units, workers, shortcuts"),
                 "settings",
                 {keys("Ctrl+,")},
                 "settings",
                 0});
    actions.add({"settings.decimal",
                 tr("&Decimal units (GB)"),
                 tr("Bytes in GB (10⁹) instead of GiB (2³⁰)"),
                 {},
                 {},
                 "settings",
                 1,
                 true});
    actions.add({"settings.motion",
                 tr("Reduce &motion"),
                 tr("Pictures do not move by themselves"),
                 {},
                 {},
                 "settings",
                 1,
                 true});
    actions.add({"help.experiment",
                 tr("&About this experiment"),
                 tr("What it models and what it leaves out"),
                 "info",
                 {keys("F1")},
                 "help",
                 0});
    actions.add({"help.start", tr("&Getting started"), tr("Five minutes with Memscape"), {}, {}, "help", 0});
    actions.add({"help.measuring",
                 tr("How it mea&sures"),
                 tr("What is measured, and what a prediction is based on"),
                 {},
                 {},
                 "help",
                 0});
    actions.add({"help.pytorch",
                 tr("&Your own PyTorch programs"),
                 tr("Recording a training loop, exporting a model"),
                 {},
                 {},
                 "help",
                 0});
    actions.add({"help.accuracy",
                 tr("A&ccuracy: what was checked"),
                 tr("Every page's numbers: what they were compared with, and their errors"),
                 {},
                 {},
                 "help",
                 0});
    actions.add({"help.claims",
                 tr("What course &notes claim"),
                 tr("The claims of five course notes, each with a verdict: how they are judged"),
                 {},
                 {},
                 "help",
                 0});
    actions.add({"help.labs",
                 tr("La&bs"),
                 tr("Predict, lock, measure, explain: for students and teachers"),
                 {},
                 {},
                 "help",
                 0});
    actions.add({"help.glossary",
                 tr("G&lossary"),
                 tr("Warp, working set, ridge, ZeRO … in a sentence each"),
                 {},
                 {},
                 "help",
                 0});
    actions.add(
        {"help.first", tr("Show the &first steps"), tr("The row of suggestions above the page"), {}, {}, "help", 0});
    actions.add({"help.shortcuts", tr("&Keyboard shortcuts"), tr("All of them"), {}, {keys("Ctrl+F1")}, "help", 0});
    actions.add({"help.about", tr("About &Memscape"), tr("Version and licences"), {}, {}, "help", 1});
}

} // namespace

void defineActions(Actions& actions, const std::vector<const Experiment*>& experiments)
{
    defineFile(actions);
    defineEdit(actions);
    defineView(actions);
    int number = 1;
    for (const PageInfo& page : allPages(experiments)) {
        QList<QKeySequence> shortcuts;
        if (number <= 9)
            shortcuts << keys(qPrintable(QStringLiteral("Ctrl+%1").arg(number++)));
        actions.add({QStringLiteral("page.") + QString::fromStdString(page.id), QString::fromStdString(page.title),
                     QString::fromStdString(page.question), "plot", shortcuts, "experiment", 0});
    }
    actions.add({"experiment.reset",
                 tr("&Reset parameters"),
                 tr("All parameters of this page to their defaults"),
                 {},
                 {keys("Ctrl+Shift+0")},
                 "experiment",
                 1});
    actions.add({"experiment.latest",
                 tr("Show the &newest measurement"),
                 tr("Instead of the record that was clicked"),
                 {},
                 {},
                 "experiment",
                 1});
    defineRun(actions);
    defineSettingsAndHelp(actions);
}

} // namespace memscape
