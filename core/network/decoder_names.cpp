// SPDX-License-Identifier: Apache-2.0
#include "core/network/decoder_names.h"

namespace memscape {

DecoderNames decoderNames(const ModelDescription& model)
{
    const std::string& architecture = model.architecture;
    DecoderNames names;
    if (architecture == "gpt2")
        return {"transformer", "wte", "wpe", "h",    "ln_1",   "ln_2", "attn",    "c_attn", "c_proj",
                "mlp",         "",    "",    "c_fc", "c_proj", "ln_f", "lm_head", true};
    if (architecture == "gpt_bigcode")
        return {"transformer", "wte", "wpe", "h", "ln_1", "ln_2",   "attn", "c_attn",
                "c_proj",      "mlp", "",    "",  "c_fc", "c_proj", "ln_f", "lm_head"};
    if (architecture == "litgpt") {
        const char* up = model.gated ? "fc_2" : "fc";
        return {"transformer", "wte", "", "h",    "norm_1", "norm_2", "attn", "qkv",
                "proj",        "mlp", "", "fc_1", up,       "proj",   "ln_f", "lm_head"};
    }
    if (architecture == "qwen")
        return {"transformer", "wte", "", "h",  "ln_1", "ln_2",   "attn", "c_attn",
                "c_proj",      "mlp", "", "w2", "w1",   "c_proj", "ln_f", "lm_head"};
    if (architecture == "gptj")
        return {"transformer", "wte", "", "h", "ln_1",  "",       "attn", "",
                "out_proj",    "mlp", "", "",  "fc_in", "fc_out", "ln_f", "lm_head"};
    if (architecture == "mpt")
        return {"transformer", "wte", "", "blocks", "norm_1",  "norm_2",    "attn",   "Wqkv",
                "out_proj",    "ffn", "", "",       "up_proj", "down_proj", "norm_f", "lm_head"};
    if (architecture == "bloom" || architecture == "falcon") {
        const bool hasTwo = architecture == "falcon" && model.parallelResidual && !model.sharedNorm;
        return {"transformer",
                "word_embeddings",
                "",
                "h",
                hasTwo ? "ln_attn" : "input_layernorm",
                hasTwo ? "ln_mlp" : "post_attention_layernorm",
                "self_attention",
                "query_key_value",
                "dense",
                "mlp",
                "",
                "",
                "dense_h_to_4h",
                "dense_4h_to_h",
                "ln_f",
                "lm_head"};
    }
    if (architecture == "gpt_neox")
        return {"gpt_neox",
                "embed_in",
                "",
                "layers",
                "input_layernorm",
                "post_attention_layernorm",
                "attention",
                "query_key_value",
                "dense",
                "mlp",
                "",
                "",
                "dense_h_to_4h",
                "dense_4h_to_h",
                "final_layer_norm",
                "embed_out"};
    if (architecture == "opt")
        return {"model.decoder",
                "embed_tokens",
                "embed_positions",
                "layers",
                "self_attn_layer_norm",
                "final_layer_norm",
                "self_attn",
                "",
                "out_proj",
                "",
                "",
                "",
                "fc1",
                "fc2",
                "final_layer_norm",
                "lm_head"};
    if (architecture == "phi") {
        names.output = "dense";
        names.up = "fc1";
        names.down = "fc2";
        names.finalNorm = "final_layernorm";
    } else if (architecture == "starcoder2") {
        names.up = "c_fc";
        names.down = "c_proj";
    } else if (architecture == "phi3") {
        names.fusedQkv = "qkv_proj";
        names.fusedGateUp = "gate_up_proj";
    } else if (architecture == "from-scratch") {
        return {"",         "token_embeddings", "",    "layers", "ln1", "ln2", "attn",
                "",         "output_proj",      "ffn", "",       "w1",  "w3",  "w2",
                "ln_final", "lm_head"};
    }
    return names;
}

} // namespace memscape
