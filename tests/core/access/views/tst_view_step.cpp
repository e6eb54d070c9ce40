// SPDX-License-Identifier: Apache-2.0
// Every operation against PyTorch: the recorded cases of tensor_views.json (PyTorch 1.13) and random
// chains of PyTorch 2.15 (view_chains.py), refusals and their words included, and the values that the
// tensors hold, read through our sizes, strides and offsets.
#include "core/access/views/view_step.h"

#include <QtTest>

#include <fstream>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

using Document = nlohmann::json;

Document document(const char* name)
{
    std::ifstream file(std::string(TEST_DATA "/layout/") + name);
    return Document::parse(file, nullptr, false);
}

/// {"op": "narrow", "args": [0, 2, 1]} as the text narrow(0,2,1).
std::string textOf(const Document& step)
{
    std::string text = step["op"].get<std::string>() + "(";
    for (const Document& argument : step["args"])
        text += (text.back() == '(' ? "" : ",") + argument.dump();
    return text + ")";
}

ViewStep made(const TensorView& view, const std::string& text)
{
    const auto operations = parseViews(text);
    if (!operations)
        return {{}, false, operations.error().code, operations.error().text(), {}, false, 0};
    const auto step = apply(view, operations->front());
    return step ? *step : ViewStep{{}, false, step.error().code, step.error().text(), {}, false, 0};
}

QString described(const TensorView& view)
{
    return QStringLiteral("%1 %2 + %3 of %4")
        .arg(QString::fromStdString(sizesText(view.size)), QString::fromStdString(sizesText(view.stride)))
        .arg(view.offset)
        .arg(view.storage);
}

/// One character each: contiguous, channels last of four and five dimensions, dense.
std::string flagsOf(const TensorView& view)
{
    const auto flag = [](bool holds, bool applies) { return !applies ? '-' : holds ? '1' : '0'; };
    return {flag(view.isContiguous(), true), flag(view.isChannelsLast(), view.rank() == 4),
            flag(view.isChannelsLast3d(), view.rank() == 5), flag(view.isDense(), true)};
}

std::string flagsOf(const Document& step)
{
    std::string flags;
    for (const char* key : {"contiguous", "channels_last", "channels_last_3d", "dense"})
        flags += step[key].is_null() ? '-' : step[key].get<bool>() ? '1' : '0';
    return flags;
}

/// The elements in row-major order of the indices, out of a storage.
std::vector<std::int64_t> valuesOf(const TensorView& view, const std::vector<std::int64_t>& storage)
{
    std::vector<std::int64_t> values;
    Sizes index(view.size.size());
    for (std::int64_t n = view.elements(); n > 0; --n) {
        std::int64_t at = view.offset;
        for (std::size_t i = 0; i < index.size(); ++i)
            at += index[i] * view.stride[i];
        values.push_back(storage.at(std::size_t(at)));
        for (std::size_t i = index.size(); i-- > 0 && ++index[i] == view.size[i];)
            index[i] = 0;
    }
    return values;
}

bool changesNoValues(const std::string& name)
{
    return name == "contiguous" || name == "clone" || name == "reshape" || name == "flatten" || name == "contiguous_cl"
        || name == "contiguous_cl3d";
}

} // namespace

class TestViewStep : public QObject
{
    Q_OBJECT

private slots:
    void recordedCases_data()
    {
        QTest::addColumn<int>("index");
        const Document cases = document("tensor_views.json")["cases"];
        QVERIFY2(cases.size() == 400, "tensor_views.json is not the recorded one");
        for (std::size_t i = 0; i < cases.size(); ++i)
            QTest::addRow("case %d", cases[i]["id"].get<int>()) << int(i);
    }
    void recordedCases()
    {
        static const Document cases = document("tensor_views.json")["cases"];
        QFETCH(int, index);
        const Document& one = cases[std::size_t(index)];
        auto base = freshTensor(one["shape"].get<Sizes>());
        QVERIFY(base);
        QCOMPARE(base->stride, one["base"]["stride"].get<Sizes>());
        TensorView now = *base;
        for (const Document& wanted : one["steps"]) {
            const std::string text = textOf(wanted);
            const ViewStep step = made(now, text);
            QVERIFY2(step.ok == wanted["ok"].get<bool>(), (text + ": " + step.message).c_str());
            if (!step.ok) {
                QCOMPARE(step.error, wanted["error"].get<std::string>());
                QCOMPARE(step.message, wanted["message"].get<std::string>());
                QCOMPARE(described(step.view), described(now));
                continue;
            }
            const TensorView expected{wanted["size"].get<Sizes>(), wanted["stride"].get<Sizes>(),
                                      wanted["offset"].get<std::int64_t>(),
                                      wanted["storage_numel"].get<std::int64_t>()};
            QVERIFY2(step.view == expected,
                     qPrintable(QString::fromStdString(text) + ": " + described(step.view) + ", PyTorch "
                                + described(expected)));
            QCOMPARE(flagsOf(step.view), flagsOf(wanted));
            QCOMPARE(step.view.elements(), wanted["numel"].get<std::int64_t>());
            if (!wanted["new_storage"].is_null()) // tensors without elements have no storage to compare
                QCOMPARE(step.copied, wanted["new_storage"].get<bool>());
            if (wanted.contains("view_ok"))
                QCOMPARE(bool(viewed(now, wanted["args"].get<Sizes>())), wanted["view_ok"].get<bool>());
            if (!wanted.contains("detour"))
                now = step.view;
        }
    }

    void randomChains()
    {
        const Document all = document("view_chains.json");
        QCOMPARE(all["chains"].size(), std::size_t(600));
        int refused = 0, copied = 0;
        for (const Document& chain : all["chains"]) {
            auto base = freshTensor(chain["shape"].get<Sizes>(), chain["stride"].get<Sizes>());
            QVERIFY(base);
            TensorView now = *base;
            for (const Document& wanted : chain["steps"]) {
                const auto text = wanted[0].get<std::string>();
                const ViewStep step = made(now, text);
                const QByteArray at = (QString::fromStdString(text) + " of " + described(now)).toUtf8();
                if (wanted.size() == 2) {
                    const auto error = wanted[1].get<std::string>(); // "RuntimeError: …"
                    QVERIFY2(!step.ok && error.ends_with(": " + step.message),
                             (at + " " + step.message.c_str()).data());
                    ++refused;
                    continue;
                }
                QVERIFY2(step.ok, (at + ": " + step.message.c_str()).data());
                const TensorView expected{wanted[1].get<Sizes>(), wanted[2].get<Sizes>(), wanted[3].get<std::int64_t>(),
                                          wanted[5].get<std::int64_t>()};
                QVERIFY2(step.view == expected, (at + ": " + described(step.view).toUtf8()).data());
                QCOMPARE(flagsOf(step.view) + (step.copied ? '1' : '0'), wanted[4].get<std::string>());
                now = step.view;
                copied += step.copied;
            }
        }
        QVERIFY2(refused > 100 && copied > 200, "the chains hold refusals and copies");
    }

    /// Elements read through our view are those that PyTorch read through its own. A copy's storage is
    /// filled from the tensor before it, where the operation changes no values.
    void values()
    {
        int compared = 0;
        const Document all = document("view_chains.json");
        for (const Document& chain : all["chains"]) {
            TensorView now = *freshTensor(chain["shape"].get<Sizes>(), chain["stride"].get<Sizes>());
            // x = arange(n) in the order of memory
            std::vector<std::int64_t> storage(std::size_t(now.storage));
            for (std::size_t i = 0; i < storage.size(); ++i)
                storage[i] = std::int64_t(i);
            for (const Document& wanted : chain["steps"]) {
                if (wanted.size() == 2)
                    continue;
                const ViewStep step = made(now, wanted[0].get<std::string>());
                if (step.copied) {
                    if (!changesNoValues(step.operation.name))
                        break;
                    const auto elements = valuesOf(now, storage);
                    std::vector<std::int64_t> copy(std::size_t(step.view.storage));
                    std::vector<std::int64_t> places(copy.size());
                    for (std::size_t i = 0; i < places.size(); ++i)
                        places[i] = std::int64_t(i);
                    const auto order = valuesOf(step.view, places); // where element i of the copy lies
                    QCOMPARE(order.size(), elements.size());
                    for (std::size_t i = 0; i < order.size(); ++i)
                        copy[std::size_t(order[i])] = elements[i];
                    storage = std::move(copy);
                }
                now = step.view;
                if (wanted[6].is_null())
                    continue;
                QCOMPARE(valuesOf(now, storage), wanted[6].get<std::vector<std::int64_t>>());
                ++compared;
            }
        }
        QVERIFY(compared > 800);
    }

    void refusalsKeepTheTensor()
    {
        const TensorView base = *freshTensor({2, 3});
        const auto steps = applyAll(base, *parseViews("t();view(6);reshape(6)"));
        QVERIFY(steps);
        QCOMPARE(steps->size(), std::size_t(3));
        QVERIFY(!(*steps)[1].ok);
        QCOMPARE((*steps)[1].error, std::string("view_incompatible"));
        QCOMPARE((*steps)[1].view.size, Sizes({3, 2}));
        QVERIFY((*steps)[2].ok && (*steps)[2].copied);
        QCOMPARE((*steps)[2].written, std::int64_t(6));

        // A negative size is nonsense that PyTorch accepts of a dimension of size 1; not here.
        QCOMPARE(made(*freshTensor({1}), "expand(-2)").error, std::string("expand_mismatch"));
        QCOMPARE(made(base, "slice(0,0,2,-1)").message, std::string("slice step must be positive"));
    }

    void limits()
    {
        const TensorView wide = *freshTensor({1, 1, 1, 1, 1, 1, 1, 1});
        const auto ninth = apply(wide, parseViews("unsqueeze(0)")->front());
        QVERIFY(!ninth);
        QCOMPARE(ninth.error().code, std::string("layout.rank"));
        QCOMPARE(ninth.error().place, std::string("views, character 1"));

        const TensorView one = *freshTensor({1, 1, 1});
        const auto huge = applyAll(one, *parseViews("neg();expand(4294967296,4294967296,8)"));
        QVERIFY(!huge);
        QCOMPARE(huge.error().code, std::string("layout.elements"));
        QCOMPARE(huge.error().place, std::string("views, character 7"));

        // Products beyond 64 bits: an error, not a wrong number.
        QVERIFY(!apply(one, parseViews("view(9223372036854775807,9223372036854775807)")->front()));
        QVERIFY(!apply(one, parseViews("as_strided([9223372036854775807],[9223372036854775807])")->front()));
        const TensorView two = *freshTensor({2, 2});
        QVERIFY(!apply(two, parseViews("unfold(0,1,9223372036854775807)")->front())); // × stride 2
        QVERIFY(!freshTensor({-1}));
        QVERIFY(!freshTensor({1, 2, 3, 4}, MemoryFormat::ChannelsLast3d));
        QVERIFY(!freshTensor({0, std::int64_t(1) << 60}));
    }
};

QTEST_APPLESS_MAIN(TestViewStep)
#include "tst_view_step.moc"
