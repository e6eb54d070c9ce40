// SPDX-License-Identifier: Apache-2.0
// Views and copies. A view shares its storage and keeps it alive; a reshape that no view can express
// is a dense clone and a view of it, as in ATen/native/TensorShape.cpp.
#include "core/network/builder.h"

#include <fmt/format.h>

namespace memscape {

namespace {

std::string text(const Shape& shape)
{
    std::string result = "(";
    for (int i = 0; i < shape.rank; ++i)
        result += fmt::format("{}{}", i ? ", " : "", shape[i]);
    return result + ')';
}

} // namespace

Variable NetworkBuilder::viewOf(OperatorKind kind, Variable& x, const Layout& layout, std::int64_t attribute)
{
    Variable result = record(kind, {x.id()}, {layout, x.dtype(), false}, {}, attribute);
    x.reset();
    return result;
}

Variable NetworkBuilder::view(Variable x, const Shape& shape)
{
    if (!ok())
        return {};
    const auto layout = x.layout().elements() == shape.elements() ? x.layout().viewed(shape) : std::nullopt;
    if (!layout) {
        refuse("network.shape", fmt::format("{} cannot be seen as {}", text(x.shape()), text(shape)));
        return {};
    }
    return viewOf(OperatorKind::View, x, *layout);
}

Variable NetworkBuilder::reshape(Variable x, const Shape& shape)
{
    if (!ok())
        return {};
    if (x.layout().elements() == shape.elements() && !x.layout().viewed(shape))
        x = contiguous(std::move(x));
    return view(std::move(x), shape);
}

Variable NetworkBuilder::transpose(Variable x, int a, int b)
{
    if (!ok())
        return {};
    std::int64_t order = 0;
    for (int i = 0; i < x.shape().rank; ++i) {
        const int from = i == x.shape().at(a) ? x.shape().at(b) : i == x.shape().at(b) ? x.shape().at(a) : i;
        order |= std::int64_t(from) << (4 * i);
    }
    return viewOf(OperatorKind::Permute, x, x.layout().transposed(a, b), order);
}

Variable NetworkBuilder::permute(Variable x, std::initializer_list<int> order)
{
    if (!ok())
        return {};
    std::int64_t attribute = 0;
    int i = 0;
    for (const int from : order)
        attribute |= std::int64_t(from) << (4 * i++);
    return viewOf(OperatorKind::Permute, x, x.layout().permuted({order.begin(), order.size()}), attribute);
}

Variable NetworkBuilder::expand(Variable x, const Shape& shape)
{
    if (!ok())
        return {};
    const auto broadcast = Shape::broadcast(x.shape(), shape);
    if (!broadcast || !(*broadcast == shape)) {
        refuse("network.shape", fmt::format("{} cannot be expanded to {}", text(x.shape()), text(shape)));
        return {};
    }
    if (x.shape() == shape)
        return x;
    return viewOf(OperatorKind::Expand, x, x.layout().expanded(shape));
}

Variable NetworkBuilder::narrow(Variable x, int dimension, std::int64_t length)
{
    if (!ok())
        return {};
    if (length < 0 || length > x.size(dimension)) {
        refuse("network.shape", fmt::format("{} has no {} elements in a row", text(x.shape()), length));
        return {};
    }
    return viewOf(OperatorKind::Narrow, x, x.layout().narrowed(dimension, length), x.shape().at(dimension));
}

Variable NetworkBuilder::select(Variable x, int dimension)
{
    if (!ok())
        return {};
    return viewOf(OperatorKind::Select, x, x.layout().selected(dimension), x.shape().at(dimension));
}

Variable NetworkBuilder::unsqueeze(Variable x, int dimension)
{
    if (!ok())
        return {};
    return viewOf(OperatorKind::View, x, x.layout().unsqueezed(dimension));
}

Variable NetworkBuilder::flatten(Variable x, int from)
{
    if (!ok())
        return {};
    Shape shape;
    std::int64_t rest = 1;
    for (int i = 0; i < x.shape().rank; ++i) {
        if (i < from)
            shape.append(x.shape()[i]);
        else
            rest *= x.shape()[i];
    }
    shape.append(rest);
    return reshape(std::move(x), shape);
}

Variable NetworkBuilder::detach(Variable x)
{
    if (!ok())
        return {};
    Variable result = viewOf(OperatorKind::Detach, x, x.layout());
    m_graph.operators.back().hasGradient = false;
    m_graph.tensors[result.id()].needsGradient = false;
    return result;
}

std::vector<Variable> NetworkBuilder::split(Variable x, const std::vector<std::int64_t>& sizes, int dimension)
{
    std::vector<Variable> parts(sizes.size());
    std::int64_t sum = 0;
    for (const std::int64_t size : sizes)
        sum += size;
    if (ok() && (sum != x.size(dimension) || sizes.size() > 255))
        refuse("network.shape",
               fmt::format("{} cannot be split into {} parts of {} in all", text(x.shape()), sizes.size(), sum));
    if (!ok())
        return parts;
    const TensorId source = x.id();
    const Layout layout = x.layout();
    const DType dtype = x.dtype();
    begin(OperatorKind::Split, {&source, 1}).attribute = layout.shape.at(dimension);
    for (std::size_t i = 0; i < sizes.size(); ++i)
        parts[i] = {*this, addOutput({layout.narrowed(dimension, sizes[i]), dtype, false}, true)};
    x.reset();
    return parts;
}

std::vector<Variable> NetworkBuilder::unbind(Variable x, int dimension)
{
    std::vector<Variable> parts(std::size_t(x.size(dimension)));
    if (ok() && parts.size() > 255)
        refuse("network.shape", fmt::format("{} has too many parts to name", text(x.shape())));
    if (!ok())
        return parts;
    const TensorId source = x.id();
    const Layout layout = x.layout().selected(dimension);
    const DType dtype = x.dtype();
    begin(OperatorKind::Split, {&source, 1}).attribute = x.shape().at(dimension);
    for (Variable& part : parts)
        part = {*this, addOutput({layout, dtype, false}, true)};
    x.reset();
    return parts;
}

std::vector<Variable> NetworkBuilder::chunk(Variable x, int count, int dimension)
{
    const std::int64_t size = x.size(dimension) / count;
    if (ok() && size * count != x.size(dimension))
        refuse("network.shape", fmt::format("{} is not {} equal parts", x.size(dimension), count));
    return split(std::move(x), std::vector<std::int64_t>(std::size_t(count), size), dimension);
}

// --- copies ---------------------------------------------------------------------------------------

Variable NetworkBuilder::contiguous(Variable x)
{
    if (!ok() || x.layout().isContiguous())
        return x;
    return settled(record(OperatorKind::Clone, {x.id()}, {Layout(x.shape()), x.dtype()}), x);
}

Variable NetworkBuilder::cast(Variable x, DType dtype)
{
    if (!ok() || x.dtype() == dtype)
        return x;
    const Layout* const like = &x.layout();
    const Layout layout = elementwiseLayout(x.shape(), {&like, 1});
    return settled(record(OperatorKind::Cast, {x.id()}, {layout, dtype}), x);
}

Variable NetworkBuilder::cat(std::vector<Variable> parts, int dimension)
{
    if (ok() && parts.size() > 255)
        refuse("network.shape", fmt::format("{} tensors are too many to join", parts.size()));
    if (!ok() || parts.empty())
        return {};
    std::vector<TensorId> ids;
    Shape shape = parts[0].shape();
    shape[shape.at(dimension)] = 0;
    for (const Variable& part : parts) {
        ids.push_back(part.id());
        shape[shape.at(dimension)] += part.size(dimension);
    }
    begin(OperatorKind::Cat, ids).attribute = shape.at(dimension);
    Variable result{*this, addOutput({Layout(shape), parts[0].dtype()}, true)};
    parts.clear();
    return result;
}

Variable NetworkBuilder::stack(std::vector<Variable> parts, int dimension)
{
    if (ok() && parts.size() > 255)
        refuse("network.shape", fmt::format("{} tensors are too many to stack", parts.size()));
    if (!ok() || parts.empty())
        return {};
    std::vector<TensorId> ids;
    for (const Variable& part : parts)
        ids.push_back(part.id());
    Shape shape = Layout(parts[0].shape()).unsqueezed(dimension).shape;
    const int at = dimension < 0 ? dimension + shape.rank : dimension;
    shape[at] = std::int64_t(parts.size());
    begin(OperatorKind::Stack, ids).attribute = at;
    Variable result{*this, addOutput({Layout(shape), parts[0].dtype()}, true)};
    parts.clear();
    return result;
}

Variable NetworkBuilder::pad(Variable x, std::int64_t before, std::int64_t after)
{
    if (!ok())
        return {};
    Shape shape = x.shape();
    shape[shape.rank - 1] += before + after;
    return settled(record(OperatorKind::Pad, {x.id()}, {Layout(shape), x.dtype()}), x);
}

Variable NetworkBuilder::fill(const Shape& shape, DType dtype)
{
    if (!ok())
        return {};
    return record(OperatorKind::Fill, {}, {Layout(shape), dtype});
}

Variable NetworkBuilder::compare(Variable x, DType dtype)
{
    if (!ok())
        return {};
    return settled(record(OperatorKind::Compare, {x.id()}, {Layout(x.shape()), dtype}), x);
}

Variable NetworkBuilder::equalsNumber(Variable x)
{
    if (!ok())
        return {};
    const Output result{Layout(x.shape()), DType::Bool};
    return settled(record(OperatorKind::Compare, {x.id()}, result, {}, comparesWithNumber), x);
}

Variable NetworkBuilder::compare(Variable x, Variable y)
{
    if (!ok())
        return {};
    const auto shape = Shape::broadcast(x.shape(), y.shape());
    if (!shape) {
        refuse("network.shape", fmt::format("{} and {} do not fit", text(x.shape()), text(y.shape())));
        return {};
    }
    return settled(record(OperatorKind::Compare, {x.id(), y.id()}, {Layout(*shape), DType::Bool}), x, y);
}

} // namespace memscape
