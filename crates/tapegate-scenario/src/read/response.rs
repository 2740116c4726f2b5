//! Reads the response of an item: branches, sequences, handlers and plain answers.

use std::rc::Rc;

use super::ScenarioReader;
use super::body::{ResultKind, new_member};
use crate::model::{
    AnswerSource, HandlerKind, HandlerType, ItemResponse, ReplyOutcome, ReplySequence,
    ResponseBranch, ResponseHandler, ScenarioReply,
};
use crate::node::{Node, NodeValue};
use crate::request_matcher::RequestMatcher;
use crate::shape::{TableFields, language};

const MS_NS: u64 = 1_000_000;
const HANDLER_TIMEOUT_MS: u64 = 30_000;

impl ScenarioReader<'_> {
    /// Reads the response of an item.
    pub(super) fn response(&mut self, node: &Node, body: &ResultKind) -> ItemResponse {
        let at = TableFields::new(node, body.tables().response);
        let branches =
            self.with_step("match", |reader| reader.branches(at.list("match"), &at, body));
        let answer = self.read_answer(&at, None, body);
        let is_map = node.as_map().is_some();
        let otherwise = match answer {
            Some(answer) => answer,
            None if !branches.is_empty() || at.get("match").is_some() => AnswerSource::Empty,
            None if matches!(body, ResultKind::Resource { .. }) => self.default_answer(body, node),
            None => {
                if is_map {
                    self.findings.error(node.spot, "this response has no answer");
                }
                AnswerSource::Empty
            }
        };
        ItemResponse { branches, otherwise }
    }

    /// The default answer of a resource: an empty text.
    pub(super) fn default_answer(&mut self, body: &ResultKind, written: &Node) -> AnswerSource {
        let part = Node { spot: written.spot, value: NodeValue::Map(Vec::new()) };
        let contents = new_member(written.spot, "contents", NodeValue::List(vec![part]));
        let node = Node { spot: written.spot, value: NodeValue::Map(vec![contents]) };
        let at = TableFields::new(&node, body.tables().answer);
        AnswerSource::Reply(self.reply(&at, None, body))
    }

    fn branches(
        &mut self,
        list: &[Node],
        outer: &TableFields<'_>,
        body: &ResultKind,
    ) -> Vec<ResponseBranch> {
        let mut closed = false;
        let branches = self.each(list, |reader, node| {
            node.as_map()?;
            if closed {
                let message = "this branch is never reached, because the default comes before it";
                reader.findings.warning(node.spot, message);
            }
            let branch = reader.branch(node, outer, body);
            closed |= branch.when.is_none();
            Some(branch)
        });
        branches.into_iter().flatten().collect()
    }

    fn branch(
        &mut self,
        node: &Node,
        outer: &TableFields<'_>,
        body: &ResultKind,
    ) -> ResponseBranch {
        let at = TableFields::new(node, body.tables().branch);
        let when = at.get("when");
        let default = at.get("default");
        let (when, answer) = match (when, default) {
            (Some(when), None) => {
                let when =
                    self.with_step("when", |reader| RequestMatcher::read(when, reader.findings));
                (Some(when), self.read_answer(&at, Some(outer), body))
            }
            (None, Some(Node { value: NodeValue::Bool(true), .. })) => {
                (None, self.read_answer(&at, Some(outer), body))
            }
            (None, Some(default)) => {
                let inner = TableFields::new(default, body.tables().default);
                let answer = self
                    .with_step("default", |reader| reader.read_answer(&inner, Some(outer), body));
                (None, answer)
            }
            _ => {
                let message = "a branch needs either `when` or `default`";
                self.findings.error(node.spot, message);
                (None, Some(AnswerSource::Empty))
            }
        };
        if answer.is_none() {
            self.findings.error(node.spot, "this branch has no answer");
        }
        ResponseBranch { when, answer: answer.unwrap_or_default() }
    }

    /// Reads where an answer comes from; `None` if nothing is given.
    fn read_answer(
        &mut self,
        at: &TableFields<'_>,
        outer: Option<&TableFields<'_>>,
        body: &ResultKind,
    ) -> Option<AnswerSource> {
        let entries = at.node.as_map()?;
        let plain = entries.iter().any(|(key, _)| body.has_answer_key(&key.name));
        let (handler, sequence) = (at.get("handler"), at.get("sequence"));
        self.check_never_given(at, body);
        if let Some(handler) = handler {
            return Some(self.with_step("handler", |reader| reader.handler(handler)));
        }
        if let Some(sequence) = sequence {
            return Some(self.sequence(sequence, at, body));
        }
        plain.then(|| AnswerSource::Reply(self.reply(at, outer, body)))
    }

    /// Warns of unused answers: a handler overrides everything, a sequence overrides plain answers.
    fn check_never_given(&mut self, at: &TableFields<'_>, body: &ResultKind) {
        let by = ["handler", "sequence"].into_iter().find(|name| at.get(name).is_some());
        let Some(by) = by else { return };
        for (key, _) in at.node.as_map().unwrap_or_default() {
            let Some(entry) = at.table.entry(&key.name) else { continue };
            // These apply to all answers of a sequence.
            let is_shared = by == "sequence" && ["isError", "before"].contains(&entry.name);
            let is_hidden = by == "handler" && entry.name == "sequence";
            if is_hidden || body.has_answer_key(&key.name) && !is_shared {
                let message = format!("`{}` is never used, because `{by}` overrides it", key.name);
                self.findings.warning(key.spot, message);
            }
        }
    }

    fn sequence(&mut self, node: &Node, at: &TableFields<'_>, body: &ResultKind) -> AnswerSource {
        let exhausted = at.choice("on_exhausted").unwrap_or_default();
        let list = node.as_list().unwrap_or_default();
        if node.as_list().is_some_and(<[Node]>::is_empty) {
            self.with_step("sequence", |reader| {
                reader.findings.error(node.spot, "a sequence needs at least one answer");
            });
        }
        let mut replies = Vec::with_capacity(list.len());
        self.with_step("sequence", |reader| {
            reader.each(list, |reader, node| {
                // A list among the answers comes from a file with many of them.
                for node in node.as_list().unwrap_or(std::slice::from_ref(node)) {
                    let entry = TableFields::new(node, body.tables().answer);
                    replies.push(reader.reply(&entry, Some(at), body));
                }
            })
        });
        if replies.is_empty() {
            return AnswerSource::Empty;
        }
        let number = self.sequences;
        self.sequences += 1;
        AnswerSource::Sequence(ReplySequence { number, replies, exhausted })
    }

    /// Reads one answer. Settings of `outer` apply unless it has its own.
    fn reply(
        &mut self,
        at: &TableFields<'_>,
        outer: Option<&TableFields<'_>>,
        body: &ResultKind,
    ) -> ScenarioReply {
        let own = at.get("before").map(|node| (node, at));
        let before = own.or_else(|| {
            // A sequence element inherits from the answer around it, a branch does not.
            outer.filter(|outer| outer.get("sequence").is_some())?.get("before").map(|n| (n, at))
        });
        let before = match before {
            Some((node, _)) => self.with_step("before", |reader| reader.actions(node)),
            None => Vec::new(),
        };
        let outcome = if at.flag("silent") == Some(true) {
            ReplyOutcome::Silence
        } else if let Some(error) = at.get("error") {
            ReplyOutcome::Error(self.with_step("error", |reader| reader.form(error)))
        } else if let Some(result) = at.get("result") {
            ReplyOutcome::Result(self.with_step("result", |reader| reader.form(result)))
        } else {
            let result = self.result(at, outer, body);
            ReplyOutcome::Result(self.form(&result))
        };
        ScenarioReply { before, outcome }
    }

    fn handler(&mut self, node: &Node) -> AnswerSource {
        let at = TableFields::new(node, &language::HANDLER);
        let timeout_ns =
            at.whole_number("timeout_ms").unwrap_or(HANDLER_TIMEOUT_MS).saturating_mul(MS_NS);
        let pairs = |name: &str| {
            let entries = at.get(name).and_then(Node::as_map).unwrap_or_default();
            let pair = |(key, node): &(crate::node::NodeKey, Node)| {
                Some((key.name.clone(), node.as_text()?.to_owned()))
            };
            entries.iter().filter_map(pair).collect::<Vec<_>>()
        };
        let (kind, needed) = if at.choice("type") == Some(HandlerType::Command) {
            let argv = at.texts("cmd");
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
        AnswerSource::Handler(Rc::new(ResponseHandler { kind, timeout_ns }))
    }
}
