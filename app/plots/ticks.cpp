// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/ticks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace memscape {

namespace {

struct Prefix
{
    double factor;
    const char* text;
};

bool binaryBytes(const AxisSpec& axis)
{
    return axis.unit == Unit::Byte && axis.bytes == ByteStyle::Binary;
}

// The prefixed unit that a whole linear axis is counted in.
Prefix prefixFor(const AxisSpec& axis, double largest)
{
    static constexpr std::array<Prefix, 5> binary{
        {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}}};
    static constexpr std::array<Prefix, 9> metric{{{1e-12, "p"},
                                                   {1e-9, "n"},
                                                   {1e-6, "µ"},
                                                   {1e-3, "m"},
                                                   {1, ""},
                                                   {1e3, "k"},
                                                   {1e6, "M"},
                                                   {1e9, "G"},
                                                   {1e12, "T"}}};
    if (axis.unit == Unit::One)
        return {1, ""};
    if (binaryBytes(axis)) {
        Prefix chosen = binary.front();
        for (const Prefix& prefix : binary)
            chosen = largest >= prefix.factor ? prefix : chosen;
        return chosen;
    }
    const bool time = axis.unit == Unit::Second;
    Prefix chosen = time ? metric.front() : Prefix{1, ""};
    for (const Prefix& prefix : metric) {
        if (largest >= prefix.factor * (1 - 1e-12) && (time ? prefix.factor <= 1 : prefix.factor >= 1))
            chosen = prefix;
    }
    return chosen;
}

QString unitWord(const AxisSpec& axis, const Prefix& prefix)
{
    if (axis.unit == Unit::One)
        return {};
    if (binaryBytes(axis))
        return QString::fromUtf8(prefix.text);
    const std::string_view unit = unitText(axis.unit);
    return QString::fromUtf8(prefix.text) + QString::fromUtf8(unit.data(), static_cast<qsizetype>(unit.size()));
}

double linearStep(const AxisSpec& axis, double span, int wanted)
{
    const double rough = span / std::max(1, wanted);
    if (!(rough > 0) || !std::isfinite(rough))
        return 1;
    if (binaryBytes(axis))
        return std::exp2(std::ceil(std::log2(rough) - 1e-9));
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double mantissa : {1.0, 2.0, 5.0}) {
        if (mantissa * power >= rough * (1 - 1e-9))
            return mantissa * power;
    }
    return 10 * power;
}

QString fixed(double value, int decimals)
{
    QString text = QString::number(std::fabs(value), 'f', decimals);
    const bool zero = text.count(QLatin1Char('0')) + text.count(QLatin1Char('.')) == text.size();
    return value < 0 && !zero ? QChar(0x2212) + text : text;
}

int decimalsFor(double step)
{
    int decimals = 0;
    for (double s = step; decimals < 9 && std::fabs(s - std::round(s)) > 1e-6 * s; s *= 10)
        ++decimals;
    return decimals;
}

QString superscript(int number)
{
    static const QString digits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
    QString text = number < 0 ? QStringLiteral("⁻") : QString();
    for (const QChar digit : QString::number(std::abs(number)))
        text += digits[digit.digitValue()];
    return text;
}

/// 0.000000002 as 2·10⁻⁹, all ticks with one power.
QString withPower(double value, int power, int decimals)
{
    if (value == 0)
        return QStringLiteral("0");
    return fixed(value * std::pow(10.0, -power), decimals) + QStringLiteral("·10") + superscript(power);
}

std::vector<Tick> linearTicks(const AxisSpec& axis, double low, double high, int wanted)
{
    std::vector<Tick> ticks;
    const double step = linearStep(axis, high - low, wanted);
    const double first = std::ceil(low / step - 1e-9);
    const double last = std::floor(high / step + 1e-9);
    if (!(last - first < 200))
        return ticks;
    const double largest = std::max(std::fabs(first), std::fabs(last)) * step;
    Prefix prefix = prefixFor(axis, largest);
    if (binaryBytes(axis) && decimalsFor(step / prefix.factor) > 1 && largest <= 2 * prefix.factor)
        prefix = prefixFor(axis, prefix.factor / 2); // 1024, 896, 768 GiB rather than 0.875 TiB
    const int decimals = decimalsFor(step / prefix.factor);
    const QString unit = unitWord(axis, prefix);
    const bool tiny = axis.unit == Unit::One && largest > 0 && largest < 1e-3;
    const int power = tiny ? int(std::floor(std::log10(largest) + 1e-9)) : 0;
    for (double i = first; i <= last + 0.5; ++i) {
        const double value = i * step;
        QString text = tiny ? withPower(value, power, decimalsFor(step * std::pow(10.0, -power)))
                            : fixed(value / prefix.factor, decimals);
        if (i > last - 0.5 && !unit.isEmpty())
            text += QLatin1Char(' ') + unit;
        ticks.push_back({value, text + axis.suffix});
    }
    return ticks;
}

constexpr double longestCount = 1e7; ///< as digits; what is longer is a power

QString twoToThe(int exponent)
{
    return QStringLiteral("2") + superscript(exponent);
}

std::vector<Tick> powersOfTwo(const AxisSpec& axis, double low, double high, int wanted)
{
    const int first = static_cast<int>(std::ceil(std::log2(low) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log2(high) + 1e-9));
    std::vector<Tick> ticks;
    int step = 1;
    while ((last - first) / step + 1 > std::max(2, wanted))
        ++step;
    std::vector<int> powers;
    for (int k = first; k <= last; ++k) {
        if (k % step == 0)
            powers.push_back(k);
    }
    if (powers.size() < 2 && last > first)
        powers = {first, last};
    for (const int k : powers)
        ticks.push_back({std::ldexp(1.0, k), axisValueText(axis, std::ldexp(1.0, k), 4)});
    // One form on one axis: where the longest needs an exponent, all have one.
    if (axis.unit == Unit::One && !ticks.empty() && ticks.back().value >= longestCount) {
        for (Tick& tick : ticks)
            tick.text = twoToThe(int(std::lround(std::log2(tick.value))));
    }
    return ticks;
}

std::vector<double> decadePositions(double low, double high, std::initializer_list<double> mantissas, int stride)
{
    std::vector<double> values;
    const int first = static_cast<int>(std::floor(std::log10(low) - 1e-9));
    const int last = static_cast<int>(std::ceil(std::log10(high) + 1e-9));
    for (int k = first; k <= last; ++k) {
        if (((k % stride) + stride) % stride != 0)
            continue;
        for (const double m : mantissas) {
            const double value = m * std::pow(10.0, k);
            if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
                values.push_back(value);
        }
    }
    return values;
}

std::vector<Tick> decadeTicks(const AxisSpec& axis, double low, double high, int wanted)
{
    const auto most = static_cast<std::size_t>(std::max(2, wanted));
    auto values = decadePositions(low, high, {1, 2, 5}, 1);
    if (values.size() > most)
        values = decadePositions(low, high, {1, 3}, 1);
    for (int stride = 1; values.size() > most && stride < 400; ++stride)
        values = decadePositions(low, high, {1}, stride);
    if (const auto decades = decadePositions(low, high, {1}, 1); values.size() < 2 && decades.size() >= 2)
        values = {decades.front(), decades.back()};
    if (values.size() < 2) { // little more than one decade
        auto finer = decadePositions(low, high, {1, 3}, 1);
        if (finer.size() < 2)
            finer = decadePositions(low, high, {1, 2, 5}, 1);
        if (finer.size() >= 2)
            values = {finer.front(), finer.back()};
    }
    std::vector<Tick> ticks;
    for (const double value : values)
        ticks.push_back({value, axisValueText(axis, value, 3)});
    return ticks;
}

/// A long name among many is broken in its middle.
QString inTwoLines(QString name, qsizetype names)
{
    constexpr qsizetype many = 6, longer = 8;
    if (names <= many || name.size() <= longer)
        return name;
    qsizetype best = 0; // the break nearest to the middle: in place of a space, or behind a hyphen
    for (qsizetype i = 1; i + 1 < name.size(); ++i) {
        const bool breaks = name[i] == u' ' || name[i] == u'-';
        if (breaks && std::abs(2 * i - name.size()) < std::abs(2 * best - name.size()))
            best = i;
    }
    if (best == 0)
        return name;
    return name[best] == u' ' ? name.replace(best, 1, u'\n') : name.insert(best + 1, u'\n');
}

/// Names that would run into the one before are left out; the crosshair says them.
std::vector<Tick> categoryTicks(const AxisSpec& axis, double low, double high, int wanted)
{
    constexpr double labelWidth = 72, letter = 5.8, gap = 6; // px at the usual size: of a wanted label, of a letter
    const double pitch = wanted * labelWidth / (high - low);
    double taken = -labelWidth;
    std::vector<Tick> ticks;
    for (qsizetype i = 0; i < axis.names.size(); ++i) {
        const auto x = static_cast<double>(i);
        const QString name = inTwoLines(axis.names[i], axis.names.size());
        qsizetype longest = 0;
        for (const QString& line : name.split(u'\n'))
            longest = std::max(longest, line.size());
        const double half = (double(longest) * letter + gap) / 2;
        if (x < low || x > high || (x - low) * pitch - half < taken)
            continue;
        ticks.push_back({x, name});
        taken = (x - low) * pitch + half;
    }
    return ticks;
}

} // namespace

std::vector<Tick> majorTicks(const AxisSpec& axis, double low, double high, int wanted)
{
    if (!std::isfinite(low) || !std::isfinite(high) || !(high > low))
        return {};
    wanted = std::max(2, wanted);
    if (!axis.names.isEmpty())
        return categoryTicks(axis, low, high, wanted);
    if (axis.log == 0 || low <= 0)
        return linearTicks(axis, low, high, wanted);
    auto ticks = axis.log == 2 && (axis.unit != Unit::Byte || binaryBytes(axis)) ? powersOfTwo(axis, low, high, wanted)
                                                                                 : decadeTicks(axis, low, high, wanted);
    return ticks.size() >= 2 ? ticks : linearTicks(axis, low, high, wanted);
}

std::vector<Tick> byteTicks(ByteStyle style, double low, double high, int wanted)
{
    constexpr qsizetype mostDigits = 6;
    AxisSpec spec;
    spec.unit = Unit::Byte;
    spec.bytes = style;
    std::vector<Tick> ticks = majorTicks(spec, low, high, wanted);
    const bool isShort =
        std::ranges::all_of(ticks, [](const Tick& tick) { return tick.text.section(u' ', 0, 0).size() <= mostDigits; });
    if (low <= 0 || isShort)
        return ticks;
    ticks = majorTicks(spec, 0, high - low, wanted);
    for (Tick& tick : ticks) {
        tick.text = tick.value == 0 ? axisValueText(spec, low) : u'+' + tick.text;
        tick.value += low;
    }
    return ticks;
}

std::vector<double> minorTicks(const AxisSpec& axis, double low, double high, int wanted)
{
    if (axis.log == 0 || !axis.names.isEmpty() || low <= 0 || !(high > low))
        return {};
    std::vector<double> values;
    if (axis.log == 2) {
        const double span = std::log2(high / low);
        if (!(span <= 4.0 * wanted))
            return {};
        for (double k = std::ceil(std::log2(low)); k <= std::log2(high); ++k)
            values.push_back(std::exp2(k));
        return values;
    }
    if (!(std::log10(high / low) <= 0.5 * wanted))
        return {};
    return decadePositions(low, high, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 1);
}

QString axisValueText(const AxisSpec& axis, double value, int digits)
{
    if (!axis.names.isEmpty()) {
        const auto index = static_cast<qsizetype>(std::llround(value));
        return index >= 0 && index < axis.names.size() ? axis.names[index] : QString();
    }
    int exponent = 0;
    if (axis.unit == Unit::One && axis.log == 2 && value > 0 && value < 1 && std::frexp(value, &exponent) == 0.5)
        return QStringLiteral("1/") + powerOfTwoText(1 / value) + axis.suffix;
    if (axis.unit == Unit::One && value >= 1 && value == std::floor(value))
        return axis.log == 2 ? powerOfTwoText(value)
                             : QString::fromStdString(quantityText(value, Unit::One, axis.bytes, 7)) + axis.suffix;
    return QString::fromStdString(quantityText(value, axis.unit, axis.bytes, digits)) + axis.suffix;
}

QString axisReadoutText(const AxisSpec& axis, double value, int digits)
{
    const QString text = axisValueText(axis, value, digits);
    if (!(axis.one > 0) || !std::isfinite(value))
        return text;
    const std::string stands = quantityText(value * axis.one, axis.oneUnit, axis.bytes, digits);
    return QStringLiteral("%1 (%2)").arg(text, QString::fromStdString(stands));
}

QString powerOfTwoText(double value)
{
    if (value < longestCount)
        return QString::number(value, 'f', 0);
    int exponent = 0;
    if (std::frexp(value, &exponent) != 0.5)
        return QString::fromStdString(quantityText(value, Unit::One, ByteStyle::Binary, 4));
    return twoToThe(exponent - 1);
}

} // namespace memscape
