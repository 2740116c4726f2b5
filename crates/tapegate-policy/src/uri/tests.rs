//! URIs as readers resolve them.

use super::*;

#[test]
fn a_parser_of_urls_resolves_hosts_and_paths() {
    for (uri, url) in [
        ("HTTPS://User:x@A.Example.:443/b", "https://a.example/b"),
        ("https:/a.example/b", "https://a.example/b"),
        (r"https:\\a.example\b\..\c", "https://a.example/c"),
        ("http://a.example", "http://a.example/"),
        ("http://a.example:0080/?", "http://a.example/"),
        ("http://a.example:8080/#", "http://a.example:8080/"),
        ("http://2852039166/x", "http://169.254.169.254/x"),
        ("http://0xa9.0376.43518/x", "http://169.254.169.254/x"),
        ("http://[::FFFF:169.254.169.254]/x", "http://169.254.169.254/x"),
        ("http://[0:0::1]:81/x", "http://[::1]:81/x"),
        ("http://a\u{3002}example/", "http://a.example/"),
        ("file:/b", "file:///b"),
        ("file:b", "file:///b"),
        ("file://localhost/b", "file:///b"),
        ("file:///a/%2e%2E/b", "file:///b"),
        ("note://Team/x/../b?c", "note://Team/b?c"),
        ("note:/x/../b", "note:/b"),
        ("urn:isbn:1", "urn:isbn:1"),
        ("note://@Team/b", "note://Team/b"),
        ("note://:@Team:/b", "note://Team/b"),
        ("note://u:@Team:05432/b", "note://u@Team:5432/b"),
        ("http://a.example:8_080/b", "http://a.example:8080/b"),
        ("http://a.example: 8080\u{a0}/b", "http://a.example:8080/b"),
        ("http://a.example:\u{668}\u{660}/b", "http://a.example/b"),
    ] {
        assert_eq!(resolve(uri, UriReader::Url).as_deref(), Some(url), "{uri}");
    }
    assert_eq!(resolve("a/../b", UriReader::Url), None);
}

#[test]
fn an_opener_of_files_knows_only_the_path() {
    for (uri, path) in [
        ("file://any.host/a//b#c", "file:///a/b"),
        ("file:///a?b", "file:///a"),
        ("note://Team/a//b", "note://team/a/b"),
        ("redis://u:p@Prod:06379/0", "redis://prod:6379/0"),
        ("redis://2130706433/0", "redis://127.0.0.1/0"),
        (r"note://x\..\b", "note://x/b"),
        ("mem:a/../b", "mem:b"),
        ("/a/../b", "/b"),
    ] {
        assert_eq!(resolve(uri, UriReader::Path).as_deref(), Some(path), "{uri}");
    }
}

#[test]
fn code_that_strips_the_scheme_goes_up_after_a_question_mark_too() {
    for (uri, path) in [
        ("file:///data/x#/../../secret.txt", "file:///secret.txt"),
        ("file:///data/x?/../../secret.txt", "file:///secret.txt"),
        ("note://team/a?b#/../c", "note://team/c"),
        ("note://team/a?b#/../../c", "note://c"),
        ("note://team/a#/../../../c", "note://../c"),
        ("file:///data/.. /b", "file:///b"),
        ("file:///data/..;x/b", "file:///b"),
    ] {
        assert_eq!(resolve(uri, UriReader::Rest).as_deref(), Some(path), "{uri}");
    }
    assert_eq!(resolve("https://a.example/?b=http://c//d", UriReader::Rest), None);
}

#[test]
fn what_is_plain_is_resolved_already() {
    for uri in [
        "file:///data/a.txt",
        "file:///data/",
        "https://example.com/a?b=c#d",
        "note://team/a?b#c",
        "urn:isbn:1",
        "x",
        "",
        "file:///{path}",
    ] {
        assert!(is_plain(uri), "{uri}");
        for reader in [UriReader::Url, UriReader::Path, UriReader::Rest] {
            let resolved = resolve(uri, reader);
            assert!(resolved.is_none_or(|resolved| resolved == uri), "{uri}");
        }
    }
    for uri in [
        "file:///a%20b",
        "file:///a/../b",
        "FILE:///a",
        "http://127.0.0.1/",
        " x:a",
        "file:b",
        "http://0xa/",
    ] {
        assert!(!is_plain(uri), "{uri}");
    }
}
