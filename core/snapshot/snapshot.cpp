// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 10> actionTexts{
    "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
    "segment_map", "segment_unmap",  "snapshot",       "oom",           "other"};

/// Of 64-bit pieces: the multiplication spreads low bits upwards, the shift brings them down again.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t piece)
{
    hash = (hash ^ piece) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
}

std::uint64_t hashOf(std::span<const FrameId> frames)
{
    std::uint64_t hash = frames.size();
    std::size_t i = 0;
    for (; i + 2 <= frames.size(); i += 2)
        hash = mixed(hash, std::uint64_t(frames[i]) << 32 | frames[i + 1]);
    return i < frames.size() ? mixed(hash, frames[i]) : hash;
}

std::uint64_t hashOf(std::span<const char> text)
{
    std::uint64_t hash = text.size();
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
        std::uint64_t piece;
        std::copy_n(text.data() + i, 8, reinterpret_cast<char*>(&piece));
        hash = mixed(hash, piece);
    }
    std::uint64_t rest = 0;
    for (; i < text.size(); ++i)
        rest = rest << 8 | static_cast<unsigned char>(text[i]);
    return mixed(hash, rest);
}

template <typename T>
std::span<const T> entry(const LargeArray<T>& items, const LargeArray<std::size_t>& ends, std::size_t id)
{
    const std::size_t begin = id == 0 ? 0 : ends[id - 1];
    return {items.data() + begin, ends[id] - begin};
}

/// The slot of an entry equal to `wanted`, or the free one where it belongs. At most half of the slots are taken.
template <typename T>
std::size_t slotOf(const LargeArray<T>& items, const LargeArray<std::size_t>& ends,
                   const LargeArray<std::uint32_t>& slots, std::span<const T> wanted)
{
    const std::size_t mask = slots.size() - 1;
    for (std::size_t slot = hashOf(wanted) & mask;; slot = (slot + 1) & mask) {
        if (slots[slot] == 0)
            return slot;
        const auto known = entry(items, ends, slots[slot] - 1);
        if (known.size() == wanted.size()
            && (wanted.empty() || std::memcmp(known.data(), wanted.data(), wanted.size_bytes()) == 0))
            return slot;
    }
}

template <typename T>
void growSlots(const LargeArray<T>& items, const LargeArray<std::size_t>& ends, LargeArray<std::uint32_t>& slots)
{
    const std::size_t count = std::max<std::size_t>(64, slots.size() * 2);
    slots = LargeArray<std::uint32_t>();
    slots.resize(count, 0);
    for (std::size_t id = 0; id < ends.size(); ++id)
        slots[slotOf(items, ends, slots, entry(items, ends, id))] = std::uint32_t(id + 1);
}

template <typename T>
std::uint32_t idOf(LargeArray<T>& items, LargeArray<std::size_t>& ends, LargeArray<std::uint32_t>& slots,
                   std::span<const T> wanted)
{
    if ((ends.size() + 1) * 2 > slots.size())
        growSlots(items, ends, slots);
    const std::size_t slot = slotOf(items, ends, slots, wanted);
    if (slots[slot] == 0) {
        items.append(wanted);
        ends.push_back(items.size());
        slots[slot] = std::uint32_t(ends.size());
    }
    return slots[slot] - 1;
}

} // namespace

std::string_view snapshotActionText(SnapshotAction action)
{
    return actionTexts[std::size_t(action)];
}

StackId SnapshotStacks::id(std::span<const FrameId> frames)
{
    return idOf(m_frames, m_ends, m_slots, frames);
}

TextId SnapshotTexts::id(std::string_view text)
{
    return idOf(m_bytes, m_ends, m_slots, std::span<const char>(text.data(), text.size()));
}

void SnapshotEvents::append(const SnapshotEvent& event)
{
    m_actions.push_back(event.action);
    m_addresses.push_back(event.address);
    m_sizes.push_back(event.size);
    m_times.push_back(event.time);
    m_stacks.push_back(event.stack);
    m_streams.push_back(event.stream);
    if (event.label != noLabel)
        setLabel(size() - 1, event.label);
}

void SnapshotEvents::set(std::size_t i, const SnapshotEvent& event)
{
    m_actions[i] = event.action;
    m_addresses[i] = event.address;
    m_sizes[i] = event.size;
    m_times[i] = event.time;
    m_stacks[i] = event.stack;
    m_streams[i] = event.stream;
    if (event.label != label(i))
        setLabel(i, event.label);
}

void SnapshotEvents::setLabel(std::size_t i, LabelId label)
{
    if (m_labels.size() <= i)
        m_labels.resize(i + 1, noLabel);
    m_labels[i] = label;
}

std::size_t SnapshotEvents::memory() const
{
    return m_actions.memory() + m_addresses.memory() + m_sizes.memory() + m_times.memory() + m_stacks.memory()
        + m_labels.memory() + m_streams.memory();
}

std::string Snapshot::frameText(FrameId frame) const
{
    const std::string_view name = frameName(frame), file = frameFile(frame);
    if (file.empty() || file == "??")
        return std::string(name);
    const std::size_t slash = file.rfind('/');
    return fmt::format("{}:{} {}", slash == file.npos ? file : file.substr(slash + 1), frames[frame].line, name);
}

std::vector<std::uint32_t> Snapshot::devices() const
{
    std::set<std::uint32_t> found;
    for (const SnapshotSegment& segment : segments)
        found.insert(segment.device);
    for (std::size_t device = 0; device < traces.size(); ++device) {
        if (traces[device].size() > 0)
            found.insert(std::uint32_t(device));
    }
    return {found.begin(), found.end()};
}

std::size_t Snapshot::memory() const
{
    return texts.memory() + frames.memory() + stacks.memory() + segments.capacity() * sizeof(SnapshotSegment)
        + blocks.memory() + events.memory() + (run ? run->labels.capacity() * sizeof(SnapshotLabel) : 0);
}

} // namespace memscape
