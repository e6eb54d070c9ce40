// SPDX-License-Identifier: Apache-2.0
// Operations as text: what is read, what is written again, and where an error points.
#include "core/access/views/view_operation.h"

#include <QtTest>

using namespace memscape;

namespace {

QString textOf(const char* text)
{
    const auto operations = parseViews(text);
    return QString::fromStdString(operations ? viewsText(*operations) : operations.error().text());
}

} // namespace

class TestViewParser : public QObject
{
    Q_OBJECT

private slots:
    void read_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("same");
        QTest::newRow("nothing") << ""
                                 << "";
        QTest::newRow("blanks") << " \t "
                                << "";
        QTest::newRow("the contract's") << "transpose(0,1);narrow(2,1,2)"
                                        << "transpose(0,1);narrow(2,1,2)";
        QTest::newRow("a line of Python") << "x.permute(0, 2, 3, 1).contiguous()"
                                          << "permute(0,2,3,1);contiguous()";
        QTest::newRow("names") << "narrow(length=2, dim=-1, start=0)"
                               << "narrow(-1,0,2)";
        QTest::newRow("defaults") << "flatten(1);diagonal();slice(0,1,none,1)"
                                  << "flatten(1);diagonal();slice(0,1)";
        QTest::newRow("lists") << "view([2, -1]);permute((1,0));as_strided((2,),[1])"
                               << "view(2,-1);permute(1,0);as_strided([2],[1])";
        QTest::newRow("formats") << "contiguous(memory_format=torch.channels_last);clone(channels_last_3d)"
                                 << "contiguous(channels_last);clone(channels_last_3d)";
        QTest::newRow("other names") << "swapaxes(0,1);moveaxis(0,1);sum(0)"
                                     << "transpose(0,1);movedim([0],[1]);sum_dim(0)";
        QTest::newRow("a flag") << "sum_dim(0,True)"
                                << "sum_dim(0,true)";
    }
    void read()
    {
        QFETCH(QString, text);
        QFETCH(QString, same);
        QCOMPARE(textOf(text.toUtf8().constData()), same);
        QCOMPARE(textOf(same.toUtf8().constData()), same);
    }

    void refused_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("code");
        QTest::addColumn<int>("character");
        QTest::newRow("no operation") << "transpose(0,1);;t()"
                                      << "views.syntax" << 16;
        QTest::newRow("unknown") << "t();transpoze(0,1)"
                                 << "views.unknown" << 5;
        QTest::newRow("no bracket") << "transpose 0,1"
                                    << "views.syntax" << 11;
        QTest::newRow("open") << "transpose(0,1"
                              << "views.syntax" << 14;
        QTest::newRow("open list") << "view([2,3)"
                                   << "views.syntax" << 10;
        QTest::newRow("a fraction") << "select(0,1.5)"
                                    << "views.syntax" << 11;
        QTest::newRow("a word") << "select(0,two)"
                                << "views.arguments" << 10;
        QTest::newRow("too many") << "select(0,1,2)"
                                  << "views.arguments" << 12;
        QTest::newRow("too few") << "t(); select(0)"
                                 << "views.arguments" << 6;
        QTest::newRow("twice") << "select(0,dim=1)"
                               << "views.arguments" << 10;
        QTest::newRow("no such argument") << "select(axis=1)"
                                          << "views.arguments" << 8;
        QTest::newRow("a list for a number") << "select([0],1)"
                                             << "views.arguments" << 8;
        QTest::newRow("beyond 64 bits") << "narrow(0,0,99999999999999999999)"
                                        << "views.range" << 12;
        QTest::newRow("nothing between") << "t()t()"
                                         << "views.syntax" << 4;
        QTest::newRow("another format") << "contiguous(channels_first)"
                                        << "views.arguments" << 12;
        QTest::newRow("not of this alphabet") << QStringLiteral("t();ß()") << "views.syntax" << 5;
        QTest::newRow("65 operations") << QStringLiteral("t();").repeated(65) << "views.limit" << 257;
    }
    void refused()
    {
        QFETCH(QString, text);
        QFETCH(QString, code);
        QFETCH(int, character);
        const auto operations = parseViews(text.toStdString());
        QVERIFY(!operations);
        QCOMPARE(QString::fromStdString(operations.error().code), code);
        QCOMPARE(QString::fromStdString(operations.error().place),
                 QStringLiteral("views, character %1").arg(character));
        QVERIFY(!operations.error().hint.empty());
    }

    void everyOperationReadsBack()
    {
        for (const OperationSpec& spec : operationSpecs()) {
            std::string text = spec.name + "(";
            for (const ArgumentSpec& argument : spec.arguments) {
                text += text.back() == '(' ? "" : ",";
                text += argument.kind == ArgumentKind::List ? "[1,0]"
                    : argument.kind == ArgumentKind::Flag   ? "true"
                    : argument.kind == ArgumentKind::Format ? "channels_last"
                                                            : "3";
            }
            const auto read = parseViews(text + ")");
            QVERIFY2(read, (text + ")").c_str());
            const auto again = parseViews(viewsText(*read));
            QVERIFY2(again, viewsText(*read).c_str());
            QVERIFY(*again == *read);
            QVERIFY(!spec.help.empty());
        }
    }

    void shapes()
    {
        QCOMPARE(*parseShape("2,3,4"), Sizes({2, 3, 4}));
        QCOMPARE(*parseShape("[2, 3]"), Sizes({2, 3}));
        QCOMPARE(*parseShape("(7,)"), Sizes({7}));
        QCOMPARE(*parseShape(""), Sizes());
        QCOMPARE(*parseShape("0"), Sizes({0}));
        for (const char* wrong : {"2,,3", "2x3", "2,3]", "nan", "1e3", "2.0", "99999999999999999999"}) {
            const auto shape = parseShape(wrong);
            QVERIFY2(!shape, wrong);
            QVERIFY2(shape.error().place.starts_with("shape, character"), shape.error().place.c_str());
        }
    }
};

QTEST_APPLESS_MAIN(TestViewParser)
#include "tst_view_parser.moc"
