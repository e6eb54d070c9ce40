// SPDX-License-Identifier: Apache-2.0
// Every kernel against its reference. A run in which nothing was checked has not passed.
#include "app/cli/commands.h"
#include "app/cli/console_sink.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/report/text_table.h"

#include <fmt/format.h>

namespace memscape::cli {

namespace {

struct Tally
{
    int passed = 0, failed = 0, skipped = 0;
};

void check(Backend& backend, const BackendDevice& device, RunSink& sink, Tally& tally)
{
    TextTable table{{{"result", false}, {"kernel", false}, {"detail", false}}, {}};
    for (const SelftestLine& line : backend.selftest(device, sink)) {
        tally.skipped += line.skipped;
        tally.passed += !line.skipped && line.passed;
        tally.failed += !line.skipped && !line.passed;
        table.rows.push_back({line.skipped ? "skipped" : line.passed ? "ok" : "WRONG", line.kernel, line.detail});
    }
    printOut(fmt::format("{}: {}\n{}\n", device.id, printable(device.name), alignedText(table, 2)));
}

} // namespace

int runSelftest(const Arguments& arguments)
{
    const InterruptGuard guard;
    ConsoleSink sink;
    Tally tally;
    if (!arguments.device.empty()) {
        const auto live = findLiveDevice(arguments.device);
        if (!live)
            return refused(live.error());
        check(*live->backend, live->device, sink, tally);
    } else {
        for (const auto& backend : {makeHostBackend(), makeCudaBackend()}) {
            for (const BackendDevice& device : backend->devices()) {
                if (device.missing.empty())
                    check(*backend, device, sink, tally);
                else
                    note(fmt::format("{}: {}", device.id, device.missing));
            }
        }
    }
    sink.clearBar();
    printOut(fmt::format("{} passed, {} wrong, {} skipped\n", tally.passed, tally.failed, tally.skipped));
    if (InterruptGuard::interrupted())
        return static_cast<int>(ExitCode::Interrupted);
    if (tally.passed + tally.failed == 0) {
        complain({"run.skipped", "nothing was checked", {}, "see the reasons above"});
        return static_cast<int>(ExitCode::Failed);
    }
    return static_cast<int>(tally.failed == 0 ? ExitCode::Done : ExitCode::Failed);
}

} // namespace memscape::cli
