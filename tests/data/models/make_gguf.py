# SPDX-License-Identifier: Apache-2.0
"""Writes tiny.gguf with the gguf library (pip install gguf; 0.19.0 made the one that is kept)."""
import pathlib

import numpy
from gguf import GGMLQuantizationType, GGUFWriter

writer = GGUFWriter(str(pathlib.Path(__file__).with_name("tiny.gguf")), "llama")
writer.add_name("tiny")
writer.add_context_length(16)
writer.add_token_list(["a", "bc", ""])
writer.add_array("test.nested", [[1, 2], [3]])
writer.add_tensor("weight", numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
writer.add_tensor("half", numpy.ones(8, dtype=numpy.float16))
blocks = numpy.zeros((2, 34), dtype=numpy.uint8)  # two blocks of Q8_0: a scale and 32 bytes
writer.add_tensor("quantized", blocks, raw_dtype=GGMLQuantizationType.Q8_0)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
