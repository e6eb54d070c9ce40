// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/experiment/measured_by.h"
#include "core/report/text_table.h"

#include <nlohmann/json.hpp>

namespace memscape::cli {

int runList(const Arguments& arguments)
{
    if (arguments.json) {
        Json list = Json::array();
        for (const Experiment* experiment : experiments())
            list.push_back({{"id", experiment->id()},
                            {"title", experiment->title()},
                            {"question", experiment->question()},
                            {"group", experiment->group()},
                            {"measured_on", kindsThatMeasure(*experiment)}});
        printOut(jsonText({{"experiments", list}}));
        return 0;
    }
    TextTable table{{{"experiment", false}, {"group", false}, {"measured on", false}, {"question", false}}, {}};
    for (const Experiment* experiment : experiments())
        table.rows.push_back(
            {experiment->id(), experiment->group(), join(kindsThatMeasure(*experiment), ", "), experiment->question()});
    printOut(alignedText(table));
    return 0;
}

} // namespace memscape::cli
