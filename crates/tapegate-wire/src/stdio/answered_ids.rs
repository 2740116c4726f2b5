//! Finds the requests that a message answers.

use tapegate_core::frame::{Envelope, Frame, MessageKind, find_envelope};

/// The id of the request that a message answers.
pub(crate) fn answered_id<'a>(envelope: &Envelope<'a>) -> Option<&'a [u8]> {
    envelope.id.filter(|_| matches!(envelope.kind(), MessageKind::Response | MessageKind::Error))
}

/// Collects the ids that a frame answers. A batch within a batch answers nothing.
pub(crate) fn collect_answered_ids(frame: &Frame<'_>, ids: &mut Vec<Vec<u8>>) {
    find_envelope(frame, |envelope| {
        ids.extend(answered_id(envelope).map(<[u8]>::to_vec));
        None::<()>
    });
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
