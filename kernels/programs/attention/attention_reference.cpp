// SPDX-License-Identifier: Apache-2.0
// The reference computes in double from the inputs as the format holds them. Its bounds are those
// of the standard model of rounding (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
// chapter 3): a sum of n products is off by at most γ_n Σ|a||b|, γ_n = n u / (1 − n u). u is 2⁻²³,
// twice a float's, because tensor cores cut instead of rounding; h is the roundoff of the format
// and a half its least number. For every row of scores, with c = 1/√d:
//
//     |δs|  ≤ γ_{d+2} c Σ|q||k| + 4u|s|            (+ h|s| + a where S is stored in the format)
//     η     = max |δs| + 4u,   |δL| ≤ η + γ_{2n+8} + 8u (|L| + 1),   n = keys
//     ρ     = e^{2η} − 1 + γ_{2n+8}                relative, of P in the forward
//     ρ'    = e^{η + |δL| + 4u (|s| + |L|)} − 1    of P made again from L in a backward
//     |δO|  ≤ Σ (P (ρ + h') + a')|v| + γ_n Σ P|v| + h|O| + a
//     |δdP| ≤ γ_{d+2} Σ|dO||v|                     (+ h|dP| + a where dP is stored)
//     |δD|  ≤ Σ|dO||δO| + γ_{d+2} Σ|dO||O|         (standard: the errors of Σ P dP)
//     |δdS| ≤ δP |dP − D| + (P + δP)(|δdP| + |δD|) + 4u|dS|, and h'|dS| + a' as an operand
//     |δdQ| ≤ c Σ|δdS||k| + γ_{n+4} c Σ|dS||k| + h|dQ| + a, and dK, dV likewise
//
// h' and a' are h and a for halves (P and dS enter the second products in the format), else 0. So
// the tolerance of an element follows from its own sums: rows whose scores overflow a naive softmax
// have wide bounds in a half format because storing S in it really costs that much.
#include "kernels/programs/attention/attention_reference.h"

#include "kernels/programs/common/half.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double u = 0x1p-23;

double gammaOf(double n)
{
    return n * u / (1 - n * u);
}

/// An input as the format holds it.
std::vector<double> inputOf(AttentionTensor tensor, std::int64_t rows, const AttentionTask& task,
                            AttentionInputs inputs)
{
    const auto d = std::uint64_t(task.problem.shape.headDim);
    std::vector<double> values(std::size_t(rows) * d);
    for (std::uint64_t i = 0; i < values.size(); ++i)
        values[i] = double(roundedTo(attentionInput(tensor, i, d, inputs), task.problem.dtype));
    return values;
}

/// Σ a_j b_j and Σ |a_j b_j|.
struct Dot
{
    double sum = 0, size = 0;
};
Dot dot(const double* a, const double* b, std::int64_t count)
{
    Dot result;
    for (std::int64_t j = 0; j < count; ++j) {
        result.sum += a[j] * b[j];
        result.size += std::abs(a[j] * b[j]);
    }
    return result;
}

/// to_j += factor × from_j of one row, whose elements lie together.
void addRow(double* to, double factor, const double* from, std::int64_t count)
{
    for (std::int64_t j = 0; j < count; ++j)
        to[j] += factor * from[j];
}

/// to_j += factor × |from_j|.
void addSizes(double* to, double factor, const double* from, std::int64_t count)
{
    for (std::int64_t j = 0; j < count; ++j)
        to[j] += factor * std::abs(from[j]);
}

void resize(BoundedTensor& tensor, std::int64_t count)
{
    tensor.values.assign(std::size_t(count), 0);
    tensor.bounds.assign(std::size_t(count), 0);
}

class Reference
{
public:
    Reference(const AttentionTask& task, AttentionInputs inputs)
        : m_shape(task.problem.shape)
        , m_d(m_shape.headDim)
        , m_isHalf(task.problem.dtype != DType::Float32)
        , m_isStored(task.problem.kind == AttentionKind::Standard)
        , m_isExpanded(task.version.expandsKeyGradients)
        , m_h(roundoff(task.problem.dtype))
        , m_a(leastRoundoff(task.problem.dtype))
        , m_c(1 / std::sqrt(double(m_d)))
        , m_q(inputOf(AttentionTensor::Query, m_shape.queryRows(), task, inputs))
        , m_k(inputOf(AttentionTensor::Key, m_shape.keyRows(), task, inputs))
        , m_v(inputOf(AttentionTensor::Value, m_shape.keyRows(), task, inputs))
        , m_do(inputOf(AttentionTensor::OutputGradient, m_shape.queryRows(), task, inputs))
    { }

    AttentionReference compute(bool withGradients);

private:
    /// One query: its place, the keys it sees, and everything about its row of S.
    struct Row
    {
        std::size_t index = 0;    ///< of Q, O, L
        std::size_t firstKey = 0; ///< row of K and V
        std::int64_t keys = 0;
        std::vector<double> s, p;
        double eta = 0, log = 0, logBound = 0, rho = 0, again = 0;
    };
    Row rowOf(std::int64_t plane, std::int64_t query) const;
    void output(const Row& row);
    void gradients(const Row& row);
    void finishGradients();
    const double* key(const Row& row, std::int64_t k) const { return at(m_k, row.firstKey, k); }
    const double* value(const Row& row, std::int64_t k) const { return at(m_v, row.firstKey, k); }
    const double* at(const std::vector<double>& tensor, std::size_t first, std::int64_t k) const
    {
        return tensor.data() + (first + std::size_t(k)) * std::size_t(m_d);
    }
    double operandH() const { return m_isHalf ? m_h : 0; }
    double operandA() const { return m_isHalf ? m_a : 0; }
    /// D of a row and how far it may be off.
    Dot rowSum(const Row& row, const std::vector<double>& dp, const std::vector<double>& dpBound) const;

    const AttentionShape& m_shape;
    std::int64_t m_d;
    bool m_isHalf, m_isStored, m_isExpanded;
    double m_h, m_a, m_c;
    std::vector<double> m_q, m_k, m_v, m_do;
    std::vector<double> m_keySizes, m_valueSizes; ///< Σ|dS||q|, Σ P|dO|: what γ and h multiply
    AttentionReference m_result;
};

Reference::Row Reference::rowOf(std::int64_t plane, std::int64_t query) const
{
    Row row;
    row.index = std::size_t(plane * m_shape.queries + query);
    row.firstKey = std::size_t(attentionKeyPlane(plane, m_shape.heads, m_shape.kvHeads) * m_shape.keys);
    row.keys = attentionVisibleKeys(query, m_shape.queries, m_shape.keys, m_shape.causal);
    double most = -INFINITY, size = 0;
    for (std::int64_t k = 0; k < row.keys; ++k) {
        const Dot product = dot(at(m_q, row.index, 0), key(row, k), m_d);
        const double s = m_c * product.sum;
        row.s.push_back(s);
        most = std::max(most, s);
        size = std::max(size, std::abs(s));
        const double off = gammaOf(double(m_d) + 2) * m_c * product.size + 4 * u * std::abs(s)
            + (m_isStored && m_isHalf ? m_h * std::abs(s) + m_a : 0);
        row.eta = std::max(row.eta, off);
    }
    row.eta += 4 * u;
    double sum = 0;
    for (const double s : row.s)
        sum += std::exp(s - most);
    row.log = most + std::log(sum);
    for (const double s : row.s)
        row.p.push_back(std::exp(s - row.log));
    const double order = gammaOf(2 * double(m_shape.keys) + 8);
    row.logBound = row.eta + order + 8 * u * (std::abs(row.log) + 1);
    row.rho = std::expm1(2 * row.eta) + order;
    row.again = m_isStored ? row.rho : std::expm1(row.eta + row.logBound + 4 * u * (size + std::abs(row.log)));
    return row;
}

void Reference::output(const Row& row)
{
    const double error = row.rho + operandH() + gammaOf(double(m_shape.keys));
    double* const values = m_result.output.values.data() + row.index * std::size_t(m_d);
    double* const bounds = m_result.output.bounds.data() + row.index * std::size_t(m_d);
    for (std::int64_t k = 0; k < row.keys; ++k) {
        const double p = row.p[std::size_t(k)];
        addRow(values, p, value(row, k), m_d);
        addSizes(bounds, p * error + operandA(), value(row, k), m_d);
    }
    for (std::int64_t j = 0; j < m_d; ++j)
        bounds[j] += m_h * (std::abs(values[j]) + bounds[j]) + m_a;
    m_result.logSumExp.values[row.index] = row.log;
    m_result.logSumExp.bounds[row.index] = row.logBound;
}

Dot Reference::rowSum(const Row& row, const std::vector<double>& dp, const std::vector<double>& dpBound) const
{
    Dot d;
    if (m_isStored) {
        double off = 0;
        for (std::size_t k = 0; k < dp.size(); ++k) {
            d.sum += row.p[k] * dp[k];
            d.size += std::abs(row.p[k] * dp[k]);
            off += (row.p[k] * (row.rho + operandH()) + operandA()) * (std::abs(dp[k]) + dpBound[k])
                + row.p[k] * dpBound[k];
        }
        d.size = off + gammaOf(double(m_shape.keys)) * d.size;
        return d;
    }
    const std::size_t first = row.index * std::size_t(m_d);
    double off = 0;
    for (std::size_t j = 0; j < std::size_t(m_d); ++j) {
        const double g = m_do[first + j];
        d.sum += g * m_result.output.values[first + j];
        d.size += std::abs(g * m_result.output.values[first + j]);
        off += std::abs(g) * m_result.output.bounds[first + j];
    }
    d.size = off + gammaOf(double(m_d) + 2) * d.size;
    return d;
}

void Reference::gradients(const Row& row)
{
    const double* const g = at(m_do, row.index, 0);
    const double* const q = at(m_q, row.index, 0);
    std::vector<double> dp, dpBound;
    for (std::int64_t k = 0; k < row.keys; ++k) {
        const Dot product = dot(g, value(row, k), m_d);
        dp.push_back(product.sum);
        dpBound.push_back(gammaOf(double(m_d) + 2) * product.size
                          + (m_isStored && m_isHalf ? m_h * std::abs(product.sum) + m_a : 0));
    }
    const Dot total = rowSum(row, dp, dpBound);
    const std::size_t qPlace = row.index * std::size_t(m_d);
    const double order = gammaOf(double(m_shape.keys) + 4);
    for (std::int64_t k = 0; k < row.keys; ++k) {
        const auto i = std::size_t(k);
        const double p = row.p[i];
        const double operandError = p * (row.again + operandH()) + operandA();
        const double error = m_isStored ? operandError : p * row.again;
        const double ds = p * (dp[i] - total.sum);
        double dsBound =
            error * std::abs(dp[i] - total.sum) + (p + error) * (dpBound[i] + total.size) + 4 * u * std::abs(ds);
        dsBound += operandH() * (std::abs(ds) + dsBound) + operandA();
        const std::size_t kPlace = (row.firstKey + i) * std::size_t(m_d);
        addRow(&m_result.queryGradient.values[qPlace], m_c * ds, key(row, k), m_d);
        addSizes(&m_result.queryGradient.bounds[qPlace], m_c * (dsBound + order * std::abs(ds)), key(row, k), m_d);
        addRow(&m_result.keyGradient.values[kPlace], m_c * ds, q, m_d);
        addSizes(&m_result.keyGradient.bounds[kPlace], m_c * dsBound, q, m_d);
        addSizes(&m_keySizes[kPlace], m_c * std::abs(ds), q, m_d);
        addRow(&m_result.valueGradient.values[kPlace], p, g, m_d);
        addSizes(&m_result.valueGradient.bounds[kPlace], operandError, g, m_d);
        addSizes(&m_valueSizes[kPlace], p, g, m_d);
    }
}

/// What rounding the sums adds: γ of their terms, and the format.
void Reference::finishGradients()
{
    const auto terms = double(m_shape.queries * (m_shape.heads / m_shape.kvHeads));
    const double order = gammaOf(terms + 4) + (m_isExpanded ? m_h : 0);
    for (std::size_t i = 0; i < m_keySizes.size(); ++i) {
        m_result.keyGradient.bounds[i] += order * m_keySizes[i];
        m_result.valueGradient.bounds[i] += order * m_valueSizes[i];
    }
    for (BoundedTensor* tensor : {&m_result.queryGradient, &m_result.keyGradient, &m_result.valueGradient}) {
        for (std::size_t i = 0; i < tensor->values.size(); ++i)
            tensor->bounds[i] += m_h * (std::abs(tensor->values[i]) + tensor->bounds[i]) + m_a;
    }
}

AttentionReference Reference::compute(bool withGradients)
{
    const std::int64_t rows = m_shape.queryRows();
    resize(m_result.output, rows * m_d);
    resize(m_result.logSumExp, rows);
    if (withGradients) {
        resize(m_result.queryGradient, rows * m_d);
        resize(m_result.keyGradient, m_shape.keyRows() * m_d);
        resize(m_result.valueGradient, m_shape.keyRows() * m_d);
        m_keySizes.assign(m_result.keyGradient.values.size(), 0);
        m_valueSizes = m_keySizes;
    }
    for (std::int64_t plane = 0; plane < m_shape.batch * m_shape.heads; ++plane) {
        for (std::int64_t query = 0; query < m_shape.queries; ++query) {
            const Row row = rowOf(plane, query);
            output(row);
            if (withGradients)
                gradients(row);
        }
    }
    if (withGradients)
        finishGradients();
    return std::move(m_result);
}

} // namespace

const BoundedTensor& AttentionReference::of(AttentionTensor tensor) const
{
    switch (tensor) {
    case AttentionTensor::LogSumExp: return logSumExp;
    case AttentionTensor::QueryGradient: return queryGradient;
    case AttentionTensor::KeyGradient: return keyGradient;
    case AttentionTensor::ValueGradient: return valueGradient;
    default: return output;
    }
}

AttentionReference attentionReference(const AttentionTask& task, AttentionInputs inputs)
{
    return Reference(task, inputs).compute(task.problem.pass != AttentionPass::Forward);
}

void compareTensor(Check& check, std::size_t place, std::span<const float> found, const BoundedTensor& reference)
{
    if (found.size() != reference.values.size())
        return check.require(place, false, "sizes differ");
    for (std::size_t i = 0; i < found.size(); ++i)
        check.compare(place + i, double(found[i]) / reference.bounds[i], reference.values[i] / reference.bounds[i]);
}

} // namespace memscape
