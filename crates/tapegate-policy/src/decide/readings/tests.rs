//! Readings of names and URIs: tables of spellings, and a property against lenient decoders.

use super::*;

fn uri_readings(uri: &str) -> Vec<String> {
    readings(uri, true).unwrap()
}

#[test]
fn a_uri_as_most_are_written_has_one_reading() {
    for uri in [
        "file:///data/a.txt",
        "file:///data/.git/..x",
        "file:///data/",
        "file:///",
        "https://example.com/a?b=c#d",
        "https://example.com/",
        "note://team/a",
        "urn:isbn:1",
        "x",
        "",
    ] {
        assert_eq!(uri_readings(uri), [""; 0], "{uri}");
    }
    assert_eq!(uri_readings("file:///data/a%20b"), ["file:///data/a b"]);
    assert_eq!(uri_readings("https://a.example/b%2Fc"), ["https://a.example/b/c"]);
}

#[test]
fn a_uri_is_read_as_whatever_it_leads_to() {
    for (uri, reading) in [
        ("file:///a/../b", "file:///b"),
        ("file:///a/%2e%2E/b", "file:///b"),
        ("file:///a/..%2Fb", "file:///b"),
        ("file:///a/%252e%252e/b", "file:///b"),
        ("file:///a%2Fx/../..%2Fb", "file:///b"),
        ("file:///x%2Fy%2Fz/../%2e%2e%2fb", "file:///b"),
        ("file:///a//b", "file:///a/b"),
        ("file:///a//../b", "file:///a/b"),
        ("file:///a//../b", "file:///b"),
        ("file:///a/.", "file:///a/"),
        ("file:///..", "file:///"),
        ("file:///%62", "file:///b"),
        ("file:///%2562", "file:///b"),
        ("file:///b#x", "file:///b"),
        ("file:///b%23x", "file:///b"),
        ("file:///b%00.txt", "file:///b"),
        ("file:///b%20", "file:///b"),
        ("file:///b%0A", "file:///b"),
        ("file%3A///b", "file:///b"),
        ("file%3A%2F%2F%2Fb", "file:///b"),
        ("file:b", "file:///b"),
        ("file:/b", "file:///b"),
        ("file://LOCALHOST/b", "file:///b"),
        ("file://any/b", "file:///b"),
        (r"file:\\\b", "file:///b"),
        (r"file:\\\b/..", "file:///b/.."),
        ("FiLe:///b", "file:///b"),
        ("\tfile:///b ", "file:///b"),
        ("fi\nle:///b", "file:///b"),
        ("\u{feff}file:///b", "file:///b"),
        ("file:///a%20b", "file:///a b"),
        ("file:///c%2B%2B", "file:///c++"),
        ("file:///%C3%BC", "file:///\u{fc}"),
        ("file:///u\u{308}", "file:///\u{fc}"),
        ("file:///u%CC%88", "file:///\u{fc}"),
        ("file:///\u{ff42}", "file:///b"),
        ("file:///\u{ff05}62", "file:///b"),
        ("file:///\u{ff0e}\u{ff0e}/b", "file:///b"),
        ("https://A.example/x/../b", "https://a.example/b"),
        ("https://a.example%3A443/b", "https://a.example/b"),
        ("https://user@a.example./b", "https://a.example/b"),
        ("https://a.example", "https://a.example/"),
        ("http://0x7f.1/b", "http://127.0.0.1/b"),
        ("note://Team/x/../b?c", "note://Team/b?c"),
        ("mem:a/../b", "mem:b"),
        ("/a/../b", "/b"),
    ] {
        let found = uri_readings(uri);
        assert!(found.iter().any(|one| one == reading), "{uri} {reading}: {found:?}");
    }
}

#[test]
fn the_name_of_a_tool_is_read_without_blanks_and_in_one_unicode_form() {
    let found = |name| readings(name, false).unwrap();
    for plain in ["read_file", "a b", "a%20b", "a/../b", "", "Read"] {
        assert_eq!(found(plain), [""; 0], "{plain}");
    }
    for name in
        [" read", "read\n", "read\0x", "\u{200b}read", "\u{ff52}ead", " \u{ff52}ead\u{3000}"]
    {
        assert!(found(name).iter().any(|one| one == "read"), "{name:?}");
    }
}

#[test]
fn what_can_be_read_in_too_many_ways_is_not_read() {
    let long = format!("file:///%2e/{}", "a".repeat(READINGS_BYTES_MAX));
    assert_eq!(readings(&long, true), Err(NameReadingsError));
}
