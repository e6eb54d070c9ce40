// SPDX-License-Identifier: GPL-3.0-or-later
// The records of one experiment in a study, those that are drawn beside (pinned, the baseline) first
// and then the newest, as a list model.
#pragma once

#include "app/document/study_document.h"
#include "app/pages/records/record_label.h"

#include <QAbstractListModel>
#include <QColor>

#include <map>
#include <vector>

namespace memscape {

class RecordsModel : public QAbstractListModel
{
    Q_OBJECT

public:
    enum Roles {
        IndexRole = Qt::UserRole, ///< in StudyDocument::records()
        AgeRole,
        GradeRole,
        PinnedRole,
        ColourRole, ///< of its curve while pinned, else the colour of measurements
        NoteRole,
        ShownRole,  ///< it is the measurement that the page shows
        LegendRole, ///< as LabelRole, the time only where another one beside is called the same
        LabelRole,  ///< what distinguishes it from the others: "read, 256 MiB, 17:38"
        BaselineRole,
        PredictedRole ///< it holds no measurement
    };

    RecordsModel(StudyDocument& document, std::string experiment, QObject* parent = nullptr);

    /// Index in the study of a row; −1 for a row that is not.
    int recordIndex(int row) const;
    int rowOf(std::size_t recordIndex) const;
    /// Palette index of a pinned record, by its place among the pinned ones.
    int paletteOf(std::size_t recordIndex) const;
    void setShown(int recordIndex);
    /// What the page shows: records of another device are named by theirs.
    void setNaming(const std::string& device, ByteStyle bytes);
    /// Of a record of this experiment.
    RecordLabel label(std::size_t recordIndex) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

    /// Ages move on without a change of the study.
    void refreshAges();

signals:
    void cameBack(int row); ///< undo or redo brought a record; the row is there

private:
    void documentChanged(const ChangeEvent& event);
    bool isBaseline(std::size_t recordIndex) const;
    QString spokenText(std::size_t recordIndex) const;
    QString legendName(std::size_t recordIndex) const;
    std::vector<std::size_t> wantedOrder() const;
    void rebuild();
    void insert(std::size_t recordIndex, bool isBack);
    void remove(std::size_t recordIndex);
    void reorder();

    StudyDocument& m_document;
    std::string m_experiment;
    std::vector<std::size_t> m_order;
    int m_shown = -1;
    std::string m_device;
    ByteStyle m_bytes = ByteStyle::Binary;
    mutable std::map<std::size_t, RecordLabel> m_labels; ///< by record; empty: to be made
};

} // namespace memscape
