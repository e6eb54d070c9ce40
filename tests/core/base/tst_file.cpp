// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <QtTest>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace memscape;
namespace fs = std::filesystem;

class TestFile : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { QVERIFY(m_folder.isValid()); }

    void writesAndReads()
    {
        QVERIFY(writeFileAtomically(path("a"), "one").has_value());
        QVERIFY(writeFileAtomically(path("a"), "two").has_value());
        QCOMPARE(*readFile(path("a")), std::string("two"));
        QCOMPARE(entries(), 1); // no temporary file stays
    }

    void aFailedWriteLeavesTheOldFile()
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

    void noPermissionIsSaid()
    {
        if (geteuid() == 0)
            QSKIP("root may write anywhere");
        fs::create_directory(path("closed"));
        fs::permissions(path("closed"), fs::perms::owner_read | fs::perms::owner_exec);
        const auto written = writeFileAtomically(path("closed") / "x", "y");
        QCOMPARE(written.error().code, std::string("file.permission"));
    }

    void aFullDeviceIsSaid()
    {
        const auto written = writeFileAtomically("/dev/full", "x");
        QVERIFY(!written.has_value());
        QCOMPARE(written.error().code, std::string("file.space"));
    }

    void missingAndFolderAreSaid()
    {
        QCOMPARE(readFile(path("nowhere")).error().code, std::string("file.missing"));
        QVERIFY(readFile(path("nowhere")).error().message.find("nowhere") != std::string::npos);
        QCOMPARE(readFile(m_folder.path().toStdString()).error().code, std::string("file.kind"));
        QCOMPARE(writeFileAtomically(m_folder.path().toStdString(), "x").error().code, std::string("file.kind"));
        QCOMPARE(writeFileAtomically(path("no/such/folder"), "x").error().code, std::string("file.missing"));
    }

    void aLinkStaysALink()
    {
        QVERIFY(writeFileAtomically(path("target"), "old").has_value());
        fs::create_symlink(path("target"), path("link"));
        QVERIFY(writeFileAtomically(path("link"), "new").has_value());
        QVERIFY(fs::is_symlink(path("link")));
        QCOMPARE(*readFile(path("target")), std::string("new"));
    }

    void tooLargeIsRefused()
    {
        QVERIFY(writeFileAtomically(path("big"), std::string(5000, 'x')).has_value());
        QCOMPARE(readFile(path("big"), 1000).error().code, std::string("file.limit"));
    }

    void pipesAndDevicesAreRefusedAtOnce()
    {
        // A pipe without a writer would block the open, a device would never end.
        QCOMPARE(::mkfifo(path("pipe").c_str(), 0600), 0);
        QCOMPARE(readFile(path("pipe")).error().code, std::string("file.kind"));
        QCOMPARE(readFile("/dev/zero").error().code, std::string("file.kind"));
        int ends[2];
        QCOMPARE(::pipe(ends), 0);
        QCOMPARE(::write(ends[1], "given", 5), ssize_t(5));
        ::close(ends[1]);
        QCOMPARE(*readFile("/dev/fd/" + std::to_string(ends[0])), std::string("given")); // as by <(…)
        ::close(ends[0]);
    }

    void modesAreTheUmasksOrPrivate()
    {
        const auto modeOf = [this](const char* name) {
            struct stat status
            { };
            ::stat(path(name).c_str(), &status);
            return status.st_mode & 0777;
        };
        const mode_t before = ::umask(027);
        QVERIFY(writeFileAtomically(path("shared"), "x").has_value());
        QVERIFY(writeFileAtomically(path("private"), "x", FileMode::Private).has_value());
        ::umask(before);
        QCOMPARE(modeOf("shared"), mode_t(0640));
        QCOMPARE(modeOf("private"), mode_t(0600));
        ::chmod(path("shared").c_str(), 0664);
        ::chmod(path("private").c_str(), 0664);
        QVERIFY(writeFileAtomically(path("shared"), "y").has_value());
        QVERIFY(writeFileAtomically(path("private"), "y", FileMode::Private).has_value());
        QCOMPARE(modeOf("shared"), mode_t(0664)); // a file that is replaced stays as its owner set it
        QCOMPARE(modeOf("private"), mode_t(0600));
    }

    void killedAtAnyMomentTheFileIsOldOrNew()
    {
        const QTemporaryDir folder;
        const auto path = std::filesystem::path(folder.filePath("study").toStdString());
        const std::string one(300'000, '1'), two(200'000, '2');
        QVERIFY(writeFileAtomically(path, one));
        int writtenByKilled = 0;
        std::mt19937 random(1);
        for (int kill = 0; kill < 100; ++kill) {
            const pid_t child = ::fork();
            if (child == 0) {
                for (;;)
                    if (!writeFileAtomically(path, two) || !writeFileAtomically(path, one))
                        ::_exit(1);
            }
            ::usleep(500 + unsigned(random() % 6000));
            ::kill(child, SIGKILL);
            int status = 0;
            QCOMPARE(::waitpid(child, &status, 0), child);
            QVERIFY(WIFSIGNALED(status));
            const auto found = readFile(path);
            QVERIFY2(found && (*found == one || *found == two), "a torn file");
            writtenByKilled += *found == two;
        }
        QVERIFY(writtenByKilled > 0); // or no child came to write
    }

    void whatAKillLeftIsRemoved()
    {
        const auto make = [this](const char* name, std::time_t age) {
            const int file = ::open(path(name).c_str(), O_CREAT | O_WRONLY, 0600);
            const timespec then{std::time(nullptr) - age, 0};
            const timespec times[2] = {then, then};
            ::futimens(file, times);
            ::close(file);
        };
        make(".study.saving-01234567", 7200); // of a program that was killed
        make(".study.saving-89abcdef", 60);   // of one that may still be writing
        make(".other.saving-01234567", 7200);
        make("study.backup", 7200);
        QVERIFY(writeFileAtomically(path("study"), "x").has_value());
        QVERIFY(!fs::exists(path(".study.saving-01234567")));
        for (const char* kept : {".study.saving-89abcdef", ".other.saving-01234567", "study.backup"})
            QVERIFY(fs::exists(path(kept)));
    }

    void aFoldersEntriesComeByName()
    {
        const fs::path folder = path("listed");
        for (const char* name : {"b.json", "a.json", "c.txt", ".hidden.json", ".json"})
            QVERIFY((fs::create_directories(folder), writeFileAtomically(folder / name, "{}")));
        fs::create_directory(folder / "d.json"); // a folder is an entry, too
        const std::vector<fs::path> named{folder / ".hidden.json", folder / "a.json", folder / "b.json",
                                          folder / "d.json"};
        QCOMPARE(entriesOf(folder, ".json"), named); // ".json" is a name without an extension
        QCOMPARE(entriesOf(folder).size(), std::size_t(6));
        QVERIFY(entriesOf(folder / "a.json").empty());
        QVERIFY(entriesOf(folder / "missing").empty());
        fs::remove_all(folder);
    }

private:
    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }
    int entries() const { return int(std::distance(fs::directory_iterator(m_folder.path().toStdString()), {})); }
    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestFile)
#include "tst_file.moc"
