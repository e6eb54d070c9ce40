// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/snapshot_opener.h"

#include "app/settings/words.h"
#include "core/base/cancellation.h"
#include "core/snapshot/snapshot_reader.h"

#include <QElapsedTimer>
#include <QFileInfo>

#include <utility>

namespace memscape {

namespace {

constexpr double readingShare = 0.7; ///< of the time, reading takes about so much; the rest is rebuilding

using Told = std::function<void(double, const QString&)>;

Result<OpenedSnapshot> openSnapshot(const QString& path, std::optional<std::uint32_t> device, const Told& tell)
{
    QElapsedTimer timer;
    timer.start();
    SnapshotReadOptions options;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
        tell(total > 0 ? readingShare * double(done) / double(total) : 0, tr("reading"));
    };
    MEMSCAPE_TRY(read, readSnapshot(pathOf(path), options));
    const auto snapshot = std::make_shared<const Snapshot>(std::move(read));
    tell(readingShare, tr("rebuilding every moment"));
    MEMSCAPE_TRY(analysed, SnapshotDevice::analyse(snapshot, device.value_or(busiestDevice(*snapshot))));
    return OpenedSnapshot{path, snapshot, std::move(analysed), double(timer.elapsed()) * 1e-3};
}

} // namespace

std::uint32_t busiestDevice(const Snapshot& snapshot)
{
    const std::vector<std::uint32_t> devices = snapshot.devices();
    std::uint32_t best = devices.empty() ? 0 : devices.front();
    std::size_t most = 0;
    for (const std::uint32_t device : devices) {
        const std::size_t events = device < snapshot.traces.size() ? snapshot.traces[device].size() : 0;
        if (events > most) {
            most = events;
            best = device;
        }
    }
    return best;
}

SnapshotOpener::SnapshotOpener(QObject* parent)
    : QObject(parent)
{
    connect(&m_work, &BackgroundWork::failed, this, [this](const Error& error) {
        end();
        emit failed(error);
    });
}

void SnapshotOpener::open(const QString& path, std::optional<std::uint32_t> device)
{
    m_path = QFileInfo(path).absoluteFilePath();
    m_isBusy = true;
    m_work.start([this, path = m_path, device]() -> BackgroundWork::Finish {
        // The work ends before this object does, so it may post to it.
        const Told tell = [this, path](double share, const QString& what) {
            QMetaObject::invokeMethod(
                this,
                [this, path, share, what] {
                    if (m_isBusy && m_path == path)
                        emit progress(share, what);
                },
                Qt::QueuedConnection);
        };
        auto result = std::make_shared<Result<OpenedSnapshot>>(openSnapshot(path, device, tell));
        return [this, result] {
            end();
            if (*result)
                emit opened(**result);
            else
                emit failed(result->error());
        };
    });
}

void SnapshotOpener::analyse(const OpenedSnapshot& from, std::uint32_t device)
{
    m_path = from.path;
    m_isBusy = true;
    m_work.start([this, from, device]() -> BackgroundWork::Finish {
        auto result = std::make_shared<Result<std::shared_ptr<const SnapshotDevice>>>(
            SnapshotDevice::analyse(from.snapshot, device));
        return [this, result, from] {
            end();
            if (*result)
                emit opened({from.path, from.snapshot, **result, from.seconds});
            else
                emit failed(result->error());
        };
    });
}

void SnapshotOpener::stop()
{
    if (!m_isBusy)
        return;
    m_work.cancel();
    end();
    emit stopped();
}

void SnapshotOpener::end()
{
    m_isBusy = false;
}

} // namespace memscape
