"""Rows of ranks that are simulated but did not run."""

import numpy as np

from neuron_tools.capture import replicas


def test_rows_move_to_another_process_with_ids_of_their_own():
    rows = {"process_idx": np.array([2, 2]), "id": np.array([5, 6]), "start_ts": np.array([10, 20])}
    copies = [replicas.replicated(rows, replica) for replica in range(3)]
    assert {int(copy["process_idx"][0]) for copy in copies} == {
        replicas.replica_process(2, replica) for replica in range(3)
    }
    assert len({int(number) for copy in copies for number in copy["id"]}) == 6
    assert all(np.array_equal(copy["start_ts"], rows["start_ts"]) for copy in copies)


def test_a_replica_tells_whom_it_stands_for():
    row = {"process_idx": [2], "rank": [1], "process_id": [77], "host": ["a"], "name": [None]}
    copy = replicas.replica_process_row(row, 3, 4)
    assert (copy["rank"], copy["replica_of_rank"], copy["process_id"]) == ([13], [1], [None])
    assert copy["name"] == ["as rank 1, which ran"]


def test_the_notice_counts_the_ranks():
    assert replicas.replication_notice(4, 16).startswith("64 ranks are simulated and 4 of them ran")
