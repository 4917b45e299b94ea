"""Pure judgement of published windows: verdicts, misses, attainment."""
