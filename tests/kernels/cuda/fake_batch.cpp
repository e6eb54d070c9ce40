// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step on the fake GPU: run plainly on the host, in the time that their memory takes.
#include "kernels/cuda/batch_kernels.h"

#include "kernels/measure/batch_numbers.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <algorithm>
#include <cstdio>

namespace memscape::cuda {

namespace {

cudaError_t passOver(std::uint64_t floats)
{
    return fakeLaunch(4.0 * double(floats) / fakeGpu().streamBytesPerSecond);
}

bool lost()
{
    return fakeError() != cudaSuccess;
}

/// All in the first of the partial sums.
void keep(double sum, bool isFirst, unsigned partials, double* partial)
{
    if (isFirst)
        std::fill_n(partial, partials, 0.0);
    partial[0] += sum;
}

double squares(const float* values, std::uint64_t count)
{
    double sum = 0;
    for (std::uint64_t i = 0; i < count; ++i)
        sum += double(values[i]) * double(values[i]);
    return sum;
}

} // namespace

cudaError_t launchBatchElements(const BatchElements& w, cudaStream_t)
{
    for (std::uint64_t i = 0; i < w.count; ++i) {
        switch (w.pass) {
        case BatchPass::Relu:
            w.result[i] = std::max(w.a[i], 0.0F);
            break;
        case BatchPass::ReluGradient:
            w.result[i] = w.b[i] > 0 ? w.a[i] : 0.0F;
            break;
        case BatchPass::LossGradient:
            w.result[i] = w.factor * (w.a[i] - w.b[i]);
            break;
        case BatchPass::Add:
            w.result[i] += w.a[i];
            break;
        case BatchPass::Update:
            w.result[i] -= w.factor * w.a[i];
            break;
        }
    }
    return passOver((w.pass == BatchPass::Relu ? 2 : 3) * w.count);
}

cudaError_t launchBias(float* y, const float* bias, std::uint64_t rows, std::uint64_t width, cudaStream_t)
{
    for (std::uint64_t i = 0; i < rows * width; ++i)
        y[i] += bias[i % width];
    return passOver(2 * rows * width);
}

cudaError_t launchBatchLoss(const float* y, const float* t, std::uint64_t count, bool isFirst, double* partial,
                            cudaStream_t)
{
    double sum = 0;
    for (std::uint64_t i = 0; i < count; ++i)
        sum += double((y[i] - t[i]) * (y[i] - t[i]));
    keep(sum, isFirst, batchLossPartials(count), partial);
    return passOver(2 * count);
}

cudaError_t launchExampleNorms(const float* x, std::uint64_t inputs, const float* delta, std::uint64_t outputs,
                               std::uint64_t rows, bool isFirst, double* partial, cudaStream_t)
{
    double sum = 0;
    for (std::uint64_t row = 0; row < rows; ++row)
        sum += (squares(x + row * inputs, inputs) + 1) * squares(delta + row * outputs, outputs);
    keep(sum, isFirst, batchNormPartials(rows), partial);
    return passOver(rows * (inputs + outputs));
}

cudaError_t launchBatchRisk(const float* weights, const float* bias, const float* scales, float magnitude,
                            std::uint64_t inputs, std::uint64_t outputs, double* partial, cudaStream_t)
{
    double sum = squares(bias, outputs);
    for (std::uint64_t i = 0; i < inputs * outputs; ++i) {
        const float off = (weights[i] - batchTruth(i, magnitude)) * scales[i % inputs];
        sum += double(off * off);
    }
    keep(sum, true, batchRiskPartials(outputs), partial);
    return passOver(inputs * outputs);
}

cudaError_t launchBatchInputs(float* x, const float* scales, std::uint64_t first, std::uint64_t rows,
                              std::uint64_t inputs, cudaStream_t)
{
    for (std::uint64_t i = 0; i < rows * inputs; ++i)
        x[i] = batchInput(first * inputs + i, scales[i % inputs]);
    return passOver(rows * inputs);
}

cudaError_t launchBatchTruth(float* truth, std::uint64_t count, float magnitude, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count; ++i)
        truth[i] = batchTruth(i, magnitude);
    return passOver(count);
}

cudaError_t launchBatchTargets(float* t, std::uint64_t first, std::uint64_t count, bool isLinear, float noise,
                               cudaStream_t)
{
    for (std::uint64_t i = 0; i < count; ++i)
        t[i] = batchTarget(first + i, t[i], isLinear, noise);
    return passOver(2 * count);
}

KernelCheck checkBatchElements()
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = !lost() && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "training step");
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}

} // namespace memscape::cuda
