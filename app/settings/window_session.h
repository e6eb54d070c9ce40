// SPDX-License-Identifier: GPL-3.0-or-later
// Where one left off: window geometry, docks, the open study, the zoom of each page. Not
// preferences (Settings) and not part of a study. A broken or older file gives the defaults, never
// a crash.
#pragma once

#include <QByteArray>
#include <QSettings>
#include <QString>
#include <QStringList>
#include <QVariantMap>

class QMainWindow;

namespace memscape {

class WindowSession
{
public:
    /// Of the dock layout: raise it when docks are added or renamed, so that old layouts are
    /// dropped.
    static constexpr int layoutVersion = 1;

    /// $XDG_STATE_HOME/memscape/session.ini.
    WindowSession();
    explicit WindowSession(const QString& path);

    void saveWindow(const QMainWindow& window);
    /// False when there was nothing usable: the window keeps its default layout and size.
    bool restoreWindow(QMainWindow& window) const;
    /// Forget geometry and docks ("Restore default layout", --reset-layout).
    void resetLayout();

    QString lastStudy() const;
    void setLastStudy(const QString& path);

    /// Free view state of a page of a study file (zoom ranges, splitter sizes), not in the study.
    QVariantMap pageView(const QString& studyFile, const QString& page) const;
    void setPageView(const QString& studyFile, const QString& page, const QVariantMap& view);

    QString path() const { return m_settings.fileName(); }

private:
    QSettings m_settings;
};

} // namespace memscape
