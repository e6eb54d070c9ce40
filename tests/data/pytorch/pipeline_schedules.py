# SPDX-License-Identifier: Apache-2.0
"""In which order torch.distributed.pipelining runs the passes of each rank: pipeline_schedules.json.

The schedules are PyTorch's own: of the interleaved one the table that it makes for each rank, of 1F1B and GPipe the calls
that it makes of a stage which only notes them. No process group and no device are needed.

    python pipeline_schedules.py > pipeline_schedules.json
"""

import json
from unittest import mock

import torch
from torch.distributed.pipelining import schedules

ONE_CHUNK = {"gpipe": schedules.ScheduleGPipe, "1f1b": schedules.Schedule1F1B}
CASES = [("gpipe", 4, 1, 6), ("1f1b", 4, 1, 8), ("1f1b", 4, 1, 4), ("1f1b", 2, 1, 5), ("interleaved", 4, 2, 8),
         ("interleaved", 2, 3, 4), ("interleaved", 4, 2, 4), ("interleaved", 8, 4, 16)]


def one_chunk(kind, ranks, rank, micro_batches):
    """["F0", "F1", "B0", …]: what the schedule calls."""
    calls = []
    stage = mock.MagicMock()
    stage.num_stages, stage.stage_index, stage.is_last, stage.is_first = ranks, rank, rank == ranks - 1, rank == 0
    stage.has_backward, stage.group_size, stage.group_rank = True, ranks, rank
    for name in ("get_fwd_recv_ops", "get_fwd_send_ops", "get_bwd_recv_ops", "get_bwd_send_ops"):
        getattr(stage, name).side_effect = lambda *_: []
    stage.forward_one_chunk.side_effect = lambda i, *_, **__: calls.append(f"F0.{i}")
    stage.backward_one_chunk.side_effect = lambda i, **_: calls.append(f"B0.{i}")
    schedule = ONE_CHUNK[kind](stage, micro_batches, loss_fn=mock.MagicMock())
    schedule._stages_forward_initialized = schedule._stages_backward_initialized = True
    with mock.patch.object(schedule, "_check_inputs", lambda a, k, t, l: ([()] * micro_batches, [{}] * micro_batches)), \
            mock.patch.object(schedule, "_initialize_stage", lambda *_: None), \
            mock.patch.object(schedule, "_maybe_compute_loss", lambda *_: None), \
            mock.patch.object(schedule, "_maybe_get_loss", lambda *_: None), \
            mock.patch.object(schedule, "_update_losses", lambda *_: None):
        schedule._step_microbatches()
    return calls


def interleaved(ranks, rank, chunks, micro_batches):
    schedule = object.__new__(schedules.ScheduleInterleaved1F1B)
    schedule.pp_group_size, schedule.rank, schedule.n_local_stages = ranks, rank, chunks
    schedule._n_microbatches = micro_batches
    schedule.number_of_rounds = max(1, micro_batches // ranks)
    schedule.microbatches_per_round = micro_batches // schedule.number_of_rounds
    actions = [one for one in schedule._calculate_single_rank_operations(rank) if one is not None]
    return [f"{'F' if one.computation_type == schedules._ComputationType.FORWARD else 'B'}"
            f"{one.stage_index // ranks}.{one.microbatch_index}" for one in actions]


def main():
    cases = []
    for kind, ranks, chunks, micro_batches in CASES:
        orders = [one_chunk(kind, ranks, rank, micro_batches) if chunks == 1
                  else interleaved(ranks, rank, chunks, micro_batches) for rank in range(ranks)]
        cases.append({"schedule": kind, "ranks": ranks, "chunks": chunks, "micro_batches": micro_batches,
                      "orders": [" ".join(order) for order in orders]})
    print(json.dumps({"made_by": "pipeline_schedules.py", "torch": torch.__version__,
                      "actions": "F or B, chunk of the rank, micro-batch", "cases": cases}, indent=1))


main()
