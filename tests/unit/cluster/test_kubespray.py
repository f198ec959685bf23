import pytest

from tacker_k8s_mgmt.cluster import kubespray


def test_the_table_has_no_gap_between_its_releases():
    minors = sorted(kubespray.RELEASES)
    assert minors == [(2, minor) for minor in range(24, 24 + len(minors))]


class TestRemovalVariables:
    def test_both_generations_of_confirmation_are_given(self):
        assert kubespray.removal_variables() == {
            "skip_confirmation": True,
            "delete_nodes_confirmation": "yes",
        }

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"dead": True}, {"reset_nodes": False, "allow_ungraceful_removal": True}),
            ({"undrained": True}, {"allow_ungraceful_removal": True}),
        ],
    )
    def test_an_ungraceful_removal_is_said_with_real_booleans(self, asked, expected):
        built = kubespray.removal_variables(**asked)
        assert expected.items() <= built.items()
        assert all(built[name] is value for name, value in expected.items())

    def test_none_of_them_is_open_to_the_user(self):
        built = kubespray.removal_variables(dead=True, undrained=True)
        assert [name for name in built if not kubespray.reserved(name)] == []
