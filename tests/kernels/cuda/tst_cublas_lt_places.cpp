// SPDX-License-Identifier: Apache-2.0
// The search for cuBLASLt among folders made here, with libraries that answer a version and no more.
#include "kernels/cuda/common/cublas_lt_places.h"

#include <QDir>
#include <QTemporaryDir>
#include <QtTest>

using namespace memscape::cuda;

namespace {

constexpr int driver12 = 12080, driver13 = 13000;
const std::string modules = MODULES_FOLDER;

/// A folder in which libraries are laid down.
class Folder
{
public:
    std::string path(const char* below = "") const { return QDir(m_folder.path()).filePath(below).toStdString(); }
    void lay(const char* library, const char* as) const
    {
        const QString to = QDir(m_folder.path()).filePath(as);
        QVERIFY(QDir().mkpath(QFileInfo(to).path()));
        QVERIFY(QFile::copy(QString::fromStdString(modules + "/" + library), to));
    }
    void write(const char* text, const char* as) const
    {
        QFile file(QDir(m_folder.path()).filePath(as));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
    }

private:
    QTemporaryDir m_folder;
};

bool has(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class TestCublasLtPlaces : public QObject
{
    Q_OBJECT

private slots:
    void aFileIsTakenAsItIs()
    {
        Folder folder;
        folder.lay("cublas_lt_12.so", "any-name.so");
        const CublasLtLibrary library = openCublasLt(folder.path("any-name.so"), driver13, {});
        QVERIFY(library.handle != nullptr);
        QCOMPARE(library.version, std::string("12.9.3"));
        QCOMPARE(library.file,
                 QFileInfo(QString::fromStdString(folder.path("any-name.so"))).canonicalFilePath().toStdString());
        QVERIFY2(library.trouble.empty(), library.trouble.c_str());
    }

    void aFolderGivesTheNewestThatTheDriverStarts()
    {
        Folder folder;
        folder.lay("cublas_lt_12.so", "libcublasLt.so.12");
        folder.lay("cublas_lt_13.so", "libcublasLt.so.13");
        QCOMPARE(openCublasLt(folder.path(), driver13, {}).version, std::string("13.0.2"));
        QCOMPARE(openCublasLt(folder.path(), driver12, {}).version, std::string("12.9.3"));
    }

    void sitePackagesAreLookedThrough_data()
    {
        QTest::addColumn<QString>("library");
        QTest::addColumn<QString>("as");
        QTest::addColumn<QString>("version");
        QTest::newRow("PyTorch of CUDA 12") << "cublas_lt_12.so"
                                            << "nvidia/cublas/lib/libcublasLt.so.12"
                                            << "12.9.3";
        QTest::newRow("PyTorch of CUDA 13") << "cublas_lt_13.so"
                                            << "nvidia/cu13/lib/libcublasLt.so.13"
                                            << "13.0.2";
    }
    void sitePackagesAreLookedThrough()
    {
        QFETCH(QString, library);
        QFETCH(QString, as);
        QFETCH(QString, version);
        Folder folder;
        folder.lay(library.toUtf8(), as.toUtf8());
        const CublasLtLibrary found = openCublasLt(folder.path(), driver13, {});
        QCOMPARE(found.version, version.toStdString());
        QVERIFY2(has(found.file, as.toStdString()), found.file.c_str());
    }

    void theLinkWithoutANumberIsTheLastResort()
    {
        Folder folder;
        folder.lay("cublas_lt_13.so", "libcublasLt.so");
        QCOMPARE(openCublasLt(folder.path(), driver13, {}).version, std::string("13.0.2"));
        folder.lay("cublas_lt_12.so", "libcublasLt.so.12");
        QCOMPARE(openCublasLt(folder.path(), driver13, {}).version, std::string("12.9.3"));
    }

    void aChosenLibraryHasNoFallback()
    {
        Folder folder;
        folder.lay("cublas_lt_12.so", "libcublasLt.so.12");
        const CublasLtLibrary library = openCublasLt(folder.path(), driver13, {modules + "/cublas_lt_13.so"});
        QCOMPARE(library.version, std::string("12.9.3"));
    }

    void aWrongChoiceIsPassedOverAndSaid_data()
    {
        QTest::addColumn<QString>("chosen");
        QTest::addColumn<QString>("reason");
        QTest::newRow("not there") << "nowhere"
                                   << "does not exist";
        QTest::newRow("an empty folder") << "empty"
                                         << "no libcublasLt.so is in it";
        QTest::newRow("no library") << "text.so"
                                    << "cannot be loaded";
        QTest::newRow("another library") << "other.so"
                                         << "is not cuBLASLt";
        QTest::newRow("too old") << "old.so"
                                 << "10.10.0, older than 11";
    }
    void aWrongChoiceIsPassedOverAndSaid()
    {
        QFETCH(QString, chosen);
        QFETCH(QString, reason);
        Folder folder;
        QVERIFY(QDir(QString::fromStdString(folder.path())).mkdir("empty"));
        folder.write("no library at all", "text.so");
        folder.lay("cublas_lt_other.so", "other.so");
        folder.lay("cublas_lt_old.so", "old.so");
        const std::string path = folder.path(chosen.toUtf8());
        const CublasLtLibrary library = openCublasLt(path, driver13, {modules + "/cublas_lt_13.so"});
        QCOMPARE(library.version, std::string("13.0.2"));
        QVERIFY2(has(library.trouble, "MEMSCAPE_CUBLASLT names " + path), library.trouble.c_str());
        QVERIFY2(has(library.trouble, reason.toStdString()), library.trouble.c_str());
    }

    void withoutAChoiceTheFirstNameThatOpensIsTaken()
    {
        const CublasLtLibrary library = openCublasLt({}, driver13,
                                                     {"libcublasLt.so.none", modules + "/cublas_lt_other.so",
                                                      modules + "/cublas_lt_12.so", modules + "/cublas_lt_13.so"});
        QCOMPARE(library.version, std::string("12.9.3"));
        QVERIFY(library.trouble.empty());
    }

    void nothingIsFound()
    {
        const CublasLtLibrary library = openCublasLt("/nowhere", driver13, {"libcublasLt.so.none"});
        QVERIFY(library.handle == nullptr);
        QVERIFY(library.file.empty());
        QVERIFY2(has(library.trouble, "/nowhere"), library.trouble.c_str());
    }

    void theLoaderIsAskedBeforeTheToolkit()
    {
        const std::vector<std::string> newer = cublasLtNames(driver13), older = cublasLtNames(driver12);
        QVERIFY(newer.size() >= 2);
        QCOMPARE(newer[0], std::string("libcublasLt.so.13"));
        QCOMPARE(newer[1], std::string("libcublasLt.so.12"));
        QCOMPARE(older[0], std::string("libcublasLt.so.12"));
        for (std::size_t i = 2; i < newer.size(); ++i)
            QVERIFY2(newer[i].starts_with("/usr/local/cuda/"), newer[i].c_str());
    }

    void versionsAreSpelt()
    {
        QCOMPARE(cublasLtVersionText(111103), std::string("11.11.3"));
        QCOMPARE(cublasLtVersionText(120903), std::string("12.9.3"));
        QCOMPARE(cublasLtVersionText(130100), std::string("13.1.0"));
    }
};

QTEST_GUILESS_MAIN(TestCublasLtPlaces)
#include "tst_cublas_lt_places.moc"
