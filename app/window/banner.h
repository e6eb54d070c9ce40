// SPDX-License-Identifier: GPL-3.0-or-later
// Messages in place instead of modal boxes: what happened, what to do next, Copy details, and up to
// two actions. At most three stand at once; the same message again is counted, not repeated. Good
// news goes away by itself, problems stay until they are closed. They lie over the lower edge of the
// page, so that nothing moves under the mouse.
#pragma once

#include "core/base/result.h"

#include <QFrame>
#include <QList>
#include <QString>

#include <functional>

class QVBoxLayout;

namespace memscape {

enum class BannerKind { Info, Warning, Problem };

struct BannerAction
{
    QString text;
    std::function<void()> run; ///< the message closes afterwards
};

struct BannerMessage
{
    BannerKind kind = BannerKind::Info;
    QString text;
    QString hint = {};
    QString details = {}; ///< for Copy details; empty: no such button
    QList<BannerAction> actions = {};
    QString topic = {};     ///< a newer message of the same topic replaces this one
    QString page = {};      ///< id of the experiment that it is about; empty: it stands on every page
    bool isLasting = false; ///< news that stay until something happens; others go by themselves
};

class Banner : public QWidget
{
    Q_OBJECT

public:
    /// Lies over the lower edge of `parent` and follows its size; what stays moves the parent's layout up.
    explicit Banner(QWidget* parent = nullptr);

    /// Which experiment's page is on screen: messages about another one wait for theirs.
    void setPage(const QString& experiment);
    void put(const BannerMessage& message);
    /// With a topic, a newer error of the same topic replaces it.
    void showError(const Error& error, const QString& details = {}, const QList<BannerAction>& actions = {},
                   const QString& topic = {});
    void showNotice(const QString& text);
    void closeTopic(const QString& topic);
    /// The newest message of this page gets the keyboard. False when there is none.
    bool takeFocus();
    /// Texts that stand on this page, oldest first: for tests and screen readers.
    QStringList texts() const;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    class Line;
    void add(const BannerMessage& message);
    bool isHere(const Line& line) const;
    static bool stays(const Line& line);
    QList<Line*> lines() const;
    void place();

    QVBoxLayout* m_column;
    QString m_page;
};

} // namespace memscape
