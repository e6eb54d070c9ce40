// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <QtTest>

#include <filesystem>
#include <sys/resource.h>
#include <csignal>
#include <unistd.h>

using namespace memscape;
namespace fs = std::filesystem;

class TestFile : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { QVERIFY(m_folder.isValid()); }
    void writesAndReads();
    void aFailedWriteLeavesTheOldFile();
    void noPermissionIsSaid();
    void aFullDeviceIsSaid();
    void missingAndFolderAreSaid();
    void aLinkStaysALink();
    void tooLargeIsRefused();

private:
    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }
    int entries() const
    {
        return int(std::distance(fs::directory_iterator(m_folder.path().toStdString()), {}));
    }
    QTemporaryDir m_folder;
};

void TestFile::writesAndReads()
{
    QVERIFY(writeFileAtomically(path("a"), "one").has_value());
    QVERIFY(writeFileAtomically(path("a"), "two").has_value());
    QCOMPARE(*readFile(path("a")), std::string("two"));
    QCOMPARE(entries(), 1); // no temporary file stays
}

void TestFile::aFailedWriteLeavesTheOldFile()
{
    QVERIFY(writeFileAtomically(path("kept"), "old").has_value());
    const int before = entries();
    // The kernel refuses to grow a file past the limit, as a full disk would.
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{4096, old.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const auto written = writeFileAtomically(path("kept"), std::string(100'000, 'x'));
    setrlimit(RLIMIT_FSIZE, &old);
    QVERIFY(!written.has_value());
    QCOMPARE(written.error().code, std::string("file.space"));
    QCOMPARE(*readFile(path("kept")), std::string("old"));
    QCOMPARE(entries(), before);
}

void TestFile::noPermissionIsSaid()
{
    if (geteuid() == 0)
        QSKIP("root may write anywhere");
    fs::create_directory(path("closed"));
    fs::permissions(path("closed"), fs::perms::owner_read | fs::perms::owner_exec);
    const auto written = writeFileAtomically(path("closed") / "x", "y");
    QCOMPARE(written.error().code, std::string("file.permission"));
}

void TestFile::aFullDeviceIsSaid()
{
    const auto written = writeFileAtomically("/dev/full", "x");
    QVERIFY(!written.has_value());
    QCOMPARE(written.error().code, std::string("file.space"));
}

void TestFile::missingAndFolderAreSaid()
{
    QCOMPARE(readFile(path("nowhere")).error().code, std::string("file.missing"));
    QVERIFY(readFile(path("nowhere")).error().message.find("nowhere") != std::string::npos);
    QCOMPARE(readFile(m_folder.path().toStdString()).error().code, std::string("file.kind"));
    QCOMPARE(writeFileAtomically(m_folder.path().toStdString(), "x").error().code, std::string("file.kind"));
    QCOMPARE(writeFileAtomically(path("no/such/folder"), "x").error().code, std::string("file.missing"));
}

void TestFile::aLinkStaysALink()
{
    QVERIFY(writeFileAtomically(path("target"), "old").has_value());
    fs::create_symlink(path("target"), path("link"));
    QVERIFY(writeFileAtomically(path("link"), "new").has_value());
    QVERIFY(fs::is_symlink(path("link")));
    QCOMPARE(*readFile(path("target")), std::string("new"));
}

void TestFile::tooLargeIsRefused()
{
    QVERIFY(writeFileAtomically(path("big"), std::string(5000, 'x')).has_value());
    QCOMPARE(readFile(path("big"), 1000).error().code, std::string("file.limit"));
}

QTEST_GUILESS_MAIN(TestFile)
#include "tst_file.moc"
