"""Ansible module: wait until an HTTPS address of the Kubernetes API answers with 200.

Its arguments are in ``module_utils/lab_api.py``.
"""

from ansible.module_utils import lab_api
from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule(lab_api.OPTIONS)
    problem = lab_api.wait(module.params)
    if problem:
        module.fail_json(msg=problem)
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
