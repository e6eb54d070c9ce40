// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a study's history. Undo and redo of a value are the same line: swap the value that
// the step holds with the one in the document (after Tiled's ChangeValue). Private to this room.
#pragma once

#include "app/document/change_event.h"
#include "core/experiment/record.h"

#include <QUndoCommand>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace memscape {

class StudyDocument;

/// The value that a step changes, and the receiver of its signal.
template <typename Value> struct ValueSlot
{
    std::string name;               ///< the same for the same value: steps of one slot may merge
    std::function<Value&()> access; ///< looked up each time: indices and maps move
    std::function<void(bool)> told; ///< after a swap; true when it is undo or redo by hand
};

/// A changed value. Steps with the same slot and the same gesture (not 0) become one, which
/// disappears when it ends where it began.
template <typename Value> class ChangeValue : public QUndoCommand
{
public:
    ChangeValue(const QString& text, ValueSlot<Value> slot, Value value, int gesture)
        : QUndoCommand(text)
        , m_slot(std::move(slot))
        , m_value(std::move(value))
        , m_gesture(gesture)
    { }

    int id() const override { return m_gesture == 0 ? -1 : 1; }

    void redo() override { swap(!std::exchange(m_first, false)); }
    void undo() override { swap(true); }

    bool mergeWith(const QUndoCommand* command) override
    {
        const auto* other = dynamic_cast<const ChangeValue*>(command);
        if (!other || other->m_gesture != m_gesture || other->m_slot.name != m_slot.name)
            return false;
        // The document already holds the newer value; ours is the one from before the gesture.
        setText(other->text());
        setObsolete(m_slot.access() == m_value);
        return true;
    }

private:
    void swap(bool byHand)
    {
        std::swap(m_slot.access(), m_value);
        m_slot.told(byHand);
    }

    ValueSlot<Value> m_slot;
    Value m_value;
    int m_gesture;
    bool m_first = true;
};

/// Records put in at an index, or (`insert` false) taken out there.
class ChangeRecords : public QUndoCommand
{
public:
    enum class Kind { Insert, Remove };
    /// Insert: `records` go in from `index` on. Remove: the one record at `index` goes.
    ChangeRecords(const QString& text, StudyDocument& document, Kind kind, std::size_t index,
                  std::vector<Record> records);

    void redo() override;
    void undo() override;

private:
    void insert();
    void remove();

    StudyDocument& m_document;
    Kind m_kind;
    std::size_t m_index;
    std::size_t m_count;
    std::vector<Record> m_records; // while they are not in the document
    bool m_wasThere = false;       // they have been in the document
};

/// The part of the document that steps may change behind its const face.
class StudyEditor
{
public:
    static std::vector<Record>& records(StudyDocument& document);
    static void tell(StudyDocument& document, const ChangeEvent& event);
};

} // namespace memscape
