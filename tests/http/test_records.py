# SPDX-License-Identifier: Apache-2.0
"""Records in lodge.db are bounded in number."""
import contextlib

from client import Lodged


def test_the_oldest_commands_of_a_session_are_deleted():
    with contextlib.closing(Lodged(keep_execs_max=20)) as lone:
        client = lone.client()
        sid, other = client.enter(key="many"), client.enter(key="few")

        def run(at, command, **more):
            answer = client.post(f"/v1/sessions/{at}/exec", {"command": command, **more})
            assert answer.status in (200, 202), answer
            return answer.json["exec_id"]
        few = run(other, "echo few")
        running = run(sid, "sleep 1000", background=True)
        ids = [run(sid, f"echo {i}") for i in range(150)]
        kept = [x["exec_id"] for x in client.get(f"/v1/sessions/{sid}/execs?limit=1000").json["execs"]]
        assert running in kept and 20 < len(kept) <= 1 + 20 + 64  # they are counted at every 64th
        assert [i for i in kept if i != running] == ids[-len(kept) + 1:]
        assert client.get(f"/v1/sessions/{sid}/execs/{ids[0]}").status == 404
        assert client.get(f"/v1/sessions/{other}/execs/{few}").status == 200
