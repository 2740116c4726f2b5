//! Restricts an index to one session.

use super::Index;
use super::indexer::chain;

impl Index {
    /// Keeps only the requests of one session, counted from 0. The other sessions keep their numbers
    /// but have no requests any more.
    pub fn retain_session(&mut self, session: usize) {
        let Some(kept) = self.sessions.get(session).cloned() else { return };
        self.requests.truncate(kept.end as usize);
        self.requests.drain(..kept.start as usize);
        let count = kept.end - kept.start;
        for (number, request_numbers) in self.sessions.iter_mut().enumerate() {
            *request_numbers = match number.cmp(&session) {
                std::cmp::Ordering::Less => 0..0,
                std::cmp::Ordering::Equal => 0..count,
                std::cmp::Ordering::Greater => count..count,
            };
        }
        (self.same, self.like) = chain(&mut self.requests);
    }

    /// The last session in which a client made a request, counted from 0.
    pub fn last_session(&self) -> usize {
        self.sessions.iter().rposition(|request_numbers| !request_numbers.is_empty()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Indexer;
    use crate::signature::Signer;
    use crate::tape::TapeReader;

    fn index(messages: &[(&str, &str)]) -> super::Index {
        let ts = "2026-01-01T00:00:00Z";
        let line = |(seq, (dir, msg)): (usize, &(&str, &str))| {
            format!(
                "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"{ts}\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
            )
        };
        let text: String = messages.iter().enumerate().map(line).collect();
        let mut indexer = Indexer::new(Signer::default());
        let mut reader = TapeReader::new(text.as_bytes());
        while let Some(line) = reader.next() {
            indexer.push(&line.unwrap());
        }
        indexer.finish().0
    }

    const HELLO: (&str, &str) = ("c2s", r#"{"id":0,"method":"initialize"}"#);
    const WELCOME: (&str, &str) = ("s2c", r#"{"id":0,"result":{}}"#);
    const REFUSED: (&str, &str) = ("s2c", r#"{"id":0,"error":{"code":1}}"#);
    const ASK: (&str, &str) = ("c2s", r#"{"id":1,"method":"tools/list"}"#);
    const ANSWER: (&str, &str) = ("s2c", r#"{"id":1,"result":{}}"#);

    #[test]
    fn another_introduction_begins_a_session_unless_the_first_was_refused() {
        let two = index(&[HELLO, WELCOME, ASK, HELLO, WELCOME, ASK, ANSWER]);
        assert_eq!(two.sessions(), [0..2, 2..4]);
        // The request that the first session left open is not answered by the second.
        assert_eq!((two.entry(2).pair, two.entry(5).pair), (super::super::NONE, 6));
        let one = index(&[HELLO, REFUSED, HELLO, WELCOME, ASK, ANSWER]);
        assert_eq!((one.sessions().len(), &one.sessions()[0]), (1, &(0..3)));
    }

    #[test]
    fn one_session_is_kept_with_its_chains() {
        let messages = [HELLO, WELCOME, ASK, ANSWER, HELLO, WELCOME, ASK, ANSWER, ASK, ANSWER];
        let mut kept = index(&messages);
        assert_eq!(kept.last_session(), 1);
        let signature = kept.request(1).signature;
        kept.retain_session(1);
        assert_eq!((kept.sessions(), kept.request_count()), (&[0..0, 0..3][..], 3));
        let first = kept.first_with_hash(signature).unwrap();
        assert_eq!((first, kept.next_with_hash(first)), (1, 2));
        let mut kept = index(&messages);
        kept.retain_session(0);
        assert_eq!(kept.sessions(), [0..2, 2..2]);
        assert_eq!(
            kept.next_with_hash(kept.first_with_hash(signature).unwrap()),
            super::super::NONE
        );
    }
}
