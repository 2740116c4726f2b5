//! Tests where configs and state folders are found.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tapegate_policy::model::Profile;
use tempfile::TempDir;

use super::{ProfileArg, SearchContext, server_id};
use crate::upstream::UpstreamTarget;

/// A folder with an empty folder `a/b` in it.
fn project() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir_all(folder.path().join("a/b")).expect("folders");
    folder
}

/// Runs `ask` in `a/b` with these variables.
fn inside<T>(top: &Path, set: &[(&str, &str)], ask: impl Fn(&SearchContext<'_>) -> T) -> T {
    let find = |name: &str| set.iter().find(|(known, _)| *known == name);
    let variable = |name: &str| find(name).map(|(_, value)| OsString::from(value));
    ask(&SearchContext { folder: top.join("a/b"), variable: &variable })
}

#[test]
fn the_nearest_config_is_taken_and_ours_before_the_other_name() {
    let top = project();
    let config = |set: &[(&str, &str)]| {
        inside(top.path(), set, |search| search.config(None).expect("nothing is amiss"))
    };
    let write = |name: &str| {
        fs::write(top.path().join(name), "schema: 1\n").expect("a file");
        Some(top.path().join(name))
    };
    let far = write("tapegate.yaml");
    assert_eq!(config(&[]), far);
    let near = write("a/thoughtgate.yaml");
    assert_eq!(config(&[]), near);
    let nearer = write("a/tapegate.yaml");
    assert_eq!(config(&[]), nearer);
    // A named config is used even if it does not exist: going on without it would be worse.
    let theirs = ("THOUGHTGATE_CONFIG", "t.yaml");
    assert_eq!(config(&[theirs]), Some(top.path().join("a/b/t.yaml")));
    let ours = ("TAPEGATE_CONFIG", "/o.yaml");
    assert_eq!(config(&[theirs, ours]), Some("/o.yaml".into()));
    let flag = inside(top.path(), &[ours], |search| search.config(Some(Path::new("f.yaml"))));
    assert_eq!(flag.expect("nothing is amiss"), Some(top.path().join("a/b/f.yaml")));
}

#[test]
fn where_a_project_has_no_policy_the_user_s_own_governs() {
    let top = project();
    let write = |name: &str| {
        let path = top.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, "schema: 1\n").expect("a file");
        Some(path)
    };
    let (home, xdg) = (top.path().join("home"), top.path().join("xdg"));
    let (home, xdg) = (home.display().to_string(), xdg.display().to_string());
    let config = |set: &[(&str, &str)]| {
        inside(top.path(), set, |search| search.config(None).expect("nothing is amiss"))
    };
    let in_home = write("home/.config/tapegate/tapegate.yaml");
    assert_eq!(config(&[]), None);
    assert_eq!(config(&[("HOME", &home)]), in_home);
    // An XDG folder replaces `~/.config`, as the standard requires.
    let both = [("HOME", home.as_str()), ("XDG_CONFIG_HOME", xdg.as_str())];
    assert_eq!(config(&both), None);
    let in_xdg = write("xdg/tapegate/tapegate.yaml");
    assert_eq!(config(&both), in_xdg);
    let near = write("tapegate.yaml");
    assert_eq!(config(&both), near);
}

#[test]
fn a_policy_is_required_by_flag_or_variable_and_an_odd_value_is_an_error() {
    let top = project();
    let required = |value: &str, flag| {
        let set = [("TAPEGATE_REQUIRE_POLICY", value)];
        inside(top.path(), &set, |search| {
            search.policy_required(flag).map_err(|error| error.message)
        })
    };
    for value in ["1", "true", "YES"] {
        assert_eq!(required(value, false), Ok(true), "{value}");
    }
    for value in ["", "0", "false", "no"] {
        assert_eq!((required(value, false), required(value, true)), (Ok(false), Ok(true)));
    }
    let odd = required("ja", true).expect_err("an odd value");
    assert!(odd.contains("TAPEGATE_REQUIRE_POLICY is `ja`"), "{odd}");
}

#[test]
fn a_config_that_is_there_but_cannot_be_read_is_not_passed_over() {
    let top = project();
    fs::write(top.path().join("tapegate.yaml"), "schema: 1\n").expect("a file");
    let near = top.path().join("a/tapegate.yaml");
    let config = || inside(top.path(), &[], |search| search.config(None));
    std::os::unix::fs::symlink("nowhere", &near).expect("a link");
    let message = config().expect_err("it leads nowhere").to_string();
    assert!(message.ends_with("a/tapegate.yaml` as a policy: it is a dangling link"), "{message}");
    fs::remove_file(&near).expect("no link");
    fs::create_dir(&near).expect("a folder");
    assert!(config().is_err());
    fs::remove_dir(&near).expect("no folder");
    assert_eq!(config().expect("nothing is amiss"), Some(top.path().join("tapegate.yaml")));
}

#[test]
fn a_variable_that_is_empty_is_not_set() {
    let top = project();
    let home = top.path().join("home").display().to_string();
    let set = [("TAPEGATE_HOME", ""), ("TAPEGATE_PROFILE", ""), ("HOME", home.as_str())];
    inside(top.path(), &set, |search| {
        assert_eq!(search.profile(None).expect("none"), None);
        let folder = search.state_folder(None).expect("a folder");
        assert_eq!(folder, top.path().join("home/.local/state/tapegate"));
    });
}

#[test]
fn the_state_folder_is_the_named_one_the_project_s_or_the_user_s() {
    let top = project();
    let state = |set: &[(&str, &str)]| {
        inside(top.path(), set, |search| search.state_folder(None).map_err(|error| error.message))
    };
    assert!(state(&[]).expect_err("no home").contains("HOME is not set"));
    let xdg = [("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
    assert_eq!(state(&xdg), Ok("/x/tapegate".into()));
    // A relative path is ignored, as the standard requires.
    assert_eq!(
        state(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]),
        Ok("/h/.local/state/tapegate".into())
    );
    fs::create_dir(top.path().join(".tapegate")).expect("a folder");
    assert_eq!(state(&xdg), Ok(top.path().join(".tapegate")));
    // A link is not followed: its target may be under another user's control.
    std::os::unix::fs::symlink("/tmp", top.path().join("a/.tapegate")).expect("a link");
    assert_eq!(state(&xdg), Ok(top.path().join(".tapegate")));
    assert_eq!(state(&[("TAPEGATE_HOME", "/t")]), Ok("/t".into()));
}

#[test]
fn a_state_folder_that_is_gone_is_told_until_another_one_is_remembered() {
    let top = project();
    let (home, state) = (top.path().join("home"), top.path().join(".tapegate"));
    fs::create_dir_all(&home).expect("a folder");
    fs::create_dir(&state).expect("a folder");
    let home = home.display().to_string();
    inside(top.path(), &[("HOME", &*home)], |search| {
        let gone = || search.chosen_state(None).expect("a choice").gone_warning();
        assert_eq!(gone(), None);
        search.use_project_state(top.path());
        assert_eq!(gone(), None);
        fs::rename(&state, top.path().join("elsewhere")).expect("moved");
        assert!(gone().is_some_and(|message| message.contains(&state.display().to_string())));
        search.remember_state(None, None);
        assert_eq!(gone(), None);
    });
}

#[test]
fn the_state_folder_is_that_of_the_project_whose_policy_is_named() {
    let top = project();
    let here = top.path().join("a/b");
    let other = top.path().join("other");
    for folder in [&here, &other] {
        fs::create_dir_all(folder.join(".tapegate")).expect("a folder");
        fs::create_dir_all(folder.join("ci")).expect("a folder");
    }
    let state = |set: &[(&str, &str)], named: Option<&str>| {
        let config = top.path().join("config").display().to_string();
        let set = [&[("HOME", "/h"), ("XDG_CONFIG_HOME", &*config)], set].concat();
        inside(top.path(), &set, |search| search.state_folder(named.map(Path::new)).expect("one"))
    };
    let policy = other.join("tapegate.yaml").display().to_string();
    let resolved = other.canonicalize().expect("a folder").join(".tapegate");
    assert_eq!(state(&[], None), here.join(".tapegate"));
    assert_eq!(state(&[], Some(&policy)), resolved);
    assert_eq!(state(&[], Some("../../other/ci/strict.yaml")), resolved);
    assert_eq!(state(&[("TAPEGATE_CONFIG", &policy)], None), resolved);
    assert_eq!(state(&[("TAPEGATE_HOME", "/t")], Some(&policy)), Path::new("/t"));
    // The user-wide policy applies to all projects and belongs to none.
    let user_wide = top.path().join("config/tapegate/tapegate.yaml").display().to_string();
    assert_eq!(state(&[], Some(&user_wide)), here.join(".tapegate"));
    // A project without such a folder uses the user's, as it does from inside.
    assert_eq!(state(&[], Some("/nowhere/p.yaml")), Path::new("/h/.local/state/tapegate"));
}

#[test]
fn a_profile_is_named_by_flag_then_by_variable_and_a_misspelt_one_is_an_error() {
    let top = project();
    let profile = |set: &[(&str, &str)], flag| {
        inside(top.path(), set, |search| search.profile(flag).map_err(|error| error.message))
    };
    let (ours, theirs) = ("TAPEGATE_PROFILE", "THOUGHTGATE_PROFILE");
    assert_eq!(profile(&[], None), Ok(None));
    assert_eq!(profile(&[(theirs, "development")], None), Ok(Some(Profile::Development)));
    let both = [(theirs, "development"), (ours, "production")];
    assert_eq!(profile(&both, None), Ok(Some(Profile::Production)));
    let flag = Some(ProfileArg::Development);
    assert_eq!(profile(&[(ours, "production")], flag), Ok(Some(Profile::Development)));
    let misspelt = profile(&[(ours, "prodution")], None).expect_err("no profile");
    assert!(misspelt.contains("`prodution`"), "{misspelt}");
}

#[test]
fn a_server_without_a_name_is_named_after_its_package_program_or_host() {
    let cases = [
        ("npx -y @modelcontextprotocol/server-filesystem /tmp", "server-filesystem"),
        (
            "node /home/u/.npm/_npx/ab12/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js /tmp",
            "server-filesystem",
        ),
        ("/usr/lib/node_modules/@scope/server-git/bin/cli.js", "server-git"),
        ("/srv/app/node_modules/.bin/mcp-time", "mcp-time"),
        ("node node_modules/weather/build/index.js", "weather"),
        (r"C:\Users\me\AppData\npm\node_modules\@scope\files\dist\index.js", "files"),
        (r"C:\Python\python.exe C:\srv\weather\server.py", "weather"),
        ("cmd /c npx -y @scope/files@latest", "files"),
        ("npx -y @scope/files@1.2.3", "files"),
        ("npx --package=@scope/a some-server", "some-server"),
        ("npx -p @scope/a some-server", "some-server"),
        ("pnpm dlx @scope/files@2", "files"),
        ("yarn dlx files", "files"),
        ("bunx --bun files@1", "files"),
        ("npm exec -- @scope/files", "files"),
        ("uvx mcp-server-time --local-timezone UTC", "mcp-server-time"),
        ("uvx mcp-server-git[all]==1.2", "mcp-server-git"),
        ("uvx --from git+https://x/y mcp-time", "mcp-time"),
        ("uvx git+https://github.com/owner/weather-mcp.git@v1.0", "weather-mcp"),
        ("pipx run weather==1.0", "weather"),
        ("uv run --directory /srv/weather server.py", "weather"),
        ("uv --directory /srv/weather run main.py", "weather"),
        ("uv run --with mcp fastmcp run /srv/weather/server.py", "weather"),
        ("uv run weather.py", "weather"),
        ("python -m mcp_server_git", "mcp_server_git"),
        ("python3.12 -u -m weather.server", "weather"),
        ("/usr/bin/python3 /opt/x/weather.py", "weather"),
        ("python /opt/venv/lib/python3.12/site-packages/mcp_weather/__main__.py", "mcp_weather"),
        ("node dist/index.js", "index"),
        ("node --import ./hook.js /srv/weather/dist/index.js", "weather"),
        ("tsx src/weather.ts", "weather"),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:v1", "github-mcp-server"),
        ("docker run -i --rm -e TOKEN=a/b -v /a:/b mcp/time@sha256:abcd", "time"),
        ("docker run -i node:20 npx -y @scope/files", "files"),
        ("docker exec -i weather node server.js", "weather"),
        ("java -Xmx1g -jar /opt/weather-1.2.3.jar --stdio", "weather"),
        ("java -cp a.jar com.example.weather.Main", "com.example.weather"),
        ("deno run -A npm:@scope/files@1", "files"),
        ("deno run --allow-net https://deno.land/x/weather@v1/mod.ts", "weather"),
        ("cargo run -q --bin weather", "weather"),
        ("cargo run --manifest-path /srv/weather/Cargo.toml", "weather"),
        ("go run github.com/owner/weather@latest", "weather"),
        ("go run ./cmd/weather", "weather"),
        ("dotnet run --project /srv/Weather/Weather.csproj", "Weather"),
        ("dotnet /srv/Weather.dll", "Weather"),
        ("/opt/bin/my server", "my"),
        ("./run.sh", "run"),
        ("/srv/weather/run.sh", "weather"),
        ("/srv/weather/target/release/server", "weather"),
        ("env A=b node x.mjs", "x"),
        ("sudo -u me timeout 30 uvx weather", "weather"),
        ("npx", "npx"),
        ("python -c pass", "python"),
        ("...", "server"),
    ];
    for (line, id) in cases {
        let argv = line.split(' ').map(str::to_owned).collect();
        assert_eq!(server_id(&UpstreamTarget::Command(argv)), id, "{line}");
    }
    let shell = ["sh", "-c", "cd /srv && A=b exec npx -y \"@scope/files\" /tmp"];
    let argv = shell.map(str::to_owned).to_vec();
    assert_eq!(server_id(&UpstreamTarget::Command(argv)), "files");
    let url = "https://user:secret@mcp.example.com:8443/mcp?x=1";
    assert_eq!(server_id(&UpstreamTarget::Http(url.to_owned())), "mcp.example.com-8443");
}

#[test]
fn any_command_line_makes_an_id() {
    let odd = [
        "",
        " ",
        "@",
        "@/",
        "a@",
        "://",
        "git+",
        "npm:",
        "==",
        "[",
        "\\",
        "C:",
        "é",
        "@é/ü@ß",
        "-",
        "--=",
        "/",
        "😀😀@😀",
        ".git",
        "x:y:z",
        "sh",
        "-c",
        "node_modules",
        "docker",
    ];
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    for first in odd {
        for second in odd {
            for runner in ["npx", "sh", "docker", "python", ""] {
                let argv = [runner, first, second].map(str::to_owned).to_vec();
                let id = server_id(&UpstreamTarget::Command(argv));
                assert!(!id.is_empty() && id.chars().all(fits), "{runner} {first} {second}: {id}");
            }
        }
    }
}

#[test]
fn the_user_s_own_state_is_outside_the_project_and_said_to_be_exposed_if_not() {
    let top = project();
    fs::create_dir(top.path().join(".tapegate")).expect("a folder");
    let home = top.path().join("home").display().to_string();
    inside(top.path(), &[("HOME", &home)], |search| {
        let dir = search.user_state_dir().expect("a folder");
        assert_eq!(dir, top.path().join("home/.local/state/tapegate"));
        assert_eq!(search.user_state_warning(&top.path().join("a")), None);
    });
    inside(top.path(), &[("HOME", &home), ("TAPEGATE_HOME", "x")], |search| {
        assert_eq!(search.user_state_dir().expect("a folder"), top.path().join("a/b/x"));
        let words = search.user_state_warning(&top.path().join("a")).expect("a warning");
        assert!(words.contains("lies inside the project"), "{words}");
        assert_eq!(search.user_state_warning(&top.path().join("a/c")), None);
        // With the home folder as the project, there is no better place.
        assert_eq!(search.user_state_warning(top.path()), None);
    });
}
