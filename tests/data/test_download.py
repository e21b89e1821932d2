"""Downloads: checked, whole or not there, with what each address answered."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from roarfast.data.dataset import DataError
from roarfast.data.download import fetch

CONTENT = bytes(range(256)) * 9000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "set.bin").write_bytes(CONTENT)
    (folder / "old.bin").write_bytes(CONTENT[:-1])
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def test_the_second_address_is_tried_and_the_file_kept(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "data" / "set.bin"
    urls = [f"{server}/none.bin", f"{server}/old.bin", f"{server}/set.bin"]
    assert fetch(urls, target, MD5, show=True).read_bytes() == CONTENT
    assert "downloading set.bin, MiB: 3/3 (100 %)" in capsys.readouterr().err
    assert fetch([f"{server}/gone"], target, MD5) == target, "it is there"
    target.write_bytes(b"damaged")
    assert fetch(urls[2:], target, MD5).read_bytes() == CONTENT


def test_nothing_is_left_of_a_failure(server: str, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"cannot download a.bin: .*none.bin: HTTP Error 404.*old.bin: its checksum is .*, not"
    ):
        fetch([f"{server}/none.bin", f"{server}/old.bin"], tmp_path / "a.bin", MD5)
    assert [path.name for path in tmp_path.iterdir()] == ["published"]
