"""What looks like a secret in a configuration."""

from __future__ import annotations

import re

SECRET_ADDRESS = re.compile(r"://[^/\s:]*:[^/\s@]*@")
SECRET_KEY = re.compile(r"pass(word|wd|phrase)?$|pwd|secret|token|api_?key|private_?key|credential|jaas", re.IGNORECASE)
