// SPDX-License-Identifier: GPL-3.0-or-later
// How the window is laid out: as the last time, as standard, and no larger than its screen.
#include "app/window/main_window.h"

#include <QFileInfo>
#include <QScreen>
#include <QSplitter>
#include <QToolBar>

namespace memscape {

void MainWindow::restore(bool reopen)
{
    m_session.restoreWindow(*this);
    const QVariantMap layout = m_session.pageView({}, QStringLiteral("layout"));
    for (const char* panel : {"view.rail", "view.inspector", "view.picture"}) {
        const QString id = QString::fromLatin1(panel);
        m_actions.at(id).setChecked(layout.value(id, true).toBool());
    }
    m_actions.at(QStringLiteral("view.toolbar")).setChecked(!m_toolbar->isHidden());
    const QString last = m_session.lastStudy();
    if (reopen && !last.isEmpty() && QFileInfo::exists(last))
        m_files->openPath(last);
    const QString fallback = QString::fromStdString(experiments().front()->id());
    QString wanted = QString::fromStdString(m_document.page());
    if (wanted.isEmpty())
        wanted = layout.value(QStringLiteral("page")).toString();
    if (!showPage(wanted))
        showPage(fallback);
    const QString item = layout.value(QStringLiteral("item")).toString();
    if (tool() && m_page == wanted && !item.isEmpty())
        tool()->showItem(item);
    if (page())
        page()->stage()->setFocus();
    else if (tool())
        tool()->stage()->setFocus();
    const QByteArray splitter = layout.value(QStringLiteral("splitter")).toByteArray();
    if (shownSplitter() && !splitter.isEmpty())
        shownSplitter()->restoreState(splitter);
}

void MainWindow::rememberLayout()
{
    m_session.saveWindow(*this);
    QVariantMap layout;
    for (const char* panel : {"view.rail", "view.inspector", "view.picture"})
        layout.insert(QString::fromLatin1(panel), m_actions.at(QString::fromLatin1(panel)).isChecked());
    layout.insert(QStringLiteral("page"), m_page);
    if (tool())
        layout.insert(QStringLiteral("item"), tool()->item());
    if (shownSplitter())
        layout.insert(QStringLiteral("splitter"), shownSplitter()->saveState());
    m_session.setPageView({}, QStringLiteral("layout"), layout);
    for (const auto& [id, page] : m_pages)
        m_views.remember(*page);
    m_session.setLastStudy(m_document.fileName());
}

void MainWindow::restoreDefaultLayout()
{
    m_session.resetLayout();
    m_session.setPageView({}, QStringLiteral("layout"), {});
    if (isFullScreen() || isMaximized())
        showNormal();
    for (const char* panel : {"view.rail", "view.inspector", "view.picture"})
        m_actions.at(QString::fromLatin1(panel)).setChecked(true);
    m_toolbar->hide();
    resize(standardSize);
    shrinkToScreen();
    const QList<int> sizes{width() - m_rail->width() - 364, 364};
    for (const auto& [id, page] : m_pages)
        page->splitter()->setSizes(sizes);
    for (const auto& [id, page] : m_tools) {
        if (page->splitter())
            page->splitter()->setSizes(sizes);
    }
}

void MainWindow::shrinkToScreen()
{
    constexpr QSize frame(16, 48); // what a window manager puts around it
    if (!isMaximized() && !isFullScreen())
        resize(size().boundedTo(screen()->availableSize() - frame));
}

} // namespace memscape
