// SPDX-License-Identifier: Apache-2.0
// Nodes of memory, from trees of /sys that are written here as the kernel writes them; a host of two sockets has a link
// between them.
#include "core/device/catalogue.h"
#include "core/device/numa.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

void writeLine(const QString& path, const QByteArray& line)
{
    QDir().mkpath(QFileInfo(path).path());
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(line + '\n');
}

/// One node as Documentation/ABI/stable/sysfs-devices-node describes it.
void addNode(const QString& root, int id, const QByteArray& processors, double gibibytes, const QByteArray& distances)
{
    const QString folder = QStringLiteral("%1/sys/devices/system/node/node%2").arg(root).arg(id);
    writeLine(folder + "/cpulist", processors);
    writeLine(folder + "/meminfo",
              "\nNode " + QByteArray::number(id) + " MemTotal:       " + QByteArray::number(qint64(gibibytes * 0x1p20))
                  + " kB\nNode " + QByteArray::number(id) + " MemFree:        1024 kB");
    writeLine(folder + "/distance", distances);
}

void setOnline(const QString& root, const QByteArray& nodes)
{
    writeLine(root + "/sys/devices/system/node/online", nodes);
}

std::vector<NumaNode> nodesUnder(const QTemporaryDir& root)
{
    return readNumaNodes(root.path().toStdString());
}

/// A copy of a recorded machine, to which nodes are added.
void copyMachine(const char* machine, const QString& to)
{
    const std::filesystem::path from = std::filesystem::path(TEST_DATA) / "sysfs" / machine;
    std::filesystem::copy(from, to.toStdString(),
                          std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
}

} // namespace

class TestNuma : public QObject
{
    Q_OBJECT

private slots:
    void twoSockets()
    {
        QTemporaryDir root;
        setOnline(root.path(), "0-1");
        addNode(root.path(), 0, "0-3,8-11", 64, "10 32");
        addNode(root.path(), 1, "4-7,12-15", 32, "32 10");
        const std::vector<NumaNode> nodes = nodesUnder(root);
        QCOMPARE(nodes.size(), std::size_t(2));
        QCOMPARE(nodes[0].processors, (std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11}));
        QCOMPARE(nodes[1].memoryBytes, 0x1p35);
        QCOMPARE(nodeOfProcessor(nodes, 9)->id, 0);
        QCOMPARE(nodeOfProcessor(nodes, 4)->id, 1);
        QVERIFY(!nodeOfProcessor(nodes, 16));
        QCOMPARE(farthestNode(nodes, nodes[0])->id, 1);
        QCOMPARE(distanceBetween(nodes, nodes[0], nodes[1]), 32.0);
        QCOMPARE(distanceBetween(nodes, nodes[0], nodes[0]), ownDistance);
    }

    void theFarthestNodeHasMemory()
    {
        QTemporaryDir root;
        setOnline(root.path(), "0,2,5");
        addNode(root.path(), 0, "0-1", 16, "10 12 40");
        addNode(root.path(), 2, "", 8, "12 10 40"); // memory without processors: an expander
        addNode(root.path(), 5, "2-3", 0, "40 40 10");
        const std::vector<NumaNode> nodes = nodesUnder(root);
        QCOMPARE(nodes.size(), std::size_t(3));
        QCOMPARE(farthestNode(nodes, nodes[0])->id, 2);
        QCOMPARE(farthestNode(nodes, nodes[1])->id, 0);
        QVERIFY(nodes[1].processors.empty());
    }

    void oneNodeHasNoOther()
    {
        QTemporaryDir root;
        setOnline(root.path(), "0");
        addNode(root.path(), 0, "0-1", 16, "10");
        const std::vector<NumaNode> nodes = nodesUnder(root);
        QCOMPARE(nodes.size(), std::size_t(1));
        QVERIFY(!farthestNode(nodes, nodes[0]));
    }

    void brokenTrees_data()
    {
        QTest::addColumn<QByteArray>("online");
        QTest::addColumn<QByteArray>("distances");
        QTest::addColumn<int>("count");
        QTest::newRow("no list") << QByteArray() << QByteArray("10 20") << 0;
        QTest::newRow("words") << QByteArray("all") << QByteArray("10 20") << 0;
        QTest::newRow("a million") << QByteArray("0-999999") << QByteArray("10 20") << 0;
        QTest::newRow("one distance") << QByteArray("0-1") << QByteArray("10") << 2;
        QTest::newRow("distances of nothing") << QByteArray("0-1") << QByteArray() << 2;
        QTest::newRow("below the own") << QByteArray("0-1") << QByteArray("10 5") << 2;
        QTest::newRow("not a number") << QByteArray("0-1") << QByteArray("10 nan") << 2;
    }

    void brokenTrees()
    {
        QFETCH(QByteArray, online);
        QFETCH(QByteArray, distances);
        QFETCH(int, count);
        QTemporaryDir root;
        if (!online.isEmpty())
            setOnline(root.path(), online);
        addNode(root.path(), 0, "0", 1, distances);
        addNode(root.path(), 1, "1", 1, distances);
        const std::vector<NumaNode> nodes = nodesUnder(root);
        QCOMPARE(int(nodes.size()), count);
        for (const NumaNode& node : nodes) {
            QVERIFY(node.distances.empty());
            QVERIFY(farthestNode(nodes, node)); // it is there, however far
        }
    }

    void aFolderWithoutFilesIsANodeOfNothing()
    {
        QTemporaryDir root;
        setOnline(root.path(), "0-1");
        for (const NumaNode& node : nodesUnder(root)) {
            QVERIFY(!node.hasMemory());
            QVERIFY(node.processors.empty());
        }
    }

    void aHostOfTwoSocketsHasALink()
    {
        QTemporaryDir root;
        copyMachine("sapphire-rapids", root.path());
        const std::filesystem::path folder = root.path().toStdString();
        QVERIFY(!describeHost(folder).link("numa"));
        setOnline(root.path(), "0-1");
        addNode(root.path(), 0, "0-1", 64, "10 21");
        addNode(root.path(), 1, "2-3", 64, "21 10");
        const Device host = describeHost(folder);
        QVERIFY(host.link("numa"));
        const Device known = *findDevice("intel-xeon-8480plus");
        QCOMPARE(host.link("numa")->bandwidth.value, known.link("numa")->bandwidth.value);
        QVERIFY(host.link("numa")->bandwidth.source.find("intel-xeon-8480plus") != std::string::npos);
        // No table says how much longer a line takes: the firmware's distance does.
        QVERIFY(!known.link("numa")->latency.known());
        QVERIFY(std::fabs(host.link("numa")->latency.value / (1.1 * host.dram()->latency.value) - 1) < 1e-9);
    }

    /// A core that the catalogue has not got: the firmware's distance says how much longer a line takes.
    void distancesStandInForTheCatalogue()
    {
        QTemporaryDir root;
        copyMachine("arm", root.path());
        setOnline(root.path(), "0-1");
        addNode(root.path(), 0, "0-1", 64, "10 25");
        addNode(root.path(), 1, "2-3", 64, "25 10");
        const Device host = describeHost(root.path().toStdString());
        QVERIFY(host.link("numa"));
        QVERIFY(std::fabs(host.link("numa")->latency.value / (1.5 * host.dram()->latency.value) - 1) < 1e-9);
        QVERIFY(host.link("numa")->latency.evidence == Evidence::Unverified);
    }
};

QTEST_APPLESS_MAIN(TestNuma)
#include "tst_numa.moc"
