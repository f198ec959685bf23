# SPDX-License-Identifier: Apache-2.0
"""``runs pages``: an index and the pages that it links to."""

import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.render import serving
from tests.unit.tools.cli.journals import OTHER, VNF, Recorder, completed, failed


@pytest.fixture
def state_path(tmp_path):
    path = tmp_path / "state"
    completed(path)
    failed(path, "heal_end", vnf_id=OTHER)
    return path


def pages(state_path, directory, *options):
    place = ["--state-path", str(state_path), str(directory)]
    return main(["runs", "pages", *place, *options])


def test_every_link_leads_to_a_place_in_a_page(state_path, tmp_path, capsys):
    directory = tmp_path / "made" / "pages"
    assert pages(state_path, directory) == 0
    assert capsys.readouterr().out == f"{directory}/index.html: 2 VNF instance(s)\n"
    texts = {path.name: path.read_text() for path in directory.iterdir()}
    assert set(texts) == {"index.html", f"{VNF}.html", f"{OTHER}.html"}
    links = set()
    for name, text in texts.items():
        for link in re.findall(r'href="([^"]*)"', text):
            page, _, anchor = link.partition("#")
            links.add(page)
            assert f'id="{anchor}"' in texts[page or name] if anchor else page in texts
    assert links >= set(texts)


def test_they_are_for_their_owner_and_replaced_only_by_force(
    state_path, tmp_path, capsys
):
    directory = tmp_path / "pages"
    assert pages(state_path, directory) == 0
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert pages(state_path, directory) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert pages(state_path, directory, "--force") == 0


def test_without_journals_nothing_is_made(tmp_path, capsys):
    assert pages(tmp_path / "state", tmp_path / "pages") == 1
    assert "No operation is recorded" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


def test_a_directory_that_cannot_be_made_is_one_line(state_path, tmp_path, capsys):
    (tmp_path / "pages").write_text("")
    assert pages(state_path, tmp_path / "pages") == 2
    assert "pages cannot be created: Not a directory" in capsys.readouterr().err


class TestServed:
    @pytest.fixture
    def server(self, state_path):
        with serving.PageServer(str(state_path), 0) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield server
            server.shutdown()
            thread.join()

    @pytest.fixture
    def get(self, server):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def get(url, host=None):
            headers = {"Host": host} if host else {}
            request = urllib.request.Request(url, headers=headers)  # noqa: S310
            return opener.open(request, timeout=60)

        return get

    def test_the_pages_are_those_that_are_written(self, server, get, tmp_path):
        written = tmp_path / "pages"
        assert pages(server.state_path, written) == 0
        drawn = re.compile(r"\d\d:\d\d:\d\d \w+|\d+(\.\d)? s ago")
        for path in written.iterdir():
            with get(server.url + path.name) as answer:
                served = answer.read().decode()
            assert drawn.sub("", served) == drawn.sub("", path.read_text())
            assert answer.headers["Cache-Control"] == "no-store"

    def test_they_are_current_and_reloaded_while_something_is_under_way(
        self, server, get, state_path
    ):
        with get(server.url) as answer:
            assert "Refresh" not in answer.headers
        under_way = Recorder(state_path, "scale_end").begin(9)
        under_way.step_start("run scale.yml")
        with get(f"{server.url}{VNF}.html") as answer:
            assert answer.headers["Refresh"] == str(serving.RELOAD)
            assert "run scale.yml" in answer.read().decode()

    @pytest.mark.parametrize(
        ("path", "code"),
        [
            ("{secret}/no.html", 404),
            ("{secret}/../journal", 404),
            ("{secret}", 403),
            ("", 403),
            ("index.html", 403),
            ("x{secret}/index.html", 403),
            ("{secret}é/", 403),
        ],
    )
    def test_nothing_without_the_secret_and_no_other_file(
        self, server, get, path, code
    ):
        path = urllib.parse.quote(path.format(secret=server.secret))
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(f"http://{server.host}/{path}")
        assert refused.value.code == code
        assert server.secret not in refused.value.read().decode()

    @pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1", ""])
    def test_nothing_by_the_name_of_another_host(self, server, get, host):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.url, host or f"127.0.0.1:{server.server_port + 1}")
        assert refused.value.code == 421

    def test_only_this_host_reaches_them(self, server):
        assert server.server_address[0] == "127.0.0.1"

    def test_the_command_prints_the_address_and_ends_with_ctrl_c(self, state_path):
        command = [sys.executable, "-m", "tacker_k8s_mgmt.tools.cli", "runs", "pages"]
        options = ["--state-path", str(state_path), "--serve", "0"]
        with subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell's background jobs ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as started:
            url, _, hint = started.stdout.readline().partition("  ")
            assert hint == "(Ctrl-C ends it)\n"
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(url, timeout=60) as answer:
                assert VNF in answer.read().decode()
            started.send_signal(signal.SIGINT)
            assert (started.wait(60), started.stderr.read()) == (0, "")

    def test_a_port_in_use_is_one_line(self, state_path, capsys):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            place = ["--state-path", str(state_path)]
            assert main(["runs", "pages", *place, "--serve", port]) == 2
        assert capsys.readouterr().err == (
            f"port {port} cannot be used: Address already in use\n"
        )

    @pytest.mark.parametrize("port", ["-1", "65536", "x", "1" * 99])
    def test_what_is_no_port_is_refused(self, state_path, capsys, port):
        place = ["--state-path", str(state_path)]
        with pytest.raises(SystemExit, match="2"):
            main(["runs", "pages", *place, f"--serve={port}"])
        assert "must be a port, 0 to 65535" in capsys.readouterr().err
