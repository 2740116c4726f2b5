"""reports.py KIND FILE [SCHEMA]: reads a report as its consumers do, strictly.

`junit` holds FILE against an XML Schema and reads it with junitparser; `sarif` and `json` hold it
against a JSON Schema. Prints what was read as one line of JSON, or why it cannot be.
"""

import json
import sys

# Formats that reports do not use; their grammars take seconds to load.
for heavy in ["rfc3987", "rfc3987_syntax", "fqdn", "idna", "webcolors", "isoduration", "uri_template"]:
    sys.modules[heavy] = None


def junit(path, schema):
    import junitparser
    from lxml import etree

    document = etree.parse(path, etree.XMLParser(resolve_entities=False, recover=False))
    etree.XMLSchema(etree.parse(schema)).assertValid(document)
    suites = junitparser.JUnitXml.fromfile(path)
    seen = []
    for suite in suites:
        cases = list(suite)
        assert suite.tests == len(cases), suite.name
        assert suite.failures == sum(case.is_failure for case in cases), suite.name
        assert suite.skipped == sum(case.is_skipped for case in cases), suite.name
        names = [case.name for case in cases]
        assert len(names) == len(set(names)), names
        for case in cases:
            result = case.result[0] if case.result else None
            word = type(result).__name__ if result is not None else "Passed"
            seen.append([suite.name, case.name, word, (result.text or "") if result is not None else ""])
    assert suites.tests == len(seen)
    return seen


def against(path, schema):
    from jsonschema.validators import validator_for

    with open(schema, encoding="utf-8") as file:
        schema = json.load(file)
    kind = validator_for(schema)
    kind.check_schema(schema)
    assert "date-time" in kind.FORMAT_CHECKER.checkers, "rfc3339-validator is not installed"
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(report)
    return report


kind, path, schema = sys.argv[1:]
seen = junit(path, schema) if kind == "junit" else against(path, schema)
print(json.dumps(seen))
