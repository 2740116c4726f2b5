//! Reads the response of an item: branches, sequences, handlers and plain answers.

use std::rc::Rc;

use super::body::{Body, made};
use super::{Fields, Reader};
use crate::model::{
    Answer, Branch, Exhausted, Handler, HandlerKind, Outcome, Reply, Response, Sequence,
};
use crate::node::{Node, Value};
use crate::shape::{Table, language};
use crate::when::When;

/// The tables for the answers of one kind of item.
pub(super) struct Tables {
    response: &'static Table,
    entry: &'static Table,
    branch: &'static Table,
    default: &'static Table,
}

pub(super) static TOOL: Tables = Tables {
    response: &language::TOOL_RESPONSE,
    entry: &language::TOOL_ANSWER,
    branch: &language::TOOL_BRANCH,
    default: &language::TOOL_DEFAULT,
};
pub(super) static RESOURCE: Tables = Tables {
    response: &language::RESOURCE_RESPONSE,
    entry: &language::RESOURCE_ANSWER,
    branch: &language::RESOURCE_BRANCH,
    default: &language::RESOURCE_DEFAULT,
};
pub(super) static PROMPT: Tables = Tables {
    response: &language::PROMPT_RESPONSE,
    entry: &language::PROMPT_ANSWER,
    branch: &language::PROMPT_BRANCH,
    default: &language::PROMPT_DEFAULT,
};
pub(super) static METHOD: Tables = Tables {
    response: &language::METHOD_RESPONSE,
    entry: &language::METHOD_ANSWER,
    branch: &language::METHOD_BRANCH,
    default: &language::METHOD_DEFAULT,
};

const MS_NS: u64 = 1_000_000;
const HANDLER_TIMEOUT_MS: u64 = 30_000;

impl Reader<'_> {
    /// Reads the response of an item.
    pub(super) fn response(&mut self, node: &Node, body: &Body, tables: &Tables) -> Response {
        let at = Fields::new(node, tables.response);
        let branches =
            self.within("match", |reader| reader.branches(at.list("match"), &at, body, tables));
        let answer = self.answer(&at, None, body, tables);
        let is_map = node.as_map().is_some();
        let otherwise = match answer {
            Some(answer) => answer,
            None if !branches.is_empty() || at.get("match").is_some() => Answer::Empty,
            None if matches!(body, Body::Resource { .. }) => self.nothing(body, node),
            None => {
                if is_map {
                    self.findings.error(node.spot, "this response has no answer");
                }
                Answer::Empty
            }
        };
        Response { branches, otherwise }
    }

    /// The default answer of a resource: an empty text.
    pub(super) fn nothing(&mut self, body: &Body, written: &Node) -> Answer {
        let part = Node { spot: written.spot, value: Value::Map(Vec::new()) };
        let contents = made(written.spot, "contents", Value::List(vec![part]));
        let node = Node { spot: written.spot, value: Value::Map(vec![contents]) };
        let at = Fields::new(&node, &language::RESOURCE_ANSWER);
        Answer::Reply(self.reply(&at, None, body))
    }

    fn branches(
        &mut self,
        list: &[Node],
        outer: &Fields<'_>,
        body: &Body,
        tables: &Tables,
    ) -> Vec<Branch> {
        let mut branches = Vec::new();
        let mut closed = false;
        for (index, node) in list.iter().enumerate().filter(|(_, node)| node.as_map().is_some()) {
            self.within_number(index, |reader| {
                if closed {
                    let words = "this branch is never reached, because the default comes before it";
                    reader.findings.warning(node.spot, words);
                }
                let branch = reader.branch(node, outer, body, tables);
                closed |= branch.when.is_none();
                branches.push(branch);
            });
        }
        branches
    }

    fn branch(&mut self, node: &Node, outer: &Fields<'_>, body: &Body, tables: &Tables) -> Branch {
        let at = Fields::new(node, tables.branch);
        let when = at.get("when");
        let default = at.get("default");
        let (when, answer) = match (when, default) {
            (Some(when), None) => {
                let when = self.within("when", |reader| When::read(when, reader.findings));
                (Some(when), self.answer(&at, Some(outer), body, tables))
            }
            (None, Some(Node { value: Value::Bool(true), .. })) => {
                (None, self.answer(&at, Some(outer), body, tables))
            }
            (None, Some(default)) => {
                let inner = Fields::new(default, tables.default);
                let answer = self
                    .within("default", |reader| reader.answer(&inner, Some(outer), body, tables));
                (None, answer)
            }
            _ => {
                let words = "a branch needs either `when` or `default`";
                self.findings.error(node.spot, words);
                (None, Some(Answer::Empty))
            }
        };
        if answer.is_none() {
            self.findings.error(node.spot, "this branch has no answer");
        }
        Branch { when, answer: answer.unwrap_or_default() }
    }

    /// Reads where an answer comes from; `None` if nothing is given.
    fn answer(
        &mut self,
        at: &Fields<'_>,
        outer: Option<&Fields<'_>>,
        body: &Body,
        tables: &Tables,
    ) -> Option<Answer> {
        let entries = at.node.as_map()?;
        let plain = entries.iter().any(|(key, _)| is_answer(at, body, &key.name));
        let (handler, sequence) = (at.get("handler"), at.get("sequence"));
        self.check_never_given(at, body);
        if let Some(handler) = handler {
            return Some(self.within("handler", |reader| reader.handler(handler)));
        }
        if let Some(sequence) = sequence {
            return Some(self.sequence(sequence, at, body, tables));
        }
        plain.then(|| Answer::Reply(self.reply(at, outer, body)))
    }

    /// Warns of unused answers: a handler overrides everything, a sequence overrides plain answers.
    fn check_never_given(&mut self, at: &Fields<'_>, body: &Body) {
        let by = ["handler", "sequence"].into_iter().find(|name| at.get(name).is_some());
        let Some(by) = by else { return };
        for (key, _) in at.node.as_map().unwrap_or_default() {
            let Some(entry) = at.table.entry(&key.name) else { continue };
            // These apply to all answers of a sequence.
            let is_shared = by == "sequence" && ["isError", "before"].contains(&entry.name);
            let is_hidden = by == "handler" && entry.name == "sequence";
            if is_hidden || is_answer(at, body, &key.name) && !is_shared {
                let words = format!("`{}` is never used, because `{by}` overrides it", key.name);
                self.findings.warning(key.spot, words);
            }
        }
    }

    fn sequence(&mut self, node: &Node, at: &Fields<'_>, body: &Body, tables: &Tables) -> Answer {
        let exhausted = match at.text("on_exhausted") {
            Some("cycle") => Exhausted::Cycle,
            Some("error") => Exhausted::Error,
            _ => Exhausted::Last,
        };
        let list = node.as_list().unwrap_or_default();
        if node.as_list().is_some_and(<[Node]>::is_empty) {
            self.within("sequence", |reader| {
                reader.findings.error(node.spot, "a sequence needs at least one answer");
            });
        }
        let mut replies = Vec::with_capacity(list.len());
        self.within("sequence", |reader| {
            for (index, node) in list.iter().enumerate() {
                // A list among the answers comes from a file with many of them.
                for node in node.as_list().unwrap_or(std::slice::from_ref(node)) {
                    let entry = Fields::new(node, tables.entry);
                    reader.within_number(index, |reader| {
                        replies.push(reader.reply(&entry, Some(at), body));
                    });
                }
            }
        });
        if replies.is_empty() {
            return Answer::Empty;
        }
        let number = self.sequences;
        self.sequences += 1;
        Answer::Sequence(Sequence { number, replies, exhausted })
    }

    /// Reads one answer. Settings of `outer` apply unless it has its own.
    fn reply(&mut self, at: &Fields<'_>, outer: Option<&Fields<'_>>, body: &Body) -> Reply {
        let own = at.get("before").map(|node| (node, at));
        let before = own.or_else(|| {
            // A sequence element inherits from the answer around it, a branch does not.
            outer.filter(|outer| outer.get("sequence").is_some())?.get("before").map(|n| (n, at))
        });
        let before = match before {
            Some((node, _)) => self.within("before", |reader| reader.actions(node)),
            None => Vec::new(),
        };
        let outcome = if at.flag("silent") == Some(true) {
            Outcome::Silence
        } else if let Some(error) = at.get("error") {
            Outcome::Error(self.within("error", |reader| reader.form(error)))
        } else if let Some(result) = at.get("result") {
            Outcome::Result(self.within("result", |reader| reader.form(result)))
        } else {
            let result = self.result(at, outer, body);
            Outcome::Result(self.form(&result))
        };
        Reply { before, outcome }
    }

    fn handler(&mut self, node: &Node) -> Answer {
        let at = Fields::new(node, &language::HANDLER);
        let timeout_ns = at.whole("timeout_ms").unwrap_or(HANDLER_TIMEOUT_MS).saturating_mul(MS_NS);
        let pairs = |name: &str| {
            let entries = at.get(name).and_then(Node::as_map).unwrap_or_default();
            let pair = |(key, node): &(crate::node::Key, Node)| {
                Some((key.name.clone(), node.as_text()?.to_owned()))
            };
            entries.iter().filter_map(pair).collect::<Vec<_>>()
        };
        let (kind, needed) = if at.text("type") == Some("command") {
            let argv = at.list("cmd").iter().filter_map(Node::as_text).map(str::to_owned).collect();
            let folder = at.text("working_dir").map(str::to_owned);
            (HandlerKind::Command { argv, env: pairs("env"), folder }, "cmd")
        } else {
            let url = at.text("url").unwrap_or_default().to_owned();
            (HandlerKind::Http { url, headers: pairs("headers") }, "url")
        };
        let given = at.get(needed).is_some_and(|node| node.as_list().is_none_or(|l| !l.is_empty()));
        if node.as_map().is_some() && at.get("type").is_some() && !given {
            self.findings.error(node.spot, format!("`{needed}` is missing"));
        }
        Answer::Handler(Rc::new(Handler { kind, timeout_ns }))
    }
}

/// Whether a key is part of an answer.
fn is_answer(at: &Fields<'_>, body: &Body, name: &str) -> bool {
    at.table.entry(name).is_some_and(|entry| {
        body.keys().contains(&entry.name)
            || ["error", "result", "silent", "before"].contains(&entry.name)
    })
}
