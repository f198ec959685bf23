"""The script that Tacker's v2 API runs out of a VNF package for every hook.

It does nothing but hand on to the installed distribution, so that packages that are
onboarded already need no change when that is upgraded.
"""

import sys

if __name__ == "__main__":
    try:
        from tacker_k8s_mgmt.hooks import v2
    except ImportError as error:
        sys.exit(
            f"This VNF package needs the Python distribution tacker-k8s-mgmt in the "
            f"environment of Tacker's conductor ({sys.prefix}), where Python says: "
            f"{error}. Install it on every host with a conductor, with "
            f"`{sys.executable} -m pip install .` in a clone of its repository or in "
            "its unpacked source distribution, then retry."
        )
    v2.main_of_cnf()
