//! Tapes that load, with or without findings, and tapes that do not.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tapegate_core::tape::TapeSeverity;
use tapegate_core::tape::index::BodySource;

use super::*;

const HEADER: &str = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"u","thoughtjack_version":"0"}"#;
const CALL: &str = r#"{"type":"message","seq":1,"ts":"2026-01-01T00:00:01Z","dir":"c2s","msg":{"id":1,"method":"ping"}}"#;
const ANSWER: &str = r#"{"type":"message","seq":2,"ts":"2026-01-01T00:00:02Z","dir":"s2c","msg":{"id":1,"result":{}}}"#;
const FOOTER: &str = r#"{"type":"footer","total_messages":2,"duration_ms":5,"client_messages":1,"server_messages":1}"#;

fn load(bytes: &[u8]) -> Result<LoadedTape, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let loaded = LoadedTape::open(file.path(), Signer::default(), Box::new(|_, _| ()));
    loaded.map_err(|error| error.to_string().replace(file.path().to_str().unwrap(), "T"))
}

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

fn findings(text: &[u8]) -> Vec<(u64, TapeSeverity, String)> {
    let findings = load(text).unwrap().findings.into_iter();
    findings.map(|finding| (finding.line, finding.severity, finding.message)).collect()
}

#[track_caller]
fn plays(loaded: &mut LoadedTape) {
    assert_eq!(loaded.index.len(), 2);
    for (slot, body) in [(0, &br#"{"id":1,"method":"ping"}"#[..]), (1, br#"{"id":1,"result":{}}"#)]
    {
        let slot = loaded.index.entry(slot);
        assert_eq!(loaded.body_reader.body(slot.offset, slot.length).unwrap(), body);
    }
}

#[test]
fn a_good_tape_is_loaded_without_a_word() {
    let mut loaded = load(&lines(&[HEADER, CALL, ANSWER, FOOTER])).unwrap();
    assert_eq!(loaded.findings, []);
    plays(&mut loaded);
}

#[test]
fn a_compressed_tape_is_played_from_a_copy_and_one_that_is_cut_off_up_to_there() {
    let mut bytes = Vec::new();
    for part in [lines(&[HEADER, CALL, ANSWER]), lines(&[FOOTER])] {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&part).unwrap();
        bytes.extend(gzip.finish().unwrap());
    }
    plays(&mut load(&bytes).unwrap());
    bytes.truncate(bytes.len() - 10);
    let mut loaded = load(&bytes).unwrap();
    plays(&mut loaded);
    let words: Vec<_> = loaded.findings.iter().map(|finding| finding.message.as_str()).collect();
    assert!(
        words
            .contains(&"the compressed tape was cut off; everything up to its last flush was read"),
        "{words:?}"
    );
}

#[test]
fn a_pipe_is_played_from_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, lines(&[HEADER, CALL, ANSWER, FOOTER])).unwrap()
    });
    let mut loaded = LoadedTape::open(&path, Signer::default(), Box::new(|_, _| ())).unwrap();
    writer.join().unwrap();
    plays(&mut loaded);
}

#[test]
fn a_compressed_tape_that_holds_more_than_there_is_room_for_is_not_copied() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let text = lines(&[HEADER, CALL, ANSWER, FOOTER]);
    gzip.write_all(&text).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&gzip.finish().unwrap()).unwrap();
    let bytes = text.len() as u64;
    for (bytes_max, fits) in [(bytes, true), (bytes - 1, false), (0, false)] {
        file.rewind().unwrap();
        let mut copy = anonymous_file().unwrap();
        let source = file.try_clone().unwrap();
        let copied = copy_up_to(bytes_max, source, &mut copy, Box::new(|_, _| ())).unwrap();
        assert_eq!(copied.is_some(), fits, "{bytes_max}");
        assert_eq!(copy.metadata().unwrap().len(), bytes_max);
    }
    let room = room_for(&anonymous_file().unwrap());
    assert!(room > 0 && room <= UNPACKED_BYTES_MAX, "{room}");
}

#[test]
fn a_device_is_no_tape() {
    let path = Path::new("/dev/zero");
    let error = LoadedTape::open(path, Signer::default(), Box::new(|_, _| ())).unwrap_err();
    let message = "cannot read `/dev/zero`: it is a device, not a file or a pipe";
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_byte_order_mark_is_left_out_with_a_warning() {
    let text = [b"\xef\xbb\xbf".to_vec(), lines(&[HEADER, CALL, ANSWER, FOOTER])].concat();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&text).unwrap();
    for bytes in [text, gzip.finish().unwrap()] {
        plays(&mut load(&bytes).unwrap());
        let message = "the tape starts with a byte order mark, which is left out".to_owned();
        assert_eq!(findings(&bytes), [(1, TapeSeverity::Warning, message)]);
    }
}

#[test]
fn what_is_unusual_is_told_and_coped_with() {
    use TapeSeverity::{Note, Warning};
    let no_footer = (0, Note, "there is no footer: the recording did not end normally".to_owned());
    assert_eq!(findings(&lines(&[HEADER, CALL, ANSWER])), std::slice::from_ref(&no_footer));
    let torn = [lines(&[HEADER, CALL]), ANSWER.as_bytes()[..30].to_vec()].concat();
    let message = "the tape ends in the middle of an entry; 30 bytes are left out".to_owned();
    assert_eq!(findings(&torn), [no_footer.clone(), (3, Warning, message)]);
    let message = "there is no header; format 1.0 is assumed".to_owned();
    assert_eq!(findings(&lines(&[CALL, ANSWER])), [no_footer, (1, Warning, message)]);
    let message = "the footer counts 2 messages (1 client, 1 server), but there are 1 (1, 0)";
    assert_eq!(findings(&lines(&[HEADER, CALL, FOOTER])), [(3, Warning, message.to_owned())]);
    let newer = HEADER.replace("\"1.0\"", "\"1.7\"");
    let message = "format 1.7 is newer than 1.0; unknown keys are kept".to_owned();
    assert_eq!(findings(&lines(&[&newer, CALL, ANSWER, FOOTER])), [(1, Note, message)]);
    let late = lines(&[HEADER, CALL, ANSWER, FOOTER, CALL]);
    assert_eq!(findings(&late), [(5, Warning, "an entry after the footer of line 4".to_owned())]);
}

#[test]
fn ec_rec_008_another_format_is_refused_by_name() {
    for (version, message) in [
        ("2.0", "the tape has format 2.0, but this build reads formats 1.x"),
        ("one", "`version` is `one`, not a number like 1.0"),
    ] {
        let header = HEADER.replace("\"1.0\"", &format!("\"{version}\""));
        let error = load(&lines(&[&header, CALL])).unwrap_err();
        assert_eq!(error, format!("`T` cannot be read: line 1: {message}"));
    }
}

#[test]
fn damage_in_the_middle_is_an_error_with_its_line() {
    let error = load(&lines(&[HEADER, "{\"type\":\"mess", CALL])).unwrap_err();
    assert_eq!(
        error,
        "`T` is damaged: line 2: not JSON: a raw control character in a string at byte 13"
    );
    let error = load(&lines(&[HEADER, CALL, "{\"type\":\"message\"}"])).unwrap_err();
    assert_eq!(error, "`T` is damaged: line 3: `ts` is missing");
}

#[test]
fn a_line_that_a_crash_cut_short_before_recording_went_on_is_no_damage() {
    let good = r#"{"ts":"2026-01-01T00:00:00Z","direction":"client_to_server","parsed":{"id":1,"method":"m"}}"#;
    let marker = r#"{"ts":"2026-01-01T00:00:00Z","direction":"client_to_server","raw":"","parse_error":"recovered_after_torn_tail"}"#;
    let loaded = load(&lines(&[good, &good[..40], marker, good])).unwrap();
    assert_eq!((loaded.index.len(), loaded.findings.len()), (2, 1));
    assert!(load(&lines(&[good, &good[..40], good])).is_err());
}

#[test]
fn what_is_no_tape_is_called_so() {
    assert_eq!(load(b"").unwrap_err(), "`T` is not a tape: it has no entries");
    assert_eq!(load(b"\n\n").unwrap_err(), "`T` is not a tape: it has no entries");
    let error = load(b"hello\nworld\n").unwrap_err();
    assert_eq!(error, "`T` is not a tape: line 1: not JSON: no JSON value at byte 0");
    let error = load(b"{\"a\":1}\n").unwrap_err();
    assert_eq!(error, "`T` is not a tape: line 1: not a tape entry: an object with the keys `a`");
    let path = Path::new("/no/such/tape");
    let error = LoadedTape::open(path, Signer::default(), Box::new(|_, _| ())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read `/no/such/tape`: No such file or directory (os error 2)"
    );
}

#[test]
fn ec_rec_001_a_tape_of_a_header_alone_is_a_tape() {
    assert_eq!(load(&lines(&[HEADER])).unwrap().index.len(), 0);
}

#[test]
fn ec_rec_011_a_tape_without_a_footer_is_loaded_with_a_note() {
    let findings = findings(&lines(&[HEADER, CALL, ANSWER]));
    assert_eq!((findings.len(), findings[0].1), (1, TapeSeverity::Note));
}
