// SPDX-License-Identifier: Apache-2.0
// Graphs as text: what is read, and what is refused with which words.
#include "core/placement/operator_graph.h"

#include <QTest>

#include <fmt/format.h>

using namespace memscape;

class TestOperatorGraph : public QObject
{
    Q_OBJECT

private slots:
    void aGraphIsReadWithItsSizes()
    {
        const auto graph = parseGraph("x: input 512 4096; m@host: input 512 4096  # a mask; not an end\n"
                                      "a: matmul 512 4096 4096 <- x\n b: mul <- a, m; n: item <- b",
                                      2);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        QCOMPARE(graph->nodes.size(), std::size_t(5));
        const GraphNode& product = graph->nodes[2];
        QCOMPARE(product.weightBytes, std::int64_t(4096) * 4096 * 2);
        QCOMPARE(product.outputBytes, std::int64_t(512) * 4096 * 2);
        QCOMPARE(product.flops(), 2.0 * 512 * 4096 * 4096);
        QVERIFY(graph->nodes[1].pinned == Place::Host);
        QCOMPARE(graph->nodes[3].outputBytes, product.outputBytes);
        QCOMPARE(graph->nodes[4].outputBytes, std::int64_t(2)); // one number
    }

    void laterStatementsMayBeNamedBefore()
    {
        const auto graph = parseGraph("y: gelu <- x; x: input 8", 4);
        QVERIFY(graph);
        QCOMPARE(graph->nodes[0].name, std::string("x"));
        QCOMPARE(graph->nodes[1].inputs, std::vector<std::uint32_t>{0});
    }

    void wrongTextsAreRefused_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* name, const char* text, const char* code, const char* words) {
            QTest::newRow(name) << QByteArray(text) << QByteArray(code) << QByteArray(words);
        };
        row("empty", " ; # nothing", "graph.empty", "no statements");
        row("inputs alone", "x: input 8", "graph.empty", "no operator");
        row("no colon", "x input 8 <- y", "graph.syntax", "no colon");
        row("no kind", "x:  ", "graph.syntax", "no kind");
        row("unknown operator", "x: input 8; y: gellu <- x", "graph.kind", "gelu");
        row("undefined", "x: input 8; y: gelu <- z", "graph.undefined", "is not defined");
        row("twice", "x: input 8; x: input 9; y: gelu <- x", "graph.twice", "defined twice");
        row("circle", "x: input 8; a: add <- x b; b: gelu <- a", "graph.cycle", "a waits for b waits for a");
        row("of itself", "a: gelu <- a", "graph.cycle", "a waits for a");
        row("size 0", "x: input 0; y: gelu <- x", "graph.range", "is no size");
        row("size 2^63", "x: input 9223372036854775808; y: gelu <- x", "graph.range", "is no size");
        row("negative size", "x: input -4; y: gelu <- x", "graph.range", "is no size");
        row("nan", "x: input nan; y: gelu <- x", "graph.range", "is no size");
        row("too large together", "x: input 1099511627776 1099511627776; y: gelu <- x", "graph.range", "would take");
        row("weights too large", "x: input 1 1e10; y: matmul 1 1e10 1e10 <- x", "graph.range", "would take");
        row("shapes of a product", "x: input 8 4; y: matmul 8 4 8 <- x", "graph.shape", "needs 8 × 8");
        row("shapes of a sum", "x: input 8 4; z: input 8; y: add <- x z", "graph.shape", "needs 8 × 4");
        row("too few inputs", "x: input 8; y: add <- x", "graph.syntax", "2 inputs");
        row("sizes where none are", "x: input 8; y: gelu 8 <- x", "graph.syntax", "give none");
        row("two sizes of a product", "x: input 8 8; y: matmul 8 8 <- x", "graph.syntax", "three sizes");
        row("no place", "x@moon: input 8; y: gelu <- x", "graph.syntax", "no place");
        row("a copy placed elsewhere", "x: input 8; y@device: cpu <- x", "graph.syntax", "elsewhere");
        row("a name that is none", "2x: input 8; y: gelu <- x", "graph.syntax", "no name");
    }
    void wrongTextsAreRefused()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, code);
        QFETCH(QByteArray, words);
        const auto graph = parseGraph(text.toStdString(), 4);
        QVERIFY(!graph);
        QCOMPARE(graph.error().code, code.toStdString());
        QVERIFY2(graph.error().text().find(words.toStdString()) != std::string::npos, graph.error().text().c_str());
        QVERIFY(!graph.error().hint.empty());
    }

    /// A circle of all nodes, too, is found without a stack that overflows.
    void thousandsOfNodesAreReadAndMoreRefused()
    {
        const auto chain = [](std::size_t count, bool isCircle) {
            std::string text = isCircle ? fmt::format("n0: add <- n0 n{};", count - 1) : "n0: input 8;";
            for (std::size_t i = 1; i < count; ++i)
                text += fmt::format("n{}: gelu <- n{};", i, i - 1);
            return text;
        };
        QVERIFY(parseGraph(chain(mostNodes, false), 4));
        const auto circle = parseGraph(chain(mostNodes, true), 4);
        QVERIFY(!circle && circle.error().code == "graph.cycle");
        const auto more = parseGraph(chain(mostNodes + 1, false), 4);
        QVERIFY(!more && more.error().code == "graph.limit");
        QCOMPARE(parseGraph(std::string(mostGraphText + 1, ' '), 4).error().code, std::string("graph.limit"));
    }

    void aChainIsOneOnlyInARow()
    {
        QVERIFY(chainGraph(3, 16, 4, 4)->isChain());
        QVERIFY(!parseGraph("x: input 8; a: gelu <- x; b: add <- a x", 4)->isChain());
        QVERIFY(!parseGraph("x: input 8; a: gelu <- x; b: cpu <- a", 4)->isChain());
    }

    void namesOfModelsAreNoGraphs()
    {
        for (const char* name :
             {"gpt2", "params:7.5e9", "mlp:8x1024", "from-scratch:hidden=64,layers=2", "/a/config.json"})
            QVERIFY2(!isGraphText(name), name);
        QVERIFY(isGraphText("x: input 8"));
        QVERIFY(isGraphText("y:gelu<-x"));
    }
};

QTEST_GUILESS_MAIN(TestOperatorGraph)
#include "tst_operator_graph.moc"
