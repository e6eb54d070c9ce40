// SPDX-License-Identifier: GPL-3.0-or-later
// What a person prefers, for all studies: typed values over an INI file with a version and one
// migration per version step. Unreadable or foreign values read as the default; a file from a newer
// version is read as far as it is understood and its version is left alone; a file that is not INI
// at all is kept beside as *.broken.
#pragma once

#include "core/base/number.h"

#include <QObject>
#include <QSettings>
#include <QSize>
#include <QString>
#include <QStringList>

#include <vector>

namespace memscape {

enum class ThemeChoice { System, Light, Dark };

/// One line of "Add device from command…".
struct SavedWorker
{
    QString name;
    QString command;
    bool operator==(const SavedWorker&) const = default;
};

struct ExportDefaults
{
    QString format = QStringLiteral("png"); ///< png, svg, pdf
    QSize size{1600, 1000};                 ///< pixels
    bool followTheme = false;               ///< else light, as paper is
    QString folder;                         ///< last used
    bool operator==(const ExportDefaults&) const = default;
};

class Settings : public QObject
{
    Q_OBJECT
public:
    enum class Key {
        Theme,
        ByteStyle,
        FontZoom,
        ReducedMotion,
        RecentFiles,
        Workers,
        Python,
        DeviceFiles,
        Export,
        LastFolder,
        Shortcuts,
        Bases,
        FirstSteps,
        Folds,
        Student
    };
    Q_ENUM(Key)
    static constexpr int version = 1;
    static constexpr int recentLimit = 12;

    /// $XDG_CONFIG_HOME/memscape/memscape.ini.
    explicit Settings(QObject* parent = nullptr);
    explicit Settings(const QString& path, QObject* parent = nullptr);

    ThemeChoice theme() const;
    void setTheme(ThemeChoice theme);
    ByteStyle byteStyle() const;
    void setByteStyle(ByteStyle style);
    /// Percent, 50 to 300.
    int fontZoom() const;
    void setFontZoom(int percent);
    /// Plots also show what the datasheet, or the device uncalibrated, would predict.
    bool showBases() const;
    void setShowBases(bool show);
    /// Which of the first steps are done, a bit each.
    int firstSteps() const;
    void setFirstSteps(int done);
    /// Parameter sections that the user unfolded: "training-memory/Memory details".
    bool isUnfolded(const QString& section) const;
    void setUnfolded(const QString& section, bool unfolded);
    bool reducedMotion() const;
    void setReducedMotion(bool reduced);
    /// Newest first, absolute, no doubles; files that are gone stay (the menu greys them).
    QStringList recentFiles() const;
    void addRecentFile(const QString& path);
    void removeRecentFile(const QString& path);
    void clearRecentFiles();
    std::vector<SavedWorker> workers() const;
    void setWorkers(const std::vector<SavedWorker>& workers);
    /// The Python whose PyTorch this machine's worker measures; empty: the first in PATH.
    QString python() const;
    void setPython(const QString& path);
    /// Who does the labs; a lab's parameters come from this name.
    QString student() const;
    void setStudent(const QString& name);
    QStringList deviceFiles() const;
    void setDeviceFiles(const QStringList& paths);
    ExportDefaults exportDefaults() const;
    void setExportDefaults(const ExportDefaults& defaults);
    /// Last folder used for a kind of file: "study", "data", "device".
    QString lastFolder(const QString& kind) const;
    void setLastFolder(const QString& kind, const QString& folder);
    /// Custom shortcut of an action id; null string when the default holds.
    QString shortcut(const QString& action) const;
    void setShortcut(const QString& action, const QString& keys);

    QString path() const { return m_settings.fileName(); }

signals:
    void changed(memscape::Settings::Key key);

private:
    void migrate();
    bool isTrue(const QString& name) const;
    void set(const QString& name, const QVariant& value, Key key);

    QSettings m_settings;
};

} // namespace memscape
