// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/commands.h"

#include "app/document/study_document.h"

#include <iterator>

namespace memscape {

std::vector<Record>& StudyEditor::records(StudyDocument& document)
{
    return document.m_study.records;
}

void StudyEditor::tell(StudyDocument& document, const ChangeEvent& event)
{
    document.emitEvent(event);
}

ChangeRecords::ChangeRecords(const QString& text, StudyDocument& document, Kind kind, std::size_t index,
                             std::vector<Record> records)
    : QUndoCommand(text)
    , m_document(document)
    , m_kind(kind)
    , m_index(index)
    , m_count(kind == Kind::Insert ? records.size() : 1)
    , m_records(std::move(records))
{ }

void ChangeRecords::redo()
{
    m_kind == Kind::Insert ? insert() : remove();
}

void ChangeRecords::undo()
{
    m_kind == Kind::Insert ? remove() : insert();
}

void ChangeRecords::insert()
{
    // One at a time: a listener that receives an index finds the list in the state reported so far.
    auto& records = StudyEditor::records(m_document);
    for (std::size_t i = 0; i < m_count; ++i) {
        const std::size_t index = m_index + i;
        records.insert(records.begin() + static_cast<std::ptrdiff_t>(index), std::move(m_records[i]));
        StudyEditor::tell(m_document, RecordAdded{index, m_wasThere});
    }
    m_records.clear();
    m_wasThere = true;
}

void ChangeRecords::remove()
{
    auto& records = StudyEditor::records(m_document);
    m_records.resize(m_count);
    m_wasThere = true;
    for (std::size_t i = m_count; i-- > 0;) {
        const auto place = records.begin() + static_cast<std::ptrdiff_t>(m_index + i);
        m_records[i] = std::move(*place);
        records.erase(place);
        StudyEditor::tell(m_document, RecordRemoved{m_index + i});
    }
}

} // namespace memscape
