// SPDX-License-Identifier: Apache-2.0
// One table, whatever the records are: a row per point of a sweep. Columns are the union over the
// records, so a reader such as pandas needs no second look. Lines end in CR LF as the RFC says. A
// record without curves contributes its figures as one row.
//
// A spreadsheet takes a cell that begins with = + - or @ for a formula and runs it; names in a record are
// foreign. Such a text gets an apostrophe in front (the OWASP guide's way): the spreadsheet shows it as text,
// other readers see one character more. Numbers stay as they are. A spreadsheet that parts cells at
// semicolons or tabs is thought of, too.
#include "core/report/csv.h"

#include "core/report/report.h"
#include "core/report/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double noValue = std::numeric_limits<double>::quiet_NaN();

/// What a spreadsheet would run. Blanks in front do not keep every one of them from it.
bool startsFormula(std::string_view text)
{
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && std::string_view("=+-@").find(text[first]) != std::string_view::npos;
}

struct Column
{
    std::string name;
    Unit unit = Unit::One;
};

using PointRow = std::map<std::string, std::string>; // column name → field, unquoted

class Table
{
public:
    void addColumn(const std::string& name, Unit unit)
    {
        if (m_names.insert(name).second)
            m_columns.push_back({name, unit});
    }
    void addRow(PointRow row) { m_rows.push_back(std::move(row)); }
    const std::vector<Column>& columns() const { return m_columns; }

    std::string text() const
    {
        std::string out;
        for (const Column& column : m_columns)
            out += (&column == &m_columns.front() ? "" : ",") + csvField(column.name);
        out += "\r\n";
        for (const PointRow& row : m_rows) {
            for (const Column& column : m_columns) {
                if (&column != &m_columns.front())
                    out += ',';
                if (const auto field = row.find(column.name); field != row.end())
                    out += csvField(field->second);
            }
            out += "\r\n";
        }
        return out;
    }

private:
    std::vector<Column> m_columns;
    std::set<std::string> m_names; ///< theirs
    std::vector<PointRow> m_rows;
};

double valueOf(const std::vector<double>& values, std::size_t i)
{
    return i < values.size() ? values[i] : noValue;
}

/// The rows of one record, by value of x, in the order of the sweep.
class PointTable
{
public:
    void add(const Series& series, const std::string& suffix)
    {
        for (std::size_t i = 0; i < series.x.values.size(); ++i) {
            PointRow& row = rowAt(series.x, i);
            row[series.key + suffix] = csvNumber(valueOf(series.y, i));
            if (suffix == "_measured") {
                row[series.key + "_low"] = csvNumber(valueOf(series.low, i));
                row[series.key + "_high"] = csvNumber(valueOf(series.high, i));
            }
        }
    }
    std::vector<PointRow> take() { return std::move(m_rows); }

private:
    PointRow& rowAt(const SeriesAxis& axis, std::size_t i)
    {
        const auto [place, added] = m_index.try_emplace({axis.key, axis.values[i]}, m_rows.size());
        if (added)
            m_rows.push_back({{axis.key, i < axis.names.size() ? axis.names[i] : csvNumber(axis.values[i])}});
        return m_rows[place->second];
    }

    std::map<std::pair<std::string, double>, std::size_t> m_index;
    std::vector<PointRow> m_rows;
};

void addSeriesColumns(Table& table, const Record& record)
{
    for (const auto* side : {&record.predicted, &record.measured}) {
        if (*side)
            for (const Series& series : (*side)->series)
                table.addColumn(series.x.key, series.x.unit);
    }
    for (const auto* side : {&record.predicted, &record.measured}) {
        if (!*side)
            continue;
        for (const Series& series : (*side)->series)
            for (const char* suffix : {"_predicted", "_measured", "_low", "_high"})
                table.addColumn(series.key + suffix, series.yUnit);
    }
}

PointRow figureRow(Table& table, const Record& record)
{
    PointRow row;
    const auto add = [&](const std::optional<Outcome>& side, const std::string& suffix) {
        if (!side)
            return;
        for (const Figure& figure : side->figures) {
            table.addColumn(figure.key + suffix, figure.unit);
            row[figure.key + suffix] = figure.isNumber() ? csvNumber(figure.number()) : figure.text();
        }
    };
    add(record.predicted, "_predicted");
    add(record.measured, "_measured");
    return row;
}

std::vector<PointRow> rowsOf(Table& table, const Record& record)
{
    addSeriesColumns(table, record);
    PointTable points;
    if (record.predicted)
        for (const Series& series : record.predicted->series)
            points.add(series, "_predicted");
    if (record.measured)
        for (const Series& series : record.measured->series)
            points.add(series, "_measured");
    auto rows = points.take();
    if (rows.empty())
        rows.push_back(figureRow(table, record));
    return rows;
}

/// A line of comments is not quoted, and a spreadsheet cuts it into cells like any other.
std::string commentText(std::string_view text)
{
    std::string out;
    bool cellBegins = false;
    for (const char c : printable(text)) {
        if (cellBegins && startsFormula({&c, 1}))
            out += '\'';
        if (c != ' ')
            cellBegins = c == ',' || c == ';' || c == '"';
        out += c;
    }
    return out;
}

std::string commentLines(const std::vector<Record>& records, const Table& table)
{
    std::string out;
    for (const Record& record : records) {
        std::string line = fmt::format("# {}: {} on {}", recordTitle(record), record.experiment, record.device.id);
        for (const auto& [label, value] : parameterRows(record))
            line += fmt::format("; {} {}", label, value);
        out += commentText(line) + "\r\n";
    }
    for (const Column& column : table.columns())
        if (column.unit != Unit::One)
            out += commentText(fmt::format("# {}: {}", column.name, unitText(column.unit))) + "\r\n";
    return out;
}

} // namespace

std::string csvField(std::string_view text)
{
    const std::string harmless = (startsFormula(text) && !parseNumber(text) ? "'" : "") + std::string(text);
    if (harmless.find_first_of(",;\t\"\r\n") == std::string::npos)
        return harmless;
    std::string out = "\"";
    for (const char c : harmless) {
        if (c == '"')
            out += '"';
        out += c;
    }
    return out + '"';
}

std::string csvNumber(double value)
{
    return std::isfinite(value) ? numberText(value) : std::string();
}

std::string reportCsv(const std::vector<Record>& records, const CsvOptions& options)
{
    Table table;
    const bool several = records.size() > 1;
    if (several)
        table.addColumn("record", Unit::One);
    for (const Record& record : records) {
        for (PointRow& row : rowsOf(table, record)) {
            if (several)
                row["record"] = recordTitle(record);
            table.addRow(std::move(row));
        }
    }
    return (options.comments ? commentLines(records, table) : std::string()) + table.text();
}

} // namespace memscape
