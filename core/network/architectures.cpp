// SPDX-License-Identifier: Apache-2.0
#include "core/network/architectures.h"

namespace memscape {

namespace {

struct Sizes
{
    std::int64_t vocab, ffn, heads, kvHeads, headDim, maxPositions;
};

ModelDescription decoder(const Sizes& sizes)
{
    ModelDescription model;
    model.vocab = sizes.vocab;
    model.ffn = sizes.ffn;
    model.heads = sizes.heads;
    model.kvHeads = sizes.kvHeads;
    model.headDim = sizes.headDim;
    model.maxPositions = sizes.maxPositions;
    return model;
}

/// LayerNorm, two matrices in the feed-forward layer, biases everywhere: before LLaMA.
ModelDescription classic(const Sizes& sizes, PositionKind positions, ActivationKind activation)
{
    ModelDescription model = decoder(sizes);
    model.norm = NormKind::LayerNorm;
    model.positions = positions;
    model.activation = activation;
    model.gated = false;
    model.biases = {true, true, true, true, true, true, false};
    return model;
}

ModelDescription gemma(const Sizes& sizes, NormPlacement placement)
{
    ModelDescription model = decoder(sizes);
    model.activation = ActivationKind::GeluTanh;
    model.normPlacement = placement;
    model.tied = true;
    return model;
}

ModelDescription phi2()
{
    ModelDescription model = classic({51200, 8192, 32, 0, 0, 2048}, PositionKind::Rotary, ActivationKind::GeluNew);
    model.parallelResidual = model.sharedNorm = true;
    model.biases.head = true;
    model.rotaryShare = 0.5;
    return model;
}

ModelDescription gptNeoX()
{
    ModelDescription model = classic({50432, 24576, 64, 0, 0, 2048}, PositionKind::Rotary, ActivationKind::Gelu);
    model.parallelResidual = true;
    model.rotaryShare = 0.25;
    return model;
}

ModelDescription tiedClassic(const Sizes& sizes, ActivationKind activation)
{
    ModelDescription model = classic(sizes, PositionKind::Learned, activation);
    model.tied = true;
    return model;
}

/// Biases in the feed-forward layer and the head alone; one norm a layer.
ModelDescription gptJ()
{
    ModelDescription model = classic({50400, 0, 16, 0, 0, 2048}, PositionKind::Rotary, ActivationKind::GeluNew);
    model.parallelResidual = model.sharedNorm = true;
    model.biases = {.feedForward = true, .norm = true, .head = true};
    return model;
}

ModelDescription falcon()
{
    ModelDescription model = classic({65024, 0, 71, 0, 0, 2048}, PositionKind::Rotary, ActivationKind::Gelu);
    model.biases = {.norm = true};
    model.tied = true;
    return model;
}

ModelDescription bloom()
{
    ModelDescription model = classic({250880, 0, 8, 0, 0, 0}, PositionKind::Alibi, ActivationKind::GeluTanh);
    model.embeddingNorm = model.tied = true;
    return model;
}

ModelDescription mpt()
{
    ModelDescription model = classic({50368, 0, 16, 0, 0, 2048}, PositionKind::Alibi, ActivationKind::Gelu);
    model.biases = {};
    model.tied = true;
    return model;
}

ModelDescription starcoder2()
{
    ModelDescription model = classic({49152, 12288, 24, 2, 0, 4096}, PositionKind::Rotary, ActivationKind::GeluTanh);
    model.tied = true;
    return model;
}

ModelDescription stableLm()
{
    ModelDescription model = decoder({50304, 6912, 32, 32, 0, 4096});
    model.norm = NormKind::LayerNorm;
    model.biases.norm = true;
    model.rotaryShare = 0.25;
    return model;
}

/// Of 2023, as its own modeling_qwen.py has it (QwenLM/Qwen): queries, keys and values are one matrix.
/// Left out: queries and keys are turned in float, and cast back.
ModelDescription qwen()
{
    ModelDescription model = decoder({151936, 11008, 32, 0, 0, 8192});
    model.biases.query = model.biases.key = model.biases.value = true;
    return model;
}

ModelDescription qwen2()
{
    ModelDescription model = decoder({151936, 22016, 32, 32, 0, 32768});
    model.biases.query = model.biases.key = model.biases.value = true;
    return model;
}

ModelDescription qwen3(bool mixture)
{
    ModelDescription model =
        decoder(mixture ? Sizes{151936, 6144, 32, 4, 128, 32768} : Sizes{151936, 22016, 32, 32, 128, 32768});
    model.queryKeyNorm = true;
    if (mixture) {
        model.experts.count = 128;
        model.experts.active = 8;
        model.experts.ffn = 768;
    }
    return model;
}

ModelDescription qwen2Moe()
{
    ModelDescription model = qwen2();
    model.ffn = 5632;
    model.heads = model.kvHeads = 16;
    model.experts.count = 60;
    model.experts.active = 4;
    model.experts.ffn = 1408;
    model.experts.sharedFfn = 5632;
    model.experts.sharedGate = true;
    return model;
}

ModelDescription mixtral()
{
    ModelDescription model = decoder({32000, 14336, 32, 8, 0, 131072});
    model.experts.count = 8;
    model.experts.active = 2;
    return model;
}

ModelDescription olmoe()
{
    ModelDescription model = decoder({50304, 2048, 16, 0, 0, 4096});
    model.queryKeyNormWhole = true;
    model.experts.count = 64;
    model.experts.active = 8;
    return model;
}

ModelDescription gptOss()
{
    ModelDescription model = decoder({201088, 2880, 64, 8, 64, 131072});
    model.biases.query = model.biases.key = model.biases.value = model.biases.attentionOutput = true;
    model.attentionSinks = true;
    model.slidingWindow = 128;
    model.experts.count = 128;
    model.experts.active = 4;
    model.experts.routerBias = model.experts.expertBiases = true;
    return model;
}

ModelDescription deepseek(bool third)
{
    ModelDescription model =
        third ? decoder({129280, 18432, 128, 128, 0, 4096}) : decoder({32000, 11008, 32, 32, 0, 2048});
    model.latent = {1536, 512, 64, 128, 128};
    model.experts.count = third ? 256 : 64;
    model.experts.active = third ? 8 : 6;
    model.experts.ffn = third ? 2048 : 1407;
    return model;
}

ModelDescription bert()
{
    ModelDescription model = tiedClassic({30522, 3072, 12, 0, 0, 512}, ActivationKind::Gelu);
    model.family = Family::Encoder;
    model.normPlacement = NormPlacement::After;
    model.tokenTypes = 2;
    model.head = HeadKind::Pooler;
    model.finalNorm = false;
    return model;
}

ModelDescription t5()
{
    ModelDescription model = decoder({32128, 2048, 8, 0, 64, 512});
    model.family = Family::EncoderDecoder;
    model.positions = PositionKind::RelativeBias;
    model.activation = ActivationKind::Relu;
    model.relativeBuckets = 32;
    model.gated = false;
    model.tied = true;
    return model;
}

ModelDescription vit()
{
    ModelDescription model = classic({0, 3072, 12, 0, 0, 0}, PositionKind::Learned, ActivationKind::Gelu);
    model.family = Family::VisionTransformer;
    model.head = HeadKind::Classifier;
    return model;
}

ModelDescription whisper()
{
    ModelDescription model = tiedClassic({51865, 0, 0, 0, 0, 448}, ActivationKind::Gelu);
    model.family = Family::EncoderDecoder;
    model.biases.key = false;
    return model;
}

ModelDescription dino()
{
    ModelDescription model = vit();
    model.heads = 12;
    model.picture.patch = 14;
    model.layerScale = true;
    return model;
}

ModelDescription swin()
{
    ModelDescription model = vit();
    model.positions = PositionKind::RelativeBias;
    model.picture.patch = 4;
    return model;
}

/// DiT's sizes; a UNet's are in its levels.
ModelDescription diffusion()
{
    ModelDescription model = vit();
    model.family = Family::Diffusion;
    model.head = HeadKind::None;
    model.activation = ActivationKind::GeluTanh;
    model.picture = {32, 2, 4, 1000};
    return model;
}

ModelDescription mamba()
{
    ModelDescription model;
    model.family = Family::StateSpace;
    model.vocab = 50280;
    model.positions = PositionKind::None;
    return model;
}

ModelDescription cnn(CnnKind kind)
{
    ModelDescription model;
    model.family = Family::Cnn;
    model.head = HeadKind::Classifier;
    model.activation = ActivationKind::Relu;
    model.cnn.kind = kind;
    return model;
}

ModelDescription mistral()
{
    ModelDescription model = decoder({32000, 14336, 32, 8, 0, 131072});
    return model;
}

struct Entry
{
    const char* type;
    ModelDescription (*standard)();
};

constexpr Entry entries[] = {
    {"alexnet", [] { return cnn(CnnKind::AlexNet); }},
    {"bert", bert},
    {"bloom", bloom},
    {"deepseek_v2", [] { return deepseek(false); }},
    {"deepseek_v3", [] { return deepseek(true); }},
    {"densenet", [] { return cnn(CnnKind::DenseNet); }},
    {"dinov2", dino},
    {"dit", diffusion},
    {"efficientnet", [] { return cnn(CnnKind::EfficientNet); }},
    {"falcon", falcon},
    {"from-scratch",
     [] {
         return decoder({0, 0, 0, 0, 0, 0});
     }},
    {"gemma",
     [] {
         return gemma({256000, 24576, 16, 16, 256, 8192}, NormPlacement::Before);
     }},
    {"gemma2",
     [] {
         return gemma({256000, 9216, 8, 4, 256, 8192}, NormPlacement::Both);
     }},
    {"gemma3_text",
     [] {
         ModelDescription model = gemma({262208, 9216, 8, 4, 256, 131072}, NormPlacement::Both);
         model.queryKeyNorm = true;
         return model;
     }},
    {"gpt2",
     [] {
         return tiedClassic({50257, 0, 12, 0, 0, 1024}, ActivationKind::GeluNew);
     }},
    {"gpt_bigcode",
     [] {
         return tiedClassic({50257, 0, 12, 0, 0, 1024}, ActivationKind::GeluTanh);
     }},
    {"gpt_neox", gptNeoX},
    {"gpt_oss", gptOss},
    {"gptj", gptJ},
    {"llama",
     [] {
         return decoder({32000, 11008, 32, 0, 0, 2048});
     }},
    {"mamba", mamba},
    {"mistral", mistral},
    {"mixtral", mixtral},
    {"mobilenet_v1", [] { return cnn(CnnKind::MobileNetV1); }},
    {"mobilenet_v2", [] { return cnn(CnnKind::MobileNetV2); }},
    {"mpt", mpt},
    {"olmoe", olmoe},
    {"opt",
     [] {
         return tiedClassic({50272, 3072, 12, 0, 0, 2048}, ActivationKind::Relu);
     }},
    {"phi", phi2},
    {"phi3",
     [] {
         return decoder({32064, 8192, 32, 0, 0, 4096});
     }},
    {"qwen", qwen},
    {"qwen2", qwen2},
    {"qwen2_moe", qwen2Moe},
    {"qwen3", [] { return qwen3(false); }},
    {"qwen3_moe", [] { return qwen3(true); }},
    {"resnet", [] { return cnn(CnnKind::ResNet); }},
    {"stablelm", stableLm},
    {"starcoder2", starcoder2},
    {"swin", swin},
    {"t5", t5},
    {"unet", diffusion},
    {"vgg", [] { return cnn(CnnKind::Vgg); }},
    {"vit", vit},
    {"whisper", whisper},
};

} // namespace

std::vector<std::string> knownArchitectures()
{
    std::vector<std::string> names;
    for (const Entry& entry : entries)
        names.emplace_back(entry.type);
    return names;
}

std::optional<ModelDescription> architectureStandard(std::string_view modelType)
{
    for (const Entry& entry : entries) {
        if (modelType == entry.type) {
            ModelDescription model = entry.standard();
            model.architecture = entry.type;
            return model;
        }
    }
    return std::nullopt;
}

ModelDescription decoderLikeLlama()
{
    ModelDescription model;
    model.architecture = "llama";
    return model;
}

} // namespace memscape
