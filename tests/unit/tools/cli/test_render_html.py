# SPDX-License-Identifier: Apache-2.0
"""``runs show --html``: one page that stands alone and shows what the journal tells."""

import re
from html.parser import HTMLParser

import pytest

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.hooks import advice as hints
from tacker_k8s_mgmt.model.timeline import Operation, Timeline, in_words
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.render import chart, html
from tests.unit.tools.cli.journals import ERROR, OTHER, VNF, Recorder, completed, failed

WHOLE = re.compile(r'<span class="whole">(.*?)</span>')
VOID = {"meta", "br", "hr", "link", "img", "input"}


#: Records are so many seconds after it.
EPOCH = 1_700_000_000


class Page(HTMLParser):
    """What is in a page; refuses tags that are not closed as they were opened."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.texts = []
        self._open = []
        # No text ends with such a word.
        self.feed(WHOLE.sub(r"\1", text))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if data.strip() and "style" not in self._open:
            self.texts.append(" ".join(data.split()))

    @property
    def text(self):
        return " | ".join(self.texts)


def written(tmp_path, *options):
    """The page that the command writes."""
    path = tmp_path / "page.html"
    command = ["runs", "show", "--state-path", str(tmp_path), "--html", str(path)]
    assert main([*command, *options]) == 0
    return path.read_text()


def drawn(records):
    """The newest operation's chart of these records."""
    (newest, *_) = chart.draw(VNF, Timeline(records), now=EPOCH + 2000)
    return newest


def rows(hook):
    """All rows of a hook's chart."""
    return [row for group in hook.steps for row in group.rows]


def record(event, at, run="r", hook="instantiate_end", **fields):
    return {"time": EPOCH + at, "run": run, "hook": hook, "event": event, **fields}


def look(at, play, tasks, task, plays=3):
    return record(
        "progress",
        at,
        play=play,
        plays=plays,
        play_name=f"Play {play}",
        task=task,
        tasks=tasks,
    )


def step(event, at, number=1, **fields):
    return record(event, at, number=number, total=2, step=f"step {number}", **fields)


PLAYBOOK = [
    record("operation-start", 1000, steps=2),
    step("step-start", 1000),
    step("step-end", 1020, outcome="done", seconds=20),
    step("step-start", 1020, 2),
    look(1025, 1, 1, "quick"),
    look(1030, 1, 4, "slow"),
    look(1050, 1, 4, "slow"),
    look(1060, 2, 5, "slower"),
    look(1095, 3, 9, "last"),
    step("step-end", 1100, 2, outcome="failed", seconds=80),
    record("operation-end", 1100, outcome="failed", seconds=100, error="why"),
]


def test_it_shows_steps_plays_tasks_and_the_failure(tmp_path):
    failed(tmp_path)
    shown = Page(written(tmp_path))
    for text in (
        VNF,
        "claim the cluster's directory",
        "run cluster.yml",
        "1/3 Bootstrap hosts",
        ERROR,
    ):
        assert text in shown.text


def test_it_loads_nothing_and_runs_nothing(tmp_path):
    completed(tmp_path)
    failed(tmp_path, "heal_end")
    text = written(tmp_path)
    shown = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(shown.tags)
    named = {name for _, name, _ in shown.attributes}
    assert not {"src", "srcset", "action"} & named
    targets = {value for _, name, value in shown.attributes if name == "href"}
    assert all(target.startswith("#o-") for target in targets)
    assert not [name for name in named if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", text)
    (policy,) = [v for t, n, v in shown.attributes if "default-src" in v]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_it_follows_the_colours_of_the_desktop(tmp_path):
    completed(tmp_path)
    text = written(tmp_path)
    assert "@media (prefers-color-scheme: dark)" in text
    assert '<meta name="color-scheme" content="light dark">' in text


EVIL = (
    "</style><script>alert(1)</script><b onclick='x' title=\"y\">{{ 123 * 457 }}&amp;"
)


def test_every_text_is_escaped(tmp_path):
    one = Recorder(tmp_path, f"heal_end{EVIL}").begin(1)
    one.step_start(EVIL)
    one.progress(task=EVIL)
    one._journal.record("progress", play=1, plays=2, play_name=EVIL, task=EVIL, tasks=9)
    one.step_end(EVIL)
    one.end(EVIL, error=EVIL)
    shown = Page(written(tmp_path))
    assert "script" not in shown.tags
    assert "b" not in shown.tags
    assert not [value for _, name, value in shown.attributes if name == "onclick"]
    assert shown.text.count(EVIL) >= 4
    assert "56211" not in shown.text


def test_bars_stand_where_the_time_was(tmp_path):
    (hook,) = drawn(PLAYBOOK).hooks
    first, second = rows(hook)
    assert (first.bar.left, first.bar.width, first.bar.kind) == (0, 20, "done")
    assert (second.bar.left, second.bar.width, second.bar.kind) == (20, 80, "failed")
    assert [(play.label, play.bar.left, play.bar.width) for play in second.plays] == [
        ("1/3 Play 1", 25, 35),
        ("2/3 Play 2", 60, 35),
        ("3/3 Play 3", 95, 5),
    ]
    assert [play.bar.kind for play in second.plays] == ["play", "play", "failed"]


def test_the_slowest_tasks_come_first(tmp_path):
    (hook,) = drawn(PLAYBOOK).hooks
    assert [(task.label, task.note, task.took) for task in hook.tasks] == [
        ("slower", "Play 2", "35 s"),
        ("slow", "Play 1", "30 s"),
        ("quick", "Play 1", "5.0 s"),
        ("last", "Play 3", "5.0 s"),
    ]


def test_an_axis_has_a_few_round_marks():
    for length in (0.001, 0.5, 3, 20, 59, 100, 640, 3000, 7000, 50_000, 400_000):
        records = [
            record("operation-start", 1000),
            record("operation-end", 1000 + length, outcome="completed"),
        ]
        (hook,) = drawn(records).hooks
        marks = [place for place, _ in hook.ticks]
        assert marks[0] == 0
        assert marks == sorted(set(marks))
        assert max(marks) <= 100
        assert len(marks) <= 12


def test_retries_stand_below_each_other_on_one_scale(tmp_path):
    again = [
        {**one, "run": "again", "time": one["time"] + 500, "error": ""}
        for one in PLAYBOOK[:3]
    ]
    start = [
        record("operation-start", 900, "s", "instantiate_start", steps=1),
        record("operation-end", 905, "s", "instantiate_start", outcome="completed"),
    ]
    operation = drawn([*start, *PLAYBOOK, *again])
    assert [(hook.name, hook.title, hook.state) for hook in operation.hooks] == [
        ("instantiate_start", "", "completed"),
        ("instantiate_end", "", "failed"),
        ("instantiate_end", "try 2", "under way"),
    ]
    assert [hook.gap for hook in operation.hooks] == [
        "",
        "1 min 35 s for Tacker and Heat",
        "6 min 40 s until the retry",
    ]
    # 20 s are the same length in both tries.
    assert [rows(hook)[0].bar.width for hook in operation.hooks[1:]] == [20, 20]
    assert operation.state == "under way"


@pytest.mark.parametrize(
    ("hooks", "together"),
    [
        (["instantiate_start+", "instantiate_end+"], [2]),
        (["instantiate_end-", "instantiate_end+"], [2]),
        (["instantiate_end-", "terminate_end+"], [1, 1]),
        (["scale_end+", "scale_end+"], [1, 1]),
        (["scale_start+", "scale_end+"], [1, 1]),
        (["scale_start-", "scale_start+"], [2]),
        (["heal_start+", "heal_end-", "heal_end-", "heal_end+", "heal_start+"], [4, 1]),
    ],
)
def test_hooks_of_one_operation_stand_together(hooks, together):
    records = []
    for number, hook in enumerate(hooks):
        outcome = "completed" if hook.endswith("+") else "failed"
        same = {"run": f"r{number}", "hook": hook[:-1]}
        records.append(record("operation-start", 10 * number, **same))
        records.append(record("operation-end", 10 * number, outcome=outcome, **same))
    assert [len(found) for found in Timeline(records).occurrences()] == together


def test_hooks_of_a_cnf_stand_together_whatever_is_between():
    a, b = "instantiate_{} of CNF a", "instantiate_{} of CNF b"
    hooks = [
        *((a, "start"), (b, "start"), ("heal_{}", "start"), (b, "end"), (a, "end")),
        *((a, "start"), (a, "end")),
    ]
    records = []
    for number, (hook, when) in enumerate(hooks):
        same = {"run": f"r{number}", "hook": hook.format(when)}
        after = hook.format("end") if when == "start" else ""
        ended = {"outcome": "completed", "followed_by": after}
        records.append(record("operation-start", 10 * number, **same))
        records.append(record("operation-end", 10 * number, **ended, **same))
    found = [[one.hook for one in hooks] for hooks in Timeline(records).occurrences()]
    pairs = [[one.format("start"), one.format("end")] for one in (a, b)]
    assert found == [*pairs, ["heal_start"], pairs[0]]


def test_what_was_cut_off_is_not_under_way():
    cut = PLAYBOOK[:5]
    after = [{**one, "run": "next", "hook": "heal_end"} for one in PLAYBOOK]
    newest, cut_off = chart.draw(VNF, Timeline([*cut, *after]), now=EPOCH + 2000)
    assert newest.state == "failed"
    assert cut_off.state == cut_off.hooks[0].state == "cut off"
    assert chart.draw(VNF, Timeline(cut), now=EPOCH + 2000)[0].state == "under way"


def test_an_operation_under_way_shows_its_last_sign_of_life():
    text = "play 1/3, task 1; last sign of life 16 min 15 s ago"
    assert drawn(PLAYBOOK[:5]).note == text
    assert drawn(PLAYBOOK[:4]).note == "last sign of life 16 min 20 s ago"


def test_an_operation_under_way_shows_the_time_left():
    last = {**PLAYBOOK[4], "left": 380, "former_runs": 2}
    text = drawn([*PLAYBOOK[:4], last]).note
    assert text.startswith("play 1/3, task 1, about 6 min left (two former runs); last")


def test_tasks_are_shown_as_ansible_timed_them():
    timed = [{"task": "first", "play": "P", "seconds": 40.0}]
    timed += [{"task": "other", "play": "Q", "seconds": 10.0}]
    last = {**PLAYBOOK[8], "slowest": timed}
    (hook,) = drawn([*PLAYBOOK[:8], last, *PLAYBOOK[9:]]).hooks
    assert [(row.label, row.note, row.took, row.bar.width) for row in hook.tasks] == [
        ("first", "P", "40 s", 100),
        ("other", "Q", "10 s", 25),
    ]


def test_between_two_hooks_the_work_of_tacker_is_named():
    records = [
        record("operation-start", 1990, hook="instantiate_start"),
        record("operation-end", 1990, hook="instantiate_start", outcome="completed"),
    ]
    operation = drawn(records)
    assert operation.state == "under way"
    assert operation.note == (
        "Tacker now has Heat create the VMs; instantiate_end follows; "
        "last sign of life 10 s ago"
    )


def test_clocks_that_jump_keep_bars_on_the_page():
    jumped = [{**one, "time": 2 * EPOCH + 3000 - one["time"]} for one in PLAYBOOK]
    (hook,) = drawn(jumped).hooks
    for row in rows(hook):
        assert row.bar.left >= 0
        assert row.bar.width >= 0
        assert row.bar.left + row.bar.width <= 100.001


def test_a_page_is_replaced_only_by_force(tmp_path, capsys):
    completed(tmp_path)
    path = tmp_path / "page.html"
    path.write_text("mine")
    command = ["runs", "show", "--state-path", str(tmp_path), "--html", str(path)]
    assert main(command) == 2
    assert path.read_text() == "mine"
    assert "--force replaces it" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_page_that_cannot_be_written_is_one_line(tmp_path, capsys):
    completed(tmp_path)
    command = ["runs", "show", "--state-path", str(tmp_path), "--html"]
    assert main([*command, str(tmp_path / "no" / "page.html")]) == 2
    assert f"there is no directory {tmp_path / 'no'}" in capsys.readouterr().err


def test_it_is_drawn_of_a_journal_of_thousands_of_records(tmp_path):
    one = Recorder(tmp_path).begin(1)
    one.step_start()
    for number in range(3000):
        one.progress(play=1 + number // 200, plays=15, tasks=number // 3)
    one.step_end()
    one.end()
    records, _ = journal.read(one.path)
    shown = Page(html.render(VNF, Timeline(records), now=EPOCH))
    assert shown.tags.count("details") == 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (61, "1 min 1 s"),
        (3599.6, "1 h"),
        (3660, "1 h 1 min"),
        (90_000, "25 h"),
    ],
)
def test_durations_have_units_spelled_out(seconds, words):
    assert in_words(seconds) == words


def test_steps_that_show_only_later_are_counted():
    common = {"run": "r", "hook": "change_current_package_end"}
    records = [
        {**common, "event": "operation-start", "steps": 2},
        {**common, "event": "step-start", "number": 2, "total": 2, "step": "check"},
        {**common, "event": "step-start", "number": 3, "total": 9, "step": "run"},
    ]
    last = Timeline(records).last
    assert last is not None
    assert last.total == 9


# Failures

UNREACHABLE = "No route to host"
LONG = "demo-worker-group-3kxq7a2mvb5t-0"


def a_failure(tmp_path, api="v2", hook="scale_end", **end):
    """A page of an operation that failed."""
    one = Recorder(tmp_path, hook, api=api)
    one.begin(1, **end.pop("start", {}))
    one.step("run scale.yml", outcome="failed")
    one.end("failed", **{"error": f"All of it: {ERROR}", **end})
    return written(tmp_path)


def test_a_failed_playbook_is_a_list_of_hosts_tasks_and_messages(tmp_path):
    tasks = [
        {"host": host, "task": "Download", "message": UNREACHABLE}
        for host in ("worker-1", LONG)
    ]
    tasks.append({"host": "worker-3", "task": "Start", "message": "no"})
    shown = Page(a_failure(tmp_path, failed_tasks=tasks))
    for line in (
        f"worker-1 | {LONG} | Download | {UNREACHABLE}",
        "worker-3 | Start | no",
    ):
        assert line in shown.text
    assert shown.text.index("Host") < shown.text.index("All of it:")


def test_a_task_that_failed_on_many_hosts_names_some(tmp_path):
    tasks = [
        {"host": f"worker-{number}", "task": "T", "message": "m"}
        for number in range(1, 31)
    ]
    shown = Page(a_failure(tmp_path, failed_tasks=tasks))
    assert "worker-20" in shown.texts
    assert "worker-21" not in shown.texts
    assert "and 10 more" in shown.text


def test_other_problems_are_a_list_as_well(tmp_path):
    text = a_failure(tmp_path, problems=["first of all", "another one"])
    assert '<ol class="problems">' in text
    assert "<li>first of all</li>" in text


ADVICE = "`retry` continues from here; `fail` gives the operation up."


def commands(text):
    return re.findall(r"<pre>(.*?)</pre>", WHOLE.sub(r"\1", text))


def test_the_next_commands_can_be_copied(tmp_path):
    known = {"lcm_op_occ_id": "c0ffee00-0000-4000-8000-000000000001"}
    text = a_failure(tmp_path, advice=ADVICE, start=known)
    assert commands(text) == [
        f"openstack vnflcm op {verb} {known['lcm_op_occ_id']} --os-tacker-api-version 2"
        for verb in ("retry", "fail")
    ]
    assert "script" not in Page(text).tags


def test_a_former_journal_has_commands_without_the_operations_id(tmp_path):
    text = a_failure(tmp_path, "v1", error=f"It failed. {ADVICE}")
    assert commands(text) == [
        f"openstack vnflcm op list --filter &#39;(eq,vnfInstanceId,{VNF})&#39;",
        "openstack vnflcm op retry OPERATION_ID",
        "openstack vnflcm op fail OPERATION_ID",
    ]


def test_an_operation_of_a_cnf_is_named_after_it_and_its_commands_name_it(tmp_path):
    cnf = "0219ae8f-c43a-4e99-8706-a784e3fed8d2"
    hook, error = f"instantiate_end of CNF {cnf}", f"No route. {ADVICE}"
    text = a_failure(tmp_path, hook=hook, error=error, advice=ADVICE)
    assert f"Instantiate of CNF {cnf}" in Page(text).texts
    assert f"(eq,vnfInstanceId,{cnf})" in commands(text)[0]


def test_an_operation_of_a_cnf_has_its_name_and_its_own_occurrence(tmp_path):
    cnf = "0219ae8f-c43a-4e99-8706-a784e3fed8d2"
    start = {"cnf_name": "web", "lcm_op_occ_id": "c-1"}
    hook = f"instantiate_end of CNF {cnf}"
    text = a_failure(tmp_path, hook=hook, error="No.", verbs=["retry"], start=start)
    assert "Instantiate of CNF web" in Page(text).texts
    assert cnf not in Page(text).text
    assert [command.split()[-4:-2] for command in commands(text)] == [["retry", "c-1"]]


def test_advice_that_is_in_the_text_is_shown_once(tmp_path):
    text = a_failure(tmp_path, error=f"No route. {ADVICE}", advice=ADVICE)
    assert Page(text).text.count(ADVICE) == 1


def test_an_operation_that_no_longer_waits_has_no_commands(tmp_path):
    failed(tmp_path, "scale_end", error=ADVICE)
    completed(tmp_path, "heal_end")
    assert commands(written(tmp_path)) == []


def test_a_failure_that_a_retry_has_mended_is_folded(tmp_path):
    failed(tmp_path, error=ADVICE)
    completed(tmp_path)
    text = written(tmp_path)
    assert re.search(r"<details>\s*<summary>Why it failed</summary>", text)
    assert commands(text) == []


@pytest.mark.parametrize("verb", ["retry", "rollback", "fail"])
def test_the_advice_of_hooks_has_commands(verb):
    every = [one for one in vars(hints).values() if isinstance(one, hints.Advice)]
    named = [one for one in every if verb in one.verbs]
    assert named
    for advice in named:
        # Of the journal now, and of former releases.
        for verbs in (tuple(one.value for one in advice.verbs), None):
            one = Operation(
                *("r", "heal_end", "v1"),
                started=0,
                last=0,
                error=advice.text,
                verbs=verbs,
            )
            shown = chart.of(one, VNF)
            assert shown is not None
            assert f"openstack vnflcm op {verb} OPERATION_ID" in shown.commands


def test_a_verb_that_the_advice_warns_of_has_no_command(tmp_path):
    text = "`rollback` deletes the new VMs. Do not send `retry`."
    sent = ["rollback", "; reboot", 7]
    known = {"lcm_op_occ_id": "c0ffee00"}
    page = a_failure(tmp_path, "v1", start=known, advice=text, verbs=sent)
    assert commands(page) == ["openstack vnflcm op rollback c0ffee00"]


# What is said of an operation


def test_the_vnf_its_operation_and_a_scale_are_named(tmp_path):
    start = {
        "vnf_name": "edge-4",
        "lcm_op_occ_id": "c0ffee00-0000-4000-8000-000000000001",
        "scale": {"direction": "out", "aspect": "worker_instance", "steps": 2},
    }
    one = Recorder(tmp_path, "scale_end").begin(0, **start)
    one.end()
    shown = Page(written(tmp_path))
    assert shown.texts[0] == "Operations of edge-4"
    for text in (
        VNF,
        start["lcm_op_occ_id"],
        "Scale out by 2 steps of worker_instance",
    ):
        assert text in shown.text


@pytest.mark.parametrize("scale", ["out", {}, {"steps": "two"}, None, [1]])
def test_a_damaged_scale_is_no_obstacle(tmp_path, scale):
    Recorder(tmp_path, "scale_end").begin(0, scale=scale).end()
    assert "Scale" in Page(written(tmp_path)).text


def test_steps_with_nothing_to_do_are_folded():
    outcomes = ["nothing to do", "nothing to do", "done", "nothing to do", "failed"]
    records = [record("operation-start", 1000, steps=5)]
    for number, outcome in enumerate(outcomes, 1):
        records.append(step("step-start", 1000 + number, number))
        records.append(step("step-end", 1001 + number, number, outcome=outcome))
    (hook,) = drawn(records).hooks
    assert [(len(group.rows), group.folded) for group in hook.steps] == [
        (2, "2 steps with nothing to do"),
        (1, ""),
        (1, ""),
        (1, ""),
    ]


def test_names_of_nodes_are_never_broken(tmp_path):
    name = "n" * 30 + "-" + "x" * 32
    one = Recorder(tmp_path, "scale_end").begin(1)
    one.step(f"empty {LONG}, {name}")
    one.end("failed", error=f"{name}: no")
    text = written(tmp_path)
    assert f'<span class="whole">{LONG},</span>' in text
    assert f'<span class="whole">{name}</span>' in text
    assert f'<span class="whole">{name}:</span>' in text
    assert ".whole { display: inline-block; max-width: 100%; }" in text


# All VNF instances


def test_an_index_has_all_operations_and_the_open_failures_first():
    mended = [
        {**one, "run": f"m{one['run']}", "time": one["time"] - 500} for one in PLAYBOOK
    ]
    after = [
        record("operation-start", 900, "ok", "instantiate_end", steps=0),
        record("operation-end", 901, "ok", "instantiate_end", outcome="completed"),
    ]
    failing = [{**one, "hook": "scale_end", "vnf_name": "edge-4"} for one in PLAYBOOK]
    timelines = {OTHER: Timeline([*mended, *after]), VNF: Timeline(failing)}
    text = html.render_index(timelines, now=EPOCH + 2000)
    shown = Page(text)
    links = [value for tag, name, value in shown.attributes if name == "href"]
    assert links == [f"{VNF}.html#o-r", f"{VNF}.html#o-r", f"{OTHER}.html#o-mr"]
    assert shown.texts[:2] == ["Operations of Kubernetes clusters"] * 2
    assert shown.text.count("why") == 1
    assert "edge-4" in shown.text
    assert "2 VNF instances, 2 operations." in shown.text


def test_an_index_of_one_cluster_counts_one():
    text = html.render_index({VNF: Timeline(PLAYBOOK)}, now=EPOCH + 2000)
    assert "1 VNF instance, 1 operation." in Page(text).text


# Contrast, as WCAG 2.2 defines it

_PAIRS = [
    *((text, back) for text in ("text", "faint", "link") for back in ("page", "card")),
    *((text, "bad-back") for text in ("text", "faint", "failed")),
    *(("good", "good-back"), ("running", "wait-back"), ("faint", "cut-back")),
    ("failed", "card"),
]
_BARS = ["done", "done-2", "same", "failed", "running", "task"]


def _luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_bars_can_be_told_from_what_is_behind_them(scheme):
    light, dark = re.findall(r":root \{(.*?)\}", html.render(VNF, Timeline(), 0), re.S)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#\w{6});", dark))
    for text, back in _PAIRS:
        assert _contrast(colours[text], colours[back]) >= 4.5, (text, back)
    for bar in _BARS:
        assert _contrast(colours[bar], colours["track"]) >= 3, bar
