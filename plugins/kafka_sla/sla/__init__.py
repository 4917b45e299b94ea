"""Pure judgement of published windows: verdicts, misses, attainment. Knows no store and no clock."""
