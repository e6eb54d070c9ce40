// SPDX-License-Identifier: Apache-2.0
// Events as PyTorch writes them, read at once: a snapshot is millions of them, and nothing else in it counts. They all
// look like this, in protocol 4 and 5,
//
//   } MEMOIZE ( recall of "action", recall of "alloc", recall of "addr", number … recall of "frames",
//   ] MEMOIZE ( recall of a frame, … e … u
//
// and so do the recalls of one stack, byte for byte: which stack some bytes are is looked up once. What looks otherwise
// (the first event, which names its keys; one that two windows of the file divide; every damaged one) is left,
// untouched, to the opcodes of pickle_machine.cpp, which know all forms and all errors.
#include "core/snapshot/pickle_machine.h"

namespace memscape {

namespace {

constexpr unsigned char memoize = 0x94;
constexpr std::ptrdiff_t mostOfPair = 32; // bytes of a key and a value that is no list, and of what ends the event
constexpr StackId unplainStack = ~StackId(0);
constexpr std::size_t mostRecalls = 64u << 20; // bytes; beyond, what is known is forgotten and learnt again

bool isRecall(unsigned char opcode)
{
    return opcode == 'h' || opcode == 'j';
}

/// Little-endian, of at most 8 bytes; 8 can be read.
std::int64_t numberAt(const unsigned char* at, std::size_t bytes, bool isSigned)
{
    if (bytes == 0)
        return 0;
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) // one load
        value |= std::uint64_t(at[i]) << (8 * i);
    const auto unused = int(64 - 8 * bytes);
    return isSigned ? std::int64_t(value << unused) >> unused : std::int64_t(value << unused >> unused);
}

/// A number, None or a truth value; false when it is something else. `at` moves behind it.
bool takeNumber(const unsigned char*& at, PickleValue& value)
{
    std::size_t bytes = 0;
    bool isSigned = false;
    switch (*at++) {
    case 'K': bytes = 1; break;
    case 'M': bytes = 2; break;
    case 'J':
        bytes = 4;
        isSigned = true;
        break;
    case 0x8a:
        bytes = *at++;
        isSigned = true;
        break;
    case 'N': value = {}; return true;
    case 0x88: value = PickleValue::boolean(true); return true;
    case 0x89: value = PickleValue::boolean(false); return true;
    default: return false;
    }
    if (bytes > 8)
        return false;
    value = PickleValue::integer(numberAt(at, bytes, isSigned));
    at += bytes;
    return true;
}

} // namespace

/// What the memo has under the slot that a recall names, 0 for nothing; `at` moves behind it.
std::uint64_t PickleMachine::recalled(const unsigned char*& at) const
{
    std::uint32_t slot = at[1];
    if (*at == 'j')
        slot |= std::uint32_t(at[2]) << 8 | std::uint32_t(at[3]) << 16 | std::uint32_t(at[4]) << 24;
    at += *at == 'h' ? 2 : 5;
    return slot < m_memo.size() ? m_memo[slot] : 0;
}

void PickleMachine::forgetRecalled()
{
    m_recalls = SnapshotTexts();
    m_recalledStacks = {};
}

/// The stack of recalls [at, end); unplainStack when one of them is no frame.
StackId PickleMachine::stackOf(const unsigned char* at, const unsigned char* end)
{
    std::vector<FrameId> frames;
    while (at < end) {
        const PickleValue value = unpacked(recalled(at));
        if (!value.is(PickleTag::Object) || m_objects.kind(value) != PickleObjects::Kind::Frame)
            return unplainStack;
        frames.push_back(FrameId(m_objects.index(value)));
    }
    return m_objects.snapshot().stacks.id(frames);
}

/// The items of a list that are all recalls of frames, behind its mark; `at` moves behind its end.
bool PickleMachine::takeStack(const unsigned char*& at, const unsigned char* end, StackId& stack)
{
    const unsigned char* const begin = at;
    while (end - at > 5 && isRecall(*at))
        at += *at == 'h' ? 2 : 5;
    if (*at != 'e' || at == begin)
        return false;
    if (m_frameChanges != m_objects.frameChanges() || m_recalls.memory() > mostRecalls) {
        m_frameChanges = m_objects.frameChanges();
        forgetRecalled();
    }
    if (m_recalledStacks.empty())
        m_recalledStacks.push_back(unplainStack); // no bytes
    const TextId id = m_recalls.id({reinterpret_cast<const char*>(begin), std::size_t(at - begin)});
    if (id == m_recalledStacks.size())
        m_recalledStacks.push_back(stackOf(begin, at));
    stack = m_recalledStacks[id];
    ++at;
    return stack != unplainStack;
}

/// True when the whole of an event was plain and is read; else nothing has happened.
bool PickleMachine::takeEvent()
{
    const unsigned char *at = m_input.cursor(), *const end = at + m_input.available();
    if (end - at < mostOfPair || at[1] != memoize || at[2] != '(' || m_memo.size() != m_remembered)
        return false;
    at += 3;
    SnapshotEvent event;
    bool isEvent = false, hasList = false;
    StackId listed = noStack;
    while (*at != 'u') {
        if (!isRecall(*at))
            return false;
        const PickleValue named = unpacked(recalled(at));
        const SnapshotKey key = keyOf(named);
        if (!named.is(PickleTag::Text) || (!isEvent && key != SnapshotKey::Action))
            return false;
        PickleValue value;
        if (isRecall(*at)) {
            const std::uint64_t packed = recalled(at);
            if (packed == 0)
                return false;
            value = unpacked(packed);
        } else if (*at == ']') {
            if (key != SnapshotKey::Frames || hasList || at[1] != memoize)
                return false;
            hasList = true;
            at += 2;
            if (*at == '(' && !takeStack(++at, end, listed))
                return false;
            event.stack = listed;
            if (end - at < mostOfPair)
                return false;
            continue;
        } else if (!takeNumber(at, value)) {
            return false;
        }
        if (end - at < mostOfPair || !setPlain(event, key, value))
            return false;
        isEvent = true;
    }
    if (!isEvent)
        return false;
    const PickleValue made = m_objects.newEvent(event);
    m_memo.push_back(std::uint64_t(PickleTag::Object) << 56 | made.bits);
    if (hasList)
        m_memo.push_back(std::uint64_t(PickleTag::Object) << 56 | m_objects.newStack(listed).bits);
    m_remembered = m_memo.size();
    m_input.skip(std::size_t(at + 1 - m_input.cursor()));
    return push(made);
}

/// A field of an event; false when it is not of the usual type and range.
bool PickleMachine::setPlain(SnapshotEvent& event, SnapshotKey key, PickleValue value)
{
    const std::int64_t number = value.is(PickleTag::Integer) ? value.integer() : -1;
    switch (key) {
    case SnapshotKey::Action: event.action = snapshotActionOf(value.text()); return value.is(PickleTag::Text);
    case SnapshotKey::Addr:
    case SnapshotKey::DeviceFree: event.address = std::uint64_t(number); return number >= 0;
    case SnapshotKey::Size: event.size = number; return number >= 0 && number < std::int64_t(1) << 53;
    case SnapshotKey::Time: event.time = number; return value.is(PickleTag::Integer);
    case SnapshotKey::Stream: {
        const auto stream = m_objects.stream(value);
        event.stream = stream.value_or(0);
        return bool(stream);
    }
    case SnapshotKey::Frames:
        if (!value.is(PickleTag::Object) || m_objects.kind(value) != PickleObjects::Kind::Stack)
            return false;
        event.stack = StackId(m_objects.index(value));
        return true;
    case SnapshotKey::LabelIndex:
        event.label = LabelId(number + 1);
        return value.is(PickleTag::None) || (number >= 0 && number <= 0xfffffffd);
    default: return true;
    }
}

} // namespace memscape
