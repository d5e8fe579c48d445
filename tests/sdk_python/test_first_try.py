# SPDX-License-Identifier: Apache-2.0
"""What people try first with a Sandbox works, or is refused with words that help."""
import uuid

import pytest

import lodge


@pytest.fixture
def kind(way):
    """Sandbox or AsyncSandbox."""
    return lodge.Sandbox if way.kind == "sync" else lodge.AsyncSandbox


@pytest.fixture
def box(way, do, kind):
    made = do(kind.create(client=way.client))
    yield made
    do(made.close())


@pytest.mark.parametrize("name", [None, ""])
def test_a_name_that_is_missing_is_refused(way, do, kind, name):
    for call in (kind.get_or_create, kind.get):
        with pytest.raises(lodge.InvalidError, match="^name: must not be empty"):
            do(call(name, client=way.client))
    with pytest.raises(lodge.InvalidError, match="^name: must be text, not int"):
        do(kind.get_or_create(5, client=way.client))


def test_what_was_deleted_is_not_found(way, do, kind):
    name = uuid.uuid4().hex
    do(do(kind.get_or_create(name, client=way.client)).delete())
    with pytest.raises(lodge.NotFoundError) as e:
        do(kind.get(name, client=way.client))
    assert isinstance(e.value, lodge.GoneError) and e.value.code == "GONE" and "(GONE, request " in str(e.value)


def test_contents_of_a_wrong_type_are_refused(do, box):
    for data, text in ((5, "not int"), (None, "not NoneType"), ({"a": 1}, r"not dict; json.dumps\(\) makes text of it")):
        with pytest.raises(lodge.InvalidError, match="^data: must be text, bytes or an open file, " + text):
            do(box.files.write("n", data))
    with pytest.raises(lodge.InvalidError, match=r"^path: must be text, not list; write_files\(\) writes several files"):
        do(box.files.write([{"path": "n", "data": "x"}], "x"))
    with pytest.raises(lodge.InvalidError, match="^files: must be a mapping of paths to their contents, not list"):
        do(box.files.write_files([{"path": "n", "data": "x"}]))
    with pytest.raises(lodge.InvalidError, match="^source: must be a local path, bytes or an open file, not int"):
        do(box.files.upload(0, "n"))
    assert not do(box.files.exists("n"))
    do(box.files.write("n", memoryview(bytearray(b"12"))))
    assert do(box.files.read("n")) == b"12"


def test_an_upload_keeps_the_permissions(do, box, tmp_path):
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "run.sh").chmod(0o755)
    do(box.files.upload(tmp_path / "run.sh", "bin/run.sh"))
    assert do(box.run("bin/run.sh")).stdout == "ran\n"
    assert do(box.files.upload(str(tmp_path / "run.sh"), "plain", mode=0o640))["mode"] == "0640"


def test_a_sandbox_goes_back_to_a_snapshot(do, box):
    do(box.files.write("f", "1"))
    snapshot = do(box.snapshot("one"))
    for wanted in (snapshot, "one", snapshot.id):
        do(box.files.write("f", "2"))
        do(box.rollback(wanted))
        assert do(box.files.read_text("f")) == "1"
    with pytest.raises(lodge.NotFoundError):
        do(box.rollback("two"))
    for wrong in ("", None, 5):
        with pytest.raises(lodge.InvalidError, match=f"^snapshot: must be a Snapshot, or the name or id of one, not {wrong!r}"):
            do(box.rollback(wrong))


def test_the_state_follows_the_calls(way, do, kind):
    box = do(kind.create(client=way.client))
    for use in (lambda: do(box.run("true")), lambda: do(box.run("true", background=True)), lambda: do(do(box.pty("true")).close())):
        do(box.hibernate())
        assert (box.state, box.is_running, box.expires_at) == ("hibernated", False, None)
        use()
        assert box.state == "active" and box.is_running and box.expires_at
    do(box.hibernate())
    with pytest.raises(lodge.CommandError):
        do(box.run("false", check=True))
    assert box.is_running
    do(box.pause())
    assert (box.state, box.is_running) == ("paused", False)
    do(box.refresh())
    assert (box.state, box.is_running) == ("paused", False)
    do(box.run("true"))
    assert box.is_running
    do(box.delete())
    assert (box.state, box.is_running, box.expires_at) == ("deleted", False, None)


def test_a_command_that_is_found_again_tells_what_it_is(do, box):
    first = do(box.run("read x; exit 3", background=True))
    assert (first.cmd, first.state, first.exit_code) == ("read x; exit 3", "running", None)
    other = do(box.run(["sleep", "1000"], background=True))
    found = {c.id: c for c in do(box.commands(running=True))}
    assert found.keys() == {first.id, other.id} and found[other.id].cmd == other.cmd == ["sleep", "1000"]
    again = found[first.id]
    assert again.state == "running" and again.started_at.tzinfo and repr(again).endswith(f" {first.id} 'read x; exit 3' running>")
    do(again.write("", eof=True))
    assert do(again.wait(60)).exit_code == again.exit_code == 3 and again.state == "exited"
    assert repr(again).endswith("exited exit_code=3>")
    assert [c.id for c in do(box.commands(running=True))] == [other.id] and len(do(box.commands())) == 2
    bare = box.command(first.id)
    assert (bare.cmd, bare.state, bare.started_at) == (None, None, None) and first.id in repr(bare)
    assert not do(bare.is_running()) and (bare.cmd, bare.exit_code) == ("read x; exit 3", 3)


def test_a_check_that_fails_at_a_limit_names_it(way, do, kind):
    box = do(kind.create(memory="64M", file_size="1M", client=way.client))
    with pytest.raises(lodge.CommandError, match=r"; it ran out of memory \(LIMIT_MEMORY\)"):
        do(box.run("exec tail /dev/zero", check=True))
    with pytest.raises(lodge.CommandError, match=r"; it reached the limit of the size of a file \(LIMIT_FILE\)"):
        do(box.run("exec head -c 3M /dev/zero > f", check=True))
    do(box.close())


def test_calls_of_a_wrong_form_say_what_is_right(kind, box):
    with pytest.raises(TypeError, match=r"^create\(\) takes its options by name; use create\(name='user-1'\), or create\(template="):
        kind.create("user-1")
    with pytest.raises(TypeError, match=r"^delete\(\) is a method of a Sandbox object, not of the class; use Sandbox.get\(name\).delete\(\)$"):
        kind.delete("x")
    with pytest.raises(TypeError, match=r"^run\(\) takes at most 1 value without a name; use run\(\['ls', '-l'\]\) for a program with arg"):
        box.run("ls", "-l")
    with pytest.raises(TypeError, match=r"^rename\(\) takes at most 2 values without a name$"):
        box.files.rename("a", "b", "c")


@pytest.mark.parametrize("cmd, text", [(None, "must be bash text, or a list of a program and its arguments, not NoneType"),
                                       (5, "must be bash text, or .*, not int"), (b"ls", "must be bash text, or .*, not bytes"),
                                       (["sleep", 5], "every word must be text, not int")])
def test_what_is_no_command_is_refused(do, box, cmd, text):
    with pytest.raises(lodge.InvalidError, match="^cmd: " + text):
        do(box.run(cmd))


def test_an_address_is_named_as_its_option(do, kind):
    with pytest.raises(lodge.InvalidError, match="^url: .* is neither http://HOST"):
        do(kind.create(url="ftp://h"))
