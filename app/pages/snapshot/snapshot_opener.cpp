// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/snapshot_opener.h"

#include "app/settings/words.h"
#include "core/snapshot/snapshot_reader.h"

#include <QElapsedTimer>
#include <QFileInfo>

#include <utility>

namespace memscape {

namespace {

constexpr double readingShare = 0.6; ///< of the time, reading takes about so much; the rest is rebuilding

} // namespace

/// From the working thread to the window's, at most each 30 ms: as often as an eye sees it. The work ends before the
/// opener does, so it may post to it.
class SnapshotOpener::Post
{
public:
    Post(SnapshotOpener* opener, std::uint64_t opening)
        : m_opener(opener)
        , m_opening(opening)
    { }

    /// Of rebuilding, which begins at the share `from` of the whole.
    Pace::Tell ofRebuilding(double from)
    {
        return [this, from](double share) {
            if (isDue())
                progress(from + (1 - from) * share, tr("rebuilding every moment"));
        };
    }
    void reading(const SnapshotPreview& preview, double share)
    {
        if (preview.events() == 0 || !isDue())
            return;
        post([opener = m_opener, columns = preview.columns(), share] { emit opener->preview(columns, share); });
        progress(readingShare * share, tr("reading"));
    }

private:
    bool isDue()
    {
        if (m_timer.isValid() && m_timer.elapsed() < 30)
            return false;
        m_timer.start();
        return true;
    }
    void progress(double share, const QString& what)
    {
        post([opener = m_opener, share, what] { emit opener->progress(share, what); });
    }
    template <typename Say> void post(Say say)
    {
        QMetaObject::invokeMethod(
            m_opener,
            [opener = m_opener, opening = m_opening, say = std::move(say)] {
                if (opener->m_isBusy && opener->m_opening == opening)
                    say();
            },
            Qt::QueuedConnection);
    }

    SnapshotOpener* m_opener;
    std::uint64_t m_opening;
    QElapsedTimer m_timer;
};

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
    m_work.start([this, path = m_path, device, opening = ++m_opening]() -> BackgroundWork::Finish {
        Post post(this, opening);
        const auto opened = [&]() -> Result<OpenedSnapshot> {
            QElapsedTimer timer;
            timer.start();
            SnapshotReadOptions options;
            double share = 0;
            options.progress = [&](std::uint64_t done, std::uint64_t total) {
                share = total > 0 ? double(done) / double(total) : 0;
            };
            options.preview = [&](const SnapshotPreview& preview) { post.reading(preview, share); };
            MEMSCAPE_TRY(read, readSnapshot(pathOf(path), options));
            const auto snapshot = std::make_shared<const Snapshot>(std::move(read));
            MEMSCAPE_TRY(analysed,
                         SnapshotDevice::analyse(snapshot, device.value_or(busiestDevice(*snapshot)),
                                                 post.ofRebuilding(readingShare)));
            return OpenedSnapshot{path, snapshot, std::move(analysed), double(timer.elapsed()) * 1e-3};
        };
        auto result = std::make_shared<Result<OpenedSnapshot>>(opened());
        return [this, result] {
            end();
            if (*result)
                emit this->opened(**result);
            else
                emit failed(result->error());
        };
    });
}

void SnapshotOpener::analyse(const OpenedSnapshot& from, std::uint32_t device)
{
    m_path = from.path;
    m_isBusy = true;
    m_work.start([this, from, device, opening = ++m_opening]() -> BackgroundWork::Finish {
        Post post(this, opening);
        auto result = std::make_shared<Result<std::shared_ptr<const SnapshotDevice>>>(
            SnapshotDevice::analyse(from.snapshot, device, post.ofRebuilding(0)));
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
