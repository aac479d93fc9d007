"""The same on a Dask cluster of two processes, one of them killed."""

import json
import os
import signal

import pytest

from helpers.sweep import Store, SweepFailed, run_sweep

distributed = pytest.importorskip(
    "distributed", reason="the extra dask is not installed"
)


@pytest.fixture
def cluster(bench):
    """Started after the bench, so that its workers find the tasks."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
    ) as cluster:
        yield cluster


def stored(bench):
    return sorted(json.loads(c)["x"] for c, _ in bench.rows())


@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
def test_a_sweep_by_address_with_a_killed_worker(bench, cluster):
    values = json.dumps(list(range(40)))
    command = ("run", "tasks:square", bench.store, "--over", f"x={values}")
    command += ("--over", "wait=0.1", "--scheduler")
    driver = bench.start(*command, cluster.scheduler_address)
    bench.wait_for_rows(4)
    assert len(bench.pids()) == 2
    os.kill(bench.pids().pop(), signal.SIGKILL)
    out, err = driver.communicate(timeout=60)
    assert driver.returncode == 0, err
    assert "40 computed" in out and stored(bench) == list(range(40))
    assert sum(bench.calls().values()) <= 42
    # and what is stored is not asked of the cluster again
    code, out, err = bench.run(*command, cluster.scheduler_address)
    assert code == 0 and "0 computed, 40 found" in out, err


@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
def test_poison_on_a_cluster(bench, cluster):
    import dask

    items = {"x": range(8), "deadly": [[3]], "raising": [[5]]}
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        cluster.scheduler.allowed_failures = 1
        with distributed.Client(cluster) as client:
            with pytest.raises(SweepFailed) as caught:
                run_sweep("tasks:poison", items, bench.store, scheduler=client)
            assert client.status == "running"  # a given client stays open
    failed = {c["x"]: error for c, error in caught.value.report.failed}
    assert set(failed) == {3, 5}
    assert "worker process died" in failed[3] and "poison" in failed[5]
    assert stored(bench) == [0, 1, 2, 4, 6, 7]
    with Store(bench.store) as store:
        [status] = store.status()
    assert (status.done, status.failed, status.missing) == (6, 2, 0)


def test_no_scheduler(bench, monkeypatch):
    from helpers.sweep import pools

    monkeypatch.setattr(pools, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ConnectionError, match="`dask scheduler`"):
        run_sweep(
            "tasks:square",
            {"x": [1]},
            bench.store,
            scheduler="tcp://127.0.0.1:9",
        )


def test_no_worker(bench, monkeypatch):
    from helpers.sweep import pools

    monkeypatch.setattr(pools, "CONNECT_SECONDS", 1)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as none:
        assert none.scheduler_address
        with pytest.raises(ConnectionError, match="dask worker"):
            run_sweep(
                "tasks:square",
                {"x": [1]},
                bench.store,
                scheduler=none.scheduler_address,
            )
