// SPDX-License-Identifier: Apache-2.0
// What becomes of a parameter's gradient: `.grad`, or the piece of it that one device keeps after the
// reduction (placement.h): layer by layer, as FSDP does for its units, or in DeepSpeed's buckets.
//
//   FSDP 2      behind a unit's backward, when it has given its weights back: the reduce-scatter's input is allocated
//   (the one
//               before it ends now), gradients are copied in and freed, its output becomes the pieces
//   FSDP 1      the views' gradients are joined to one flat gradient while the weights are still there; it is converted
//               for the reduction if that is in fp32
//   DeepSpeed   a gradient is copied into the bucket and freed; a full bucket is reduced through a copy of it (stages
//               1, 2: unless it lies in one device's partition), and what of it is the device's is kept in one block.
//               Stage 1 sums whole gradients and reduces the sums behind the last micro-batch, or within its backward
//               where it overlaps
// Where the host has the pieces FSDP 1 keeps what it has copied there until all of backward has ended
// (_accumulate_sharded_grad, prepare_gradient_for_optim); FSDP 2 frees each behind its copy.
//
// Under no_sync gradients stay whole: FSDP 2's as they are, in fp32 where they are reduced so; FSDP 1's flat, in the
// type of the computation. The next micro-batch's are added into them. FSDP's root reduces its gradients at the end of
// backward: until then they are whole. Sources: PyTorch 2.15, _fully_shard/_fsdp_collectives.py (foreach_reduce),
// fsdp/_runtime_utils.py (_post_backward_hook); DeepSpeed 0.19.8, stage_1_and_2.py (average_tensor,
// allreduce_and_copy), stage3.py (__add_grad_to_ipg_bucket), comm/coalesced_collectives.py (reduce_scatter_coalesced).
#include "core/training/autograd.h"

#include "core/training/fsdp_units.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

bool sumsConverted(const FsdpRules& rules)
{
    return !rules.isFlat && rules.reducedBytes != rules.computedBytes;
}

} // namespace

void Autograd::accumulateIntoParameter(TensorId tensor, Gradient gradient)
{
    if (m_placement.deepspeed && m_placement.deepspeed->stage < 3)
        makeBuckets();
    LiveId& kept = m_parameterGradient[tensor];
    if (m_isInRegion && (kept || isReduced(tensor)))
        return m_unadded.emplace_back(tensor, gradient), void();
    if (isReduced(tensor)) {
        if (m_placement.deepspeed && m_placement.deepspeed->stage > 1)
            fillBucket(tensor, gradient);
        else if (m_placement.reducesLayers)
            waitForUnit(tensor, gradient);
        else
            reduce(tensor, gradient);
        return;
    }
    const bool isReducedNow = m_reduces && m_placement.deepspeed && m_placement.deepspeed->sumsBeforeReducing
        && m_placement.deepspeed->reducesInBackward;
    const bool isOwn = gradient.layout.isContiguous() && m_live.references(gradient.live) == 1;
    if (!kept && isOwn) {
        kept = gradient.live;
        return isReducedNow ? reduceSum(tensor) : m_ready.push_back(tensor);
    }
    if (!kept) {
        kept = freshFor(tensor, Layout(gradient.layout.shape), gradient.dtype).live;
        const std::int64_t tile = m_rules.isOnCpu ? transposingTile(gradient.layout, gradient.dtype) : 0;
        if (tile > 0)
            m_live.release(scratch(tile));
    }
    drop(gradient);
    isReducedNow ? reduceSum(tensor) : m_ready.push_back(tensor);
}

/// FSDP 2 under no_sync: AccumulateGrad adds into the sum, which is in the type of the reduction from the start.
void Autograd::waitForUnit(TensorId tensor, Gradient& gradient)
{
    const auto whole = m_wholeGradients.find(tensor);
    if (whole != m_wholeGradients.end()) {
        drop(gradient);
        gradient = whole->second;
        m_wholeGradients.erase(whole);
    } else if (!m_reduces && m_placement.fsdp && sumsConverted(*m_placement.fsdp)) {
        const Gradient converted = freshFor(tensor, Layout(layoutOf(tensor).shape), DType::Float32);
        drop(gradient);
        gradient = converted;
    }
    m_unreduced.emplace_back(tensor, gradient);
}

void Autograd::updateReady()
{
    if (m_isInRegion)
        return; // a compiled backward returns all its gradients at its end
    if (m_update)
        for (const TensorId tensor : m_ready) {
            m_update(m_parameterIndex[tensor]);
            m_live.release(std::exchange(m_parameterGradient[tensor], 0));
        }
    m_ready.clear();
}

void Autograd::enterUnit(const Operator& op)
{
    if (!m_units)
        return;
    const auto index = std::uint32_t(&op - m_graph.operators.data());
    if (!m_fsdp && m_units->isBorder(index))
        leaveUnit();
    while (m_fsdp && m_fsdp->isBorder(index)) // units enclose each other
        reduceUnit(m_fsdp->current());
    m_units->enter(index, m_isReplaying);
}

void Autograd::leaveUnit()
{
    if (!m_units)
        return;
    while (m_fsdp && m_fsdp->current() != 0)
        reduceUnit(m_fsdp->current());
    if (m_fsdp)
        return;
    m_units->leave();
    reduceGradients();
}

/// Out of those that wait for their unit's end.
std::vector<std::pair<TensorId, Autograd::Gradient>> Autograd::takeUnreduced(std::uint32_t unit)
{
    const auto isOther = [&](const auto& one) { return m_fsdp->unitOf(m_parameterIndex[one.first]) != unit; };
    const auto taken = std::stable_partition(m_unreduced.begin(), m_unreduced.end(), isOther);
    std::vector<std::pair<TensorId, Gradient>> gradients(taken, m_unreduced.end());
    m_unreduced.erase(taken, m_unreduced.end());
    return gradients;
}

/// SplitBackward: one gradient of the flat parameter, for which those of its views exist until it is written.
LiveId Autograd::flatGradient(std::vector<std::pair<TensorId, Gradient>>& gradients, std::int64_t elements)
{
    const LiveId flat = m_live.allocate(elements * m_placement.fsdp->computedBytes, Category::Temporary,
                                        m_trace.name("flat gradient"), m_module);
    for (auto& [tensor, whole] : gradients)
        drop(whole);
    return flat;
}

/// FSDP 1's flat gradient stays, or is added into `sum` of the micro-batches before; FSDP 2's gradients stay one by
/// one.
void Autograd::keepWhole(std::uint32_t unit, const std::vector<std::pair<TensorId, Gradient>>& gradients, LiveId flat,
                         LiveId sum)
{
    if (sum)
        m_live.release(flat);
    if (flat)
        m_wholeUnits[unit] = sum ? sum : flat;
    else
        for (const auto& [tensor, whole] : gradients)
            m_wholeGradients[tensor] = whole;
}

void Autograd::reduceUnit(std::uint32_t unit)
{
    const FsdpRules& rules = *m_placement.fsdp;
    auto gradients = unit == 0 && !m_isEnding ? decltype(m_unreduced)() : takeUnreduced(unit);
    std::int64_t shares = 0;
    for (const auto& [tensor, whole] : gradients)
        shares += rules.shares[m_parameterIndex[tensor]];
    LiveId flat = 0;
    if (rules.isFlat && shares > 0)
        flat = flatGradient(gradients, shares * rules.devices);
    const LiveId sum = shares > 0 ? std::exchange(m_wholeUnits[unit], 0) : 0; // of the micro-batches before
    if (m_isEnding)
        m_units->endBackward();
    else
        m_units->leave();
    if (shares == 0)
        return;
    if (!m_reduces)
        return keepWhole(unit, gradients, flat, sum);
    BlockId converted = noBlock;
    const std::int64_t reduced = shares * rules.reducedBytes;
    const auto reduceInput = [&](std::uint16_t stream) {
        return m_trace.allocate(reduced * rules.devices, Category::Communication, m_trace.name("reduce-scatter input"),
                                m_module, stream);
    };
    if (!rules.isFlat) {
        m_trace.free(std::exchange(m_reduceBuffer, noBlock));
        m_reduceBuffer = reduceInput(0);
        for (auto& [tensor, whole] : gradients)
            drop(whole);
    } else if (rules.reducedBytes != rules.computedBytes) {
        converted = reduceInput(FsdpStreams::reduce);
    }
    keepPieces(gradients, shares);
    m_trace.free(converted);
    for (const LiveId live : {flat, sum})
        if (live)
            m_live.release(live);
}

/// What the reduce-scatter puts out becomes the pieces where nothing is added or converted.
void Autograd::keepPieces(const std::vector<std::pair<TensorId, Gradient>>& gradients, std::int64_t shares)
{
    const FsdpRules& rules = *m_placement.fsdp;
    const bool isFirst = m_parameterGradient[gradients.front().first] == 0;
    const bool isKept = m_keptGradient[gradients.front().first] > 0, isCopied = rules.isFlat && !isKept;
    BlockId output = noBlock;
    if (!isFirst || !isKept || rules.reducedBytes != rules.keptBytes)
        output = m_trace.allocate(shares * rules.reducedBytes, Category::Communication,
                                  m_trace.name("reduce-scatter output"), m_module, FsdpStreams::reduce);
    BlockId converted = noBlock;
    if ((!isFirst || isCopied) && rules.reducedBytes != rules.keptBytes)
        converted = m_trace.allocate(shares * rules.keptBytes, Category::Temporary, m_trace.name("piece"), m_module,
                                     FsdpStreams::reduce);
    for (const auto& [tensor, whole] : gradients) {
        LiveId& kept = m_parameterGradient[tensor];
        if (kept == 0)
            kept = m_live.allocate(m_keptGradient[tensor], Category::Gradients, m_gradientNames[tensor],
                                   m_moduleIds[m_graph.storageOf(tensor).module], FsdpStreams::reduce);
    }
    if (isCopied)
        m_copiedPieces.push_back(std::exchange(converted == noBlock ? output : converted, noBlock));
    m_trace.free(converted);
    m_trace.free(output);
    for (const auto& [tensor, whole] : gradients)
        m_ready.push_back(tensor);
    updateReady();
}

void Autograd::endReductions()
{
    m_isEnding = true;
    if (m_fsdp)
        reduceUnit(0);
    else if (m_units)
        m_units->endBackward();
    const bool isSumming = m_placement.deepspeed && m_placement.deepspeed->sumsBeforeReducing;
    if (isSumming && m_reduces && !m_placement.deepspeed->reducesInBackward)
        for (const NamedTensor& parameter : m_graph.parameters)
            reduceSum(parameter.tensor);
    if (m_placement.deepspeed)
        flushBucket();
    m_trace.free(std::exchange(m_nextPartition, noBlock));
    for (const BlockId piece : std::exchange(m_copiedPieces, {}))
        m_trace.free(piece);
    m_flushed = 0;
    if (m_reduces || !isSumming)
        m_trace.free(std::exchange(m_reduceBuffer, noBlock));
    m_isEnding = false;
}

/// setup_buckets(), when the first gradient is there.
void Autograd::makeBuckets()
{
    if (m_reduceBuffer == noBlock)
        m_reduceBuffer = m_trace.allocate(m_placement.deepspeed->bucketBytes, Category::Communication,
                                          m_trace.name("reduce bucket"));
}

void Autograd::fillBucket(TensorId tensor, Gradient& whole)
{
    const DeepSpeedRules& rules = *m_placement.deepspeed;
    const std::int64_t elements = rules.elements[m_parameterIndex[tensor]];
    if (m_filled + elements > rules.sizes.reduceBucket)
        flushBucket();
    m_filled += elements;
    m_inBucket.push_back(tensor);
    if (elements > rules.sizes.reduceBucket) // it is reduced where it lies
        m_besideBucket.push_back(whole);
    else
        dropCopied(whole);
}

/// A gradient that the reductions' stream has copied.
void Autograd::dropCopied(Gradient& whole)
{
    if (!m_units || !m_placement.deepspeed->hasReduceStream || m_live.references(whole.live) > 1)
        return drop(whole);
    m_units->freeGradient(m_live.block(whole.live));
    m_live.forget(std::exchange(whole.live, 0));
}

/// What stage 1 has summed of a parameter.
void Autograd::reduceSum(TensorId tensor)
{
    if (const LiveId sum = std::exchange(m_parameterGradient[tensor], 0)) {
        Gradient whole;
        whole.live = sum;
        fillBucket(tensor, whole);
    }
}

void Autograd::flushBucket()
{
    const DeepSpeedRules& rules = *m_placement.deepspeed;
    const std::int64_t filled = std::exchange(m_filled, 0);
    if (filled == 0)
        return;
    if (m_units && rules.hasReduceStream)
        m_units->reduce();
    const auto keep = [&] {
        if (rules.stage > 1)
            for (const TensorId tensor : m_inBucket)
                keepPartition(tensor, m_keptGradient[tensor]);
        else if (m_flushed == 0)
            keepPartition(m_inBucket.front(), rules.partitionBytes);
    };
    if (rules.addsIntoPartition)
        keep();
    copyBucket(filled);
    if (!rules.addsIntoPartition)
        keep();
    m_flushed += filled;
    m_inBucket.clear();
    for (Gradient& whole : m_besideBucket)
        dropCopied(whole);
    m_besideBucket.clear();
}

/// Stage 3 copies pieces of one rank beside each other; in stages 1 and 2 what belongs to several ranks is copied.
void Autograd::copyBucket(std::int64_t filled)
{
    const DeepSpeedRules& rules = *m_placement.deepspeed;
    std::int64_t copied = 0;
    if (rules.stage == 3 && (m_inBucket.size() > 1 || filled % rules.devices != 0)) {
        for (const TensorId tensor : m_inBucket)
            copied += piece(rules.elements[m_parameterIndex[tensor]], rules.devices) * rules.devices;
    } else if (rules.stage < 3) { // backward comes to parameters from the last, stage 1 may begin with the first
        const std::int64_t all = rules.partition * rules.devices;
        const std::int64_t first =
            rules.reducesInBackward ? std::max<std::int64_t>(0, all - m_flushed - filled) : m_flushed;
        const bool isOfOne = rules.addsIntoPartition
            ? m_inBucket.size() == 1
            : first / rules.partition == (first + filled - 1) / rules.partition;
        copied = isOfOne ? 0 : filled;
    }
    const NameId name = m_trace.name("copy of the reduce bucket");
    const BlockId copy = m_trace.allocate(copied * rules.reducedBytes, Category::Communication, name, 0,
                                          rules.hasReduceStream ? FsdpStreams::reduce : 0);
    if (rules.addsIntoPartition) { // converted one by one
        std::int64_t largest = 0;
        for (const TensorId tensor : m_inBucket)
            largest = std::max(largest, std::min(rules.partition, rules.elements[m_parameterIndex[tensor]]));
        m_trace.free(m_trace.allocate(4 * largest, Category::Communication, name));
    }
    m_trace.free(copy);
}

/// What a bucket leaves. A later micro-batch's partition of stage 2 is there beside the sum until it has been added
/// (get_all_grad_tensors); stage 3 adds pieces where they lie.
void Autograd::keepPartition(TensorId tensor, std::int64_t bytes)
{
    const DeepSpeedRules& rules = *m_placement.deepspeed;
    const ModuleId module = m_moduleIds[m_graph.storageOf(tensor).module];
    LiveId& kept = m_parameterGradient[tensor];
    if (kept == 0)
        kept = m_live.allocate(bytes, Category::Gradients, m_gradientNames[tensor], module);
    else if (rules.stage == 2 && !rules.addsIntoPartition && bytes > 0)
        m_nextPartition = m_trace.allocate(bytes, Category::Temporary, m_gradientNames[tensor], module);
}

void Autograd::reduceGradients()
{
    for (auto& [tensor, whole] : m_unreduced)
        reduce(tensor, whole);
    m_unreduced.clear();
}

// The first piece stays; later ones are added into it. A reduce-scatter writes through the reduce
// bucket, which exists from the start.
void Autograd::reduce(TensorId tensor, Gradient& whole)
{
    LiveId& kept = m_parameterGradient[tensor];
    const bool isFirst = kept == 0;
    const bool isAddedDirectly = !m_placement.reducesLayers; // main_grad.add_(grad)
    if (isFirst || !isAddedDirectly) {
        const LiveId piece =
            m_live.allocate(m_keptGradient[tensor], isFirst ? Category::Gradients : Category::Temporary,
                            m_gradientNames[tensor], m_moduleIds[m_graph.storageOf(tensor).module]);
        if (isFirst)
            kept = piece;
        else
            m_live.release(piece);
    }
    drop(whole);
}

std::vector<BlockId> Autograd::gradients() const
{
    std::vector<BlockId> blocks;
    for (const NamedTensor& parameter : m_graph.parameters) {
        const LiveId live = m_parameterGradient[parameter.tensor];
        blocks.push_back(live ? m_live.block(live) : noBlock);
    }
    return blocks;
}

std::vector<BlockId> Autograd::parameters() const
{
    std::vector<BlockId> blocks;
    for (const NamedTensor& parameter : m_graph.parameters)
        blocks.push_back(m_live.block(m_bound[m_graph.tensors[parameter.tensor].storage]));
    return blocks;
}

std::int64_t Autograd::bytesToFind(TensorId parameter) const
{
    const Tensor& tensor = m_graph.tensors[parameter];
    if (!tensor.needsGradient || m_uses[parameter] == 0)
        return 0;
    return isReduced(parameter) ? m_keptGradient[parameter]
                                : m_graph.layoutOf(parameter).elements() * elementBytes(tensor.dtype);
}

void Autograd::findGradients()
{
    for (const NamedTensor& parameter : m_graph.parameters) {
        const TensorId tensor = parameter.tensor;
        if (const std::int64_t bytes = bytesToFind(tensor); bytes > 0)
            m_parameterGradient[tensor] = m_live.allocate(bytes, Category::Gradients, m_gradientNames[tensor],
                                                          m_moduleIds[m_graph.storageOf(tensor).module]);
    }
}

std::vector<BlockId> Autograd::gradientsToFind() const
{
    const std::vector<BlockId> all = gradients();
    std::vector<BlockId> found;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (bytesToFind(m_graph.parameters[i].tensor) > 0)
            found.push_back(all[i]);
    return found;
}

void Autograd::forgetGradients()
{
    for (const NamedTensor& parameter : m_graph.parameters)
        m_live.forget(std::exchange(m_parameterGradient[parameter.tensor], 0));
}

} // namespace memscape
