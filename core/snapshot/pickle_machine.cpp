// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/pickle_machine.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t longestText = 16u << 20;

struct Opcode
{
    unsigned char code;
    const char* name;
};

/// Those that are refused, so that the message can say what they are.
constexpr std::array<Opcode, 30> refusedOpcodes{{
    {0x63, "GLOBAL"},
    {0x93, "STACK_GLOBAL"},
    {0x52, "REDUCE"},
    {0x62, "BUILD"},
    {0x69, "INST"},
    {0x6f, "OBJ"},
    {0x81, "NEWOBJ"},
    {0x92, "NEWOBJ_EX"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x50, "PERSID"},
    {0x51, "BINPERSID"},
    {0x42, "BINBYTES"},
    {0x43, "SHORT_BINBYTES"},
    {0x8e, "BINBYTES8"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x54, "BINSTRING"},
    {0x55, "SHORT_BINSTRING"},
    {0x53, "STRING"},
    {0x56, "UNICODE"},
    {0x49, "INT"},
    {0x4c, "LONG"},
    {0x46, "FLOAT"},
    {0x67, "GET"},
}};

bool runsCode(std::string_view name)
{
    for (const std::string_view code : {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ",
                                        "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"}) {
        if (name == code)
            return true;
    }
    return false;
}

} // namespace

std::string pickleOpcodeName(unsigned char opcode)
{
    for (const Opcode& known : refusedOpcodes) {
        if (known.code == opcode)
            return known.name;
    }
    return fmt::format("opcode 0x{:02x}", opcode);
}

Result<PickleValue> PickleMachine::run()
{
    constexpr unsigned char stop = '.';
    for (;;) {
        m_opcodeAt = m_input.position();
        if (!m_input.has(1)) {
            refuseEnd();
            break;
        }
        if (*m_input.cursor() == '}' && takeEvent())
            continue;
        recallMany();
        m_opcodeAt = m_input.position();
        const unsigned char opcode = m_input.byte();
        if (m_protocol < 0 && opcode != 0x80) {
            refuse("pickle.protocol", "this does not begin like a pickle of protocol 2 to 5");
            break;
        }
        if (opcode == stop)
            break;
        if (!step(opcode))
            break;
    }
    if (!m_error && (m_stack.size() != 1 || !m_marks.empty()))
        refuse("pickle.stack", fmt::format("the pickle leaves {} values instead of one", m_stack.size()));
    if (m_error)
        return tl::unexpected(std::move(*m_error));
    return m_stack[0];
}

/// Most of a snapshot are frames that its stacks recall: these, one after the other, without a look at each byte's
/// other meanings. What is not plain is left to recall(). At least one byte of the window remains.
void PickleMachine::recallMany()
{
    const unsigned char *at = m_input.cursor(), *end = at + std::min<std::size_t>(m_input.available(), 1 << 14);
    if (end - at <= 5 || (*at != 'h' && *at != 'j'))
        return;
    m_stack.reserve(m_stack.size() + (1 << 13)); // a value takes two bytes at least
    const std::uint64_t* const memo = m_memo.data();
    const std::size_t known = m_memo.size();
    PickleValue* top = m_stack.end();
    while (end - at > 5 && (*at == 'h' || *at == 'j')) {
        std::uint32_t slot = at[1];
        if (*at == 'j')
            slot |= std::uint32_t(at[2]) << 8 | std::uint32_t(at[3]) << 16 | std::uint32_t(at[4]) << 24;
        if (slot >= known || memo[slot] == 0 || memo[slot] >> 63 != 0)
            break;
        *top++ = {PickleTag(memo[slot] >> 56), memo[slot] & (~std::uint64_t(0) >> 8)};
        at += *at == 'h' ? 2 : 5;
    }
    m_stack.extend(std::size_t(top - m_stack.end()));
    m_input.skip(std::size_t(at - m_input.cursor()));
}

bool PickleMachine::refuse(Error error)
{
    if (m_input.error())
        error = *m_input.error(); // what stopped the input is the cause
    else if (error.place.empty())
        error.place = fmt::format("byte {}", m_opcodeAt);
    else
        error.place = fmt::format("byte {}, {}", m_opcodeAt, error.place);
    m_error = std::move(error);
    return false;
}

bool PickleMachine::refuse(std::string code, std::string message, std::string hint)
{
    return refuse(Error{std::move(code), std::move(message), {}, std::move(hint)});
}

bool PickleMachine::check(Result<void> result)
{
    return result || refuse(std::move(result).error());
}

bool PickleMachine::step(unsigned char opcode)
{
    switch (opcode) {
    case 'h': return recall(1);
    case 'j': return recall(4);
    case 'K': return pushInteger(1, false);
    case 'M': return pushInteger(2, false);
    case 'J': return pushInteger(4, true);
    case 0x8a: return pushLong(1);
    case 0x8c: return pushText(1);
    case 'X': return pushText(4);
    case '}': return push(m_objects.newDictionary());
    case ']': return push(m_objects.newList());
    case '(': m_marks.push_back(m_stack.size()); return true;
    case 0x94: return remember();
    case 'q': return rememberOperand(1);
    case 'r': return rememberOperand(4);
    case 'u': return setItems();
    case 's': return setItem();
    case 'e': return appendAll();
    case 'a': return append();
    default: return stepOther(opcode);
    }
}

bool PickleMachine::stepOther(unsigned char opcode)
{
    switch (opcode) {
    case 0x80: return start();
    case 0x95: return frame();
    case 'N': return push({PickleTag::None, 0});
    case 0x88: return push(PickleValue::boolean(true));
    case 0x89: return push(PickleValue::boolean(false));
    case 'G': return pushReal();
    case 0x8b: return pushLong(4);
    case 0x8d: return pushText(8);
    case ')': return pushTuple(0);
    case 0x85: return pushTuple(1);
    case 0x86: return pushTuple(2);
    case 0x87: return pushTuple(3);
    case 't': return pushTupleOfMark();
    case 'l': return collect(false);
    case 'd': return collect(true);
    case '0': return pop(1);
    case '1': {
        std::size_t mark = 0;
        return popMark(mark) && pop(m_stack.size() - mark);
    }
    default: break;
    }
    const std::string name = pickleOpcodeName(opcode);
    if (runsCode(name))
        return refuse("pickle.opcode", fmt::format("{}: this pickle would run code when Python loads it", name),
                      "a snapshot holds data alone: do not open this file with Python; get it from its source again");
    return refuse("pickle.opcode", fmt::format("{} does not occur in a memory snapshot", name),
                  "write it with torch.cuda.memory._dump_snapshot()");
}

bool PickleMachine::refuseEnd()
{
    const bool isEmpty = m_input.position() == 0 && !m_input.has(1);
    return refuse("pickle.truncated", isEmpty ? "the file is empty" : "the pickle ends before it is complete",
                  "copy or write the file again");
}

bool PickleMachine::operand(std::size_t bytes, std::uint64_t& value)
{
    if (!m_input.has(bytes))
        return refuseEnd();
    value = m_input.number(bytes);
    return true;
}

bool PickleMachine::start()
{
    std::uint64_t protocol = 0;
    if (!operand(1, protocol))
        return false;
    if (protocol < 2 || protocol > 5)
        return refuse("pickle.protocol", fmt::format("a pickle of protocol {}", protocol),
                      "protocols 2 to 5 are read: pickle.dump(…, protocol=4)");
    m_protocol = int(protocol);
    return true;
}

bool PickleMachine::frame()
{
    std::uint64_t length = 0;
    if (!operand(8, length))
        return false;
    if (length > m_input.total() - m_input.position())
        return refuse("pickle.truncated",
                      fmt::format("a frame of {} bytes, but the file ends {} bytes further", length,
                                  m_input.total() - m_input.position()),
                      "copy or write the file again");
    return true;
}

bool PickleMachine::pushInteger(std::size_t bytes, bool isSigned)
{
    std::uint64_t value = 0;
    if (!operand(bytes, value))
        return false;
    return push(
        PickleValue::integer(isSigned ? std::int64_t(std::int32_t(std::uint32_t(value))) : std::int64_t(value)));
}

bool PickleMachine::pushLong(std::size_t countBytes)
{
    std::uint64_t count = 0;
    if (!operand(countBytes, count))
        return false;
    if (count > longestText)
        return refuse("pickle.limit", fmt::format("a number of {} bytes", count));
    if (!m_input.has(count))
        return refuseEnd();
    if (count > 8) {
        m_input.skip(count);
        return push({PickleTag::Large, 0});
    }
    std::uint64_t value = count == 0 ? 0 : m_input.number(count);
    if (count > 0 && count < 8 && value >> (8 * count - 1) != 0)
        value |= ~std::uint64_t(0) << (8 * count); // negative
    return push(PickleValue::integer(std::int64_t(value)));
}

bool PickleMachine::pushText(std::size_t countBytes)
{
    std::uint64_t count = 0;
    if (!operand(countBytes, count))
        return false;
    if (count > longestText)
        return refuse("pickle.limit", fmt::format("a text of {} bytes; 16 MiB are read", count));
    if (!m_input.has(count))
        return refuseEnd();
    auto text = m_objects.text({reinterpret_cast<const char*>(m_input.cursor()), std::size_t(count)});
    if (!text)
        return refuse(std::move(text).error());
    m_input.skip(count);
    return push(*text);
}

bool PickleMachine::pushReal()
{
    if (!m_input.has(8))
        return refuseEnd();
    std::uint64_t bits = 0; // the one number with its highest byte first
    for (int i = 0; i < 8; ++i)
        bits = bits << 8 | m_input.byte();
    return push({PickleTag::Real, bits});
}

bool PickleMachine::pop(std::size_t count)
{
    if (m_stack.size() - floor() < count)
        return refuse("pickle.stack", "the pickle takes a value that is not there");
    m_stack.pop_back(count);
    return true;
}

bool PickleMachine::popMark(std::size_t& mark)
{
    if (m_marks.empty())
        return refuse("pickle.stack", "the pickle ends a group that it did not begin");
    mark = m_marks.back();
    m_marks.pop_back();
    return true;
}

bool PickleMachine::pushTuple(std::size_t count)
{
    if (m_stack.size() - floor() < count)
        return refuse("pickle.stack", "the pickle takes a value that is not there");
    const PickleValue tuple = m_objects.newTuple({m_stack.end() - count, count});
    m_stack.pop_back(count);
    return push(tuple);
}

bool PickleMachine::pushTupleOfMark()
{
    std::size_t mark = 0;
    return popMark(mark) && pushTuple(m_stack.size() - mark);
}

bool PickleMachine::setItem()
{
    if (m_stack.size() < floor() + 3)
        return refuse("pickle.stack", "the pickle takes a value that is not there");
    if (!check(m_objects.set(*(m_stack.end() - 3), {m_stack.end() - 2, 2})))
        return false;
    m_stack.pop_back(2);
    return true;
}

bool PickleMachine::setItems()
{
    std::size_t mark = 0;
    if (!popMark(mark))
        return false;
    if (mark <= floor() || (m_stack.size() - mark) % 2 != 0)
        return refuse("pickle.stack", "the pickle sets keys without a dictionary, or without values");
    if (!check(m_objects.set(m_stack[mark - 1], {m_stack.data() + mark, m_stack.size() - mark})))
        return false;
    m_stack.pop_back(m_stack.size() - mark);
    return true;
}

bool PickleMachine::append()
{
    if (m_stack.size() < floor() + 2)
        return refuse("pickle.stack", "the pickle takes a value that is not there");
    if (!check(m_objects.append(*(m_stack.end() - 2), {m_stack.end() - 1, 1})))
        return false;
    m_stack.pop_back();
    return true;
}

bool PickleMachine::appendAll()
{
    std::size_t mark = 0;
    if (!popMark(mark))
        return false;
    if (mark <= floor())
        return refuse("pickle.stack", "the pickle appends without a list");
    if (!check(m_objects.append(m_stack[mark - 1], {m_stack.data() + mark, m_stack.size() - mark})))
        return false;
    m_stack.pop_back(m_stack.size() - mark);
    return true;
}

/// DICT and LIST: a container of what is above the mark.
bool PickleMachine::collect(bool isDictionary)
{
    std::size_t mark = 0;
    if (!popMark(mark))
        return false;
    const std::span<const PickleValue> items{m_stack.data() + mark, m_stack.size() - mark};
    if (isDictionary && items.size() % 2 != 0)
        return refuse("pickle.stack", "the pickle sets a key without a value");
    const PickleValue made = isDictionary ? m_objects.newDictionary() : m_objects.newList();
    if (!check(isDictionary ? m_objects.set(made, items) : m_objects.append(made, items)))
        return false;
    m_stack.pop_back(items.size());
    return push(made);
}

bool PickleMachine::remember()
{
    return rememberAt(m_remembered);
}

bool PickleMachine::rememberOperand(std::size_t bytes)
{
    std::uint64_t slot = 0;
    return operand(bytes, slot) && rememberAt(slot);
}

bool PickleMachine::rememberAt(std::uint64_t slot)
{
    if (m_stack.size() <= floor())
        return refuse("pickle.stack", "the pickle remembers a value that is not there");
    if (slot >= m_input.position()) // each memory takes a byte at least
        return refuse("pickle.memo", fmt::format("the pickle remembers value {} out of order", slot));
    if (m_memo.size() <= slot)
        m_memo.resize(slot + 1, 0);
    m_remembered += m_memo[slot] == 0;
    if (m_memo[slot] != 0)
        forgetRecalled();
    PickleValue value = m_stack.back();
    if (value.bits >> 56 != 0) { // a number
        m_numbers.push_back(value.bits);
        m_memo[slot] = std::uint64_t(value.tag) << 56 | std::uint64_t(1) << 63 | (m_numbers.size() - 1);
        return true;
    }
    m_memo[slot] = std::uint64_t(value.tag) << 56 | value.bits;
    return true;
}

bool PickleMachine::recall(std::size_t bytes)
{
    std::uint64_t slot = 0;
    if (!operand(bytes, slot))
        return false;
    if (slot >= m_memo.size() || m_memo[slot] == 0)
        return refuse("pickle.memo", fmt::format("the pickle recalls value {} that it did not remember", slot));
    return push(unpacked(m_memo[slot]));
}

} // namespace memscape
