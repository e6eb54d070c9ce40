// SPDX-License-Identifier: Apache-2.0
// What a user and a desktop see before the program runs: the two commands, the compiler they can fetch,
// the files of the desktop.
#include <QtTest>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>

class TestPackaging : public QObject
{
    Q_OBJECT

private slots:
    void commandsExplainThemselves_data();
    void commandsExplainThemselves();
    void commandsRefuseUnknownOptions_data() { commandsExplainThemselves_data(); }
    void commandsRefuseUnknownOptions();
    void scriptsParse();
    void withoutADisplayTheVerdictsComeLast();
    void anInstallationNeedsNoInput();
    void theFetchedCompilerIsMadeWhole();
    void aFetchThatFailsLeavesNothing();
    void theDisassemblerIsFetchedOnceAndCanBeMissing();
    void desktopFilesValidate_data();
    void desktopFilesValidate();
    void oneIdEverywhere();
    void programsAreHardened_data();
    void programsAreHardened();
    void readmeShowsBothCommands();
    void linksOfTextsLead_data();
    void linksOfTextsLead();
};

namespace {

const QString source = QStringLiteral(SOURCE_FOLDER);
const QString id = QStringLiteral("io.github.memscape.Memscape");

QString read(const QString& path)
{
    QFile file(source + '/' + path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

struct Ran
{
    int status;
    QString out, error;
};

Ran run(const QString& program, const QStringList& arguments)
{
    QProcess process;
    process.setStandardInputFile(QProcess::nullDevice());
    process.start(program, arguments);
    if (!process.waitForFinished(60000))
        return {-1, {}, process.errorString()};
    return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
}

/// install_cuda in `folder`, with a pip that is `pip` and no other compiler on the machine. A pip that
/// succeeds leaves what NVIDIA's packages leave: nvcc, and libraries in lib under their versions.
Ran fetchCompiler(const QString& folder, const QString& pip)
{
    const QString script = QStringLiteral(R"(
        cd "$1"
        . "$2/packaging/common.sh"
        unset CUDACXX
        find_nvcc() { [ -x build/cuda/nvidia/cu13/bin/nvcc ] && CUDACXX=$PWD/build/cuda/nvidia/cu13/bin/nvcc; }
        install() { :; }
        python3() {
            local target root
            while [ "$1" != --target ]; do shift; done
            target=$2 root=$2/nvidia/cu13
            mkdir -p "$root/bin" "$root/lib"
            printf '#!/bin/sh\n' > "$root/bin/nvcc"; chmod +x "$root/bin/nvcc"
            touch "$root/lib/libcudart.so.13" "$root/lib/libcudart_static.a"
            )")
        + pip + QStringLiteral(R"(
        }
        mkdir -p build
        install_cuda && echo "compiler $CUDACXX")");
    return run("bash", {"-c", script, "bash", folder, source});
}

} // namespace

void TestPackaging::commandsExplainThemselves_data()
{
    QTest::addColumn<QString>("script");
    QTest::newRow("run") << "packaging/run";
    QTest::newRow("test") << "packaging/test";
}

void TestPackaging::commandsExplainThemselves()
{
    QFETCH(QString, script);
    const Ran help = run(source + '/' + script, {"--help"});
    QCOMPARE(help.status, 0);
    QVERIFY(help.out.contains(script) && help.out.contains("Examples"));
}

void TestPackaging::commandsRefuseUnknownOptions()
{
    QFETCH(QString, script);
    const Ran refused = run(source + '/' + script, {"--hlep"});
    QCOMPARE(refused.status, 2);
    QVERIFY(refused.error.contains("--hlep"));
}

void TestPackaging::scriptsParse()
{
    for (const char* script : {"packaging/run", "packaging/test", "packaging/common.sh", ".ci/run", "tests/gpu/run",
                               "tests/gpu/stages.sh", "tests/gpu/bundle"}) {
        const Ran parsed = run("bash", {"-n", source + '/' + script});
        QVERIFY2(parsed.status == 0, qPrintable(parsed.error));
    }
}

/// With a program in Memscape's place that says what it was asked.
void TestPackaging::withoutADisplayTheVerdictsComeLast()
{
    const QTemporaryDir folder;
    const QString script = QStringLiteral(R"(
        cd "$1"
        . "$2/packaging/common.sh"
        printf '#!/bin/sh\necho "asked: $*"\n' > cli; chmod +x cli
        measure_and_report ./cli report)");
    const Ran ran = run("bash", {"-c", script, "bash", folder.path(), source});
    QCOMPARE(ran.status, 0);
    const QString& said = ran.error;
    qsizetype at = 0;
    for (const char* words : {"measure hierarchy", "measure stride", "measure attention", "--to html",
                              "report report/hierarchy.json report/stride.json report/attention.json --to text",
                              "the report: report/memscape.html"}) {
        const qsizetype next = said.indexOf(words, at);
        QVERIFY2(next >= at, words);
        at = next;
    }
}

// Neither debconf nor dpkg (whose question about a changed configuration file comes on a fresh image
// where one was edited) may wait for an answer.
void TestPackaging::anInstallationNeedsNoInput()
{
    const QTemporaryDir folder;
    const QString script = QStringLiteral(R"(
        cd "$1"
        . "$2/packaging/common.sh"
        mkdir bin
        printf '#!/bin/sh\nexec "$@"\n' > bin/sudo
        printf '#!/bin/sh\necho "$DEBIAN_FRONTEND $*"; read -r answer && echo "asked"; true\n' > bin/apt-get
        chmod +x bin/*
        PATH=$PWD/bin:$PATH
        is_installed() { false; }
        install some-package)");
    const Ran ran = run("bash", {"-c", script, "bash", folder.path(), source});
    QCOMPARE(ran.status, 0);
    const QStringList lines = ran.error.split('\n').filter("noninteractive");
    QCOMPARE(lines.size(), 2); // update and install
    for (const QString& line : lines) {
        QVERIFY2(line.contains("--force-confold") && line.contains("--force-confdef"), qPrintable(line));
    }
    QVERIFY(lines.back().endsWith("install -y --no-install-recommends some-package"));
    QVERIFY(!ran.error.contains("asked"));
}

void TestPackaging::theFetchedCompilerIsMadeWhole()
{
    const QTemporaryDir folder;
    const Ran fetched = fetchCompiler(folder.path(), "return 0");
    QVERIFY2(fetched.status == 0, qPrintable(fetched.error));
    QVERIFY(fetched.out.endsWith("build/cuda/nvidia/cu13/bin/nvcc\n"));
    const QString root = folder.filePath("build/cuda/nvidia/cu13");
    QVERIFY(QFile::exists(root + "/lib64/libcudart_static.a")); // where nvcc looks
    QVERIFY(QFile::exists(root + "/lib/libcudart.so"));         // what CMake looks for
    QVERIFY(!QFile::exists(folder.filePath("build/cuda.part")));
    QVERIFY(fetchCompiler(folder.path(), "return 1").error.isEmpty()); // nothing to fetch any more
}

void TestPackaging::aFetchThatFailsLeavesNothing()
{
    const QTemporaryDir folder;
    const Ran failed = fetchCompiler(folder.path(), "return 1"); // half of it is there by then
    QCOMPARE(failed.status, 1);
    QVERIFY2(failed.error.contains("could not be fetched"), qPrintable(failed.error));
    QVERIFY(!QFile::exists(folder.filePath("build/cuda")));
    QCOMPARE(fetchCompiler(folder.path(), "return 0").status, 0); // and it can be tried again
}

void TestPackaging::theDisassemblerIsFetchedOnceAndCanBeMissing()
{
    const QTemporaryDir folder;
    const auto fetch = [&](const QString& pip) {
        const QString script = QStringLiteral(R"(
            cd "$1"
            . "$2/packaging/common.sh"
            CUDACXX=$PWD/nvcc
            PATH=$PWD/no-cuda:/usr/bin:/bin
            install() { :; }
            python3() {
                local target
                while [ "$1" != --target ]; do shift; done
                target=$2/nvidia/cu13/bin
                mkdir -p "$target"
                touch "$target/cuobjdump" "$target/nvdisasm"; chmod +x "$target"/*
                )")
            + pip + QStringLiteral(R"(
            }
            mkdir -p build
            install_disassembler)");
        return run("bash", {"-c", script, "bash", folder.path(), source});
    };
    if (QFile::exists("/usr/local/cuda/bin/nvdisasm") || QFile::exists("/usr/bin/nvdisasm"))
        QSKIP("this machine has a disassembler: none is fetched");
    const Ran failed = fetch("return 1");
    QCOMPARE(failed.status, 0); // a test less, and no more
    QVERIFY2(failed.error.contains("sass_lint will be skipped"), qPrintable(failed.error));
    QVERIFY(!QFile::exists(folder.filePath("build/sass.part")));
    QVERIFY(!QFile::exists(folder.filePath("build/sass")));
    QCOMPARE(fetch("return 0").status, 0);
    QVERIFY(QFile::exists(folder.filePath("build/sass/nvidia/cu13/bin/nvdisasm")));
    QVERIFY(fetch("return 1").error.isEmpty()); // nothing to fetch any more
}

void TestPackaging::desktopFilesValidate_data()
{
    QTest::addColumn<QString>("program");
    QTest::addColumn<QStringList>("arguments");
    const QString folder = source + "/packaging/linux/" + id;
    QTest::newRow("desktop entry") << "desktop-file-validate" << QStringList{folder + ".desktop"};
    QTest::newRow("AppStream") << "appstreamcli" << QStringList{"validate", "--no-net", folder + ".metainfo.xml"};
    QTest::newRow("MIME type") << "xmllint" << QStringList{"--noout", folder + ".mime.xml"};
}

void TestPackaging::desktopFilesValidate()
{
    QFETCH(QString, program);
    QFETCH(QStringList, arguments);
    if (QStandardPaths::findExecutable(program).isEmpty())
        QSKIP(qPrintable(program + " is not installed"));
    const Ran validated = run(program, arguments);
    const QString said = validated.out + validated.error;
    // From version 1.0 appstreamcli warns of a project that has no web page, and then fails: it is true,
    // and there is none to name.
    static const QRegularExpression fault("^[EW]: (?!.*url-homepage-missing)", QRegularExpression::MultilineOption);
    if (program == "appstreamcli" && said.contains("url-homepage-missing"))
        QVERIFY2(!fault.match(said).hasMatch(), qPrintable(said));
    else
        QVERIFY2(validated.status == 0, qPrintable(said));
}

void TestPackaging::oneIdEverywhere()
{
    // The validators do not notice when these disagree; the menu entry then has no icon.
    QVERIFY(read("packaging/linux/" + id + ".desktop").contains("Icon=" + id + '\n'));
    const QString metainfo = read("packaging/linux/" + id + ".metainfo.xml");
    QVERIFY(metainfo.contains("<id>" + id + "</id>"));
    QVERIFY(metainfo.contains("<launchable type=\"desktop-id\">" + id + ".desktop</launchable>"));
    const QString mime = QStringLiteral("application/vnd.memscape.study+json");
    QVERIFY(read("packaging/linux/" + id + ".mime.xml").contains("type=\"" + mime + '"'));
    QVERIFY(read("packaging/linux/" + id + ".desktop").contains("MimeType=" + mime + ';'));
    QVERIFY(metainfo.contains("<mediatype>" + mime + "</mediatype>"));
    QVERIFY(read("app/window/main.cpp").contains(id));
    QVERIFY(read("packaging/CMakeLists.txt").contains("set(memscape_id " + id + ')'));
}

void TestPackaging::programsAreHardened_data()
{
    QTest::addColumn<QString>("file");
    for (const QString name : {"memscape-cli", "memscape", "libmemscape-cuda.so"})
        if (QFile::exists(BINARY_FOLDER "/" + name)) // the window and the CUDA module are not always built
            QTest::newRow(qPrintable(name)) << BINARY_FOLDER "/" + name;
}
void TestPackaging::programsAreHardened()
{
    QFETCH(QString, file);
    const QString headers = run("readelf", {"--wide", "--program-headers", "--dynamic", file}).out;
    QVERIFY2(headers.contains("GNU_RELRO") && headers.contains("NOW"), qPrintable(headers)); // full RELRO
    QVERIFY2(headers.contains("Elf file type is DYN"), qPrintable(headers)); // at another address each time
    QVERIFY2(!QRegularExpression("GNU_STACK.* RWE ").match(headers).hasMatch(), qPrintable(headers));
    const QString symbols = run("readelf", {"--wide", "--dyn-syms", file}).out;
    QVERIFY2(symbols.contains("__stack_chk_fail"), "no stack protector");
    QVERIFY2(QRegularExpression("__(memcpy|memset|memmove|snprintf|read|vsnprintf)_chk").match(symbols).hasMatch(),
             "not fortified");
}

void TestPackaging::readmeShowsBothCommands()
{
    const QString first = read("README.md").left(1600);
    QVERIFY(first.contains("packaging/run"));
    QVERIFY(first.contains("packaging/test"));
    const auto picture = QRegularExpression(R"(!\[[^\]]*\]\(([^)]+)\))").match(first);
    QVERIFY(picture.hasMatch());
    QVERIFY2(QFile::exists(source + '/' + picture.captured(1)), qPrintable(picture.captured(1)));
}

void TestPackaging::linksOfTextsLead_data()
{
    QTest::addColumn<QString>("text");
    QStringList texts{"README.md", ".github/CONTRIBUTING.md"};
    for (const QString& name : QDir(source + "/resources/help").entryList({"*.md"}))
        texts << "resources/help/" + name;
    for (const QString& text : texts)
        QTest::newRow(qPrintable(text)) << text;
}

void TestPackaging::linksOfTextsLead()
{
    QFETCH(QString, text);
    const QString content = read(text);
    QVERIFY(!content.isEmpty());
    static const QRegularExpression link(R"(\]\(([^)#]+)\))");
    for (const QRegularExpressionMatch& match : link.globalMatch(content)) {
        const QString target = match.captured(1);
        if (!target.contains("://"))
            QVERIFY2(QFile::exists(QFileInfo(source + '/' + text).path() + '/' + target), qPrintable(target));
    }
}

QTEST_GUILESS_MAIN(TestPackaging)
#include "tst_packaging.moc"
