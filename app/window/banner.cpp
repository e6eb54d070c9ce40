// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/banner.h"

#include "app/pages/cards/card.h"
#include "app/pages/icons.h"
#include "app/settings/theme.h"
#include "app/settings/words.h"

#include <QAccessible>
#include <QClipboard>
#include <QEvent>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>

#include <algorithm>

namespace memscape {

namespace {

constexpr int most = 3;
constexpr int noticeTime = 8000;  ///< ms that good news stays
constexpr int offerTime = 30'000; ///< ms that it stays where something can be done with it
constexpr int widest = 760;
constexpr int leastPage = 420; ///< pixels of height that a page keeps beside messages that stay
constexpr int edge = 12;       ///< pixels between a message and the edges of the page

QString iconName(BannerKind kind)
{
    switch (kind) {
    case BannerKind::Info: return QStringLiteral("info");
    case BannerKind::Warning: return QStringLiteral("warning");
    case BannerKind::Problem: break;
    }
    return QStringLiteral("error");
}

void alert(QWidget* line)
{
    QAccessibleEvent event(line, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
}

QColor kindColour(BannerKind kind)
{
    const Theme& theme = currentTheme();
    return kind == BannerKind::Info ? theme.predicted : kind == BannerKind::Warning ? theme.warning : theme.bad;
}

} // namespace

/// One message.
class Banner::Line : public QFrame
{
public:
    Line(const BannerMessage& message, QWidget* parent)
        : QFrame(parent)
        , m_message(message)
    {
        setObjectName(QStringLiteral("banner"));
        setProperty("kind", iconName(message.kind));
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(12, 8, 8, 8);
        row->setSpacing(8);
        auto* sign = new QLabel(this);
        sign->setPixmap(themedIcon(iconName(message.kind), kindColour(message.kind)).pixmap(18, 18));
        row->addWidget(sign, 0, Qt::AlignTop);
        m_text = toneLabel({}, "plain", this, true);
        row->addWidget(m_text, 1);
        for (const BannerAction& action : message.actions)
            addButton(row, action.text, action.run);
        if (!message.details.isEmpty())
            addButton(
                row, Banner::tr("Copy details"),
                [details = message.details] { QGuiApplication::clipboard()->setText(details); }, false);
        auto* close = new QToolButton(this);
        close->setProperty("role", "flat");
        close->setIcon(themedIcon(QStringLiteral("close")));
        close->setToolTip(Banner::tr("Close this message"));
        close->setAccessibleName(Banner::tr("Close this message"));
        connect(close, &QToolButton::clicked, this, &QObject::deleteLater);
        row->addWidget(close, 0, Qt::AlignTop);
        refresh();
    }

    const BannerMessage& message() const { return m_message; }
    QString text() const { return m_text->text(); }

    void again()
    {
        ++m_count;
        refresh();
    }

private:
    void addButton(QHBoxLayout* row, const QString& label, const std::function<void()>& run, bool closes = true)
    {
        auto* button = new QPushButton(label, this);
        connect(button, &QPushButton::clicked, this, [this, run, closes] {
            if (closes)
                deleteLater();
            run();
        });
        row->addWidget(button, 0, Qt::AlignTop);
    }

    void refresh()
    {
        QString text = m_message.text;
        if (m_count > 1)
            text += Banner::tr(" (%n times)", nullptr, m_count);
        if (!m_message.hint.isEmpty())
            text += u'\n' + capitalized(m_message.hint);
        m_text->setText(text);
        setAccessibleName(text);
    }

    BannerMessage m_message;
    QLabel* m_text;
    int m_count = 1;
};

Banner::Banner(QWidget* parent)
    : QWidget(parent)
    , m_column(new QVBoxLayout(this))
{
    m_column->setContentsMargins(0, 0, 0, 0);
    m_column->setSpacing(6);
    hide();
    if (parent)
        parent->installEventFilter(this);
}

bool Banner::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == parent() && event->type() == QEvent::Resize)
        place();
    return QWidget::eventFilter(watched, event);
}

/// News go by themselves; what is wrong stays until it is closed or has an end.
bool Banner::stays(const Line& line)
{
    return line.message().kind != BannerKind::Info || line.message().isLasting;
}

/// As wide as a message is pleasant to read, in the middle of the lower edge. The page ends above one that stays; news
/// lie over it for their few seconds, so that it does not jump twice.
void Banner::place()
{
    if (!parentWidget())
        return;
    const auto all = lines();
    const bool any = std::ranges::any_of(all, [this](const Line* line) { return isHere(*line); });
    setVisible(any);
    if (!any) {
        parentWidget()->setContentsMargins({});
        return;
    }
    const QRect area = parentWidget()->rect().adjusted(edge, edge, -edge, -edge);
    const int width = std::min(area.width(), widest);
    m_column->activate();
    const int height =
        std::min(area.height(), m_column->hasHeightForWidth() ? m_column->heightForWidth(width) : sizeHint().height());
    setGeometry(area.left() + (area.width() - width) / 2, area.bottom() + 1 - height, width, height);
    raise();
    const bool isInTheWay =
        std::ranges::any_of(all, [this](const Line* line) { return isHere(*line) && stays(*line); });
    const int taken = height + edge + edge / 2;
    const bool hasRoom = parentWidget()->height() - taken >= leastPage;
    parentWidget()->setContentsMargins(0, 0, 0, isInTheWay && hasRoom ? taken : 0);
}

bool Banner::isHere(const Line& line) const
{
    return line.message().page.isEmpty() || line.message().page == m_page;
}

void Banner::setPage(const QString& experiment)
{
    m_page = experiment;
    for (Line* line : lines())
        line->setVisible(isHere(*line));
    place();
}

QList<Banner::Line*> Banner::lines() const
{
    QList<Line*> lines;
    for (int i = 0; i < m_column->count(); ++i) {
        if (auto* line = dynamic_cast<Line*>(m_column->itemAt(i)->widget()))
            lines << line;
    }
    return lines;
}

bool Banner::takeFocus()
{
    const QList<Line*> all = lines();
    for (auto line = all.rbegin(); line != all.rend(); ++line) {
        if ((*line)->isHidden())
            continue;
        QWidget* target = (*line)->findChild<QPushButton*>();
        if (!target)
            target = (*line)->findChild<QToolButton*>(); // it can only be closed
        target->setFocus(Qt::ShortcutFocusReason);
        return true;
    }
    return false;
}

void Banner::put(const BannerMessage& message)
{
    for (Line* line : lines()) {
        if (line->message().text != message.text || line->message().hint != message.hint)
            continue;
        // Told of a state, and then that something failed for it: one message says both.
        if (line->message().topic == message.topic)
            line->again();
        alert(line);
        place();
        return;
    }
    if (!message.topic.isEmpty())
        closeTopic(message.topic);
    if (lines().size() >= most)
        delete lines().first();
    add(message);
}

void Banner::add(const BannerMessage& message)
{
    auto* line = new Line(message, this);
    line->setVisible(isHere(*line));
    m_column->addWidget(line);
    // Later, because the layout still knows the line; and not at all once the layout is gone.
    connect(
        line, &QObject::destroyed, m_column, [this] { place(); }, Qt::QueuedConnection);
    place();
    if (message.kind == BannerKind::Info && !message.isLasting)
        QTimer::singleShot(message.actions.isEmpty() ? noticeTime : offerTime, line, &QObject::deleteLater);
    alert(line);
}

void Banner::showError(const Error& error, const QString& details, const QList<BannerAction>& actions,
                       const QString& topic)
{
    BannerMessage message;
    message.kind = BannerKind::Problem;
    message.text = error.place.empty() ? capitalized(QString::fromStdString(error.message))
                                       : QString::fromStdString(error.place + ": " + error.message);
    message.hint = QString::fromStdString(error.hint);
    message.details = QString::fromStdString(error.code + "\n" + error.text() + "\n") + details;
    message.actions = actions;
    message.topic = topic;
    put(message);
}

void Banner::showNotice(const QString& text)
{
    BannerMessage message;
    message.text = text;
    put(message);
}

void Banner::closeTopic(const QString& topic)
{
    for (Line* line : lines()) {
        if (line->message().topic == topic)
            delete line;
    }
}

QStringList Banner::texts() const
{
    QStringList texts;
    for (const Line* line : lines()) {
        if (isHere(*line))
            texts << line->text();
    }
    return texts;
}

} // namespace memscape
