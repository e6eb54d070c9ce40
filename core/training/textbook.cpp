// SPDX-License-Identifier: Apache-2.0
#include "core/training/textbook.h"

namespace memscape::textbook {

double zeroBytes(double parameters, double dataParallel, int stage)
{
    const double weights = 2 * parameters, gradients = 2 * parameters, optimizer = 12 * parameters;
    const auto share = [=](double bytes, int from) { return stage >= from ? bytes / dataParallel : bytes; };
    return share(weights, 3) + share(gradients, 2) + share(optimizer, 1);
}

double attentionTerm(const Transformer& model)
{
    return 5 * model.heads * model.sequence / model.hidden;
}

double layerBytes(const Transformer& model, Kept kept)
{
    const double unit = model.sequence * model.batch * model.hidden;
    const double t = model.tensorParallel;
    switch (kept) {
    case Kept::All: return unit * (10 + 24 / t + attentionTerm(model) / t);
    case Kept::AllSequence: return unit * (34 + attentionTerm(model)) / t;
    case Kept::Selective: return unit * (10 + 24 / t);
    case Kept::SelectiveSequence: return unit * 34 / t;
    case Kept::Full: return unit * 2;
    }
    return 0;
}

double stepFlops(const Transformer& model, bool recomputesAttention)
{
    const double attention = model.sequence / ((recomputesAttention ? 3 : 6) * model.hidden);
    const double head = model.vocabulary / (12 * model.hidden * model.layers);
    return 72 * model.batch * model.layers * model.sequence * model.hidden * model.hidden * (1 + attention + head);
}

double parameters(const Transformer& model)
{
    const double h = model.hidden;
    return 12 * model.layers * h * h + 13 * model.layers * h + (model.vocabulary + model.sequence) * h;
}

double cachePerToken(double layers, double keyValueHeads, double headDimension, double elementBytes)
{
    return 2 * layers * keyValueHeads * headDimension * elementBytes;
}

} // namespace memscape::textbook
