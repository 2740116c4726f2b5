//! The built-in scenarios, as a flat list.

/// The name and text of each scenario.
static SCENARIOS: &[(&str, &str)] = &[
    ("adaptive-injection", include_str!("../../../../../scenarios/adaptive-injection.yaml")),
    (
        "ansi-terminal-injection",
        include_str!("../../../../../scenarios/ansi-terminal-injection.yaml"),
    ),
    ("argument-exfiltration", include_str!("../../../../../scenarios/argument-exfiltration.yaml")),
    ("bait-and-switch", include_str!("../../../../../scenarios/bait-and-switch.yaml")),
    ("batch-amplification", include_str!("../../../../../scenarios/batch-amplification.yaml")),
    ("capability-confusion", include_str!("../../../../../scenarios/capability-confusion.yaml")),
    ("context-persistence", include_str!("../../../../../scenarios/context-persistence.yaml")),
    ("credential-harvester", include_str!("../../../../../scenarios/credential-harvester.yaml")),
    ("cross-server-pivot", include_str!("../../../../../scenarios/cross-server-pivot.yaml")),
    ("elicitation-phishing", include_str!("../../../../../scenarios/elicitation-phishing.yaml")),
    (
        "error-message-injection",
        include_str!("../../../../../scenarios/error-message-injection.yaml"),
    ),
    ("escalation-ladder", include_str!("../../../../../scenarios/escalation-ladder.yaml")),
    ("everything", include_str!("../../../../../scenarios/everything.yaml")),
    ("id-collision", include_str!("../../../../../scenarios/id-collision.yaml")),
    ("markdown-beacon", include_str!("../../../../../scenarios/markdown-beacon.yaml")),
    ("multi-vector-attack", include_str!("../../../../../scenarios/multi-vector-attack.yaml")),
    ("nested-json-dos", include_str!("../../../../../scenarios/nested-json-dos.yaml")),
    ("notification-flood", include_str!("../../../../../scenarios/notification-flood.yaml")),
    ("pipe-deadlock", include_str!("../../../../../scenarios/pipe-deadlock.yaml")),
    ("prompt-injection", include_str!("../../../../../scenarios/prompt-injection.yaml")),
    (
        "prompt-template-injection",
        include_str!("../../../../../scenarios/prompt-template-injection.yaml"),
    ),
    ("resource-exfiltration", include_str!("../../../../../scenarios/resource-exfiltration.yaml")),
    ("resource-rug-pull", include_str!("../../../../../scenarios/resource-rug-pull.yaml")),
    ("rug-pull", include_str!("../../../../../scenarios/rug-pull.yaml")),
    ("sampling-injection", include_str!("../../../../../scenarios/sampling-injection.yaml")),
    ("schema-poisoning", include_str!("../../../../../scenarios/schema-poisoning.yaml")),
    ("sleeper-agent", include_str!("../../../../../scenarios/sleeper-agent.yaml")),
    ("slow-loris", include_str!("../../../../../scenarios/slow-loris.yaml")),
    ("token-flush", include_str!("../../../../../scenarios/token-flush.yaml")),
    ("tool-flooding", include_str!("../../../../../scenarios/tool-flooding.yaml")),
    ("tool-shadowing", include_str!("../../../../../scenarios/tool-shadowing.yaml")),
    ("unicode-obfuscation", include_str!("../../../../../scenarios/unicode-obfuscation.yaml")),
    ("zombie-process", include_str!("../../../../../scenarios/zombie-process.yaml")),
];

/// The names of all scenarios, in order.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The text of the scenario with this name.
pub(super) fn text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The file name of a scenario.
pub(super) fn file(name: &str) -> String {
    format!("scenarios/{name}.yaml")
}
