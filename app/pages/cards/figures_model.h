// SPDX-License-Identifier: GPL-3.0-or-later
// The figures of a page as a table: label, predicted, measured, error. What is measured at another
// point than the one shown, or not at all, is an en dash with the reason in its tooltip; nothing is
// interpolated. Where a record is the baseline, a column says by how much the shown values differ.
#pragma once

#include "core/experiment/outcome.h"

#include <QAbstractTableModel>

#include <optional>
#include <vector>

namespace memscape {

/// One row. `measured` is empty when there is none for the point that is shown.
struct FigureRow
{
    QString key;
    QString label;
    std::optional<Figure> predicted = {};
    std::optional<Figure> measured = {};
    double error = 0;                    ///< (predicted − measured) / measured; NaN when there is none
    bool agree = false;                  ///< equal words
    bool withinNoise = false;            ///< inside the measured band, however wide that is
    bool isCounted = false;              ///< both sides repeat one count: nothing is compared
    bool hasBaseline = false;            ///< there is one, whether or not it has this figure
    std::optional<Figure> baseline = {}; ///< measured if `isMeasuredAgainst`, else predicted
    bool isMeasuredAgainst = false;
    double difference = 0; ///< (shown − baseline) / |baseline|; NaN when there is none
};

/// Sets what compares `predicted` with `measured`.
void compareInto(FigureRow& row);

class FiguresModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Columns { LabelColumn, PredictedColumn, MeasuredColumn, ErrorColumn, BaselineColumn, NUM_COLUMNS };
    /// WordsRole: the cell holds words that may wrap, no number.
    enum Roles { SortRole = Qt::UserRole, KeyRole, WordsRole };

    using QAbstractTableModel::QAbstractTableModel;

    void setRows(std::vector<FigureRow> rows, ByteStyle bytes);
    const std::vector<FigureRow>& rows() const { return m_rows; }
    /// Long counts with a prefix instead of all their digits.
    void setBrief(bool brief);
    /// Tab-separated, with headers, in base units: what Ctrl+C copies.
    QString text() const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QString labelText(const FigureRow& row) const;
    QString display(const FigureRow& row, int column) const;
    QString toolTip(const FigureRow& row, int column) const;
    QString differenceTip(const FigureRow& row) const;

    std::vector<FigureRow> m_rows;
    ByteStyle m_bytes = ByteStyle::Binary;
    bool m_isBrief = false;
};

/// As the table and the headlines write it: "yes" of what fits, long counts in groups of digits or, where `isBrief`,
/// with a prefix.
QString figureText(const Figure& figure, ByteStyle bytes, bool isBrief = false);

/// Rows from both sides. `atX` is the point shown: the measured figure is the one of the same x.
std::vector<FigureRow> figureRows(const Outcome* predicted, const Outcome* measured, std::optional<double> atX,
                                  bool figuresAreAtX);
/// The point of a series at x as a figure with its band; nothing where there is none.
std::optional<Figure> figureAt(const Outcome& outcome, const Figure& like, double x);
/// Puts the baseline beside the rows: measured beside measured, else predicted beside predicted.
/// `atX` as above: `figuresAreAtX` says that its figures are of the shown point.
void addBaseline(std::vector<FigureRow>& rows, const Outcome* predicted, const Outcome* measured,
                 std::optional<double> atX, bool figuresAreAtX);

} // namespace memscape
