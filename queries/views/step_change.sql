/*---
title = "Where the typical step time of the job changes"
doc   = "Change points of the job's step time (max over ranks), with the level before and after each and the number of steps from it to the end. Stretches that pass are transient; `lasts` is false for a small change in a short run, which a machine that is shared now and then explains as well."
reads = ["step_times"]
materialize = true
[returns]
run_id = "VARCHAR"
step = "BIGINT"
before = "DOUBLE"
after = "DOUBLE"
ratio = "DOUBLE"
held = "BIGINT"
transient = "BOOLEAN"
lasts = "BOOLEAN"
[[case]]
name = "three times slower from step 13 on"
given.step_times = """
step | seconds
1    | 0.100
2    | 0.101
3    | 0.102
4    | 0.100
5    | 0.099
6    | 0.101
7    | 0.100
8    | 0.102
9    | 0.101
10   | 0.099
11   | 0.100
12   | 0.101
13   | 0.300
14   | 0.301
15   | 0.302
16   | 0.300
17   | 0.299
18   | 0.301
19   | 0.300
20   | 0.302
21   | 0.301
22   | 0.299
23   | 0.300
24   | 0.301
"""
expect = """
step | held | transient | lasts
13   | 12   | false     | true
"""
[[case]]
name = "eight percent slower for the last 60 of 120 steps"
given.step_times = """
step | seconds
1    | 0.10090
2    | 0.09910
3    | 0.10225
4    | 0.10045
5    | 0.09865
6    | 0.10180
7    | 0.10000
8    | 0.09820
9    | 0.10135
10   | 0.09955
11   | 0.09775
12   | 0.10090
13   | 0.09910
14   | 0.10225
15   | 0.10045
16   | 0.09865
17   | 0.10180
18   | 0.10000
19   | 0.09820
20   | 0.10135
21   | 0.09955
22   | 0.09775
23   | 0.10090
24   | 0.09910
25   | 0.10225
26   | 0.10045
27   | 0.09865
28   | 0.10180
29   | 0.10000
30   | 0.09820
31   | 0.10135
32   | 0.09955
33   | 0.09775
34   | 0.10090
35   | 0.09910
36   | 0.10225
37   | 0.10045
38   | 0.09865
39   | 0.10180
40   | 0.10000
41   | 0.09820
42   | 0.10135
43   | 0.09955
44   | 0.09775
45   | 0.10090
46   | 0.09910
47   | 0.10225
48   | 0.10045
49   | 0.09865
50   | 0.10180
51   | 0.10000
52   | 0.09820
53   | 0.10135
54   | 0.09955
55   | 0.09775
56   | 0.10090
57   | 0.09910
58   | 0.10225
59   | 0.10045
60   | 0.09865
61   | 0.10994
62   | 0.10800
63   | 0.10606
64   | 0.10946
65   | 0.10751
66   | 0.10557
67   | 0.10897
68   | 0.10703
69   | 0.11043
70   | 0.10849
71   | 0.10654
72   | 0.10994
73   | 0.10800
74   | 0.10606
75   | 0.10946
76   | 0.10751
77   | 0.10557
78   | 0.10897
79   | 0.10703
80   | 0.11043
81   | 0.10849
82   | 0.10654
83   | 0.10994
84   | 0.10800
85   | 0.10606
86   | 0.10946
87   | 0.10751
88   | 0.10557
89   | 0.10897
90   | 0.10703
91   | 0.11043
92   | 0.10849
93   | 0.10654
94   | 0.10994
95   | 0.10800
96   | 0.10606
97   | 0.10946
98   | 0.10751
99   | 0.10557
100  | 0.10897
101  | 0.10703
102  | 0.11043
103  | 0.10849
104  | 0.10654
105  | 0.10994
106  | 0.10800
107  | 0.10606
108  | 0.10946
109  | 0.10751
110  | 0.10557
111  | 0.10897
112  | 0.10703
113  | 0.11043
114  | 0.10849
115  | 0.10654
116  | 0.10994
117  | 0.10800
118  | 0.10606
119  | 0.10946
120  | 0.10751
"""
expect = """
step | held | transient | lasts
61   | 60   | false     | false
"""
[[case]]
name = "steady"
given.step_times = """
step | seconds
1    | 0.100
2    | 0.101
3    | 0.102
4    | 0.100
5    | 0.099
6    | 0.101
7    | 0.100
8    | 0.102
9    | 0.101
10   | 0.099
11   | 0.100
12   | 0.101
"""
expect = """
step
"""
---*/
WITH series AS (
    SELECT run_id, list(step ORDER BY step) AS steps, change_points(list(seconds ORDER BY step)) AS found
    FROM step_times
    GROUP BY run_id
),

changes AS (
    SELECT run_id, steps, unnest(found) AS c FROM series
)

SELECT
    run_id,
    steps[c.place] AS step,
    c.before, c.after, c.ratio,
    len(steps) - c.place + 1 AS held,
    c.transient, c.lasts
FROM changes
ORDER BY run_id, step
