// SPDX-License-Identifier: GPL-3.0-or-later
// Messages in place instead of modal boxes: what happened, what to do next, Copy details, and up to
// two actions. At most three stand at once; the same message again is counted, not repeated. Good
// news goes away by itself, problems stay until they are closed.
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
    QString topic = {}; ///< a newer message of the same topic replaces this one
};

class Banner : public QWidget
{
    Q_OBJECT

public:
    explicit Banner(QWidget* parent = nullptr);

    void put(const BannerMessage& message);
    void showError(const Error& error, const QString& details = {});
    void showNotice(const QString& text);
    void closeTopic(const QString& topic);
    /// Texts that stand now, oldest first: for tests and screen readers.
    QStringList texts() const;

private:
    class Line;
    void add(const BannerMessage& message);
    QList<Line*> lines() const;

    QVBoxLayout* m_column;
};

} // namespace memscape
