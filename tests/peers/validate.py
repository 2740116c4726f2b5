"""validate.py SCHEMA[#/definitions/NAME] FILE: holds every line of FILE against a JSON Schema.

Prints how many lines there are, or every line that does not fit and why.
"""

import json
import sys

# Formats that tapes do not use; their grammars take seconds to load.
for heavy in ["rfc3987", "rfc3987_syntax", "fqdn", "idna", "webcolors", "isoduration", "uri_template"]:
    sys.modules[heavy] = None

from jsonschema.validators import validator_for

schema_path, _, place = sys.argv[1].partition("#")
with open(schema_path, encoding="utf-8") as file:
    schema = json.load(file)
Validator = validator_for(schema)
Validator.check_schema(schema)
if place:
    # The definitions stay reachable; only the root is another one.
    root = schema
    for word in place.strip("/").split("/"):
        root = root[word]
    schema = {"$schema": schema["$schema"], "definitions": schema["definitions"], "allOf": [root]}
# Without a checker for it, `format` would be ignored.
checker = Validator.FORMAT_CHECKER
assert "date-time" in checker.checkers, "rfc3339-validator is not installed"
validator = Validator(schema, format_checker=checker)

count = faults = 0
with open(sys.argv[2], encoding="utf-8", newline="\n") as file:
    for count, line in enumerate(file, 1):
        for error in validator.iter_errors(json.loads(line)):
            faults += 1
            why = "; ".join(part.message for part in [error, *(error.context or [])])
            print(f"line {count}: {line.strip()[:400]}\n  {why[:1000]}")
if faults:
    sys.exit(1)
print(count)
