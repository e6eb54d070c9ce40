// SPDX-License-Identifier: GPL-3.0-or-later
// The window without a mouse: Tab comes to everything that a click can reach, each has a name for a
// screen reader, what has the keyboard can be seen, and every entry of the menus does its work.
#include "app/document/pages.h"
#include "tests/support/page_fixture.h"
#include "tests/support/quiet_window.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSlider>
#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include <set>

using namespace memscape;

namespace {

/// What a person would want to reach: it can be seen, is enabled and answers keys.
std::set<QWidget*> controlsOf(QWidget& window)
{
    std::set<QWidget*> controls;
    for (QWidget* widget : window.findChildren<QWidget*>()) {
        const bool wanted = qobject_cast<QAbstractButton*>(widget) || qobject_cast<QAbstractSlider*>(widget)
            || qobject_cast<QComboBox*>(widget) || qobject_cast<QLineEdit*>(widget) || qobject_cast<PlotView*>(widget)
            || qobject_cast<Picture*>(widget) || qobject_cast<QAbstractItemView*>(widget);
        if (wanted && widget->isVisible() && widget->isEnabled() && widget->window() == &window && !widget->focusProxy()
            && (widget->focusPolicy() & Qt::TabFocus))
            controls.insert(widget);
    }
    return controls;
}

/// Not scrolled away, not behind the edge of something around it.
bool inSight(const QWidget* widget)
{
    QRect seen = widget->rect();
    for (const QWidget* now = widget; now->parentWidget() && !now->isWindow(); now = now->parentWidget())
        seen = seen.translated(now->pos()) & now->parentWidget()->rect();
    return !seen.isEmpty();
}

QString described(const QWidget* widget)
{
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    return QStringLiteral("%1 %2 %3 %4")
        .arg(QString::fromLatin1(widget->metaObject()->className()), widget->objectName(), widget->accessibleName(),
             button ? button->text() : QString());
}

/// Whether the page stands in a window of 1280 × 800 with its prediction for an H200.
bool showsAnswer(MainWindow& window, const QString& page)
{
    window.restore(false);
    window.document().setDevice(experimentOfPage(page.toStdString()), "nvidia-h200");
    if (!window.showPage(page))
        return false;
    window.resize(1280, 800);
    window.show();
    return QTest::qWaitForWindowActive(&window)
        && QTest::qWaitFor([&] { return window.page()->upToDate() && window.page()->prediction(); }, 5000);
}

} // namespace

class TestKeyboard : public QObject
{
    Q_OBJECT

private slots:
    /// What is typed next goes to the page that one came to, or to where one was.
    void thePaletteLeadsIntoThePage()
    {
        MainWindow window(quietWindow());
        window.show();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        QVERIFY(window.showPage("stride"));
        QLineEdit* const name = window.page()->findChild<QLineEdit*>();
        name->setFocus();
        window.actions().at(QStringLiteral("edit.palette")).trigger();
        QVERIFY(QApplication::focusWidget() != name);
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
        QVERIFY(QApplication::focusWidget() == name);
        window.actions().at(QStringLiteral("edit.palette")).trigger();
        QTest::keyClicks(QApplication::focusWidget(), "go to labs");
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_VERIFY(window.tool() && window.tool()->isAncestorOf(QApplication::focusWidget()));
    }

    void tabComesToEverything_data()
    {
        QTest::addColumn<QString>("page");
        for (const PageInfo& page : pagesOf(experiments()))
            QTest::newRow(page.id.c_str()) << QString::fromStdString(page.id);
    }
    void tabComesToEverything()
    {
        QFETCH(QString, page);
        MainWindow window(quietWindow());
        QVERIFY(showsAnswer(window, page));

        std::set<QWidget*> reached;
        window.page()->plot()->view()->setFocus();
        for (int i = 0; i < 400; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            QWidget* now = QApplication::focusWidget();
            QVERIFY(now);
            if (!reached.insert(now).second && now == window.page()->plot()->view())
                break;
        }
        for (QWidget* control : controlsOf(window)) {
            const auto* button = qobject_cast<QAbstractButton*>(control);
            // Of chips that exclude each other Tab takes the chosen one, arrows the rest.
            QVERIFY2(reached.count(control) || (button && button->group()),
                     qPrintable(described(control) + " is never reached"));
        }
        for (const QWidget* widget : reached) {
            const auto* button = qobject_cast<const QAbstractButton*>(widget);
            QVERIFY2(!widget->accessibleName().isEmpty() || (button && !button->text().isEmpty()),
                     qPrintable(described(widget) + " has no name"));
        }
    }

    void whatHasTheKeyboardIsInSight()
    {
        MainWindow window(quietWindow());
        window.restore(false);
        QVERIFY(window.showPage("training-memory"));
        window.resize(1280, 800);
        window.show();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        window.page()->plot()->view()->setFocus();
        for (int i = 0; i < 60; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            QWidget* now = QApplication::focusWidget();
            QVERIFY(now);
            QVERIFY2(inSight(now), qPrintable(described(now) + " is scrolled away"));
        }
    }

    void whatHasTheKeyboardLooksSo_data() { tabComesToEverything_data(); }
    void whatHasTheKeyboardLooksSo()
    {
        QFETCH(QString, page);
        MainWindow window(quietWindow());
        QVERIFY(showsAnswer(window, page));
        QWidget* const first = window.page()->plot()->view();
        first->setFocus();
        for (int i = 0; i < 400; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            QWidget* now = QApplication::focusWidget();
            if (now == first)
                break;
            const auto looksSo = [now] {
                const QImage with = now->grab().toImage();
                now->clearFocus();
                const QImage without = now->grab().toImage();
                now->setFocus(Qt::TabFocusReason);
                return with != without;
            };
            // A text that came with the last answer has its link chosen anew.
            QVERIFY2(QTest::qWaitFor(looksSo, 2000),
                     qPrintable(described(now) + " looks the same without the keyboard"));
        }
    }

    void enterPressesAButton()
    {
        MainWindow window(quietWindow());
        QVERIFY(window.showPage("stride"));
        window.show();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        QPushButton button(QStringLiteral("Measure anyway"), window.page());
        button.show();
        button.setFocus();
        int presses = 0;
        connect(&button, &QPushButton::clicked, &window, [&presses] { ++presses; });
        for (const Qt::Key key : {Qt::Key_Return, Qt::Key_Enter, Qt::Key_Space})
            QTest::keyClick(&button, key);
        QCOMPARE(presses, 3);
    }

    void everyEntryOfTheMenusWorks()
    {
        QTemporaryDir folder;
        MainWindow window(quietWindow());
        window.restore(false);
        window.document().setDevice("stride", "nvidia-h200");
        QVERIFY(window.showPage("stride"));
        window.show();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        int files = 0;
        const auto next = [&](const char* suffix) {
            return folder.filePath(QString::number(files++) + QLatin1String(suffix));
        };
        window.files().askSave = [] { return SaveAnswer::Discard; };
        window.files().askOpen = [] { return QString(); };
        window.files().askSaveName = [&] { return next(".memscape"); };
        window.exporter().askName = [&](const QString& what, const QString&, const QString&) {
            return next(what.contains("CSV")          ? ".csv"
                            : what.contains("JSON")   ? ".json"
                            : what.contains("report") ? ".html"
                                                      : ".svg");
        };
        QTimer closer; // of dialogs that wait for an answer
        connect(&closer, &QTimer::timeout, this, [] {
            if (QWidget* dialog = QApplication::activeModalWidget())
                dialog->close();
        });
        closer.start(20);
        for (QAction* action : window.actions().all()) {
            const QString id = Actions::id(action);
            if (id == "file.quit")
                continue;
            if (window.tool()) // it has no parameters that the entries after it could change
                window.showPage("stride");
            QTRY_VERIFY(window.page() && window.page()->upToDate());
            const bool checked = action->isChecked();
            action->trigger();
            QVERIFY2(window.isVisible() && (window.page() || window.tool()), qPrintable(id));
            if (action->isCheckable() && !action->actionGroup()) {
                QVERIFY2(action->isChecked() != checked, qPrintable(id));
                action->trigger();
                QVERIFY2(action->isChecked() == checked, qPrintable(id));
            }
        }
        QVERIFY2(files >= 7, "two saves, plot, page, CSV, JSON and report were written");
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), files);
    }
};

QTEST_MAIN(TestKeyboard)
#include "tst_keyboard.moc"
