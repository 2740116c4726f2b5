//! Tests of how the messages of a tape are paired and grouped.

mod long_entries;

use super::*;
use crate::frame::Frame;
use crate::signature::Signer;
use crate::tape::line::LineFault;
use crate::tape::outline::TapeFinding;
use crate::tape::reader::{LineProblem, TapeReader};

/// Lines of a tape, each with `c` or `s` for its side, its message, and more keys.
fn tape(lines: &[(&str, &str, &str)]) -> String {
    let mut out = String::new();
    for (n, (side, msg, more)) in lines.iter().enumerate() {
        let (seq, dir) = (n + 1, if *side == "c" { "c2s" } else { "s2c" });
        let line = match *side {
            "h" => header(),
            _ => format!(
                r#"{{"type":"message","seq":{seq},"ts":"2026-01-01T00:00:{seq:02}Z","dir":"{dir}","msg":{msg}{more}}}"#
            ),
        };
        out += &format!("{line}\n");
    }
    out
}

fn header() -> String {
    r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"u","thoughtjack_version":"0"}"#.to_owned()
}

fn index(text: &str) -> (Index, Vec<TapeOddity>) {
    let mut reader = TapeReader::new(text.as_bytes());
    let mut indexer = Indexer::new(Signer::default());
    while let Some(next) = reader.next() {
        indexer.push(&next.unwrap());
    }
    indexer.finish()
}

/// The numbers of each answered request and its answer.
fn pairs(index: &Index) -> Vec<(u32, u32)> {
    let entry_numbers = (0..index.len() as u32).map(|entry_number| index.entry(entry_number));
    let asked = entry_numbers.filter(|entry_number| {
        entry_number.kind == MessageKind::Request && entry_number.pair != NONE
    });
    asked.map(|entry_number| (entry_number.number, index.entry(entry_number.pair).number)).collect()
}

/// Each scene as the numbers of its messages.
fn scenes(index: &Index) -> Vec<Vec<u32>> {
    let begins = |entry: &IndexEntry| {
        entry.from == Side::Client
            && matches!(entry.kind, MessageKind::Request | MessageKind::Notification)
    };
    let anchors = (0..index.len() as u32).map(|entry| index.entry(entry)).filter(begins);
    anchors
        .map(|anchor| {
            let mut numbers = vec![anchor.number];
            let mut next = anchor.next;
            while next != NONE {
                numbers.push(index.entry(next).number);
                next = index.entry(next).next;
            }
            numbers
        })
        .collect()
}

fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","arguments":{{"id":{id}}}}}}}"#
    )
}

fn answer(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

#[test]
fn a_slot_says_where_its_text_stands_and_what_it_is() {
    let text = format!(
        "{}\n\n{}",
        header(),
        tape(&[("c", &call("1"), ""), ("s", &answer("1"), r#","by":"tapegate""#)])
    );
    let (index, oddities) = index(&text);
    assert_eq!((index.len(), index.request_count(), oddities), (2, 1, Vec::new()));
    assert_eq!(index.headers()[0].upstream, "u");
    let entry = index.entry(0);
    let body = &text.as_bytes()[entry.offset as usize..][..entry.length as usize];
    assert_eq!(body, call("1").as_bytes());
    assert_eq!((entry.number, entry.at_us, entry.session, entry.pair), (1, 0, 0, 1));
    assert_eq!(
        (entry.from, entry.kind, entry.ours, entry.spread),
        (Side::Client, MessageKind::Request, false, false)
    );
    let entry = index.entry(1);
    let body = &text.as_bytes()[entry.offset as usize..][..entry.length as usize];
    assert_eq!(body, answer("1").as_bytes());
    assert_eq!(
        (entry.from, entry.kind, entry.ours, entry.pair),
        (Side::Server, MessageKind::Response, true, 0)
    );
    assert_eq!((entry.at_us, entry.latency_us), (1_000_000, Some(1_000_000)));
}

#[test]
fn ec_rec_003_a_repeated_id_is_answered_oldest_first_and_asked_for_in_order() {
    let (index, _) = index(&tape(&[
        ("c", &call("1"), ""),
        ("c", &call("1"), ""),
        ("s", &answer("1"), ""),
        ("s", &answer("1"), ""),
        ("s", &answer("1"), ""),
        ("c", &call("1"), ""),
        ("s", &answer("1"), ""),
    ]));
    assert_eq!(pairs(&index), [(1, 3), (2, 4), (6, 7)]);
    assert_eq!(index.entry(4).pair, NONE);
    let first = index.first_with_hash(index.request(2).signature);
    assert_eq!(first, Some(0));
    assert_eq!(
        (index.next_with_hash(0), index.next_with_hash(1), index.next_with_hash(2)),
        (1, 2, NONE)
    );
}

#[test]
fn ec_rec_004_answers_out_of_order_find_their_requests() {
    let (index, _) = index(&tape(&[
        ("c", &call("1"), ""),
        ("c", &call("\"1\""), ""),
        ("c", &call("2"), ""),
        ("s", &answer("2"), ""),
        ("s", &answer("\"\\u0031\""), ""),
        ("s", r#"{"id":1,"error":{"code":1,"message":""}}"#, ""),
    ]));
    assert_eq!(pairs(&index), [(1, 6), (2, 5), (3, 4)]);
    assert_eq!(scenes(&index), [vec![1, 6], vec![2, 5], vec![3, 4]]);
}

#[test]
fn an_answer_belongs_to_the_request_it_names() {
    let (index, _) = index(&tape(&[
        ("c", &call("1"), ""),
        ("c", &call("1"), ""),
        ("c", &call("1"), ""),
        ("s", &answer("1"), r#","req":2"#),
        ("s", &answer("1"), r#","req":3"#),
        ("s", &answer("1"), r#","req":9"#),
        ("s", &answer("1"), r#","req":2"#),
        ("s", &answer("77"), r#","req":1"#),
        ("s", &answer("1"), ""),
    ]));
    assert_eq!(pairs(&index), [(1, 8), (2, 4), (3, 5)]);
}

#[test]
fn both_sides_ask_and_ids_of_sessions_and_sides_do_not_mix() {
    let request_number = r#"{"id":1,"method":"m"}"#;
    let (index, _) = index(&tape(&[
        ("c", request_number, ""),
        ("s", request_number, ""),
        ("c", request_number, r#","session":"s2""#),
        ("c", &answer("1"), ""),
        ("s", &answer("1"), r#","session":"s\u0032""#),
        ("s", &answer("1"), ""),
        ("c", &answer("1"), r#","session":"s2""#),
    ]));
    assert_eq!(pairs(&index), [(1, 6), (2, 4), (3, 5)]);
    assert_eq!(scenes(&index), [vec![1, 2, 4, 6], vec![3, 5]]);
    assert_eq!(index.sessions(), [0..1, 1..2]);
    assert_eq!(index.entry(6).pair, NONE);
}

#[test]
fn a_header_ends_what_was_open_and_begins_new_sessions() {
    let ping = r#"{"id":1,"method":"ping"}"#;
    let (index, _) = index(&tape(&[
        ("h", "", ""),
        ("c", ping, ""),
        ("h", "", ""),
        ("s", &answer("1"), ""),
        ("c", ping, ""),
        ("c", ping, r#","session":"b""#),
        ("s", &answer("1"), r#","req":2"#),
        ("s", &answer("1"), r#","req":5"#),
    ]));
    assert_eq!(pairs(&index), [(5, 8)]);
    assert_eq!(index.sessions(), [0..1, 1..2, 2..3]);
    let sessions: Vec<_> = (0..6).map(|entry| index.entry(entry).session).collect();
    assert_eq!(sessions, [0, 1, 1, 2, 1, 1]);
    assert_eq!(index.headers().len(), 2);
    // Time starts over too.
    assert_eq!((index.entry(1).at_us, index.entry(2).at_us), (0, 1_000_000));
}

#[test]
fn asks_stand_together_by_session_and_chains_follow_them() {
    let (index, _) = index(&tape(&[
        ("c", &call("1"), ""),
        ("c", &call("2"), r#","session":"b""#),
        ("c", &call("1"), r#","session":"b""#),
        ("c", &call("2"), ""),
        ("c", &call("1"), ""),
    ]));
    assert_eq!(index.sessions(), [0..3, 3..5]);
    let numbers: Vec<_> = (0..5)
        .map(|request_number| index.entry(index.request(request_number).entry_number).number)
        .collect();
    assert_eq!(numbers, [1, 4, 5, 2, 3]);
    let chain = |first: Option<u32>, next: &dyn Fn(u32) -> u32| {
        let mut request_numbers = vec![first.unwrap()];
        while let Some(&request_number) =
            request_numbers.last().filter(|request_number| next(**request_number) != NONE)
        {
            request_numbers.push(next(request_number));
        }
        request_numbers
    };
    let signature = index.request(4).signature;
    assert_eq!(
        chain(index.first_with_hash(signature), &|request_number| index
            .next_with_hash(request_number)),
        [0, 2, 4]
    );
    assert_eq!(
        chain(index.first_with_subject(signature), &|request_number| index
            .next_with_subject(request_number)),
        [0, 1, 2, 3, 4]
    );
    let unknown = Signature { hash: 7, like: 7 };
    assert_eq!((index.first_with_hash(unknown), index.first_with_subject(unknown)), (None, None));
    assert_eq!(
        (Index::default().first_with_hash(unknown), Index::default().first_with_subject(unknown)),
        (None, None)
    );
}

#[test]
fn many_asks_are_all_found() {
    let lines: Vec<_> = (0..5000).map(|n| call(&format!("{}", n % 3000))).collect();
    let lines: Vec<_> = lines.iter().map(|call| ("c", call.as_str(), "")).collect();
    let text = tape(&lines).replace("2026-01-01T00:00:", "2026-01-01T00:00:00.");
    let (index, _) = index(&text);
    for request_number in 0..5000 {
        let expected = if request_number < 3000 { request_number } else { request_number - 3000 };
        assert_eq!(index.first_with_hash(index.request(request_number).signature), Some(expected));
    }
}

#[test]
fn what_the_server_says_stands_in_the_scene_it_came_with() {
    let asking =
        r#"{"id":5,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t5"}}}"#;
    let other =
        r#"{"id":6,"method":"tools/call","params":{"name":"y","_meta":{"progressToken":6}}}"#;
    let progress = |token: &str| {
        format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    };
    let sampling =
        r#"{"id":"s1","method":"sampling/createMessage","params":{"_meta":{"progressToken":6}}}"#;
    let (index, _) = index(&tape(&[
        ("c", asking, ""),                                             // 1
        ("c", other, ""),                                              // 2
        ("s", &progress("\"t5\""), ""),                                // 3 of 1
        ("s", r#"{"method":"notifications/message"}"#, ""),            // 4 of 1, as the one before
        ("s", &progress("6"), ""),                                     // 5 of 2
        ("s", sampling, ""),                                           // 6 of 2
        ("s", &progress("\"t5\""), ""),                                // 7 of 1
        ("c", &answer("\"s1\""), ""),                                  // 8 of 2
        ("s", &progress("\"unknown\""), ""),                           // 9 of 2
        ("s", &answer("5"), ""),                                       // 10 of 1
        ("s", r#"{"method":"notifications/tools/list_changed"}"#, ""), // 11 of 1
        ("s", &answer("6"), ""),                                       // 12 of 2
        ("s", &progress("6"), ""),      // 13 of 2, the latest request
        ("s", &progress("\"t5\""), ""), // 14 of 2, as the one before
        ("c", r#"{"method":"notifications/initialized"}"#, ""), // 15
        ("s", r#"{"x":1}"#, ""),        // 16 of 15
        ("c", &answer("99"), ""),       // 17 nowhere
        ("c", r#"{"x":1}"#, ""),        // 18 nowhere
        ("s", r#"{"id":null,"error":{}}"#, ""), // 19 nowhere
        ("s", r#"{"method":"notifications/message"}"#, ""), // 20 of 15
    ]));
    assert_eq!(
        scenes(&index),
        [vec![1, 3, 4, 7, 10, 11], vec![2, 5, 6, 8, 9, 12, 13, 14], vec![15, 16, 20]]
    );
    assert_eq!(index.client_notifications(), [14]);
    assert_eq!(index.entry(7).pair, 5);
    assert!(index.entry(0).token && !index.entry(2).token && index.entry(5).token);
}

#[test]
fn nothing_hangs_on_a_ping() {
    let ping = |id: u32| format!(r#"{{"id":{id},"method":"ping"}}"#);
    let note = r#"{"method":"notifications/message"}"#;
    let (index, _) = index(&tape(&[
        ("c", &ping(1), ""),
        ("s", &answer("1"), ""),
        ("s", note, ""),
        ("c", &call("2"), ""),
        ("s", &answer("2"), ""),
        ("c", &ping(3), ""),
        ("s", note, ""),
        ("s", &answer("3"), ""),
        ("s", note, ""),
    ]));
    assert_eq!(scenes(&index), [vec![1], vec![4, 3, 5, 7, 9], vec![6]]);
    assert_eq!(pairs(&index), [(1, 2), (4, 5), (6, 8)]);
}

#[test]
fn what_comes_before_the_first_request_stands_in_its_scene() {
    let note = r#"{"method":"notifications/message"}"#;
    let (index, _) = index(&tape(&[
        ("s", note, ""),
        ("s", r#"{"id":1,"method":"roots/list"}"#, ""),
        ("s", note, r#","session":"b""#),
        ("c", &answer("1"), ""),
        ("s", r#"{"id":2,"method":"roots/list"}"#, ""),
        ("c", &call("1"), ""),
        ("c", &call("2"), ""),
        ("c", &answer("2"), ""),
        ("s", note, ""),
        ("s", &answer("1"), ""),
        ("s", &answer("2"), ""),
    ]));
    assert_eq!(scenes(&index), [vec![6, 1, 2, 4, 5, 8, 9, 10], vec![7, 11]]);
    assert_eq!(pairs(&index), [(2, 4), (5, 8), (6, 10), (7, 11)]);
}

#[test]
fn news_of_a_subscription_stands_with_what_it_is_news_of() {
    let listen = r#"{"id":"sub","method":"subscriptions/listen","params":{}}"#;
    let note = r#"{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}"#;
    let (index, _) = index(&tape(&[
        ("c", listen, ""),
        ("c", &call("1"), ""),
        ("s", note, ""),
        ("s", &answer("1"), ""),
        ("s", note, ""),
        ("s", &answer("\"sub\""), ""),
    ]));
    assert_eq!(scenes(&index), [vec![1, 6], vec![2, 3, 4, 5]]);
}

#[test]
fn a_request_that_was_taken_back_is_marked() {
    let cancel = |id: &str| {
        format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    };
    let (index, _) = index(&tape(&[
        ("c", &call("1"), ""),
        ("c", &call("2"), ""),
        ("s", &answer("1"), ""),
        ("c", &cancel("1"), ""),
        ("c", &cancel("\"2\""), ""),
        ("c", &call("3"), ""),
        ("s", &cancel("3"), ""),
        ("c", &cancel("2"), ""),
    ]));
    let cancelled: Vec<_> = (0..8).filter(|entry| index.entry(*entry).cancelled).collect();
    assert_eq!(cancelled, [1]);
}

#[test]
fn a_batch_of_an_overwatch_line_is_one_slot_an_element() {
    let batch = format!("[{}, 7,\r {} ]", call("1"), call("2"));
    let text = format!(
        "{{\"ts\":\"2026-01-01T00:00:00.000Z\",\"direction\":\"client_to_server\",\"parsed\":{batch}}}\n\
         {{\"ts\":\"2026-01-01T00:00:00.250Z\",\"direction\":\"server_to_client\",\"parsed\":{}}}\n\
         {{\"ts\":\"2026-01-01T00:00:00.250Z\",\"direction\":\"server_to_client\",\"raw\":\"x\",\"parse_error\":\"y\"}}\n\
         {{\"ts\":\"2026-01-01T00:00:00.250Z\",\"direction\":\"server_to_client\",\"parsed\":true}}\n",
        answer("2")
    );
    let (index, oddities) = index(&text);
    assert_eq!((index.len(), index.request_count()), (3, 2));
    let entry = index.entry(1);
    assert_eq!(
        &text.as_bytes()[entry.offset as usize..][..entry.length as usize],
        call("2").as_bytes()
    );
    assert_eq!((entry.pair, index.entry(2).number), (2, 2));
    assert_eq!(index.entry(2).latency_us, Some(250_000));
    assert_eq!(oddities[0].line, 4);
}

#[test]
fn latency_is_believed_where_it_is_finer_and_never_negative() {
    let line = |seq: u32, at: &str, side: &str, msg: &str, more: &str| {
        format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-01-01T00:00:{at}Z\",\"dir\":\"{side}\",\"msg\":{msg}{more}}}\n"
        )
    };
    let pair = |asked: &str, answered: &str, more: &str| {
        let text = line(1, "00", "c2s", "{}", "")
            + &line(2, asked, "c2s", &call("1"), "")
            + &line(3, answered, "s2c", &answer("1"), more);
        index(&text).0.entry(2).latency_us.unwrap()
    };
    assert_eq!(pair("01.000", "01.005600", ""), 5_600);
    assert_eq!(pair("01.000", "01.005600", r#","latency_ms":5"#), 5_600);
    assert_eq!(pair("01.000", "01.005600", r#","latency_ms":8"#), 8_000);
    assert_eq!(pair("01.000", "01.005600", r#","latency_ms":3"#), 3_000);
    assert_eq!(pair("02.000", "01.000", ""), 0);
    assert_eq!(pair("02.000", "01.000", r#","latency_ms":1"#), 1_000);
    assert_eq!(
        pair("01.000", "01.000", r#","latency_ms":18446744073709551615"#),
        u64::from(u32::MAX) * 1000
    );
    let (index, _) = index(&line(1, "01", "s2c", &answer("1"), r#","latency_ms":7"#));
    assert_eq!(index.entry(0).latency_us, Some(7_000));
}

#[test]
fn odd_times_and_numbers_are_coped_with_and_told_once() {
    let line = |seq: u64, ts: &str, msg: &str| {
        format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"{ts}\",\"dir\":\"c2s\",\"msg\":{msg},\"req\":{seq}}}\n"
        )
    };
    let (index, oddities) = index(
        &[
            line(u64::MAX, "yesterday", &call("1")),
            line(u64::MAX, "yesterday", &call("1")),
            line(3, "2026-01-01T00:00:00Z", &call("1")),
            line(0, "9999-12-31T23:59:59Z", &answer("1")),
            line(1, "0000-01-01T00:00:00Z", &answer("null")),
        ]
        .concat(),
    );
    let times: Vec<_> = (0..5).map(|entry| index.entry(entry).at_us).collect();
    assert_eq!(times, [0, 0, 0, ((1 << 40) - 1) * 16, 0]);
    assert_eq!(index.entry(0).number, u32::MAX);
    let words: Vec<_> =
        oddities.iter().map(|oddity| (oddity.line, oddity.message.as_str())).collect();
    assert_eq!(
        words,
        [(1, "numbers over 4294967295 are capped at it"), (1, "`ts` is not an RFC 3339 time")]
    );
}

#[test]
fn what_jq_spread_over_lines_is_marked() {
    let text = format!(
        "{}\n",
        tape(&[("c", &call("1"), "")]).trim().replace("\"arguments\"", "\n  \"arguments\"")
    );
    let (index, _) = index(&text);
    let entry = index.entry(0);
    let body = &text.as_bytes()[entry.offset as usize..][..entry.length as usize];
    assert!(entry.spread && Frame::read(body).envelope().is_some());
}

#[test]
fn very_many_requests_with_one_id_take_no_time() {
    let mut indexer = Indexer::new(Signer::default());
    let mut text = String::new();
    for n in 0..40_000 {
        let seq = n + 1;
        text += &format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"c2s\",\"msg\":{}}}\n",
            call("1")
        );
        text += r#"{"type":"message","seq":0,"ts":"2026-01-01T00:00:00Z","dir":"c2s","msg":{"method":"notifications/cancelled","params":{"requestId":1}}}"#;
        text.push('\n');
    }
    for n in (0..40_000).rev() {
        let req = n + 1;
        text += &format!(
            "{{\"type\":\"message\",\"seq\":0,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"s2c\",\"msg\":{},\"req\":{req}}}\n",
            answer("1")
        );
    }
    let mut reader = TapeReader::new(text.as_bytes());
    while let Some(next) = reader.next() {
        indexer.push(&next.unwrap());
    }
    let (index, _) = indexer.finish();
    let answered = (0..index.len() as u32).filter(|entry| index.entry(*entry).pair != NONE).count();
    assert_eq!(answered, 80_000);
}
