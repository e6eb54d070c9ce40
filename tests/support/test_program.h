// SPDX-License-Identifier: Apache-2.0
// Several tests in one program: Qt's and the JSON library's headers are read once for all of a folder.
// `PROGRAM tst_name [arguments of Qt Test]` runs one of them; each is a ctest of its own, in its own process.
#pragma once

#include <QTest>
#ifdef QT_WIDGETS_LIB
#include <QApplication>
#elif defined(QT_GUI_LIB)
#include <QGuiApplication>
#endif

namespace memscape::test {

/// Registers a test under the name of its file.
struct TestEntry
{
    TestEntry(const char* file, int (*run)(int, char**));
};

template <typename Application, typename Test> int runIn(int argc, char** argv)
{
    Application application(argc, argv);
    application.setAttribute(Qt::AA_Use96Dpi, true);
    Test test;
    return QTest::qExec(&test, argc, argv);
}

template <typename Test> int runAlone(int argc, char** argv)
{
    Test test;
    return QTest::qExec(&test, argc, argv);
}

#ifdef QT_WIDGETS_LIB
using MainApplication = QApplication;
#elif defined(QT_GUI_LIB)
using MainApplication = QGuiApplication;
#else
using MainApplication = QCoreApplication;
#endif

} // namespace memscape::test

#undef QTEST_MAIN
#undef QTEST_GUILESS_MAIN
#undef QTEST_APPLESS_MAIN
#define QTEST_MAIN(Test)                                                                                               \
    static const memscape::test::TestEntry entryOf##Test(                                                              \
        __FILE__, memscape::test::runIn<memscape::test::MainApplication, Test>);
#define QTEST_GUILESS_MAIN(Test)                                                                                       \
    static const memscape::test::TestEntry entryOf##Test(__FILE__, memscape::test::runIn<QCoreApplication, Test>);
#define QTEST_APPLESS_MAIN(Test)                                                                                       \
    static const memscape::test::TestEntry entryOf##Test(__FILE__, memscape::test::runAlone<Test>);
