// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of the window: made when first wanted, shown, and led from one to another.
#include "app/document/pages.h"
#include "app/window/command_palette.h"
#include "app/window/main_window.h"
#include "app/window/tool_pages.h"

#include <QApplication>
#include <QFileInfo>
#include <QSplitter>
#include <QStackedWidget>
#include <QUndoStack>

namespace memscape {

ExperimentPage* MainWindow::page() const
{
    const auto at = m_pages.find(m_page.toStdString());
    return at == m_pages.end() ? nullptr : at->second;
}

ToolPage* MainWindow::tool() const
{
    const auto at = m_tools.find(m_page.toStdString());
    return at == m_tools.end() ? nullptr : at->second;
}

ToolPage* MainWindow::makeTool(const QString& id)
{
    ToolPage* made = makeToolPage(id.toStdString(), {m_document, m_devices, m_settings, m_runs}, this);
    made->setExportMenu(m_exportMenu);
    made->askFile = [this] { return m_files->askOpen(); };
    connect(made, &ToolPage::openWanted, this, [this, id](const QString& path) {
        if (path.isEmpty())
            m_files->open();
        else
            openOn(id, path);
    });
    connect(made, &ToolPage::pageWanted, this, &MainWindow::visit);
    connect(made, &ToolPage::workerWanted, this, &MainWindow::addWorker);
    connect(made, &ToolPage::updated, this, &MainWindow::pageUpdated);
    m_stack->addWidget(made);
    return made;
}

void MainWindow::openOn(const QString& page, const QString& path)
{
    const bool wasEmpty = m_document.fileName().isEmpty() && !m_document.isModified();
    showPage(page);
    tool()->open(path);
    if (wasEmpty)
        m_document.undoStack()->setClean(); // looking at a file is no change that wants saving
}

void MainWindow::visit(const PageVisit& visit)
{
    if (visit.changes.empty() && visit.device.empty() && visit.item.isEmpty()) {
        showPage(visit.page);
        return;
    }
    m_document.undoStack()->beginMacro(visit.step);
    m_document.visitPage(visit.page.toStdString());
    if (!visit.device.empty())
        chooseDevice(visit.device);
    if (page())
        static_cast<void>(page()->setTexts(visit.changes, visit.step)); // they parse, or stay
    else if (tool())
        tool()->showItem(visit.item);
    m_document.undoStack()->endMacro();
}

void MainWindow::chooseDevice(const std::string& id)
{
    if (page())
        m_document.setDevice(page()->experiment().id(), id);
    else if (tool())
        tool()->setDevice(id);
}

QSplitter* MainWindow::shownSplitter() const
{
    return page() ? page()->splitter() : tool() ? tool()->splitter() : nullptr;
}

/// A page comes on top, its panels as wide as those of the one before.
void MainWindow::shown(const QString& id, QWidget* page)
{
    const QSplitter* before = m_page != id ? shownSplitter() : nullptr;
    // A page that has nothing to show yet has panels that no one has seen.
    const QList<int> sizes = before && before->isVisible() ? before->sizes() : QList<int>();
    m_page = id;
    if (QSplitter* splitter = shownSplitter(); splitter && !sizes.isEmpty() && sizes.front() > 0)
        splitter->setSizes(sizes);
    m_rail->setPage(id);
    setPanels();
    // Who came by the rail goes on there; else the keyboard would stay on a page that is gone.
    const QWidget* focus = QApplication::focusWidget();
    const bool isLeft =
        focus == nullptr || focus == this || m_stack->isAncestorOf(focus) || m_palette->isAncestorOf(focus);
    m_stack->setCurrentWidget(page);
    if (isLeft && isActiveWindow())
        (tool() ? tool()->stage() : this->page()->stage())->setFocus(Qt::OtherFocusReason);
    m_document.setPage(id.toStdString());
    pageUpdated();
}

ExperimentPage* MainWindow::makePage(const Experiment& experiment, const QString& id)
{
    auto* made = new ExperimentPage(experiment, {m_document, m_devices, m_settings, m_runs}, this, id.toStdString());
    made->header()->setExportMenu(m_exportMenu);
    connect(made->header()->device(), &DeviceButton::commandWanted, this, &MainWindow::addWorker);
    connect(made->header()->device(), &DeviceButton::fileWanted, m_files, &StudyFiles::open);
    connect(made->inspector()->records(), &RecordsList::exportWanted, m_exporter, &Exporter::record);
    connect(made->plot()->view(), &PlotView::exportRequested, this,
            [this] { m_actions.at(QStringLiteral("file.exportPlot")).trigger(); });
    connect(made->plot()->view(), &PlotView::failed, this, [this](const QString& message) {
        m_banner->showError({"export.write", message.toStdString()});
    });
    connect(made, &ExperimentPage::updated, this, &MainWindow::pageUpdated);
    connect(made, &ExperimentPage::pageWanted, this, &MainWindow::visit);
    m_stack->addWidget(made);
    if (m_options.remember)
        m_views.restore(*made);
    return made;
}

bool MainWindow::showPage(const QString& id)
{
    if (findToolPage(id.toStdString())) {
        ToolPage*& made = m_tools[id.toStdString()];
        if (made == nullptr)
            made = makeTool(id);
        shown(id, made);
        m_banner->setPage(id); // over the page that came on top
        return true;
    }
    const auto experiment = findExperiment(experimentOfPage(id.toStdString()));
    if (!experiment)
        return false;
    ExperimentPage*& made = m_pages[id.toStdString()];
    if (made == nullptr)
        made = makePage(**experiment, id);
    shown(id, made);
    m_banner->setPage(QString::fromStdString((*experiment)->id()));
    return true;
}

/// A file goes to the page with such a parameter that is shown, or to the first one.
void MainWindow::openFor(const QString& key, const QString& otherwise, const QString& path)
{
    if (!page() || page()->inspector()->form()->field(key) == nullptr) {
        if (!showPage(otherwise))
            return;
    }
    page()->proposeText(key, QFileInfo(path).absoluteFilePath());
}

void MainWindow::pageUpdated()
{
    if (page())
        m_rail->setDevice(page()->deviceId());
    else if (tool())
        m_rail->setDevice(tool()->deviceId());
    refreshRun();
}

} // namespace memscape
