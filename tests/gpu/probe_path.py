# SPDX-License-Identifier: Apache-2.0
"""Import this before memscape_probe: the package of this tree, or of the bundle that these scripts came with."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels/pytorch"))
