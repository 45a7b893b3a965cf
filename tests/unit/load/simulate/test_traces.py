"""Files of known forms become jobs, and the cluster offers the load that is asked for."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.load.simulate.cluster import SimulatedNode, could_run, workload
from tests.load.simulate.traces.job import Job, NodeKind, Trace
from tests.load.simulate.traces.reading import read_trace
from tests.load.simulate.traces.synthetic import synthetic_day

INTERVALS = """u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status
0,ann,1,4,1,0,60,0,Pass
1,bob,0,4,1,10,5,0,Pass
2,bob,16,4,2,10,3600,0,Killed
3,ann,9,4,2,100,1,0,Failed
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,1,1,1,460,,LS,Running,100,500,150
p1,1,1,2,1000,T4|P100,BE,Succeeded,130,430,130
p2,1,1,0,0,,BE,Succeeded,140,150,140
p3,1,1,1,1000,,BE,Pending,150,160,
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,1,1,2,T4
n1,1,1,2,T4
n2,1,1,8,G2
"""


def test_intervals_add_up_and_gangs_have_a_pod_on_each_node(tmp_path: Path) -> None:
    path = tmp_path / "tiny.csv.gz"
    path.write_bytes(gzip.compress(INTERVALS.encode()))
    trace = read_trace(path)
    assert (trace.name, trace.without_gpus, trace.span_s) == ("tiny", 1, 120)
    assert [(job.number, job.user, job.submitted_s, job.run_s, job.pods, job.slots_per_pod) for job in trace.jobs] == [
        (0, "ann", 0, 60, 1, 1),
        (1, "bob", 20, 3600, 2, 8),
        (2, "ann", 120, 1, 2, 5),  # nine GPUs on two nodes, rounded up to equal pods
    ]


def test_parts_of_a_gpu_are_rounded_up_and_models_are_kept(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(PODS)
    nodes.write_text(NODES)
    trace = read_trace(pods, nodes=nodes)
    assert (trace.without_gpus, trace.never_ran) == (1, 1)
    assert [(job.submitted_s, job.run_s, job.slots, job.models) for job in trace.jobs] == [
        (0, 350, 1, frozenset()),
        (30, 300, 2, frozenset({"T4", "P100"})),
    ]
    assert trace.kinds == (NodeKind(slots=2, model="T4", count=2), NodeKind(slots=8, model="G2", count=1))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n1,2\n", "columns of no known trace: a, b"),
        (PODS, "--nodes"),
        (INTERVALS.replace("3600", "long"), "line 4: run_time has to be a number of zero or more, not 'long'"),
        (INTERVALS.replace("3600", "-1"), "line 4: run_time"),
        (INTERVALS.partition("1,bob")[0], "fewer than two submissions"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_trace(path)


def test_a_synthetic_day_is_the_same_for_the_same_seed_only() -> None:
    day = synthetic_day(jobs=500)
    assert day == synthetic_day(jobs=500)
    assert day != synthetic_day(jobs=500, seed=8)
    assert [job.submitted_s for job in day.jobs] == sorted(job.submitted_s for job in day.jobs)
    assert len({job.priority for job in day.jobs}) == 3


@pytest.mark.parametrize("load", [0.7, 0.9, 1.1])
def test_the_cluster_offers_the_load_that_is_asked_for(load: float) -> None:
    chosen = workload(synthetic_day(jobs=5000), load)
    assert {node.slots for node in chosen.nodes} == {8}
    assert chosen.load == pytest.approx(load, rel=0.05)


def test_a_cluster_that_cannot_be_small_enough_gets_its_jobs_faster() -> None:
    """One gang of two whole nodes that is nearly always idle."""
    jobs = tuple(Job(number=n, user="ann", submitted_s=n * 1000.0, run_s=10, pods=2, slots_per_pod=8) for n in range(5))
    chosen = workload(Trace(name="idle", jobs=jobs), 0.9)
    assert len(chosen.nodes) == 2
    assert chosen.load == pytest.approx(0.9, rel=0.01)
    assert chosen.trace.span_s == pytest.approx(4000 / chosen.speedup)


def test_jobs_that_would_never_fill_the_cluster_are_refused() -> None:
    jobs = tuple(Job(number=n, user="ann", submitted_s=n * 1000.0, run_s=10, slots_per_pod=1) for n in range(3))
    two_nodes = replace(jobs[1], pods=2, slots_per_pod=8, run_s=0)
    with pytest.raises(ValueError, match="idle cannot keep 14 slots busy"):
        workload(Trace(name="idle", jobs=(jobs[0], two_nodes, jobs[2])), 0.9)


def test_load_is_what_runs_while_measures_are_taken() -> None:
    """Of a span of 100 s the first and the last ten are left out, and so is all that runs on after it."""
    jobs = (
        Job(number=0, user="ann", submitted_s=0, run_s=50, slots_per_pod=2),
        Job(number=1, user="ann", submitted_s=0, run_s=1e6, slots_per_pod=1),
        Job(number=2, user="ann", submitted_s=100, run_s=1e6, slots_per_pod=8),
    )
    assert Trace(name="long", jobs=jobs).mean_slots == (2 * 40 + 1 * 80) / 80


def test_the_sparse_beginning_of_a_trace_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    late = "".join(f"{n},bob,1,1,1,{1000 if n == 1 else 1},5,0,Pass\n" for n in range(1, 20))
    path.write_text(INTERVALS.partition("1,bob")[0] + late)
    trace = read_trace(path, leave_out=0.05)
    assert (trace.left_out, len(trace.jobs), trace.span_s) == (1, 19, 18)
    assert [job.number for job in trace.jobs] == list(range(19))


def test_kinds_of_nodes_keep_their_proportions() -> None:
    kinds = (NodeKind(slots=2, model="T4", count=30), NodeKind(slots=8, model="G2", count=10))
    jobs = tuple(Job(number=n, user="ann", submitted_s=n, run_s=60, slots_per_pod=2) for n in range(100))
    chosen = workload(Trace(name="mixed", jobs=jobs, kinds=kinds), 0.5)
    models = [node.model for node in chosen.nodes]
    assert models.count("T4") == pytest.approx(3 * models.count("G2"), abs=2)


def test_a_job_that_fits_on_no_node_is_refused() -> None:
    jobs = (
        Job(number=0, user="ann", submitted_s=0, run_s=1),
        Job(number=1, user="ann", submitted_s=1, run_s=1, models=frozenset({"H100"})),
    )
    with pytest.raises(ValueError, match="job 1 needs 1 slots on one node with H100"):
        workload(Trace(name="odd", jobs=jobs), 0.9)


def test_a_job_could_run_only_on_its_models() -> None:
    nodes = (SimulatedNode(slots=8, model="G2"), SimulatedNode(slots=4, model="T4"))
    job = Job(number=0, user="ann", submitted_s=0, run_s=1, pods=2, slots_per_pod=4)
    assert could_run(job, nodes)
    assert not could_run(
        Job(number=0, user="a", submitted_s=0, run_s=1, slots_per_pod=8, models=frozenset({"T4"})), nodes
    )
