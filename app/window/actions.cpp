// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/actions.h"

#include <QMenu>
#include <QMenuBar>

namespace memscape {

namespace {

constexpr auto idProperty = "memscapeId";
constexpr auto iconProperty = "memscapeIcon";
constexpr auto menuProperty = "memscapeMenu";
constexpr auto sectionProperty = "memscapeSection";
constexpr auto tipProperty = "memscapeTip";

struct TopMenu
{
    const char* key;
    QString title;
};

QList<TopMenu> topMenus()
{
    return {{"file", Actions::tr("&File")}, {"edit", Actions::tr("&Edit")},
            {"view", Actions::tr("&View")}, {"experiment", Actions::tr("E&xperiment")},
            {"run", Actions::tr("&Run")},   {"settings", Actions::tr("&Settings")},
            {"help", Actions::tr("&Help")}};
}

} // namespace

Actions::Actions(QObject* parent)
    : QObject(parent)
{ }

QAction* Actions::add(const ActionSpec& spec)
{
    Q_ASSERT_X(!m_byId.contains(spec.id), "Actions::add", qPrintable(spec.id));
    auto* action = new QAction(spec.text, this);
    action->setObjectName(spec.id);
    action->setProperty(idProperty, spec.id);
    action->setProperty(iconProperty, spec.icon);
    action->setProperty(menuProperty, spec.menu);
    action->setProperty(sectionProperty, spec.section);
    action->setProperty(tipProperty, spec.tip);
    action->setCheckable(spec.checkable);
    action->setIconVisibleInMenu(!spec.checkable); // an icon would stand where the check mark does
    action->setShortcuts(spec.shortcuts);
    action->setStatusTip(spec.tip);
    action->setMenuRole(QAction::NoRole);
    refreshToolTip(action);
    m_actions.append(action);
    m_byId.insert(spec.id, action);
    m_standard.insert(spec.id, action->shortcuts());
    return action;
}

QAction* Actions::find(const QString& id) const
{
    return m_byId.value(id);
}

QAction& Actions::at(const QString& id) const
{
    QAction* action = find(id);
    Q_ASSERT_X(action != nullptr, "Actions::at", qPrintable(id));
    return *action;
}

QString Actions::id(const QAction* action)
{
    return action->property(idProperty).toString();
}

QString Actions::icon(const QAction* action)
{
    return action->property(iconProperty).toString();
}

void Actions::setShortcut(const QString& id, const QString& shortcut)
{
    QAction* action = find(id);
    if (action == nullptr)
        return;
    if (shortcut.isEmpty())
        action->setShortcuts(m_standard.value(id));
    else
        action->setShortcut(QKeySequence(shortcut, QKeySequence::PortableText));
    refreshToolTip(action);
}

QStringList Actions::conflicts() const
{
    QHash<QString, QString> owner;
    QStringList pairs;
    for (const QAction* action : m_actions) {
        for (const QKeySequence& keys : action->shortcuts()) {
            const QString text = keys.toString(QKeySequence::PortableText);
            if (owner.contains(text) && owner.value(text) != id(action))
                pairs << owner.value(text) + u' ' + id(action) + u' ' + text;
            owner.insert(text, id(action));
        }
    }
    return pairs;
}

void Actions::buildMenus(QMenuBar* bar)
{
    const QList<TopMenu> tops = topMenus();
    for (const TopMenu& top : tops) {
        const QString key = QString::fromLatin1(top.key);
        auto* menu = bar->addMenu(top.title);
        menu->setObjectName(QStringLiteral("menu.") + key);
        menu->setToolTipsVisible(true);
        m_menus.insert(key, menu);
        int section = -1;
        for (QAction* action : std::as_const(m_actions)) {
            if (action->property(menuProperty).toString() != key)
                continue;
            const int own = action->property(sectionProperty).toInt();
            if (section >= 0 && own != section)
                menu->addSeparator();
            section = own;
            menu->addAction(action);
        }
    }
}

void Actions::refreshToolTip(QAction* action) const
{
    QString tip = action->property(tipProperty).toString();
    if (!action->shortcut().isEmpty())
        tip += QStringLiteral(" (%1)").arg(action->shortcut().toString(QKeySequence::NativeText));
    action->setToolTip(tip);
}

} // namespace memscape
