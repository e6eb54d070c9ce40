// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/records_model.h"

#include "app/pages/records/record_text.h"
#include "app/settings/theme.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// It is drawn beside what the page shows.
bool isBeside(const Record& record)
{
    return record.pinned || record.baseline;
}

constexpr auto gone = std::size_t(-1); // the record of a row that is being removed

} // namespace

RecordsModel::RecordsModel(StudyDocument& document, std::string experiment, QObject* parent)
    : QAbstractListModel(parent)
    , m_document(document)
    , m_experiment(std::move(experiment))
{
    connect(&m_document, &StudyDocument::changed, this, &RecordsModel::documentChanged);
    rebuild();
}

// Rows come, go and move one by one, so that a view keeps its selection, its open editor and the
// keyboard: a note that is being typed changes its record with every letter.
void RecordsModel::documentChanged(const ChangeEvent& event)
{
    m_labels.clear();
    if (std::holds_alternative<StudyReset>(event))
        rebuild();
    else if (const auto* added = std::get_if<RecordAdded>(&event))
        insert(added->index, added->isBack);
    else if (const auto* removed = std::get_if<RecordRemoved>(&event))
        remove(removed->index);
    else if (std::holds_alternative<RecordRenamed>(event) || std::holds_alternative<RecordChanged>(event))
        reorder();
}

std::vector<std::size_t> RecordsModel::wantedOrder() const
{
    std::vector<std::size_t> order;
    const std::vector<Record>& records = m_document.records();
    for (std::size_t i = records.size(); i-- > 0;) {
        if (records[i].experiment == m_experiment)
            order.push_back(i);
    }
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return isBeside(records[i]); });
    return order;
}

void RecordsModel::rebuild()
{
    beginResetModel();
    m_order = wantedOrder();
    endResetModel();
}

// The document has changed already: the numbers are moved on before a view is notified, since it may
// ask for the rows that stay.
void RecordsModel::insert(std::size_t recordIndex, bool isBack)
{
    for (std::size_t& index : m_order)
        index += index >= recordIndex ? 1 : 0;
    std::vector<std::size_t> order = wantedOrder();
    const auto at = std::ranges::find(order, recordIndex);
    if (at == order.end())
        return; // of another experiment
    const int row = int(at - order.begin());
    beginInsertRows({}, row, row);
    m_order = std::move(order);
    endInsertRows();
    if (isBack)
        emit cameBack(row);
}

void RecordsModel::remove(std::size_t recordIndex)
{
    const int row = rowOf(recordIndex);
    if (row >= 0)
        m_order[std::size_t(row)] = gone;
    for (std::size_t& index : m_order)
        index -= index != gone && index > recordIndex ? 1 : 0;
    if (row < 0)
        return;
    beginRemoveRows({}, row, row);
    m_order = wantedOrder();
    endRemoveRows();
}

void RecordsModel::reorder()
{
    std::vector<std::size_t> order = wantedOrder();
    if (order != m_order) {
        emit layoutAboutToBeChanged();
        const std::vector<std::size_t> before = std::exchange(m_order, std::move(order));
        for (const QModelIndex& old : persistentIndexList())
            changePersistentIndex(old, index(rowOf(before[std::size_t(old.row())])));
        emit layoutChanged();
    }
    refreshAges();
}

int RecordsModel::recordIndex(int row) const
{
    return row >= 0 && row < int(m_order.size()) ? int(m_order[std::size_t(row)]) : -1;
}

int RecordsModel::rowOf(std::size_t recordIndex) const
{
    const auto at = std::ranges::find(m_order, recordIndex);
    return at == m_order.end() ? -1 : int(at - m_order.begin());
}

int RecordsModel::paletteOf(std::size_t recordIndex) const
{
    return std::max(0, rowOf(recordIndex)); // pinned ones come first
}

void RecordsModel::setShown(int recordIndex)
{
    if (m_shown == recordIndex)
        return;
    m_shown = recordIndex;
    refreshAges();
}

void RecordsModel::setNaming(const std::string& device, ByteStyle bytes)
{
    if (m_device == device && m_bytes == bytes)
        return;
    m_device = device;
    m_bytes = bytes;
    refreshAges();
}

RecordLabel RecordsModel::label(std::size_t recordIndex) const
{
    if (m_labels.empty()) {
        std::vector<std::size_t> present = m_order; // one may be being removed
        std::erase_if(present, [&](std::size_t i) { return i >= m_document.records().size(); });
        const std::vector<RecordLabel> labels = recordLabels(m_document.records(), present, m_device, m_bytes);
        for (std::size_t i = 0; i < present.size(); ++i)
            m_labels[present[i]] = labels[i];
    }
    const auto found = m_labels.find(recordIndex);
    return found == m_labels.end() ? RecordLabel() : found->second;
}

void RecordsModel::refreshAges()
{
    m_labels.clear();
    if (!m_order.empty())
        emit dataChanged(index(0), index(int(m_order.size()) - 1));
}

int RecordsModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : int(m_order.size());
}

bool RecordsModel::isBaseline(std::size_t recordIndex) const
{
    return baselineOf(m_document.records(), m_experiment) == recordIndex;
}

QString RecordsModel::legendName(std::size_t recordIndex) const
{
    const RecordLabel own = label(recordIndex);
    const bool isAlone = std::ranges::none_of(m_order, [&](std::size_t other) {
        return other != recordIndex && isBeside(m_document.records()[other]) && label(other).what == own.what;
    });
    const QString name = isAlone && !own.what.isEmpty() ? own.what : own.text();
    return name.isEmpty() ? recordName(m_document.records()[recordIndex]) : name;
}

/// What a screen reader says of it.
QString RecordsModel::spokenText(std::size_t recordIndex) const
{
    const Record& record = m_document.records()[recordIndex];
    const QString what = label(recordIndex).what;
    const QString grade = recordGrade(record);
    QStringList parts{what.isEmpty() ? recordName(record) : what,
                      ageText(recordTime(record)),
                      grade.isEmpty() ? QString() : tr("grade %1").arg(grade),
                      record.pinned ? tr("pinned") : QString(),
                      isBaseline(recordIndex) ? tr("baseline") : QString(),
                      int(recordIndex) == m_shown ? tr("shown") : QString()};
    parts.removeAll(QString());
    return parts.join(QStringLiteral(", "));
}

QVariant RecordsModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid))
        return {};
    const std::size_t at = m_order[std::size_t(index.row())];
    if (at >= m_document.records().size())
        return {}; // it is being removed
    const Record& record = m_document.records()[at];
    switch (role) {
    case Qt::DisplayRole: {
        const QString what = label(at).what;
        return what.isEmpty() ? recordName(record) : what;
    }
    case Qt::EditRole: return recordName(record);
    case Qt::ToolTipRole: return recordToolTip(record);
    case Qt::AccessibleTextRole: return spokenText(at);
    case LegendRole: return legendName(at);
    case LabelRole: {
        const QString text = label(at).text();
        return text.isEmpty() ? recordName(record) : text;
    }
    case BaselineRole: return isBaseline(at);
    case PredictedRole: return !record.measured;
    case IndexRole: return int(at);
    case AgeRole: return ageText(recordTime(record));
    case GradeRole: return recordGrade(record);
    case PinnedRole: return record.pinned;
    case ColourRole:
        return isBeside(record) ? currentTheme().pin(paletteOf(at))
            : record.measured   ? currentTheme().measured
                                : currentTheme().predicted;
    case NoteRole: return QString::fromStdString(record.note);
    case ShownRole: return int(at) == m_shown;
    default: return {};
    }
}

bool RecordsModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    const int at = recordIndex(index.row());
    if (at < 0 || role != Qt::EditRole || value.toString().trimmed().isEmpty())
        return false;
    m_document.renameRecord(std::size_t(at), value.toString().trimmed().toStdString());
    return true;
}

Qt::ItemFlags RecordsModel::flags(const QModelIndex& index) const
{
    const Qt::ItemFlags base = QAbstractListModel::flags(index);
    return index.isValid() ? base | Qt::ItemIsEditable : base;
}

} // namespace memscape
