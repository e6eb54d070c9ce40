// SPDX-License-Identifier: GPL-3.0-or-later
// The page Snapshot on a fixture of pages, and files to open on it: the example, and a large one without names.
#pragma once

#include "app/pages/snapshot/snapshot_page.h"
#include "app/settings/theme.h"
#include "core/snapshot/pickle_writer.h"
#include "tests/support/page_fixture.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

namespace memscape {

inline QString exampleFile()
{
    return QString::fromStdString((resourcesFolder() / "records" / "gpt2-tiny.pickle").string());
}

inline QByteArray exampleBytes()
{
    QFile file(exampleFile());
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// A trace of 200,000 pairs of an allocation and its free, over one block that stays.
inline QByteArray largeBytes()
{
    QByteArray bytes;
    PickleWriter out([&](std::string_view piece) {
        bytes.append(piece.data(), qsizetype(piece.size()));
        return true;
    });
    const auto event = [&](const char* action, std::int64_t address, std::int64_t size) {
        out.beginDictionary();
        out.key("action");
        out.text(action);
        out.key("addr");
        out.integer(address);
        out.key("size");
        out.integer(size);
        out.endDictionary();
    };
    out.beginDictionary();
    out.key("device_traces");
    out.beginList();
    out.beginList();
    event("alloc", 1 << 20, 5 << 20);
    for (int i = 0; i < 200'000; ++i) {
        event("alloc", 1 << 24, 1 << 20);
        event("free_completed", 1 << 24, 1 << 20);
    }
    out.endList();
    out.endList();
    out.key("segments");
    out.beginList();
    out.endList();
    out.endDictionary();
    return out.finish() ? bytes : QByteArray();
}

class SnapshotBench
{
protected:
    std::unique_ptr<PageFixture> m_fixture;
    std::unique_ptr<SnapshotPage> m_page;

    void open(const QString& path = exampleFile())
    {
        m_page->open(path);
        QTRY_VERIFY(m_page->isSettled());
    }
    QString written(const QString& name, const QByteArray& content)
    {
        const QString path = m_folder.filePath(name);
        QFile file(path);
        if (file.open(QIODevice::WriteOnly))
            file.write(content);
        return path;
    }
    QTemporaryDir m_folder;

    void begin()
    {
        applyTheme(*qApp, QStringLiteral("dark"));
        m_fixture = std::make_unique<PageFixture>();
        m_page = std::make_unique<SnapshotPage>(m_fixture->services());
        m_page->resize(1280, 900);
        m_page->show();
    }
    void end()
    {
        m_page.reset();
        m_fixture.reset();
    }
};

} // namespace memscape
