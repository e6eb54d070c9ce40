// SPDX-License-Identifier: Apache-2.0
// A record made by hand, of an experiment that does not exist: whatever a report says about it can be
// worked out from this page.
#pragma once

#include "core/experiment/record.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace memscape::test {

inline Series speedSeries(std::vector<double> y, std::vector<double> low = {}, std::vector<double> high = {})
{
    Series series;
    series.key = "speed";
    series.label = "speed";
    series.x = {"step", "step", Unit::Byte, AxisScale::Log2, {1024, 2048, 4096}, {}};
    series.yLabel = "speed";
    series.yUnit = Unit::BytePerSecond;
    series.y = std::move(y);
    series.low = std::move(low);
    series.high = std::move(high);
    return series;
}

inline Figure speedFigure(double value)
{
    Figure figure;
    figure.key = "speed";
    figure.label = "speed";
    figure.unit = Unit::BytePerSecond;
    figure.value = value;
    return figure;
}

inline Figure levelFigure(const std::string& name)
{
    Figure figure;
    figure.key = "level";
    figure.label = "level";
    figure.value = name;
    return figure;
}

inline Record predictedRecord()
{
    Record record;
    record.experiment = "walk";
    record.foreignParameters = {{"step", 1024}, {"kind", "slow"}};
    record.device.id = "box";
    record.device.name = "A box";
    record.device.basis = "catalogue";
    MemoryLevel memory;
    memory.id = memory.label = "DRAM";
    memory.kind = LevelKind::Dram;
    record.device.levels = {memory};
    record.provenance = {{"program", "memscape"}, {"version", "0.1.0"}};
    record.predicted.emplace();
    record.predicted->detail = Json::object();
    record.predicted->figures = {speedFigure(100e9), levelFigure("L2")};
    Why why;
    why.formula = "speed = B / n";
    why.with = "= 200 GB/s / 2";
    why.terms = {{"B", 200e9, Unit::BytePerSecond, "bandwidth of the box", "its label"},
                 {"n", 2, Unit::One, "walkers", "counted"}};
    why.source = "a walk, 2026";
    why.omits = {"Wind."};
    record.predicted->figures.front().why = why;
    record.predicted->series = {speedSeries({100e9, 50e9, 25e9})};
    return record;
}

/// Predicted and measured; the last point could not be had.
inline Record sampleRecord()
{
    Record record = predictedRecord();
    record.measured.emplace();
    record.measured->detail = Json::object();
    record.measured->figures = {speedFigure(80e9), levelFigure("L3")};
    record.measured->series = {
        speedSeries({80e9, 40e9, std::nan("")}, {75e9, 38.5e9, std::nan("")}, {82e9, 41e9, std::nan("")})};
    record.provenance["grade"] = "B";
    record.provenance["reason"] = "the clock moved";
    record.provenance["samples"] = {1.0, 2.0, 3.0};
    return record;
}

/// Every text of it tries to be markup, a formula or a terminal command.
inline Record hostileRecord()
{
    const std::string evil = "<script>alert('x')</script>\"><img src=x onerror=y>\x1b[2J|`=1+1\x01\xff";
    Record record = sampleRecord();
    record.name = evil;
    record.note = evil;
    record.experiment = evil;
    record.foreignParameters = {{evil, evil}};
    record.device.id = record.device.name = record.device.basis = evil;
    for (auto* side : {&record.predicted, &record.measured}) {
        (*side)->figures[0].label = evil;
        (*side)->figures[1].value = evil;
        (*side)->series[0].label = (*side)->series[0].yLabel = (*side)->series[0].x.label = evil;
    }
    Why& why = *record.predicted->figures[0].why;
    why.formula = why.with = why.source = evil;
    why.omits = {evil};
    why.terms[0] = {evil, 1, Unit::One, evil, evil};
    record.provenance[evil] = evil;
    return record;
}

} // namespace memscape::test
