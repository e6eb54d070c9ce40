// SPDX-License-Identifier: Apache-2.0
// The stack machine of the pickle format (Lib/pickletools.py describes it), reduced to data. What it builds is in
// PickleObjects; what it refuses is everything that calls or imports: GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, …
#pragma once

#include "core/snapshot/pickle_input.h"
#include "core/snapshot/pickle_objects.h"

namespace memscape {

class PickleMachine
{
public:
    PickleMachine(PickleInput& input, PickleObjects& objects)
        : m_input(input)
        , m_objects(objects)
    { }

    /// Runs to STOP; the value that is left. Errors name the byte of the opcode.
    Result<PickleValue> run();
    int protocol() const { return m_protocol; }
    std::size_t memory() const
    {
        return m_stack.memory() + m_memo.memory() + m_marks.memory() + m_recalls.memory() + m_recalledStacks.memory();
    }

private:
    bool step(unsigned char opcode);
    void recallMany();
    bool takeEvent();
    bool takeStack(const unsigned char*& at, const unsigned char* end, StackId& stack);
    StackId stackOf(const unsigned char* at, const unsigned char* end);
    bool setPlain(SnapshotEvent& event, SnapshotKey key, PickleValue value);
    std::uint64_t recalled(const unsigned char*& at) const;
    void forgetRecalled();
    bool stepOther(unsigned char opcode);
    bool refuse(Error error);
    bool refuse(std::string code, std::string message, std::string hint = "the file is damaged, or no snapshot");
    bool check(Result<void> result);
    bool push(PickleValue value)
    {
        m_stack.push_back(value);
        return true;
    }
    bool refuseEnd(); ///< the file is too short
    bool operand(std::size_t bytes, std::uint64_t& value);
    bool pushInteger(std::size_t bytes, bool isSigned);
    bool pushLong(std::size_t countBytes);
    bool pushText(std::size_t countBytes);
    bool pushReal();
    bool pushTuple(std::size_t count);
    bool start();
    bool frame();
    bool pop(std::size_t count);
    bool popMark(std::size_t& mark);
    bool setItem();
    bool setItems();
    bool append();
    bool appendAll();
    bool collect(bool isDictionary);
    bool pushTupleOfMark();
    bool remember();
    bool rememberOperand(std::size_t bytes);
    bool rememberAt(std::uint64_t slot);
    bool recall(std::size_t bytes);
    std::size_t floor() const { return m_marks.empty() ? 0 : m_marks.back(); }
    PickleValue unpacked(std::uint64_t packed) const
    {
        const std::uint64_t bits = packed & (~std::uint64_t(0) >> 8);
        return {PickleTag((packed >> 56) & 0x7f), packed >> 63 ? m_numbers[bits] : bits};
    }

    PickleInput& m_input;
    PickleObjects& m_objects;
    LargeArray<PickleValue> m_stack;
    LargeArray<std::size_t> m_marks;  ///< heights of the stack
    LargeArray<std::uint64_t> m_memo; ///< a value in 8 bytes: tag and 56 bits; numbers beyond them are in m_numbers
    LargeArray<std::uint64_t> m_numbers;
    std::uint64_t m_remembered = 0;
    SnapshotTexts m_recalls;              ///< bytes of the file that recall the frames of a stack
    LargeArray<StackId> m_recalledStacks; ///< by the id of these bytes: their stack
    std::size_t m_frameChanges = 0;       ///< of m_objects when the above was right
    int m_protocol = -1;
    std::uint64_t m_opcodeAt = 0;
    std::optional<Error> m_error;
};

/// "GLOBAL", "REDUCE" …; "opcode 0x41" of what is none.
std::string pickleOpcodeName(unsigned char opcode);

} // namespace memscape
