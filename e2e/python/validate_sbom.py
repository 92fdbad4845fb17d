"""Validates a bill of materials against the schema of CycloneDX 1.6: validate_sbom.py FILE

Prints, as JSON, what is wrong, or null.
"""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1], encoding="utf-8") as file:
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
print(json.dumps({"problem": None if problem is None else repr(problem)[:2000]}))
