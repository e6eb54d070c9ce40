// SPDX-License-Identifier: Apache-2.0
#include "core/access/views/view_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memscape {

namespace {

/// "(2, 3)", "(2,)": a Python tuple.
std::string tuple(const Sizes& values)
{
    return fmt::format("({}{})", fmt::join(values, ", "), values.size() == 1 ? "," : "");
}

std::size_t wrapped(std::int64_t dim, std::size_t rank)
{
    return std::size_t(dim < 0 ? dim + std::int64_t(std::max<std::size_t>(rank, 1)) : dim);
}

std::string numberOrNothing(const std::optional<std::int64_t>& number)
{
    return number ? fmt::format("{}", *number) : std::string();
}

/// "[:, 1:3]": `index` in the place of one dimension.
std::string indexed(std::size_t dim, const std::string& index)
{
    std::string text = "[";
    for (std::size_t i = 0; i < dim; ++i)
        text += ":, ";
    return text + index + "]";
}

const char* torchFormat(MemoryFormat format)
{
    return format == MemoryFormat::ChannelsLast3d ? "torch.channels_last_3d" : "torch.channels_last";
}

std::string pytorchCall(const ViewOperation& call)
{
    if (call.name == "slice") {
        const auto& a = call.arguments;
        const std::string step = *a[3].integer == 1 ? "" : ":" + numberOrNothing(a[3].integer);
        const std::string range = numberOrNothing(a[1].integer) + ":" + numberOrNothing(a[2].integer) + step;
        const std::int64_t dim = *a[0].integer;
        if (dim >= 0)
            return indexed(std::size_t(dim), range);
        std::string behind;
        for (std::int64_t i = dim; i < -1; ++i)
            behind += ", :";
        return "[..., " + range + behind + "]";
    }
    if (call.name == "contiguous" || call.name == "clone") {
        const Argument& format = call.arguments[0];
        const bool isPlain = format.isPreserve == (call.name == "clone") && format.format == MemoryFormat::Contiguous;
        if (isPlain)
            return fmt::format(".{}()", call.name);
        return fmt::format(".{}(memory_format={})", call.name,
                           format.format == MemoryFormat::Contiguous ? "torch.contiguous_format"
                                                                     : torchFormat(format.format));
    }
    if (call.name == "contiguous_cl" || call.name == "contiguous_cl3d")
        return fmt::format(".contiguous(memory_format=torch.channels_last{})", call.name.ends_with("3d") ? "_3d" : "");
    if (call.name == "chunk")
        return fmt::format(".chunk({}, dim={})[{}]", call.integer(0), call.integer(1), call.integer(2));
    if (call.name == "sum_dim")
        return fmt::format(".sum({}{})", call.integer(0), call.integer(1) != 0 ? ", keepdim=True" : "");
    if (call.name == "squeeze_dim")
        return fmt::format(".squeeze({})", call.integer(0));
    if (call.name == "swap_last_two")
        return ".mT";
    if (call.name == "add_contig")
        return ".add(torch.zeros(x.shape))";
    if (call.name == "empty_like")
        return ".clone()";
    std::string text = "." + viewText(call);
    const bool isEmptyList = call.arguments.size() == 1 && text.ends_with("()")
        && findOperation(call.name)->arguments[0].kind == ArgumentKind::List;
    if (isEmptyList)
        text.insert(text.size() - 1, "()");
    std::string spaced; // "a,b" is written "a, b"
    for (const char c : text) {
        spaced += c;
        if (c == ',')
            spaced += ' ';
    }
    return spaced;
}

/// A copy of `x` whose memory has channels behind the other dimensions.
std::string channelsLast(const std::string& x, bool is3d)
{
    return is3d ? fmt::format("np.ascontiguousarray({}.transpose(0, 2, 3, 4, 1)).transpose(0, 4, 1, 2, 3)", x)
                : fmt::format("np.ascontiguousarray({}.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)", x);
}

class NumpyWriter
{
public:
    NumpyWriter(const TensorView& base, std::int64_t itemBytes)
        : m_before(base)
        , m_itemBytes(itemBytes)
    { }

    void add(const ViewStep& step)
    {
        m_text = written(step);
        if (step.copied)
            m_storage = m_text;
        m_before = step.view;
    }
    const std::string& text() const { return m_text; }

private:
    std::string written(const ViewStep& step) const
    {
        const ViewOperation& call = step.operation;
        const std::string& name = call.name;
        const bool isScalar = m_before.rank() == 0; // NumPy's scalars have no axis, PyTorch's have -1 and 0
        if (isScalar && step.view.rank() == 0 && !step.copied && name != "as_strided")
            return m_text;
        const auto dim = [&](std::size_t i) { return wrapped(call.integer(i), m_before.size.size()); };
        const Sizes& size = step.view.size;
        if (name == "transpose" || name == "swap_last_two") {
            const bool isLast = name == "swap_last_two";
            return fmt::format("{}.swapaxes({}, {})", m_text, isLast ? -2 : call.integer(0),
                               isLast ? -1 : call.integer(1));
        }
        if (name == "permute")
            return fmt::format("{}.transpose{}", m_text, tuple(call.list(0)));
        if (name == "movedim")
            return fmt::format("np.moveaxis({}, {}, {})", m_text, tuple(call.list(0)), tuple(call.list(1)));
        if (name == "t")
            return m_text + ".T";
        if (name == "select")
            return m_text + indexed(dim(0), fmt::format("{}", call.integer(1)));
        if (name == "narrow" || name == "chunk")
            return narrowed(step, name == "narrow" ? dim(0) : dim(1));
        if (name == "slice")
            return m_text
                + indexed(dim(0),
                          fmt::format("{}:{}:{}", numberOrNothing(call.arguments[1].integer),
                                      numberOrNothing(call.arguments[2].integer), call.integer(3)));
        if (name == "expand")
            return fmt::format("np.broadcast_to({}, {})", m_text, tuple(size));
        if (name == "unsqueeze")
            return fmt::format("np.expand_dims({}, {})", m_text, call.integer(0));
        if (name.starts_with("squeeze") || name == "view" || name == "reshape" || name == "flatten"
            || name == "unflatten")
            return fmt::format("{}.reshape({})", m_text,
                               size.empty() ? "()" : fmt::format("{}", fmt::join(size, ", ")));
        if (name == "unfold" && isScalar)
            return m_text + ".reshape(1)" + (size[0] == 0 ? "[:0]" : "");
        if (name == "unfold")
            return fmt::format("np.lib.stride_tricks.sliding_window_view({}, {}, axis={}){}", m_text, call.integer(1),
                               dim(0), indexed(dim(0), fmt::format("::{}", call.integer(2))));
        if (name == "diagonal")
            return fmt::format("{}.diagonal({}, {}, {})", m_text, call.integer(0), call.integer(1), call.integer(2));
        if (name == "as_strided")
            return asStrided(step.view);
        return copied(step);
    }

    std::string narrowed(const ViewStep& step, std::size_t dim) const
    {
        const std::int64_t stride = m_before.stride[dim];
        std::int64_t first = stride == 0 ? 0 : (step.view.offset - m_before.offset) / stride;
        if (step.operation.name == "narrow" && stride == 0)
            first = step.operation.integer(1);
        return m_text + indexed(dim, fmt::format("{}:{}", first, first + step.view.size[dim]));
    }

    std::string asStrided(const TensorView& view) const
    {
        Sizes bytes = view.stride;
        for (std::int64_t& one : bytes)
            one *= m_itemBytes;
        return fmt::format("np.lib.stride_tricks.as_strided({}.ravel('K')[{}:], {}, {})", m_storage, view.offset,
                           tuple(view.size), tuple(bytes));
    }

    std::string copied(const ViewStep& step) const
    {
        const ViewOperation& call = step.operation;
        const std::string& name = call.name;
        const bool isCl = name == "contiguous_cl"
            || (!call.arguments.empty() && call.arguments[0].format == MemoryFormat::ChannelsLast);
        const bool isCl3d = name == "contiguous_cl3d"
            || (!call.arguments.empty() && call.arguments[0].format == MemoryFormat::ChannelsLast3d);
        if (name == "flip")
            return fmt::format("np.flip({}, {}).copy()", m_text, tuple(call.list(0)));
        if (name == "repeat")
            return fmt::format("np.tile({}, {})", m_text, tuple(call.list(0)));
        if (name == "neg")
            return fmt::format("(-{})", m_text);
        if (name == "sum_dim" && m_before.rank() == 0)
            return m_text + ".copy()";
        if (name == "sum_dim")
            return fmt::format("{}.sum(axis={}, keepdims={})", m_text, call.integer(0),
                               call.integer(1) != 0 ? "True" : "False");
        if (isCl || isCl3d)
            return step.copied ? channelsLast(m_text, isCl3d) : m_text;
        if (name == "contiguous")
            return step.copied ? fmt::format("np.ascontiguousarray({})", m_text) : m_text;
        return m_text + ".copy(order='K')";
    }

    TensorView m_before;
    std::int64_t m_itemBytes;
    std::string m_text = "x", m_storage = "x";
};

} // namespace

std::string pytorchCode(const std::vector<ViewStep>& steps)
{
    std::string text = "x";
    for (const ViewStep& step : steps) {
        if (step.ok)
            text += pytorchCall(step.operation);
    }
    return text;
}

std::string numpyCode(const TensorView& base, const std::vector<ViewStep>& steps, std::int64_t itemBytes)
{
    NumpyWriter writer(base, itemBytes);
    for (const ViewStep& step : steps) {
        if (step.ok)
            writer.add(step);
    }
    return writer.text();
}

std::string byteStridesText(const TensorView& view, std::int64_t itemBytes)
{
    Sizes bytes = view.stride;
    for (std::int64_t& one : bytes)
        one *= itemBytes;
    return tuple(bytes);
}

} // namespace memscape
