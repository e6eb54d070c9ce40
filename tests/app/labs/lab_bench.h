// SPDX-License-Identifier: GPL-3.0-or-later
// A page Labs with its services, on files of its own.
#pragma once

#include "app/labs/answer_fields.h"
#include "app/labs/author_panel.h"
#include "app/labs/curve_board.h"
#include "app/labs/lab_list.h"
#include "app/labs/lab_page.h"
#include "app/labs/lab_stage.h"
#include "app/labs/result_table.h"
#include "app/labs/step_pane.h"
#include "app/settings/words.h"
#include "core/base/file.h"
#include "tests/support/page_fixture.h"

#include <QDir>
#include <QLineEdit>
#include <QPushButton>
#include <QTest>

namespace memscape::test {

constexpr int labPatience = 60'000; ///< ms: a lab's predictions, on a busy machine

class LabBench
{
public:
    explicit LabBench(const QStringList& worker = {})
        : fixture(worker)
        , page(fixture.services())
    {
        QDir(labAnswersFolder()).removeRecursively();
        fixture.settings.setStudent("Ada L.");
        page.list()->name()->setText("Ada L.");
        page.resize(1280, 800);
        page.show();
    }

    bool settles()
    {
        return QTest::qWaitFor([this] { return page.isSettled(); }, labPatience);
    }

    PageFixture fixture;
    LabPage page;
};

} // namespace memscape::test
