"""What is published: a wheel with types, the example, and no type errors."""

from __future__ import annotations

import subprocess
import sys
import threading
import zipfile
from pathlib import Path

from conftest import Server

HERE = Path(__file__).resolve().parents[1]
SECONDS_MAX = 60


def test_the_wheel_has_the_package_and_its_types(tmp_path: Path) -> None:
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", str(HERE), str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source)]
    subprocess.run(command, check=True)
    [wheel] = tmp_path.glob("rollcall_client-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"rollcall/__init__.py", "rollcall/service.py", "rollcall/py.typed"} <= set(names)


def test_mypy_finds_nothing_in_strict_mode() -> None:
    check = subprocess.run([sys.executable, "-m", "mypy"], cwd=HERE, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout


def test_the_example_chats(server: Server) -> None:
    programs = [subprocess.Popen([sys.executable, str(HERE / "examples" / "chat.py"), server.url, *names],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
                for names in (("ann", "ben"), ("ben", "ann"))]
    ann, ben = programs
    limit = threading.Timer(SECONDS_MAX, ann.kill)
    limit.start()
    try:
        assert ann.stdin and ben.stdin and ann.stdout and ben.stdout
        ann.stdin.write("hello\n")
        assert "ann: hello\n" in iter(ben.stdout.readline, "")
        ben.stdin.write("hi\n")
        assert "ben: hi\n" in iter(ann.stdout.readline, "")
        for program in programs:
            program.communicate()
            assert program.returncode == 0
    finally:
        limit.cancel()
        for program in programs:
            program.kill()
