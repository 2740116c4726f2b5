//! Batches: several messages on one line, answered together on one line.

use tapegate_core::frame::{self, MessageKind};

use super::engine_turn::{CODE_INVALID, EngineTurn};

/// The only revision that has batches.
const BATCHES: &str = "2025-03-26";

/// The answers to a batch, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct EngineBatch {
    /// How many answers are still missing.
    missing: usize,
    answers: Vec<u8>,
}

impl EngineTurn<'_, '_> {
    /// Handles a batch from the client.
    pub(super) fn handle_batch(&mut self, line: &[u8]) {
        if self.engine_session.version.as_deref() != Some(BATCHES) {
            return self.refuse_batch(line);
        }
        let parts = frame::elements(line);
        if parts.is_empty() {
            return self.refuse(b"null", CODE_INVALID, "an empty batch", None);
        }
        self.engine_session.batch_count = self.engine_session.batch_count.wrapping_add(1);
        let number = self.engine_session.batch_count;
        // Counts as one missing answer until all parts are read, so that the batch cannot end
        // early.
        self.engine_session.batches.insert(number, EngineBatch { missing: 1, answers: Vec::new() });
        for part in &parts {
            match part.envelope() {
                Some(envelope) => self.message(part.text(), envelope, Some(number)),
                None => {
                    self.expect_answer(Some(number));
                    self.refuse(
                        b"null",
                        CODE_INVALID,
                        "batch element is not an object",
                        Some(number),
                    );
                }
            }
        }
        self.add_to_batch(number, &[]);
    }

    /// Refuses each request by its id, so that the client does not wait for an answer. The errors
    /// are sent one by one, because the client's revision has no batches.
    fn refuse_batch(&mut self, line: &[u8]) {
        const WORDS: &str = "this protocol version does not support batches";
        let parts = frame::elements(line);
        let envelope = parts.iter().filter_map(|part| part.envelope());
        let mut requests =
            envelope.filter(|envelope| envelope.kind() == MessageKind::Request).peekable();
        if requests.peek().is_none() {
            self.refuse(b"null", CODE_INVALID, WORDS, None);
        }
        for request in requests {
            self.refuse(request.id.unwrap_or(b"null"), CODE_INVALID, WORDS, None);
        }
    }

    /// Notes that a batch waits for one more answer.
    pub(super) fn expect_answer(&mut self, batch: Option<u32>) {
        if let Some(batch) = batch.and_then(|batch| self.engine_session.batches.get_mut(&batch)) {
            batch.missing += 1;
        }
    }

    /// Adds an answer to a batch (empty for none) and sends the batch if it was the last.
    pub(super) fn add_to_batch(&mut self, number: u32, parts: &[&[u8]]) {
        let Some(batch) = self.engine_session.batches.get_mut(&number) else { return };
        batch.missing = batch.missing.saturating_sub(1);
        if !parts.is_empty() {
            batch.answers.push(if batch.answers.is_empty() { b'[' } else { b',' });
            parts.iter().for_each(|part| batch.answers.extend_from_slice(part));
        }
        if batch.missing > 0 {
            return;
        }
        let Some(batch) = self.engine_session.batches.remove(&number) else { return };
        if !batch.answers.is_empty() {
            self.engine_session.delivery.send_unrelated(&[&batch.answers, b"]"], self.act);
        }
    }
}
