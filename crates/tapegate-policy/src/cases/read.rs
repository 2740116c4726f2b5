//! Converts a tree that was checked against the tables to cases. Errors that the tables have
//! reported are skipped.

use tapegate_core::time::read_rfc3339;
use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{CaseExpectation, CaseInput, CaseOutcome, TestCase, TestSuite};
use crate::decide::{GateName, PolicyPrincipal};
use crate::model::Profile;

#[derive(Clone)]
struct CaseDefaults {
    server: String,
    profile: Profile,
    principal: PolicyPrincipal,
    wall_us: Option<i64>,
}

/// Reads a file of cases.
pub(super) fn suite(node: &Node, findings: &mut Findings) -> Option<TestSuite> {
    let fields = MapFields::of(node);
    let config = fields.get("config").and_then(Node::as_text).map(str::to_owned);
    let default = CaseDefaults {
        server: "*".to_owned(),
        profile: Profile::Production,
        principal: PolicyPrincipal::default(),
        wall_us: None,
    };
    let defaults = default.overridden_by(&fields);
    let list = fields.get("cases")?.as_list()?;
    if list.is_empty() {
        findings.error(node.spot, "there are no cases");
    }
    let mut cases: Vec<TestCase> = Vec::new();
    for (index, node) in list.iter().enumerate() {
        let step = format!("cases[{index}]");
        let case = findings.with_step(&step, |findings| case(node, &defaults, findings));
        let Some(case) = case else { continue };
        let named = node.get("name").is_some();
        if let Some(twin) = cases.iter().find(|known| named && known.name == case.name) {
            let line = twin.spot.line;
            let message = format!("the name `{}` is already used on line {line}", case.name);
            findings.with_step(&step, |findings| findings.warning(case.spot, message));
        }
        cases.push(case);
    }
    Some(TestSuite { config, cases })
}

fn case(node: &Node, defaults: &CaseDefaults, findings: &mut Findings) -> Option<TestCase> {
    let fields = MapFields::of(node);
    let text = |name: &str| fields.get(name).and_then(Node::as_text).map(str::to_owned);
    let what = read_message(node, findings);
    let case_outcome = match text("expect").as_deref() {
        Some("forward") => CaseOutcome::Forward,
        Some("deny") => CaseOutcome::Deny,
        Some("approve") => CaseOutcome::Approve,
        // Reported by the tables.
        _ => return None,
    };
    if let (Some(_), Some(node), CaseOutcome::Forward | CaseOutcome::Deny) =
        (text("workflow"), fields.get("workflow"), case_outcome)
    {
        let message = "`workflow` applies only with `expect: approve`";
        findings.with_step("workflow", |findings| findings.error(node.spot, message));
    }
    let gate = text("gate").and_then(|word| gate(&word));
    let CaseDefaults { server, profile, principal, wall_us } =
        defaults.clone().overridden_by(&fields);
    let what = what?;
    let name = text("name").unwrap_or_else(|| default_name(&server, &what));
    let (rule, workflow, policy) = (text("rule"), text("workflow"), text("policy"));
    let expect = CaseExpectation { case_outcome, gate, rule, workflow, policy };
    Some(TestCase {
        name,
        spot: node.spot,
        server,
        input: what,
        principal,
        wall_us,
        profile,
        expect,
    })
}

/// The input of a case: one of `call`, `method` and `message`.
fn read_message(node: &Node, findings: &mut Findings) -> Option<CaseInput> {
    let fields = MapFields::of(node);
    let text = |name: &str| fields.get(name).and_then(Node::as_text).map(str::to_owned);
    let named: Vec<&str> = ["call", "method", "message"]
        .into_iter()
        .filter(|name| fields.get(name).is_some())
        .collect();
    match named[..] {
        [_] => {}
        [] => {
            let message_text =
                "the case calls nothing; write `call: TOOL`, or `method` with `uri` or `prompt`";
            findings.error(node.spot, message_text);
            return None;
        }
        [one, two, ..] => {
            let message = format!("give either `{one}` or `{two}`, not both");
            findings.error(node.spot, message);
            return None;
        }
    }
    let arguments = fields.get("arguments").map(Node::to_json);
    let (prompt, uri) = (text("prompt"), text("uri"));
    if let Some(message) = text("message") {
        for (name, there) in [
            ("arguments", arguments.is_some()),
            ("prompt", prompt.is_some()),
            ("uri", uri.is_some()),
        ] {
            if there {
                findings.error(node.spot, format!("`{name}` is already in `message`; remove it"));
            }
        }
        return Some(CaseInput::Message(message.into_bytes()));
    }
    if let Some(name) = text("call") {
        if prompt.is_some() || uri.is_some() {
            findings.error(node.spot, "`call` names a tool, which has no `prompt` or `uri`");
        }
        return Some(CaseInput::Call { method: "tools/call".to_owned(), name, arguments });
    }
    let name = match (prompt, uri) {
        (Some(_), Some(_)) => {
            findings.error(node.spot, "give either `prompt` or `uri`, not both");
            return None;
        }
        (prompt, uri) => prompt.or(uri).unwrap_or_default(),
    };
    Some(CaseInput::Call { method: text("method")?, name, arguments })
}

fn default_name(server: &str, input: &CaseInput) -> String {
    let on = if server == "*" { String::new() } else { format!("{server}: ") };
    match input {
        CaseInput::Call { method, name, .. } => {
            format!("{on}{method} {name}").trim_end().to_owned()
        }
        CaseInput::Message(text) => format!("{on}{}", String::from_utf8_lossy(text)),
    }
}

fn gate(word: &str) -> Option<GateName> {
    Some(match word {
        "framing" => GateName::Framing,
        "visibility" => GateName::Visibility,
        "rules" | "governance" => GateName::Governance,
        "cedar" | "policy" => GateName::Policy,
        "approval" => GateName::Approval,
        _ => return None,
    })
}

impl CaseDefaults {
    /// These defaults, overridden by `fields`.
    fn overridden_by(mut self, fields: &MapFields<'_>) -> Self {
        let text = |name: &str| fields.get(name).and_then(Node::as_text);
        if let Some(server) = text("server") {
            self.server = server.to_owned();
        }
        match text("profile") {
            Some("production") => self.profile = Profile::Production,
            Some("development") => self.profile = Profile::Development,
            _ => {}
        }
        if let Some(at) = text("at").and_then(read_rfc3339) {
            self.wall_us = Some(at);
        }
        if let Some(who) = fields.get("principal") {
            self.principal = principal(who);
        }
        self
    }
}

fn principal(node: &Node) -> PolicyPrincipal {
    if let Some(name) = node.as_text() {
        return PolicyPrincipal { name: name.to_owned(), ..PolicyPrincipal::default() };
    }
    let fields = MapFields::of(node);
    let text = |name: &str| fields.get(name).and_then(Node::as_text).map(str::to_owned);
    let roles = fields.get("roles").and_then(Node::as_list).unwrap_or_default();
    PolicyPrincipal {
        name: text("name").unwrap_or_default(),
        namespace: text("namespace").unwrap_or_default(),
        service_account: text("service_account").unwrap_or_default(),
        roles: roles.iter().filter_map(Node::as_text).map(str::to_owned).collect(),
        client: text("client"),
    }
}
