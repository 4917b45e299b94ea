"""Which of many SLAs a page shows, in which order, grouped and folded how; all of it is in the page's address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Literal, get_args

from fastapi import Depends, Query

from kafka_sla.sla.wording import share_of_budget_left
from kafka_sla.text.natural_order import NaturalKey, natural
from kafka_sla.web.api.params import Chosen, Filter
from kafka_sla.web.pages.views import view_models
from kafka_sla.web.queries.schemas import SlaStatus

Standing = Literal["missed", "exhausted", "pending", "at_risk", "unknown", "excluded", "met"]
Sort = Literal["attention", "budget", "burn", "name"]
Link = Callable[..., str]
Draw = Callable[[Sequence[SlaStatus]], Sequence[SlaStatus]]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
"""What an SLA is counted as, the one that needs attention first: of an open miss and an exhausted budget the miss."""
BADGES: dict[Standing, tuple[str, str, str]] = {
    "missed": ("missed", "✖", "missed"),
    "exhausted": ("missed", "■", "budget exhausted"),
    "pending": ("pending", "▲", "pending"),
    "at_risk": ("pending", "◣", "budget at risk"),
    "unknown": ("unknown", "?", "unknown"),
    "excluded": ("excluded", "–", "excluded"),
    "met": ("met", "✔", "met"),
}
SORTS = {"attention": "needs attention", "budget": "budget left", "burn": "burn rate", "name": "name"}
FEW = 20
"""SLAs that are listed whole: of more, those in order are folded to a line."""


@dataclass(frozen=True, slots=True)
class View:
    """What the address requests beside cluster, group, team and topic."""

    chosen: Filter
    search: str = ""
    state: Standing | Literal[""] = ""
    sort: Sort = "attention"
    by: Literal["", "team"] = ""
    unfolded: bool = False

    def query(self, **changes: Any) -> dict[str, Any]:
        """The address of this view as parameters, with changes; what is as by default is left out."""
        mine = {
            "cluster": self.chosen.cluster,
            "group": self.chosen.group,
            "team": self.chosen.team,
            "topic": self.chosen.topic,
            "q": self.search,
            "state": self.state,
            "sort": "" if self.sort == "attention" else self.sort,
            "by": self.by,
            "all": "true" if self.unfolded else "",
        }
        return mine | changes


def view_of(
    chosen: Chosen,
    search: Annotated[str, Query(alias="q", description="words of the name, group, topic or team")] = "",
    state: Annotated[Literal["", Standing], Query(description="only these")] = "",
    sort: Annotated[Sort, Query(description="the order")] = "attention",
    by: Annotated[Literal["", "team"], Query(description="group by team")] = "",
    unfolded: Annotated[bool, Query(alias="all", description="list those in order, too")] = False,
) -> View:
    return View(chosen, search.strip(), state, sort, by, unfolded)


RequestView = Annotated[View, Depends(view_of)]


def standing(row: SlaStatus) -> Standing:
    """The one word that an SLA is counted by."""
    if row.state == "missed":
        return "missed"
    budget = row.period.budget if row.period else None
    if budget == "exhausted" or (budget == "at_risk" and row.state != "pending"):
        return budget
    return row.state


def shown(view: View, rows: Sequence[SlaStatus], link: Link, draw: Draw) -> dict[str, Any]:
    """The chips with their counts, the lists of SLAs, and what is folded. `draw` gives those that are listed curves."""
    found = [row for row in rows if _has_words(row, view.search)] if view.search else list(rows)
    listed = sorted((row for row in found if view.state in ("", standing(row))), key=_ORDERS[view.sort])
    folding = not (view.unfolded or view.state or view.search or len(listed) <= FEW)
    drawn = {row.name: row for row in draw([row for row in listed if not folding or standing(row) != "met"])}
    return {
        "view": view,
        "all": len(rows),
        "chips": _chips(view, found, link),
        "sorts": SORTS,
        "lists": [_listed(name, mine, drawn, link) for name, mine in _grouped(view, listed)],
        "folded": sum(standing(row) == "met" for row in listed) if folding else 0,
        "unfold": link("/", **view.query(all="true")),
        "teams": _teams(listed, link) if not view.by and len(listed) > FEW else [],
    }


def counts(rows: Sequence[SlaStatus]) -> list[tuple[tuple[str, str, str], int]]:
    """How many SLAs stand how; what none does is left out."""
    found = Counter(map(standing, rows))
    return [(BADGES[name], found[name]) for name in STANDINGS if found[name]]


def _chips(view: View, rows: Sequence[SlaStatus], link: Link) -> list[dict[str, Any]]:
    """A filter each; the one that is on leads back to all."""
    found = Counter(map(standing, rows))
    return [
        {
            "badge": BADGES[name],
            "count": found[name],
            "on": view.state == name,
            "href": link("/", **view.query(state="" if view.state == name else name)),
        }
        for name in STANDINGS
        if found[name] or view.state == name
    ]


def _grouped(view: View, rows: Sequence[SlaStatus]) -> list[tuple[str | None, list[SlaStatus]]]:
    """By team, the one that needs attention most first; or one list."""
    if not view.by:
        return [(None, list(rows))]
    teams = [(team, list(mine)) for team, mine in groupby(sorted(rows, key=_by_team), key=_team)]
    return sorted(teams, key=lambda one: min(map(_ORDERS["attention"], one[1])))


def _listed(team: str | None, rows: Sequence[SlaStatus], drawn: Mapping[str, SlaStatus], link: Link) -> dict[str, Any]:
    kept = [drawn[row.name] for row in rows if row.name in drawn]
    return {
        "team": team,
        "href": link(f"/teams/{team}") if team else None,
        "counts": counts(rows),
        "slas": [view_models.now(row, link) for row in kept],
        "folded": len(rows) - len(kept),
    }


def _teams(rows: Sequence[SlaStatus], link: Link) -> list[dict[str, Any]]:
    named = [row for row in rows if row.team]
    return [
        {"name": team, "href": link(f"/teams/{team}"), "counts": counts(list(mine))}
        for team, mine in groupby(sorted(named, key=_by_team), key=_team)
    ]


def _team(row: SlaStatus) -> str:
    return row.team


def _by_team(row: SlaStatus) -> NaturalKey:
    return natural(row.team)


def _has_words(row: SlaStatus, search: str) -> bool:
    text = " ".join((row.name, row.team, row.cluster, *row.groups, *row.topics)).casefold()
    return all(word in text for word in search.casefold().split())


def _left(row: SlaStatus) -> float:
    left = share_of_budget_left(row.period) if row.period else None
    return 1.0 if left is None else left


_ORDERS: dict[str, Callable[[SlaStatus], tuple[Any, ...]]] = {
    "attention": lambda row: (STANDINGS.index(standing(row)), _left(row), natural(row.name)),
    "budget": lambda row: (_left(row), natural(row.name)),
    "burn": lambda row: (-(row.period.burn_rate or 0.0) if row.period else 0.0, natural(row.name)),
    "name": lambda row: (natural(row.name),),
}
