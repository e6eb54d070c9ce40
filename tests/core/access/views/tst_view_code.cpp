// SPDX-License-Identifier: Apache-2.0
// The lines of PyTorch and NumPy are ones that were run (view_code.py): same text, and the strides that
// PyTorch (elements) and NumPy (bytes) then had.
#include "core/access/views/view_code.h"

#include <QtTest>

#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using namespace memscape;

class TestViewCode : public QObject
{
    Q_OBJECT

private slots:
    void lines()
    {
        std::ifstream file(TEST_DATA "/layout/view_code.json");
        const auto all = nlohmann::json::parse(file, nullptr, false);
        QVERIFY(all["cases"].size() > 20);
        for (const auto& one : all["cases"]) {
            const TensorView base = *freshTensor(one["shape"].get<Sizes>());
            const auto steps = applyAll(base, *parseViews(one["views"].get<std::string>()));
            QVERIFY(steps);
            QCOMPARE(pytorchCode(*steps), one["torch"].get<std::string>());
            QCOMPARE(numpyCode(base, *steps, 4), one["numpy"].get<std::string>());
            const TensorView& view = steps->back().view;
            QCOMPARE(view.size, one["size"].get<Sizes>());
            QCOMPARE(view.stride, one["stride"].get<Sizes>());
            const Sizes bytes = one["bytes"].get<Sizes>();
            // flip is a copy in both lines; a dimension of size 1 may have any stride
            for (std::size_t i = 0; i < bytes.size(); ++i)
                QVERIFY2(view.size[i] < 2 || bytes[i] == view.stride[i] * 4, one["numpy"].get<std::string>().c_str());
            QCOMPARE(byteStridesText({{2, 3}, {3, 1}, 0, 6}, 8), std::string("(24, 8)"));
        }
    }
};

QTEST_APPLESS_MAIN(TestViewCode)
#include "tst_view_code.moc"
