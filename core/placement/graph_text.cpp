// SPDX-License-Identifier: Apache-2.0
// Graphs as they are written by hand, a statement for each tensor: read, put in order, shaped, written back.
#include "core/placement/operator_graph.h"

#include "core/base/number.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Elements along one side; an input of three sizes and more is written back as one.
constexpr double mostSize = mostTensorBytes;
constexpr std::size_t longestName = 64;

struct KindRow
{
    NodeKind kind;
    std::string_view word;
    std::size_t sizes; ///< that must be given; SIZE_MAX: one or more
    std::size_t leastInputs, inputs;
};
constexpr std::size_t anySizes = SIZE_MAX;
constexpr std::array<KindRow, 9> kindRows{{{NodeKind::Input, "input", anySizes, 0, 0},
                                           {NodeKind::Matmul, "matmul", 3, 1, 2},
                                           {NodeKind::Add, "add", 0, 2, 2},
                                           {NodeKind::Multiply, "mul", 0, 2, 2},
                                           {NodeKind::Relu, "relu", 0, 1, 1},
                                           {NodeKind::Gelu, "gelu", 0, 1, 1},
                                           {NodeKind::ToHost, "cpu", 0, 1, 1},
                                           {NodeKind::ToDevice, "gpu", 0, 1, 1},
                                           {NodeKind::Item, "item", 0, 1, 1}}};

/// A statement as it is written.
struct Statement
{
    std::string place; ///< "statement 3, \"a: matmul …\""
    std::string name;
    std::optional<Place> pinned;
    const KindRow* kind = nullptr;
    std::vector<std::int64_t> sizes;
    std::vector<std::string> inputs;
};

std::vector<std::string> graphWords(std::string_view text)
{
    std::vector<std::string> words;
    std::string word;
    for (const char c : text) {
        if (c == ' ' || c == '\t' || c == '\r' || c == ',') {
            if (!word.empty())
                words.push_back(std::move(word));
            word.clear();
        } else {
            word += c;
        }
    }
    if (!word.empty())
        words.push_back(std::move(word));
    return words;
}

bool isName(std::string_view text)
{
    const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && text.size() <= longestName && isLetter(text.front())
        && std::ranges::all_of(text,
                               [&](char c) { return isLetter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; });
}

Result<std::int64_t> graphSize(const std::string& word, const std::string& place)
{
    const auto number = parseNumber(word);
    if (!number || !(*number >= 1) || *number > mostSize || *number != std::floor(*number))
        return fail("graph.range", fmt::format("{} is no size", quotedForMessage(word)),
                    "a size is a whole number from 1 to 2^48, as in `a: matmul 512 4096 4096 <- x`", place);
    return std::int64_t(*number);
}

Result<Statement> statementOf(std::string_view text, std::size_t number)
{
    Statement one;
    one.place = fmt::format("statement {}, {}", number, quotedForMessage(text));
    const auto wrong = [&](std::string message) {
        return fail("graph.syntax", std::move(message),
                    "write `name: kind sizes <- inputs`, as in "
                    "`a: matmul 512 4096 4096 <- x`",
                    one.place);
    };
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos)
        return wrong("there is no colon behind a name");
    std::string_view name = trimmed(text.substr(0, colon)), rest = text.substr(colon + 1), inputs;
    if (const std::size_t at = name.find('@'); at != std::string_view::npos) {
        const std::string_view where = trimmed(name.substr(at + 1));
        if (where != "host" && where != "device")
            return fail("graph.syntax", fmt::format("{} is no place", quotedForMessage(where)),
                        "write name@device or name@host", one.place);
        one.pinned = where == "host" ? Place::Host : Place::Device;
        name = trimmed(name.substr(0, at));
    }
    if (!isName(name))
        return wrong(fmt::format("{} is no name: a letter, then letters, digits, . _ or -, at most {}",
                                 quotedForMessage(name), longestName));
    one.name = std::string(name);
    if (const std::size_t arrow = rest.find("<-"); arrow != std::string_view::npos) {
        inputs = rest.substr(arrow + 2);
        rest = rest.substr(0, arrow);
    }
    const std::vector<std::string> words = graphWords(rest);
    if (words.empty())
        return wrong("there is no kind behind the colon");
    const auto row = std::ranges::find(kindRows, words.front(), &KindRow::word);
    if (row == kindRows.end()) {
        std::vector<std::string> known;
        for (const KindRow& kind : kindRows)
            known.emplace_back(kind.word);
        return fail("graph.kind", fmt::format("{} is no operator", quotedForMessage(words.front())),
                    fmt::format("choose one of {}{}", join(known, ", "), nearNames(words.front(), known)), one.place);
    }
    one.kind = &*row;
    for (std::size_t i = 1; i < words.size(); ++i) {
        MEMSCAPE_TRY(size, graphSize(words[i], one.place));
        one.sizes.push_back(size);
    }
    one.inputs = graphWords(inputs);
    const bool rightSizes = row->sizes == anySizes ? !one.sizes.empty() : one.sizes.size() == row->sizes;
    if (!rightSizes)
        return wrong(row->sizes == anySizes ? "an input needs its sizes"
                         : row->sizes == 3  ? "matmul needs three sizes m n k: m × k by k × n"
                                            : fmt::format("{} takes its sizes from its input: give none", row->word));
    if (one.inputs.size() < row->leastInputs || one.inputs.size() > row->inputs)
        return wrong(row->inputs == 0                      ? "an input has no inputs"
                         : row->leastInputs == row->inputs ? fmt::format(
                               "{} has {} input{}, and {} {} given", row->word, row->inputs,
                               row->inputs == 1 ? "" : "s", one.inputs.size(), one.inputs.size() == 1 ? "is" : "are")
                                                           : fmt::format("{} has one or two inputs", row->word));
    return one;
}

Result<std::vector<Statement>> statementsOf(std::string_view text)
{
    if (text.size() > mostGraphText)
        return fail("graph.limit",
                    fmt::format("the graph has {} bytes, and {} is the most", text.size(), mostGraphText),
                    "write a smaller graph");
    std::vector<Statement> all;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(";\n"), text.size());
        std::string_view line = text.substr(0, end);
        // A remark goes on to the end of its line, also behind a semicolon.
        std::size_t next = end;
        if (const std::size_t remark = line.find('#'); remark != std::string_view::npos) {
            line = line.substr(0, remark);
            next = std::min(text.find('\n'), text.size());
        }
        text = text.substr(std::min(text.size(), next + 1));
        line = trimmed(line);
        if (line.empty())
            continue;
        if (all.size() == mostNodes)
            return fail("graph.limit", fmt::format("the graph has more than {} statements", mostNodes),
                        "write a smaller graph");
        MEMSCAPE_TRY(one, statementOf(line, all.size() + 1));
        all.push_back(std::move(one));
    }
    if (all.empty())
        return fail("graph.empty", "the graph has no statements",
                    "write for instance `x: input 512 4096; y: gelu <- x`");
    return all;
}

/// Inputs as numbers of statements.
Result<std::vector<std::vector<std::size_t>>> linksOf(const std::vector<Statement>& statements)
{
    std::map<std::string, std::size_t, std::less<>> byName;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < statements.size(); ++i) {
        if (!byName.emplace(statements[i].name, i).second)
            return fail("graph.twice", fmt::format("{} is defined twice", quotedForMessage(statements[i].name)),
                        "give each statement a name of its own", statements[i].place);
        names.push_back(statements[i].name);
    }
    std::vector<std::vector<std::size_t>> links(statements.size());
    for (std::size_t i = 0; i < statements.size(); ++i) {
        for (const std::string& input : statements[i].inputs) {
            const auto found = byName.find(input);
            if (found == byName.end())
                return fail("graph.undefined", fmt::format("{} is not defined", quotedForMessage(input)),
                            "define it with a statement of its own, for instance `" + input.substr(0, longestName)
                                + ": input 512 4096`" + nearNames(input, names),
                            statements[i].place);
            links[i].push_back(found->second);
        }
    }
    return links;
}

/// An order in which every input comes before what needs it, as near to the text's as can be.
Result<std::vector<std::size_t>> orderOf(const std::vector<Statement>& statements,
                                         const std::vector<std::vector<std::size_t>>& links)
{
    enum class State : std::uint8_t { New, Open, Done };
    std::vector<State> states(statements.size(), State::New);
    std::vector<std::size_t> order, path;
    for (std::size_t root = 0; root < statements.size(); ++root) {
        path.push_back(root);
        while (!path.empty()) {
            const std::size_t at = path.back();
            if (states[at] == State::Done) {
                path.pop_back();
                continue;
            }
            states[at] = State::Open;
            const auto waits =
                std::ranges::find_if(links[at], [&](std::size_t input) { return states[input] != State::Done; });
            if (waits == links[at].end()) {
                states[at] = State::Done;
                order.push_back(at);
                path.pop_back();
            } else if (states[*waits] == State::Open) {
                std::string circle;
                for (auto one = std::ranges::find(path, *waits); one != path.end(); ++one)
                    circle += fmt::format("{} waits for ", statements[*one].name);
                if (circle.size() > 300)
                    circle = circle.substr(0, 300) + "… waits for ";
                return fail("graph.cycle", circle + statements[*waits].name,
                            "a graph has no circles: break it at one of these", statements[at].place);
            } else {
                path.push_back(*waits);
            }
        }
    }
    return order;
}

std::string nodeShapeText(const GraphNode& node)
{
    return node.columns == 1 ? countText(double(node.rows)) : fmt::format("{} × {}", node.rows, node.columns);
}

/// Sizes in elements, and bytes from them.
Result<void> shapeNode(GraphNode& node, const Statement& written, const std::vector<GraphNode>& nodes, int elementBytes)
{
    double elements = 1;
    const auto inputOf = [&](std::size_t i) -> const GraphNode& { return nodes[node.inputs[i]]; };
    const auto mismatch = [&](const GraphNode& input, const std::string& needs) {
        return fail("graph.shape",
                    fmt::format("{} is {}, and {} needs {}", input.name, nodeShapeText(input), node.name, needs),
                    "change the sizes", written.place);
    };
    const auto elementsOf = [](const GraphNode& one) { return double(one.rows) * double(one.columns); };
    if (node.kind == NodeKind::Input) {
        for (const std::int64_t size : written.sizes)
            elements *= double(size);
        if (written.sizes.size() == 2) {
            node.rows = written.sizes[0];
            node.columns = written.sizes[1];
        }
    } else if (node.kind == NodeKind::Matmul) {
        node.rows = written.sizes[0];
        node.columns = written.sizes[1];
        node.inner = written.sizes[2];
        elements = double(node.rows) * double(node.columns);
        if (elementsOf(inputOf(0)) != double(node.rows) * double(node.inner))
            return mismatch(inputOf(0), fmt::format("{} × {}", node.rows, node.inner));
        const double weights = double(node.inner) * double(node.columns);
        if (node.inputs.size() == 2 && elementsOf(inputOf(1)) != weights)
            return mismatch(inputOf(1), fmt::format("{} × {}", node.inner, node.columns));
        if (weights * elementBytes > mostTensorBytes)
            elements = weights; // refused below
        else if (node.inputs.size() == 1)
            node.weightBytes = node.updatedBytes = std::int64_t(weights) * elementBytes;
    } else {
        elements = node.kind == NodeKind::Item ? 1 : elementsOf(inputOf(0));
        if (node.kind != NodeKind::Item) {
            node.rows = inputOf(0).rows;
            node.columns = inputOf(0).columns;
        }
        if (node.inputs.size() == 2 && elementsOf(inputOf(1)) != elements)
            return mismatch(inputOf(1), nodeShapeText(inputOf(0)));
    }
    if (!(elements * elementBytes <= mostTensorBytes))
        return fail(
            "graph.range",
            fmt::format("a tensor of {} would take {}", node.name, quantityText(elements * elementBytes, Unit::Byte)),
            "choose sizes of at most " + bytesText(mostTensorBytes), written.place);
    if (node.rows == 0) {
        node.rows = std::int64_t(elements);
        node.columns = 1;
    }
    node.outputBytes = std::int64_t(elements) * elementBytes;
    return {};
}

} // namespace

std::string nearNames(std::string_view wanted, const std::vector<std::string>& names)
{
    const std::vector<std::string> near = nearest(wanted, names);
    return near.empty() ? std::string() : "; did you mean " + join(near, " or ") + "?";
}

std::string_view nodeKindText(NodeKind kind)
{
    const auto row = std::ranges::find(kindRows, kind, &KindRow::kind);
    return row == kindRows.end() ? "layer" : row->word;
}

bool isGraphText(std::string_view text)
{
    if (text.find("<-") != std::string_view::npos)
        return true;
    const std::size_t colon = text.find(':');
    return colon != std::string_view::npos && colon + 1 < text.size()
        && (text[colon + 1] == ' ' || text[colon + 1] == '\t' || text[colon + 1] == '\n');
}

Result<OperatorGraph> parseGraph(std::string_view text, int elementBytes)
{
    MEMSCAPE_TRY(statements, statementsOf(text));
    MEMSCAPE_TRY(links, linksOf(statements));
    MEMSCAPE_TRY(order, orderOf(statements, links));
    OperatorGraph graph;
    graph.elementBytes = elementBytes;
    std::vector<std::uint32_t> placeInOrder(statements.size(), 0);
    for (const std::size_t at : order) {
        const Statement& written = statements[at];
        GraphNode node;
        node.name = written.name;
        node.kind = written.kind->kind;
        node.pinned = written.pinned;
        for (const std::size_t input : links[at])
            node.inputs.push_back(placeInOrder[input]);
        const bool isFixed =
            node.isCopy() && node.pinned && (*node.pinned == Place::Host) != (node.kind != NodeKind::ToDevice);
        if (isFixed)
            return fail("graph.syntax", fmt::format("{} makes what is elsewhere", written.kind->word),
                        "cpu and item end on the host, gpu on the device: leave the place out", written.place);
        MEMSCAPE_CHECK(shapeNode(node, written, graph.nodes, elementBytes));
        placeInOrder[at] = std::uint32_t(graph.nodes.size());
        graph.nodes.push_back(std::move(node));
    }
    if (std::ranges::none_of(graph.nodes, [](const GraphNode& node) { return node.computes(); }))
        return fail("graph.empty", "the graph has inputs and no operator",
                    "add one, for instance `y: gelu <- " + graph.nodes.front().name + "`");
    return graph;
}

} // namespace memscape
