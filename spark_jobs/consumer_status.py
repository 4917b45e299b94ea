"""The table `consumer_status`: Burrow's rules over the last commits of each group-partition. Expressions only.

Why the rules stand in this order: docs/reference/consumer_status.md.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_sla.job import Job
from kafka_sla.model import epoch_ms
from kafka_sla.tables import CONSUMER_STATUS
from spark_jobs.inputs import Inputs
from spark_jobs.sightings import KEY, PARTITION, in_order, lag_behind, log_ends, of_cluster, sightings


def wanted(job: Job) -> bool:
    """Every cluster's consumers are judged."""
    return bool(job.replays)


def measure(inputs: Inputs) -> DataFrame:
    """One row per group-partition and window from its first sighting on, evaluated at the window's end."""
    job = inputs.job
    rows = _rows(_with_commits(sightings(inputs), job), job)
    ends = _at_window_ends(log_ends(inputs), job)
    known = rows.join(ends, [name.strip("`") for name in (*PARTITION, "end")], how="left")
    return _with_groups(_judged(_figures(known, job), job), job)


def _with_commits(seen: DataFrame, job: Job) -> DataFrame:
    """Each sighting with the commits until then, as many as any cluster evaluates."""
    most = max(replay.cluster.status.commits for replay in job.replays)
    one = "IF(is_commit, struct(at, position, lag, begins), NULL)"
    until = f"{in_order('is_commit')} ROWS BETWEEN {most - 1} PRECEDING AND CURRENT ROW"
    last = f"{in_order()} ROWS UNBOUNDED PRECEDING"
    return seen.selectExpr("*", f"collect_list({one}) OVER ({until}) AS found").selectExpr(
        *KEY, "at", "position", "next_at", "polled_only", "expire",
        f"last(IF(is_commit, found, NULL)) IGNORE NULLS OVER ({last}) AS found",
    )  # fmt: skip


def _rows(seen: DataFrame, job: Job) -> DataFrame:
    """A row per window whose last sighting this is, up to the first window that ends more than `expire` after it.

    `commits`: the last ones, as many as the cluster evaluates, without a silence longer than `expire` between them.
    """
    width, start, end = _grid(job)
    first = f"greatest(at DIV {width} * {width} + {width}, {start + width})"
    last = f"least(next_at DIV {width} * {width}, (at + expire) DIV {width} * {width} + {width}, {end})"
    ends = f"IF({first} <= {last}, sequence({first}, {last}, {width}L), array()) AS ends"
    silence = "found[i].begins OR found[i].at - found[i - 1].at > expire"
    begin = f"array_max(transform(found, (c, i) -> IF(i > 0 AND ({silence}), i + 1, 1)))"
    count = of_cluster(job, lambda c: c.status.commits)
    return (
        seen.where("position IS NOT NULL").selectExpr("*", ends).where("size(ends) > 0")
        .selectExpr("*", f"greatest({begin}, size(found) + 1 - {count}) AS begin")
        .selectExpr(
            *KEY, "explode(ends) AS end", "at AS seen", "polled_only", "expire",
            "slice(found, begin, size(found)) AS commits",
        )
    )  # fmt: skip


def _at_window_ends(points: DataFrame, job: Job) -> DataFrame:
    """PARTITION, `end`, `log_end`: the newest log end offset known at each window's end."""
    width, start, end = _grid(job)
    order = f"PARTITION BY {', '.join(PARTITION)} ORDER BY at, log_end"
    first = f"greatest((at + {width - 1}) DIV {width} * {width}, {start + width})"
    last = f"least((next_at - 1) DIV {width} * {width}, {end})"
    return (
        points.selectExpr("*", f"lead(at) OVER ({order}) AS next_at")
        .where(f"{first} <= {last}")
        .selectExpr(*PARTITION, f"explode(sequence({first}, {last}, {width}L)) AS end", "log_end")
    )


def _grid(job: Job) -> tuple[int, int, int]:
    """Width of the windows, start of the first and end of the last; µs."""
    width = job.window_ms * 1_000
    start, end = (epoch_ms(at) * 1_000 for at in (job.interval.start, job.interval.end))
    return width, -(-start // width) * width, end // width * width


def _figures(rows: DataFrame, job: Job) -> DataFrame:
    """What the rules look at."""
    count = of_cluster(job, lambda c: c.status.commits)
    return rows.selectExpr(
        *KEY, "end", "seen", "polled_only", "expire", "log_end",
        "commits.at AS times", "commits.position AS offsets", "commits.lag AS lags", "size(commits) AS n",
        "element_at(commits, -1).at AS last", "element_at(commits, -1).position AS position",
        f"size(commits) / {count} AS complete",
    ).selectExpr(
        "*", "end - last AS silence", "last - times[0] AS span", f"{lag_behind('log_end', 'position')} AS lag",
        "array_max(offsets) AS highest", "array_min(offsets) AS lowest",
        "forall(transform(lags, (lag, i) -> i = 0 OR lag >= lags[i - 1]), fine -> fine) AS lag_never_fell",
    )  # fmt: skip


def _judged(rows: DataFrame, job: Job) -> DataFrame:
    """The first rule that applies decides."""
    rules = [
        f"WHEN {applies} THEN struct('{status}' AS status, {why} AS reason)" for status, applies, why in _rules(job)
    ]
    otherwise = "struct('OK' AS status, 'moves, and the lag fell between two of the commits' AS reason)"
    return rows.selectExpr("*", f"CASE {' '.join(rules)} ELSE {otherwise} END AS judged")


def _rules(job: Job) -> list[tuple[str, str, str]]:
    """Status, when, and why in words."""
    allowed = of_cluster(job, lambda c: c.status.allowed_lag)
    needed = of_cluster(job, lambda c: c.status.min_complete)
    silent = f"concat('no commit for ', {_seconds('silence')}, ', longer than '"
    return [
        ("NOTFOUND", "silence > expire", f"{silent}, 'expire_group: the group is gone')"),
        ("OK", f"complete < {needed}", "concat('commits known: ', n, ', too few to judge by (min_complete)')"),
        ("OK", "lag IS NULL", "'no log end offset is known'"),
        ("OK", f"lag <= {allowed}", "concat('the lag of ', lag, ' is within allowed_lag')"),
        ("STOPPED", "silence > span",
         f"{silent}, 'the ', {_seconds('span')}, ' from the first to the last of the commits before: ', n)"),
        # Only the highest offset matters: a rewind from any other one was reached again by the commit that made it.
        ("REWIND", "position < highest",
         "concat('went back from offset ', highest, ' and has not reached it again, only ', position)"),
        ("OK", "array_contains(lags, 0L)", "'the lag was zero at one of the commits'"),
        ("OK", "exists(lags, lag -> lag IS NULL)", "'no log end offset was known at some of the commits'"),
        ("STALLED", "lowest = highest AND lag_never_fell",
         f"concat('commits, but has not moved from offset ', position, ' in ', {_seconds('span')})"),
        ("WARNING", "lag_never_fell", "concat('moves, but the lag fell between no two of the commits: ', n)"),
    ]  # fmt: skip


def _seconds(micros: str) -> str:
    return f"concat(rtrim('.', rtrim('0', CAST(CAST({micros} / 1e6 AS DECIMAL(20, 3)) AS STRING))), ' s')"


_SEVERITY = "CASE judged.status WHEN 'NOTFOUND' THEN 0 WHEN 'OK' THEN 1 WHEN 'WARNING' THEN 2 ELSE 3 END"
_GROUP = "PARTITION BY cluster, `group`, end"


def _with_groups(rows: DataFrame, job: Job) -> DataFrame:
    """The columns of the contract. A partition that is gone says nothing of a group of which others are not."""
    count = of_cluster(job, lambda c: c.status.commits)
    there = [f"sum(IF({which}, {what}, 0)) OVER ({_GROUP})" for which in ("severity > 0", "true") for what in ("n", 1)]
    micros = job.window_ms * 1_000
    values = {
        "window_start": f"timestamp_micros(end - {micros})",
        "window_end": "timestamp_micros(end)",
        "status": "judged.status",
        "reason": "judged.reason",
        "group_status": "element_at(array('NOTFOUND', 'OK', 'WARNING', 'ERROR'), worst + 1)",
        "group_complete": f"IF(worst = 0, n_all / partitions_all, n_found / partitions_found) / {count}",
        "log_end_offset": "log_end",
        "last_commit_at": "timestamp_micros(last)",
        "last_seen_at": "timestamp_micros(seen)",
        "commit_times": "transform(times, at -> timestamp_micros(at))",
        "commit_offsets": "offsets",
        "commit_lags": "lags",
    }
    return (
        rows.selectExpr("*", f"{_SEVERITY} AS severity")
        .selectExpr(
            "*", f"max(severity) OVER ({_GROUP}) AS worst", f"{there[0]} AS n_found", f"{there[1]} AS partitions_found",
            f"{there[2]} AS n_all", f"{there[3]} AS partitions_all",
        )
        .selectExpr(*[f"{values.get(name, f'`{name}`')} AS `{name}`" for name in CONSUMER_STATUS.names])
    )  # fmt: skip
