// SPDX-License-Identifier: Apache-2.0
// The typed parameter schema. The form in the window, the flags of the command line, the JSON, the
// help and the errors all come from it.
#pragma once

#include "core/base/json.h"
#include "core/base/number.h"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace memscape {

/// A Text is free: the name of a model, a path. Its commas and colons are its own.
enum class ParameterKind { Integer, Real, Choice, Flag, Text };
enum class Scale { Linear, Log2 };
/// The devices on which a parameter means something; Pytorch: those that are a PyTorch.
enum class AppliesTo { Everywhere, Hosts, Gpus, Pytorch };

struct ChoiceValue
{
    std::string key;   ///< "float32"
    std::string label; ///< "float32 (4 B)"
    std::string help;
};

/// A Text is at most this many bytes unless its spec asks for fewer.
inline constexpr std::size_t textLimit = 4096;

/// One parameter. Numbers are in SI base units; Integer covers bytes too (unit Byte). Of a Text,
/// minimum and maximum bound its length in bytes (0 as maximum: textLimit).
struct ParameterSpec
{
    std::string key;   ///< "stride"
    std::string label; ///< "stride"
    std::string help;  ///< a sentence or two that teach; tooltip, --help and man page
    ParameterKind kind = ParameterKind::Integer;
    Unit unit = Unit::One;
    double minimum = 0, maximum = 0;
    Scale scale = Scale::Linear;      ///< how a slider moves
    std::vector<ChoiceValue> choices; ///< of a Choice; of an Integer its values that are words: {"0", "all"}
    std::string standard;             ///< the default, as text that parses
    std::string suffix = {};          ///< shown after a number without unit: "elements"
    /// A Choice may have a counted form besides its keys: "every" allows every:K, K = 1 to 65536.
    std::string counted = {};
    /// Elsewhere it is accepted and changes nothing; a form leaves it out.
    AppliesTo appliesTo = AppliesTo::Everywhere;
    /// The heading that a form folds it under, "parallelism and offload"; empty for the basic ones,
    /// which are always in sight.
    std::string group = {};
};

using Schema = std::vector<ParameterSpec>;
const ParameterSpec* findParameter(const Schema& schema, std::string_view key);
std::vector<std::string> keysOf(const Schema& schema);
/// The headings of a schema in the order of their first parameter; "" (the basic ones) comes first.
std::vector<std::string> groupsOf(const Schema& schema);
/// Puts those parameters under that heading. Asserts that the schema has them.
void setGroup(Schema& schema, const std::string& group, std::initializer_list<std::string_view> keys);

/// Numbers are doubles (integers are whole and at most 2^53), choices are their key, texts are text.
using ParameterValue = std::variant<double, std::string, bool>;

/// A parameter given as several values: `1:128:x2`, `0:64:8`, `1,2,5`.
struct Sweep
{
    std::string key;
    std::vector<ParameterValue> values; ///< in the order given, at least one
};

/// Every parameter of a schema with its value, and at most one sweep. A swept parameter's own value
/// is the sweep's first.
class Parameters
{
public:
    const std::vector<std::pair<std::string, ParameterValue>>& values() const { return m_values; }
    const std::optional<Sweep>& sweep() const { return m_sweep; }

    bool has(std::string_view key) const;
    double number(std::string_view key) const; ///< asserts that the key is a number
    std::int64_t integer(std::string_view key) const;
    const std::string& choice(std::string_view key) const; ///< asserts that the key is a choice
    const std::string& text(std::string_view key) const;   ///< asserts that the key is a text
    bool flag(std::string_view key) const;

    void set(std::string_view key, ParameterValue value); ///< unchecked; readers use resolve()
    void setSweep(std::optional<Sweep> sweep);
    /// The same parameters with one value in place of the sweep.
    Parameters at(std::string_view key, const ParameterValue& value) const;

    bool operator==(const Parameters&) const;

private:
    std::vector<std::pair<std::string, ParameterValue>> m_values;
    std::optional<Sweep> m_sweep;
};
bool operator==(const Sweep& a, const Sweep& b);

/// At most this many points in a sweep, and steps of a range, those included that round to the same integer.
inline constexpr std::size_t sweepLimit = 4096;

/// Keys and values as text.
using ParameterTexts = std::vector<std::pair<std::string, std::string>>;

/// Text assignments ("stride=4", "bytes=1GiB", "stride=1:128:x2") onto a schema; what is not named
/// takes its default. The first '=' ends the key. Errors name the parameter as place: parameter.unknown (with near
/// names), parameter.syntax, parameter.type, parameter.range (the hint holds the range), parameter.choice (near
/// choices), parameter.twice, sweep.syntax, sweep.limit, sweep.step (it does not move the value), sweep.several.
Result<Parameters> resolve(const Schema& schema, const std::vector<std::string>& assignments);
Result<Parameters> resolve(const Schema& schema, const std::vector<std::pair<std::string, std::string>>& assignments);

/// One value of one parameter from text, checked against its spec.
Result<ParameterValue> parseValue(const ParameterSpec& spec, std::string_view text);
/// Whether a line about a run names this parameter: it is a basic one, or its value is not the default.
bool isNamed(const ParameterSpec& spec, const ParameterValue& value);
/// `1:128:x2`, `0:64:8`, `1,2,5`, or one value (7:7: a sweep of it). A Text is one value; several are
/// written each in double quotes: `"gpt2","from-scratch:hidden=64,layers=2"`.
Result<std::vector<ParameterValue>> parseSweep(const ParameterSpec& spec, std::string_view text);

/// Text that parses back to the same value ("268435456", "float32", "true").
std::string valueText(const ParameterValue& value);
/// For people: "256 MiB", "float32 (4 B)", "4 elements".
std::string valueLabel(const ParameterSpec& spec, const ParameterValue& value, ByteStyle bytes = ByteStyle::Binary);

/// {"stride": 4, "element": "float32", …}; a swept parameter is an array of its values.
Json parametersToJson(const Parameters& parameters);
Result<Parameters> parametersFromJson(const Schema& schema, const JsonReader& reader);
Json schemaToJson(const Schema& schema);

} // namespace memscape
