// SPDX-License-Identifier: Apache-2.0
// A small program's snapshot, made as PyTorch makes one: its allocator places the blocks, the file is a pickle with a
// stack for each event, and what a test looks at was read from that file.
#pragma once

#include "snapshot_files.h"

#include "core/snapshot/pickle_writer.h"
#include "core/trace/allocator.h"

#include <map>

namespace memscape::test {

class MadeRun
{
public:
    /// `phase`: the user's function that asks ("forward", "backward", "optimizer", "zero_grad", "init").
    BlockIndex alloc(std::int64_t bytes, const std::string& phase)
    {
        const auto before = segments();
        const BlockIndex block = m_allocator.allocate(bytes);
        for (const auto& [address, size] : segments()) {
            if (!before.contains(address))
                m_events.push_back({"segment_alloc", address, size, phase});
        }
        m_events.push_back({"alloc", m_allocator.block(block).address, bytes, phase});
        m_phases[m_allocator.block(block).address] = phase;
        return block;
    }
    void free(BlockIndex block, const std::string& phase)
    {
        const AllocatorBlock freed = m_allocator.block(block);
        m_events.push_back({"free_requested", freed.address, freed.requested, phase});
        m_events.push_back({"free_completed", freed.address, freed.requested, phase});
        m_allocator.free(block);
    }
    void emptyCache()
    {
        const auto before = segments();
        m_allocator.emptyCache();
        const auto after = segments();
        for (const auto& [address, size] : before) {
            if (!after.contains(address))
                m_events.push_back({"segment_free", address, size, "empty_cache"});
        }
    }
    std::shared_ptr<const SnapshotDevice> device() const
    {
        std::string text;
        PickleWriter writer([&](std::string_view piece) {
            text += piece;
            return true;
        });
        writer.beginDictionary();
        writer.key("segments");
        writer.beginList();
        for (const AllocatorSegment& segment : m_allocator.segments())
            write(writer, segment);
        writer.endList();
        writer.key("device_traces");
        writer.beginList();
        writer.beginList();
        for (std::size_t i = 0; i < m_events.size(); ++i)
            write(writer, m_events[i], std::int64_t(i) + 1);
        writer.endList();
        writer.endList();
        writer.endDictionary();
        if (!writer.finish())
            qFatal("the pickle was not finished");
        auto snapshot = readSnapshotBytes(text);
        if (!snapshot)
            qFatal("%s", snapshot.error().text().c_str());
        auto made = SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(*snapshot)), 0);
        if (!made || !(*made)->lifetimes().reconciliation().isClean())
            qFatal("the snapshot contradicts itself");
        return *made;
    }

private:
    struct Event
    {
        std::string action;
        std::uint64_t address = 0;
        std::int64_t size = 0;
        std::string phase;
    };

    std::map<std::uint64_t, std::int64_t> segments() const
    {
        std::map<std::uint64_t, std::int64_t> found;
        for (const AllocatorSegment& segment : m_allocator.segments())
            found[segment.address] = segment.size;
        return found;
    }
    static void writeFrames(PickleWriter& writer, const std::string& phase)
    {
        writer.key("frames");
        writer.beginList();
        writer.beginDictionary();
        writer.key("name");
        writer.text(phase);
        writer.key("filename");
        writer.text("/home/me/train.py");
        writer.key("line");
        writer.integer(12);
        writer.endDictionary();
        writer.endList();
    }
    static void number(PickleWriter& writer, const char* key, std::int64_t value)
    {
        writer.key(key);
        writer.integer(value);
    }
    static void write(PickleWriter& writer, const Event& event, std::int64_t time)
    {
        writer.beginDictionary();
        writer.key("action");
        writer.text(event.action);
        number(writer, "addr", std::int64_t(event.address));
        number(writer, "size", event.size);
        number(writer, "stream", 0);
        number(writer, "time_us", time);
        writeFrames(writer, event.phase);
        writer.endDictionary();
    }
    void write(PickleWriter& writer, const AllocatorSegment& segment) const
    {
        writer.beginDictionary();
        number(writer, "device", 0);
        number(writer, "address", std::int64_t(segment.address));
        number(writer, "total_size", segment.size);
        number(writer, "stream", 0);
        writer.key("segment_type");
        writer.text(segment.isSmall ? "small" : "large");
        writer.key("blocks");
        writer.beginList();
        for (const AllocatorBlock& block : segment.blocks) {
            const bool isActive = block.state == BlockState::Active;
            writer.beginDictionary();
            number(writer, "address", std::int64_t(block.address));
            number(writer, "size", block.size);
            number(writer, "requested_size", isActive ? block.requested : 0);
            writer.key("state");
            writer.text(isActive ? "active_allocated" : "inactive");
            writeFrames(writer, isActive ? m_phases.at(block.address) : "init");
            writer.endDictionary();
        }
        writer.endList();
        writer.endDictionary();
    }

    CachingAllocator m_allocator;
    std::vector<Event> m_events;
    std::map<std::uint64_t, std::string> m_phases;
};

} // namespace memscape::test
