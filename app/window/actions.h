// SPDX-License-Identifier: GPL-3.0-or-later
// Every thing a person can do, once: a stable id, the words, the icon, the shortcut, its menu. Menus, the command
// palette, the list of shortcuts and the tests are all made from this list, so an action cannot exist in one of them
// and be missing from another.
#pragma once

#include <QAction>
#include <QHash>
#include <QKeySequence>
#include <QList>
#include <QObject>
#include <QString>

class QMenuBar;
class QMenu;

namespace memscape {

/// What is known about an action before it exists. `menu` is the top menu ("file", "edit", "view",
/// "experiment", "run", "settings", "help"), empty for actions that only the palette and shortcuts
/// reach; a change of `section` inside a menu puts a separator.
struct ActionSpec
{
    QString id;   ///< "file.save"; stable, used by settings and tests
    QString text; ///< "&Save"
    QString tip;  ///< one sentence; tooltip, status tip and the palette's second line
    QString icon = {};
    QList<QKeySequence> shortcuts = {};
    QString menu = {};
    int section = 0;
    bool checkable = false;
};

class Actions : public QObject
{
    Q_OBJECT

public:
    explicit Actions(QObject* parent = nullptr);

    /// Registers and returns the action. An id that is already taken is our own bug (assert).
    QAction* add(const ActionSpec& spec);
    /// The action of that id; null when there is none.
    QAction* find(const QString& id) const;
    /// The same, for ids that the program itself registered.
    QAction& at(const QString& id) const;

    const QList<QAction*>& all() const { return m_actions; }
    static QString id(const QAction* action);
    static QString icon(const QAction* action);

    /// A shortcut of the user's own in place of the standard one; an empty text restores it.
    void setShortcut(const QString& id, const QString& shortcut);
    /// Pairs of ids that share a shortcut; empty when all is well.
    QStringList conflicts() const;

    /// The menus, in the fixed order of desktop programs, from what was registered.
    void buildMenus(QMenuBar* bar);
    /// A top menu that buildMenus() made, so that others can add their submenus.
    QMenu* menu(const QString& key) const { return m_menus.value(key); }

private:
    void refreshToolTip(QAction* action) const;

    QList<QAction*> m_actions;
    QHash<QString, QAction*> m_byId;
    QHash<QString, QList<QKeySequence>> m_standard;
    QHash<QString, QMenu*> m_menus;
};

} // namespace memscape
