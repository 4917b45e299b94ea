"""Why an SLA was missed: evidence, its classification, one sentence."""
