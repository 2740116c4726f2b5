//! Finds the requests that a message answers.

use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, elements};

/// Collects the ids that a frame answers. A batch within a batch answers nothing.
pub(crate) fn collect_answered_ids(frame: &Frame<'_>, ids: &mut Vec<Vec<u8>>) {
    let mut gather = |frame: &Frame<'_>| {
        let answers = |envelope: &&Envelope<'_>| {
            matches!(envelope.kind(), MessageKind::Response | MessageKind::Error)
        };
        let id = frame.envelope().filter(answers).and_then(|envelope| envelope.id);
        ids.extend(id.map(<[u8]>::to_vec));
    };
    match frame.body() {
        FrameBody::Batch => elements(frame.bytes()).iter().for_each(gather),
        _ => gather(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_that_a_batch_answers_are_gathered_however_deep_it_is() {
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        let text = format!(r#"[{{"id":1,"result":{{}}}},{}]"#, String::from_utf8_lossy(&deep));
        let mut ids = Vec::new();
        collect_answered_ids(&Frame::read(text.as_bytes()), &mut ids);
        assert_eq!(ids, [b"1"]);
    }
}
