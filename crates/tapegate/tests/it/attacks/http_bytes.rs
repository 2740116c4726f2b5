//! Requests framed or encoded so that a server could find another message in their bytes.

use std::io::Write;

use super::target_server::{ACCEPT, ALL, JSON, TargetKind, TargetServer, TargetTool};
use crate::shim::setup::events;

const EACH_WAY: [TargetKind; 4] =
    [TargetKind::Process, TargetKind::Express, TargetKind::ExpressSse, TargetKind::FastMcp];

fn encoded(text: &str, unit: impl Fn(char) -> Vec<u8>) -> Vec<u8> {
    text.chars().flat_map(unit).collect()
}

#[test]
fn a_body_in_another_encoding_is_refused_though_no_charset_is_named() {
    for kind in ALL {
        let victim = TargetServer::start(kind);
        let denied = victim.call(TargetTool::Denied);
        let two_le = encoded(&denied, |char| (char as u16).to_le_bytes().to_vec());
        let two_be = encoded(&denied, |char| (char as u16).to_be_bytes().to_vec());
        let four_le = encoded(&denied, |char| (char as u32).to_le_bytes().to_vec());
        let four_be = encoded(&denied, |char| (char as u32).to_be_bytes().to_vec());
        let bodies = [
            [&b"\xef\xbb\xbf"[..], denied.as_bytes()].concat(),
            [&b"\xff\xfe"[..], &two_le].concat(),
            [&b"\xfe\xff"[..], &two_be].concat(),
            [&b"\xff\xfe\0\0"[..], &four_le].concat(),
            [&b"\0\0\xfe\xff"[..], &four_be].concat(),
            two_le,
            two_be,
            four_le,
            four_be,
        ];
        for body in bodies {
            let before = victim.refusals().len();
            let got = victim.post(&[JSON, ACCEPT], &body);
            let after = victim.refusals();
            assert_eq!(after.len(), before + 1, "{kind:?} {got:?} {after:#?}");
        }
        victim.is_unharmed();
    }
}

#[test]
fn a_compressed_body_is_judged_or_refused() {
    for kind in EACH_WAY {
        let victim = TargetServer::start(kind);
        let denied = victim.call(TargetTool::Denied);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(denied.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        for coding in ["br", "zstd", "gzip, gzip", "compress", "deflate, gzip", "GZIP;q=1"] {
            let line = format!("content-encoding: {coding}");
            victim.is_refused(415, "Content-Encoding", |victim| {
                victim.post(&[JSON, ACCEPT, &line], &packed)
            });
        }
        for coding in ["gzip", "x-gzip", "Deflate"] {
            let line = format!("content-encoding: {coding}");
            let before = victim.refusals().len();
            victim.post(&[JSON, ACCEPT, &line], &packed);
            assert_eq!(victim.refusals().len(), before + 1, "{kind:?} {coding}");
        }
        victim.is_unharmed();
    }
}

#[test]
fn two_framings_of_one_request_do_not_smuggle_another() {
    for kind in EACH_WAY {
        let victim = TargetServer::start(kind);
        let denied = victim.call(TargetTool::Denied);
        let allowed = victim.call(TargetTool::Allowed);
        let path = &victim.path;
        let post = format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{JSON}\r\n{ACCEPT}\r\n");
        let inner = format!("{post}content-length: {}\r\n\r\n{denied}", denied.len());
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
        let (whole, chunked) = (allowed.len(), chunk(&allowed));
        for (lines, body) in [
            // CL.TE and TE.CL: by one reading, the rest is a separate request.
            (
                format!(
                    "content-length: {}\r\ntransfer-encoding: chunked\r\n",
                    chunked.len() + inner.len()
                ),
                format!("{chunked}{inner}"),
            ),
            (format!("transfer-encoding: chunked\r\ncontent-length: {whole}\r\n"), chunk(&inner)),
            (
                format!("content-length: {whole}\r\ncontent-length: {}\r\n", whole + inner.len()),
                format!("{allowed}{inner}"),
            ),
            (
                format!("content-length: {whole}, {}\r\n", whole + inner.len()),
                format!("{allowed}{inner}"),
            ),
            (format!("content-length: +{whole}\r\n"), allowed.clone()),
            ("transfer-encoding: xchunked\r\n".to_owned(), chunk(&denied)),
            ("transfer-encoding: chunked, identity\r\n".to_owned(), chunk(&denied)),
            ("transfer-encoding: gzip, chunked\r\n".to_owned(), chunk(&denied)),
            (
                format!("transfer-encoding:\x0bchunked\r\ncontent-length: {whole}\r\n"),
                chunk(&inner),
            ),
            (
                format!(
                    "transfer_encoding: chunked\r\ncontent-length: {}\r\n",
                    chunk(&denied).len()
                ),
                chunk(&denied),
            ),
            (
                format!(
                    "content-length: {}\r\nx-folded: a\r\n content-type: text/plain\r\n",
                    denied.len()
                ),
                denied.clone(),
            ),
            (format!("content-length : {}\r\n", denied.len()), denied.clone()),
        ] {
            victim.raw(&format!("{post}{lines}"), body.as_bytes());
            assert!(!victim.has_run(TargetTool::Denied), "{kind:?} {lines}");
        }
        victim.is_unharmed();
        assert!(!victim.refusals().is_empty());
    }
}

#[test]
fn however_a_request_is_framed_its_message_is_judged() {
    for kind in EACH_WAY {
        let victim = TargetServer::start(kind);
        let denied = victim.call(TargetTool::Denied);
        let (one, two) = denied.split_at(20);
        let chunks = format!(
            "{:x};name=value;\"x\"\r\n{one}\r\n{:X} ; a=b\r\n{two}\r\n0\r\ncontent-type: application/json; charset=utf-7\r\nmcp-session-id: x\r\n\r\n",
            one.len(),
            two.len()
        );
        let path = &victim.path;
        let head = |version: &str, lines: &str| {
            format!("POST {path} {version}\r\nhost: 127.0.0.1\r\n{JSON}\r\n{ACCEPT}\r\n{lines}")
        };
        let length = format!("content-length: {}\r\n", denied.len());
        for (head, body) in [
            (head("HTTP/1.1", "transfer-encoding: chunked\r\ntrailer: content-type\r\n"), &chunks),
            (head("HTTP/1.1", &format!("{length}expect: 100-continue\r\n")), &denied),
            (head("HTTP/1.0", &length), &denied),
            (head("HTTP/1.1", &length).replace("\r\n", "\n"), &denied),
            (
                head("HTTP/1.1", &format!("{length}upgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n")),
                &denied,
            ),
        ] {
            let before = victim.refusals().len();
            victim.raw(&head, body.as_bytes());
            assert_eq!(victim.refusals().len(), before + 1, "{kind:?} {head}");
        }
        victim.is_unharmed();
    }
}

#[test]
fn what_never_becomes_a_request_is_in_the_log_too() {
    for kind in [TargetKind::Process, TargetKind::Express] {
        let victim = TargetServer::start(kind);
        let body = victim.call(TargetTool::Denied);
        victim.is_refused(403, "evil.test", |victim| {
            victim.post(&[JSON, ACCEPT, "origin: http://evil.test"], body.as_bytes())
        });
        victim.raw("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nbad header: x\r\n", b"");
        victim.logs("malformed HTTP request");
        victim.is_unharmed();
    }
}

#[test]
fn a_batch_of_very_many_elements_costs_one_answer_and_one_line_in_the_log() {
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for kind in [TargetKind::Process, TargetKind::Express] {
        let victim = TargetServer::start(kind);
        for element in ["{}", "1", ask] {
            let count = events(victim.run().folder()).len();
            let batch = format!("[{}]", vec![element; 20_000].join(","));
            let got = victim.post(&[JSON, ACCEPT], batch.as_bytes());
            assert!(got.status == 400 || got.status == 200, "{kind:?} {element} {got:?}");
            assert!(got.body.len() < 1000, "{kind:?} {element} {got:?}");
            let events = events(victim.run().folder());
            assert_eq!(events.len(), count + 1, "{kind:?} {element}");
            assert_eq!(events[count]["forwarded"], false, "{kind:?} {element}");
        }
        victim.is_unharmed();
    }
}
