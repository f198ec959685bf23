# SPDX-License-Identifier: Apache-2.0
"""Secrets by reference: files, and Barbican as keystoneauth reaches it."""

import logging
import os
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.hooks.secret_sources import Secrets
from tacker_k8s_mgmt.request.secrets import Reference, Unresolved
from tests.contract.key_manager import (
    BINARY_ID,
    BROKEN_ID,
    BYTES_ID,
    EMPTY_ID,
    FORBIDDEN_ID,
    NO_ID,
    PASSWORD,
    PAYLOADS,
    TEXT_ID,
    by_id,
    login,
)


def options(directory="", limit=30.0):
    return types.SimpleNamespace(secret_directory=directory, secret_timeout=limit)


def never():
    raise AssertionError("Keystone was asked")


def reason(secrets, reference):
    with pytest.raises(Unresolved) as caught:
        secrets(reference)
    return str(caught.value)


class TestBarbican:
    @pytest.mark.parametrize("secret_id", [TEXT_ID, BYTES_ID])
    def test_a_secret_is_read_however_it_was_stored(self, cloud, secret_id):
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
    def test_why_there_is_none_is_reported(self, cloud, secret_id, expected):
        secrets = Secrets(lambda: login(cloud), options(), "")
        assert expected in reason(secrets, by_id(secret_id))
        assert secrets(by_id(TEXT_ID))

    def test_refused_credentials_are_sent_once(self, cloud):
        secrets = Secrets(lambda: login(cloud, "wrong-pa55"), options(), "")
        reasons = {reason(secrets, by_id(one)) for one in (TEXT_ID, BYTES_ID)}
        assert reasons == {"Keystone or Barbican refuses the VIM's credentials"}
        assert cloud.asked == ["token"]

    @pytest.mark.parametrize("services", [{}, {"key-manager": ["RegionTwo"]}])
    def test_an_openstack_without_barbican_is_reported(self, cloud, services):
        cloud.services = services
        secrets = Secrets(lambda: login(cloud, region="RegionOne"), options(), "")
        assert "no Barbican in its catalogue" in reason(secrets, by_id(TEXT_ID))

    def test_one_that_does_not_answer_is_not_waited_for_twice(self, cloud):
        cloud.silent.set()
        secrets = Secrets(lambda: login(cloud), options(limit=0.2), "")
        text = reason(secrets, by_id(TEXT_ID))
        assert text == (
            "Barbican cannot be asked with the VIM's credentials: ConnectTimeout"
        )
        before = len(cloud.asked)
        assert reason(secrets, by_id(BYTES_ID)) == text
        assert len(cloud.asked) == before

    def test_a_vim_that_cannot_be_had_is_reported(self):
        def gone():
            raise LookupError("no VIM")

        text = reason(Secrets(gone, options(), ""), by_id(TEXT_ID))
        assert text.endswith("with the VIM's credentials: LookupError")

    def test_no_secret_is_logged_at_any_level(self, cloud, caplog):
        caplog.set_level(logging.DEBUG)
        logging.getLogger("keystoneauth").setLevel(logging.DEBUG)
        secrets = Secrets(lambda: login(cloud), options(), "")
        resolved = [secrets(by_id(one)) for one in (TEXT_ID, BYTES_ID)]
        assert "keystoneauth" in {
            record.name.split(".")[0] for record in caplog.records
        }
        for secret in (*resolved, PASSWORD):
            assert secret not in caplog.text
        assert all(secret not in repr(vars(secrets)) for secret in resolved)


class TestFiles:
    def secret(self, path, directory, project=""):
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
        assert self.secret(directory / "x", directory) == secret

    def test_only_files_below_the_directory_are_read(self, directory):
        outside = directory.parent / "outside"
        (directory / "link").symlink_to(outside)
        (directory / "chain").symlink_to(directory.parent)
        places = [outside, directory / "link", directory / "chain" / "outside"]
        places += ["/etc/shadow", "/does/not/exist", directory]
        reasons = {self.refused(place, directory) for place in places}
        assert reasons == {
            "is not below the directory that Tacker's operator has set aside for "
            "secrets ([k8s_mgmt] secret_directory)"
        }

    def test_a_link_within_it_is_followed(self, directory):
        (directory / "link").symlink_to("one")
        assert self.secret(directory / "link", directory) == "file-pa55"

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
            assert self.secret(f"{directory}/mine/x", allowed, project) == "s3cret"

    def test_one_that_is_not_there_is_reported(self, directory):
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
    def test_what_is_no_secret_is_reported(self, directory, content, expected):
        (directory / "x").write_bytes(content)
        assert self.refused(directory / "x", directory) == expected


def test_by_default_no_key_can_be_sent_as_a_password():
    keys, secrets = config.KEY_DIRECTORY, config.SECRET_DIRECTORY
    assert os.path.commonpath([keys, secrets]) not in (keys, secrets)
