"""Secrets by reference: files, and Barbican as keystoneauth reaches it."""

import contextlib
import json
import logging
import os
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from keystoneauth1 import session
from keystoneauth1.identity import v3

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.cluster import params
from tacker_k8s_mgmt.cluster.references import Reference, Unresolved
from tacker_k8s_mgmt.hooks import keystone, requests, v1
from tacker_k8s_mgmt.hooks.secrets import Secrets
from tests.unit.cluster.samples import changed, request

TEXT_ID = "11111111-1111-1111-1111-111111111111"
BYTES_ID = "22222222-2222-2222-2222-222222222222"
BINARY_ID = "33333333-3333-3333-3333-333333333333"
FORBIDDEN_ID = "44444444-4444-4444-4444-444444444444"
EMPTY_ID = "55555555-5555-5555-5555-555555555555"
BROKEN_ID = "66666666-6666-6666-6666-666666666666"
NO_ID = "99999999-9999-9999-9999-999999999999"
PAYLOADS = {
    TEXT_ID: ("text/plain", "pä55-of-the-nodes".encode()),
    BYTES_ID: ("application/octet-stream", b"pa55-of-the-server"),
    BINARY_ID: ("application/octet-stream", b"\xff\xfe\x00"),
    EMPTY_ID: ("text/plain", b""),
}
PASSWORD = "pa55-of-the-vim"


class Cloud(ThreadingHTTPServer):
    """Keystone and Barbican, as far as they are asked here."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked = []
        self.services = {"key-manager": ["RegionOne"]}
        self.silent = threading.Event()
        self.released = threading.Event()

    def catalog(self):
        return [
            {
                "type": kind,
                "endpoints": [
                    {"interface": "public", "region_id": region, "region": region}
                    | {"url": f"{self.url}/{region}"}
                    for region in regions
                ],
            }
            for kind, regions in self.services.items()
        ]


class Handler(BaseHTTPRequestHandler):
    server: Cloud

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"{}", kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        given = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append("token")
        if PASSWORD.encode() not in given:
            return self.answer(401)
        token = {
            "methods": ["password"],
            "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}},
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "catalog": self.server.catalog(),
        }
        body = json.dumps({"token": token}).encode()
        return self.answer(201, body, X_Subject_Token="token-s3cret")

    def do_GET(self):
        if not self.path.endswith("/payload"):
            # Barbican's own list of versions.
            href = f"{self.server.url}/{self.path.strip('/').split('/')[0]}/v1/"
            links = [{"rel": "self", "href": href}]
            version = {"id": "v1", "status": "CURRENT", "links": links}
            found = {"versions": [version]}
            return self.answer(300, json.dumps(found).encode())
        self.server.asked.append(f"{self.path} {self.headers['Accept']}")
        if self.server.silent.is_set():
            self.server.released.wait(60)
            return None
        secret_id = self.path.split("/")[-2]
        statuses = {FORBIDDEN_ID: 403, BROKEN_ID: 500}
        if secret_id not in PAYLOADS:
            return self.answer(statuses.get(secret_id, 404))
        kind, payload = PAYLOADS[secret_id]
        if self.headers["Accept"] != kind:
            return self.answer(406)
        return self.answer(200, payload, kind)


@pytest.fixture
def cloud():
    made = Cloud()
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.released.set()
    made.shutdown()
    made.server_close()
    thread.join()


def options(directory="", limit=30.0):
    return types.SimpleNamespace(secret_directory=directory, secret_timeout=limit)


def login(cloud, password=PASSWORD, region=""):
    auth = v3.Password(
        auth_url=f"{cloud.url}/v3",
        username="u",
        password=password,
        project_name="p",
        user_domain_id="d",
        project_domain_id="d",
    )
    return session.Session(auth=auth), region


def never():
    raise AssertionError("Keystone was asked")


def by_id(secret_id):
    # The address of another host: it is not asked.
    return Reference("secret_ref", f"http://192.0.2.1:9311/v1/secrets/{secret_id}")


def reason(secrets, reference):
    with pytest.raises(Unresolved) as caught:
        secrets(reference)
    return str(caught.value)


class TestBarbican:
    @pytest.mark.parametrize("secret_id", [TEXT_ID, BYTES_ID])
    def test_a_secret_is_told_however_it_was_stored(self, cloud, secret_id):
        secrets = Secrets(lambda: login(cloud), options(), "")
        assert secrets(by_id(secret_id)) == PAYLOADS[secret_id][1].decode()

    def test_each_is_asked_for_once_with_one_token(self, cloud):
        secrets = Secrets(lambda: login(cloud), options(), "")
        for _ in range(3):
            secrets(by_id(TEXT_ID))
            secrets(by_id(BYTES_ID))
        assert cloud.asked.count("token") == 1
        assert len([one for one in cloud.asked if f"{TEXT_ID}/payload" in one]) == 1

    def test_the_region_of_the_vim_is_asked(self, cloud):
        cloud.services["key-manager"] = ["RegionOne", "RegionTwo"]
        secrets = Secrets(lambda: login(cloud, region="RegionTwo"), options(), "")
        secrets(by_id(TEXT_ID))
        assert f"/RegionTwo/v1/secrets/{TEXT_ID}/payload text/plain" in cloud.asked

    @pytest.mark.parametrize(
        ("secret_id", "expected"),
        [
            (NO_ID, "Barbican has no such secret"),
            (FORBIDDEN_ID, "may not read this secret"),
            (BINARY_ID, "is no text in UTF-8"),
            (EMPTY_ID, "is an empty secret"),
            (BROKEN_ID, "Barbican answers 500"),
        ],
    )
    def test_why_there_is_none_is_told(self, cloud, secret_id, expected):
        secrets = Secrets(lambda: login(cloud), options(), "")
        assert expected in reason(secrets, by_id(secret_id))
        assert secrets(by_id(TEXT_ID))

    def test_refused_credentials_are_sent_once(self, cloud):
        secrets = Secrets(lambda: login(cloud, "wrong-pa55"), options(), "")
        told = {reason(secrets, by_id(one)) for one in (TEXT_ID, BYTES_ID)}
        assert told == {"Keystone or Barbican refuses the VIM's credentials"}
        assert cloud.asked == ["token"]

    @pytest.mark.parametrize("services", [{}, {"key-manager": ["RegionTwo"]}])
    def test_an_openstack_without_barbican_is_told(self, cloud, services):
        cloud.services = services
        secrets = Secrets(lambda: login(cloud, region="RegionOne"), options(), "")
        assert "no Barbican in its catalogue" in reason(secrets, by_id(TEXT_ID))

    def test_one_that_does_not_answer_is_not_waited_for_twice(self, cloud):
        cloud.silent.set()
        secrets = Secrets(lambda: login(cloud), options(limit=0.2), "")
        told = reason(secrets, by_id(TEXT_ID))
        assert told == (
            "Barbican cannot be asked with the VIM's credentials: ConnectTimeout"
        )
        before = len(cloud.asked)
        assert reason(secrets, by_id(BYTES_ID)) == told
        assert len(cloud.asked) == before

    def test_a_vim_that_cannot_be_had_is_told(self):
        def gone():
            raise LookupError("no VIM")

        told = reason(Secrets(gone, options(), ""), by_id(TEXT_ID))
        assert told.endswith("with the VIM's credentials: LookupError")

    def test_no_secret_is_logged_at_any_level(self, cloud, caplog):
        caplog.set_level(logging.DEBUG)
        logging.getLogger("keystoneauth").setLevel(logging.DEBUG)
        secrets = Secrets(lambda: login(cloud), options(), "")
        told = [secrets(by_id(one)) for one in (TEXT_ID, BYTES_ID)]
        assert "keystoneauth" in {one.name.split(".")[0] for one in caplog.records}
        for secret in (*told, PASSWORD):
            assert secret not in caplog.text
        assert all(secret not in repr(vars(secrets)) for secret in told)


@pytest.fixture
def directory(tmp_path):
    place = tmp_path / "secrets"
    place.mkdir()
    (place / "one").write_bytes(b"file-pa55\n")
    (tmp_path / "outside").write_text("not-yours")
    return place


class TestFiles:
    def told(self, path, directory, project=""):
        secrets = Secrets(never, options(str(directory)), project)
        return secrets(Reference("file", str(path)))

    def refused(self, path, directory, project=""):
        secrets = Secrets(never, options(str(directory)), project)
        return reason(secrets, Reference("file", str(path)))

    @pytest.mark.parametrize(
        ("content", "secret"),
        [
            (b"file-pa55", "file-pa55"),
            (b"file-pa55\n", "file-pa55"),
            (b"file-pa55\r\n", "file-pa55"),
            (b" two words \n", " two words "),
            (b"one\ntwo\n\n", "one\ntwo\n"),
        ],
    )
    def test_the_last_line_end_is_no_part_of_it(self, directory, content, secret):
        (directory / "x").write_bytes(content)
        assert self.told(directory / "x", directory) == secret

    def test_only_files_below_the_directory_are_read(self, directory):
        outside = directory.parent / "outside"
        (directory / "link").symlink_to(outside)
        (directory / "chain").symlink_to(directory.parent)
        places = [outside, directory / "link", directory / "chain" / "outside"]
        places += ["/etc/shadow", "/does/not/exist", directory]
        told = {self.refused(place, directory) for place in places}
        assert told == {
            "is not below the directory that Tacker's operator has set aside for "
            "secrets ([k8s_mgmt] secret_directory)"
        }

    def test_a_link_within_it_is_followed(self, directory):
        (directory / "link").symlink_to("one")
        assert self.told(directory / "link", directory) == "file-pa55"

    def test_without_a_directory_none_is_read(self, directory):
        assert "is not below" in self.refused(directory / "one", "")

    @pytest.mark.parametrize("project", ["mine", ""])
    def test_each_project_may_have_its_own(self, directory, project):
        allowed = f"{directory}/{{project_id}}"
        for name in ("mine", "another"):
            (directory / name).mkdir()
            (directory / name / "x").write_text("s3cret")
        assert "is not below" in self.refused(
            f"{directory}/another/x", allowed, project
        )
        if project:
            assert self.told(f"{directory}/mine/x", allowed, project) == "s3cret"

    def test_one_that_is_not_there_is_told(self, directory):
        assert "is a file that is not there" in self.refused(directory / "x", directory)

    def test_neither_are_pipes_nor_directories(self, directory):
        os.mkfifo(directory / "pipe")
        (directory / "inner").mkdir()
        for name in ("pipe", "inner"):
            assert self.refused(directory / name, directory) == "is not a file"

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"", "is an empty file"),
            (b"\n", "is an empty file"),
            (b"\xff", "is no text in UTF-8"),
            (b"x" * 32769, "is a file of more than 32768 bytes"),
        ],
    )
    def test_what_is_no_secret_is_told(self, directory, content, expected):
        (directory / "x").write_bytes(content)
        assert self.refused(directory / "x", directory) == expected


class TestRequests:
    """As the v1 hooks read them."""

    @pytest.fixture
    def instance(self, cloud, monkeypatch, directory):
        access = {
            "auth_url": f"{cloud.url}/v3",
            "username": "u",
            "password": PASSWORD,
            "project_name": "p",
            "user_domain_name": "d",
            "project_domain_name": "d",
            "cert_verify": "True",
            "region": "RegionOne",
        }
        vim = {"access_info": access}
        monkeypatch.setattr(keystone.vnflcm_utils, "_get_vim", lambda *_: vim)
        config.register(keystone.cfg.CONF)
        group = config.GROUP
        keystone.cfg.CONF.set_override("secret_directory", str(directory), group)
        body = changed(
            {
                "worker_node.password": {"secret_ref": by_id(TEXT_ID).target},
                "ansible.password": {"file": f"{directory}/one"},
            }
        )
        info = types.SimpleNamespace(additional_params=request(body))
        yield types.SimpleNamespace(
            id="vnf",
            tenant_id="project",
            vim_connection_info=[],
            instantiated_vnf_info=info,
        )
        keystone.cfg.CONF.clear_override("secret_directory", group)

    def test_references_are_resolved_with_the_vims_credentials(self, instance):
        secrets = keystone.secrets_of(None, instance)
        read = requests.parse(instance, None, "go on", secrets)
        assert read.workers.password.get_secret_value() == "pä55-of-the-nodes"
        assert read.server_account.password.get_secret_value() == "file-pa55"

    def test_whether_it_is_a_cluster_is_known_without_them(self, instance, cloud):
        assert requests.is_cluster(instance)
        assert cloud.asked == []

    def test_those_of_vms_are_not_needed_to_terminate(self, instance, cloud):
        secrets = keystone.secrets_of(None, instance)
        read = requests.merged(instance, None, "go on", secrets, ("ansible",))
        assert read.server_account.password.get_secret_value() == "file-pa55"
        assert cloud.asked == []

    def test_one_that_leads_nowhere_is_told_with_the_way_out(self, instance):
        keystone.cfg.CONF.set_override("secret_directory", "", config.GROUP)
        secrets = keystone.secrets_of(None, instance)
        with pytest.raises(errors.ParamError) as caught:
            requests.merged(instance, None, "Do this.", secrets)
        (problem,) = caught.value.problems
        assert problem.startswith("ansible.password: is not below the directory")
        assert str(caught.value).endswith("Do this.")


def test_by_default_no_key_can_be_sent_as_a_password():
    keys, secrets = config.KEY_DIRECTORY, config.SECRET_DIRECTORY
    assert os.path.commonpath([keys, secrets]) not in (keys, secrets)


class TestTerminate:
    """By the v1 hooks: never by half, and never stuck."""

    @pytest.fixture
    def asked(self, instance, monkeypatch):
        """A driver; which of its hooks came as far as its work."""
        done = []
        monkeypatch.setattr(v1.checkpoint, "save", lambda *_: None)
        monkeypatch.setattr(v1.vim, "VimRegistry", lambda *_: None)
        monkeypatch.setattr(
            v1._Hook, "site", lambda *_: contextlib.nullcontext("the site")
        )
        monkeypatch.setattr(
            v1, "TerminateStart", lambda *_: types.SimpleNamespace(steps=tuple)
        )
        monkeypatch.setattr(
            v1,
            "TerminateEnd",
            lambda _vnf, _vims, site: types.SimpleNamespace(
                steps=lambda: done.append(site) or ()
            ),
        )
        monkeypatch.setattr(v1._Hook, "run", lambda *_: done.append("run"))
        monkeypatch.setattr(v1._Hook, "__init__", lambda *_: None)

        def call(request):
            del done[:]
            driver = v1.MgmtDriver()
            driver.terminate_start(None, instance, request)
            driver.terminate_end(None, instance, request)
            return done

        return call

    def lost(self):
        keystone.cfg.CONF.set_override("secret_directory", "", config.GROUP)

    def request(self, kind, **ours):
        return types.SimpleNamespace(
            termination_type=kind,
            additional_params={params.ATTRIBUTE: ours} if ours else {},
        )

    def test_with_the_servers_login_all_goes(self, asked, cloud):
        cloud.silent.set()  # that of the VMs is in Barbican
        assert asked(self.request("GRACEFUL")) == ["run", "the site", "run"]

    def test_without_it_nothing_goes(self, asked):
        self.lost()
        with pytest.raises(errors.ParamError) as caught:
            asked(self.request("GRACEFUL"))
        assert "ansible.password: is not below" in str(caught.value)
        assert "leaves the inventory directory" in str(caught.value)

    def test_the_request_may_bring_another(self, asked):
        self.lost()
        request = self.request("GRACEFUL", ansible={"password": "new"})
        assert asked(request) == ["run", "the site", "run"]

    def test_a_forceful_one_and_a_rollback_go_on_without(self, asked, caplog):
        self.lost()
        for request in (self.request("FORCEFUL"), None):
            assert asked(request) == ["run", None, "run"]
            assert "stays on the Ansible server" in caplog.text
            caplog.clear()
