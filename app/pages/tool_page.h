// SPDX-License-Identifier: GPL-3.0-or-later
// A page of the window that is no experiment: what it must be so that the window shows it, exports it, finds it on the
// rail and in the palette, and draws it with --screenshot. Its id, title, question, group on the rail and chapter of
// the help stand in document/pages.cpp, what makes it in window/tool_pages.cpp.
//
// What can be undone and is saved with the study is kept in the document as view settings of the page's id.
#pragma once

#include "app/document/pages.h"
#include "app/pages/page_services.h"
#include "app/pages/page_visit.h"
#include "app/pages/sheet.h"

#include <QStringList>
#include <QWidget>

class QMenu;
class QSplitter;

namespace memscape {

/// What leaves the window from a page; what is empty the page does not have now.
struct PageExports
{
    /// Writes a file of that path, beside the window's thread: it holds what it needs. Errors: file.*.
    using Write = std::function<Result<void>(const QString& path)>;

    QString name;                 ///< suggested for files, without an ending
    std::function<Sheet()> sheet; ///< the whole page
    bool hasPicture = false;      ///< whether the sheet has one to be exported alone
    QSize pictureSize = {};       ///< on screen
    Write csv = {};
    QString csvFilters = {}; ///< of the file dialog; empty: CSV alone
    Write json = {};
    Write report = {};                  ///< HTML
    Write memoryViz = {};               ///< a pickle for pytorch.org/memory_viz
    std::function<QString()> data = {}; ///< as a table, for the clipboard
};

/// KEY=VALUE words of `--screenshot ID`, and what the window does for them.
struct ScreenshotRequest
{
    QStringList values;
    std::string device;                           ///< of --device, known to the window; empty: none was named
    std::function<bool(const QString&)> openFile; ///< as File → Open; false when it was refused
    std::function<Result<void>()> settle;         ///< shows the page and waits until it is settled
};

class ToolPage : public QWidget
{
    Q_OBJECT

public:
    /// `id`: one of toolPages().
    ToolPage(std::string_view id, QWidget* parent);

    const PageInfo& info() const { return m_info; }
    /// Where the keyboard belongs at first.
    virtual QWidget* stage() const = 0;
    /// Between the page and its inspector; as wide on every page. Null where there is none.
    virtual QSplitter* splitter() const { return nullptr; }
    /// What View → Inspector hides; null where there is none.
    virtual QWidget* inspector() const { return nullptr; }
    /// Of what is shown, for the rail.
    virtual std::string deviceId() const = 0;
    virtual void setDevice(const std::string& id) = 0;
    /// Nothing is being read or computed.
    virtual bool isSettled() const { return true; }
    /// Of View → Show all data.
    virtual void resetView() { }
    /// The window's menu, for a button of the page.
    virtual void setExportMenu(QMenu*) { }
    virtual PageExports exports() const { return {}; }
    /// A file that belongs to this page.
    virtual void open(const QString&) { }
    /// What PageVisit::item names: an entry of this page.
    virtual void showItem(const QString&) { }
    /// What showItem() would show again after the window was closed; empty: the page as it is at first.
    virtual QString item() const { return {}; }
    /// Errors: usage.* for a word that the page does not know, and what its value is refused for.
    virtual Result<void> apply(const ScreenshotRequest& request);

    /// Asks for a file; empty: cancelled. Set by the window.
    std::function<QString()> askFile;

signals:
    void updated();                                    ///< something on the page changed
    void openWanted(const QString& path);              ///< this page's file; empty: the window asks
    void pageWanted(const memscape::PageVisit& visit); ///< as one step of the history
    void workerWanted();                               ///< "Add device from command…"

private:
    const PageInfo& m_info;
};

} // namespace memscape
