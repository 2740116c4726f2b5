//! Tests for routing by id and for renaming.

use tapegate_core::frame::Frame;
use tapegate_core::gate::Open;
use tapegate_core::relay::{Action, Event, Relay};
use tapegate_core::side::Side;
use tapegate_core::time::At;

use super::*;
use crate::http::terms::Terms;

/// A message permitted by a relay without a gate.
fn permitted(text: &[u8]) -> Permitted<'_> {
    let (lane, from, bytes, terminated) = (Lane::ONLY, Side::Client, text, true);
    let event = Event::Received { lane, from, bytes, terminated };
    let mut message = None;
    Relay::default().handle(At::default(), event, &mut Open, &mut |action| {
        if let Action::Forward { message: forwarded, .. } = action {
            message = Some(forwarded);
        }
    });
    message.expect("it is forwarded")
}

fn exchange(number: u64) -> Rc<Exchange> {
    let lane = Lane { session: 1, exchange: number };
    Rc::new(Exchange::new(number, lane, &Terms::read(&http::HeaderMap::new()), None, 1))
}

fn placed(book: &mut Book, text: &str) -> (Option<u64>, String) {
    let frame = Frame::read(text.as_bytes());
    let mut edits = Edits::new(text.as_bytes());
    let said = frame.envelope().expect("a message");
    let place = book.place(said, None, &mut edits);
    let number = place.lane().map(|lane| lane.exchange);
    (number, String::from_utf8_lossy(&edits.finish()).into_owned())
}

const LISTEN: &str =
    r#"{"id": 1, "method":"subscriptions/listen","params":{"_meta":{"progressToken": 1 }}}"#;

#[test]
fn only_names_in_use_change_and_every_one_changes_back() {
    let (mut book, one, two) = (Book::default(), exchange(1), exchange(2));
    assert_eq!(book.enter(&one, permitted(LISTEN.as_bytes())).bytes(), LISTEN.as_bytes());
    let renamed = String::from_utf8_lossy(book.enter(&two, permitted(LISTEN.as_bytes())).bytes())
        .into_owned();
    let expected = r#"{"id": "tapegate-1", "method":"subscriptions/listen","params":{"_meta":{"progressToken": "tapegate-2" }}}"#;
    assert_eq!(renamed, expected);

    let progress = |token: &str| {
        format!(r#"{{"method":"notifications/progress","params":{{"progressToken": {token}}}}}"#)
    };
    assert_eq!(placed(&mut book, &progress("1")), (Some(1), progress("1")));
    assert_eq!(placed(&mut book, &progress("\"tapegate-2\"")), (Some(2), progress("1")));
    let tagged = |id: &str| {
        let meta = format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#);
        (
            format!(r#"{{"method":"x","params":{meta}}}"#),
            format!(r#"{{"result":{meta},"id":{id}}}"#),
        )
    };
    let ((theirs, their_end), (ours, our_end)) = (tagged("1"), tagged("\"tapegate-1\""));
    assert_eq!(placed(&mut book, &ours), (Some(2), theirs));
    assert_eq!(placed(&mut book, &our_end), (Some(2), their_end.clone()));
    assert_eq!(placed(&mut book, &their_end), (Some(1), their_end.clone()));
    assert!(matches!(
        book.place(
            Frame::read(their_end.as_bytes()).envelope().expect("a message"),
            None,
            &mut Edits::new(b"")
        ),
        Place::Unasked
    ));
    assert!(book.exchanges().is_empty() && book.tokens.is_empty());
}

#[test]
fn a_cancellation_names_the_request_as_the_server_knows_it() {
    let (mut book, one, two) = (Book::default(), exchange(1), exchange(2));
    book.enter(&one, permitted(LISTEN.as_bytes()));
    book.enter(&two, permitted(LISTEN.as_bytes()));
    let cancel = br#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(book.cancel(one.lane, permitted(cancel)).bytes(), cancel);
    let renamed = br#"{"method":"notifications/cancelled","params":{"requestId":"tapegate-1"}}"#;
    assert_eq!(book.cancel(two.lane, permitted(cancel)).bytes(), renamed);
    assert!(one.cancelled.get() && two.cancelled.get());
}

#[test]
fn a_log_message_goes_to_the_only_one_who_can_be_meant() {
    let (mut book, one, two) = (Book::default(), exchange(1), exchange(2));
    let log = r#"{"method":"notifications/message","params":{}}"#;
    let call = br#"{"id":1,"method":"tools/call","params":{}}"#;
    book.enter(&one, permitted(LISTEN.as_bytes()));
    assert_eq!(placed(&mut book, log).0, None);
    book.enter(&two, permitted(call));
    assert_eq!(placed(&mut book, log).0, Some(2));
    let three = exchange(3);
    book.enter(&three, permitted(call));
    assert_eq!(placed(&mut book, log).0, None);
    three.gone.set(true);
    assert_eq!(placed(&mut book, log).0, Some(2));
}

#[test]
fn what_is_about_a_request_goes_to_who_has_made_it_as_long_as_it_waits() {
    let (mut book, one, two) = (Book::default(), exchange(1), exchange(2));
    let call = br#"{"id":1,"method":"tools/call","params":{}}"#;
    book.enter(&one, permitted(call));
    book.enter(&two, permitted(call));
    let log = Frame::read(br#"{"method":"notifications/message","params":{}}"#);
    let said = log.envelope().expect("a message");
    let place = |book: &mut Book, about: &[u8]| {
        book.place(said, Some(about), &mut Edits::new(b"")).lane().map(|lane| lane.exchange)
    };
    assert_eq!(place(&mut book, b"1"), Some(1));
    assert_eq!(place(&mut book, b"\"tapegate-1\""), Some(2));
    assert_eq!(place(&mut book, b"7"), None);
}

#[test]
fn an_id_that_servers_may_read_as_another_gets_a_name_of_its_own() {
    for id in ["1.0", "1e0", "-0", "10E-1", "9007199254740993", r#""\u0031""#] {
        let (mut book, one) = (Book::new(true), exchange(1));
        let text = format!(r#"{{"id":{id},"method":"tools/call"}}"#);
        let sent = book.enter(&one, permitted(text.as_bytes())).bytes().to_vec();
        assert_eq!(sent, br#"{"id":"tapegate-1","method":"tools/call"}"#, "{id}");
        let answered = placed(&mut book, r#"{"id":"tapegate-1","result":{}}"#);
        assert_eq!(answered, (Some(1), format!(r#"{{"id":{id},"result":{{}}}}"#)));
    }
    for id in ["1", "-1", "0", "999999999999999", r#""1""#, r#""é""#] {
        let (mut book, one) = (Book::default(), exchange(1));
        let text = format!(r#"{{"id":{id},"method":"tools/call"}}"#);
        assert_eq!(book.enter(&one, permitted(text.as_bytes())).bytes(), text.as_bytes(), "{id}");
    }
}
