/*---
title    = "One rank makes the others wait"
doc      = """
From profiler traces of several ranks: the same rank comes last to collectives and the others wait for it. It is named
if it holds up at least half of the profiled steps, and at least three, each by a fifth of the step or more; or if it
holds up four fifths of at least eight steps by a twentieth at the median. Nobody is named if that rank waits itself, or
may wait in collectives that could not be matched, for half of what it causes (it may be a victim in another process
group, or of its neighbour in a pipeline), nor on the evidence of one late step.
"""
fault    = "throughput"
kind     = "state"
severity = "fault"
names_culprit = true
reads    = ["trace_blame", "trace_step"]
summary  = "rank {ranks} comes last to the collectives of {led} of {steps} profiled steps; without it a step would be {share} % shorter"
[params]
large = { type = "DOUBLE", default = 0.2, doc = "Share of a step that counts as a clear delay." }
small = { type = "DOUBLE", default = 0.05, doc = "Share of a step that counts where the delay is steady over eight steps or more." }
[returns]
rank = "INTEGER"
culprit = "BOOLEAN"
led = "BIGINT"
steps = "BIGINT"
share = "DOUBLE"
confidence = "VARCHAR"
source = "VARCHAR"
text = "VARCHAR"
[[case]]
name = "rank 1 is late in three of four steps"
given.trace_step = """
source | rank | step | duration
a      | 0    | 1    | 1000
a      | 0    | 2    | 1000
a      | 0    | 3    | 1000
a      | 0    | 4    | 1000
b      | 1    | 1    | 1000
"""
given.trace_blame = """
step | rank | caused | waited | step_duration
1    | 0    | 0      | 500    | 1000
1    | 1    | 500    | 0      | 1000
2    | 0    | 0      | 400    | 1000
2    | 1    | 400    | 10     | 1000
3    | 0    | 0      | 500    | 1000
3    | 1    | 500    | 0      | 1000
4    | 0    | 20     | 0      | 1000
4    | 1    | 0      | 20     | 1000
"""
expect = """
rank | led | steps | share | confidence
1    | 3   | 4     | 35    | high
"""
[[case]]
name = "one late step of rank 0 is no straggler"
given.trace_step = """
source | rank | step | duration
a      | 0    | 1    | 1000
a      | 0    | 2    | 1000
a      | 0    | 3    | 1000
"""
given.trace_blame = """
step | rank | caused | waited | step_duration
1    | 0    | 900    | 0      | 1000
2    | 0    | 20     | 0      | 1000
3    | 0    | 20     | 0      | 1000
"""
expect = "rank | led | steps"
[[case]]
name = "a rank whose own collectives cannot be matched may be a victim there"
given.trace_step = """
source | rank | step | duration
a      | 0    | 1    | 1000
a      | 0    | 2    | 1000
a      | 0    | 3    | 1000
"""
given.trace_blame = """
step | rank | caused | waited | unclear | step_duration
1    | 0    | 300    | 0      | 200     | 1000
2    | 0    | 300    | 0      | 200     | 1000
3    | 0    | 300    | 0      | 200     | 1000
"""
expect = "rank | led | steps"
[[case]]
name = "a rank that waits as much as it causes is not named"
given.trace_step = """
source | rank | step | duration
a      | 0    | 1    | 1000
a      | 0    | 2    | 1000
a      | 0    | 3    | 1000
"""
given.trace_blame = """
step | rank | caused | waited | step_duration
1    | 0    | 300    | 300    | 1000
2    | 0    | 300    | 300    | 1000
3    | 0    | 300    | 300    | 1000
"""
expect = "rank | led | steps"
---*/
WITH profiled AS (
    SELECT run_id, count(DISTINCT step) AS steps FROM trace_step GROUP BY run_id
),

led AS (
    SELECT
        run_id, step, rank, caused, waited + coalesce(unclear, 0) AS waited, step_duration,
        caused / CAST(step_duration AS DOUBLE) AS part,
        row_number() OVER (PARTITION BY run_id, step ORDER BY caused DESC, rank) = 1 AND caused > 0 AS leads
    FROM trace_blame
),

total AS (
    SELECT
        l.run_id, l.rank, p.steps,
        count(*) FILTER (WHERE l.leads AND l.part >= $large) AS clear,
        count(*) FILTER (WHERE l.leads AND l.part >= $small) AS steady,
        coalesce(median(l.part) FILTER (WHERE l.leads), 0) AS typical,
        sum(l.caused) AS caused,
        sum(l.waited) AS waited,
        sum(l.caused) / any_value(t.duration) AS share
    FROM led AS l
    INNER JOIN profiled AS p ON p.run_id = l.run_id
    INNER JOIN (
        SELECT run_id, sum(step_duration) AS duration
        FROM (SELECT DISTINCT run_id, step, step_duration FROM trace_blame)
        GROUP BY run_id
    ) AS t ON t.run_id = l.run_id
    GROUP BY l.run_id, l.rank, p.steps
),

named AS (
    SELECT run_id, rank, steps, share, clear, steady, clear >= 3 AND 2 * clear >= steps AS by_clear
    FROM total
    WHERE
        waited * 2 < caused
        AND (
            (clear >= 3 AND 2 * clear >= steps)
            OR (steps >= 8 AND 5 * steady >= 4 * steps AND typical >= $small)
        )
)

SELECT
    n.rank,
    TRUE AS culprit,
    CASE WHEN n.by_clear THEN n.clear ELSE n.steady END AS led,
    n.steps,
    round(100 * n.share) AS share,
    CASE WHEN n.by_clear THEN 'high' ELSE 'medium' END AS confidence,
    (SELECT min(s.source) FROM trace_step AS s WHERE s.run_id = n.run_id AND s.rank = n.rank) AS source,
    printf(
        'rank %d came last in %d of %d profiled steps; the others waited %.0f %% of the step time for it',
        n.rank, CASE WHEN n.by_clear THEN n.clear ELSE n.steady END, n.steps, 100 * n.share
    ) AS text
FROM named AS n
ORDER BY n.share DESC, n.rank
