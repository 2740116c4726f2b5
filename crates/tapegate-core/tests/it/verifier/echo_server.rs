//! For any tape, a server that repeats it causes no findings.

use proptest::prelude::*;
use proptest::sample::select;
use tapegate_core::verifier::CallSelection;

use super::finding_text::shown;
use super::harness::VerifyHarness;

/// A step of a generated tape. Numbers are taken modulo the number of choices.
#[derive(Debug, Clone)]
enum EchoStep {
    Ask { id: usize, method: usize, variant: usize, token: Option<usize> },
    Notify { method: usize },
    Cancel { which: usize },
    Answer { which: usize, value: usize },
    Stray { id: usize },
    Progress { which: usize, value: usize },
    Say { method: usize, value: usize },
    Tell { which: usize, value: usize },
    Question { id: usize, method: usize, value: usize },
    Reply { which: usize },
}

const IDS: &[&str] = &["1", "2", "\"1\"", "\"a\\u0062\"", "null", "1.5"];
const REQUESTS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "tools/call",
    "resources/read",
    "subscriptions/listen",
    "tasks/get",
    "logging/setLevel",
    "x/y",
];
const NOTIFICATIONS: &[&str] =
    &["notifications/initialized", "notifications/roots/list_changed", "x/z"];
const PARAMS: &[&str] = &[
    r#"{"name":"a"}"#,
    r#"{"name":"b","arguments":{"n":1.0}}"#,
    r#"{"cursor":"c1"}"#,
    r#"{"cursor":"c2"}"#,
    r#"{"requestState":"s1"}"#,
    r#"{"taskId":"t1"}"#,
    "{}",
    "[]",
    r#"{"uri":"\u00e9"}"#,
];
const ANSWERS: &[&str] = &[
    r#""result":{}"#,
    r#""result":{"tools":[{"name":"a","annotations":{"readOnlyHint":true}},{"name":"b"},{"name":"b"},7]}"#,
    r#""result":{"tools":[{"name":"c"}],"nextCursor":"c1","ttlMs":1}"#,
    r#""result":{"prompts":[],"nextCursor":"c2"}"#,
    r#""result":{"resources":"none","nextCursor":"c1"}"#,
    r#""result":{"requestState":"s1","resultType":"input_required"}"#,
    r#""result":{"task":{"taskId":"t1","status":"working"}}"#,
    r#""result":{"taskId":"t1","status":"completed","createdAt":"x"}"#,
    r#""result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#,
    r#""result":{"serverInfo":{"version":"1"}}"#,
    r#""result":null"#,
    r#""error":{"code":-32601,"message":"no"}"#,
    r#""error":7,"result":1"#,
];
const SAID: &[&str] =
    &["notifications/message", "notifications/tools/list_changed", "notifications/progress", "m"];
const VALUES: &[&str] = &[
    "{}",
    r#"{"data":1}"#,
    r#"{"data":2}"#,
    r#"{"progressToken":9}"#,
    "null",
    r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#,
];
const QUESTIONS: &[&str] = &["ping", "roots/list", "sampling/createMessage", "tasks/get"];

fn step() -> impl Strategy<Value = EchoStep> {
    let any = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 16));
    prop_oneof![
        8 => (any(), any(), any(), prop::option::of(0usize..3))
            .prop_map(|(id, method, variant, token)| EchoStep::Ask { id, method, variant, token }),
        2 => any().prop_map(|method| EchoStep::Notify { method }),
        1 => any().prop_map(|which| EchoStep::Cancel { which }),
        8 => (any(), any()).prop_map(|(which, value)| EchoStep::Answer { which, value }),
        1 => any().prop_map(|id| EchoStep::Stray { id }),
        3 => (any(), any()).prop_map(|(which, value)| EchoStep::Progress { which, value }),
        3 => (any(), any()).prop_map(|(method, value)| EchoStep::Say { method, value }),
        2 => (any(), any()).prop_map(|(which, value)| EchoStep::Tell { which, value }),
        2 => (any(), any(), any()).prop_map(|(id, method, value)| EchoStep::Question { id, method, value }),
        2 => any().prop_map(|which| EchoStep::Reply { which }),
    ]
}

fn pick(from: &[&'static str], at: usize) -> &'static str {
    from[at % from.len()]
}

/// Builds a tape from steps, with answers only to requests that were made.
#[derive(Default)]
struct EchoTapeBuilder {
    asked: Vec<&'static str>,
    tokens: Vec<usize>,
    subscriptions: Vec<&'static str>,
    questions: Vec<&'static str>,
}

impl EchoTapeBuilder {
    /// The line for the step with number `n`, if there is one.
    fn line(&mut self, n: usize, step: &EchoStep) -> Option<String> {
        Some(match step {
            EchoStep::Ask { id, method, variant, token } => {
                self.ask(n, *id, *method, *variant, *token)
            }
            EchoStep::Notify { method } => {
                let method = pick(NOTIFICATIONS, *method);
                format!(r#"> {{"method":"{method}","params":{{"n":{n}}}}}"#)
            }
            EchoStep::Cancel { which } => {
                let id = some(&self.asked, *which)?;
                format!(r#"> {{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
            }
            EchoStep::Answer { which, value } => {
                let id = some(&self.asked, *which)?;
                self.asked.remove(which % self.asked.len());
                format!(r#"< {{"jsonrpc":"2.0","id":{id},{}}}"#, pick(ANSWERS, *value))
            }
            EchoStep::Stray { id } => format!(r#"< {{"id":"stray-{}","result":{{}}}}"#, id % 3),
            EchoStep::Progress { which, value } => {
                let (token, value) = (some(&self.tokens, *which)?, value % 3);
                let params = format!(r#"{{"progressToken":{token},"progress":{value}}}"#);
                format!(r#"< {{"method":"notifications/progress","params":{params}}}"#)
            }
            EchoStep::Say { method, value } => {
                let (method, params) = (pick(SAID, *method), pick(VALUES, *value));
                format!(r#"< {{"method":"{method}","params":{params}}}"#)
            }
            EchoStep::Tell { which, value } => {
                let (id, value) = (some(&self.subscriptions, *which)?, value % 3);
                let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
                format!(r#"< {{"method":"n","params":{{"v":{value},"_meta":{meta}}}}}"#)
            }
            EchoStep::Question { id, method, value } => {
                let (id, method) = (pick(IDS, *id), pick(QUESTIONS, *method));
                self.questions.push(id);
                format!(r#"< {{"id":{id},"method":"{method}","params":{}}}"#, pick(VALUES, *value))
            }
            EchoStep::Reply { which } => {
                let id = some(&self.questions, *which)?;
                self.questions.remove(which % self.questions.len());
                format!(r#"> {{"id":{id},"result":{{"n":{n}}}}}"#)
            }
        })
    }

    fn ask(
        &mut self,
        n: usize,
        id: usize,
        method: usize,
        variant: usize,
        token: Option<usize>,
    ) -> String {
        let (id, method) = (pick(IDS, id), pick(REQUESTS, method));
        if method == "initialize" {
            // Another session begins; it answers no request of an earlier one.
            *self = Self::default();
        }
        // Make each request different from every other.
        let mut params = pick(PARAMS, variant).to_owned();
        let meta = token.map_or(String::new(), |token| format!(r#","progressToken":{token}"#));
        if params.starts_with('{') {
            let comma = if params.len() > 2 { "," } else { "" };
            params.truncate(params.len() - 1);
            params += &format!(r#"{comma}"_meta":{{"n":{n}{meta}}}}}"#);
            self.tokens.extend(token);
        }
        self.asked.push(id);
        self.subscriptions.extend((method == "subscriptions/listen").then_some(id));
        format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }
}

fn some<T: Copy>(from: &[T], at: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[at % from.len()])
}

fn tape(steps: &[EchoStep]) -> String {
    let mut maker = EchoTapeBuilder::default();
    let lines = steps.iter().enumerate().filter_map(|(n, step)| maker.line(n, step));
    lines.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_tape_against_its_echo_gives_nothing_to_report(
        steps in prop::collection::vec(step(), 0..40),
        calls in select(vec![CallSelection::List, CallSelection::ReadOnly, CallSelection::All]),
        shape_only in any::<bool>(),
    ) {
        let tape = tape(&steps);
        let drill = VerifyHarness::new(&tape).calls(calls);
        let drill = if shape_only { drill.shape_only() } else { drill };
        let done = drill.echo();
        prop_assert_eq!(shown(&done), "", "{:?}\n{}\nsent:\n{}", calls, tape, done.sent.join("\n"));
    }
}
