// SPDX-License-Identifier: GPL-3.0-or-later
// Page views are keyed by a hash of the study's path: paths make poor INI keys, and other people's
// study names should not collect in a state file in the clear.
#include "app/settings/window_session.h"

#include <QCryptographicHash>
#include <QDir>
#include <QFileInfo>
#include <QMainWindow>

namespace memscape {

namespace {

/// $XDG_STATE_HOME, which QStandardPaths supports only from Qt 6.7 on.
QString sessionPath()
{
    QString folder = qEnvironmentVariable("XDG_STATE_HOME");
    if (!QDir::isAbsolutePath(folder))
        folder = QDir::homePath() + QStringLiteral("/.local/state");
    return folder + QStringLiteral("/memscape/session.ini");
}

QString viewKey(const QString& studyFile, const QString& page)
{
    const QByteArray hash = QCryptographicHash::hash(studyFile.toUtf8(), QCryptographicHash::Sha1).toHex().left(16);
    return QStringLiteral("views/") + QString::fromLatin1(hash) + QLatin1Char('/') + page;
}

} // namespace

WindowSession::WindowSession()
    : WindowSession(sessionPath())
{ }

WindowSession::WindowSession(const QString& path)
    : m_settings(path, QSettings::IniFormat)
{ }

void WindowSession::saveWindow(const QMainWindow& window)
{
    m_settings.setValue(QStringLiteral("window/geometry"), window.saveGeometry());
    m_settings.setValue(QStringLiteral("window/docks"), window.saveState(layoutVersion));
}

bool WindowSession::restoreWindow(QMainWindow& window) const
{
    const QByteArray geometry = m_settings.value(QStringLiteral("window/geometry")).toByteArray();
    const QByteArray docks = m_settings.value(QStringLiteral("window/docks")).toByteArray();
    const bool placed = !geometry.isEmpty() && window.restoreGeometry(geometry);
    return !docks.isEmpty() && window.restoreState(docks, layoutVersion) && placed;
}

void WindowSession::resetLayout()
{
    m_settings.remove(QStringLiteral("window"));
}

QString WindowSession::lastStudy() const
{
    return m_settings.value(QStringLiteral("lastStudy")).toString();
}

void WindowSession::setLastStudy(const QString& path)
{
    m_settings.setValue(QStringLiteral("lastStudy"), path.isEmpty() ? path : QFileInfo(path).absoluteFilePath());
}

QVariantMap WindowSession::pageView(const QString& studyFile, const QString& page) const
{
    return m_settings.value(viewKey(studyFile, page)).toMap();
}

void WindowSession::setPageView(const QString& studyFile, const QString& page, const QVariantMap& view)
{
    m_settings.setValue(viewKey(studyFile, page), view);
}

} // namespace memscape
