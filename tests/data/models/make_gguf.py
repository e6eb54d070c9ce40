# SPDX-License-Identifier: Apache-2.0
"""Writes tiny.gguf and tiny-llama.gguf with the gguf library (pip install gguf; 0.19.0 made the first that is kept)."""
import pathlib

import numpy
from gguf import GGMLQuantizationType, GGUFWriter

FOLDER = pathlib.Path(__file__).parent


def written(name, architecture, fill):
    writer = GGUFWriter(str(FOLDER / name), architecture)
    fill(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tiny(writer):
    writer.add_name("tiny")
    writer.add_context_length(16)
    writer.add_token_list(["a", "bc", ""])
    writer.add_array("test.nested", [[1, 2], [3]])
    writer.add_tensor("weight", numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
    writer.add_tensor("half", numpy.ones(8, dtype=numpy.float16))
    blocks = numpy.zeros((2, 34), dtype=numpy.uint8)  # two blocks of Q8_0: a scale and 32 bytes
    writer.add_tensor("quantized", blocks, raw_dtype=GGMLQuantizationType.Q8_0)


def tiny_llama(writer, layers=2, hidden=32, heads=4, kv_heads=2, ffn=64, vocab=96):
    """Matrices in Q8_0, norms in fp32, as llama-quantize leaves a LLaMA."""
    writer.add_name("Tiny LLaMA")
    writer.add_context_length(128)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_chat_template("{% for message in messages %}" * 40)

    def matrix(name, rows, columns):
        blocks = numpy.zeros((rows, columns // 32 * 34), dtype=numpy.uint8)
        writer.add_tensor(name + ".weight", blocks, raw_dtype=GGMLQuantizationType.Q8_0)

    def norm(name):
        writer.add_tensor(name + ".weight", numpy.ones(hidden, dtype=numpy.float32))

    matrix("token_embd", vocab, hidden)
    for i in range(layers):
        kept = hidden // heads * kv_heads
        for name, rows, columns in (("attn_q", hidden, hidden), ("attn_k", kept, hidden), ("attn_v", kept, hidden),
                                    ("attn_output", hidden, hidden), ("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden),
                                    ("ffn_down", hidden, ffn)):
            matrix(f"blk.{i}.{name}", rows, columns)
        norm(f"blk.{i}.attn_norm")
        norm(f"blk.{i}.ffn_norm")
    norm("output_norm")
    matrix("output", vocab, hidden)


written("tiny.gguf", "llama", tiny)
written("tiny-llama.gguf", "llama", tiny_llama)
