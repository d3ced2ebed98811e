//! Tells `bailey version` how the program was built.

use std::process::Command;

fn main() {
    let say = |name: &str, value: &str| println!("cargo:rustc-env={name}={value}");
    let output = |program: &str, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
    say("BAILEY_COMMIT", commit.as_deref().unwrap_or("no commit"));
    say("BAILEY_RUSTC", output(&rustc, &["--version"]).as_deref().unwrap_or("rustc unknown"));
    // Of the environment only what cargo gives: the same source makes the same program, whenever and
    // wherever.
    let mut features: Vec<String> = std::env::vars()
        .filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase().replace('_', "-")))
        .collect();
    features.sort();
    say("BAILEY_FEATURES", &features.join(","));
    say("BAILEY_TARGET", &std::env::var("TARGET").unwrap_or_default());
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(git) = output("git", &["rev-parse", "--git-dir"]) {
        println!("cargo:rerun-if-changed={git}/logs/HEAD");
    }
}
