// SPDX-License-Identifier: GPL-3.0-or-later
// The records of one experiment in a study, pinned ones first and then the newest, as a list model.
#pragma once

#include "app/document/study_document.h"

#include <QAbstractListModel>
#include <QColor>

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
        ShownRole ///< it is the measurement that the page shows
    };

    RecordsModel(StudyDocument& document, std::string experiment, QObject* parent = nullptr);

    /// Index in the study of a row; −1 for a row that is not.
    int recordIndex(int row) const;
    int rowOf(std::size_t recordIndex) const;
    /// Palette index of a pinned record, by its place among the pinned ones.
    int paletteOf(std::size_t recordIndex) const;
    void setShown(int recordIndex);

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
    std::vector<std::size_t> wantedOrder() const;
    void rebuild();
    void insert(std::size_t recordIndex, bool isBack);
    void remove(std::size_t recordIndex);
    void reorder();

    StudyDocument& m_document;
    std::string m_experiment;
    std::vector<std::size_t> m_order;
    int m_shown = -1;
};

} // namespace memscape
