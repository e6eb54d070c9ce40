// SPDX-License-Identifier: Apache-2.0
#include "core/timing/product_rates.h"

#include "core/base/text.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* cublas = "cuBLAS product of 8192 × 8192 × 8192";
constexpr const char* mamf = "the best matrix product over many shapes (MAMF)";
constexpr const char* hopperSource = "waynehacking8/blackwell-tensorcore-kernels, bench.csv, H100 SXM, CUDA 13.1";
constexpr const char* ampereSource = "gau-nernst/learn-cuda, 02b, A100 40 GB";
constexpr const char* sharedTable =
    "zzc0721/torch-performance-test-data, database.md @0785868: the best of PyTorch's products of 1024³ to 10240³";
constexpr const char* sharedL4 = "zzc0721/torch-performance-test-data, issue 120";
constexpr const char* sharedV100 = "zzc0721/torch-performance-test-data, issues 52 and 140";
constexpr const char* sharedH100 = "zzc0721/torch-performance-test-data, issue 79";
constexpr const char* sharedH800 =
    "zzc0721/torch-performance-test-data, issue 112: an H800 PCIe, which is this board but for its links and FP64";
constexpr const char* halfPower = "the BF16's × 668 / 720, what FP16 kept of it in " // more bits of a number change
                                  "zzc0721/torch-performance-test-data, issue 79";
constexpr const char* thirty = "PyTorch, 30 products of 8192 × 8192 × 8192";
constexpr const char* thirtyMore = "PyTorch, 30 products of 10240 × 10240 × 10240 behind those of 8192³";
constexpr const char* tables = "stas00/ml-engineering @744d01e";
constexpr const char* fryer = "huggingface/gpu-fryer, README.md @2b6fb06: 8192 × 8192 × 8192 for a minute and more";
constexpr const char* fbgemm = "pytorch/FBGEMM, pull request 2546: H100 at 500 W, 8192 × 8192 × 8192";
constexpr const char* pcieWatts = "the H100 96 GB's at 500 W × (114 / 132)^⅔ × ∛(350 W / 500 W)";
constexpr const char* a10Table =
    "a README of matrix products on an A10 (31.24 TFLOP/s), whose repository was not found out: cuBLAS, which "
    "150 W hold; its CUTLASS in FP32 12.5 (NVIDIA/cutlass, issue 941)";
constexpr const char* a10Share = "the share of the dense rate that TF32 reaches there";
constexpr const char* likeA100 = "PyTorch 2.2 on the board of 40 GB: the same chip, clocks and 400 W";
constexpr const char* ga102Watts = "an A10's × (84 / 72)^⅔ × ∛(300 W / 150 W)";
constexpr const char* adaWatts = "an L4's × (142 / 58)^⅔ × ∛(350 W / 72 W)";
constexpr const char* ga102Lanes = "an RTX 3090's × (84 / 82)^⅔ × ∛(300 W / 350 W)";
constexpr const char* simumax =
    "MooreThreads/SimuMax, configs/system/b200_bf16_ceperm.json @e691807: 0.485 of 2250, the FLOPs of whole layers of "
    "Llama 3 70B (0.482) and 405B (0.488), forward and backward of 4,096 tokens, over the sum of their times";
constexpr const char* longT4 =
    "24 (forums.developer.nvidia.com, About GPU peak performance, 264462, where NVIDIA says that 70 W hold it: 100 "
    "products of 4096³) and 17.4 (samacoba, Chainer and Tensor Cores, 2019: 1,000 of them, on Colab's)";
constexpr const char* orin = "infinigence/ApxInf doc/jetson-roofline.md @21ae1dc, at MAXN, middle of 33.4 to 34.1";

struct Published
{
    const char* device;
    const char* rate;
    double teraflops;
    Evidence evidence;
    const char* source;
    const char* method;
};

// FP16 and BF16 run on the same units; the H200 has the multiprocessors and clocks of the H100 SXM,
// whose values are derived. The A100s differ in memory alone, and were measured on their own.
constexpr Published published[] = {
    {"nvidia-h100-sxm", "fp16", 756, Evidence::Measured, hopperSource, cublas},
    {"nvidia-h100-sxm", "bf16", 756, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h100-sxm", "tf32", 415, Evidence::Measured, hopperSource, cublas},
    {"nvidia-h100-sxm", "fp32", 48.5, Evidence::Measured, hopperSource, cublas},
    {"nvidia-h100-sxm", "fp8", 1403, Evidence::Measured, tables, mamf},
    {"nvidia-h100-96gb", "fp16", 756, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h100-96gb", "bf16", 756, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h100-96gb", "tf32", 415, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h100-96gb", "fp32", 48.5, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h100-96gb", "fp8", 1403, Evidence::Derived, tables, mamf},
    {"nvidia-h200", "fp16", 756, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h200", "bf16", 756, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h200", "tf32", 415, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h200", "fp32", 48.5, Evidence::Derived, hopperSource, cublas},
    {"nvidia-h200", "fp8", 1453, Evidence::Measured, tables, mamf},
    {"nvidia-a100-40gb", "fp16", 262, Evidence::Measured, ampereSource, cublas},
    {"nvidia-a100-40gb", "bf16", 262, Evidence::Derived, ampereSource, cublas},
    {"nvidia-a100-80gb", "fp16", 258.7, Evidence::Measured, sharedTable, "PyTorch 2.8"},
    {"nvidia-a100-80gb", "bf16", 264.5, Evidence::Measured, sharedTable, "PyTorch 2.8"},
    {"nvidia-b200", "bf16", 1745, Evidence::Measured, tables, mamf},
    {"nvidia-b200", "fp8", 3433, Evidence::Measured, tables, mamf},
    {"amd-mi300x", "bf16", 668, Evidence::Measured, tables, mamf},
    {"nvidia-a100-40gb", "fp32", 18.1, Evidence::Measured, sharedTable, "PyTorch 2.2"},
    {"nvidia-a100-80gb", "fp32", 19.2, Evidence::Measured, sharedTable, "PyTorch 2.8"},
    {"nvidia-v100-sxm2", "fp32", 14.2, Evidence::Measured, sharedV100, "PyTorch, middle of 14.06 and 14.38"},
    {"nvidia-v100-sxm2", "fp16", 96.1, Evidence::Measured, sharedV100, "PyTorch, middle of 94.84 and 97.36"},
    {"nvidia-t4", "fp32", 4.3, Evidence::Measured, sharedTable, "middle of 4.17 and 4.43"},
    {"nvidia-t4", "fp16", 42.3, Evidence::Measured, sharedTable, "middle of 41.9 and 42.7"},
    {"nvidia-l4", "fp32", 10.7, Evidence::Measured, sharedL4, thirty},
    {"nvidia-l4", "tf32", 25.7, Evidence::Measured, sharedL4, thirty},
    {"nvidia-l4", "fp16", 53.8, Evidence::Measured, sharedL4, thirty},
    {"nvidia-l4", "bf16", 59.4, Evidence::Measured, sharedL4, thirty},
    {"nvidia-l40s", "fp32", 46.9, Evidence::Measured, sharedTable, "PyTorch 2.8"},
    {"nvidia-l40s", "fp16", 264, Evidence::Measured, sharedTable, "PyTorch 2.8"},
    {"nvidia-l40s", "bf16", 269, Evidence::Measured, sharedTable, "PyTorch 2.8"},
    {"nvidia-rtx-3090", "fp32", 24.7, Evidence::Measured, sharedTable, "middle of 24.46 and 24.84"},
    {"nvidia-rtx-3090", "tf32", 38, Evidence::Derived, sharedTable, "the share of the dense rate that fp16 reaches"},
    {"nvidia-rtx-4090", "tf32", 83.4, Evidence::Derived, sharedTable, "the share of the dense rate that fp16 reaches"},
    {"nvidia-rtx-3090", "fp16", 75.8, Evidence::Measured, sharedTable, "middle of 75.64 and 75.88"},
    {"nvidia-rtx-3090", "bf16", 76.5, Evidence::Measured, sharedTable, "middle of 76.34 and 76.68"},
    {"nvidia-rtx-4090", "fp32", 54.7, Evidence::Measured, sharedTable, "median of five boards, 46.5 to 55"},
    {"nvidia-rtx-4090", "fp16", 167, Evidence::Measured, sharedTable, "median of five boards, 162 to 171"},
    {"nvidia-rtx-4090", "bf16", 163, Evidence::Measured, sharedTable, "median of five boards, 162 to 173"},
    {"nvidia-a10", "fp32", 14.68, Evidence::Measured, a10Table, cublas},
    {"nvidia-a10", "tf32", 35.33, Evidence::Measured, a10Table, cublas},
    {"nvidia-a10", "fp16", 70.7, Evidence::Derived, a10Table, a10Share},
    {"nvidia-a10", "bf16", 70.7, Evidence::Derived, a10Table, a10Share},
    {"nvidia-rtx-5090", "bf16", 239, Evidence::Measured, sharedTable, "middle of 236.0 and 242.2"},
    {"nvidia-rtx-5090", "fp16", 231, Evidence::Measured, sharedTable, "middle of 224.4 and 237.6"},
    {"nvidia-jetson-agx-orin-64gb", "bf16", 33.75, Evidence::Measured, orin, "large cuBLAS products"},
    {"nvidia-jetson-agx-orin-64gb", "fp16", 33.75, Evidence::Derived, orin, "large cuBLAS products"},
};

constexpr Published sustained[] = {
    {"nvidia-a100-40gb", "fp16", 247.6, Evidence::Measured, sharedTable, "PyTorch 2.2"},
    {"nvidia-a100-40gb", "bf16", 246.3, Evidence::Measured, sharedTable, "PyTorch 2.2"},
    {"nvidia-a100-80gb", "fp16", 247.6, Evidence::Derived, sharedTable, likeA100},
    {"nvidia-a100-80gb", "bf16", 246.3, Evidence::Derived, sharedTable, likeA100},
    {"nvidia-v100-sxm2", "fp16", 89.4, Evidence::Measured, sharedV100, thirtyMore},
    {"nvidia-l4", "fp16", 52.5, Evidence::Measured, sharedL4, thirtyMore},
    {"nvidia-l4", "bf16", 56.9, Evidence::Measured, sharedL4, thirtyMore},
    {"nvidia-l40s", "tf32", 80.6, Evidence::Derived, adaWatts, thirtyMore},
    {"nvidia-l40s", "fp16", 162, Evidence::Derived, adaWatts, thirtyMore},
    {"nvidia-l40s", "bf16", 175, Evidence::Derived, adaWatts, thirtyMore},
    {"nvidia-t4", "fp16", 20.7, Evidence::Measured, longT4, "cuBLAS, middle of 24 and 17.4"},
    {"nvidia-h100-sxm", "bf16", 730, Evidence::Measured, fryer, "cuBLAS in a long run"},
    {"nvidia-h100-sxm", "fp16", 677, Evidence::Derived, halfPower, "cuBLAS in a long run"},
    {"nvidia-h100-sxm", "tf32", 377, Evidence::Measured, sharedH100, thirtyMore},
    {"nvidia-h100-96gb", "bf16", 585, Evidence::Measured, fbgemm, "PyTorch; 575 of 65536 × 8192 × 7168"},
    {"nvidia-h100-96gb", "fp16", 585, Evidence::Derived, fbgemm, "PyTorch"},
    {"nvidia-h100-96gb", "fp8", 1126, Evidence::Measured, fbgemm, "one scale for each row"},
    {"nvidia-h100-pcie", "bf16", 487, Evidence::Derived, sharedH800, thirtyMore},
    {"nvidia-h100-pcie", "fp16", 462, Evidence::Derived, sharedH800, thirtyMore},
    {"nvidia-h100-pcie", "tf32", 230, Evidence::Derived, sharedH800, thirtyMore},
    {"nvidia-h100-pcie", "fp32", 36.6, Evidence::Derived, sharedH800, thirtyMore},
    {"nvidia-h100-pcie", "fp8", 906, Evidence::Derived, pcieWatts, "one scale for each row"},
    {"nvidia-rtx-a6000", "fp16", 98.7, Evidence::Derived, ga102Watts, cublas},
    {"nvidia-rtx-a6000", "bf16", 98.7, Evidence::Derived, ga102Watts, cublas},
    {"nvidia-rtx-a6000", "tf32", 49.3, Evidence::Derived, ga102Watts, cublas},
    {"nvidia-rtx-a6000", "fp32", 23.8, Evidence::Derived, ga102Lanes, "PyTorch"},
    {"nvidia-a40", "fp16", 98.7, Evidence::Derived, ga102Watts, cublas},
    {"nvidia-a40", "bf16", 98.7, Evidence::Derived, ga102Watts, cublas},
    {"nvidia-a40", "tf32", 49.3, Evidence::Derived, ga102Watts, cublas},
    {"nvidia-a40", "fp32", 23.8, Evidence::Derived, ga102Lanes, "PyTorch"},
    {"nvidia-h200", "bf16", 730, Evidence::Derived, fryer, "cuBLAS in a long run"},
    {"nvidia-h200", "fp16", 677, Evidence::Derived, halfPower, "cuBLAS in a long run"},
    {"nvidia-h200", "tf32", 377, Evidence::Derived, sharedH100, thirtyMore},
    {"nvidia-b200", "bf16", 1091, Evidence::Measured, simumax, "products of transformers"},
    {"nvidia-b200", "fp16", 1091, Evidence::Derived, simumax, "products of transformers"},
};

const Rate* rateOf(const Device& device, std::string_view name)
{
    const auto entry = device.rates.find(std::string(name));
    return entry != device.rates.end() && entry->second.flops.valueOr(0) > 0 ? &entry->second : nullptr;
}

/// Unknown where no measurement is known.
Sourced calibratedRate(const Device& device, const NumberFormat& format)
{
    if (!device.calibration || !device.calibration->raw.is_object())
        return {};
    const Json& raw = device.calibration->raw;
    const auto rates = raw.find("product_rates");
    if (rates == raw.end() || !rates->is_object())
        return {};
    const auto value = rates->find(std::string(format.key));
    if (value == rates->end() || !value->is_number() || value->get<double>() <= 0)
        return {};
    return {value->get<double>(), Evidence::Measured, "calibration of this machine", "large products on all cores"};
}

Sourced publishedRate(std::span<const Published> table, const Device& device, const NumberFormat& format)
{
    for (const Published& known : table) {
        // A data sheet has no measurement; a calibrated or derived device is another one.
        if (device.id == known.device && format.rate == known.rate && device.basis == "catalogue")
            return {known.teraflops * 1e12, known.evidence, known.source, known.method};
    }
    return {};
}

Sourced commonRate(const Device& device, Format format, double dense)
{
    if (!device.isGpu())
        return {0.9 * dense, Evidence::Unverified, "0.9 of the derived rate, until calibrated", {}};
    const double share = format == Format::Fp32 || format == Format::Fp64 ? 0.73 : 0.76;
    return {
        share * dense, Evidence::Unverified, fmt::format("{} of the dense rate, as an H100 SXM reaches", share), {}};
}

double shareOfDense(const Device& device, Format format, Sourced ProductRate::*which)
{
    const auto rate = productRate(device, format);
    if (!rate || !(rate->dense.value > 0) || !((*rate.*which).value > 0))
        return 1;
    return std::min(1.0, (*rate.*which).value / rate->dense.value);
}

} // namespace

std::vector<Format> productFormats(const Device& device)
{
    std::vector<Format> found;
    for (const NumberFormat& format : numberFormats()) {
        if (rateOf(device, format.rate) != nullptr)
            found.push_back(format.format);
    }
    return found;
}

Result<ProductRate> productRate(const Device& device, Format format)
{
    const NumberFormat& numbers = numberFormat(format);
    const Rate* const rate = rateOf(device, numbers.rate);
    if (rate == nullptr) {
        std::vector<std::string> known;
        for (const Format other : productFormats(device))
            known.emplace_back(numberFormat(other).key);
        return fail(
            "predict.format", fmt::format("{} has no known rate for products in {}", device.name, numbers.label),
            known.empty() ? "choose a device of the catalogue" : "it has one for " + join(known, ", "), "format");
    }
    ProductRate found{rate->flops, calibratedRate(device, numbers), {}};
    if (!found.reached.known())
        found.reached = publishedRate(published, device, numbers);
    if (!found.reached.known())
        found.reached = commonRate(device, format, found.dense.value);
    found.sustained = publishedRate(sustained, device, numbers);
    if (!found.sustained.known())
        found.sustained = found.reached;
    return found;
}

double reachedShare(const Device& device, Format format)
{
    return shareOfDense(device, format, &ProductRate::reached);
}

double sustainedShare(const Device& device, Format format)
{
    return shareOfDense(device, format, &ProductRate::sustained);
}

namespace {

/// A B200's sustained rate is one of whole layers, which tells nothing of its clocks.
bool isOfLayers(const Device& device)
{
    return device.id == "nvidia-b200" && device.basis == "catalogue";
}

} // namespace

double sustainedClocks(const Device& device, Format format)
{
    constexpr double atFullClocks = 0.76;
    // FlashAttention-4 is left 1,237 of 1,450 TFLOP/s after 70 runs (flashinfer-ai/flashinfer, pull request 2899).
    constexpr double attentionOfB200 = 1237.0 / 1450;
    return isOfLayers(device) ? attentionOfB200 : std::min(1.0, sustainedShare(device, format) / atFullClocks);
}

double spareClocks(const Device& device, Format format)
{
    if (isOfLayers(device))
        return 1;
    const double ofProducts = reachedShare(device, format) / sustainedShare(device, format);
    return std::min(ofProducts, 1 / sustainedClocks(device, format));
}

Format productFormat(Precision recipe)
{
    switch (recipe) {
    case Precision::Fp32: return Format::Fp32;
    case Precision::Fp16Autocast:
    case Precision::Fp16UnderAutocast:
    case Precision::Fp16Mixed:
    case Precision::Fp16: return Format::Fp16;
    case Precision::Fp8: return Format::Fp8E4M3;
    default: return Format::Bf16;
    }
}

} // namespace memscape
