// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a snapshot and rebuilds one of its devices beside the window's thread, with progress; it can be stopped at any
// moment, and the window can close meanwhile.
#pragma once

#include "app/pages/background_work.h"
#include "core/snapshot/snapshot_device.h"

#include <QString>

#include <optional>

namespace memscape {

struct OpenedSnapshot
{
    QString path; ///< absolute
    std::shared_ptr<const Snapshot> snapshot;
    std::shared_ptr<const SnapshotDevice> device; ///< one of its devices
    double seconds = 0;                           ///< that it took
};

class SnapshotOpener : public QObject
{
    Q_OBJECT

public:
    explicit SnapshotOpener(QObject* parent = nullptr);

    /// Exactly one of opened(), failed() and stopped() follows, unless another file takes its place. Without a number
    /// the device with the most events.
    void open(const QString& path, std::optional<std::uint32_t> device = {});
    /// Another device of a file that is open.
    void analyse(const OpenedSnapshot& opened, std::uint32_t device);
    void stop();
    bool isBusy() const { return m_isBusy; }
    const QString& path() const { return m_path; } ///< of what is being opened, or was last

signals:
    void progress(double share, const QString& what); ///< 0 to 1
    /// While a file is read, before progress(): bytes in blocks along what is read, and the share of the file.
    void preview(const std::vector<std::int64_t>& columns, double share);
    void opened(const memscape::OpenedSnapshot& snapshot);
    void failed(const memscape::Error& error);
    void stopped();

private:
    class Post;
    void end();

    BackgroundWork m_work;
    QString m_path;
    bool m_isBusy = false;
    std::uint64_t m_opening = 0; ///< counts them: what was posted for an earlier one is passed over
};

} // namespace memscape
