// SPDX-License-Identifier: GPL-3.0-or-later
// Ctrl+K: type a few letters of anything the program can do, Enter does it.
#pragma once

#include "app/window/palette_entries.h"

#include <QFrame>
#include <QPointer>

class QLineEdit;
class QListWidget;

namespace memscape {

class CommandPalette : public QFrame
{
    Q_OBJECT

public:
    explicit CommandPalette(QWidget* window);

    /// Opens in the upper middle of the window with these entries.
    void open(const QList<PaletteEntry>& entries);
    QLineEdit* input() const { return m_input; }
    /// What is listed now, best first.
    QStringList listed() const;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    void runCurrent();
    void leave();
    void place();

    QPointer<QWidget> m_before; ///< had the keyboard
    QLineEdit* m_input;
    QListWidget* m_list;
    QList<PaletteEntry> m_entries;
    QList<PaletteEntry> m_shown;
    QStringList m_recent;
};

} // namespace memscape
