// SPDX-License-Identifier: Apache-2.0
// Loadings from real files, small: every method brings every byte, conversions are done, a cold file is proved cold;
// what has no room, shrinks or lies in memory is said; no file is left, also when the process is killed.
#include "kernels/host/loading/bus_guard.h"
#include "kernels/host/loading/loading.h"
#include "kernels/host/loading/loading_kernels.h"
#include "tests/support/host_fakes.h"

#include <QTest>

#include <QDir>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace memscape;
using namespace memscape::host;

namespace {

constexpr std::uint64_t smallFile = 3 * 65536 + 5000;

LoadingCase smallLoading(LoadingMethod method, std::uint64_t bytes = smallFile)
{
    LoadingCase asked;
    asked.fileBytes = asked.bytes = bytes;
    asked.elements = bytes / 4;
    asked.form = LoadingForm::Float32;
    asked.chunk = 65536;
    asked.depth = 2;
    asked.method = method;
    asked.threads = method == LoadingMethod::Parallel ? 3 : 1;
    asked.limit = 1 << 30;
    return asked;
}

/// A session on this machine's own threads, and a file on its disk.
struct LoadingSession
{
    Device device;
    test::Listener listener;
    HostSession session{device, listener};

    Result<LoadingFile> file(std::uint64_t bytes = smallFile)
    {
        return LoadingFile::write(session, {}, bytes, std::uint64_t(1) << 30);
    }
};

QString textOf(const Error& error)
{
    return QString::fromStdString(error.text());
}

/// Where files cannot be cold (tests on a tmpfs) there is nothing to prove.
bool canBeCold(const LoadingFile& file)
{
    return !file.liesInMemory();
}

} // namespace

class TestLoadingRun : public QObject
{
    Q_OBJECT

private slots:
    void conversionsAreRight()
    {
        const Check check = checkLoadingConversions();
        QVERIFY2(check.passed(), check.text().c_str());
        QVERIFY(check.compared() > 50000);
        // 4-bit numbers by hand: 0x2f is 15, then 2, each less 8, times the first scale.
        const std::byte pair{0x2f};
        float made[2] = {};
        convertLoaded(LoadingForm::Int4, LoadingTarget::Float32, &pair, reinterpret_cast<std::byte*>(made), 2);
        QCOMPARE(made[0], 7 / 128.0F);
        QCOMPARE(made[1], -6 / 128.0F);
    }

    void everyMethodBringsEveryByte_data()
    {
        QTest::addColumn<int>("method");
        QTest::addColumn<int>("bytes");
        for (const LoadingMethod method :
             {LoadingMethod::Read, LoadingMethod::Mmap, LoadingMethod::Direct, LoadingMethod::Parallel}) {
            for (const int bytes : {1, 4096, 65536, int(smallFile)})
                QTest::addRow("%s %d", loadingMethodKey(method).c_str(), bytes) << int(method) << bytes;
        }
    }
    void everyMethodBringsEveryByte()
    {
        QFETCH(int, method);
        QFETCH(int, bytes);
        LoadingSession here;
        const auto file = here.file(std::uint64_t(bytes));
        QVERIFY2(file, file ? "" : qPrintable(textOf(file.error())));
        for (const bool isWarm : {true, false}) {
            if ((!isWarm || LoadingMethod(method) == LoadingMethod::Direct) && !canBeCold(*file))
                continue;
            LoadingCase asked = smallLoading(LoadingMethod(method), std::uint64_t(bytes));
            asked.chunk = std::min<std::uint64_t>(asked.chunk, asked.bytes);
            asked.isWarm = isWarm && asked.method != LoadingMethod::Direct;
            LoadingRun run(here.session, *file, asked);
            const auto opened = run.open();
            QVERIFY2(opened, opened ? "" : qPrintable(textOf(opened.error())));
            const auto checked = run.check();
            QVERIFY2(checked, checked ? "" : qPrintable(textOf(checked.error())));
            const auto seconds = run.sample({});
            QVERIFY2(seconds, seconds ? "" : qPrintable(textOf(seconds.error())));
            QVERIFY(*seconds > 0 && *seconds < 10);
            QCOMPARE(run.seen().cachedBytes, asked.method == LoadingMethod::Direct ? 0.0 : double(bytes));
            QVERIFY(asked.isMapped() ? run.seen().faults >= 1 : run.seen().faults == 0);
        }
    }

    void conversionsAreDoneOnTheWay()
    {
        LoadingSession here;
        const auto file = here.file();
        QVERIFY(file);
        for (const LoadingForm form : {LoadingForm::Float32, LoadingForm::Int8, LoadingForm::Int4}) {
            for (const LoadingCopies copies : {LoadingCopies::Stream, LoadingCopies::Once, LoadingCopies::Twice}) {
                LoadingCase asked = smallLoading(LoadingMethod::Read);
                asked.isWarm = true;
                asked.form = form;
                asked.elements = std::uint64_t(double(asked.bytes) * 8 / loadingFormBits(form));
                asked.target = LoadingTarget::BFloat16;
                asked.copies = copies;
                here.session.memory().resetHighWater();
                LoadingRun run(here.session, *file, asked);
                QVERIFY(run.open());
                // What the prediction says, but for whole pages and lines.
                const double foreseen = asked.readMemory() + asked.convertedMemory();
                QVERIFY(std::abs(double(here.session.memory().highWater()) - foreseen) < 4096 + 256);
                const auto checked = run.check();
                QVERIFY2(checked, checked ? "" : qPrintable(textOf(checked.error())));
                QVERIFY(run.sample({}));
                QVERIFY(run.sample({false, true, false}));
            }
        }
    }

    void aColdFileIsProvedCold()
    {
        LoadingSession here;
        const auto file = here.file();
        QVERIFY(file);
        if (!canBeCold(*file))
            QSKIP("the temporary files of this machine lie in memory");
        QVERIFY(file->makeWarm(smallFile));
        QCOMPARE(file->cachedBytes(smallFile), smallFile);
        QVERIFY(file->makeCold(smallFile));
        QCOMPARE(file->cachedBytes(smallFile), std::uint64_t(0));
        // A page that is mapped and touched stays: such a file is not called cold.
        void* const mapping = ::mmap(nullptr, smallFile, PROT_READ, MAP_SHARED, file->descriptor(), 0);
        QVERIFY(mapping != MAP_FAILED && ::mlock(mapping, 4096) == 0);
        const auto cold = file->makeCold(smallFile);
        QVERIFY(!cold);
        QCOMPARE(cold.error().code, std::string("run.skipped"));
        QVERIFY(cold.error().message.find("page cache") != std::string::npos);
        ::munmap(mapping, smallFile);
        QVERIFY(file->makeCold(smallFile));
    }

    void bytesOfTheDiskAreCounted()
    {
        LoadingSession here;
        const auto file = here.file();
        QVERIFY(file);
        LoadingCase asked = smallLoading(LoadingMethod::Read);
        if (!canBeCold(*file) || deviceBytesRead() < 0)
            QSKIP("nothing is counted here");
        LoadingRun cold(here.session, *file, asked);
        QVERIFY(cold.open() && cold.sample({}));
        if (cold.seen().deviceBytes == 0)
            QSKIP("this filesystem reports no bytes");
        QVERIFY(cold.seen().deviceBytes >= double(smallFile) && cold.seen().deviceBytes < 4.0 * smallFile);
        asked.isWarm = true;
        LoadingRun warm(here.session, *file, asked);
        QVERIFY(warm.open() && warm.sample({}));
        QCOMPARE(warm.seen().deviceBytes, 0.0);
    }

    /// dd reads the same file, without a name, and counts as many bytes.
    void ddCountsTheSameBytes()
    {
        if (QStandardPaths::findExecutable(QStringLiteral("dd")).isEmpty())
            QSKIP("dd is not installed");
        LoadingSession here;
        const auto file = here.file();
        QVERIFY(file);
        QProcess dd;
        dd.start(QStringLiteral("dd"),
                 {QStringLiteral("if=/proc/%1/fd/%2").arg(::getpid()).arg(file->descriptor()),
                  QStringLiteral("of=/dev/null"), QStringLiteral("bs=64k")});
        QVERIFY(dd.waitForFinished(10000));
        const QString said = QString::fromLocal8Bit(dd.readAllStandardError());
        QVERIFY2(said.contains(QStringLiteral("%1 ").arg(smallFile)), qPrintable(said));
    }

    /// Past the page cache, where devices count what both ask for. Tests measure no time: rates are compared by hand.
    void fioCountsTheSameBytes()
    {
        if (QStandardPaths::findExecutable(QStringLiteral("fio")).isEmpty())
            QSKIP("fio is not installed");
        LoadingSession here;
        const std::uint64_t bytes = 1 << 20;
        const auto file = here.file(bytes);
        QVERIFY(file);
        LoadingRun run(here.session, *file, smallLoading(LoadingMethod::Direct, bytes));
        if (!run.open())
            QSKIP("no direct I/O here");
        QVERIFY(run.sample({}));
        QProcess fio;
        fio.start(QStringLiteral("fio"),
                  {QStringLiteral("--name=same"), QStringLiteral("--rw=read"), QStringLiteral("--bs=64k"),
                   QStringLiteral("--direct=1"), QStringLiteral("--readonly"), QStringLiteral("--output-format=json"),
                   QStringLiteral("--size=%1").arg(bytes),
                   QStringLiteral("--filename=/proc/%1/fd/%2").arg(::getpid()).arg(file->descriptor())});
        QVERIFY(fio.waitForFinished(20000));
        const QByteArray said = fio.readAllStandardOutput();
        const auto counted = QRegularExpression(QStringLiteral("\"io_bytes\" : (\\d+)")).match(QString::fromUtf8(said));
        QVERIFY2(counted.hasMatch(), said.constData());
        QCOMPARE(counted.captured(1).toULongLong(), qulonglong(bytes));
        if (run.seen().deviceBytes > 0)
            QCOMPARE(run.seen().deviceBytes, double(bytes));
    }

    void aFileThatShrinksIsSaid_data()
    {
        QTest::addColumn<int>("method");
        QTest::newRow("read") << int(LoadingMethod::Read);
        QTest::newRow("mmap") << int(LoadingMethod::Mmap);
        QTest::newRow("parallel") << int(LoadingMethod::Parallel);
    }
    void aFileThatShrinksIsSaid()
    {
        QFETCH(int, method);
        LoadingSession here;
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("shrinks"));
        {
            QFile out(path);
            QVERIFY(out.open(QIODevice::WriteOnly));
            out.write(QByteArray(int(smallFile), 'x'));
        }
        const auto file = LoadingFile::open(path.toStdString());
        QVERIFY(file);
        LoadingCase asked = smallLoading(LoadingMethod(method));
        asked.isWarm = true;
        asked.target = LoadingTarget::BFloat16;
        LoadingRun run(here.session, *file, asked);
        QVERIFY(run.open() && run.check() && run.sample({}));
        QCOMPARE(::truncate(path.toLocal8Bit().constData(), 5000), 0);
        for (const LanesUsed& used : {LanesUsed{}, LanesUsed{false, true, false}}) {
            const auto seconds = run.sample(used);
            if (seconds && asked.method != LoadingMethod::Mmap)
                continue; // what was read is in memory
            QVERIFY(!seconds);
            QCOMPARE(seconds.error().code, std::string("run.failed"));
            QVERIFY(!seconds.error().hint.empty());
        }
        const auto shorter = LoadingFile::open(path.toStdString());
        QVERIFY(shorter);
        LoadingRun late(here.session, *shorter, asked);
        QCOMPARE(late.open().error().code, std::string("run.failed"));
    }

    /// SIGBUS itself: the thread goes on, twice, and what is in order is untouched by it.
    void aTouchBehindTheEndIsSurvived()
    {
        QTemporaryDir folder;
        QFile out(folder.filePath(QStringLiteral("short")));
        QVERIFY(out.open(QIODevice::ReadWrite) && out.resize(8192));
        void* const mapping = ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, out.handle(), 0);
        QVERIFY(mapping != MAP_FAILED);
        const auto touch = [&] { return survivesShrinking([&] { (void)static_cast<volatile char*>(mapping)[5000]; }); };
        QVERIFY(touch());
        QVERIFY(out.resize(100));
        QVERIFY(!touch());
        QVERIFY(!touch());
        QVERIFY(out.resize(8192));
        QVERIFY(touch());
        ::munmap(mapping, 8192);
    }

    void whatHasNoRoomIsRefusedBefore()
    {
        LoadingSession here;
        const auto limited = LoadingFile::write(here.session, {}, 2 << 20, 1 << 20);
        QVERIFY(!limited);
        QCOMPARE(limited.error().code, std::string("run.skipped"));
        QVERIFY2(limited.error().hint.find("touched=0.47") != std::string::npos, limited.error().hint.c_str());
        const auto full = LoadingFile::write(here.session, {}, std::uint64_t(1) << 60, std::uint64_t(1) << 62);
        QVERIFY(!full);
        QCOMPARE(full.error().code, std::string("run.space"));
        QVERIFY(full.error().hint.find("folder=") != std::string::npos);
    }

    void whatCannotBeWrittenIsSaid()
    {
        LoadingSession here;
        QTemporaryDir folder;
        const auto into = [&](const std::string& where) {
            const auto file = LoadingFile::write(here.session, where, 4096, 1 << 20);
            return file ? std::string() : file.error().code;
        };
        QCOMPARE(into(folder.filePath(QStringLiteral("none")).toStdString()), std::string("file.missing"));
        QVERIFY(!into("/proc").empty());
        QFile(folder.filePath(QStringLiteral("file"))).open(QIODevice::WriteOnly);
        QVERIFY(!into(folder.filePath(QStringLiteral("file")).toStdString()).empty());
        QCOMPARE(LoadingFile::open(folder.path().toStdString()).error().code, std::string("file.kind"));
    }

    void aFileInMemoryCannotBeCold()
    {
        if (!QDir(QStringLiteral("/dev/shm")).exists())
            QSKIP("no tmpfs here");
        LoadingSession here;
        const auto file = LoadingFile::write(here.session, "/dev/shm", 65536, 1 << 20);
        if (!file || !file->liesInMemory())
            QSKIP("no tmpfs here");
        const auto cold = file->makeCold(65536);
        QVERIFY(!cold);
        QCOMPARE(cold.error().code, std::string("run.skipped"));
        QVERIFY(cold.error().message.find("tmpfs") != std::string::npos);
        QCOMPARE(file->openDirect().error().code, std::string("run.skipped"));
    }

    void aRemovedFileStaysReadable()
    {
        LoadingSession here;
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("removed"));
        QFile out(path);
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.write(QByteArray(int(smallFile), 'x'));
        out.close();
        const auto file = LoadingFile::open(path.toStdString());
        QVERIFY(file && QFile::remove(path));
        LoadingCase asked = smallLoading(LoadingMethod::Read);
        asked.isWarm = true;
        LoadingRun run(here.session, *file, asked);
        QVERIFY(run.open() && run.check() && run.sample({}));
        QCOMPARE(LoadingFile::open(path.toStdString()).error().code, std::string("file.missing"));
    }

    void noFileIsLeft()
    {
        QTemporaryDir folder;
        {
            LoadingSession here;
            const auto file = LoadingFile::write(here.session, folder.path().toStdString(), smallFile, 1 << 20);
            QVERIFY(file);
            QVERIFY(QDir(folder.path()).entryList(QDir::Files).isEmpty()); // it has no name
        }
        QVERIFY(QDir(folder.path()).entryList(QDir::Files).isEmpty());
    }

    void aKilledProcessLeavesNoFile()
    {
        QTemporaryDir folder;
        LoadingSession here;
        const std::string where = folder.path().toStdString();
        const pid_t child = ::fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            const auto file = LoadingFile::write(here.session, where, smallFile, 1 << 20);
            ::kill(::getpid(), SIGKILL);
            ::_exit(file ? 0 : 1);
        }
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        QVERIFY(QDir(folder.path()).entryList(QDir::Files).isEmpty());
    }

    void stopEndsALoading()
    {
        LoadingSession here;
        const auto file = here.file();
        QVERIFY(file);
        LoadingCase asked = smallLoading(LoadingMethod::Read);
        asked.isWarm = true;
        LoadingRun run(here.session, *file, asked);
        QVERIFY(run.open() && run.check());
        here.listener.stop = true;
        QCOMPARE(run.sample({}).error().code, std::string("run.cancelled"));
    }
};

QTEST_GUILESS_MAIN(TestLoadingRun)
#include "tst_loading_run.moc"
