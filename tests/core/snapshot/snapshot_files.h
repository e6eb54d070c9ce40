// SPDX-License-Identifier: Apache-2.0
// Snapshots that Python wrote: tests/data/snapshots (replays of real training steps, with a manifest) and the small
// ones of tests/fuzz/corpus/snapshots (tests/data/pytorch/small_snapshots.py).
#pragma once

#include "core/snapshot/snapshot_export.h"
#include "core/snapshot/snapshot_reader.h"

#include <QtTest>

#include <filesystem>

namespace memscape::test {

inline constexpr std::int64_t mib = 1 << 20;

inline std::filesystem::path familyFile(const std::string& name)
{
    return std::filesystem::path(TEST_DATA) / "snapshots" / name;
}

inline std::filesystem::path smallFile(const std::string& name)
{
    return std::filesystem::path(SOURCE_FOLDER) / "tests/fuzz/corpus/snapshots" / name;
}

/// Reads and analyses; a file that can't be read ends the test program.
inline std::shared_ptr<const SnapshotDevice> analysed(const std::filesystem::path& path, std::uint32_t device = 0)
{
    auto snapshot = readSnapshot(path);
    if (!snapshot)
        qFatal("%s", snapshot.error().text().c_str());
    auto made = SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(*snapshot)), device);
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return *made;
}

/// The device as memory_viz's file, read again.
inline std::shared_ptr<const SnapshotDevice> writtenAndRead(const SnapshotDevice& device, const EventRange& range)
{
    std::string text;
    const auto written = writeMemoryViz(device, range, [&](std::string_view piece) {
        text += piece;
        return true;
    });
    auto snapshot = readSnapshotBytes(text);
    if (!written || !snapshot)
        qFatal("%s", snapshot ? "not written" : snapshot.error().text().c_str());
    return SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(*snapshot)), device.device()).value();
}

/// A file's events from a share of them on; from 0: all, as they were read.
inline std::shared_ptr<const SnapshotDevice> analysedFrom(const QString& file, double from)
{
    const auto device = analysed(file.toStdString());
    const std::size_t events = device->lifetimes().events();
    return from > 0 ? writtenAndRead(*device, {std::size_t(from * double(events)), events}) : device;
}

/// The seven families.
inline void addFamilies()
{
    QTest::addColumn<QString>("family");
    for (const char* family :
         {"gpt2_mid_peak_expandable", "gpt2_tiny_end", "gpt2_tiny_mid_backward", "llama_tiny_old_format",
          "random_expandable_unmap", "random_oom_pending", "vgg_small_mid"})
        QTest::newRow(family) << QString(family);
}

} // namespace memscape::test
