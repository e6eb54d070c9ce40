// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_reader.h"

#include "core/base/cancellation.h"
#include "core/snapshot/pickle_machine.h"
#include "core/snapshot/snapshot_assembly.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Result<Snapshot> readFrom(PickleInput& input, const SnapshotReadOptions& options)
{
    PickleObjects objects;
    PickleMachine machine(input, objects);
    SnapshotPreview preview;
    const auto tell = [&](std::uint64_t done, std::uint64_t total) {
        if (options.progress)
            options.progress(done, total);
        if (options.preview) {
            preview.follow(objects.snapshot().events);
            options.preview(preview);
        }
    };
    const double limit = options.memoryFactor * double(input.total()) + double(options.memoryBase);
    input.onMove([&](std::uint64_t done, std::uint64_t total) -> Result<void> {
        MEMSCAPE_CHECK(checkWanted());
        if (double(objects.memory() + machine.memory()) > limit)
            return fail("pickle.limit",
                        fmt::format("reading takes more than {:.0f} MiB of memory for a file of {:.0f} MiB",
                                    limit / 1048576, double(total) / 1048576),
                        "PyTorch's snapshots take less than the file: this one is damaged or hostile");
        tell(done, total);
        return {};
    });
    MEMSCAPE_TRY(top, machine.run());
    tell(input.total(), input.total());
    const std::uint64_t end = input.position();
    MEMSCAPE_TRY(snapshot, assembleSnapshot(objects, top));
    if (end < input.total())
        snapshot.notes.push_back(
            fmt::format("{} bytes after the end of the pickle were passed over.", input.total() - end));
    snapshot.fileBytes = input.total();
    snapshot.protocol = machine.protocol();
    return snapshot;
}

} // namespace

Result<Snapshot> readSnapshot(const std::filesystem::path& path, const SnapshotReadOptions& options)
{
    MEMSCAPE_TRY(input, PickleInput::open(path));
    auto snapshot = readFrom(input, options);
    if (!snapshot)
        return fail(placedIn(path.string(), std::move(snapshot.error())));
    return snapshot;
}

Result<Snapshot> readSnapshotBytes(std::string_view bytes, const SnapshotReadOptions& options)
{
    PickleInput input(bytes);
    return readFrom(input, options);
}

bool looksLikePickle(std::string_view beginning)
{
    return beginning.size() >= 2 && beginning[0] == '\x80' && beginning[1] >= 2 && beginning[1] <= 5;
}

} // namespace memscape
