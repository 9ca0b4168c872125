"""Field fault 12: whether livepool is active is asked of torch, not remembered; what is counted has happened."""


def test_status_follows_what_torch_uses(program):
    assert program(
        """
        print(livepool.stats()["active"], livepool.stats()["cpu"], livepool.stats()["cuda"])
        assert livepool.stats()["hits"] == 0, "nothing was served"
        graph = livepool.capture(network, ones(8))
        graph.replay(ones(8, 2))
        print(livepool.stats()["hits"] > 0)
        """
    ) == "True True False\nTrue\n"


def test_status_before_install(livepool, tmp_path):
    import subprocess
    import sys

    text = "import torch, livepool; print(livepool.stats()['active'], livepool.stats()['passes'])"
    folder = livepool._livepool.__file__.rsplit("/", 2)[0]
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=tmp_path,
                            env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "False 0\n", "")


def test_switched_off_it_serves_nothing(program):
    assert program(
        """
        graph = livepool.capture(network, ones(8))
        assert torch.equal(graph.replay(ones(8, 2)), network(ones(8, 2)))
        print(livepool.stats()["hits"], livepool.stats()["arena_bytes"])
        """,
        LIVEPOOL="0",
    ) == "0 0\n"
