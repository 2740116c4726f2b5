//! Programs that only run another one, and their flags that take a value.

/// Programs that only run another one, which is named in their arguments.
const RUNNERS: [&str; 48] = [
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "pipx",
    "pnpm",
    "npm",
    "yarn",
    "bun",
    "uv",
    "node",
    "nodejs",
    "deno",
    "tsx",
    "ts-node",
    "ruby",
    "bundle",
    "java",
    "cargo",
    "go",
    "dotnet",
    "php",
    "perl",
    "env",
    "docker",
    "podman",
    "nerdctl",
    "nice",
    "nohup",
    "stdbuf",
    "timeout",
    "sudo",
    "sh",
    "bash",
    "zsh",
    "dash",
    "cmd",
    "powershell",
    "pwsh",
    "mise",
    "corepack",
    "fastmcp",
    "mcp",
    "py",
    "pypy",
    "pypy3",
    "poetry",
    "hatch",
];

/// Flags whose value is the name to use.
pub(super) const NAMING: [(&str, &str); 8] = [
    ("java", "-jar"),
    ("cargo", "--bin"),
    ("cargo", "--example"),
    ("cargo", "-p"),
    ("cargo", "--package"),
    ("cargo", "--manifest-path"),
    ("dotnet", "--project"),
    ("deno", "--import"),
];

/// Flags that take a value with any runner.
const WITH_VALUE: [&str; 14] = [
    "--directory",
    "--project",
    "--prefix",
    "-C",
    "--dir",
    "--cwd",
    "--env-file",
    "--config",
    "--name",
    "--from",
    "--with",
    "--python",
    "--package",
    "--loader",
];
const OF_CONTAINERS: [&str; 36] = [
    "-e",
    "--env",
    "-v",
    "--volume",
    "--mount",
    "-p",
    "--publish",
    "--network",
    "--net",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--platform",
    "--entrypoint",
    "-l",
    "--label",
    "--cpus",
    "-m",
    "--memory",
    "-h",
    "--hostname",
    "--add-host",
    "--gpus",
    "--ipc",
    "--pid",
    "--security-opt",
    "--cap-add",
    "--cap-drop",
    "--ulimit",
    "--restart",
    "--pull",
    "--tmpfs",
    "--device",
    "--dns",
    "--runtime",
];
const OF_SCRIPTS: [&str; 8] =
    ["-r", "--require", "--import", "--conditions", "-W", "-X", "-p", "-cp"];
const OF_OTHERS: [&str; 6] = ["-n", "-u", "-k", "-s", "-w", "-i"];

/// Whether a program only runs another one.
pub(super) fn is_runner(name: &str) -> bool {
    let python = name
        .strip_prefix("python")
        .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    python || RUNNERS.contains(&name)
}

/// Whether a flag of a runner takes a value.
pub(super) fn takes_value(runner: &str, flag: &str) -> bool {
    let own: &[&str] = match runner {
        "docker" | "podman" | "nerdctl" => &OF_CONTAINERS,
        // A shell runs a script; `npx -p PACKAGE` installs one package and runs another.
        "node" | "nodejs" | "tsx" | "ts-node" | "bun" | "deno" | "java" | "npx" | "npm" => {
            &OF_SCRIPTS
        }
        "nice" | "sudo" | "timeout" | "stdbuf" => &OF_OTHERS,
        name if name.starts_with("py") => &["-W", "-X"],
        _ => &[],
    };
    WITH_VALUE.contains(&flag) || own.contains(&flag)
}
