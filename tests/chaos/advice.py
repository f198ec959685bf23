# SPDX-License-Identifier: Apache-2.0
"""What the text of an error tells its reader to send next.

Only what is written there: what an operator would have to know is in :mod:`.guide`.
"""

import re
from dataclasses import dataclass

VERBS = ("retry", "rollback", "fail")
_QUOTED = re.compile(r"`([^`]+)`")
# Words before a verb that make it no advice.
_AGAINST = re.compile(r"(?:do(?:es)? not send|nor|not|instead of|without) $", re.I)
_ABOUT = re.compile(r"(?:with|after|earlier) $", re.I)
# What an error says of a verb that it cannot vouch for.
_DOUBT = ("compare before you send it", "could not be found out")
_JOINS = re.compile(r"(?:next|another) (?:scale-out|heal|scale)", re.I)
_AGAIN = re.compile(
    r"(?:same request sent again|modify the VNF instance again|corrected request"
    r"|then (?:the )?same request|until the (?:whole )?VNF is \w+ again)",
    re.I,
)
_DELETE = re.compile(r"\bdelete\b[^.]{0,40}\bfile\b|\bdelete it\b", re.I)


@dataclass(frozen=True)
class Advice:
    """What an error says.

    :param verbs: those that it advises, in its order.
    :param against: those that it warns of.
    :param commands: other command lines in it.
    :param joins: the next scaling or heal is said to continue.
    :param again: another request is to be sent afterwards.
    :param deletes: a file is to be deleted by hand.
    """

    verbs: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    joins: bool = False
    again: bool = False
    deletes: bool = False


def read(error: str) -> Advice:
    """The advice in the text of an error."""
    verbs: list[str] = []
    against: list[str] = []
    commands: list[str] = []
    for match in _QUOTED.finditer(error):
        before = error[: match.start()]
        if match[1] not in VERBS:
            commands += [match[1]] if " " in match[1] else []
        elif _AGAINST.search(before):
            against.append(match[1])
        elif not _ABOUT.search(before):
            verbs.append(match[1])
    if any(doubt in error for doubt in _DOUBT):
        # The verb that is said to change nothing.
        verbs = [verb for verb in verbs if verb != "rollback"]
    return Advice(
        verbs=tuple(verb for verb in dict.fromkeys(verbs) if verb not in against),
        against=tuple(dict.fromkeys(against)),
        commands=tuple(commands),
        joins=bool(_JOINS.search(error)),
        again=bool(_AGAIN.search(error)),
        deletes=bool(_DELETE.search(error)),
    )
