# SPDX-License-Identifier: Apache-2.0
"""Evaluates kubespray's ``downloads`` once for a playbook run.

``downloads``, a default of kubespray's, has some hundred entries of nested templates.
Ansible evaluates it again for each task that names a part of it, for each host, in the
process of the playbook. This program has the value of each host written down before the
run: a short playbook with the defaults of the checkout. The value becomes a variable of
the inventory, which is above defaults and below all else that may set it.

It is copied to the server for the runs that download something, and is executed by
Ansible's own Python (3.9 or newer), as::

    k8s_mgmt_resolve.py resolve RUN ROOT HOSTS VARIABLES [ARGUMENT...]
    k8s_mgmt_resolve.py verify RUN ROOT DIGEST

RUN and ROOT are the directories of the run and of the checkout, HOSTS is the inventory,
VARIABLES the file of the cluster's variables; ARGUMENTs are for ``ansible-playbook``.
``resolve`` writes RUN/resolved.json and prints a digest of it and of the checkout.
``verify`` fails if either is another one by then. What was done, or why not, is an
event of the run (``k8s_mgmt_events.py``); a failure is none of the run.
"""

# Parts are of Ansible's environment, which is not installed where types are checked.
# mypy: ignore-errors

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import yaml

NAME = "downloads"
RESULT = "resolved.json"
LIMIT = 300  # seconds for the short playbook
_ROLES = ("kubespray_defaults", "kubespray-defaults")
# Facts that the short playbook asks for if they are not in the cache.
_FACTS = frozenset({"ansible_architecture", "ansible_system"})
# What a value may depend on besides variables, and what tasks change.
_CHANGING = frozenset({"groups", "group_names", "hostvars", "vars", "ansible_facts"})
_PLAY = """
- hosts: k8s_cluster:etcd
  gather_facts: false
  strategy: linear
  any_errors_fatal: true
  # Only for its defaults.
  roles: [{role: %s, tags: [never]}]
  tasks:
    # Python may not be there yet.
    - raw: uname -s; uname -m
      register: k8s_mgmt_uname
      changed_when: false
      when: >-
        ansible_facts.architecture is undefined or ansible_facts.system is undefined
    - set_fact:
        cacheable: true # as ansible_facts.architecture, too
        ansible_system: "{{ k8s_mgmt_uname.stdout_lines[0] | trim }}"
        ansible_architecture: "{{ k8s_mgmt_uname.stdout_lines[1] | trim }}"
      when: k8s_mgmt_uname is not skipped
    - name: k8s_mgmt_resolved
      debug: {msg: "{{ downloads }}"}
"""
_CALLBACK = '''
import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: k8s_mgmt_resolved
    type: notification
    short_description: Keeps the results of a task
    description: Writes the results of the task k8s_mgmt_resolved as lines of JSON.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "k8s_mgmt_resolved"
    CALLBACK_NEEDS_WHITELIST = CALLBACK_NEEDS_ENABLED = False

    def v2_runner_on_ok(self, result):
        if result._task.get_name() == "k8s_mgmt_resolved":
            line = [result._host.get_name(), result._result["msg"]]
            with open(os.environ["K8S_MGMT_RESOLVED"], "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\\n")
'''


class LeftAlone(Exception):
    """Why the value is left as it is."""


# --- the checkout


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML with Ansible's tags."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def files(root):
    """Yield the paths of all YAML files that a run may read."""
    for top in ("roles", "playbooks"):
        for directory, below, names in os.walk(os.path.join(root, top)):
            below[:] = sorted({*below} - {"files", "molecule", "templates", "tests"})
            for name in sorted(names):
                if name.endswith((".yml", ".yaml")):
                    yield os.path.join(directory, name)
    for name in sorted(os.listdir(root)):
        if name.endswith((".yml", ".yaml")):
            yield os.path.join(root, name)


def fingerprint(root):
    """Return a digest of a checkout's files by name, size and time."""
    digest = hashlib.sha256()
    for path in files(root):
        state = os.stat(path)
        line = (path, state.st_size, state.st_mtime_ns, state.st_ino)
        digest.update(repr(line).encode())
    return digest.hexdigest()


def _load(path):
    with open(path, encoding="utf-8") as file:
        return list(yaml.load_all(file, _Loader))


def defaults_role(root):
    """Return the name of the role with kubespray's defaults."""
    for name in _ROLES:
        if os.path.isdir(os.path.join(root, "roles", name, "defaults")):
            return name
    raise LeftAlone("the checkout has no role kubespray_defaults")


def defaults(root, role):
    """Return the defaults and variables of the role with kubespray's defaults."""
    found = {}
    for part in ("defaults", "vars"):
        for path in files(os.path.join(root, "roles", role, "..", "..")):
            if f"/roles/{role}/{part}/" in os.path.normpath(path):
                for document in _load(path):
                    found.update(document or {})
    return found


# ansible_facts['architecture'] is ansible_architecture.
_FACT = re.compile(r"\bansible_facts(?:\[['\"](\w+)['\"]\]|\.(\w+))")
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORD = re.compile(r"[A-Za-z_]\w*")
# lookup('vars', 'gateway_api_' + channel + '_crds_checksums')
_LOOKUP = re.compile(r"(?:lookup|query|q)\(\s*['\"]([\w.]+)['\"]([^)]*)\)")


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def names_in(value):
    """Return the words in the templates of a value; some are no variables.

    A word with ``*`` stands for all variables of such names.
    """
    words = set()
    for text in _texts(value):
        for expression in _EXPRESSION.findall(text):
            expression = _FACT.sub(r"ansible_\1\2", expression)
            for kind, term in _LOOKUP.findall(expression):
                words.add(_pattern(term) if kind.endswith("vars") else f"lookup {kind}")
            words.update(_WORD.findall(_TEXT.sub(" ", expression)))
    return words - {"lookup", "query", "q"}


def _pattern(term):
    """Return which names an expression of texts and variables may have."""
    parts = re.findall(r"'([^']*)'|\"([^\"]*)\"|([^'\"\s,+~]+)", term.lstrip(" ,"))
    return re.sub(r"\*+", "*", "".join(one or two or "*" for one, two, _ in parts))


def closure(value, definitions):
    """Return all names that a value depends on."""
    known, found, left = sorted(definitions), set(), names_in(value)
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        if "*" in name:
            like = re.compile(re.escape(name).replace(r"\*", r"\w*"))
            left.update(one for one in known if like.fullmatch(one))
        for definition in definitions.get(name, ()):
            left.update(names_in(definition))
    return found


# What may be set in a text: keys, and the values of `register` and `loop_var`.
_SET = (re.compile(r"(\w+)[\"']?\s*[:=]"), re.compile(r":\s*[\"']?(\w+)"))


def changed(root, role, definitions, wanted):
    """Return which of the names are set by tasks, plays or other roles of a checkout.

    Another role's default that is the same as kubespray's own does not count.
    """
    found = set()
    for path in files(root):
        if f"/roles/{role}/defaults/" in path or f"/roles/{role}/vars/" in path:
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if wanted.isdisjoint(name for form in _SET for name in form.findall(text)):
            continue
        for document in yaml.load_all(text, _Loader):
            if "/defaults/" in path or "/vars/" in path:
                values = document if isinstance(document, dict) else {}
                found.update(
                    name
                    for name, value in values.items()
                    if definitions.get(name) not in ([value], None)
                    or (name in wanted and name not in definitions)
                )
            else:
                found.update(_set_in(document))
    return found & wanted


def _set_in(value):
    """Yield the names that plays, tasks and roles set."""
    if isinstance(value, list):
        for inner in value:
            yield from _set_in(inner)
    if not isinstance(value, dict):
        return
    if "role" in value:
        yield from map(str, value)
    for key, inner in value.items():
        word = str(key).rpartition(".")[2]
        if word in ("set_fact", "vars") and isinstance(inner, dict):
            yield from map(str, inner)
        elif word == "set_fact":
            yield from re.findall(r"(\w+)=", str(inner))
        elif word in ("register", "loop_var", "index_var"):
            yield str(inner)
        elif word == "vars_prompt":
            yield from (str(one.get("name")) for one in inner)
        yield from _set_in(inner)


# --- the value


def kept_templates(root, role, own):
    """Return the entries of ``downloads`` to be left as templates, and all entries.

    :param own: variables of inventory and request, a list of dictionaries.
    """
    given = defaults(root, role)
    entries = given.get(NAME)
    if not isinstance(entries, dict):
        raise LeftAlone(f"the checkout's {NAME} has another form")
    definitions = {name: [value] for name, value in given.items()}
    every = {name: list(values) for name, values in definitions.items()}
    for variables in own:
        if NAME in variables:
            raise LeftAlone(f"{NAME} is given")
        for name, value in variables.items():
            every.setdefault(name, []).append(value)
    needs = {name: closure(value, every) for name, value in entries.items()}
    wanted = set().union(*needs.values()) | {NAME}
    at_work = changed(root, role, definitions, wanted)
    if NAME in at_work:
        raise LeftAlone(f"tasks of the checkout set {NAME}")
    kept = {
        name: value
        for name, value in entries.items()
        if needs[name] & (at_work | _CHANGING)
        or any(_is_unknown(word) for word in needs[name])
    }
    return kept, entries


def _is_unknown(word):
    """Whether a name is that of a fact which need not be known yet, or of a lookup."""
    is_fact = word.startswith("ansible_") and word not in _FACTS
    return (
        is_fact or (word.startswith("lookup ") and word != "lookup env") or word == "*"
    )


def own_variables(hosts, paths):
    """Return all dictionaries of variables in the inventory and in files."""
    found = []

    def groups(group):
        found.append(group.get("vars") or {})
        found.extend(host or {} for host in (group.get("hosts") or {}).values())
        for child in (group.get("children") or {}).values():
            groups(child or {})

    for document in _load(hosts):
        for group in (document or {}).values():
            groups(group or {})
    for path in paths:
        found.extend(document or {} for document in _load(path))
    return found


def _has_template(value):
    return any(mark in text for text in _texts(value) for mark in ("{{", "{%", "{#"))


def inventory(values, kept, entries):
    """Return the inventory with the values of all hosts.

    A text of a host that looks like a template is not to become one.
    """
    hosts = {}
    for host, value in values.items():
        if not isinstance(value, dict) or value.keys() != entries.keys():
            raise LeftAlone(f"{NAME} of {host} has other entries than the checkout's")
        same = {**value, **kept}
        unclear = {
            name for name in value if name not in kept and _has_template(value[name])
        }
        same.update((name, entries[name]) for name in unclear)
        hosts[host] = {NAME: same}
    if not hosts:
        raise LeftAlone("no host has reported it")
    first, *others = hosts.values()
    if all(other == first for other in others):
        return {"all": {"vars": first}}
    return {"all": {"hosts": hosts}}


def resolve(run, root, hosts, variables, arguments):
    """Write the inventory with the values; returns its digest, and what was done."""
    began, mark = time.monotonic(), fingerprint(root)
    for name in ("group_vars", "host_vars"):
        for place in (root, os.path.join(root, "playbooks"), os.path.dirname(hosts)):
            if os.path.isdir(os.path.join(place, name)):
                raise LeftAlone(f"there are variables in {os.path.join(place, name)}")
    role = defaults_role(root)
    paths = [variables, os.path.join(run, "vars.json")]
    kept, entries = kept_templates(root, role, own_variables(hosts, paths))
    values = _values(run, root, role, hosts, paths, arguments)
    text = json.dumps(inventory(values, kept, entries))
    with open(os.path.join(run, RESULT), "w", encoding="utf-8") as file:
        file.write(text)
    but = f", but for {', '.join(sorted(kept))}, which tasks change" if kept else ""
    count = "1 host" if len(values) == 1 else f"{len(values)} hosts"
    seconds = time.monotonic() - began
    done = f"{NAME} resolved once for {count} in {seconds:.1f} s{but}"
    return digest(run, text, mark), done


def digest(run, text, mark):
    """Return the digest of a value, of the run that it is for, and of the checkout."""
    parts = json.dumps([os.path.basename(run), text, mark])
    return hashlib.sha256(parts.encode()).hexdigest()


def _values(run, root, role, hosts, paths, arguments):
    """Run the short playbook; returns each host's value."""
    place = os.path.join(run, "resolve")
    os.makedirs(os.path.join(place, "callback"), mode=0o700)
    play, results = os.path.join(place, "play.yml"), os.path.join(place, "results")
    callback = os.path.join(place, "callback", "k8s_mgmt_resolved.py")
    for path, text in ((play, _PLAY % role), (callback, _CALLBACK), (results, "")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    extra = [word for path in paths for word in ("-e", f"@{path}")]
    # What it asks for is not kept.
    known, facts = os.environ["ANSIBLE_CACHE_PLUGIN_CONNECTION"], f"{place}/facts"
    if os.path.isdir(known):
        shutil.copytree(known, facts)
    env = {
        **os.environ,
        "K8S_MGMT_RESOLVED": results,
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": facts,
        "ANSIBLE_CALLBACK_PLUGINS": os.path.dirname(callback),
        "ANSIBLE_ROLES_PATH": os.path.join(root, "roles"),
    }
    # Its events would be those of the run.
    for name in ("K8S_MGMT_EVENTS", "K8S_MGMT_HISTORY"):
        env.pop(name, None)
    with open(os.path.join(place, "log"), "wb") as log:
        ended = subprocess.run(
            ["ansible-playbook", "-i", hosts, *extra, *arguments, play],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    if ended.returncode != 0:
        raise LeftAlone(f"the short playbook has failed; see {place}/log")
    with open(results, encoding="utf-8") as file:
        return dict(json.loads(line) for line in file)


# --- the run


def note(run, text):
    """Add an event to those of the run."""
    with open("/proc/uptime", encoding="ascii") as file:
        up = float(file.read().split()[0])
    event = {"event": "note", "message": text, "time": time.time(), "up": up}
    with open(os.path.join(run, "events.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def main(action, run, root, *arguments):
    """Do one of the actions; returns the exit code."""
    try:
        if action == "verify":
            with open(os.path.join(run, RESULT), encoding="utf-8") as file:
                is_same = digest(run, file.read(), fingerprint(root)) == arguments[0]
            if is_same:
                return 0
            raise LeftAlone("its file or the checkout has changed since")
        hosts, variables, *others = arguments
        result, done = resolve(run, root, hosts, variables, others)
        note(run, done)
        print(result)
        return 0
    except LeftAlone as why:
        note(run, f"{NAME} is evaluated by each task: {why}")
    except Exception as error:
        what = f"{type(error).__name__}: {error}"[:300]
        note(run, f"{NAME} is evaluated by each task: resolving it failed: {what}")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
