//! Restricts an index to one session.

use super::Index;
use super::build::chain;

impl Index {
    /// Keeps only the requests of one session, counted from 0. The other sessions keep their numbers
    /// but have no requests any more.
    pub fn keep_session(&mut self, session: usize) {
        let Some(kept) = self.sessions.get(session).cloned() else { return };
        self.asks.truncate(kept.end as usize);
        self.asks.drain(..kept.start as usize);
        let count = kept.end - kept.start;
        for (number, asks) in self.sessions.iter_mut().enumerate() {
            *asks = match number.cmp(&session) {
                std::cmp::Ordering::Less => 0..0,
                std::cmp::Ordering::Equal => 0..count,
                std::cmp::Ordering::Greater => count..count,
            };
        }
        (self.same, self.like) = chain(&mut self.asks);
    }

    /// The last session in which a client made a request, counted from 0.
    pub fn last_session(&self) -> usize {
        self.sessions.iter().rposition(|asks| !asks.is_empty()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Indexer;
    use crate::signature::Signer;
    use crate::tape::Reader;

    fn index(messages: &[(&str, &str)]) -> super::Index {
        let ts = "2026-01-01T00:00:00Z";
        let line = |(seq, (dir, msg)): (usize, &(&str, &str))| {
            format!(
                "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"{ts}\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
            )
        };
        let text: String = messages.iter().enumerate().map(line).collect();
        let mut indexer = Indexer::new(Signer::default());
        let mut reader = Reader::new(text.as_bytes());
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
        assert_eq!((two.slot(2).pair, two.slot(5).pair), (super::super::NONE, 6));
        let one = index(&[HELLO, REFUSED, HELLO, WELCOME, ASK, ANSWER]);
        assert_eq!((one.sessions().len(), &one.sessions()[0]), (1, &(0..3)));
    }

    #[test]
    fn one_session_is_kept_with_its_chains() {
        let messages = [HELLO, WELCOME, ASK, ANSWER, HELLO, WELCOME, ASK, ANSWER, ASK, ANSWER];
        let mut kept = index(&messages);
        assert_eq!(kept.last_session(), 1);
        let signature = kept.ask(1).signature;
        kept.keep_session(1);
        assert_eq!((kept.sessions(), kept.asks()), (&[0..0, 0..3][..], 3));
        let first = kept.first_same(signature).unwrap();
        assert_eq!((first, kept.next_same(first)), (1, 2));
        let mut kept = index(&messages);
        kept.keep_session(0);
        assert_eq!(kept.sessions(), [0..2, 2..2]);
        assert_eq!(kept.next_same(kept.first_same(signature).unwrap()), super::super::NONE);
    }
}
